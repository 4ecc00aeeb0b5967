"""The cards: notation, order, strength, value."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from tressette.rules.cards import (
    CARDS,
    DECK_THIRDS,
    FULL_DECK,
    POINT_CARDS,
    STRENGTH,
    SUIT_MASKS,
    THIRDS,
    Card,
    Rank,
    Suit,
    cards_of,
    mask_of,
    parse_card,
    parse_cards,
    thirds_of,
)
from tressette.rules.errors import NotationError


def test_the_deck_order_is_suit_by_suit_from_asso_to_re() -> None:
    texts = [rank + suit for suit in "dcsb" for rank in "A234567FCR"]
    assert [str(card) for card in CARDS] == texts
    assert list(CARDS) == list(range(40))


@pytest.mark.parametrize("card", CARDS, ids=str)
def test_every_notation_names_one_card(card: Card) -> None:
    assert parse_card(str(card)) is card
    assert repr(card) == f"Card('{card}')"
    assert card == 10 * card.suit + card.rank


def test_suits_and_ranks_are_apart_from_strength() -> None:
    card = parse_card("Cs")
    assert (card.suit, card.rank) == (Suit.SPADE, Rank.CAVALLO)
    assert (parse_card("Ab").suit, parse_card("Ab").rank) == (Suit.BASTONI, Rank.ASSO)


@pytest.mark.parametrize("text", ["", "3", "c3", "3C", "8c", "10c", "3c ", "Jd", "1d", "3x", "asso"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(NotationError) as error:
        parse_card(text)
    assert error.value.text == text
    assert repr(text) in str(error.value)


def test_cards_are_parsed_from_a_line_or_a_list() -> None:
    assert parse_cards("3c Rb") == parse_cards(["3c", "Rb"]) == (parse_card("3c"), parse_card("Rb"))
    assert parse_cards("") == ()
    with pytest.raises(NotationError):
        parse_cards("3c Rx")


def test_strength_runs_from_three_to_four_in_every_suit() -> None:
    for suit in "dcsb":
        strongest_first = [parse_card(rank + suit) for rank in "32ARCF7654"]
        strengths = [STRENGTH[card] for card in strongest_first]
        assert strengths == sorted(strengths, reverse=True)
        assert len(set(strengths)) == 10


def test_an_ace_is_worth_one_point_and_five_ranks_a_third() -> None:
    worth = {str(card)[0]: Fraction(THIRDS[card], 3) for card in CARDS}
    third = Fraction(1, 3)
    assert worth == {"A": 1, **dict.fromkeys("23RCF", third), **dict.fromkeys("4567", 0)}


def test_the_deck_is_worth_ten_points_and_two_thirds() -> None:
    assert Fraction(DECK_THIRDS, 3) == 10 + Fraction(2, 3)
    assert thirds_of(FULL_DECK) == DECK_THIRDS
    assert cards_of(POINT_CARDS) == tuple(card for card in CARDS if THIRDS[card])
    assert POINT_CARDS.bit_count() == 24


def test_the_worth_of_a_set_is_the_sum_of_its_cards() -> None:
    for pair in itertools.combinations(CARDS, 2):
        assert thirds_of(mask_of(pair)) == THIRDS[pair[0]] + THIRDS[pair[1]]


def test_masks_list_their_cards_in_deck_order() -> None:
    assert cards_of(mask_of(reversed(CARDS))) == CARDS
    assert cards_of(0) == ()
    assert [cards_of(mask) for mask in SUIT_MASKS] == [CARDS[i : i + 10] for i in (0, 10, 20, 30)]
    assert mask_of([]) == 0
