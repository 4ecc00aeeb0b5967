"""One deal, from the first lead to the last trick: following suit, winning tricks, drawing.

Source: common to all five texts; the stock of two players 000, 001, 003; the card set aside 000.

Decisions:
1. The winner of a trick leads the next one; with a stock the winner draws first and then the other,
   both cards are shown, and suit must be followed throughout.
2. A card set aside goes to the winner of the last trick and is worth what it is worth there, but is
   no part of that trick.
"""

from __future__ import annotations

from collections.abc import Sequence

from tressette.rules.actions import Signal
from tressette.rules.cards import (
    ACE_OF_BASTONI,
    BITS,
    STRENGTH,
    SUIT_MASKS,
    SUIT_OF,
    THIRDS,
    Card,
    thirds_of,
)
from tressette.rules.events import CARD_PLAYED, CardDrawn, CardPlayed, Event, trick_won
from tressette.rules.layout import Layout, turn_order
from tressette.rules.ruleset import RuleSet


class Deal:
    """The cards of one deal in play. Changed only by its methods, which trust their arguments: the
    match checks what seats send.

    hands, taken: masks by seat; tricks: tricks won by seat; table: the cards of the trick under way,
    from ``leader`` on; turn: the seat to play; trick: number of the trick under way, from 1; stock:
    cards still to be drawn, top first; set_aside: the dealer's discard.
    """

    __slots__ = (
        "_ace_extra",
        "_best",
        "_best_seat",
        "_count",
        "_led",
        "_next",
        "hands",
        "leader",
        "set_aside",
        "stock",
        "table",
        "taken",
        "trick",
        "tricks",
        "turn",
    )

    def __init__(self, rules: RuleSet, layout: Layout, active: Sequence[int], leader: int) -> None:
        players = rules.players
        self.hands = list(layout.hands)
        self.taken = [0] * players
        self.tricks = [0] * players
        self.table: list[Card] = []
        self.stock = layout.stock
        self.set_aside: Card | None = None
        self.leader = self.turn = leader
        self.trick = 1
        self._count = len(active)
        order = turn_order(leader, active, players)
        self._next = [0] * players
        for index, seat in enumerate(order):
            self._next[seat] = order[(index + 1) % len(order)]
        self._ace_extra = rules.ace_thirds - THIRDS[ACE_OF_BASTONI]
        self._best = self._best_seat = self._led = 0

    @property
    def over(self) -> bool:
        """Whether every card has been played."""
        return not self.table and not self.hands[self.turn]

    def playable(self, seat: int) -> int:
        """The cards (a mask) that ``seat`` could play to the trick on the table: those of the suit
        led, or its whole hand if it leads or holds none of them."""
        hand = self.hands[seat]
        if not self.table:
            return hand
        return hand & SUIT_MASKS[self._led] or hand

    def value(self, mask: int) -> int:
        """Value of a set of cards under these rules, in thirds."""
        return thirds_of(mask) + (self._ace_extra if mask & BITS[ACE_OF_BASTONI] else 0)

    def discard(self, seat: int, card: Card) -> None:
        """Set a card of ``seat`` aside for the winner of the last trick."""
        self.hands[seat] ^= BITS[card]
        self.set_aside = card

    def play(self, card: Card, signal: Signal | None, events: list[Event]) -> None:
        """Play a card of the seat whose turn it is; appends what happened to ``events``."""
        seat = self.turn
        self.hands[seat] ^= BITS[card]
        table = self.table
        if not table:
            self._led = SUIT_OF[card]
            self._best, self._best_seat = card, seat
        elif SUIT_OF[card] == self._led and STRENGTH[card] > STRENGTH[self._best]:
            self._best, self._best_seat = card, seat
        table.append(card)
        events.append(CARD_PLAYED[seat][card] if signal is None else CardPlayed(seat, card, signal))
        if len(table) < self._count:
            self.turn = self._next[seat]
        else:
            self._finish_trick(events)

    def _finish_trick(self, events: list[Event]) -> None:
        winner = self._best_seat
        mask = 0
        for card in self.table:
            mask |= BITS[card]
        self.taken[winner] |= mask
        self.tricks[winner] += 1
        events.append(trick_won(winner, self.value(mask)))
        self.table = []
        self.trick += 1
        self.leader = self.turn = winner
        if self.stock:
            self._draw(winner, events)
        elif not self.hands[winner] and self.set_aside is not None:
            self.taken[winner] |= BITS[self.set_aside]

    def _draw(self, winner: int, events: list[Event]) -> None:
        for seat, card in zip((winner, self._next[winner]), self.stock, strict=False):
            self.hands[seat] |= BITS[card]
            events.append(CardDrawn(seat, card))
        self.stock = self.stock[2:]
