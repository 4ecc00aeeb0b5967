"""Rules values to protobuf messages and back, in one place.

Cards go over the wire as deck index + 1. What is written with every turn is encoded by ``encode``, which
takes the rest from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from tressette.rules import ruleset as rs
from tressette.rules.accuse import Combination, Declaration
from tressette.rules.actions import (
    Action,
    CallMonte,
    CallOut,
    Declare,
    Discard,
    Legal,
    PlayCard,
    Signal,
)
from tressette.rules.cards import CARDS, RANK_LETTERS, SUIT_LETTERS, Card, mask_of
from tressette.rules.deck import Phase
from tressette.rules.errors import MalformedAction, Refusal
from tressette.rules.events import (
    CalledOut,
    CardDiscarded,
    CardDrawn,
    CardPlayed,
    DealEnd,
    DealScored,
    DealStarted,
    DealVoided,
    DeclarationMade,
    Event,
    FaultCommitted,
    FaultEffect,
    FaultKind,
    MatchEnded,
    PartnersDrawn,
    SideEliminated,
    SideScore,
    TrickWon,
    redact,
)
from tressette.rules.standing import EndReason
from tressette.v1 import arena_service_pb2 as arena_pb
from tressette.v1 import card_pb2 as card_pb
from tressette.v1 import event_pb2 as event_pb
from tressette.v1 import rules_pb2 as rules_pb
from tressette.v1 import view_pb2 as view_pb

# -- enums: the members of a rules enum and of its protobuf twin have the same names ----------------


def _twins(members: Iterable[StrEnum], wire: Any, prefix: str) -> dict[StrEnum, int]:
    return {member: wire.Value(f"{prefix}_{member.name}") for member in members}


_RULE_ENUMS: Final[Mapping[str, tuple[type[StrEnum], dict[StrEnum, int]]]] = {
    option: (kind, _twins(kind, wire, prefix))
    for option, kind, wire, prefix in (
        ("objective", rs.Objective, rules_pb.Objective, "OBJECTIVE"),
        ("sides", rs.Sides, rules_pb.Sides, "SIDES"),
        ("partners", rs.Partners, rules_pb.Partners, "PARTNERS"),
        ("first_lead", rs.FirstLead, rules_pb.FirstLead, "FIRST_LEAD"),
        ("packets", rs.Packets, rules_pb.Packets, "PACKETS"),
        ("layout_3", rs.Layout3, rules_pb.Layout3, "LAYOUT3"),
        ("rounding", rs.Rounding, rules_pb.Rounding, "ROUNDING"),
        ("ace_of_bastoni", rs.AceOfBastoni, rules_pb.AceOfBastoni, "ACE_OF_BASTONI"),
        ("cappotto", rs.Cappotto, rules_pb.Cappotto, "CAPPOTTO"),
        ("cappotto_effect", rs.CappottoEffect, rules_pb.CappottoEffect, "CAPPOTTO_EFFECT"),
        ("tie_break", rs.TieBreak, rules_pb.TieBreak, "TIE_BREAK"),
        ("accuse", rs.Accuse, rules_pb.Accuse, "ACCUSE"),
        ("accuse_window", rs.AccuseWindow, rules_pb.AccuseWindow, "ACCUSE_WINDOW"),
        ("napoli_extension", rs.NapoliExtension, rules_pb.NapoliExtension, "NAPOLI_EXTENSION"),
        ("monte", rs.Monte, rules_pb.Monte, "MONTE"),
        ("call_out", rs.CallOut, rules_pb.CallOutRule, "CALL_OUT_RULE"),
        ("signals", rs.Signals, rules_pb.Signals, "SIGNALS"),
    )
}
_SIGNALS: Final = _twins(Signal, event_pb.Signal, "SIGNAL")
_DEAL_ENDS: Final = _twins(DealEnd, event_pb.DealEnd, "DEAL_END")
_END_REASONS: Final = _twins(EndReason, event_pb.MatchEndReason, "MATCH_END_REASON")
_FAULT_KINDS: Final = _twins(FaultKind, event_pb.FaultKind, "FAULT_KIND")
_FAULT_EFFECTS: Final = _twins(FaultEffect, event_pb.FaultEffect, "FAULT_EFFECT")
_PHASES: Final = {phase: event_pb.Phase.Value(f"PHASE_{phase.name}") for phase in Phase}
REASONS: Final = _twins(Refusal, arena_pb.ErrorReason, "ERROR_REASON")
"""The error reason on the wire for each refusal of the rules."""


def _back(table: Mapping[Any, int], value: int) -> Any:
    for member, number in table.items():
        if number == value:
            return member
    raise MalformedAction(Refusal.MALFORMED, f"{value} is no value of {type(next(iter(table))).__name__}")


# -- cards ------------------------------------------------------------------------------------------

WIRE_LISTS: Final = tuple(
    tuple(tuple(10 * suit + rank + 1 for rank in range(10) if bits >> rank & 1) for bits in range(1 << 10))
    for suit in range(4)
)


def wire_cards(mask: int) -> Any:
    """The cards of a mask as wire values, in deck order (typed Any: the stubs want enum values)."""
    denari, coppe, spade, bastoni = WIRE_LISTS
    return (
        denari[mask & 1023] + coppe[mask >> 10 & 1023] + spade[mask >> 20 & 1023] + bastoni[mask >> 30 & 1023]
    )


def to_card(value: int) -> Card:
    """The card of a wire value; raises MalformedAction for any that is not 1 to 40."""
    if not 1 <= value <= 40:
        raise MalformedAction(Refusal.UNKNOWN_CARD, f"{value} is no card")
    return CARDS[value - 1]


def _wire_card(card: Card | None) -> Any:
    return 0 if card is None else card + 1


def _card_or_none(value: int) -> Card | None:
    return None if value == 0 else to_card(value)


# -- rules ------------------------------------------------------------------------------------------


def rules_to_wire(rules: rs.RuleSet) -> rules_pb.RuleSet:
    """The resolved rules as a message."""
    message = rules_pb.RuleSet(
        players=rules.players,
        removed_card=_wire_card(rules.removed_card),
        last_trick_bonus_sixths=rules.last_trick_bonus,
        cappotto_penalty=rules.penalty // rs.POINT,
    )
    for option, (_, table) in _RULE_ENUMS.items():
        setattr(message, option, table[getattr(rules, option)])
    end = rules.end
    if isinstance(end, rs.FirstTo):
        message.first_to.target = end.target
    elif isinstance(end, rs.FirstToLowest):
        message.first_to_lowest.threshold = end.threshold
    elif isinstance(end, rs.Elimination):
        message.elimination.threshold = end.threshold
        message.elimination.survivors = end.survivors
    else:
        message.fixed_deals.deals = end.deals
    return message


def rules_from_wire(message: rules_pb.RuleSet) -> rs.RuleSet:
    """The inverse of ``rules_to_wire``; the penalty comes back resolved. Raises RuleSetError, or
    MalformedAction for an enum value that this version does not know."""
    options: dict[str, Any] = {
        option: _back(table, getattr(message, option)) for option, (_, table) in _RULE_ENUMS.items()
    }
    kind = message.WhichOneof("end")
    ends: dict[str | None, rs.End] = {
        "first_to": rs.FirstTo(message.first_to.target),
        "first_to_lowest": rs.FirstToLowest(message.first_to_lowest.threshold),
        "elimination": rs.Elimination(message.elimination.threshold, message.elimination.survivors),
        "fixed_deals": rs.FixedDeals(message.fixed_deals.deals),
    }
    if kind not in ends:
        raise MalformedAction(Refusal.MALFORMED, "the rules have no end")
    return rs.RuleSet(
        players=message.players,
        removed_card=to_card(message.removed_card),
        last_trick_bonus=message.last_trick_bonus_sixths,
        cappotto_penalty=message.cappotto_penalty,
        end=ends[kind],
        **options,
    )


# -- declarations and answers -------------------------------------------------------------------------

_DECLARABLE_RANKS: Final = RANK_LETTERS[:3]


def declaration_to_wire(one: Declaration) -> event_pb.Declaration:
    """A declaration with its cards and points."""
    message = event_pb.Declaration(cards=wire_cards(one.cards), points=one.points)
    if one.kind is Combination.BONGIOCO:
        message.bongioco = card_pb.Rank.ValueType(_DECLARABLE_RANKS.index(one.of) + 1)
    else:
        message.napoli = card_pb.Suit.ValueType(SUIT_LETTERS.index(one.of) + 1)
    return message


def _declaration_key(message: event_pb.Declaration) -> tuple[Combination, str]:
    which = message.WhichOneof("combination")
    if which == "bongioco" and 1 <= message.bongioco <= 3:
        return Combination.BONGIOCO, _DECLARABLE_RANKS[message.bongioco - 1]
    if which == "napoli" and 1 <= message.napoli <= 4:
        return Combination.NAPOLI, SUIT_LETTERS[message.napoli - 1]
    raise MalformedAction(Refusal.MALFORMED, "declarations: a combination of no known rank or suit")


def declaration_from_wire(message: event_pb.Declaration) -> Declaration:
    """The inverse of ``declaration_to_wire``; raises MalformedAction."""
    kind, of = _declaration_key(message)
    return Declaration(kind, of, mask_of(to_card(value) for value in message.cards), message.points)


_MOST_DECLARATIONS: Final = len(_DECLARABLE_RANKS) + len(SUIT_LETTERS)
_PLAIN_CARDS: Final = ((), *((PlayCard(card),) for card in CARDS))


def actions_of(answer: arena_pb.Answer, held: Sequence[Declaration]) -> Sequence[Action]:
    """The actions of an answer. ``held`` are the declarations open to the seat: a bot names only kind and
    rank or suit. Raises MalformedAction for values that mean nothing."""
    card = answer.card
    if not 0 <= card <= 40:
        raise MalformedAction(Refusal.UNKNOWN_CARD, f"card: {card} is no card")
    if not (answer.signal or answer.declarations or answer.call_out or answer.monte or answer.discard):
        return _PLAIN_CARDS[card]
    if len(answer.declarations) > _MOST_DECLARATIONS:
        # Reading as many as a message holds would keep every other bot waiting.
        raise MalformedAction(Refusal.MALFORMED, f"declarations: over {_MOST_DECLARATIONS}, one of each")
    actions: list[Action] = [Declare(_held(message, held)) for message in answer.declarations]
    if answer.call_out:
        actions.append(CallOut())
    if answer.monte:
        actions.append(CallMonte())
    if answer.discard:
        actions.append(Discard(to_card(answer.discard)))
    if answer.signal and not card:
        raise MalformedAction(Refusal.MALFORMED, "signal: without a card")
    if card:
        signal = _back(_SIGNALS, answer.signal) if answer.signal else None
        actions.append(PlayCard(CARDS[card - 1], signal))
    return actions


def _held(message: event_pb.Declaration, held: Sequence[Declaration]) -> Declaration:
    """The declaration meant; one that is not held is passed on for the rules to refuse."""
    key = _declaration_key(message)
    for one in held:
        if one.key == key:
            return one
    return Declaration(*key, 0, 0)


def answer_to_wire(handle: str, turn: int, actions: Sequence[Action]) -> arena_pb.Answer:
    """An answer as a bot would send it."""
    answer = arena_pb.Answer(handle=handle, turn_id=turn)
    for action in actions:
        if isinstance(action, Declare):
            answer.declarations.append(declaration_to_wire(action.declaration))
        elif isinstance(action, CallOut):
            answer.call_out = True
        elif isinstance(action, CallMonte):
            answer.monte = True
        elif isinstance(action, Discard):
            answer.discard = _wire_card(action.card)
        else:
            answer.card = _wire_card(action.card)
            if action.signal is not None:
                answer.signal = _SIGNALS[action.signal]  # type: ignore[assignment]
    return answer


def legal_to_wire(legal: Legal) -> view_pb.LegalActions:
    """What a seat may answer."""
    return view_pb.LegalActions(
        cards=wire_cards(legal.cards),
        declarations=map(declaration_to_wire, legal.declarations),
        discards=wire_cards(legal.discards),
        call_out=legal.call_out,
        monte=legal.monte,
        signals=legal.signals,
    )


# -- events -------------------------------------------------------------------------------------------


def event_to_wire(event: Event, viewers: Sequence[int]) -> event_pb.Event:
    """The event as the seats of ``viewers`` may see it together."""
    return _TO_WIRE[type(event)](redact(event, viewers))


def ended_to_wire(event: MatchEnded, suits: str) -> event_pb.Event:
    """The end of a match that was dealt under this suit order; to everybody the same."""
    message = event_to_wire(event, ())
    message.match_ended.suits.extend(SUIT_LETTERS.index(letter) + 1 for letter in suits)  # type: ignore[misc]  # enum values
    return message


def _deal_started(event: DealStarted) -> event_pb.Event:
    """One visible hand is the viewer's own; several are those of a viewer who may see them all."""
    visible = [hand for hand in event.hands if hand]
    message = event_pb.DealStarted(
        phase=_PHASES[event.phase],
        number=event.number,
        attempt=event.attempt,
        dealer=event.dealer,
        leader=event.leader,
        active=[seat for seat, hand in enumerate(event.hands) if hand != 0],
        stock=event.stock,
    )
    if len(visible) == 1:
        message.hand.cards.extend(wire_cards(visible[0]))
    elif visible:
        message.hands.extend(event_pb.Hand(cards=wire_cards(hand or 0)) for hand in event.hands)
    return event_pb.Event(deal_started=message)


