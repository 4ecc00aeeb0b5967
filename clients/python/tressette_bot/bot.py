"""A bot: one method to write, ``choose``; everything else has a default that suits most games.

One instance plays all its matches, many at once; what belongs to a match is in its ``View`` (and in
``view.notes``). The client calls the methods one at a time, in the thread of ``run``, and sends each
answer when it is decided. While a method runs nothing else happens in the client, signs of life
included. An exception in any of them is a crash: it ends ``run`` or ``play`` unchanged, and the arena
treats the bot's matches by its policy for bots that vanish.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from tressette.rules.accuse import Declaration
from tressette.rules.actions import Signal
from tressette.rules.cards import STRENGTH, THIRDS, Card
from tressette.rules.ruleset import POINT, FirstTo, Objective

from tressette_bot.view import View


class Bot(ABC):
    """Derive from this and write ``choose``.

    name: what the bot calls itself, 1 to 64 letters, digits, ".", "_", "-"; where it is empty the client
    takes TRESSETTE_BOT_NAME, then the name of the class. version: at most 64 characters, for the
    record. max_matches: how many matches it takes at once on each session. Clocks run from the moment a
    turn is sent, so a bot that thinks long should take few; 64 suits one that answers in microseconds.
    """

    name: str = ""
    version: str = ""
    max_matches: int = 64

    @abstractmethod
    def choose(self, view: View) -> Card:
        """The card to play: one of ``view.legal``, which is never empty here."""

    def choose_many(self, views: Sequence[View]) -> Sequence[Card]:
        """The cards for several matches at once, in the order of ``views``. Override it where a batch is
        cheaper (a neural network); it is then called with all that is asked at one moment, and
        ``choose`` is not called by the client."""
        return [self.choose(view) for view in views]

    def declare(self, view: View) -> Iterable[Declaration]:
        """Which of ``view.declarable``, never empty here, to declare before the card. Default: all of
        them; they are worth points at once."""
        return view.declarable

    def discard(self, view: View) -> Card:
        """The card that the dealer of three sets aside for the winner of the last trick: one of
        ``view.discards``. Default: where points are avoided the strongest card, the most valuable among
        equals; where they are wanted the weakest of those worth least. Deck order decides the rest."""
        if view.rules.objective is Objective.LEAST:
            return max(view.discards, key=lambda card: (STRENGTH[card], THIRDS[card]))
        return min(view.discards, key=lambda card: (THIRDS[card], STRENGTH[card]))

    def monte(self, view: View) -> bool:
        """Whether to void the deal, asked with a hand worth under one point. Default: only where points
        are wanted."""
        return view.rules.objective is Objective.MOST

    def call_out(self, view: View) -> bool:
        """Whether to claim, instead of playing a card, that the own side has reached the target; a wrong
        claim loses 11 points. Default: exactly when the claim is right, which the view can tell."""
        end = view.rules.end
        if not isinstance(end, FirstTo):
            return False
        side_of, side = view.rules.side_of, view.side
        thirds = sum(value for seat, value in enumerate(view.deal.thirds) if side_of(seat) == side)
        return view.totals[side] + thirds // 3 * POINT >= end.target * POINT

    def signal(self, view: View, card: Card) -> Signal | None:
        """The signal to go with ``card``, asked of the leader of a trick where the rules have signals.
        Default: none."""
        return None

    def match_started(self, view: View) -> None:  # noqa: B027  # optional
        """A match begins; nothing has been dealt yet."""

    def match_ended(self, view: View, ranks: Sequence[int], totals: Sequence[int]) -> None:  # noqa: B027
        """A match is over. ranks: by side, 1 is best, ties share, empty for a void match; totals: by
        side, in sixths of a point."""
