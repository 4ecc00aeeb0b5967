"""What sides record: rounding, the last trick, cappotto, faults, claims; and how often in random deals."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tressette.rules.accuse import declarations
from tressette.rules.cards import CARDS, POINT_CARDS, cards_of, mask_of, parse_cards, thirds_of
from tressette.rules.deal import Deal
from tressette.rules.deck import Phase, shuffled
from tressette.rules.events import Event
from tressette.rules.layout import Layout, lay_out
from tressette.rules.presets import PRESETS, resolve
from tressette.rules.ruleset import NapoliExtension, RuleSet
from tressette.rules.scoring import (
    Counted,
    Recorded,
    Revoke,
    score_deal,
    score_revoke,
    score_wrong_call_out,
    whole_points,
    wins_match,
)


def rules_with(**options: Any) -> RuleSet:
    """A rule set for these scoring options; without cappotto unless it is named."""
    base: dict[str, Any] = {"objective": "least", "end": "fixed_deals"}
    return RuleSet.from_options(base | options)


def scored(
    rules: RuleSet, thirds: Sequence[int | None], last: int, tricks: Sequence[int] | None = None
) -> Recorded:
    piles = [
        None if value is None else Counted(value, tricks[side] if tricks else 1)
        for side, value in enumerate(thirds)
    ]
    return score_deal(rules, piles, last)


def points(recorded: Recorded) -> list[Fraction | None]:
    return [None if value is None else Fraction(value, 6) for value in recorded.points]


# -- rounding ---------------------------------------------------------------------------------------


def test_floor_drops_every_fraction_and_then_adds_the_bonus() -> None:
    thirds = (8, 8, 8, 8)
    assert points(scored(rules_with(rounding="floor"), thirds, 1)) == [2, 3, 2, 2]
    assert points(scored(rules_with(last_trick_bonus="1/2"), thirds, 1)) == [2, Fraction(5, 2), 2, 2]
    assert points(scored(rules_with(last_trick_bonus="0"), thirds, 1)) == [2, 2, 2, 2]


def test_the_example_of_text_000() -> None:
    """Three record 2, 2 and 3; the last trick records 11 - 7 = 4, whatever its cards are worth."""
    rules = rules_with(rounding="remainder_to_last")
    assert points(scored(rules, (8, 6, 11, 7), 3)) == [2, 2, 3, 4]
    assert points(scored(rules, (7, 8, 10, 7), 3)) == [2, 2, 3, 4]


def test_exact_keeps_the_thirds() -> None:
    third = Fraction(1, 3)
    rules = rules_with(rounding="exact", last_trick_bonus="0")
    assert points(scored(rules, (8, 10, 1, 13), 0)) == [8 * third, 10 * third, third, 13 * third]
    rules = rules_with(rounding="exact", last_trick_bonus="1/2")
    assert points(scored(rules, (8, 10, 1, 13), 2))[2] == third + Fraction(1, 2)


def test_sides_that_are_out_record_nothing() -> None:
    rules = rules_with(rounding="remainder_to_last")
    assert points(scored(rules, (8, None, 11, 13), 0)) == [4, None, 3, 4]


# -- the totals that must hold ----------------------------------------------------------------------

splits = st.integers(0, 2**32).map(lambda seed: random.Random(seed).choices(range(5), k=40))


def split(sides: int, owners: Sequence[int], rules: RuleSet) -> list[int]:
    """What each side's share of the deck is worth in thirds, the cards given to ``owners``."""
    seats = range(rules.players)
    deal = Deal(rules, Layout((0,) * rules.players, (), discards=False), seats, 0)
    return [
        deal.value(mask_of(card for card, owner in zip(CARDS, owners, strict=True) if owner % sides == side))
        for side in range(sides)
    ]


@settings(deadline=None)
@given(
    splits, st.sampled_from([2, 3, 4, 5]), st.integers(0, 4), st.sampled_from(["normal", "instead", "extra"])
)
def test_what_a_deal_adds_up_to(owners: list[int], sides: int, last: int, ace: str) -> None:
    total = {"normal": 11, "instead": 21, "extra": 22}[ace]
    sums = {}
    for rounding in ("floor", "remainder_to_last", "exact"):
        rules = rules_with(players=sides, rounding=rounding, ace_of_bastoni=ace)
        recorded = scored(rules, split(sides, owners, rules), last % sides)
        sums[rounding] = sum(value for value in points(recorded) if value is not None)
    assert sums["remainder_to_last"] == total
    assert sums["exact"] == total - 1 + Fraction(2, 3) + 1
    assert total - sums["floor"] in range({2: 1, 3: 2, 4: 3, 5: 3}[sides])