def _deal_scored(event: DealScored) -> event_pb.Event:
    message = event_pb.DealScored(
        phase=_PHASES[event.phase],
        number=event.number,
        ended_by=_DEAL_ENDS[event.ended_by],  # type: ignore[arg-type]
        sides=[
            event_pb.SideScore(
                side=side,
                thirds=score.thirds,
                tricks=score.tricks,
                declared=score.declared,
                counted=score.counted,
                points=score.points,
            )
            for side, score in enumerate(event.sides)
            if score is not None
        ],
        totals=event.totals,
        last_trick=event.last_trick,
        cappotto=event.cappotto,
        set_aside=_wire_card(event.set_aside),
    )
    return event_pb.Event(deal_scored=message)


_TO_WIRE: Final[dict[type[Event], Callable[[Any], event_pb.Event]]] = {
    CardPlayed: lambda e: event_pb.Event(
        card_played=event_pb.CardPlayed(
            seat=e.seat,
            card=e.card + 1,
            signal=_SIGNALS[e.signal] if e.signal else 0,  # type: ignore[arg-type]
        )
    ),
    TrickWon: lambda e: event_pb.Event(trick_won=event_pb.TrickWon(seat=e.seat, thirds=e.thirds)),
    CardDrawn: lambda e: event_pb.Event(card_drawn=event_pb.CardDrawn(seat=e.seat, card=e.card + 1)),
    DealStarted: _deal_started,
    DealScored: _deal_scored,
    DeclarationMade: lambda e: event_pb.Event(
        declaration_made=event_pb.DeclarationMade(seat=e.seat, declaration=declaration_to_wire(e.declaration))
    ),
    CalledOut: lambda e: event_pb.Event(called_out=event_pb.CalledOut(seat=e.seat, right=e.right)),
    DealVoided: lambda e: event_pb.Event(deal_voided=event_pb.DealVoided(seat=e.seat)),
    CardDiscarded: lambda e: event_pb.Event(
        card_discarded=event_pb.CardDiscarded(seat=e.seat, card=_wire_card(e.card))
    ),
    PartnersDrawn: lambda e: event_pb.Event(
        partners_drawn=event_pb.PartnersDrawn(
            attempt=e.attempt,
            hands=[event_pb.Hand(cards=wire_cards(hand)) for hand in e.hands],
            seats=e.seats,
        )
    ),
    SideEliminated: lambda e: event_pb.Event(side_eliminated=event_pb.SideEliminated(side=e.side)),
    FaultCommitted: lambda e: event_pb.Event(
        fault_committed=event_pb.FaultCommitted(
            seat=e.seat,
            kind=_FAULT_KINDS[e.kind],  # type: ignore[arg-type]
            effect=_FAULT_EFFECTS[e.effect],  # type: ignore[arg-type]
            reason=e.reason,
        )
    ),
    MatchEnded: lambda e: event_pb.Event(
        match_ended=event_pb.MatchEnded(
            reason=_END_REASONS[e.reason],  # type: ignore[arg-type]
            totals=e.totals,
            ranks=e.ranks,
            forfeited=e.seat,
        )
    ),
}


