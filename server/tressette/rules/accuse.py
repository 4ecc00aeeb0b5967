"""Declarations (accuse): which combinations a hand holds and what they are worth.

Source: 001 (bongioco, superbongioco, napoli, several at once), 002 (the napoli that grows), 004.

Decisions:
1. Whoever holds four of a kind declares four, not three; a napoli is declared at its longest; what
   was declared cannot be raised later in the deal.
2. A card may serve two declarations (the ace of a bongioco and of a napoli).
3. Each player declares each rank once and each suit once in a deal.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tressette.rules.cards import RANK_LETTERS, SUIT_LETTERS, Rank, mask_of
from tressette.rules.ruleset import NapoliExtension


class Combination(StrEnum):
    """The two kinds of declaration."""

    BONGIOCO = "bongioco"
    NAPOLI = "napoli"


@dataclass(frozen=True, slots=True)
class Declaration:
    """One combination. ``of`` is a rank letter (bongioco: A, 2, 3) or a suit letter (napoli);
    ``cards`` is a mask; ``points`` are whole points, 3 or more."""

    kind: Combination
    of: str
    cards: int
    points: int

    @property
    def key(self) -> tuple[Combination, str]:
        """What a player can declare only once in a deal."""
        return self.kind, self.of


_RANK_MASKS: Final = tuple(
    (RANK_LETTERS[rank], mask_of(10 * suit + rank for suit in range(4)))
    for rank in (Rank.ASSO, Rank.DUE, Rank.TRE)
)
_NUMERIC: Final = (3, 4, 5, 6, 7, 8, 9)  # 4 5 6 7 fante cavallo re
_BY_STRENGTH: Final = (9, 8, 7, 6, 5, 4, 3)  # re cavallo fante 7 6 5 4
_EXTENSIONS: Final[dict[NapoliExtension, tuple[int, ...]]] = {
    NapoliExtension.NONE: (),
    NapoliExtension.NUMERIC: _NUMERIC,
    NapoliExtension.RANK_ORDER: _BY_STRENGTH,
}
_HEADS: Final = tuple(0b111 << 10 * suit for suit in range(4))
_ANY_HEAD: Final = sum(_HEADS)


def declarations(hand: int, extension: NapoliExtension) -> tuple[Declaration, ...]:
    """Every declaration that ``hand`` (a mask) allows: bongiochi A, 2, 3, then napoli d, c, s, b."""
    if (hand & _ANY_HEAD).bit_count() < 3:
        return ()
    found = []
    for letter, mask in _RANK_MASKS:
        held = hand & mask
        if held.bit_count() >= 3:
            found.append(Declaration(Combination.BONGIOCO, letter, held, held.bit_count()))
    for suit, head in enumerate(_HEADS):
        if hand & head == head:
            cards = head
            for rank in _EXTENSIONS[extension]:
                bit = 1 << (10 * suit + rank)
                if not hand & bit:
                    break
                cards |= bit
            found.append(Declaration(Combination.NAPOLI, SUIT_LETTERS[suit], cards, cards.bit_count()))
    return tuple(found)
