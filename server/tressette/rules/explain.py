"""Says in plain words how a deal was counted: which cards, which fraction, which bonus.

The numbers come from the event ``DealScored``; nothing is counted again here but what a side dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from tressette.rules.accuse import Combination, Declaration
from tressette.rules.cards import ACE_OF_BASTONI, BITS, POINT_CARDS, SUIT_LETTERS, cards_of
from tressette.rules.deck import Phase
from tressette.rules.events import DealEnd, DealScored, SideScore
from tressette.rules.ruleset import POINT, Objective, Rounding, RuleSet

_SUITS = dict(zip(SUIT_LETTERS, ("denari", "coppe", "spade", "bastoni"), strict=True))


class Breakdown(NamedTuple):
    """How a side's count came about. dropped: fraction dropped, in thirds; bonus: sixths for the last
    trick (under ``remainder_to_last`` what its winner records beyond its own whole points)."""

    dropped: int
    bonus: int


def breakdown(rules: RuleSet, scored: DealScored, side: int) -> Breakdown:
    """The breakdown of a side that played the deal. A deal that was cut short has neither."""
    score = scored.sides[side]
    if score is None or scored.ended_by is not DealEnd.PLAYED:
        return Breakdown(0, 0)
    if rules.rounding is Rounding.EXACT:
        return Breakdown(0, score.counted - 2 * score.thirds)
    dropped = score.thirds % 3
    bonus = score.counted - score.thirds // 3 * POINT
    if side == scored.last_trick and rules.rounding is Rounding.REMAINDER_TO_LAST:
        return Breakdown(0, bonus)
    return Breakdown(dropped, bonus)


def points_text(sixths: int) -> str:
    """Sixths as points: ``4``, ``5 2/3``, ``1/2``, ``-3``."""
    whole, rest = divmod(abs(sixths), POINT)
    sign = "-" if sixths < 0 else ""
    if not rest:
        return f"{sign}{whole}"
    return f"{sign}{f'{whole} ' if whole else ''}{Fraction(rest, POINT)}"


def explain_deal(
    rules: RuleSet,
    scored: DealScored,
    taken: Sequence[int],
    declared: Sequence[Sequence[Declaration]],
) -> list[str]:
    """One sentence or more for each side, and one for what the deal as a whole led to. ``taken`` are the
    cards each side took (masks by side, a set-aside card included), ``declared`` its declarations that
    count."""
    lines = [_heading(scored)]
    for side, score in enumerate(scored.sides):
        if score is not None:
            parts = [*_cards(rules, score, taken[side]), *_rounding(rules, scored, side, score)]
            parts += [_declaration(one) for one in declared[side]]
            lines.append(f"{side_name(rules, side)}: {'; '.join(parts)}.")
    lines += _consequences(rules, scored)
    totals = "; ".join(
        f"{side_name(rules, side)}: {points_text(total)}" for side, total in enumerate(scored.totals)
    )
    lines.append(f"Match totals. {totals}.")
    return lines


def side_name(rules: RuleSet, side: int) -> str:
    """``Seat 3``, or ``Seats 0 and 2`` in pairs."""
    seats = " and ".join(map(str, rules.seats_of(side)))
    return f"Seats {seats}" if rules.pairs else f"Seat {seats}"


def _heading(scored: DealScored) -> str:
    what = "Tie-break deal" if scored.phase is Phase.TIE_BREAK else "Deal"
    how = {
        DealEnd.PLAYED: "played to the end",
        DealEnd.CALL_OUT: "ended by a call-out that was right",
        DealEnd.WRONG_CALL_OUT: "ended by a call-out that was wrong",
        DealEnd.REVOKE: "ended by a fault",
    }[scored.ended_by]
    return f"{what} {scored.number}, {how}."


def _cards(rules: RuleSet, score: SideScore, taken: int) -> list[str]:
    counting = " ".join(map(str, cards_of(taken & POINT_CARDS)))
    tricks = "1 trick" if score.tricks == 1 else f"{score.tricks} tricks"
    if not counting:
        return [f"{tricks}, no card worth points"]
    thirds = "1 third" if score.thirds == 1 else f"{score.thirds} thirds"
    worth = f"{tricks} with {counting}, worth {points_text(2 * score.thirds)} ({thirds})"
    if taken & BITS[ACE_OF_BASTONI] and rules.ace_thirds != 3:
        worth += f", of which Ab {rules.ace_thirds // 3}"
    return [worth]


def _rounding(rules: RuleSet, scored: DealScored, side: int, score: SideScore) -> list[str]:
    if scored.ended_by is not DealEnd.PLAYED:
        return [f"records {points_text(score.points)}"]
    dropped, bonus = breakdown(rules, scored, side)
    parts = []
    if dropped:
        parts.append(f"{dropped}/3 dropped")
    if side == scored.last_trick:
        if rules.rounding is Rounding.REMAINDER_TO_LAST:
            parts.append(
                f"last trick, so it records the rest of {points_text(rules.deal_total)}: "
                f"{points_text(score.counted)}"
            )
            return parts
        parts.append(f"last trick +{points_text(bonus)}")
    parts.append(f"counts {points_text(score.counted)}")
    return parts


def _declaration(one: Declaration) -> str:
    of = one.of if one.kind is Combination.BONGIOCO else _SUITS[one.of]
    return f"declared {one.kind} of {of} ({' '.join(map(str, cards_of(one.cards)))}), +{one.points} at once"


def _consequences(rules: RuleSet, scored: DealScored) -> list[str]:
    if scored.ended_by is DealEnd.WRONG_CALL_OUT:
        return ["The caller's side records nothing and loses its declarations of this deal; the others 11."]
    if scored.cappotto is None:
        return []
    name = side_name(rules, scored.cappotto)
    if rules.objective is Objective.MOST:
        return [f"{name} made cappotto."]
    return [f"{name} made cappotto: it records 0, every other side {points_text(rules.penalty)}."]
