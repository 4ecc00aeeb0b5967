"""Declarations: what a hand holds and what it is worth. The vectors in test_vectors.py have many more."""

from __future__ import annotations

import pytest
from tressette.rules.accuse import Combination, declarations
from tressette.rules.cards import cards_of, mask_of, parse_cards
from tressette.rules.ruleset import NapoliExtension


def found(hand: str, extension: str = "none") -> list[tuple[str, str, int]]:
    """(kind, of, points) of each declaration."""
    held = declarations(mask_of(parse_cards(hand)), NapoliExtension(extension))
    return [(str(one.kind), one.of, one.points) for one in held]


@pytest.mark.parametrize("rank", "A23")
def test_three_are_worth_three_and_four_four(rank: str) -> None:
    assert found(f"{rank}d {rank}c {rank}b") == [("bongioco", rank, 3)]
    assert found(f"{rank}d {rank}c {rank}s {rank}b") == [("bongioco", rank, 4)]
    assert found(f"{rank}d {rank}c") == []


@pytest.mark.parametrize("rank", "4567FCR")
def test_other_ranks_make_nothing(rank: str) -> None:
    assert found(f"{rank}d {rank}c {rank}s {rank}b") == []


@pytest.mark.parametrize("suit", "dcsb")
def test_a_napoli_is_the_three_strongest_of_a_suit(suit: str) -> None:
    assert found(f"A{suit} 2{suit} 3{suit}") == [("napoli", suit, 3)]
    assert found(f"A{suit} 2{suit} R{suit}") == []


def test_several_add_up_and_a_card_may_serve_two() -> None:
    assert found("Ad 2d 3d Ac As") == [("bongioco", "A", 3), ("napoli", "d", 3)]
    everything = found("Ad Ac As Ab 2d 2c 2s 2b 3d 3c 3s 3b")
    assert [points for _, _, points in everything] == [4, 4, 4, 3, 3, 3, 3]


@pytest.mark.parametrize(
    ("more", "numeric", "rank_order"),
    [
        ("", 3, 3),
        ("4d", 4, 3),
        ("5d", 3, 3),
        ("Rd", 3, 4),
        ("4d 5d 7d", 5, 3),
        ("Rd Cd 7d", 3, 5),
        ("4d 5d 6d 7d Fd Cd Rd", 10, 10),
        ("4d 5d 6d 7d Cd Rd", 7, 5),
    ],
)
def test_a_napoli_grows_only_by_cards_in_line(more: str, numeric: int, rank_order: int) -> None:
    hand = "Ad 2d 3d " + more
    assert found(hand) == [("napoli", "d", 3)]
    assert found(hand, "numeric") == [("napoli", "d", numeric)]
    assert found(hand, "rank_order") == [("napoli", "d", rank_order)]


def test_a_declaration_names_its_cards() -> None:
    (one,) = declarations(mask_of(parse_cards("Ac 2c 3c 4c Rc")), NapoliExtension.NUMERIC)
    assert cards_of(one.cards) == parse_cards("Ac 2c 3c 4c")
    assert one.key == (Combination.NAPOLI, "c")


def test_an_empty_hand_holds_nothing() -> None:
    assert found("") == []
