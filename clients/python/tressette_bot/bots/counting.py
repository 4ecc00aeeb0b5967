"""What can be known by counting cards: tables and small questions shared by the reference bots.

Vocabulary: a **master** is a card that no unseen card of its suit beats.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tressette.rules.cards import CARDS, STRENGTH, SUIT_OF, THIRDS, Card, mask_of

HIGHER: Final = tuple(
    mask_of(other for other in CARDS if SUIT_OF[other] == SUIT_OF[card] and STRENGTH[other] > STRENGTH[card])
    for card in CARDS
)
"""By card: the cards of its suit that beat it (mask)."""

LOWER: Final = tuple(
    mask_of(other for other in CARDS if SUIT_OF[other] == SUIT_OF[card] and STRENGTH[other] < STRENGTH[card])
    for card in CARDS
)
"""By card: the cards of its suit that it beats (mask)."""


def value_of(cards: Iterable[Card]) -> int:
    """What these cards are worth in thirds, with a normal ace of bastoni."""
    return sum(THIRDS[card] for card in cards)


def weakest(cards: Iterable[Card]) -> Card:
    """The card that costs least to give: worth least, then weakest, then first in deck order."""
    return min(cards, key=lambda card: (THIRDS[card], STRENGTH[card], card))