def test_two_sides_always_have_eleven_under_floor() -> None:
    rules = PRESETS["tressette-21"]
    for thirds in range(33):
        assert sum(scored(rules, (thirds, 32 - thirds), 0).counted) == 66  # type: ignore[arg-type]


# -- cappotto ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definition", "rounding", "thirds", "tricks", "made"),
    [
        # every point card: only when nothing at all is worth anything elsewhere
        ("all_points", "remainder_to_last", (32, 0, 0, 0), (9, 1, 0, 0), True),
        ("all_points", "remainder_to_last", (31, 1, 0, 0), (9, 1, 0, 0), False),
        ("all_points", "floor", (32, 0, 0, 0), (9, 1, 0, 0), True),
        ("all_points", "exact", (32, 0, 0, 0), (9, 1, 0, 0), True),
        # every trick
        ("all_tricks", "floor", (32, 0, 0, 0), (10, 0, 0, 0), True),
        ("all_tricks", "floor", (32, 0, 0, 0), (9, 1, 0, 0), False),
        # all that can be recorded: others may hold thirds that they drop
        ("recorded_total", "remainder_to_last", (26, 2, 2, 2), (7, 1, 1, 1), True),
        ("recorded_total", "remainder_to_last", (25, 3, 2, 2), (7, 1, 1, 1), False),
        ("recorded_total", "floor", (30, 2, 0, 0), (8, 2, 0, 0), True),
        ("recorded_total", "floor", (29, 2, 1, 0), (8, 1, 1, 0), False),
        ("recorded_total", "exact", (32, 0, 0, 0), (9, 1, 0, 0), True),
        ("recorded_total", "exact", (31, 1, 0, 0), (9, 1, 0, 0), False),
        ("none", "floor", (32, 0, 0, 0), (10, 0, 0, 0), False),
    ],
)
def test_when_a_cappotto_is_made(
    definition: str, rounding: str, thirds: Sequence[int], tricks: Sequence[int], made: bool
) -> None:
    rules = rules_with(rounding=rounding, cappotto=definition)
    recorded = scored(rules, thirds, 0, tricks)
    assert recorded.cappotto == (0 if made else None)
    assert points(recorded) == [0, 11, 11, 11] if made else recorded.points == recorded.counted
    if definition != "all_tricks":  # whoever has the tricks has the last one
        assert scored(rules, thirds, 1, tricks).cappotto is None


@pytest.mark.parametrize("bonus", ["1", "1/2", "0"])
@pytest.mark.parametrize("rounding", ["floor", "exact"])
def test_all_that_can_be_recorded_includes_the_bonus_of_the_rules(rounding: str, bonus: str) -> None:
    rules = rules_with(rounding=rounding, cappotto="recorded_total", last_trick_bonus=bonus)
    assert scored(rules, (32, 0, 0, 0), 0).cappotto == 0
    assert scored(rules, (29, 3, 0, 0), 0).cappotto is None


def test_the_ace_counts_as_the_rules_say() -> None:
    rules = rules_with(rounding="remainder_to_last", cappotto="all_points", ace_of_bastoni="instead")
    assert points(scored(rules, (62, 0, 0, 0), 0)) == [0, 21, 21, 21]
    assert scored(rules, (32, 30, 0, 0), 0).cappotto is None


def test_the_penalty_is_t_or_what_was_chosen_and_only_for_sides_in_play() -> None:
    rules = resolve("traversone-002-ace")
    assert points(scored(rules, (0, 65, None, 0), 1)) == [11, 0, None, 11]
    assert points(scored(rules.replace(cappotto_penalty=3), (0, 65, 0, 0), 1)) == [3, 0, 3, 3]


def test_in_pairs_a_side_makes_cappotto_together() -> None:
    rules = PRESETS["traversone-pairs"]
    assert points(scored(rules, (32, 0), 0, (9, 1))) == [0, 11]


def test_a_cappotto_for_most_points_swaps_nothing() -> None:
    rules = rules_with(
        objective="most", end="first_to", target=21, cappotto="all_tricks", cappotto_effect="match_win"
    )
    recorded = scored(rules, (32, 0, 0, 0), 0, (10, 0, 0, 0))
    assert points(recorded) == [11, 0, 0, 0]
    assert recorded.cappotto == 0
    assert wins_match(rules, recorded)