def event_from_wire(message: event_pb.Event, viewer: int, rules: rs.RuleSet) -> Event:
    """The inverse of ``event_to_wire`` for one viewer (or all seats); raises MalformedAction for an event
    of no known kind."""
    kind = message.WhichOneof("kind")
    if kind is None:
        raise MalformedAction(Refusal.MALFORMED, "an event of no known kind")
    return _FROM_WIRE[kind](getattr(message, kind), viewer, rules)


def _hand_mask(message: event_pb.Hand) -> int:
    return mask_of(to_card(value) for value in message.cards)


def _deal_started_back(m: event_pb.DealStarted, viewer: int, rules: rs.RuleSet) -> Event:
    hands: list[int | None] = [None if seat in m.active else 0 for seat in range(rules.players)]
    if m.hands:
        hands = [_hand_mask(hand) for hand in m.hands]
    elif m.HasField("hand"):
        hands[viewer] = _hand_mask(m.hand)
    return DealStarted(
        _back(_PHASES, m.phase), m.number, m.attempt, m.dealer, m.leader, tuple(hands), m.stock
    )


def _deal_scored_back(m: event_pb.DealScored, _viewer: int, rules: rs.RuleSet) -> Event:
    sides: list[SideScore | None] = [None] * rules.side_count
    for one in m.sides:
        sides[one.side] = SideScore(one.thirds, one.tricks, one.declared, one.counted, one.points)
    return DealScored(
        phase=_back(_PHASES, m.phase),
        number=m.number,
        ended_by=_back(_DEAL_ENDS, m.ended_by),
        sides=tuple(sides),
        totals=tuple(m.totals),
        last_trick=m.last_trick if m.HasField("last_trick") else None,
        cappotto=m.cappotto if m.HasField("cappotto") else None,
        set_aside=_card_or_none(m.set_aside),
    )


