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
import re
from dataclasses import dataclass
from typing import Final, NamedTuple

KEY_BYTES: Final = 32
"""Length of an event key, a deck seed and a salt."""
LINE_UPS: Final = 2**22
"""More line-ups than a round has for one preset (1,000,000 groups, three each), so that (set number, line-up)
is one number. Rounds need no place in it: their set numbers differ."""
_ID: Final = re.compile(r"p(\d+)(?:-r(\d+))?-l(\d+)-s(\d+)-g(\d+)", re.ASCII)


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


def game_parts(game_id: str) -> tuple[int, int, int, int, int]:
    """Preset, round, line-up, set number and game of the id of a game of an event. Raises ValueError."""
    found = _ID.fullmatch(game_id)
    if found is None:
        raise ValueError(f"{game_id!r} is not the id of a scheduled game")
    preset, number, line_up, set_number, game = (int(part or 0) for part in found.groups())
    return preset, number, line_up, set_number, game


def deck_number(set_number: int, line_up: int, *, common_deals: bool) -> int:
    """The number of the deck that a line-up of a preset plays in a deal set: with common deals the set
    number, else another one for each line-up."""
    return set_number if common_deals else set_number * LINE_UPS + line_up


class Drawn(NamedTuple):
    """What the key of an event gives for a game: name and seed of its deck, the salt of its commitment."""

    name: str
    seed: bytes
    salt: bytes


@dataclass(frozen=True, slots=True)
class PublishedStage:
    """first_set: number of its first deal set. commitment: what was published before it began (hex). key:
    what opens it, None while that is secret."""

    first_set: int
    commitment: str
    key: bytes | None


@dataclass(frozen=True, slots=True)
class PublishedEvent:
    """What anybody may know of how the decks of an event are drawn. stages: by their first deal sets; an
    event has several if it was extended. common_deals: whether all line-ups play the same decks."""

    stages: tuple[PublishedStage, ...]
    common_deals: bool

    @classmethod
    def from_json(cls, data: object) -> PublishedEvent:
        """From the content of an ``event.json``. Raises ValueError for anything else."""
        match data:
            case {"common_deals": bool(common_deals), "stages": [_, *_] as stages}:
                found = sorted(map(_stage, stages), key=lambda stage: stage.first_set)
                return cls(tuple(found), common_deals)
        raise ValueError("not what is published of an event")

    @property
    def keys_told(self) -> bool:
        """Whether no key is secret any more."""
        return all(stage.key is not None for stage in self.stages)

    def false_keys(self) -> list[str]:
        """The commitments that the key which is told for them does not open."""
        told = ((stage.key, stage.commitment) for stage in self.stages)
        return [one for key, one in told if key is not None and event_commitment(key) != one]

    def drawn(self, game: str, rules_hash: str) -> Drawn | None:
        """What a game has to be dealt from, None while its key is secret. Raises ValueError for the id of no
        game of an event."""
        _, _, line_up, set_number, _ = game_parts(game)
        begun = [stage for stage in self.stages if stage.first_set <= set_number]
        key = begun[-1].key if begun else None
        if key is None:
            return None
        number = deck_number(set_number, line_up, common_deals=self.common_deals)
        seed = deck_seed(key, rules_hash, number)
        return Drawn(deck_name(key, rules_hash, number), seed, game_salt(key, game))


def _stage(data: object) -> PublishedStage:
    match data:
        case {"first_set": int(first_set), "commitment": str(commitment), **rest}:
            key = rest.get("key")
            if key is None or isinstance(key, str):
                return PublishedStage(
                    first_set, commitment, None if key is None else _checked(bytes.fromhex(key))
                )
    raise ValueError(f"not a stage of an event: {data!r}")


def _derived(key: bytes, purpose: str, rules_hash: str, set_number: int) -> bytes:
    if set_number < 0:
        raise ValueError(f"set number {set_number} is negative")
    return hmac.digest(_checked(key), f"{purpose}/{rules_hash}/{set_number}".encode("ascii"), "sha256")


def _checked(key: bytes) -> bytes:
    if len(key) != KEY_BYTES:
        raise ValueError(f"event key has {len(key)} bytes instead of {KEY_BYTES}")
    return key
