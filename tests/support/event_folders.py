"""The folder of an event with public decks, as a run leaves it, played in this process by chance."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

from tressette.record.decks import deck_name, deck_seed, event_commitment, game_salt, public_event_key
from tressette.record.game import GameSpec
from tressette.record.manifest import write_manifest
from tressette.record.scribe import Scribe
from tressette.record.writer import SEGMENT_BYTES, Record
from tressette.rules.events import FaultCommitted, FaultEffect, FaultKind
from tressette.rules.match import Match
from tressette.rules.presets import resolve
from tressette_tournament.ratings import rate
from tressette_tournament.report import as_json
from tressette_tournament.results import read

from support.recorded import random_answer

KEY = public_event_key("test")


def event_folder(
    folder: Path,
    presets: Mapping[str, int],
    *,
    segment_bytes: int = SEGMENT_BYTES,
    forfeit: Callable[[int], bool] = lambda number: False,
) -> Path:
    """Deal sets of two games by preset, bots a and b changing seats; ends with ratings and manifest.
    ``forfeit``: whether the game with this number is lost by one in its third trick."""
    rng = random.Random(1)
    record = Record(folder, "0001", segment_bytes)
    number = 0
    for index, (preset, sets) in enumerate(presets.items()):
        for one in range(sets):
            for game in range(2):
                spec = spec_of(preset, f"p{index}-l0-s{one}", one, game)
                _play(record, spec, rng, forfeits=forfeit(number))
                number += 1
    record.close()
    stage = {"bots": ["a", "b"], "first_set": 0, "commitment": event_commitment(KEY), "key": KEY.hex()}
    event = {"decks": "public", "common_deals": True, "stages": [stage]}
    (folder / "event.json").write_text(json.dumps(event))
    write_ratings(folder)
    write_manifest(folder)
    return folder


def spec_of(preset: str, deal_set: str, number: int, game: int) -> GameSpec:
    """One of the two games of a deal set."""
    rules = resolve(preset)
    pair = ("a", "b") if game == 0 else ("b", "a")
    name = f"{deal_set}-g{game}"
    return GameSpec(
        game=name,
        attempt=1,
        tournament="test",
        preset=preset,
        rules=rules,
        bots=tuple(pair[seat % 2] for seat in range(rules.players)),
        deal_set=deal_set,
        set_size=2,
        deck=deck_name(KEY, rules.hash(), number),
        seed=deck_seed(KEY, rules.hash(), number),
        salt=game_salt(KEY, name),
    )


def write_ratings(folder: Path) -> None:
    """ratings.json, as the end of a run writes it."""
    (folder / "ratings.json").write_text(json.dumps(as_json(rate(read(folder))), indent=2) + "\n")


def _play(record: Record, spec: GameSpec, rng: random.Random, *, forfeits: bool) -> None:
    scribe = Scribe(record, spec, ["1.0"] * spec.rules.players)
    match = Match(spec.rules, spec.decks)
    scribe.write(match.start())
    answers = 0
    while not match.over:
        seat = rng.choice(match.pending)
        if forfeits and answers == 2 * spec.rules.players + 1:
            scribe.write([FaultCommitted(seat, FaultKind.TIMEOUT, FaultEffect.FORFEIT, "LATE")])
            scribe.write(match.forfeit(seat))
        else:
            events = match.act(seat, random_answer(match.legal(seat), rng))
            scribe.write(events, think_ms=rng.randrange(50), network_ms=rng.randrange(9))
        answers += 1
    scribe.committed(duration_ms=answers, ended_unix_ms=1_700_000_000_000 + answers)
