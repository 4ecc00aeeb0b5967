"""The deck of a deal: a pure function that any language can repeat.

The stream is SHA-256 in counter mode: block i (from 0) is the digest of

    "tressette-deck-v1" | seed (32 bytes) | phase (1 byte) | deal (4) | attempt (4) | i (4)

with big-endian integers, no separators, the text in ASCII. Its bytes are taken one at a time. The
cards stand in deck order; for j from last index down to 1 take bytes until one is below
``256 - 256 mod (j + 1)``, and swap the cards at j and at that byte mod (j + 1). Card 0 of the result
is dealt first. Test vectors: ``RULES.md`` beside this file, checked by tests/rules/test_deck.py.

``deal`` counts from 1 within a phase; ``attempt`` counts from 1 and is all that a void deal (monte) or
a repeated draw of partners raises, so that common decks stay aligned between tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final

from tressette.rules.cards import CARDS, Card

SEED_BYTES: Final = 32
_DOMAIN: Final = b"tressette-deck-v1"


class Phase(IntEnum):
    """What a deck is for. The values are part of the shuffle."""

    MAIN = 0
    DRAW = 1
    TIE_BREAK = 2


DeckSource = Callable[[Phase, int, int, Sequence[Card]], Sequence[Card]]
"""(phase, deal, attempt, cards in deck order) -> the same cards in dealing order."""

_LIMITS: Final = tuple(256 - 256 % (j + 1) for j in range(40))


def shuffled(seed: bytes, phase: Phase, deal: int, attempt: int, cards: Sequence[Card] = CARDS) -> list[Card]:
    """The cards in dealing order. ``seed`` is 32 bytes (ValueError otherwise); deal, attempt >= 1."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"seed: {SEED_BYTES} bytes, not {len(seed)}")
    prefix = b"%s%s%s" % (
        _DOMAIN,
        seed,
        bytes((phase,)) + deal.to_bytes(4, "big") + attempt.to_bytes(4, "big"),
    )
    deck = list(cards)
    block, position, counter = b"", 32, 0
    for j in range(len(deck) - 1, 0, -1):
        limit = _LIMITS[j]
        while True:
            if position == 32:
                block = hashlib.sha256(prefix + counter.to_bytes(4, "big")).digest()
                counter += 1
                position = 0
            byte = block[position]
            position += 1
            if byte < limit:
                break
        k = byte % (j + 1)
        deck[j], deck[k] = deck[k], deck[j]
    return deck


def seeded(seed: bytes) -> DeckSource:
    """The decks of a match with this seed, as a function."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"seed: {SEED_BYTES} bytes, not {len(seed)}")

    def source(phase: Phase, deal: int, attempt: int, cards: Sequence[Card]) -> Sequence[Card]:
        return shuffled(seed, phase, deal, attempt, cards)

    return source
