"""Rules values to messages and back."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.matches import random_answer
from support.rulesets import rule_sets
from support.tables import MONTE
from tressette.rules import events as ev
from tressette.rules import ruleset as rs
from tressette.rules.accuse import Combination, Declaration, declarations
from tressette.rules.actions import Action, CallMonte, CallOut, Declare, Discard, Legal, PlayCard, Signal
from tressette.rules.cards import CARDS, FULL_DECK, cards_of
from tressette.rules.deck import Phase, seeded
from tressette.rules.errors import MalformedAction, Refusal
from tressette.rules.match import Match
from tressette.rules.presets import PRESETS
from tressette.rules.ruleset import RuleSet
from tressette.rules.standing import EndReason
from tressette.v1 import arena_service_pb2 as pb
from tressette.v1 import card_pb2 as card_pb
from tressette.v1 import event_pb2 as event_pb
from tressette.v1 import rules_pb2 as rules_pb
from tressette.wire import convert
from tressette.wire.convert import (
    actions_of,
    answer_to_wire,
    declaration_from_wire,
    declaration_to_wire,
    event_from_wire,
    event_to_wire,
    legal_to_wire,
    rules_from_wire,
    rules_to_wire,
    to_card,
    wire_cards,
)

# -- cards ------------------------------------------------------------------------------------------


def test_the_card_enum_is_the_40_cards_in_deck_order() -> None:
    names = ("asso", "due", "tre", "quattro", "cinque", "sei", "sette", "fante", "cavallo", "re")
    wanted = ["CARD_UNSPECIFIED"] + [
        f"CARD_{name.upper()}_{suit}" for suit in ("DENARI", "COPPE", "SPADE", "BASTONI") for name in names
    ]
    assert card_pb.Card.keys() == wanted
    assert list(card_pb.Card.values()) == list(range(41))
    assert [to_card(value) for value in range(1, 41)] == list(CARDS)


@given(st.integers(0, FULL_DECK))
def test_a_mask_is_its_cards_in_deck_order(mask: int) -> None:
    assert [to_card(value) for value in wire_cards(mask)] == list(cards_of(mask))


@pytest.mark.parametrize("value", [-1, 0, 41, 2**31 - 1, -(2**31)])
def test_other_values_are_no_card(value: int) -> None:
    with pytest.raises(MalformedAction) as caught:
        to_card(value)
    assert caught.value.code is Refusal.UNKNOWN_CARD


# -- enums --------------------------------------------------------------------------------------------

_NOT_FROM_RULES = {
    "UNSPECIFIED",
    "HELLO_EXPECTED",
    "HELLO_REPEATED",
    "PROTOCOL_VERSION",
    "UNAUTHENTICATED",
    "TOO_MANY_SESSIONS",
    "RESUME_UNKNOWN",
    "REPLACED",
    "SHUTTING_DOWN",
    "LIMIT_EXCEEDED",
    "UNKNOWN_HANDLE",
    "UNKNOWN_TURN",
    "DISQUALIFIED",
    "INTERNAL",
    "NO_RECORD",
}
"""Reasons that no rule gives."""


@pytest.mark.parametrize(
    ("members", "wire", "prefix", "only_on_the_wire"),
    [
        (Refusal, pb.ErrorReason, "ERROR_REASON", _NOT_FROM_RULES),
        (Signal, event_pb.Signal, "SIGNAL", {"UNSPECIFIED"}),
        (ev.DealEnd, event_pb.DealEnd, "DEAL_END", {"UNSPECIFIED"}),
        (ev.FaultKind, event_pb.FaultKind, "FAULT_KIND", {"UNSPECIFIED"}),
        (ev.FaultEffect, event_pb.FaultEffect, "FAULT_EFFECT", {"UNSPECIFIED"}),
        (EndReason, event_pb.MatchEndReason, "MATCH_END_REASON", {"UNSPECIFIED", "VOID"}),
        (Phase, event_pb.Phase, "PHASE", {"UNSPECIFIED"}),
        (rs.Objective, rules_pb.Objective, "OBJECTIVE", {"UNSPECIFIED"}),
        (rs.Sides, rules_pb.Sides, "SIDES", {"UNSPECIFIED"}),
        (rs.Partners, rules_pb.Partners, "PARTNERS", {"UNSPECIFIED"}),
        (rs.FirstLead, rules_pb.FirstLead, "FIRST_LEAD", {"UNSPECIFIED"}),
        (rs.Packets, rules_pb.Packets, "PACKETS", {"UNSPECIFIED"}),
        (rs.Layout3, rules_pb.Layout3, "LAYOUT3", {"UNSPECIFIED"}),
        (rs.Rounding, rules_pb.Rounding, "ROUNDING", {"UNSPECIFIED"}),
        (rs.AceOfBastoni, rules_pb.AceOfBastoni, "ACE_OF_BASTONI", {"UNSPECIFIED"}),
        (rs.Cappotto, rules_pb.Cappotto, "CAPPOTTO", {"UNSPECIFIED"}),
        (rs.CappottoEffect, rules_pb.CappottoEffect, "CAPPOTTO_EFFECT", {"UNSPECIFIED"}),
        (rs.TieBreak, rules_pb.TieBreak, "TIE_BREAK", {"UNSPECIFIED"}),
        (rs.Accuse, rules_pb.Accuse, "ACCUSE", {"UNSPECIFIED"}),
        (rs.AccuseWindow, rules_pb.AccuseWindow, "ACCUSE_WINDOW", {"UNSPECIFIED"}),
        (rs.NapoliExtension, rules_pb.NapoliExtension, "NAPOLI_EXTENSION", {"UNSPECIFIED"}),
        (rs.Monte, rules_pb.Monte, "MONTE", {"UNSPECIFIED"}),
        (rs.CallOut, rules_pb.CallOutRule, "CALL_OUT_RULE", {"UNSPECIFIED"}),
        (rs.Signals, rules_pb.Signals, "SIGNALS", {"UNSPECIFIED"}),
    ],
)
def test_every_member_has_a_twin(
    members: Iterable[Any], wire: Any, prefix: str, only_on_the_wire: set[str]
) -> None:
    twins = {name.removeprefix(f"{prefix}_") for name, _ in wire.items()}
    assert twins == {member.name for member in members} | only_on_the_wire
    assert wire.Value(f"{prefix}_UNSPECIFIED") == 0


def test_no_rule_enum_is_forgotten() -> None:
    """Every option with an enum travels as one."""
    fields = {field.name for field in rules_pb.RuleSet.DESCRIPTOR.fields if field.enum_type is not None}
    options = {name for name, value in PRESETS["tressette-21"].options().items() if name in fields}
    assert options == fields
    kinds = {kind for kind in vars(rs).values() if isinstance(kind, type) and issubclass(kind, StrEnum)}
    assert len(kinds - {StrEnum}) == len(fields - {"removed_card"})


# -- rules --------------------------------------------------------------------------------------------


def _same(one: RuleSet, other: RuleSet) -> bool:
    return one.options() == other.options() and one.hash() == other.hash()


@pytest.mark.parametrize("preset", PRESETS)
def test_the_rules_of_every_preset_come_back(preset: str) -> None:
    rules = PRESETS[preset]
    message = rules_pb.RuleSet.FromString(rules_to_wire(rules).SerializeToString())
    assert _same(rules_from_wire(message), rules)
    unset = [
        field.name
        for field in message.DESCRIPTOR.fields
        if field.enum_type and not getattr(message, field.name)
    ]
    assert unset == []
    assert message.cappotto_penalty > 0
    assert message.WhichOneof("end")


@given(rule_sets())
def test_any_rules_come_back(rules: RuleSet) -> None:
    assert _same(rules_from_wire(rules_to_wire(rules)), rules)


def test_an_option_that_is_not_known_is_refused() -> None:
    message = rules_to_wire(PRESETS["tressette-21"])
    message.rounding = 99  # type: ignore[assignment]
    with pytest.raises(MalformedAction):
        rules_from_wire(message)
    message = rules_to_wire(PRESETS["tressette-21"])
    message.ClearField("first_to")
    with pytest.raises(MalformedAction, match="no end"):
        rules_from_wire(message)


# -- declarations and answers ---------------------------------------------------------------------------


@given(st.integers(0, FULL_DECK), st.sampled_from(rs.NapoliExtension))
def test_declarations_come_back(hand: int, extension: rs.NapoliExtension) -> None:
    for one in declarations(hand, extension):
        assert declaration_from_wire(declaration_to_wire(one)) == one


HELD = declarations(FULL_DECK, rs.NapoliExtension.NUMERIC)


@st.composite
def _answers(draw: st.DrawFn) -> list[Action]:
    made: list[Action] = [Declare(one) for one in draw(st.lists(st.sampled_from(HELD), unique=True))]
    card = st.sampled_from(CARDS)
    signals = st.none() | st.sampled_from(Signal)
    last = draw(
        st.none()
        | st.builds(PlayCard, card, signals)
        | st.builds(Discard, card)
        | st.builds(CallOut)
        | st.builds(CallMonte)
    )
    return made if last is None else [*made, last]


@given(_answers())
def test_answers_come_back(actions: list[Action]) -> None:
    message = pb.Answer.FromString(answer_to_wire("h", 3, actions).SerializeToString())
    assert (message.handle, message.turn_id) == ("h", 3)
    assert list(actions_of(message, HELD)) == actions


@given(_answers())
def test_a_declaration_is_named_by_its_kind_alone(actions: list[Action]) -> None:
    message = answer_to_wire("h", 1, actions)
    for declaration in message.declarations:
        del declaration.cards[:]
        declaration.points = 0
    assert list(actions_of(message, HELD)) == actions


def test_a_declaration_that_is_not_held_is_passed_on() -> None:
    message = answer_to_wire("h", 1, [Declare(HELD[0])])
    (action,) = actions_of(message, ())
    assert action == Declare(Declaration(Combination.BONGIOCO, "A", 0, 0))


def test_more_declarations_than_there_are_combinations_mean_nothing() -> None:
    message = pb.Answer()
    message.declarations.extend(map(declaration_to_wire, HELD))
    assert len(actions_of(message, HELD)) == len(HELD) == 7
    message.declarations.add().napoli = card_pb.SUIT_DENARI
    with pytest.raises(MalformedAction, match="declarations"):
        actions_of(message, HELD)


def test_several_decisions_are_passed_on_in_order() -> None:
    """What is too much is for the rules to refuse."""
    message = pb.Answer(
        card=card_pb.CARD_RE_BASTONI, call_out=True, monte=True, discard=card_pb.CARD_ASSO_DENARI
    )
    assert list(actions_of(message, ())) == [CallOut(), CallMonte(), Discard(CARDS[0]), PlayCard(CARDS[39])]


@given(st.binary(max_size=60))
def test_no_answer_that_parses_does_harm(data: bytes) -> None:
    """Whatever a bot sends becomes actions or a MalformedAction."""
    message = pb.Answer()
    try:
        message.ParseFromString(data)
    except Exception:
        return
    try:
        actions_of(message, HELD)
    except MalformedAction:
        return


# -- legal actions --------------------------------------------------------------------------------------


@given(
    cards=st.integers(0, FULL_DECK),
    discards=st.integers(0, FULL_DECK),
    held=st.lists(st.sampled_from(HELD)),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_legal_actions_are_listed_whole(
    cards: int, discards: int, held: list[Declaration], flags: tuple[bool, bool, bool]
) -> None:
    message = legal_to_wire(Legal(cards, discards, tuple(held), *flags))
    assert [to_card(card) for card in message.cards] == list(cards_of(cards))
    assert [to_card(card) for card in message.discards] == list(cards_of(discards))
    assert [declaration_from_wire(one) for one in message.declarations] == held
    assert (message.call_out, message.monte, message.signals) == flags


# -- events -------------------------------------------------------------------------------------------


def _random_log(rules: RuleSet, seed: int) -> list[ev.Event]:
    chance = Random(seed)
    match = Match(rules, seeded(seed.to_bytes(32, "big")))
    log = match.start()
    while not match.over:
        seat = chance.choice(match.pending)
        log += match.act(seat, random_answer(match, seat, chance))
    return log


def _check_log(rules: RuleSet, log: list[ev.Event]) -> None:
    seats = tuple(range(rules.players))
    for event in log:
        for viewer in seats:
            message = event_pb.Event.FromString(event_to_wire(event, (viewer,)).SerializeToString())
            assert event_from_wire(message, viewer, rules) == ev.redact(event, (viewer,))
        assert event_from_wire(event_to_wire(event, seats), 0, rules) == event


def test_every_kind_of_event_comes_back_for_every_viewer() -> None:
    seen: set[type[Any]] = set()
    for preset in (
        "tressette-004-drawn",
        "tressette-002",
        "ciapano-trio",
        "ciapano-five",
        "traversone-pairs",
    ):
        for seed in range(6):
            log = _random_log(PRESETS[preset], seed)
            _check_log(PRESETS[preset], log)
            seen |= {type(event) for event in log}
    for rules, seeds in ((MONTE, (11, 18, 20, 27, 28)), (PRESETS["tressette-due"], (1, 2))):
        for seed in seeds:
            log = _random_log(rules, seed)
            _check_log(rules, log)
            seen |= {type(event) for event in log}
    faults: list[ev.Event] = [
        ev.FaultCommitted(3, kind, effect, "WHY") for kind in ev.FaultKind for effect in ev.FaultEffect
    ]
    ends: list[ev.Event] = [
        ev.MatchEnded(reason, (6, -6), (1, 2), seat) for reason in EndReason for seat in (None, 0, 3)
    ]
    _check_log(PRESETS["tressette-21"], faults + ends)
    assert seen | {ev.FaultCommitted} == set(ev.Event.__args__)
    kinds = {field.name for field in event_pb.Event.DESCRIPTOR.fields}
    assert len(kinds) == len(ev.Event.__args__)


@given(rules=rule_sets(), seed=st.integers(0, 1 << 30))
def test_events_under_any_rules(rules: RuleSet, seed: int) -> None:
    _check_log(rules, _random_log(rules, seed))


def test_an_event_of_no_known_kind_is_refused() -> None:
    with pytest.raises(MalformedAction):
        event_from_wire(event_pb.Event(), 0, PRESETS["tressette-21"])


def test_the_reasons_of_the_rules_are_all_there() -> None:
    assert set(convert.REASONS) == set(Refusal)
