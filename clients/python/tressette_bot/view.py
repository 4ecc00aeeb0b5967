"""What a bot sees of one seat of one match.

Vocabulary: the **turn** is the question that the arena asks now: hand, table and legal cards are of the
turn and complete without any history. The **deal** is what has been seen of the deal under way since it
was dealt. A **mask** is a set of cards as an integer, bit ``card`` set for each (see
``tressette.rules.cards``). Card values are **thirds** of a point, totals **sixths**.

Decisions:
1. Whatever a bot does not read is not worked out: cards of the turn are unpacked when asked for, and
   events wait until the history is read, the match ends or too many have gathered.
2. Events that are known already (sent again after a reconnect) are skipped by their number; a gap in
   the numbers is the arena's fault and is refused, since a view with a hole would mislead silently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from tressette.rules.accuse import Declaration
from tressette.rules.actions import Signal
from tressette.rules.cards import BITS, FULL_DECK, STRENGTH, SUIT_LETTERS, SUIT_OF, Card, Suit, mask_of
from tressette.rules.deck import Phase
from tressette.rules.ruleset import POINT, Accuse, CallOut, Layout3, RuleSet, Signals
from tressette.v1 import arena_service_pb2, event_pb2, view_pb2

from tressette_bot.errors import ProtocolViolated
from tressette_bot.messages import CARD_OF, PHASES, SIGNALS, declaration_from, rules_from

_MAX_UNREAD: Final = 64  # updates; they keep the batches alive in which they came


class Trick(NamedTuple):
    """A complete trick. seats, cards: in the order of play; thirds: value of the cards; signal: the
    leader's, if any."""

    seats: Sequence[int]
    cards: Sequence[Card]
    winner: int
    thirds: int
    signal: Signal | None


class Deal:
    """What this seat has seen of the deal under way. To be read only.

    phase, number, attempt: which deal it is; dealer; leader: of the first trick; active: the seats that
    play it, rising; dealt: the own hand as dealt (mask); in_play: all cards of the deal (mask).

    tricks: complete tricks, oldest first; trick_seats, trick_cards, trick_mask, signal: the
    trick under way.
    played: every card played (mask). By seat: taken (mask), thirds (value of those), tricks_won, shown
    (mask of the cards known to be in that hand: declared or drawn openly, not yet played), voids (bit
    ``suit`` set: the seat has failed to follow that suit and drawn none of it since).

    declarations: (seat, combination) as they were made; stock: cards left to draw; set_aside: the card
    that the dealer of three set aside, None where there is none or it is hidden.
    """

    __slots__ = (
        "active",
        "attempt",
        "dealer",
        "dealt",
        "declarations",
        "in_play",
        "leader",
        "number",
        "phase",
        "played",
        "set_aside",
        "shown",
        "signal",
        "stock",
        "taken",
        "thirds",
        "trick_cards",
        "trick_mask",
        "trick_seats",
        "tricks",
        "tricks_won",
        "voids",
    )

    def __init__(self, rules: RuleSet, started: event_pb2.DealStarted) -> None:
        seats = rules.players
        self.phase: Phase = PHASES[started.phase]
        self.number = started.number
        self.attempt = started.attempt
        self.dealer = started.dealer
        self.leader = started.leader
        self.active: tuple[int, ...] = tuple(started.active)
        self.dealt = mask_of(CARD_OF[value] for value in started.hand.cards)
        self.in_play = FULL_DECK
        if len(self.active) == 3 and rules.layout_3 is Layout3.REMOVE_CARD:
            self.in_play ^= BITS[rules.removed_card]
        self.stock = started.stock
        self.set_aside: Card | None = None
        self.played = 0
        self.taken = [0] * seats
        self.thirds = [0] * seats
        self.tricks_won = [0] * seats
        self.shown = [0] * seats
        self.voids = [0] * seats
        self.tricks: list[Trick] = []
        self.trick_mask = 0
        self.trick_seats: list[int] = []
        self.trick_cards: list[Card] = []
        self.signal: Signal | None = None
        self.declarations: list[tuple[int, Declaration]] = []


