"""Tressette by rules of thumb: count the cards, feed the partner, keep the threes and twos.

Source: the advice of 001 (lead the strongest suit, remember what was played, throw the least useful
card when void) and of every table: an ace goes on a trick that the own side is sure of.

Decisions:
1. A trick is sure when the card that wins it is a master, or no opponent is still to play to it.
2. A three or two is spent only on a trick worth something, or when few tricks are left.
3. It leads masters of a long suit first, then low from a suit it is strong in or the partner has led.
"""

from __future__ import annotations

from collections.abc import Sequence

from tressette.rules.cards import STRENGTH, SUIT_MASKS, SUIT_OF, THIRDS, Card, mask_of

from tressette_bot.bot import Bot
from tressette_bot.bots.counting import HIGHER, value_of, weakest
from tressette_bot.view import View

_ACE = 7  # strength; only a two and a three are stronger
_LATE = 7  # cards in hand from which masters are cashed


class GreedyBot(Bot):
    """Takes what it can with its partner; at home in Tressette, legal everywhere."""

    name = "greedy"
    version = "1"

    def choose(self, view: View) -> Card:
        """The card by the rules of thumb above; no chance is involved."""
        legal = view.legal
        if len(legal) == 1:
            return legal[0]
        if not view.table:
            return _lead(view)
        return _follow(view) if SUIT_OF[legal[0]] == view.led else _discard(view)


def _sure(view: View, winner: int, card: Card, unseen: int) -> bool:
    """Whether the trick is safe for the side of ``winner`` (decision 1), as far as counting can tell."""
    higher = HIGHER[card] & unseen
    if not higher:
        return True
    side_of, side = view.rules.side_of, view.rules.side_of(winner)
    led = 1 << SUIT_OF[view.table[0]]
    for seat in view.order[len(view.table) + 1 :]:
        if side_of(seat) != side and not view.deal.voids[seat] & led:
            return False
    return True


def _follow(view: View) -> Card:
    winning = view.winning
    assert winning is not None
    seat, best = winning
    legal, unseen = view.legal, view.unseen
    over = [card for card in legal if STRENGTH[card] > STRENGTH[best]]
    under = [card for card in legal if STRENGTH[card] < STRENGTH[best]]
    sure = [card for card in over if _sure(view, view.seat, card, unseen)]
    if view.is_partner(seat):
        if _sure(view, seat, best, unseen):
            return _give(under or over)
        return _take(view, sure) if _worth(view, sure) else weakest(legal)
    if _worth(view, sure):
        return _take(view, sure)
    return weakest(under or over)


def _give(cards: Sequence[Card]) -> Card:
    """The most valuable card, of equal ones the least strong."""
    return max(cards, key=lambda card: (THIRDS[card], -STRENGTH[card]))


def _worth(view: View, sure: Sequence[Card]) -> bool:
    """Whether the trick is worth the cheapest card that is sure to win it (decision 2)."""
    if not sure:
        return False
    if min(STRENGTH[card] for card in sure) <= _ACE or len(view.hand) <= _LATE:
        return True
    return value_of(view.table) > 0


def _take(view: View, sure: Sequence[Card]) -> Card:
    """An ace if it wins, since nothing else saves it as well; else the weakest that wins."""
    return min(sure, key=lambda card: (STRENGTH[card] != _ACE, STRENGTH[card]))


def _discard(view: View) -> Card:
    winning = view.winning
    assert winning is not None
    seat, best = winning
    unseen = view.unseen
    if view.is_partner(seat) and _sure(view, seat, best, unseen):
        loose = [card for card in view.legal if HIGHER[card] & unseen]
        return _give(loose or view.legal)
    return _worthless(view)


def _worthless(view: View) -> Card:
    """A card to lose: worth nothing, from a suit without an ace to cover, the shorter one first."""
    hand = mask_of(view.hand)

    def cost(card: Card) -> tuple[int, int, int, int]:
        suit = hand & SUIT_MASKS[SUIT_OF[card]]
        covers = int(bool(suit & 1 << 10 * SUIT_OF[card]) and suit.bit_count() <= 3)
        return THIRDS[card], covers, STRENGTH[card], suit.bit_count()

    return min(view.legal, key=cost)


def _lead(view: View) -> Card:
    unseen = view.unseen
    led_by_partner = led_by_others = 0
    for trick in view.deal.tricks:
        suit = 1 << SUIT_OF[trick.cards[0]]
        if view.is_partner(trick.seats[0]):
            led_by_partner |= suit
        elif trick.seats[0] != view.seat:
            led_by_others |= suit
    hand = mask_of(view.hand)

    def score(card: Card) -> tuple[float, int]:
        suit = SUIT_OF[card]
        held = hand & SUIT_MASKS[suit]
        length = held.bit_count()
        if not HIGHER[card] & unseen:
            return _score_master(view, card, length, unseen), -STRENGTH[card]
        points = 0.5 * length - 3 * THIRDS[card] - 0.2 * STRENGTH[card]
        points += 2 * bool(held & 0b100 << 10 * suit) + bool(held & 0b010 << 10 * suit)
        points += 2 * bool(led_by_partner & 1 << suit) - bool(led_by_others & 1 << suit)
        if view.partner is not None and view.deal.voids[view.partner] & 1 << suit:
            points -= 2
        return points, -STRENGTH[card]

    return max(view.legal, key=score)


def _score_master(view: View, card: Card, length: int, unseen: int) -> float:
    """Masters are cashed late, or early from a long suit; not while they hold the last word for nothing."""
    out = (unseen & SUIT_MASKS[SUIT_OF[card]]).bit_count()
    if len(view.hand) <= _LATE or length >= 4:
        return 6.0 + THIRDS[card] + 0.3 * min(out, 4)
    return 1.0 + THIRDS[card]
