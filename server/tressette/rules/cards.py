"""The 40 cards: identity, text notation, trick strength and value.

Source: the order of the ranks and the values are common to all five rule texts.

Vocabulary: a **card** is a suit and a rank, nothing else; how strong it is in a trick and what it is
worth are tables beside it. A **mask** is a set of cards as an integer, bit ``card`` set for each card
in it; hands and piles are masks because membership, following suit and counting are then one
operation each. Values are in **thirds** of a point (an ace is 3), match scores in **sixths**.

Decisions:
1. Deck order, used wherever cards are listed: denari, coppe, spade, bastoni; asso to re.
2. Text notation is the rank ``A 2 3 4 5 6 7 F C R`` followed by the suit ``d c s b``: ``3c``, ``Rb``.
3. Faces (Neapolitan, French, ...) are display only and unknown here.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from tressette.rules.errors import NotationError


class Suit(IntEnum):
    """The four suits, in deck order."""

    DENARI = 0
    COPPE = 1
    SPADE = 2
    BASTONI = 3


class Rank(IntEnum):
    """The ten ranks, in deck order; not the order of strength."""

    ASSO = 0
    DUE = 1
    TRE = 2
    QUATTRO = 3
    CINQUE = 4
    SEI = 5
    SETTE = 6
    FANTE = 7
    CAVALLO = 8
    RE = 9


SUIT_LETTERS: Final = "dcsb"
RANK_LETTERS: Final = "A234567FCR"


class Card(int):
    """A card as its index in deck order, 0 to 39. Prints in text notation, compares as an integer."""

    __slots__ = ()

    @property
    def suit(self) -> Suit:
        """The suit."""
        return Suit(self // 10)

    @property
    def rank(self) -> Rank:
        """The rank."""
        return Rank(self % 10)

    def __str__(self) -> str:
        return RANK_LETTERS[self % 10] + SUIT_LETTERS[self // 10]

    def __repr__(self) -> str:
        return f"Card({str(self)!r})"


CARDS: Final = tuple(Card(index) for index in range(40))
"""Every card, once, in deck order; ``CARDS[i]`` is the card of index i."""

_BY_TEXT: Final = {str(card): card for card in CARDS}

FULL_DECK: Final = (1 << 40) - 1
SUIT_MASKS: Final = tuple(0x3FF << (10 * suit) for suit in range(4))
BITS: Final = tuple(1 << index for index in range(40))
SUIT_OF: Final = tuple(index // 10 for index in range(40))

# 4 5 6 7 fante cavallo re asso 2 3, weakest first.
_WEAKEST_FIRST: Final = (3, 4, 5, 6, 7, 8, 9, 0, 1, 2)
STRENGTH: Final = tuple(_WEAKEST_FIRST.index(index % 10) for index in range(40))
"""Strength in a trick of one suit, by card index: 0 (a four) to 9 (a three)."""

THIRDS: Final = tuple((3, 1, 1, 0, 0, 0, 0, 1, 1, 1)[index % 10] for index in range(40))
"""Value in thirds of a point, by card index, with a normal ace of bastoni."""

DECK_THIRDS: Final = sum(THIRDS)

ACE_OF_BASTONI: Final = _BY_TEXT["Ab"]
FOUR_OF_DENARI: Final = _BY_TEXT["4d"]

_ACES: Final = sum(BITS[10 * suit] for suit in range(4))
_THIRD_CARDS: Final = sum(bit for bit, thirds in zip(BITS, THIRDS, strict=True) if thirds == 1)
POINT_CARDS: Final = _ACES | _THIRD_CARDS
"""The mask of the 24 cards that are worth anything."""

# The cards of each ten-bit half word of one suit, so that listing a hand is four look-ups.
_SUIT_LISTS: Final = tuple(
    tuple(tuple(CARDS[10 * suit + rank] for rank in range(10) if bits >> rank & 1) for bits in range(1 << 10))
    for suit in range(4)
)


def parse_card(text: str) -> Card:
    """The card written ``text``; raises NotationError for anything but the 40 notations."""
    card = _BY_TEXT.get(text)
    if card is None:
        raise NotationError(text)
    return card


def parse_cards(text: str | Iterable[str]) -> tuple[Card, ...]:
    """Cards from notations, either separated by blanks or as an iterable; raises NotationError."""
    words = text.split() if isinstance(text, str) else text
    return tuple(parse_card(word) for word in words)


def mask_of(cards: Iterable[int]) -> int:
    """The set of these cards as a mask."""
    mask = 0
    for card in cards:
        mask |= 1 << card
    return mask


def cards_of(mask: int) -> tuple[Card, ...]:
    """The cards of a mask, in deck order."""
    denari, coppe, spade, bastoni = _SUIT_LISTS
    return (
        denari[mask & 1023] + coppe[mask >> 10 & 1023] + spade[mask >> 20 & 1023] + bastoni[mask >> 30 & 1023]
    )


def thirds_of(mask: int) -> int:
    """What the cards of a mask are worth, in thirds of a point, with a normal ace of bastoni."""
    return 3 * (mask & _ACES).bit_count() + (mask & _THIRD_CARDS).bit_count()
