"""Which suit stands for which in one game: a pure function that any language can repeat.

The games of a deal set are dealt from one deck seed. So that they do not look alike, each is dealt with its
suits exchanged. A **suit order** is four suit letters, a permutation of ``dcsb``: the letter at each place is
the suit that stands for the suit which ``dcsb`` has there. Under ``dsbc`` a deck's 3 of coppe is dealt as the
3 of spade, its 3 of spade as the 3 of bastoni, its 3 of bastoni as the 3 of coppe. Written down for other
languages, with test vectors: ``RULES.md`` beside this file.

Decisions:
1. A suit that the rules name stays: denari where its 4, 5 or 6 matters (``first_lead``, ``partners``),
   bastoni where its ace does (``ace_of_bastoni``), the suit of ``removed_card`` where ``layout_3`` removes
   one. The others are **free**: no rule tells them apart.
2. The draw of partners and tie-break deals are dealt under the same order as the deals of the game.
3. Games whose ids differ only in the number at their end, as those of a deal set do, have different orders as
   long as there are enough; by chance alone one in 24 would look like another.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from string import digits
from typing import Final

from tressette.rules.cards import CARDS, SUIT_LETTERS, Card, Suit
from tressette.rules.deck import SEED_BYTES, DeckSource, Phase
from tressette.rules.ruleset import AceOfBastoni, FirstLead, Layout3, Partners, RuleSet

AS_SHUFFLED: Final = SUIT_LETTERS
"""The order under which every suit stays."""


def free_suits(rules: RuleSet) -> tuple[Suit, ...]:
    """The suits that the rules do not name, in deck order (decision 1)."""
    named = set()
    if rules.first_lead is not FirstLead.DEALER_RIGHT or rules.partners is Partners.DRAWN:
        named.add(Suit.DENARI)
    if rules.ace_of_bastoni is not AceOfBastoni.NORMAL:
        named.add(Suit.BASTONI)
    if rules.layout_3 is Layout3.REMOVE_CARD:
        named.add(rules.removed_card.suit)
    return tuple(suit for suit in Suit if suit not in named)


def suit_order(seed: bytes, game: str, rules: RuleSet) -> str:
    """The suit order of a game. The orders that keep the named suits are numbered from 0, sorted by their
    letters where d comes before c, s and b. That of the game is HMAC-SHA256(seed, "suits/" and the id up to
    the digits at its end), plus the number that these digits write, modulo how many orders there are.
    ``seed`` is the 32-byte deck seed (ValueError otherwise)."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"seed: {SEED_BYTES} bytes, not {len(seed)}")
    orders = _orders(free_suits(rules))
    family = game.rstrip(digits)
    digest = hmac.digest(seed, f"suits/{family}".encode(), "sha256")
    return orders[(int.from_bytes(digest, "big") + int(game[len(family) :] or "0")) % len(orders)]


@lru_cache(maxsize=16)
def _orders(free: Sequence[Suit]) -> tuple[str, ...]:
    orders = []
    for chosen in permutations(free):
        stands_for = dict(zip(free, chosen, strict=True))
        orders.append("".join(SUIT_LETTERS[stands_for.get(suit, suit)] for suit in Suit))
    return tuple(orders)


@lru_cache(maxsize=24)
def exchanged(order: str) -> tuple[Card, ...]:
    """What each card is dealt as, by card. Raises ValueError for a text that is no suit order."""
    if sorted(order) != sorted(SUIT_LETTERS):
        raise ValueError(f"{order!r} is no order of the suits {SUIT_LETTERS}")
    return tuple(CARDS[10 * SUIT_LETTERS.index(order[card.suit]) + card.rank] for card in CARDS)


def with_suits(decks: DeckSource, order: str) -> DeckSource:
    """The same decks, dealt under a suit order. Raises ValueError for a text that is none."""
    dealt_as = exchanged(order)

    def source(phase: Phase, deal: int, attempt: int, cards: Sequence[Card]) -> Sequence[Card]:
        return [dealt_as[card] for card in decks(phase, deal, attempt, cards)]

    return source
