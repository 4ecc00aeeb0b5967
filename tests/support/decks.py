"""Decks that deal chosen hands."""

from __future__ import annotations

from collections.abc import Sequence

from tressette.rules.cards import Card
from tressette.rules.deck import DeckSource, Phase
from tressette.rules.layout import right_of, turn_order


def stacked(hands: Sequence[Sequence[Card]], stock: Sequence[Card] = (), dealer: int = 0) -> list[Card]:
    """The deck that, dealt singly, gives these hands (one may hold a 14th card) and this stock."""
    players = len(hands)
    seats = range(players)
    order = turn_order(right_of(dealer, seats, players), seats, players)
    size = min(len(hand) for hand in hands)
    deck = [hands[seat][index] for index in range(size) for seat in order]
    deck += [card for hand in hands for card in hand[size:]]
    return deck + list(stock)


def fixed(*decks: Sequence[Card]) -> DeckSource:
    """A source that gives the n-th of these decks the n-th time it is asked."""
    rest = list(decks)

    def source(phase: Phase, deal: int, attempt: int, cards: Sequence[Card]) -> Sequence[Card]:
        return rest.pop(0)

    return source
