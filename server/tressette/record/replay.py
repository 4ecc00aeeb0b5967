"""Plays a recorded game again by the rules, and compares what comes of it with what was recorded.

The decks are built from the recorded hands (and drawn cards), the actions are those in the lines; the rules
do the rest, and a scribe writes their events down again. Every line must come out as it stands in the record,
but for times and faults, which are no part of the rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from tressette.record.game import GameSpec
from tressette.record.reader import DamagedRecord, RecordError, game_of, read_lines, result_files
from tressette.record.scribe import Scribe
from tressette.record.segments import segments
from tressette.record.writer import SEGMENT
from tressette.rules.accuse import Combination
from tressette.rules.actions import Action, CallMonte, CallOut, Declare, Discard, PlayCard, Signal
from tressette.rules.cards import Card, mask_of, parse_card, parse_cards
from tressette.rules.deck import DeckSource, Phase
from tressette.rules.errors import RulesError
from tressette.rules.events import Event, FaultEffect
from tressette.rules.layout import lay_out
from tressette.rules.match import Match, Stage
from tressette.rules.ruleset import Packets, RuleSet
from tressette.rules.scoring import Revoke

_NOT_OF_THE_RULES = (
    *("v", "seq", "prev", "commitment", "suits", "processes", "faults"),
    *("think_ms", "net_ms", "duration_ms", "ended_unix_ms"),
)


class ReplayDiffers(RecordError):
    """A recorded game that the rules do not produce; ``game`` and ``reason`` say which and where."""

    def __init__(self, game: str, reason: str) -> None:
        super().__init__(f"game {game}: {reason}")
        self.game, self.reason = game, reason


@dataclass(slots=True)
class RecordedGame:
    """The lines of one attempt of one game. opening: its ``match`` line; lines: all later ones in order;
    result: its ``game`` line, None if it was cut off. files: where each of these stands, in this order; a
    line's ``seq`` is its number there."""

    opening: Mapping[str, Any]
    lines: list[Mapping[str, Any]] = field(default_factory=list)
    result: Mapping[str, Any] | None = None
    files: list[Path] = field(default_factory=list)

    @property
    def played_out(self) -> bool:
        """Whether its last line has just been read."""
        last, result = self.lines[-1], self.result
        if result is None or last["kind"] == "cut":
            return result is not None
        if last["kind"] != "deal" or result.get("forfeit") is not None:
            return False
        return bool(sum(line["kind"] == "deal" for line in self.lines) == result.get("deals"))

    @property
    def rules(self) -> RuleSet:
        """The resolved rules."""
        return RuleSet.from_options(self.opening["rules"])


def read_games(folder: Path, torn: list[str] | None = None) -> Iterator[RecordedGame]:
    """The committed games of a folder, as they become complete.

    A result belongs to the lines of its own writer: another one may have begun the same attempt, where a
    server that took suspended games up could not go on with them and put them back.

    Holds the text of one writer's results (under a kilobyte each) and the games under way in memory, no more.
    Raises DamagedRecord for a line that belongs to no game or is of no known kind, ReplayDiffers for a result
    without its lines.
    """
    missing: list[str] = []
    tricks = segments(folder)
    results = {path.stem.removeprefix("results-"): path for path in result_files(folder)}
    for writer in sorted({*tricks, *results}):
        yield from _games_of(results.get(writer), tricks.get(writer, []), torn, missing)
    for game in missing:
        raise ReplayDiffers(game, "has a result but no tricks")


def _games_of(
    results_file: Path | None, tricks: Sequence[Path], torn: list[str] | None, missing: list[str]
) -> Iterator[RecordedGame]:
    """The committed games of one writer; those that have a result and no lines are added to ``missing``."""
    results: dict[tuple[str, int], tuple[Path, bytes]] = {}
    if results_file is not None:
        for line in read_lines(results_file, torn):
            # Copied, since what orjson returns keeps a buffer of several kilobytes.
            text = memoryview(orjson.dumps(line)).tobytes()
            results[game_of(results_file, line["seq"], line)] = results_file, text
    open_games: dict[tuple[str, int], RecordedGame] = {}
    for path in tricks:
        for number, line in enumerate(read_lines(path, torn), start=1):
            kind = line.get("kind")
            if kind == SEGMENT:
                continue
            key = game_of(path, number, line)
            if kind == "match":
                result = orjson.loads(results[key][1]) if key in results else None
                open_games[key] = RecordedGame(line, result=result, files=[path])
                continue
            if key not in open_games or kind not in ("trick", "deal", "void", "cut"):
                raise DamagedRecord(path, number, f"a {kind!r} line outside any game")
            game = open_games[key]
            game.lines.append(line)
            game.files.append(path)
            if game.played_out:
                game.files.append(results.pop(key)[0])
                yield open_games.pop(key)
    for key, game in open_games.items():
        if game.result is not None:
            game.files.append(results.pop(key)[0])
            yield game
    missing += [game for game, _ in results]


