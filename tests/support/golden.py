"""Golden matches: one whole match of every preset, kept as JSON lines in tests/golden/matches.jsonl.

A line holds the preset, the seed of its decks, every answer in the order given (see ``matches``), the
totals in sixths, the places, and the SHA-256 of the representations of all events, one a line. To write
them anew after a change that is meant: ``PYTHONPATH=tests python -m support.golden``.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tressette.rules.actions import Action, CallMonte, CallOut, Declare
from tressette.rules.deck import seeded
from tressette.rules.events import DealVoided, Event
from tressette.rules.match import Match
from tressette.rules.presets import PRESETS
from tressette.rules.ruleset import FirstTo, Monte

from support.matches import answer, answer_text, random_answer

Line = dict[str, Any]

FILE = Path(__file__).resolve().parent.parent / "golden" / "matches.jsonl"


def load() -> list[Line]:
    """The golden matches as they are kept."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def digest(events: Sequence[Event]) -> str:
    """SHA-256 of the events' representations, one a line."""
    return hashlib.sha256("".join(f"{event!r}\n" for event in events).encode()).hexdigest()


def replayed(line: Line) -> tuple[Match, list[Event]]:
    """The match of a line, played again."""
    match = Match(PRESETS[line["preset"]], seeded(bytes.fromhex(line["seed"])))
    events = match.start()
    return match, events + answer(match, *line["answers"].split())


def line_of(match: Match, events: Sequence[Event]) -> Line:
    """What a line says about a match beside its answers."""
    return {
        "totals": list(match.standing.totals),
        "ranks": list(match.standing.ranks()),
        "events": len(events),
        "sha256": digest(events),
    }


def generate() -> Iterator[Line]:
    """A match of every preset; where there is monte, the first seed that has one."""
    for name in PRESETS:
        for number in itertools.count():
            line, events = _played(name, hashlib.sha256(f"golden {name} {number}".encode()).digest())
            if PRESETS[name].monte is Monte.OFF or any(isinstance(event, DealVoided) for event in events):
                yield line
                break


def _played(name: str, seed: bytes) -> tuple[Line, list[Event]]:
    """A match by chance, but with every declaration, monte and sure claim made."""
    chance = random.Random(seed)
    match = Match(PRESETS[name], seeded(seed))
    events, answers = match.start(), []
    while not match.over:
        seat = match.pending[0]
        actions = _keen_answer(match, seat, chance)
        answers.append(answer_text(actions))
        events += match.act(seat, actions)
    line = {"preset": name, "seed": seed.hex(), "answers": " ".join(answers), **line_of(match, events)}
    return line, events


def _keen_answer(match: Match, seat: int, chance: random.Random) -> list[Action]:
    legal = match.legal(seat)
    declared: list[Action] = [Declare(one) for one in legal.declarations]
    if legal.monte:
        return [CallMonte()]
    if legal.call_out and _reached(match, seat):
        return [*declared, CallOut()]
    chosen = [
        action for action in random_answer(match, seat, chance) if not isinstance(action, Declare | CallOut)
    ]
    if legal.cards and not chosen:
        return _keen_answer(match, seat, chance)
    return [*declared, *chosen]


def _reached(match: Match, seat: int) -> bool:
    """Whether a claim of this seat would be right."""
    end, side = match.rules.end, match.rules.side_of(seat)
    assert isinstance(end, FirstTo)
    taken = match.deal.taken[side] | match.deal.taken[side + 2]
    return match.standing.totals[side] + match.deal.value(taken) // 3 * 6 >= end.target * 6


def write() -> None:
    """Write the golden matches anew."""
    lines = [json.dumps(line, separators=(",", ":")) for line in generate()]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