_FROM_WIRE: Final[dict[str, Callable[[Any, int, rs.RuleSet], Event]]] = {
    "card_played": lambda m, _v, _r: CardPlayed(
        m.seat, to_card(m.card), _back(_SIGNALS, m.signal) if m.signal else None
    ),
    "trick_won": lambda m, _v, _r: TrickWon(m.seat, m.thirds),
    "card_drawn": lambda m, _v, _r: CardDrawn(m.seat, to_card(m.card)),
    "deal_started": _deal_started_back,
    "deal_scored": _deal_scored_back,
    "declaration_made": lambda m, _v, _r: DeclarationMade(m.seat, declaration_from_wire(m.declaration)),
    "called_out": lambda m, _v, _r: CalledOut(m.seat, m.right),
    "deal_voided": lambda m, _v, _r: DealVoided(m.seat),
    "card_discarded": lambda m, _v, _r: CardDiscarded(m.seat, _card_or_none(m.card)),
    "partners_drawn": lambda m, _v, _r: PartnersDrawn(
        m.attempt, tuple(_hand_mask(hand) for hand in m.hands), tuple(m.seats)
    ),
    "side_eliminated": lambda m, _v, _r: SideEliminated(m.side),
    "fault_committed": lambda m, _v, _r: FaultCommitted(
        m.seat, _back(_FAULT_KINDS, m.kind), _back(_FAULT_EFFECTS, m.effect), m.reason
    ),
    "match_ended": lambda m, _v, _r: MatchEnded(
        _back(_END_REASONS, m.reason),
        tuple(m.totals),
        tuple(m.ranks),
        m.forfeited if m.HasField("forfeited") else None,
    ),
}