class View:
    """One seat of one match, kept up to date by the client; a bot reads it and changes nothing.

    For the whole match: handle (opaque), rules, preset (may be empty), attempt (of the match), seat,
    side, players (number of seats), partner (seat or None), partner_is_copy, names (by seat; empty in
    an anonymous match), bot_seed (32 bytes), deck_commitment, illegal_retries, initial_clock.

    ``event`` is the number of the last event received, ``turn_id`` that of the last turn, both 0 before
    the first; plain: whether no declaration, call-out or signal can go with a card. ``notes`` is free for
    the bot's own use in this match and None at first.
    """

    __slots__ = (
        "_ask",
        "_deal",
        "_ended",
        "_hand",
        "_legal",
        "_rng",
        "_totals",
        "_turn",
        "_unread",
        "attempt",
        "bot_seed",
        "deck_commitment",
        "event",
        "handle",
        "illegal_retries",
        "initial_clock",
        "names",
        "notes",
        "partner",
        "partner_is_copy",
        "plain",
        "players",
        "preset",
        "rules",
        "seat",
        "side",
        "turn_id",
    )

    def __init__(self, handle: str, started: arena_service_pb2.MatchStarted) -> None:
        """A match of which nothing has happened yet. Raises UnknownRules."""
        rules = rules_from(started.rules)
        self.handle = handle
        self.rules = rules
        self.preset = started.preset
        self.attempt = started.attempt
        self.seat = started.seat
        self.players = rules.players
        self.side = rules.side_of(self.seat)
        self.partner: int | None = (self.seat + 2) % 4 if rules.pairs else None
        self.partner_is_copy = started.partner_is_copy
        self.names: tuple[str, ...] = tuple(started.names)
        self.bot_seed = started.bot_seed
        self.deck_commitment = started.deck_commitment
        self.illegal_retries = started.illegal_retries
        self.initial_clock = started.clock
        # Whether nothing can go with a card under these rules, which spares looking for it.
        self.plain = (
            rules.accuse is not Accuse.OPTIONAL
            and rules.call_out is CallOut.OFF
            and rules.signals is Signals.OFF
        )
        self.notes: Any = None
        self.event = 0
        self.turn_id = 0
        self._turn = arena_service_pb2.MatchUpdate().turn
        self._ask: view_pb2.SeatView = self._turn.view
        self._hand: tuple[Card, ...] | None = None
        self._legal: tuple[Card, ...] | None = None
        self._deal: Deal | None = None
        self._totals: tuple[int, ...] = (0,) * rules.side_count
        self._ended: event_pb2.MatchEnded | None = None
        self._unread: list[Sequence[event_pb2.Event]] = []
        self._rng: Random | None = None

    def __repr__(self) -> str:
        return f"<View {self.preset or 'match'} {self.handle} seat {self.seat} turn {self.turn_id}>"

    # -- the turn -------------------------------------------------------------------------------

    @property
    def hand(self) -> tuple[Card, ...]:
        """The cards held, in deck order, as of the latest turn; empty before the first one."""
        hand = self._hand
        if hand is None:
            hand = self._hand = tuple([CARD_OF[value] for value in self._ask.hand])
        return hand

    @property
    def legal(self) -> tuple[Card, ...]:
        """The cards that may be played now, in deck order; empty when something else is asked."""
        legal = self._legal
        if legal is None:
            legal = self._legal = tuple([CARD_OF[value] for value in self._ask.legal.cards])
        return legal

    @property
    def table(self) -> tuple[Card, ...]:
        """The cards of the trick under way, in the order of play; empty for its leader."""
        return tuple([CARD_OF[value] for value in self._ask.table])

    @property
    def leader(self) -> int:
        """The seat that leads, or led, the trick under way."""
        return self._ask.leader

    @property
    def led(self) -> Suit | None:
        """The suit led; None for the leader."""
        table = self._ask.table
        return Suit(SUIT_OF[table[0] - 1]) if table else None

    @property
    def order(self) -> tuple[int, ...]:
        """The seats of the trick under way in the order of play, from the leader on."""
        leader, players = self._ask.leader, self.players
        return tuple(sorted(self.deal.active, key=lambda seat: (seat - leader) % players))

    @property
    def winning(self) -> tuple[int, Card] | None:
        """The seat and the card that win the trick so far; None for the leader."""
        table = self.table
        if not table:
            return None
        best, place = table[0], 0
        for index, card in enumerate(table):
            if SUIT_OF[card] == SUIT_OF[best] and STRENGTH[card] > STRENGTH[best]:
                best, place = card, index
        return self.order[place], best

    @property
    def discards(self) -> tuple[Card, ...]:
        """The cards that may be set aside (the dealer of three); empty when that is not asked."""
        return tuple([CARD_OF[value] for value in self._ask.legal.discards])

    @property
    def declarable(self) -> tuple[Declaration, ...]:
        """The combinations that may be declared now."""
        messages = self._ask.legal.declarations
        return tuple([declaration_from(one) for one in messages]) if messages else ()

    @property
    def may_call_out(self) -> bool:
        """Whether the seat may claim that its side has reached the target."""
        return self._ask.legal.call_out

    @property
    def may_monte(self) -> bool:
        """Whether the seat may void the deal."""
        return self._ask.legal.monte

    @property
    def may_signal(self) -> bool:
        """Whether the card may carry a signal."""
        return self._ask.legal.signals

    @property
    def clock(self) -> view_pb2.Clock | None:
        """The time for this turn, in milliseconds: move_ms, bank_ms, increment_ms; None: no limit."""
        return self._turn.clock if self._turn.HasField("clock") else None

    @property
    def sent_unix_ms(self) -> int:
        """When the arena sent the turn, in milliseconds since 1970-01-01 UTC."""
        return self._turn.sent_unix_ms

    # -- the history ----------------------------------------------------------------------------

    @property
    def deal(self) -> Deal:
        """What has been seen of the deal under way. Raises AttributeError before the first deal."""
        if self._unread:
            self.catch_up()
        if self._deal is None:
            raise AttributeError("no deal has been dealt yet")
        return self._deal

    @property
    def totals(self) -> tuple[int, ...]:
        """The match totals by side, in sixths, declarations of this deal included."""
        if self._unread:
            self.catch_up()
        return self._totals

    @property
    def unseen(self) -> int:
        """The cards (a mask) that are neither played nor in the own hand nor set aside by this seat:
        those in other hands, in the stock or hidden."""
        deal = self.deal
        unseen = deal.in_play & ~deal.played & ~mask_of(self.hand)
        return unseen if deal.set_aside is None else unseen & ~BITS[deal.set_aside]

    @property
    def ended(self) -> event_pb2.MatchEnded | None:
        """How the match ended; None while it goes on."""
        if self._unread:
            self.catch_up()
        return self._ended

    @property
    def suits(self) -> str:
        """The suit order of the match (four letters, see ``tressette.rules.suits``), told when it has ended;
        empty before, and from an arena that does not say."""
        ended = self.ended
        return "" if ended is None else "".join(SUIT_LETTERS[suit - 1] for suit in ended.suits)

    def is_partner(self, seat: int) -> bool:
        """Whether ``seat`` is the partner's."""
        return seat == self.partner

    @property
    def rng(self) -> Random:
        """Where the bot should take all its chance from: seeded by the match, so play can be repeated."""
        if self._rng is None:
            self._rng = Random(self.bot_seed)
        return self._rng

    # -- for the client -------------------------------------------------------------------------

    def take(self, update: arena_service_pb2.MatchUpdate) -> bool:
        """Take in news of this match; returns whether a turn came with it. Raises ProtocolViolated if
        events are missing."""
        events: Sequence[event_pb2.Event] = update.events
        if events:
            first = update.first_event
            known = self.event
            if first != known + 1:
                if first > known + 1 or first < 1:
                    raise ProtocolViolated(f"{self.handle}: event {first} follows event {known}")
                events = events[known + 1 - first :]
            self.event = known + len(events)
            self._unread.append(events)
            if len(self._unread) > _MAX_UNREAD:
                self.catch_up()
        if not update.HasField("turn"):
            return False
        self._turn = update.turn
        self._ask = self._turn.view
        self.turn_id = self._turn.turn_id
        self._hand = self._legal = None
        return True

    def catch_up(self) -> None:
        """Work the events that have come in into the history."""
        handlers = _HANDLERS
        for events in self._unread:
            for event in events:
                kind = event.WhichOneof("kind")
                if kind is not None and kind in handlers:
                    handlers[kind](self, getattr(event, kind))
        self._unread.clear()

    def _card_played(self, news: event_pb2.CardPlayed) -> None:
        deal = self._deal
        assert deal is not None
        seat, card = news.seat, CARD_OF[news.card]
        bit = BITS[card]
        deal.played |= bit
        deal.trick_mask |= bit
        if deal.shown[seat]:
            deal.shown[seat] &= ~bit
        cards = deal.trick_cards
        if not cards:
            deal.signal = SIGNALS[news.signal] if news.signal else None
        elif SUIT_OF[cards[0]] != SUIT_OF[card]:
            deal.voids[seat] |= 1 << SUIT_OF[cards[0]]
        cards.append(card)
        deal.trick_seats.append(seat)

    def _trick_won(self, news: event_pb2.TrickWon) -> None:
        deal = self._deal
        assert deal is not None
        winner, thirds = news.seat, news.thirds
        deal.tricks.append(Trick(deal.trick_seats, deal.trick_cards, winner, thirds, deal.signal))
        deal.taken[winner] |= deal.trick_mask
        deal.thirds[winner] += thirds
        deal.tricks_won[winner] += 1
        deal.trick_seats, deal.trick_cards, deal.trick_mask = [], [], 0

    def _card_drawn(self, news: event_pb2.CardDrawn) -> None:
        deal = self._deal
        assert deal is not None
        card = CARD_OF[news.card]
        deal.stock -= 1
        deal.shown[news.seat] |= BITS[card]
        deal.voids[news.seat] &= ~(1 << SUIT_OF[card])

    def _card_discarded(self, news: event_pb2.CardDiscarded) -> None:
        assert self._deal is not None
        self._deal.set_aside = CARD_OF[news.card] if news.card else None

    def _declaration_made(self, news: event_pb2.DeclarationMade) -> None:
        deal = self._deal
        assert deal is not None
        declaration = declaration_from(news.declaration)
        deal.declarations.append((news.seat, declaration))
        deal.shown[news.seat] |= declaration.cards
        side = self.rules.side_of(news.seat)
        totals = list(self._totals)
        totals[side] += declaration.points * POINT
        self._totals = tuple(totals)

    def _deal_started(self, news: event_pb2.DealStarted) -> None:
        self._deal = Deal(self.rules, news)

    def _deal_scored(self, news: event_pb2.DealScored) -> None:
        self._totals = tuple(news.totals)

    def _match_ended(self, news: event_pb2.MatchEnded) -> None:
        self._totals = tuple(news.totals)
        self._ended = news


# What is not here changes nothing that a view shows: draws of partners are over when the seat is told.
_HANDLERS: Final[dict[str, Callable[[View, Any], None]]] = {
    "card_played": View._card_played,
    "trick_won": View._trick_won,
    "card_drawn": View._card_drawn,
    "card_discarded": View._card_discarded,
    "declaration_made": View._declaration_made,
    "deal_started": View._deal_started,
    "deal_scored": View._deal_scored,
    "match_ended": View._match_ended,
}
