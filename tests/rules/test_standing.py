"""From deal scores to the end: the named examples, eliminations, tie-breaks, places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tressette.rules.presets import PRESETS, resolve
from tressette.rules.ruleset import POINT, RuleSet
from tressette.rules.scoring import Counted, score_deal
from tressette.rules.standing import MAX_EXTRA_DEALS, EndReason, Standing

Points = Sequence[int | None]


def standing(rules: RuleSet, *totals: int) -> Standing:
    """A match that stands at these whole points before its next deal."""
    result = Standing(rules)
    result.totals[:] = [total * POINT for total in totals]
    return result


def sixths(points: Points) -> list[int | None]:
    return [None if value is None else value * POINT for value in points]


def whole(totals: Sequence[int]) -> list[int]:
    return [total // POINT for total in totals]


def least(**options: Any) -> RuleSet:
    return RuleSet.from_options({"objective": "least", **options})


OUT_AT_31 = PRESETS["ciapano-31"]
LOWEST_AT_21 = PRESETS["traversone-003-21"]


# -- the named examples -----------------------------------------------------------------------------


def test_a_cappotto_can_put_everybody_else_out() -> None:
    match = standing(OUT_AT_31, 20, 20, 20, 5)
    recorded = score_deal(OUT_AT_31, [Counted(0, 0)] * 3 + [Counted(32, 10)], 3)
    match.record(recorded.points)
    assert (whole(match.totals), match.over, match.ranks()) == ([31, 31, 31, 5], True, (2, 2, 2, 1))


def test_a_cappotto_can_end_a_match_to_21_for_the_capper() -> None:
    match = standing(LOWEST_AT_21, 20, 20, 20, 20)
    recorded = score_deal(LOWEST_AT_21, [Counted(32, 10)] + [Counted(0, 0)] * 3, 0)
    match.record(recorded.points)
    assert (whole(match.totals), match.over, match.ranks()) == ([20, 31, 31, 31], True, (1, 2, 2, 2))


def test_all_out_together_the_lowest_wins() -> None:
    match = standing(OUT_AT_31, 29, 30, 30, 30)
    match.record(sixths([2, 3, 10, 5]))
    assert whole(match.totals) == [31, 33, 40, 35]
    assert (match.over, match.ranks()) == (True, (1, 2, 4, 3))


def test_all_out_together_a_tie_for_the_lowest_is_played_off_never_given_to_a_seat() -> None:
    match = standing(OUT_AT_31, 30, 30, 30, 30)
    match.record(sixths([3, 3, 10, 5]))
    assert (match.over, match.tied, match.active) == (False, (0, 1), (0, 1))
    match.record_extra(sixths([8, 3, None, None]))
    assert (match.over, match.ranks()) == (True, (2, 1, 4, 3))
    assert whole(match.totals) == [33, 33, 40, 35]


# -- first to a target ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("totals", "deal", "over", "ranks"),
    [
        ([10, 15], [5, 6], True, (2, 1)),
        ([10, 14], [5, 6], False, (2, 1)),
        ([20, 20], [5, 6], True, (2, 1)),
        ([20, 19], [5, 6], False, (1, 1)),  # 25 each
        ([21, 21], [11, 0], True, (1, 2)),
        ([0, 20], [11, 0], False, (2, 1)),  # nobody has 21
    ],
)
def test_first_to_ends_with_one_side_highest_at_the_target(
    totals: list[int], deal: list[int], over: bool, ranks: tuple[int, ...]
) -> None:
    match = standing(PRESETS["tressette-21"], *totals)
    match.record(sixths(deal))
    assert (match.over, match.ranks()) == (over, ranks)


def test_declarations_count_at_once_and_can_be_taken_back() -> None:
    match = standing(PRESETS["tressette-21"], 0, 0)
    match.declare(1, 3 * POINT)
    assert whole(match.totals) == [0, 3]
    match.declare(1, -3 * POINT)
    assert not any(match.totals)
    match.declare(0, 30 * POINT)
    assert not match.over
    match.record(sixths([5, 6]))
    assert match.over


# -- first to a threshold, lowest wins --------------------------------------------------------------


def test_the_threshold_is_reached_at_or_over_it() -> None:
    for total, over in ((20, False), (21, True), (22, True)):
        match = standing(LOWEST_AT_21, 0, 1, 2, total - 8)
        match.record(sixths([1, 1, 1, 8]))
        assert match.over == over
        assert match.ranks() == (1, 2, 3, 4)


def test_half_points_count_to_the_threshold() -> None:
    match = Standing(PRESETS["traversone-003-half"])
    match.record([20 * POINT, 0, 0, 0])
    match.record([3, POINT, POINT, POINT])
    assert not match.over
    match.record([3, POINT, 2 * POINT, 3 * POINT])
    assert (match.over, match.ranks()) == (True, (4, 1, 2, 3))


def test_only_a_tie_for_the_lowest_is_played_off() -> None:
    match = standing(LOWEST_AT_21, 3, 15, 15, 9)
    match.record(sixths([0, 6, 6, 0]))
    assert (match.over, match.ranks()) == (True, (1, 3, 3, 2))


def test_a_tie_may_be_shared() -> None:
    match = standing(PRESETS["traversone-002"], 3, 15, 3, 9)
    match.record(sixths([1, 6, 1, 3]))
    assert (match.over, match.ranks()) == (True, (1, 4, 1, 3))


# -- elimination ------------------------------------------------------------------------------------


def elimination(players: int, survivors: int = 1, tie_break: str = "extra_deal") -> RuleSet:
    return least(end="elimination", threshold=31, survivors=survivors, tie_break=tie_break, players=players)


def test_who_is_out_plays_no_more() -> None:
    match = standing(elimination(5), 30, 0, 0, 30, 0)
    match.record(sixths([1, 5, 0, 5, 0]))
    assert (match.out_after, match.active) == ([1, None, None, 1, None], (1, 2, 4))
    match.record(sixths([None, 26, 4, None, 1]))
    assert (match.out_after, match.active, match.over) == ([1, 2, None, 1, None], (2, 4), False)
    match.record(sixths([None, None, 27, None, 0]))
    assert match.over
    # later out ranks higher; out together, the lower total
    assert whole(match.totals) == [31, 31, 31, 35, 1]
    assert match.ranks() == (4, 3, 2, 5, 1)


@pytest.mark.parametrize(
    ("survivors", "out", "over", "ranks"),
    [
        (1, 2, False, None),
        (2, 2, False, None),
        (3, 2, True, (4, 4, 1, 1, 1)),
        (2, 3, True, (3, 3, 3, 1, 1)),
        (3, 3, True, (3, 3, 3, 1, 1)),
        (1, 4, True, (2, 2, 2, 2, 1)),
        (3, 4, True, (2, 2, 2, 2, 1)),
    ],
)
def test_survivors_share_the_first_place(
    survivors: int, out: int, over: bool, ranks: tuple[int, ...] | None
) -> None:
    match = standing(elimination(5, survivors), *[25] * out, *range(5 - out))
    match.record(sixths([6] * out + [0] * (5 - out)))
    assert match.over == over
    if over:
        assert match.ranks() == ranks


@pytest.mark.parametrize("survivors", [1, 2, 3])
def test_with_nobody_left_the_lowest_of_the_last_deal_wins_whatever_the_survivors(survivors: int) -> None:
    match = standing(elimination(5, survivors), 35, 30, 30, 30, 30)
    match.out_after[0] = 1
    match.deals = 1
    match.record(sixths([None, 4, 6, 5, 6]))
    assert (match.over, match.ranks()) == (True, (5, 1, 3, 2, 3))


def test_who_went_out_before_does_not_win_a_deal_that_puts_all_out() -> None:
    match = standing(elimination(3), 31, 30, 30)
    match.out_after[0], match.deals = 1, 1
    match.record(sixths([None, 5, 9]))
    assert (match.over, match.ranks()) == (True, (3, 1, 2))
    match = standing(elimination(3), 31, 30, 30)
    match.out_after[0], match.deals = 1, 1
    match.record(sixths([None, 5, 5]))
    assert (match.over, match.tied) == (False, (1, 2))


def test_with_nobody_left_a_tie_may_be_shared() -> None:
    match = standing(elimination(4, tie_break="shared"), 30, 30, 30, 30)
    match.record(sixths([3, 3, 10, 5]))
    assert (match.over, match.ranks()) == (True, (1, 1, 4, 3))


def test_before_the_end_those_still_in_stand_by_their_totals() -> None:
    match = standing(elimination(4), 5, 3, 9, 31)
    match.out_after[3] = 1
    assert match.ranks() == (2, 1, 3, 4)


# -- tie-breaks -------------------------------------------------------------------------------------


def four_tied() -> Standing:
    match = standing(LOWEST_AT_21, 20, 20, 20, 20)
    match.record(sixths([1, 1, 1, 1]))
    assert match.tied == (0, 1, 2, 3)
    return match


def test_the_lowest_repeat_and_the_others_stand_behind_by_their_points() -> None:
    match = four_tied()
    match.record_extra(sixths([2, 5, 2, 3]))
    assert (match.over, match.tied, match.ranks()) == (False, (0, 2), (1, 4, 1, 3))
    match.record_extra(sixths([6, None, 5, None]))
    assert (match.over, match.ranks()) == (True, (2, 4, 1, 3))


def test_those_equal_behind_share() -> None:
    match = four_tied()
    match.record_extra(sixths([0, 11, 11, 11]))
    assert (match.over, match.ranks()) == (True, (1, 2, 2, 2))


def test_a_later_extra_deal_ranks_before_an_earlier_one() -> None:
    match = four_tied()
    match.record_extra(sixths([1, 1, 1, 8]))
    match.record_extra(sixths([1, 1, 9, None]))
    match.record_extra(sixths([8, 3, None, None]))
    assert match.ranks() == (2, 1, 3, 4)


def test_extra_deals_leave_the_totals_and_the_number_of_deals_alone() -> None:
    match = four_tied()
    match.record_extra(sixths([1, 2, 3, 5]))
    assert (whole(match.totals), match.deals, match.extra_deals) == ([21] * 4, 1, 1)


def test_after_ten_extra_deals_the_tied_share() -> None:
    match = four_tied()
    match.record_extra(sixths([2, 2, 2, 5]))
    for _ in range(MAX_EXTRA_DEALS - 1):
        assert not match.over
        match.record_extra(sixths([3, 3, 3, None]))
    assert (match.extra_deals, match.over, match.ranks()) == (10, True, (1, 1, 1, 4))


def test_a_tie_break_orders_only_the_tied() -> None:
    match = standing(LOWEST_AT_21, 3, 21, 3, 21)
    match.record(sixths([0, 5, 0, 6]))
    match.record_extra(sixths([11, None, 0, None]))
    assert match.ranks() == (2, 3, 1, 4)


def test_pairs_play_off_too() -> None:
    match = standing(PRESETS["traversone-pairs"], 21, 10)
    match.record(sixths([0, 11]))
    assert match.active == (0, 1)
    match.record_extra(sixths([5, 6]))
    assert match.ranks() == (1, 2)


# -- other ends -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("objective", "ranks"), [("most", (2, 1, 2, 4)), ("least", (2, 4, 2, 1))])
def test_fixed_deals_share_equal_totals(objective: str, ranks: tuple[int, ...]) -> None:
    rules = RuleSet.from_options({"objective": objective, "end": "fixed_deals", "deals": 2})
    match = Standing(rules)
    match.record(sixths([1, 6, 2, 1]))
    assert not match.over
    match.record(sixths([3, 6, 2, 0]))
    assert (match.over, match.reason, match.ranks()) == (True, EndReason.PLAYED_OUT, ranks)


def test_a_cappotto_that_wins_puts_that_side_first_and_the_rest_by_total() -> None:
    match = standing(PRESETS["traversone-003-slam"], 0, 20, 3, 0)
    match.record(sixths([11, 0, 11, 11]), winner=1)
    assert (match.reason, match.ranks()) == (EndReason.CAPPOTTO, (2, 1, 4, 2))
    match = standing(resolve("ciapano-31", cappotto_effect="match_win"), 31, 20, 3, 30)
    match.out_after[0], match.deals = 1, 1
    match.record(sixths([None, 0, 11, 11]), winner=1)
    assert (match.reason, match.ranks()) == (EndReason.CAPPOTTO, (4, 1, 2, 3))


def test_a_right_claim_puts_that_side_first() -> None:
    match = standing(PRESETS["tressette-004"], 30, 20)
    match.call_out(sixths([2, 1]), 1)
    assert (match.reason, whole(match.totals), match.ranks()) == (EndReason.CALL_OUT, [32, 21], (2, 1))


def test_a_forfeit_puts_the_offender_last_and_the_rest_by_total() -> None:
    match = standing(LOWEST_AT_21, 3, 9, 3, 1)
    match.forfeit(3)
    assert (match.reason, match.ranks()) == (EndReason.FORFEIT, (1, 3, 1, 4))


def test_a_forfeit_in_an_elimination_comes_behind_those_already_out() -> None:
    match = standing(elimination(4), 3, 9, 35, 1)
    match.out_after[2] = 1
    match.forfeit(3)
    assert match.ranks() == (1, 2, 3, 4)


def test_a_forfeit_in_a_tie_break_keeps_its_order() -> None:
    match = four_tied()
    match.record_extra(sixths([2, 2, 2, 5]))
    match.forfeit(0)
    assert match.ranks() == (4, 1, 1, 3)
