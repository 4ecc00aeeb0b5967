"""What identifies a game and what it is played with: shared by whoever schedules, plays and records it.

Vocabulary: a **game** is one match that counts in a tournament (or on an open arena). A **deal set** is
one deck seed played once for each seating; a game belongs to exactly one.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tressette.rules.deck import DeckSource, seeded
from tressette.rules.ruleset import RuleSet
from tressette.rules.suits import suit_order, with_suits


@dataclass(frozen=True, slots=True)
class GameSpec:
    """One game to play. game: id; attempt: from 1, raised when a cut-off game is played again; bots:
    names by seat; deal_set, set_size: the set and how many games it has; deck: id of the deck seed,
    equal for all games dealt from it; seed: the 32-byte deck seed; salt: of the commitment, another for
    each game: bots are told the commitment, and must not see by it that they have met the deck before."""

    game: str
    attempt: int
    tournament: str
    preset: str
    rules: RuleSet
    bots: tuple[str, ...]
    deal_set: str
    set_size: int
    deck: str
    seed: bytes
    salt: bytes

    @property
    def commitment(self) -> str:
        """What binds the arena to the deck before the first card (hex)."""
        return commitment(self.seed, self.salt)

    @property
    def suits(self) -> str:
        """The suit order that the game is dealt under (``tressette.rules.suits``)."""
        return suit_order(self.seed, self.game, self.rules)

    @property
    def decks(self) -> DeckSource:
        """The decks of the game as they are dealt."""
        return with_suits(seeded(self.seed), self.suits)

    def to_json(self) -> dict[str, Any]:
        """Plain data; ``from_json`` is the inverse."""
        return {
            "game": self.game,
            "attempt": self.attempt,
            "tournament": self.tournament,
            "preset": self.preset,
            "rules": self.rules.options(),
            "bots": list(self.bots),
            "deal_set": self.deal_set,
            "set_size": self.set_size,
            "deck": self.deck,
            "seed": self.seed.hex(),
            "salt": self.salt.hex(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GameSpec:
        """Raises KeyError, ValueError or RuleSetError for data that ``to_json`` did not make."""
        return cls(
            game=data["game"],
            attempt=data["attempt"],
            tournament=data["tournament"],
            preset=data["preset"],
            rules=RuleSet.from_options(data["rules"]),
            bots=tuple(data["bots"]),
            deal_set=data["deal_set"],
            set_size=data["set_size"],
            deck=data["deck"],
            seed=bytes.fromhex(data["seed"]),
            salt=bytes.fromhex(data["salt"]),
        )


def commitment(seed: bytes, salt: bytes) -> str:
    """SHA-256 (hex) of a deck seed and a salt."""
    return hashlib.sha256(seed + salt).hexdigest()


def seat_secret(key: bytes, purpose: str, spec: GameSpec, seat: int) -> bytes:
    """32 bytes for one seat of one game: its handle or its bot seed, by ``purpose``.

    The attempt plays no part: a game that is played again is the same game, chance included."""
    text = f"{purpose}\0{spec.game}\0{seat}"
    return hmac.digest(key, text.encode(), "sha256")
