"""From deal scores to the end of the match: totals, who is out, tie-breaks, final ranks.

Source: 000 (elimination, simultaneous elimination, tie-break), 001, 002 and 004 (first to a target),
003 (lowest when someone reaches the threshold, extra deals).

Vocabulary: a **side** is active until it is out. ``points`` of a deal are sixths by side, None for a
side that did not play.

Decisions:
1. ``first_to`` with the two best sides equal at or over the target goes on with ordinary deals.
2. Nobody under the threshold in an elimination: among those who played that deal the lowest total
   wins, whatever ``survivors`` says; a tie there goes to the tie-break.
3. In a tie-break those lowest in an extra deal repeat it, ten deals at most, then share; the others
   stand behind them by their points in it, later extra deals before earlier ones.
4. Ranks share: 1, 1, 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tressette.rules.ruleset import (
    POINT,
    Elimination,
    FirstTo,
    FirstToLowest,
    Objective,
    RuleSet,
    TieBreak,
)

MAX_EXTRA_DEALS: Final = 10


class EndReason(StrEnum):
    """Why a match is over."""

    PLAYED_OUT = "played_out"
    CAPPOTTO = "cappotto"
    CALL_OUT = "call_out"
    FORFEIT = "forfeit"


@dataclass(slots=True)
class Standing:
    """The state of a match between deals; mutable, changed only by its methods.

    totals: sixths by side. out_after: number of the deal after which a side went out, None if it has
    not. deals: ordinary deals counted. tied: the sides playing a tie-break, empty before one.
    reason: why the match is over, None while it goes on.
    """

    rules: RuleSet
    totals: list[int] = field(init=False)
    out_after: list[int | None] = field(init=False)
    deals: int = 0
    extra_deals: int = 0
    tied: tuple[int, ...] = ()
    reason: EndReason | None = None
    _broken: list[list[int]] = field(default_factory=list)
    _first: int | None = None
    _last: int | None = None

    def __post_init__(self) -> None:
        self.totals = [0] * self.rules.side_count
        self.out_after = [None] * self.rules.side_count

    @property
    def over(self) -> bool:
        """Whether the match has ended."""
        return self.reason is not None

    @property
    def active(self) -> tuple[int, ...]:
        """The sides that play the next deal."""
        return self.tied or tuple(side for side, deal in enumerate(self.out_after) if deal is None)

    def declare(self, side: int, sixths: int) -> None:
        """Add declared points to a side at once (negative: take them back)."""
        self.totals[side] += sixths

    def record(self, points: Sequence[int | None], winner: int | None = None) -> None:
        """Count an ordinary deal. ``winner`` is a side whose cappotto wins the match."""
        self.deals += 1
        played = self.active
        for side, value in enumerate(points):
            self.totals[side] += value or 0
        if winner is not None:
            self._end(EndReason.CAPPOTTO, first=winner)
            return
        end = self.rules.end
        if isinstance(end, FirstTo):
            self._first_to(end.target * POINT)
        elif isinstance(end, FirstToLowest):
            if max(self.totals) >= end.threshold * POINT:
                self._lowest_wins(range(len(self.totals)))
        elif isinstance(end, Elimination):
            self._eliminate(end, played)
        elif self.deals >= end.deals:
            self._end(EndReason.PLAYED_OUT)

    def record_extra(self, points: Sequence[int | None]) -> None:
        """Count a tie-break deal. A cappotto needs no word of its own: it leaves one side lowest."""
        self.extra_deals += 1
        scores = {side: value for side in self.tied if (value := points[side]) is not None}
        lowest = min(scores.values())
        behind = sorted({value for value in scores.values() if value != lowest})
        self._broken = [
            [side for side in self.tied if scores[side] == value] for value in behind
        ] + self._broken
        self.tied = tuple(side for side in self.tied if scores[side] == lowest)
        if len(self.tied) == 1 or self.extra_deals >= MAX_EXTRA_DEALS:
            self._end(EndReason.PLAYED_OUT)

    def call_out(self, points: Sequence[int | None], side: int) -> None:
        """Count a deal cut short by a right claim of ``side``, which wins the match."""
        self.deals += 1
        for other, value in enumerate(points):
            self.totals[other] += value or 0
        self._end(EndReason.CALL_OUT, first=side)

    def forfeit(self, side: int) -> None:
        """End the match now with ``side`` last."""
        self._end(EndReason.FORFEIT, last=side)

    def ranks(self) -> tuple[int, ...]:
        """Final places by side, 1 is best; before the end, the places as they stand."""
        groups = self._groups()
        ranks = [0] * len(self.totals)
        place = 1
        for group in groups:
            for side in group:
                ranks[side] = place
            place += len(group)
        return tuple(ranks)

    # -- how the match ends ---------------------------------------------------------------------

    def _end(self, reason: EndReason, first: int | None = None, last: int | None = None) -> None:
        self.reason, self._first, self._last = reason, first, last

    def _first_to(self, target: int) -> None:
        best = max(self.totals)
        if best >= target and self.totals.count(best) == 1:
            self._end(EndReason.PLAYED_OUT)

    def _eliminate(self, end: Elimination, played: Sequence[int]) -> None:
        for side in played:
            if self.totals[side] >= end.threshold * POINT:
                self.out_after[side] = self.deals
        left = [side for side in played if self.out_after[side] is None]
        if not left:
            self._lowest_wins(played)
        elif len(left) <= end.survivors:
            self._end(EndReason.PLAYED_OUT)

    def _lowest_wins(self, sides: Iterable[int]) -> None:
        among = list(sides)
        lowest = min(self.totals[side] for side in among)
        tied = tuple(side for side in among if self.totals[side] == lowest)
        if len(tied) > 1 and self.rules.tie_break is TieBreak.EXTRA_DEAL:
            self.tied = tied
        else:
            self._end(EndReason.PLAYED_OUT)

    # -- places ---------------------------------------------------------------------------------

    def _groups(self) -> list[list[int]]:
        """The sides in order of place, those that share one together."""
        sides = range(len(self.totals))
        if isinstance(self.rules.end, Elimination):
            groups = _grouped(sides, self._elimination_key)
        else:
            sign = -1 if self.rules.objective is Objective.MOST else 1
            groups = _grouped(sides, lambda side: (sign * self.totals[side],))
        broken = [list(self.tied), *self._broken] if self.tied else []
        if broken:
            inside = {side for group in broken for side in group}
            groups = broken + [group for group in groups if not inside.issuperset(group)]
        for side, where in ((self._first, 0), (self._last, len(groups))):
            if side is not None:
                groups = [[other for other in group if other != side] for group in groups]
                groups.insert(where, [side])
        return [group for group in groups if group]

    def _elimination_key(self, side: int) -> tuple[int, ...]:
        """Survivors share the first place; then who went out later, in the same deal the lower total.

        Before the end, and after one by cappotto or forfeit, those still in stand by their totals.
        """
        out = self.out_after[side]
        if out is not None:
            return (1, -out, self.totals[side])
        return (0, 0, 0) if self.reason is EndReason.PLAYED_OUT else (0, 0, self.totals[side])


def _grouped(sides: Iterable[int], key: Callable[[int], tuple[int, ...]]) -> list[list[int]]:
    by_key: dict[tuple[int, ...], list[int]] = {}
    for side in sides:
        by_key.setdefault(key(side), []).append(side)
    return [by_key[value] for value in sorted(by_key)]
