"""Traversone by estimates: what does a card cost now, and what will it cost if it is kept?

Source: the advice of 002 (stay under the others' cards, drop aces and figures on who is about to take)
and the last trick of 000 and 003, which costs its winner a point and more.

Vocabulary, all in thirds of a point: the **price** of a trick is what its winner takes; the **danger**
of a card is what it may be expected to cost later; a card is the better, the less it costs now and the
more danger goes with it.

Decisions:
1. Others are taken to duck when they can, but not always: a later seat beats a card with the share of
   higher cards among the unseen ones of the suit, if it is not known to be void.
2. Points that go to an opponent count for a quarter of what own points cost; those that go to a partner
   count like own ones.
3. Cappotto: once one seat holds every point played and these are more than half of all, the others
   want to take a trick with points, and that seat wants all of them.
"""

from __future__ import annotations

from tressette.rules.cards import STRENGTH, SUIT_MASKS, SUIT_OF, THIRDS, Card
from tressette.rules.ruleset import Cappotto

from tressette_bot.bot import Bot
from tressette_bot.bots.counting import HIGHER, LOWER, value_of
from tressette_bot.view import View

_OTHERS = 0.25  # decision 2
_DANGER = 0.6
_PRICE = 0.9  # what one more seat adds to a trick on average
_CAUGHT = 2.0  # what a trick won with a card that was kept costs beyond that card
_LAST = 4.0  # what the last trick costs beyond its cards
_HALF = 16


class CautiousBot(Bot):
    """Takes as little as it can; at home in Traversone, legal everywhere."""

    name = "cautious"
    version = "1"

    def choose(self, view: View) -> Card:
        """The card of the least cost by the estimates above; no chance is involved."""
        legal = view.legal
        if len(legal) == 1:
            return legal[0]
        situation = _Situation(view)
        return min(legal, key=lambda card: (situation.cost(card), -STRENGTH[card]))

    def discard(self, view: View) -> Card:
        """The most dangerous card; aces are worth a trick to catch, so they may go too."""
        return max(view.discards, key=lambda card: (STRENGTH[card], THIRDS[card]))


class _Situation:
    """One turn, looked at once for all cards."""

    def __init__(self, view: View) -> None:
        deal = view.deal
        self.view = view
        self.unseen = view.unseen
        self.table = view.table
        self.pot = value_of(self.table)
        self.later = view.order[len(self.table) + 1 :]
        self.voids = deal.voids
        self.left = len(view.hand)
        winning = view.winning
        self.best = winning[1] if winning else None
        self.others = _OTHERS
        if winning and view.is_partner(winning[0]):
            self.others = -1.0
        self.wanted = _wants_tricks(view)

    def cost(self, card: Card) -> float:
        """What playing ``card`` costs, less the danger that goes with it."""
        takes = self.takes(card)
        price = self.pot + THIRDS[card] + _PRICE * len(self.later)
        suit = 1 << SUIT_OF[self.table[0] if self.table else card]
        price += sum(0.8 for seat in self.later if self.voids[seat] & suit)
        if self.wanted:
            return -takes * price
        given = (1 - takes) * THIRDS[card] * self.others
        return takes * price - given - _DANGER * self.danger(card)

    def takes(self, card: Card) -> float:
        """How likely the card is to win the trick, 0 to 1 (decision 1)."""
        best = self.best
        if best is not None and (SUIT_OF[card] != SUIT_OF[best] or STRENGTH[card] < STRENGTH[best]):
            return 0.0
        higher = (HIGHER[card] & self.unseen).bit_count()
        if not higher:
            return 1.0
        lower = (LOWER[card] & self.unseen).bit_count()
        stays = 1.0 - higher / (higher + lower + 0.5)
        suit = 1 << SUIT_OF[card]
        chance = 1.0
        for seat in self.later:
            if not self.voids[seat] & suit:
                chance *= stays
        return chance

    def danger(self, card: Card) -> float:
        """What the card may cost if it is kept: it wins later, or its points are caught."""
        suit = SUIT_OF[card]
        unseen = self.unseen & SUIT_MASKS[suit]
        if not unseen:
            return 0.5  # nobody can lead it but this seat
        lower = (LOWER[card] & unseen).bit_count()
        share = lower / unseen.bit_count()
        return share * (_CAUGHT + THIRDS[card] + _LAST / self.left)


def _wants_tricks(view: View) -> bool:
    """Whether points are welcome for once (decision 3)."""
    if view.rules.cappotto is Cappotto.NONE:
        return False
    thirds = view.deal.thirds
    side_of = view.rules.side_of
    played = sum(thirds)
    if played <= _HALF:
        return False
    sides = {side_of(seat) for seat, value in enumerate(thirds) if value}
    return len(sides) == 1
