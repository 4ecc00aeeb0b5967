"""Where the decks of an event come from, and how a bot author can check them afterwards.

Vocabulary: the **event key** is 32 secret bytes, one for an event. A **deck seed** is 32 bytes from which
the rules deal a match. The **event commitment** is published before bots connect, the **commitment** of a
game told to its bots before the first card; deck seed and **salt** are revealed once no game still to be
played uses that seed. Source: the tournament design, "Secret decks".

1. Nothing here draws random bytes: the caller makes and guards the event key.
2. The HMAC messages start with their purpose, so that one event key can serve several without overlap.
3. The commitment of a game is ``GameSpec.commitment``: SHA-256 of seed and salt, both of fixed length. The
   salt is that of the game, not of the deck: bots are told the commitment, and one for all games of a deck
   would name it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Container
from typing import Final

KEY_BYTES: Final = 32
"""Length of an event key, a deck seed and a salt."""


def public_event_key(seed: str) -> bytes:
    """The event key of a tournament file with ``seed = "..."``: SHA-256 of the text. Its decks are public."""
    return hashlib.sha256(seed.encode()).digest()


def event_commitment(key: bytes) -> str:
    """What binds an event to its key (hex): SHA-256 over ``tressette-event-v1`` in ASCII and the key. Raises
    ValueError for a key that is not 32 bytes."""
    return hashlib.sha256(b"tressette-event-v1" + _checked(key)).hexdigest()


def deck_seed(key: bytes, rules_hash: str, set_number: int) -> bytes:
    """The 32-byte seed of a deck: HMAC-SHA256 over ``deck/<rules_hash>/<set_number>`` in ASCII.

    ``set_number`` is the ``deck_number`` of a scheduled game, 0 or more. Raises ValueError for a key that
    is not 32 bytes or a negative number.
    """
    return _derived(key, "deck", rules_hash, set_number)


def deck_name(key: bytes, rules_hash: str, set_number: int) -> str:
    """The name of a deck in the record, 16 hex digits: equal in all folders that are dealt from it, and no
    hint at its seed. HMAC-SHA256 over ``name/<rules_hash>/<set_number>``; same arguments, same errors."""
    return _derived(key, "name", rules_hash, set_number).hex()[:16]


def game_salt(key: bytes, game: str) -> bytes:
    """The 32-byte salt that is hashed with the deck seed into the commitment of a game: HMAC-SHA256 over
    ``salt/<game id>`` in UTF-8. Raises ValueError for a key that is not 32 bytes."""
    return hmac.digest(_checked(key), f"salt/{game}".encode(), "sha256")


def retired(complete: Container[int], batch: int, sets: int) -> list[range]:
    """The batches of set numbers whose decks may be revealed, rising: of each, every set is complete.

    complete: the numbers of the sets whose every game, in every line-up that is dealt from them, has its
    result; batch: sets in a batch, 1 or more (ValueError otherwise); sets: how many the event has, from
    number 0 on. The last batch may be shorter than the others.
    """
    if batch < 1:
        raise ValueError(f"a batch of {batch} sets is not possible")
    batches = (range(first, min(first + batch, sets)) for first in range(0, sets, batch))
    return [numbers for numbers in batches if all(number in complete for number in numbers)]


def _derived(key: bytes, purpose: str, rules_hash: str, set_number: int) -> bytes:
    if set_number < 0:
        raise ValueError(f"set number {set_number} is negative")
    return hmac.digest(_checked(key), f"{purpose}/{rules_hash}/{set_number}".encode("ascii"), "sha256")


def _checked(key: bytes) -> bytes:
    if len(key) != KEY_BYTES:
        raise ValueError(f"event key has {len(key)} bytes instead of {KEY_BYTES}")
    return key
