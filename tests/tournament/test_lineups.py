"""Line-ups and seatings: the counts of the design's table, fairness of every deal set, balanced choices."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tressette_tournament.lineups import (
    Copies,
    Group,
    Pairs,
    Seating,
    Seatings,
    Table,
    balanced_groups,
    circular_orders,
    line_ups,
    seatings,
)

PAIR = Table(4, paired=True)
MIXED = Table(4, paired=True, pairs=Pairs.MIXED)
MIXED_ALL = Table(4, paired=True, pairs=Pairs.MIXED, seatings=Seatings.ALL)
ABCDE = ("A", "B", "C", "D", "E")


def sides(seating: Seating) -> frozenset[frozenset[str]]:
    return frozenset({frozenset(seating[::2]), frozenset(seating[1::2])})


def spread(groups: tuple[Group, ...], bots: int) -> int:
    """Difference between the most and the fewest meetings of any two bots."""
    meetings = Counter(pair for group in groups for pair in combinations(group, 2))
    counts = [meetings[pair] for pair in combinations(range(bots), 2)]
    return max(counts) - min(counts)


def connected(groups: tuple[Group, ...], bots: int) -> bool:
    reached = {0}
    while True:
        grown = reached.union(*(group for group in groups if reached.intersection(group)))
        if grown == reached:
            return len(reached) == bots
        reached = grown


# --- seatings --------------------------------------------------------------------------------------


def test_own_copies_swap_sides() -> None:
    assert seatings(("A", "A", "B", "B"), PAIR, 0) == (("A", "B", "A", "B"), ("B", "A", "B", "A"))


def test_mixed_fixed_partners_stay_opposite_in_8_seatings() -> None:
    found = seatings(("A", "B", "C", "D"), MIXED, 0)
    assert len(set(found)) == len(found) == 8
    assert {sides(seating) for seating in found} == {frozenset({frozenset("AB"), frozenset("CD")})}


def test_all_partnerships_are_24_seatings() -> None:
    found = seatings(("A", "B", "C", "D"), MIXED_ALL, 0)
    assert len(set(found)) == len(found) == 24
    assert set(Counter(sides(seating) for seating in found).values()) == {8}


@pytest.mark.parametrize("mode", [Seatings.CYCLIC, Seatings.ALL])
@pytest.mark.parametrize("seats", [2, 3, 4, 5])
def test_individuals_play_every_hand_equally_often(seats: int, mode: Seatings) -> None:
    table = Table(seats, seatings=mode)
    for set_number in range(7):
        found = seatings(ABCDE[:seats], table, set_number)
        assert len(set(found)) == len(found) == (seats if mode is Seatings.CYCLIC else math.factorial(seats))
        held = Counter((bot, seat) for seating in found for seat, bot in enumerate(seating))
        assert set(held.values()) == {len(found) // seats}
        assert len(held) == seats * seats


@pytest.mark.parametrize(("seats", "orders"), [(2, 1), (3, 2), (4, 6), (5, 24)])
def test_cyclic_deal_sets_run_through_all_circular_orders(seats: int, orders: int) -> None:
    line_up, table = ABCDE[:seats], Table(seats)
    assert len(circular_orders(line_up)) == orders
    played = [seating for number in range(orders) for seating in seatings(line_up, table, number)]
    assert len(played) == len(set(played)) == math.factorial(seats)
    assert seatings(line_up, table, orders) == seatings(line_up, table, 0)


@pytest.mark.parametrize("mode", [Seatings.CYCLIC, Seatings.ALL])
@pytest.mark.parametrize(
    "line_up", [("A", "B", "B", "B"), ("A", "A", "B", "B"), ("A", "B", "B"), ("A", "A", "B", "B", "B")]
)
def test_seatings_identical_by_bot_are_played_once(line_up: Seating, mode: Seatings) -> None:
    table = Table(len(line_up), seatings=mode, copies=Copies.HALVES)
    arrangements = math.comb(len(line_up), line_up.count("A"))
    orders = len(circular_orders(line_up)) if mode is Seatings.CYCLIC else 1
    sets = [seatings(line_up, table, number) for number in range(orders)]
    assert len({seating for found in sets for seating in found}) == sum(map(len, sets)) == arrangements
    for found in sets:
        held = Counter(seat for seating in found for seat, bot in enumerate(seating) if bot == "A")
        assert len(held) == len(line_up)
        assert len(set(held.values())) == 1


@pytest.mark.parametrize(
    ("line_up", "period"),
    [
        ("AB", 2),
        ("ABC", 6),
        ("ABCD", 24),
        ("ABCDE", 120),
        ("ABB", 3),
        ("ABBB", 4),
        ("AABB", 6),
        ("AABBB", 10),
    ],
)
def test_once_plays_one_seating_a_set_and_every_seat_equally_often(line_up: str, period: int) -> None:
    table = Table(len(line_up), seatings=Seatings.ONCE, copies=Copies.HALVES)
    sets = [seatings(tuple(line_up), table, number) for number in range(2 * period)]
    assert {len(found) for found in sets} == {1}
    assert sets[:period] == sets[period:]
    assert len(set(sets)) == period
    held = Counter((bot, seat) for found in sets[:period] for seat, bot in enumerate(found[0]))
    for bot in set(line_up):
        assert {held[bot, seat] for seat in range(len(line_up))} == {
            period * line_up.count(bot) // len(line_up)
        }


@pytest.mark.parametrize(("pairs", "line_up", "period"), [("copies", "AABB", 2), ("mixed", "ABCD", 8)])
def test_once_in_pairs(pairs: str, line_up: str, period: int) -> None:
    table = Table(4, paired=True, pairs=Pairs(pairs), seatings=Seatings.ONCE)
    sets = [seatings(tuple(line_up), table, number) for number in range(period)]
    assert len(set(sets)) == period
    assert {len(found) for found in sets} == {1}
    names = ["A", "B", "C", "D"][: len(set(line_up))]
    assert len(line_ups(names, table, 10, "seed")) == (1 if pairs == "copies" else 3)


# --- line-ups --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "count"),
    [
        (PAIR, 10),  # 5 bots, two at a time
        (MIXED, 15),  # 5 groups of four, three partnerings each
        (MIXED_ALL, 5),
        (Table(2), 10),
        (Table(3), 10),
        (Table(4), 5),
        (Table(5), 1),
        (Table(2, copies=Copies.HALVES), 10),
        (Table(3, copies=Copies.HALVES), 20),
        (Table(4, copies=Copies.HALVES), 10),
        (Table(4, copies=Copies.ONE_AGAINST_REST), 20),
        (Table(5, copies=Copies.ONE_AGAINST_REST), 20),
    ],
)
def test_number_of_line_ups(table: Table, count: int) -> None:
    found = line_ups(ABCDE, table, 1000, "s")
    assert len(set(found)) == len(found) == count
    for line_up in found:
        seats = Counter(line_up)
        assert sum(seats.values()) == table.seats
        assert len(seats) == table.different_bots
    assert max(max(Counter(line_up).values()) for line_up in found) == table.most_seats


def test_mixed_partners_meet_every_partnering_once() -> None:
    partnerings = Counter(sides(seatings(line_up, MIXED, 0)[0]) for line_up in line_ups(ABCDE, MIXED, 9, "s"))
    assert len(partnerings) == 15
    assert set(partnerings.values()) == {1}


def test_one_against_rest_goes_both_ways() -> None:
    found = line_ups(("A", "B"), Table(4, copies=Copies.ONE_AGAINST_REST), 9, "s")
    assert set(found) == {("A", "B", "B", "B"), ("A", "A", "A", "B")}


def test_individuals_meet_no_copy_unless_asked() -> None:
    for seats in (2, 3, 4, 5):
        assert all(len(set(found)) == seats for found in line_ups(ABCDE, Table(seats), 99, "s"))


def test_line_ups_are_deterministic_and_shuffled_by_the_seed() -> None:
    bots = [f"bot{n}" for n in range(12)]
    assert line_ups(bots, Table(4), 50, "s") == line_ups(bots, Table(4), 50, "s")
    assert line_ups(bots, Table(4), 50, "s") != line_ups(bots, Table(4), 50, "t")
    assert set(line_ups(bots, Table(4), 999, "s")) == set(line_ups(bots, Table(4), 999, "t"))


def test_too_few_bots_and_twins_are_refused() -> None:
    with pytest.raises(ValueError, match="4 different bots cannot be filled from 3"):
        line_ups(ABCDE[:3], Table(4), 9, "s")
    with pytest.raises(ValueError, match="named twice"):
        line_ups(("A", "A"), Table(2), 9, "s")


# --- balanced choices ------------------------------------------------------------------------------


def check_balanced(bots: int, size: int, limit: int, seed: str) -> None:
    groups = balanced_groups(bots, size, limit, seed)
    assert len(set(groups)) == len(groups)
    assert all(len(set(group)) == size and tuple(sorted(group)) == group for group in groups)
    assert spread(groups, bots) <= 1
    assert connected(groups, bots)
    assert len(set(Counter(bot for group in groups for bot in group).values())) == 1
    known_gap = size == 5 and bots in (20, 22) and limit < 2 * bots
    assert len(groups) == 2 * bots if known_gap else len(groups) <= limit


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_the_smallest_choice_exists_for_every_number_of_bots(size: int) -> None:
    for bots in [*range(size + 1, 41), 60, 100]:
        check_balanced(bots, size, bots, "smallest")


@settings(max_examples=60, deadline=None)
@given(data=st.data(), size=st.integers(2, 5), seed=st.text(max_size=5))
def test_choices_are_balanced_for_any_limit(data: st.DataObject, size: int, seed: str) -> None:
    bots = data.draw(st.integers(size, 24))
    check_balanced(bots, size, data.draw(st.integers(bots, 400)), seed)


@pytest.mark.parametrize(
    ("bots", "size", "limit", "at_least"),
    [(13, 4, 13, 13), (20, 4, 1000, 1000), (100, 4, 1000, 500), (50, 2, 999, 950)],
)
def test_choices_come_close_to_the_limit(bots: int, size: int, limit: int, at_least: int) -> None:
    assert at_least <= len(balanced_groups(bots, size, limit, "close")) <= limit


def test_projective_plane_is_found() -> None:
    groups = balanced_groups(13, 4, 20, "plane")
    assert len(groups) == 13
    assert spread(groups, 13) == 0


def test_all_groups_where_the_limit_allows() -> None:
    assert balanced_groups(6, 3, 20, "s") == tuple(combinations(range(6), 3))
    assert len(balanced_groups(6, 3, 19, "s")) == 18


def test_limit_below_the_number_of_bots_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 12"):
        balanced_groups(12, 4, 11, "s")