def replay_game(game: RecordedGame, decks: DeckSource | None = None) -> list[Event]:
    """All events of a committed game, played again. ``decks``: what it must have been dealt from; without
    them the decks are built from the recorded hands. Raises ReplayDiffers where the record differs."""
    try:
        return _Replay(game, decks).run()
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        # A line may be well chained and still lack what every writer puts in it.
        raise ReplayDiffers(str(game.opening.get("game")), f"cannot be read: {error!r}") from error


class _Lines:
    """A recorder that keeps what a scribe writes."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def trick_line(self, kind: str, **fields: object) -> None:
        self.lines.append({"kind": kind, **fields})

    def result_line(self, **fields: object) -> None:
        self.lines.append({"kind": "game", **fields})

    def flush(self) -> None:
        """Nothing to do."""


class _Replay:
    def __init__(self, game: RecordedGame, decks: DeckSource | None) -> None:
        self._game = game
        self._id = str(game.opening["game"])
        self._rules = game.rules
        self._deals = {
            (_phase(line), line["deal"], line["dealt"]): line
            for line in game.lines
            if line["kind"] in ("deal", "void", "cut")
        }
        self._stock: dict[tuple[Phase, int, int], list[Card]] = defaultdict(list)
        self._tricks: dict[tuple[Phase, int, int], list[Mapping[str, Any]]] = defaultdict(list)
        key = (Phase.MAIN, 1, 1)
        for line in game.lines:
            key = (_phase(line), line["deal"], line["dealt"])
            self._tricks[key].append(line)
            self._stock[key] += [parse_card(card) for _, card in line.get("draws", ())]
        self._match = Match(self._rules, decks or self._deck)

    def run(self) -> list[Event]:
        written = _Lines()
        scribe = Scribe(written, _spec(self._game, self._rules), self._game.opening["versions"])
        try:
            events = self._match.start()
            scribe.write(events)
            while not self._match.over:
                made = self._step()
                scribe.write(made)
                events += made
        except RulesError as error:
            raise ReplayDiffers(self._id, f"{self._where()}: {error}") from error
        scribe.committed(0, 0)
        self._compare(written.lines)
        return events

    def _where(self) -> str:
        match = self._match
        trick = match.deal.trick if hasattr(match, "deal") else 1
        return f"deal {match.number}, trick {trick}"

    def _compare(self, written: Sequence[Mapping[str, Any]]) -> None:
        game = self._game
        recorded = [game.opening, *game.lines, *([game.result] if game.result is not None else [])]
        for position, (found, made) in enumerate(zip(recorded, written, strict=False)):
            differing = [
                name
                for name in {*found, *made}.difference(_NOT_OF_THE_RULES)
                if found.get(name) != made.get(name) or (name in found) != (name in made)
            ]
            if differing:
                name = min(differing)
                raise ReplayDiffers(
                    self._id,
                    f"{game.files[position].name}, line {found['seq']} ({found['kind']}): {name} is "
                    f"{found.get(name)!r}, the rules give {made.get(name)!r}",
                )
        if len(recorded) != len(written):
            raise ReplayDiffers(self._id, f"{len(recorded)} lines recorded, the rules give {len(written)}")

    # -- decks ----------------------------------------------------------------------------------

    def _deck(self, phase: Phase, number: int, attempt: int, cards: Sequence[Card]) -> Sequence[Card]:
        match, rules = self._match, self._rules
        if phase is Phase.DRAW:
            drawn = self._game.opening["partners_drawn"]
            if attempt > len(drawn):
                raise ReplayDiffers(self._id, f"draw {attempt} of partners is not recorded")
            hands, stock = drawn[attempt - 1]["hands"], []
            rules = replace(rules, packets=Packets.SINGLY)  # as the draw deal is always dealt
        else:
            line = self._deals.get((phase, number, attempt))
            if line is None:
                raise ReplayDiffers(self._id, f"deal {number}, attempt {attempt} is not recorded")
            hands, stock = line["hands"], self._stock[phase, number, attempt]
        deck = stacked([parse_cards(hand) for hand in hands], stock, cards, rules, match.active, match.giver)
        if sorted(deck) != sorted(cards):
            raise ReplayDiffers(self._id, f"deal {number}, attempt {attempt}: the hands are no deck")
        return deck

    # -- actions --------------------------------------------------------------------------------

    def _step(self) -> list[Event]:
        """What the next recorded answer leads to."""
        match = self._match
        line = self._line()
        if match.stage is Stage.MONTE:
            if line["kind"] == "void":
                return match.act(line["seat"], [CallMonte()])
            return match.act(match.pending[0], [])
        seat = match.pending[0]
        if match.stage is Stage.DISCARD:
            if line["kind"] == "cut" and "discard" not in line:
                return self._end_by_fault(line)
            return match.act(seat, [Discard(parse_card(card)) for _, card in line["discard"]])
        declared = self._declarations(seat, line)
        if match.stage is Stage.DECLARE:
            return match.act(seat, declared)
        cards = parse_cards(line["cards"] if line["kind"] == "trick" else line["unfinished"])
        position = len(match.deal.table)
        if position < len(cards):
            signals = line.get("signals")
            signal = Signal(signals[position]) if signals and signals[position] else None
            return match.act(seat, [*declared, PlayCard(cards[position], signal)])
        if "call_out" in line:
            return match.act(seat, [*declared, CallOut()])
        return self._end_by_fault(line)

    def _line(self) -> Mapping[str, Any]:
        """The recorded line of the trick under way, or the one that ends the deal in it."""
        match = self._match
        lines = self._tricks[match.phase, match.number, match.attempt]
        number = match.deal.trick
        if number > len(lines):
            raise ReplayDiffers(self._id, f"{self._where()}: not recorded")
        return lines[number - 1]

    def _declarations(self, seat: int, line: Mapping[str, Any]) -> list[Action]:
        """What the seat declared with this answer: what stands in the line and is open to it still."""
        open_now = {one.key: one for one in self._match.legal(seat).declarations}
        keys = [
            (Combination(kind), of) for owner, kind, of, _, _ in line.get("declarations", ()) if owner == seat
        ]
        return [Declare(open_now[key]) for key in keys if key in open_now]

    def _end_by_fault(self, line: Mapping[str, Any]) -> list[Event]:
        result = self._game.result
        for seat, _, effect, _ in line.get("faults", ()):
            if effect in tuple(Revoke):
                return self._match.revoke(seat, Revoke(effect))
            if effect == FaultEffect.FORFEIT:
                return self._match.forfeit(seat)
        if result is not None and result["forfeit"] is not None:
            return self._match.forfeit(self._rules.seats_of(result["forfeit"])[0])
        raise ReplayDiffers(self._id, f"{self._where()}: the deal stops short")


def stacked(
    hands: Sequence[Iterable[Card]],
    stock: Sequence[Card],
    cards: Sequence[Card],
    rules: RuleSet,
    active: Sequence[int],
    giver: int,
) -> list[Card]:
    """A deck that deals these hands when ``giver`` hands it out, with ``stock`` on top of the rest; cards
    of the deck that are in neither come last."""
    places = lay_out([Card(place) for place in range(len(cards))], rules, active, giver)
    deck: dict[int, Card] = {}
    for mask, hand in zip(places.hands, hands, strict=True):
        spots = [place for place in range(len(cards)) if mask >> place & 1]
        deck.update(zip(spots, sorted(hand), strict=False))
    known = mask_of(deck.values()) | mask_of(stock)
    rest = [card for card in cards if not known >> card & 1]
    deck.update(zip(places.stock, [*stock, *rest], strict=False))
    return [deck[place] for place in sorted(deck)]


def _phase(line: Mapping[str, Any]) -> Phase:
    return Phase.TIE_BREAK if line.get("phase") == "tie_break" else Phase.MAIN


def _spec(game: RecordedGame, rules: RuleSet) -> GameSpec:
    """What the scribe needs to write the same lines; the deck seed is no part of them."""
    opening, result = game.opening, game.result or {}
    return GameSpec(
        game=opening["game"],
        attempt=opening["attempt"],
        tournament=opening["tournament"],
        preset=opening["preset"],
        rules=rules,
        bots=tuple(opening["bots"]),
        deal_set=opening["deal_set"],
        set_size=result.get("set_size", 1),
        deck=opening["deck"],
        seed=bytes(32),
        salt=bytes(32),
    )
