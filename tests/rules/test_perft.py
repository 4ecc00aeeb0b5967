"""Perft: how many legal ways there are to play out a small deal, counted by the engine move by move, by a
count written differently, and once and for all in this file."""

from __future__ import annotations

import copy
from functools import cache

import pytest
from tressette.rules.cards import cards_of, mask_of, parse_cards
from tressette.rules.deal import Deal
from tressette.rules.layout import Layout
from tressette.rules.presets import resolve

# hands by seat (a blank one is out), leader, stock, the known number of ways
DEALS = {
    "one suit": (["3d 4d", "2d 5d", "Ad 6d", "Rd 7d"], 0, "", 2**4),
    "nobody can follow": (["3d 4d", "3c 4c", "3s 4s", "3b 4b"], 1, "", 2**4),
    "the leader's suits bind the others": (["3d 3c", "4d 4c", "5d 5c", "6d 6c"], 0, "", 2),
    "three cards": (["3d 4c Rs", "2d 5d Ab", "Ad 6c 4s", "Rd 7c Fb"], 2, "", 72),
    "four cards": (["3d 4c Rs Cb", "2d 5d Ab 4s", "Ad 6c 7s 4b", "Rd 7c Fb 2s"], 3, "", 112),
    "five cards": (["3d 4d 4c Rs Cb", "2d 5d Ab 4s 2c", "Ad 6d 6c 7s 4b", "Rd 7d 7c Fb 2s"], 1, "", 960),
    "three players": (["3d 4c Rs Cb 4d", "2d 5d Ab 4s 3c", "Ad 6c 7s 4b 5b"], 0, "", 876),
    "five players": (["3d 4c", "2d 5d", "Ad 6c", "Rd 7c", "Rs 7s"], 4, "", 32),
    "a stock of two": (["3d 4c Rs", "2d 5d Ab"], 1, "Ad 6c", 88),
    "a stock of four": (["3d 4c Rs 5b", "2d 5d Ab 6b"], 0, "Ad 6c 7s 7d", 16122),
    "seats out": (["", "3d 4c Rs Cb", "", "2d 5d Ab 4s", "Ad 6c 7s 4b"], 3, "", 58),
}


def deal_of(hands: list[str], leader: int, stock: str) -> Deal:
    rules = resolve({2: "ciapano-duo", 3: "ciapano-trio", 4: "ciapano-31", 5: "ciapano-five"}[len(hands)])
    masks = tuple(mask_of(parse_cards(hand)) for hand in hands)
    active = [seat for seat, mask in enumerate(masks) if mask]
    return Deal(rules, Layout(masks, parse_cards(stock), discards=False), active, leader)


def perft(deal: Deal) -> int:
    """Ways to play the deal out, by playing every legal card."""
    if deal.over:
        return 1
    total = 0
    for card in cards_of(deal.playable(deal.turn)):
        after = copy.copy(deal)
        after.hands, after.taken, after.tricks = list(deal.hands), list(deal.taken), list(deal.tricks)
        after.table = list(deal.table)
        after.play(card, None, [])
        total += perft(after)
    return total


@cache
def ways(hands: tuple[str, ...], leader: int, stock: str) -> int:
    """The same in text: all completions of one trick, then the rest of the deal after each of them."""
    seats = [(leader + step) % len(hands) for step in range(len(hands))]
    seats = [seat for seat in seats if hands[seat]]
    if not seats:
        return 1
    tricks: list[list[str]] = [[]]
    for seat in seats:
        tricks = [[*trick, card] for trick in tricks for card in answers(hands[seat].split(), trick)]
    return sum(after_trick(hands, seats, trick, stock.split()) for trick in tricks)


def answers(hand: list[str], trick: list[str]) -> list[str]:
    return [card for card in hand if trick and card[1] == trick[0][1]] or hand


def after_trick(hands: tuple[str, ...], seats: list[int], trick: list[str], stock: list[str]) -> int:
    rest = [hand.split() for hand in hands]
    for seat, card in zip(seats, trick, strict=True):
        rest[seat].remove(card)
    following = [card for card in trick if card[1] == trick[0][1]]
    winner = seats[trick.index(min(following, key=lambda card: "32ARCF7654".index(card[0])))]
    if stock:
        rest[winner].append(stock[0])
        rest[1 - winner].append(stock[1])
    return ways(tuple(" ".join(hand) for hand in rest), winner, " ".join(stock[2:]))


@pytest.mark.parametrize("name", DEALS)
def test_the_number_of_legal_ways_to_play_is_known(name: str) -> None:
    hands, leader, stock, known = DEALS[name]
    assert perft(deal_of(hands, leader, stock)) == ways(tuple(hands), leader, stock) == known
