"""What a rating needs to know of one finished game.

A **game** is one match played in a tournament. A **deal set** is one deck seed played once for each
seating. ``points`` are integers in sixths of a point, as everywhere in this project.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn, TypeGuard

from tressette.record.reader import DamagedRecord, read_lines
from tressette.rules.ruleset import Objective

_MOST: Final = 1_000_000_000
"""No number of a result is larger: what is added up stays exact."""


@dataclass(frozen=True, slots=True)
class GameResult:
    """One committed game. Tuples over sides are in side order (individuals: side == seat).

    game: unique id. deal_set: id shared by the games that play one deck of one pairing through its
    seatings; it is complete once ``set_size`` distinct games of it are present. deck: the cluster for
    errors, equal for every game of an event that was dealt from the same deck seed (also across
    pairings and folders). pool: hash of the resolved rules; preset: the name people know it by.
    sides: names of the bots of each side, in seat order. ranks: 1 is best, ties share (1, 1, 3).
    points: final totals per side in sixths. deals: deals played. objective: "most" or "least".
    forfeit: index of the side that lost by a forfeit, with ``offender`` its bot's name; else None.
    faults: (bot, kind, count) for each kind that occurred.
    """

    game: str
    deal_set: str
    set_size: int
    deck: str
    pool: str
    preset: str
    objective: str
    sides: tuple[tuple[str, ...], ...]
    ranks: tuple[int, ...]
    points: tuple[int, ...]
    deals: int
    forfeit: int | None = None
    offender: str | None = None
    faults: tuple[tuple[str, str, int], ...] = ()

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> GameResult:
        """From the fields of a ``game`` line of the record. Raises ValueError, which names the field, for one
        that is missing or makes no sense."""
        sides = _sides(line)
        forfeit, offender = _forfeit(line, sides)
        return cls(
            game=_text(line, "game"),
            deal_set=_text(line, "deal_set"),
            set_size=_whole(line, "set_size", 1),
            deck=_text(line, "deck"),
            pool=_text(line, "rules_hash"),
            preset=_text(line, "preset"),
            objective=_objective(line),
            sides=sides,
            ranks=_ranks(line, len(sides)),
            points=_points(line, len(sides)),
            # A forfeit may end a match before its first deal is scored.
            deals=_whole(line, "deals", 1 if forfeit is None else 0),
            forfeit=forfeit,
            offender=offender,
            faults=_faults(line, sides),
        )


def read_games(folder: Path, torn: list[str] | None = None) -> Iterator[GameResult]:
    """The games of a run from its record, under the ids that its schedule gave them.

    A torn last line is left out and named in ``torn``. Raises DamagedRecord for any other damage.
    """
    for _, result in _games(folder, torn):
        yield result


def no_results(folder: Path) -> str:
    """What is said of a folder that should have results and has none."""
    return f"{folder} holds no results (in results-*.jsonl)"


def read(folder: Path, torn: list[str] | None = None) -> Iterator[GameResult]:
    """The same for rating several folders together. Schedules of different events use the same ids, so ids
    of games and deal sets get a mark: equal for folders that share one event, deck and line-up, else not."""
    for tournament, result in _games(folder, torn):
        bots = sorted(bot for side in result.sides for bot in side)
        text = "\0".join((tournament, result.pool, result.deck, *bots))
        mark = hashlib.sha256(text.encode()).hexdigest()[:16]
        yield replace(result, game=f"{result.game}@{mark}", deal_set=f"{result.deal_set}@{mark}")


def _games(folder: Path, torn: list[str] | None) -> Iterator[tuple[str, GameResult]]:
    """The games of every writer in the folder, each with the name of its tournament."""
    for path in sorted(folder.glob("results-*.jsonl")):
        for line in read_lines(path, torn):
            try:
                game = _tournament(line), GameResult.from_line(line)
            except ValueError as error:
                raise DamagedRecord(path, line["seq"], f"not the result of a game: {error}") from None
            yield game


# --- fields of a line ------------------------------------------------------------------------------


def _tournament(line: Mapping[str, Any]) -> str:
    value = _field(line, "tournament")  # empty in the record of an open server
    return value if type(value) is str else _refuse("tournament", value, "a text")


def _text(line: Mapping[str, Any], name: str) -> str:
    value = _field(line, name)
    return value if type(value) is str and value else _refuse(name, value, "a text")


def _whole(line: Mapping[str, Any], name: str, low: int) -> int:
    value = _field(line, name)
    if type(value) is int and low <= value <= _MOST:
        return value
    return _refuse(name, value, f"a whole number from {low} to {_MOST}")


def _objective(line: Mapping[str, Any]) -> str:
    value = _text(line, "objective")
    known = [str(objective) for objective in Objective]
    return value if value in known else _refuse("objective", value, f"one of {', '.join(known)}")


def _sides(line: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    value = _field(line, "sides")
    if (
        isinstance(value, list)
        and len(value) >= 2
        and all(isinstance(side, list) and side for side in value)
        and all(type(bot) is str and bot for side in value for bot in side)
    ):
        return tuple(map(tuple, value))
    return _refuse("sides", value, "two or more lists of bots")


def _points(line: Mapping[str, Any], sides: int) -> tuple[int, ...]:
    value = _field(line, "points")
    if _are_whole(value, sides) and all(abs(points) <= _MOST for points in value):
        return tuple(value)
    return _refuse("points", value, f"{sides} whole numbers, {_MOST} at most")


def _ranks(line: Mapping[str, Any], sides: int) -> tuple[int, ...]:
    value = _field(line, "ranks")
    # Who shares a rank takes the best of the places that they take together.
    if _are_whole(value, sides) and all(1 + sum(a < b for a in value) == b for b in value):
        return tuple(value)
    return _refuse("ranks", value, f"a ranking of {sides} sides")


def _forfeit(
    line: Mapping[str, Any], sides: tuple[tuple[str, ...], ...]
) -> tuple[int, str] | tuple[None, None]:
    side, offender = _field(line, "forfeit"), _field(line, "offender")
    if side is None:
        return (None, None) if offender is None else _refuse("offender", offender, "null without a forfeit")
    if type(side) is not int or not 0 <= side < len(sides):
        return _refuse("forfeit", side, f"null or a side from 0 to {len(sides) - 1}")
    if offender not in sides[side]:
        return _refuse("offender", offender, f"a bot of side {side}")
    return side, str(offender)


def _faults(line: Mapping[str, Any], sides: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, str, int], ...]:
    value = _field(line, "faults")
    bots = {bot for side in sides for bot in side}
    if isinstance(value, list) and all(_is_fault(fault, bots) for fault in value):
        return tuple((bot, kind, count) for bot, kind, count in value)
    return _refuse("faults", value, "a list of [bot of the game, kind, count]")


def _is_fault(value: object, bots: set[str]) -> bool:
    match value:
        case [str(bot), str(kind), int(count)]:
            return bot in bots and kind != "" and type(count) is int and 1 <= count <= _MOST
    return False


def _are_whole(value: object, count: int) -> TypeGuard[list[int]]:
    return isinstance(value, list) and len(value) == count and all(type(one) is int for one in value)


def _field(line: Mapping[str, Any], name: str) -> object:
    if name not in line:
        raise ValueError(f"{name} is missing")
    return line[name]


def _refuse(name: str, value: object, wanted: str) -> NoReturn:
    try:
        shown = json.dumps(value)
    except RecursionError:
        shown = "something nested deeply"
    raise ValueError(f"{name}: {shown if len(shown) <= 60 else shown[:57] + '...'} is not {wanted}")
