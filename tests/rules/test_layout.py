"""Who is dealt what: every number of players, packets, the fourteenth card, seats that are out."""

from __future__ import annotations

import pytest
from tressette.rules.cards import CARDS, cards_of, parse_card
from tressette.rules.layout import Layout, cards_in_play, lay_out, right_of, turn_order
from tressette.rules.presets import resolve
from tressette.rules.ruleset import RuleSet

FOUR = resolve("traversone-003-21")
DUO = resolve("ciapano-duo")
TRIO = resolve("ciapano-trio")
TRIO_REMOVED = resolve("traversone-trio")
FIVE = resolve("ciapano-five")


def hands(layout: Layout) -> list[list[int]]:
    """The hands as places in the deck (the deck is in deck order)."""
    return [[int(card) for card in cards_of(hand)] for hand in layout.hands]


def dealt(rules: RuleSet, dealer: int = 0, active: tuple[int, ...] | None = None) -> Layout:
    seats = tuple(range(rules.players)) if active is None else active
    return lay_out(cards_in_play(rules, len(seats)), rules, seats, dealer)


def test_four_get_ten_each_one_at_a_time_from_the_dealers_right() -> None:
    layout = dealt(FOUR)
    assert hands(layout) == [list(range(start, 40, 4)) for start in (3, 0, 1, 2)]
    assert (layout.stock, layout.discards) == ((), False)


@pytest.mark.parametrize("dealer", range(4))
def test_the_first_card_goes_to_the_dealers_right(dealer: int) -> None:
    layout = dealt(FOUR, dealer)
    assert 0 in hands(layout)[(dealer + 1) % 4]
    assert 39 in hands(layout)[dealer]


def test_two_get_ten_each_and_the_rest_in_order_is_the_stock() -> None:
    layout = dealt(DUO)
    assert hands(layout) == [list(range(1, 20, 2)), list(range(0, 20, 2))]
    assert layout.stock == CARDS[20:]
    assert not layout.discards


def test_a_dealer_of_three_gets_the_last_card_as_the_fourteenth() -> None:
    for dealer in range(3):
        layout = dealt(TRIO, dealer)
        sizes = [len(hand) for hand in hands(layout)]
        assert sizes == [14 if seat == dealer else 13 for seat in range(3)]
        assert hands(layout)[dealer][-1] == 39
        assert layout.discards
        assert layout.stock == ()


def test_three_without_a_card_get_thirteen_each() -> None:
    layout = dealt(TRIO_REMOVED)
    assert [len(hand) for hand in hands(layout)] == [13, 13, 13]
    assert parse_card("4c") not in [card for hand in hands(layout) for card in hand]
    assert (layout.stock, layout.discards) == ((), False)


def test_five_get_eight_each() -> None:
    layout = dealt(FIVE, 2)
    assert [len(hand) for hand in hands(layout)] == [8] * 5
    assert [hand[0] for hand in hands(layout)] == [2, 3, 4, 0, 1]


@pytest.mark.parametrize("rules", [FOUR, DUO, TRIO, TRIO_REMOVED, FIVE])
def test_every_card_in_play_is_dealt_once(rules: RuleSet) -> None:
    layout = dealt(rules)
    cards = [card for hand in hands(layout) for card in hand] + list(layout.stock)
    assert sorted(cards) == list(cards_in_play(rules, rules.players))


def test_packets_only_change_which_hand_a_card_comes_to() -> None:
    five = dealt(FOUR.replace(packets="5+5"))
    first = [15, 0, 5, 10]  # by seat: seat 1 is the dealer's right
    assert hands(five) == [[*range(f, f + 5), *range(f + 20, f + 25)] for f in first]
    three = dealt(FOUR.replace(packets="3-4-3"))
    assert hands(three)[1] == [0, 1, 2, 12, 13, 14, 15, 28, 29, 30]
    assert hands(three)[0] == [9, 10, 11, 24, 25, 26, 27, 37, 38, 39]
    duo = dealt(DUO.replace(packets="5+5"))
    assert hands(duo)[1] == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    assert duo.stock == CARDS[20:]


def test_a_larger_match_that_comes_down_to_three_is_dealt_singly() -> None:
    packed, plain = (resolve("ciapano-31", packets=packets) for packets in ("5+5", "singly"))
    assert dealt(packed, 1, (0, 1, 3)) == dealt(plain, 1, (0, 1, 3))
    assert hands(dealt(packed, 1, (1, 3)))[3] == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]


def test_seats_that_are_out_get_nothing_and_are_passed_over() -> None:
    layout = dealt(FIVE, dealer=4, active=(1, 2, 4))
    assert [len(hand) for hand in hands(layout)] == [0, 13, 13, 0, 14]
    assert [hand[0] for hand in hands(layout) if hand] == [0, 1, 2]
    layout = dealt(FIVE, dealer=1, active=(1, 2, 4))
    assert [hand[0] for hand in hands(layout) if hand] == [2, 0, 1]
    layout = dealt(FIVE, dealer=3, active=(0, 3))
    assert [len(hand) for hand in hands(layout)] == [10, 0, 0, 10, 0]
    assert len(layout.stock) == 20


def test_a_match_of_five_that_comes_down_to_three_may_remove_a_card() -> None:
    rules = FIVE.replace(layout_3="remove_card", removed_card="7b")
    assert parse_card("7b") not in cards_in_play(rules, 3)
    assert cards_in_play(rules, 4) == CARDS
    assert not dealt(rules, 0, (0, 2, 4)).discards


@pytest.mark.parametrize(
    ("seat", "active", "right"),
    [
        (0, (0, 1, 2, 3), 1),
        (3, (0, 1, 2, 3), 0),
        (1, (0, 1, 3), 3),
        (2, (0, 1, 3), 3),
        (3, (1, 3), 1),
        (0, (0,), 0),
    ],
)
def test_the_right_of_a_seat_passes_over_those_that_are_out(
    seat: int, active: tuple[int, ...], right: int
) -> None:
    assert right_of(seat, active, 4) == right


def test_turns_go_round_from_the_first() -> None:
    assert turn_order(2, (0, 1, 2, 3), 4) == (2, 3, 0, 1)
    assert turn_order(4, (0, 2, 4), 5) == (4, 0, 2)


def test_the_dealer_goes_round_the_seats_that_are_left() -> None:
    dealers, active = [0], (0, 2, 3)
    for _ in range(5):
        dealers.append(right_of(dealers[-1], active, 5))
    assert dealers == [0, 2, 3, 0, 2, 3]
