"""Where the decks of an event come from, and how a bot author can check them afterwards.

Vocabulary: the **event key** is 32 secret bytes, one for an event. A **deck seed** is 32 bytes from which
the rules deal a match. The **commitment** is published before the first card; deck seed and **salt** are
revealed once no game still to be played uses that seed. Source: the tournament design, "Secret decks".

1. Nothing here draws random bytes: the caller makes and guards the event key.
2. The HMAC messages start with their purpose, so that one event key can serve several without overlap.
3. The commitment itself is ``GameSpec.commitment``: SHA-256 of seed and salt, both of fixed length.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

KEY_BYTES: Final = 32
"""Length of an event key, a deck seed and a salt."""


def public_event_key(seed: str) -> bytes:
    """The event key of a tournament file with ``seed = "..."``: SHA-256 of the text. Its decks are public."""
    return hashlib.sha256(seed.encode()).digest()


def deck_seed(key: bytes, rules_hash: str, set_number: int) -> bytes:
    """The 32-byte seed of a deck: HMAC-SHA256 over ``deck/<rules_hash>/<set_number>`` in ASCII.

    ``set_number`` is the ``deck_number`` of a scheduled game, 0 or more. Raises ValueError for a key that
    is not 32 bytes or a negative number.
    """
    return _derived(key, "deck", rules_hash, set_number)


def deck_salt(key: bytes, rules_hash: str, set_number: int) -> bytes:
    """The 32-byte salt that is hashed with a deck seed into its commitment. Same arguments, same errors."""
    return _derived(key, "salt", rules_hash, set_number)


def _derived(key: bytes, purpose: str, rules_hash: str, set_number: int) -> bytes:
    if len(key) != KEY_BYTES:
        raise ValueError(f"event key has {len(key)} bytes instead of {KEY_BYTES}")
    if set_number < 0:
        raise ValueError(f"set number {set_number} is negative")
    return hmac.digest(key, f"{purpose}/{rules_hash}/{set_number}".encode("ascii"), "sha256")
