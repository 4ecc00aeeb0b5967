"""What a rating needs to know of one finished game.

A **game** is one match played in a tournament. A **deal set** is one deck seed played once for each
seating. ``points`` are integers in sixths of a point, as everywhere in this project.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tressette.record.reader import DamagedRecord, read_lines


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
        """From the fields of a ``game`` line of the record; raises KeyError for one that lacks any, TypeError
        or ValueError for one of another shape."""
        return cls(
            game=line["game"],
            deal_set=line["deal_set"],
            set_size=line["set_size"],
            deck=line["deck"],
            pool=line["rules_hash"],
            preset=line["preset"],
            objective=line["objective"],
            sides=tuple(tuple(side) for side in line["sides"]),
            ranks=tuple(line["ranks"]),
            points=tuple(line["points"]),
            deals=line["deals"],
            forfeit=line["forfeit"],
            offender=line["offender"],
            faults=tuple((bot, kind, count) for bot, kind, count in line["faults"]),
        )


def read_games(folder: Path, torn: list[str] | None = None) -> Iterator[GameResult]:
    """The games of a run from its record, under the ids that its schedule gave them.

    A torn last line is left out and named in ``torn``. Raises DamagedRecord for any other damage.
    """
    for _, result in _games(folder, torn):
        yield result


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
                game = str(line["tournament"]), GameResult.from_line(line)
            except (KeyError, TypeError, ValueError) as error:
                raise DamagedRecord(path, line["seq"], f"not the result of a game: {error!r}") from None
            yield game
