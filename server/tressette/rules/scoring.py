"""What each side records for a deal.

Source: 000 and 003 (the remainder to the last trick), 001, 002 and 004 (fractions dropped, one point
for the last trick), 003 (half a point, none, exact), 000/002/003 (cappotto), 003 (revoke), 004
(call-out).

Units: card values are **thirds** of a point, what is recorded is **sixths**.

Decisions:
1. Under ``floor`` a side drops its fraction before the bonus is added.
2. ``remainder_to_last`` gives the winner of the last trick T minus the others' whole points, whatever
   its own cards are.
3. ``recorded_total`` asks for the most that can be recorded: T under ``remainder_to_last``, T - 1 plus
   the bonus under ``floor``, all card points plus the bonus under ``exact``.
4. Sides that are out of the match record None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tressette.rules.ruleset import POINT, Cappotto, CappottoEffect, Objective, Rounding, RuleSet

_SIXTHS_PER_THIRD: Final = 2
CALL_OUT_PENALTY: Final = 11 * POINT
REVOKE_PENALTY: Final = 11 * POINT


class Revoke(StrEnum):
    """The two ways of 003 to end a deal after a revoke; chosen by a match's fault policy."""

    TRANSFER_ALL = "transfer_all"
    PENALTY = "penalty"


@dataclass(frozen=True, slots=True)
class Counted:
    """One side's pile. thirds: value of the cards; tricks: number of tricks taken."""

    thirds: int
    tricks: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """A scored deal. counted: sixths by side before cappotto; points: sixths by side as recorded
    (None: not active); cappotto: the side that made it, or None."""

    counted: tuple[int | None, ...]
    points: tuple[int | None, ...]
    cappotto: int | None


def score_deal(rules: RuleSet, piles: Sequence[Counted | None], last_trick: int) -> Recorded:
    """Score a deal played to the end. piles: by side, None for one that is out; a set-aside card
    belongs in the pile of ``last_trick``, the side that won the last trick."""
    counted = _count(rules, piles, last_trick)
    capper = _cappotto(rules, piles, last_trick, counted[last_trick])
    if capper is None or rules.objective is Objective.MOST:
        return Recorded(counted, counted, capper)
    points = tuple(
        None if value is None else 0 if side == capper else rules.penalty
        for side, value in enumerate(counted)
    )
    return Recorded(counted, points, capper)


def _count(rules: RuleSet, piles: Sequence[Counted | None], last_trick: int) -> tuple[int | None, ...]:
    if rules.rounding is Rounding.EXACT:
        values = [None if pile is None else pile.thirds * _SIXTHS_PER_THIRD for pile in piles]
    else:
        values = [None if pile is None else pile.thirds // 3 * POINT for pile in piles]
    if rules.rounding is Rounding.REMAINDER_TO_LAST:
        others = sum(value for side, value in enumerate(values) if value is not None and side != last_trick)
        values[last_trick] = rules.deal_total - others
    else:
        values[last_trick] = (values[last_trick] or 0) + rules.last_trick_bonus
    return tuple(values)


def _cappotto(
    rules: RuleSet, piles: Sequence[Counted | None], last_trick: int, recorded: int | None
) -> int | None:
    """Every definition needs the last trick, so only its winner can have made it."""
    pile = piles[last_trick]
    if rules.cappotto is Cappotto.NONE or pile is None:
        return None
    if rules.cappotto is Cappotto.ALL_TRICKS:
        made = all(other is None or other is pile or other.tricks == 0 for other in piles)
    elif rules.cappotto is Cappotto.ALL_POINTS:
        made = pile.thirds == rules.deck_thirds
    elif rules.rounding is Rounding.REMAINDER_TO_LAST:
        made = recorded == rules.deal_total
    elif rules.rounding is Rounding.FLOOR:
        made = recorded == rules.deal_total - POINT + rules.last_trick_bonus
    else:
        made = recorded == rules.deck_thirds * _SIXTHS_PER_THIRD + rules.last_trick_bonus
    return last_trick if made else None


def wins_match(rules: RuleSet, recorded: Recorded) -> bool:
    """Whether the cappotto of this deal, if any, ends the match at once."""
    return recorded.cappotto is not None and rules.cappotto_effect is CappottoEffect.MATCH_WIN


def score_revoke(rules: RuleSet, policy: Revoke, side: int, active: Sequence[int]) -> tuple[int | None, ...]:
    """What each side records when ``side`` ends the deal by a fault: all of T, or a penalty of 11,
    against it. ``active`` are the sides still in the match."""
    amount = rules.deal_total if policy is Revoke.TRANSFER_ALL else REVOKE_PENALTY
    punished = rules.objective is Objective.LEAST
    return tuple(
        None if other not in active else amount if (other == side) == punished else 0
        for other in range(rules.side_count)
    )


def score_wrong_call_out(rules: RuleSet, side: int) -> tuple[int | None, ...]:
    """A claim that was wrong: the opponents record 11, the caller's side nothing."""
    return tuple(0 if other == side else CALL_OUT_PENALTY for other in range(rules.side_count))


def whole_points(piles: Sequence[Counted | None]) -> tuple[int | None, ...]:
    """Whole points of the cards taken so far, in sixths, no bonus: what a call-out counts."""
    return tuple(None if pile is None else pile.thirds // 3 * POINT for pile in piles)
