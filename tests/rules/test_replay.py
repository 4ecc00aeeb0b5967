"""Replaying the events of a match gives the same match, and any change in them is found where it is."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

import pytest
from support.decks import fixed, stacked
from support.matches import answer, hands_with, random_answer
from tressette.rules.cards import Card, parse_card
from tressette.rules.deck import seeded
from tressette.rules.errors import ReplayError
from tressette.rules.events import (
    CardPlayed,
    DealScored,
    DealStarted,
    DealVoided,
    DeclarationMade,
    Event,
    FaultCommitted,
    FaultEffect,
    FaultKind,
    MatchEnded,
    TrickWon,
    redact,
)
from tressette.rules.match import Match
from tressette.rules.presets import PRESETS, resolve
from tressette.rules.replay import replay
from tressette.rules.ruleset import RuleSet
from tressette.rules.scoring import Revoke
from tressette.rules.standing import EndReason

SEED = bytes(range(32))
POOR = "4d 5d 6d 7d 4c 5c 6c 7c Fd Cd"


def played(rules: RuleSet, seed: bytes = SEED) -> tuple[Match, list[Event]]:
    """A whole match at random."""
    match, chance = Match(rules, seeded(seed)), random.Random(seed)
    events = match.start()
    while not match.over:
        seat = chance.choice(match.pending)
        events += match.act(seat, random_answer(match, seat, chance))
    return match, events


@pytest.mark.parametrize("name", PRESETS)
def test_a_replayed_match_is_the_same(name: str) -> None:
    match, events = played(PRESETS[name])
    assert replay(PRESETS[name], seeded(SEED), events).state() == match.state()


def test_the_events_so_far_give_the_match_so_far() -> None:
    rules = resolve("ciapano-trio", threshold=15)
    match, chance = Match(rules, seeded(SEED)), random.Random(5)
    events = match.start()
    while not match.over:
        assert replay(rules, seeded(SEED), events).state() == match.state()
        events += match.act(match.pending[0], random_answer(match, match.pending[0], chance))


def scripted(name: str, *given: str, **options: Any) -> tuple[RuleSet, list[Card], Match, list[Event]]:
    rules = resolve(name, **options)
    deck = stacked(hands_with(*given)[0])
    match = Match(rules, fixed(deck, deck))
    return rules, deck, match, match.start()


def test_declines_are_implied_by_what_comes_after_them() -> None:
    rules, deck, match, events = scripted(
        "tressette-002", POOR, "Ad Ac As", "2c 2s 2b", "", monte="on_request"
    )
    events += answer(match, "-", "-", "+2", str(match.hand(1)[0]))
    again = replay(rules, fixed(deck), events)
    assert again.state() == match.state()


def test_declines_after_the_last_event_are_unknown() -> None:
    rules, deck, match, events = scripted("tressette-002", "", "Ad Ac As", "", "")
    before = match.state()
    events += answer(match, "-")
    assert replay(rules, fixed(deck), events).state() == before


def test_a_void_deal_is_replayed() -> None:
    rules, deck, match, events = scripted("tressette-21", POOR, "", "", "", monte="on_request")
    events += answer(match, "monte")
    assert DealVoided(0) in events
    assert replay(rules, fixed(deck, deck), events).state() == match.state()


@pytest.mark.parametrize("target", [4, 11, 1000])
def test_declarations_signals_and_claims_are_replayed(target: int) -> None:
    rules, deck, match, events = scripted(
        "tressette-21", "", "4d Ad Ac As", "Rd", "", call_out="own", signals="on", target=target
    )
    events += answer(match, "+A,4d!volo", "Rd")
    events += answer(match, "out")
    assert replay(rules, fixed(deck, deck), events).state() == match.state()


@pytest.mark.parametrize("policy", list(Revoke))
@pytest.mark.parametrize("name", ["ciapano-ace21", "tressette-21", "traversone-pairs", "ciapano-five"])
def test_deals_and_matches_ended_by_faults_are_replayed(name: str, policy: Revoke) -> None:
    rules = resolve(name)
    match = Match(rules, seeded(SEED))
    events = match.start()
    for seat in (1, 0, 3):
        fault = FaultCommitted(seat, FaultKind.ILLEGAL, FaultEffect(policy), "MUST_FOLLOW_SUIT")
        events += [fault, *match.revoke(seat, policy)]
        assert replay(rules, seeded(SEED), events).state() == match.state()
        if match.over:
            return
    fault = FaultCommitted(2, FaultKind.CRASH, FaultEffect.FORFEIT, "")
    events += [fault, *match.forfeit(2), fault]
    assert replay(rules, seeded(SEED), events).state() == match.state()


# -- differences ------------------------------------------------------------------------------------


def difference(rules: RuleSet, events: Sequence[Event], seed: bytes = SEED) -> ReplayError:
    with pytest.raises(ReplayError) as found:
        replay(rules, seeded(seed), events)
    return found.value


RULES = PRESETS["tressette-002"]


def test_every_event_left_out_is_found_at_once() -> None:
    rules = PRESETS["tressette-002-duplicate"]
    _, events = played(rules)
    for index in range(len(events)):
        error = difference(rules, events[:index] + events[index + 1 :])
        declares = isinstance(events[index], DeclarationMade)
        assert error.number >= index + 1 if declares else error.number == index + 1


def test_the_first_difference_says_where_it_is_and_what_was_expected() -> None:
    _, events = played(RULES)
    index = next(i for i, event in enumerate(events) if isinstance(event, TrickWon))
    trick = events[index]
    assert isinstance(trick, TrickWon)
    wrong = dataclasses.replace(trick, thirds=trick.thirds + 1)
    error = difference(RULES, [*events[:index], wrong, *events[index + 1 :]])
    assert (error.number, error.found, error.expected) == (index + 1, wrong, trick)
    assert str(error).startswith(f"event {index + 1}: another event; found TrickWon(")


def test_a_card_that_may_not_be_played_is_a_difference() -> None:
    _, events = played(RULES)
    index = next(i for i, event in enumerate(events) if isinstance(event, CardPlayed))
    card = events[index]
    assert isinstance(card, CardPlayed)
    for wrong in (
        dataclasses.replace(card, seat=(card.seat + 1) % 4),
        dataclasses.replace(
            card, card=next(e.card for e in events[index + 1 :] if isinstance(e, CardPlayed))
        ),
    ):
        error = difference(RULES, [*events[:index], wrong, *events[index + 1 :]])
        assert (error.number, error.found, error.expected) == (index + 1, wrong, None)


def test_the_decks_of_another_seed_are_a_difference() -> None:
    _, events = played(RULES)
    error = difference(RULES, events, bytes(32))
    assert error.number == 1
    assert isinstance(error.expected, DealStarted)


def test_events_that_stop_in_the_middle_of_an_answer_are_a_difference() -> None:
    _, events = played(RULES)
    index = next(i for i, event in enumerate(events) if isinstance(event, TrickWon))
    error = difference(RULES, events[:index])
    assert (error.number, error.found, error.expected) == (index + 1, None, events[index])


def test_events_after_the_end_are_a_difference() -> None:
    _, events = played(RULES)
    for more in (CardPlayed(0, parse_card("4d")), MatchEnded(EndReason.FORFEIT, (0, 0), (1, 1), 0)):
        error = difference(RULES, [*events, more])
        assert (error.number, error.found) == (len(events) + 1, more)


def test_an_end_out_of_nowhere_is_a_difference() -> None:
    _, events = played(RULES)
    assert difference(RULES, [events[0], events[-1]]).found == events[-1]


def test_a_revoke_whose_points_no_policy_gives_is_a_difference() -> None:
    match = Match(RULES, seeded(SEED))
    events = match.start()
    scored, *rest = match.revoke(0, Revoke.PENALTY)
    assert isinstance(scored, DealScored)
    wrong = dataclasses.replace(scored, sides=(scored.sides[0], scored.sides[0]))
    assert difference(RULES, [*events, wrong, *rest]).found == wrong


@pytest.mark.parametrize("name", ["tressette-002", "ciapano-trio"])
def test_events_with_blanks_cannot_be_replayed(name: str) -> None:
    _, events = played(PRESETS[name])
    assert difference(PRESETS[name], [redact(event, [0]) for event in events]).number == 1


def test_a_discard_that_was_blanked_cannot_be_replayed() -> None:
    _, events = played(PRESETS["ciapano-trio"])
    error = difference(PRESETS["ciapano-trio"], [events[0], redact(events[1], []), *events[2:]])
    assert error.number == 2
