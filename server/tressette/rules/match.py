"""A match: deals, declarations, scores and the end, as a state machine that turns answers into events.

Source: the decisions open to a player are those of 001 (declare), 004 (declare, monte, call out), 000
(discard) and 003 (signal). Scores and the end are in ``scoring`` and ``standing``.

One verifier serves everything: ``check`` raises what is wrong with an answer, ``can`` asks it,
``act`` checks and then does. ``legal`` lists what ``check`` accepts. An answer is verified whole before
any part of it takes effect, so a refused one changes nothing.

Decisions:
1. The first dealer is seat 0. A void deal keeps its dealer; after ten in a row the deal is played.
2. Drawn partners: the cards of the draw are given one at a time (004), whatever the packets of the
   deals. The holder of the 5 of denari changes places with whoever sits opposite the holder of the 4,
   who leads the first deal; the first dealer is at that player's left. Both in one hand: the 6 instead
   of the 5; all three: the draw is repeated. Seats in all later events are the seats after the draw.
3. Before the first lead the order is: monte, the dealer's discard, declarations in turn order. Only
   seats that hold something to decide on are asked.
4. Automatic declarations are made as soon as the window is open for that seat's cards: before the
   first lead, or whenever its turn comes.
5. Tie-break deals have neither declarations nor monte.
6. ``four_of_denari_first_deal``: the first cards are handed out by seat 0; once the holder of the 4 is
   known, the dealer of that deal is the seat at that player's left. A dealer of three who discards is
   the one who handed out.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from tressette.rules.accuse import Combination, Declaration, declarations
from tressette.rules.actions import (
    NOTHING,
    Action,
    CallMonte,
    CallOut,
    Declare,
    Discard,
    Legal,
    PlayCard,
    Signal,
)
from tressette.rules.cards import BITS, FOUR_OF_DENARI, Card, cards_of, parse_card
from tressette.rules.deal import Deal
from tressette.rules.deck import DeckSource, Phase
from tressette.rules.errors import ActionError, IllegalAction, MalformedAction, NotYourTurn, Refusal
from tressette.rules.events import (
    CalledOut,
    CardDiscarded,
    DealEnd,
    DealScored,
    DealStarted,
    DealVoided,
    DeclarationMade,
    Event,
    MatchEnded,
    PartnersDrawn,
    SideEliminated,
    SideScore,
)
from tressette.rules.layout import Layout, cards_in_play, lay_out, right_of, turn_order
from tressette.rules.ruleset import (
    POINT,
    Accuse,
    AccuseWindow,
    FirstLead,
    FirstTo,
    Monte,
    Partners,
    RuleSet,
    Signals,
)
from tressette.rules.ruleset import (
    CallOut as CallOutRule,
)
from tressette.rules.scoring import (
    Counted,
    Recorded,
    Revoke,
    score_deal,
    score_revoke,
    score_wrong_call_out,
    whole_points,
    wins_match,
)
from tressette.rules.standing import Standing

MAX_VOID_DEALS: Final = 10
_FIVE_OF_DENARI: Final = parse_card("5d")
_SIX_OF_DENARI: Final = parse_card("6d")


class Stage(Enum):
    """What the match is waiting for."""

    MONTE = auto()
    DISCARD = auto()
    DECLARE = auto()
    PLAY = auto()
    OVER = auto()


class Match:
    """The state of one match; ``start`` begins it, ``act`` moves it on.

    stage: what is asked now; pending: the seats of which it is asked, in turn order (several only for
    monte); standing: totals and places; deal: the deal under way; phase, number, attempt: which deck
    it was dealt from; dealer: its dealer; seating: by the seats as first taken, the seat each player
    has (only a draw of partners changes it); giver: who hands the cards out (decision 6).
    """

    def __init__(self, rules: RuleSet, decks: DeckSource) -> None:
        self.rules = rules
        self.standing = Standing(rules)
        self.stage = Stage.OVER
        self.pending: tuple[int, ...] = ()
        self.seating: tuple[int, ...] = tuple(range(rules.players))
        self.phase, self.number, self.attempt = Phase.MAIN, 1, 1
        self.dealer = 0
        self.giver = 0
        self._decks = decks
        self._layout: Layout
        self.deal: Deal
        self._leader_of_draw: int | None = None
        self._declared: list[set[tuple[Combination, str]]] = []
        self._declared_points: list[int] = []

    def __repr__(self) -> str:
        return f"<Match {self.phase.name} deal {self.number} {self.stage.name} pending {self.pending}>"

    @property
    def over(self) -> bool:
        """Whether the match has ended."""
        return self.standing.over

    @property
    def active(self) -> tuple[int, ...]:
        """The seats that play the deal under way."""
        if self.rules.pairs:
            return (0, 1, 2, 3)
        return self.standing.active

    # -- asking ---------------------------------------------------------------------------------

    def legal(self, seat: int) -> Legal:
        """Everything that ``seat`` may answer now."""
        if seat not in self.pending:
            return NOTHING
        if self.stage is Stage.PLAY:
            return Legal(
                cards=self.deal.playable(seat),
                declarations=self.declarable(seat),
                call_out=self.rules.call_out is CallOutRule.OWN,
                signals=self._may_signal(),
            )
        if self.stage is Stage.MONTE:
            return Legal(monte=True)
        if self.stage is Stage.DISCARD:
            return Legal(discards=self.deal.hands[seat])
        return Legal(declarations=self.declarable(seat))

    def declarable(self, seat: int) -> tuple[Declaration, ...]:
        """The declarations that ``seat`` holds, has not made, and could make now (if it is asked)."""
        if self.rules.accuse is Accuse.OFF or not self._window_open(seat):
            return ()
        held = declarations(self.deal.hands[seat], self.rules.napoli_extension)
        return tuple(one for one in held if one.key not in self._declared[seat])

    def check(self, seat: int, actions: Sequence[Action]) -> None:
        """Raise the ActionError that says why ``act`` would refuse this answer, if it would."""
        if seat not in self.pending:
            self._refuse_if_over()
            raise NotYourTurn(Refusal.NOT_YOUR_TURN, f"seat {seat} is not asked; pending: {self.pending}")
        rest = self._check_declarations(seat, actions)
        if self.stage is Stage.PLAY:
            self._check_play(seat, rest)
        elif self.stage is Stage.DISCARD:
            self._check_discard(seat, rest)
        else:
            self._check_optional(rest)

    def can(self, seat: int, actions: Sequence[Action]) -> bool:
        """Whether ``act`` would accept this answer."""
        try:
            self.check(seat, actions)
        except ActionError:
            return False
        return True

    # -- doing ----------------------------------------------------------------------------------

    def start(self) -> list[Event]:
        """Deal the first deal; returns the events so far. Call it once."""
        events: list[Event] = []
        if self.rules.partners is Partners.DRAWN:
            self._draw_partners(events)
        self._start_deal(events)
        return events

    def act(self, seat: int, actions: Sequence[Action]) -> list[Event]:
        """Apply an answer of ``seat``; returns what happened. Raises ActionError, changing nothing."""
        self.check(seat, actions)
        events: list[Event] = []
        for action in actions:
            self._apply(seat, action, events)
        if not actions or type(actions[-1]) is Declare:
            self._decline(seat, events)
        return events

    def revoke(self, seat: int, policy: Revoke) -> list[Event]:
        """End the deal by a fault of ``seat``, as a match's fault policy wants it (003).

        Raises NotYourTurn if the match is over.
        """
        self._refuse_if_over()
        events: list[Event] = []
        side = self.rules.side_of(seat)
        points = score_revoke(self.rules, policy, side, self.standing.active)
        self._close_deal(Recorded(points, points, None), DealEnd.REVOKE, events)
        return events

    def forfeit(self, seat: int) -> list[Event]:
        """End the match now; the side of ``seat`` comes last. Raises NotYourTurn if it is over."""
        self._refuse_if_over()
        self.standing.forfeit(self.rules.side_of(seat))
        events: list[Event] = []
        self._end_match(events, forfeited=seat)
        return events

    def _refuse_if_over(self) -> None:
        if self.over:
            raise NotYourTurn(Refusal.MATCH_OVER, "the match is over")

    # -- verifying ------------------------------------------------------------------------------

    def _check_declarations(self, seat: int, actions: Sequence[Action]) -> Sequence[Action]:
        """Verify the declarations that open an answer; returns the rest of it."""
        count = 0
        for action in actions:
            if type(action) is not Declare:
                break
            count += 1
        if not count:
            return actions
        if self.rules.accuse is Accuse.OFF:
            raise IllegalAction(Refusal.ACCUSE_OFF, "declarations are not played here")
        if self.stage not in (Stage.PLAY, Stage.DECLARE) or not self._window_open(seat):
            raise IllegalAction(Refusal.DECLARATION_WINDOW_CLOSED, "declarations cannot be made now")
        held = declarations(self.deal.hands[seat], self.rules.napoli_extension)
        made = set(self._declared[seat])
        for action in actions[:count]:
            assert isinstance(action, Declare)
            one = action.declaration
            if type(one) is not Declaration:
                raise MalformedAction(Refusal.MALFORMED, f"{one!r} is no declaration")
            if one.key in made:
                raise IllegalAction(
                    Refusal.DECLARATION_ALREADY_MADE, f"{one.kind} {one.of} was declared before"
                )
            if one not in held:
                raise IllegalAction(
                    Refusal.DECLARATION_NOT_HELD, f"{one.kind} {one.of} is not in the hand like that"
                )
            made.add(one.key)
        return actions[count:]

    def _check_play(self, seat: int, rest: Sequence[Action]) -> None:
        if not rest:
            raise IllegalAction(Refusal.CARD_MISSING, "the answer has no card")
        last = rest[0]
        if len(rest) > 1:
            raise MalformedAction(
                Refusal.MALFORMED, "nothing may follow a card or a call-out, and declarations open an answer"
            )
        if type(last) is PlayCard:
            self._check_card(seat, last.card, last.signal)
        elif type(last) is CallOut:
            if self.rules.call_out is CallOutRule.OFF:
                raise IllegalAction(Refusal.CALL_OUT_OFF, "calling out is not played here")
        elif type(last) is CallMonte:
            raise IllegalAction(Refusal.MONTE_NOT_ALLOWED, "monte comes before everything else")
        elif type(last) is Discard:
            raise IllegalAction(Refusal.DISCARD_NOT_ASKED, "no discard is asked for now")
        else:
            raise MalformedAction(Refusal.MALFORMED, f"{last!r} is no action")

    def _check_card(self, seat: int, card: Card, signal: Signal | None) -> None:
        _check_is_card(card)
        playable = self.deal.playable(seat)
        if not BITS[card] & playable:
            if not BITS[card] & self.deal.hands[seat]:
                raise IllegalAction(Refusal.CARD_NOT_HELD, f"{card} is not in the hand")
            raise IllegalAction(Refusal.MUST_FOLLOW_SUIT, f"{card} does not follow the suit led")
        if signal is None:
            return
        if type(signal) is not Signal:
            raise MalformedAction(Refusal.MALFORMED, f"{signal!r} is no signal")
        if not self._may_signal():
            if self.rules.signals is Signals.OFF:
                raise IllegalAction(Refusal.SIGNALS_OFF, "signals are not played here")
            raise IllegalAction(Refusal.ONLY_LEADER_SIGNALS, "only the leader of a trick may signal")

    def _check_discard(self, seat: int, rest: Sequence[Action]) -> None:
        if not rest:
            raise IllegalAction(Refusal.CARD_MISSING, "the dealer must set a card aside")
        if len(rest) > 1:
            raise MalformedAction(Refusal.MALFORMED, "nothing may follow a discard")
        action = rest[0]
        if type(action) is not Discard:
            _check_is_action(action)
            raise IllegalAction(Refusal.NOT_ASKED, "only a discard is asked for now")
        _check_is_card(action.card)
        if not BITS[action.card] & self.deal.hands[seat]:
            raise IllegalAction(Refusal.CARD_NOT_HELD, f"{action.card} is not in the hand")

    def _check_optional(self, rest: Sequence[Action]) -> None:
        if not rest:
            return
        if len(rest) > 1:
            raise MalformedAction(Refusal.MALFORMED, "one decision at a time")
        if type(rest[0]) is CallMonte:
            if self.stage is not Stage.MONTE:
                raise IllegalAction(Refusal.MONTE_NOT_ALLOWED, "monte comes before everything else")
        else:
            _check_is_action(rest[0])
            raise IllegalAction(Refusal.NOT_ASKED, "no card is asked for now")

    def _may_signal(self) -> bool:
        return self.rules.signals is Signals.ON and not self.deal.table

    def _window_open(self, seat: int) -> bool:
        if self.phase is not Phase.MAIN or self.stage is Stage.MONTE or self.stage is Stage.DISCARD:
            return False
        window = self.rules.accuse_window
        if window is AccuseWindow.BEFORE_FIRST_LEAD:
            return self.stage is Stage.DECLARE
        if window is AccuseWindow.FIRST_TURN:
            return self.deal.trick == 1
        return self.deal.trick <= 3

    # -- applying -------------------------------------------------------------------------------

    def _apply(self, seat: int, action: Action, events: list[Event]) -> None:
        kind = type(action)
        if kind is PlayCard:
            assert isinstance(action, PlayCard)
            self.deal.play(action.card, action.signal, events)
            self._next_turn(events)
        elif kind is Declare:
            assert isinstance(action, Declare)
            self._declare(seat, action.declaration, events)
        elif kind is Discard:
            assert isinstance(action, Discard)
            self.deal.discard(seat, action.card)
            events.append(CardDiscarded(seat, action.card))
            self._begin_declarations(events)
        elif kind is CallMonte:
            self._void(seat, events)
        else:
            self._call_out(seat, events)

    def _decline(self, seat: int, events: list[Event]) -> None:
        """An answer without a card ends the seat's part in monte or in the declarations."""
        self.pending = tuple(other for other in self.pending if other != seat)
        if self.pending:
            return
        if self.stage is Stage.MONTE:
            self._begin_discard(events)
        else:
            self._ask_declarations(seat, events)

    def _declare(self, seat: int, one: Declaration, events: list[Event]) -> None:
        self._declared[seat].add(one.key)
        side = self.rules.side_of(seat)
        self._declared_points[side] += one.points * POINT
        self.standing.declare(side, one.points * POINT)
        events.append(DeclarationMade(seat, one))

    def _void(self, seat: int, events: list[Event]) -> None:
        events.append(DealVoided(seat))
        self.attempt += 1
        self._start_deal(events)

    def _call_out(self, seat: int, events: list[Event]) -> None:
        side = self.rules.side_of(seat)
        assert isinstance(self.rules.end, FirstTo)
        points = whole_points(self.piles())
        right = self.standing.totals[side] + (points[side] or 0) >= self.rules.end.target * POINT
        events.append(CalledOut(seat, right))
        if right:
            self._close_deal(Recorded(points, points, None), DealEnd.CALL_OUT, events, caller=side)
            return
        self.standing.declare(side, -self._declared_points[side])
        self._declared_points[side] = 0
        points = score_wrong_call_out(self.rules, side)
        self._close_deal(Recorded(points, points, None), DealEnd.WRONG_CALL_OUT, events)

    # -- the course of a deal -------------------------------------------------------------------

    def _draw_partners(self, events: list[Event]) -> None:
        """Decision 2."""
        singly = self.rules.replace(packets="singly")
        for attempt in range(1, 1 << 16):
            deck = self._decks(Phase.DRAW, 1, attempt, cards_in_play(singly, 4))
            hands = lay_out(deck, singly, (0, 1, 2, 3), self.giver).hands
            four, five, six = (
                next(seat for seat in range(4) if hands[seat] & BITS[card])
                for card in (FOUR_OF_DENARI, _FIVE_OF_DENARI, _SIX_OF_DENARI)
            )
            partner = five if five != four else six
            if partner == four:
                events.append(PartnersDrawn(attempt, hands, self.seating))
                continue
            seats = [0, 1, 2, 3]
            opposite = (four + 2) % 4
            seats[partner], seats[opposite] = opposite, partner
            self.seating = tuple(seats)
            self._leader_of_draw = four
            self.giver = (four - 1) % 4
            events.append(PartnersDrawn(attempt, hands, self.seating))
            return
        raise AssertionError("a deck source that always gives one hand the 4, 5 and 6 of denari")

    def _start_deal(self, events: list[Event]) -> None:
        while True:
            self._deal_cards(events)
            poor = self._poor_hands()
            if poor and self.rules.monte is Monte.AUTOMATIC:
                events.append(DealVoided(poor[0]))
                self.attempt += 1
            elif poor:
                self.stage, self.pending = Stage.MONTE, poor
                return
            else:
                self._begin_discard(events)
                return

    def _deal_cards(self, events: list[Event]) -> None:
        active = self.active
        deck = self._decks(self.phase, self.number, self.attempt, cards_in_play(self.rules, len(active)))
        layout = lay_out(deck, self.rules, active, self.giver)
        leader = self._find_leader(layout)
        self._layout = layout
        self.deal = Deal(self.rules, layout, active, leader)
        self._declared = [set() for _ in range(self.rules.players)]
        self._declared_points = [0] * self.rules.side_count
        events.append(
            DealStarted(
                self.phase, self.number, self.attempt, self.dealer, leader, layout.hands, len(layout.stock)
            )
        )

    def _find_leader(self, layout: Layout) -> int:
        """Who leads the first trick; settles who counts as the dealer on the way."""
        players = self.rules.players
        self.dealer = self.giver
        dealer_right = right_of(self.giver, self.active, players)
        first = self.phase is Phase.MAIN and self.number == 1
        if first and self._leader_of_draw is not None:
            return self._leader_of_draw
        rule = self.rules.first_lead
        if rule is FirstLead.DEALER_RIGHT or (rule is FirstLead.FOUR_OF_DENARI_FIRST_DEAL and not first):
            return dealer_right
        bit = BITS[FOUR_OF_DENARI]
        holder = next((seat for seat, hand in enumerate(layout.hands) if hand & bit), None)
        if holder is None:
            return dealer_right
        if rule is FirstLead.FOUR_OF_DENARI_FIRST_DEAL:
            self.dealer = (holder - 1) % players
        return holder

    def _poor_hands(self) -> tuple[int, ...]:
        """Seats that may go monte, in turn order."""
        if self.rules.monte is Monte.OFF or self.phase is not Phase.MAIN or self.attempt > MAX_VOID_DEALS:
            return ()
        order = turn_order(self.deal.leader, self.active, self.rules.players)
        return tuple(seat for seat in order if self.deal.value(self.deal.hands[seat]) < 3)

    def _begin_discard(self, events: list[Event]) -> None:
        if self._layout.discards:
            self.stage, self.pending = Stage.DISCARD, (self.giver,)
        else:
            self._begin_declarations(events)

    def _begin_declarations(self, events: list[Event]) -> None:
        rules = self.rules
        if (
            rules.accuse is Accuse.OFF
            or rules.accuse_window is not AccuseWindow.BEFORE_FIRST_LEAD
            or self.phase is not Phase.MAIN
        ):
            self._begin_play(events)
            return
        self.stage = Stage.DECLARE
        self._ask_declarations(None, events)

    def _ask_declarations(self, after: int | None, events: list[Event]) -> None:
        """Ask the next seat in turn order that holds something, or go on to the first lead."""
        order = turn_order(self.deal.leader, self.active, self.rules.players)
        start = 0 if after is None else order.index(after) + 1
        for seat in order[start:]:
            held = self.declarable(seat)
            if held and self.rules.accuse is Accuse.OPTIONAL:
                self.pending = (seat,)
                return
            for one in held:
                self._declare(seat, one, events)
        self._begin_play(events)

    def _begin_play(self, events: list[Event]) -> None:
        self.stage = Stage.PLAY
        self.pending = (self.deal.turn,)
        if self.rules.accuse is Accuse.AUTOMATIC:
            self._declare_automatically(events)

    def _next_turn(self, events: list[Event]) -> None:
        deal = self.deal
        if not deal.table and not deal.hands[deal.turn]:
            self._score(events)
            return
        self.pending = (deal.turn,)
        if self.rules.accuse is Accuse.AUTOMATIC:
            self._declare_automatically(events)

    def _declare_automatically(self, events: list[Event]) -> None:
        seat = self.deal.turn
        for one in self.declarable(seat):
            self._declare(seat, one, events)

    # -- the end of a deal ----------------------------------------------------------------------

    def piles(self) -> tuple[Counted | None, ...]:
        """What each side has taken so far; None for a side that does not play this deal."""
        deal, rules = self.deal, self.rules
        active = self.standing.active
        piles: list[Counted | None] = []
        for side in range(rules.side_count):
            seats = rules.seats_of(side)
            mask = 0
            for seat in seats:
                mask |= deal.taken[seat]
            tricks = sum(deal.tricks[seat] for seat in seats)
            piles.append(Counted(deal.value(mask), tricks) if side in active else None)
        return tuple(piles)

    def _score(self, events: list[Event]) -> None:
        last = self.rules.side_of(self.deal.turn)
        recorded = score_deal(self.rules, self.piles(), last)
        self._close_deal(recorded, DealEnd.PLAYED, events, last_trick=last)

    def _close_deal(
        self,
        recorded: Recorded,
        ended_by: DealEnd,
        events: list[Event],
        *,
        last_trick: int | None = None,
        caller: int | None = None,
    ) -> None:
        """Count the deal, say so, and deal the next one or end the match."""
        piles = self.piles()
        standing = self.standing
        out_before = [deal is not None for deal in standing.out_after]
        winner = recorded.cappotto if wins_match(self.rules, recorded) else None
        if caller is not None:
            standing.call_out(recorded.points, caller)
        elif self.phase is Phase.TIE_BREAK:
            standing.record_extra(recorded.points)
        else:
            standing.record(recorded.points, winner)
        events.append(self._deal_scored(recorded, piles, ended_by, last_trick))
        for side, deal in enumerate(standing.out_after):
            if deal is not None and not out_before[side]:
                events.append(SideEliminated(side))
        if standing.over:
            self._end_match(events)
        else:
            self._advance(events)

    def _deal_scored(
        self,
        recorded: Recorded,
        piles: Sequence[Counted | None],
        ended_by: DealEnd,
        last_trick: int | None,
    ) -> DealScored:
        sides = tuple(
            None if pile is None else SideScore(pile.thirds, pile.tricks, declared, counted or 0, points or 0)
            for pile, declared, counted, points in zip(
                piles, self._declared_points, recorded.counted, recorded.points, strict=True
            )
        )
        return DealScored(
            phase=self.phase,
            number=self.number,
            ended_by=ended_by,
            sides=sides,
            totals=tuple(self.standing.totals),
            last_trick=last_trick,
            cappotto=recorded.cappotto,
            set_aside=self.deal.set_aside,
        )

    def _advance(self, events: list[Event]) -> None:
        if self.standing.tied and self.phase is Phase.MAIN:
            self.phase, self.number = Phase.TIE_BREAK, 1
        else:
            self.number += 1
        self.attempt = 1
        self.giver = right_of(self.dealer, self.active, self.rules.players)
        self._start_deal(events)

    def _end_match(self, events: list[Event], forfeited: int | None = None) -> None:
        standing = self.standing
        assert standing.reason is not None
        self.stage, self.pending = Stage.OVER, ()
        events.append(MatchEnded(standing.reason, tuple(standing.totals), standing.ranks(), forfeited))

    # -- comparing ------------------------------------------------------------------------------

    def state(self) -> tuple[object, ...]:
        """Everything that decides how the match goes on, comparable by ``==`` (used by replay)."""
        deal, standing = self.deal, self.standing
        return (
            self.stage,
            self.pending,
            self.seating,
            (self.phase, self.number, self.attempt, self.dealer, self.giver),
            (
                tuple(standing.totals),
                tuple(standing.out_after),
                standing.tied,
                standing.reason,
                standing.ranks(),
            ),
            (tuple(deal.hands), tuple(deal.taken), tuple(deal.tricks), tuple(deal.table)),
            (deal.leader, deal.turn, deal.trick, deal.stock, deal.set_aside),
            (tuple(frozenset(made) for made in self._declared), tuple(self._declared_points)),
        )

    def hand(self, seat: int) -> tuple[Card, ...]:
        """The cards that ``seat`` holds, in deck order."""
        return cards_of(self.deal.hands[seat])


def _check_is_action(action: object) -> None:
    if not isinstance(action, Action):
        raise MalformedAction(Refusal.MALFORMED, f"{action!r} is no action")


def _check_is_card(card: object) -> None:
    if not isinstance(card, Card):
        raise MalformedAction(Refusal.UNKNOWN_CARD, f"{card!r} is no card")
    if not 0 <= card < 40:
        raise MalformedAction(Refusal.UNKNOWN_CARD, f"{int(card)} is no card")
