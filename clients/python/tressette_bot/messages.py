"""From the messages of ``tressette.v1`` to the values of ``tressette.rules``, as far as a bot needs them.

Vocabulary: a **value** is the number of a proto enum. A card's value is its index plus one; 0 is no
card. Enum members have the same names on both sides, apart from the prefix of the proto's.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Any, Final, TypeVar

from tressette.rules.accuse import Combination, Declaration
from tressette.rules.actions import Signal
from tressette.rules.cards import CARDS, RANK_LETTERS, SUIT_LETTERS, Card
from tressette.rules.deck import Phase
from tressette.rules.errors import RuleSetError
from tressette.rules.ruleset import (
    Accuse,
    AccuseWindow,
    AceOfBastoni,
    CallOut,
    Cappotto,
    CappottoEffect,
    Elimination,
    End,
    FirstLead,
    FirstTo,
    FirstToLowest,
    FixedDeals,
    Layout3,
    Monte,
    NapoliExtension,
    Objective,
    Packets,
    Partners,
    Rounding,
    RuleSet,
    Sides,
    Signals,
    TieBreak,
)
from tressette.v1 import card_pb2, event_pb2, rules_pb2

from tressette_bot.errors import UnknownRules

_Member = TypeVar("_Member", bound=Enum)

CARD_OF: Final[tuple[Card, ...]] = (Card(-1), *CARDS)
"""The card of each proto value, 1 to 40. Value 0 is no card; its place holds one that is none of the 40."""

CARD_VALUES: Final = tuple(card_pb2.Card.values())[1:]
"""The proto value of each card, by card."""

_RANK_VALUES: Final = tuple(card_pb2.Rank.values())[1:]
_SUIT_VALUES: Final = tuple(card_pb2.Suit.values())[1:]


def _members(proto: Any, prefix: str, kind: type[_Member]) -> dict[int, _Member]:
    return {proto.Value(f"{prefix}_{member.name}"): member for member in kind}


PHASES: Final = _members(event_pb2.Phase, "PHASE", Phase)
SIGNALS: Final = _members(event_pb2.Signal, "SIGNAL", Signal)
SIGNAL_VALUES: Final = {signal: event_pb2.Signal.Value(f"SIGNAL_{signal.name}") for signal in Signal}

_OPTIONS: Final[dict[str, dict[int, Any]]] = {
    "objective": _members(rules_pb2.Objective, "OBJECTIVE", Objective),
    "sides": _members(rules_pb2.Sides, "SIDES", Sides),
    "partners": _members(rules_pb2.Partners, "PARTNERS", Partners),
    "first_lead": _members(rules_pb2.FirstLead, "FIRST_LEAD", FirstLead),
    "packets": _members(rules_pb2.Packets, "PACKETS", Packets),
    "layout_3": _members(rules_pb2.Layout3, "LAYOUT3", Layout3),
    "rounding": _members(rules_pb2.Rounding, "ROUNDING", Rounding),
    "ace_of_bastoni": _members(rules_pb2.AceOfBastoni, "ACE_OF_BASTONI", AceOfBastoni),
    "cappotto": _members(rules_pb2.Cappotto, "CAPPOTTO", Cappotto),
    "cappotto_effect": _members(rules_pb2.CappottoEffect, "CAPPOTTO_EFFECT", CappottoEffect),
    "tie_break": _members(rules_pb2.TieBreak, "TIE_BREAK", TieBreak),
    "accuse": _members(rules_pb2.Accuse, "ACCUSE", Accuse),
    "accuse_window": _members(rules_pb2.AccuseWindow, "ACCUSE_WINDOW", AccuseWindow),
    "napoli_extension": _members(rules_pb2.NapoliExtension, "NAPOLI_EXTENSION", NapoliExtension),
    "monte": _members(rules_pb2.Monte, "MONTE", Monte),
    "call_out": _members(rules_pb2.CallOutRule, "CALL_OUT_RULE", CallOut),
    "signals": _members(rules_pb2.Signals, "SIGNALS", Signals),
}


def rules_from(message: rules_pb2.RuleSet) -> RuleSet:
    """The rules of a match; raises UnknownRules. Matches come in thousands with the same rules, so each
    set is made once."""
    return _rules(message.SerializeToString(deterministic=True))


@lru_cache(maxsize=64)
def _rules(serialized: bytes) -> RuleSet:
    message = rules_pb2.RuleSet.FromString(serialized)
    values: dict[str, Any] = {}
    for option, members in _OPTIONS.items():
        number = getattr(message, option)
        if number not in members:
            raise UnknownRules(option, number)
        values[option] = members[number]
    if not 1 <= message.removed_card <= 40:
        raise UnknownRules("removed_card", message.removed_card)
    try:
        return RuleSet(
            players=message.players,
            removed_card=CARD_OF[message.removed_card],
            last_trick_bonus=message.last_trick_bonus_sixths,
            cappotto_penalty=message.cappotto_penalty,
            end=_end(message),
            **values,
        )
    except RuleSetError as error:
        raise UnknownRules(error.option, error.reason) from error


def _end(message: rules_pb2.RuleSet) -> End:
    kind = message.WhichOneof("end")
    if kind == "first_to":
        return FirstTo(message.first_to.target)
    if kind == "first_to_lowest":
        return FirstToLowest(message.first_to_lowest.threshold)
    if kind == "elimination":
        return Elimination(message.elimination.threshold, message.elimination.survivors)
    if kind == "fixed_deals":
        return FixedDeals(message.fixed_deals.deals)
    raise UnknownRules("end", kind)


def declaration_from(message: event_pb2.Declaration) -> Declaration:
    """A combination as the arena names it."""
    mask = 0
    for value in message.cards:
        mask |= 1 << (value - 1)
    if message.WhichOneof("combination") == "bongioco":
        return Declaration(Combination.BONGIOCO, RANK_LETTERS[message.bongioco - 1], mask, message.points)
    return Declaration(Combination.NAPOLI, SUIT_LETTERS[message.napoli - 1], mask, message.points)


def name_declaration(message: event_pb2.Declaration, declaration: Declaration) -> None:
    """Name a combination in an answer; the arena knows its cards and points."""
    if declaration.kind is Combination.BONGIOCO:
        message.bongioco = _RANK_VALUES[RANK_LETTERS.index(declaration.of)]
    else:
        message.napoli = _SUIT_VALUES[SUIT_LETTERS.index(declaration.of)]