def test_only_match_win_ends_the_match() -> None:
    for name, wins in (("traversone-003-21", False), ("traversone-003-slam", True)):
        rules = PRESETS[name]
        assert wins_match(rules, scored(rules, (0, 32, 0, 0), 1)) == wins
        assert not wins_match(rules, scored(rules, (1, 31, 0, 0), 1))


# -- faults and claims ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "policy", "side", "active", "recorded"),
    [
        ("traversone-003-21", "transfer_all", 2, (0, 1, 2, 3), [0, 0, 11, 0]),
        ("ciapano-ace21", "transfer_all", 0, (0, 1, 3), [21, 0, None, 0]),
        ("ciapano-ace21", "penalty", 0, (0, 1, 3), [11, 0, None, 0]),
        ("tressette-21", "transfer_all", 1, (0, 1), [11, 0]),
        ("tressette-21", "penalty", 0, (0, 1), [0, 11]),
    ],
)
def test_a_revoke_is_recorded_against_the_offender(
    name: str, policy: str, side: int, active: Sequence[int], recorded: list[int | None]
) -> None:
    sixths = score_revoke(PRESETS[name], Revoke(policy), side, active)
    assert sixths == tuple(None if value is None else 6 * value for value in recorded)


def test_a_wrong_claim_gives_eleven_to_all_others() -> None:
    assert score_wrong_call_out(PRESETS["tressette-004"], 1) == (66, 0)
    three = RuleSet.from_options({"objective": "most", "end": "first_to", "target": 21, "players": 3})
    assert score_wrong_call_out(three, 1) == (66, 0, 66)


def test_a_claim_counts_whole_points() -> None:
    assert whole_points([Counted(8, 2), Counted(0, 0), None, Counted(3, 1)]) == (12, 0, None, 6)


def test_the_point_cards_are_all_that_is_worth_anything() -> None:
    assert thirds_of(POINT_CARDS) == 32
    assert thirds_of(mask_of(parse_cards("4d 5c 6s 7b"))) == 0


# -- how often --------------------------------------------------------------------------------------


def random_deals(count: int) -> tuple[Counter[int], float, float, float]:
    """Of that many deals of four under ``floor``, played at random: how many have which sum of points;
    the shares with a hand under one point and with a declaration; mean points that can be declared."""
    rules, seats = PRESETS["traversone-002"].replace(cappotto="none"), (0, 1, 2, 3)
    chance = random.Random(count)
    sums: Counter[int] = Counter()
    poor = some = declared = 0
    for number in range(count):
        layout = lay_out(shuffled(number.to_bytes(32, "big"), Phase.MAIN, 1, 1), rules, seats, 0)
        poor += any(thirds_of(hand) < 3 for hand in layout.hands)
        found = [one.points for hand in layout.hands for one in declarations(hand, NapoliExtension.NONE)]
        some += bool(found)
        declared += sum(found)
        deal, events = Deal(rules, layout, seats, 1), list[Event]()
        while not deal.over:
            legal = cards_of(deal.playable(deal.turn))
            deal.play(legal[int(chance.random() * len(legal))], None, events)
        piles = [
            Counted(thirds_of(pile), tricks) for pile, tricks in zip(deal.taken, deal.tricks, strict=True)
        ]
        sums[sum(value or 0 for value in score_deal(rules, piles, deal.turn).points) // 6] += 1
    return sums, poor / count, some / count, declared / count


def check_frequencies(count: int) -> None:
    """Against the published shares, within four standard errors and their rounding."""
    sums, poor, some, declared = random_deals(count)
    assert set(sums) == {9, 10, 11}
    for share, published, rounding in (
        (sums[11] / count, 0.460, 0.0005),
        (sums[10] / count, 0.510, 0.0005),
        (sums[9] / count, 0.031, 0.0005),
        (poor, 0.0125, 0.00005),
        (some, 0.536, 0.0005),
    ):
        error = (published * (1 - published) / count) ** 0.5
        assert abs(share - published) < 4 * error + rounding
    assert abs(declared - 2.1) < 0.1


def test_random_deals_have_the_published_frequencies() -> None:
    check_frequencies(8_000)


@pytest.mark.slow
def test_many_random_deals_have_the_published_frequencies() -> None:
    check_frequencies(200_000)
