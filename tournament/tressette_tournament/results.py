"""What a rating needs to know of one finished game.

A **game** is one match played in a tournament. A **deal set** is one deck seed played once for each
seating. ``points`` are integers in sixths of a point, as everywhere in this project.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tressette.record.reader import read_results


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
        """From the fields of a ``game`` line of the record; raises KeyError for one that lacks any."""
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


def read(folder: Path, torn: list[str] | None = None) -> Iterator[GameResult]:
    """The games of a run from its record; see ``tressette.record.reader`` for what is raised."""
    return map(GameResult.from_line, read_results(folder, torn))
