"""What holds in every match of every rule set, whatever is answered."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support.matches import answer_text, declines, parse_answer, random_answer
from support.rulesets import rule_sets
from support.witness import Witness
from tressette.rules.actions import NOTHING, CallMonte, CallOut, Declare, Discard, PlayCard, Signal
from tressette.rules.cards import CARDS, Card, cards_of, mask_of, parse_card, parse_cards
from tressette.rules.deck import seeded
from tressette.rules.errors import ActionError, NotationError
from tressette.rules.events import DealScored, Event
from tressette.rules.match import Match, Stage
from tressette.rules.replay import replay
from tressette.rules.ruleset import RuleSet
from tressette.rules.scoring import Revoke

ANSWERS_AT_MOST = 20_000
"""More than any match of ``rule_sets`` takes."""

chances = st.integers(0, 2**32 - 1).map(random.Random)


class MatchMachine(RuleBasedStateMachine):
    """A match of any rules, answered at random, watched by a witness who knows only the events."""

    match: Match
    declined = False

    @initialize(rules=rule_sets(), seed=st.binary(min_size=32, max_size=32))
    def start(self, rules: RuleSet, seed: bytes) -> None:
        note(f"rules = {rules.options()}")
        self.decks = seeded(seed)
        self.match = Match(rules, self.decks)
        self.witness = Witness(rules)
        self.events: list[Event] = []
        self.see(self.match.start())

    def see(self, events: list[Event]) -> None:
        self.events += events
        self.witness.see(events)

    def answer(self, chance: random.Random) -> list[Event]:
        """One legal answer of one of the seats asked."""
        match = self.match
        seat = chance.choice(match.pending)
        actions = random_answer(match, seat, chance)
        assert match.can(seat, actions)
        assert parse_answer(match, seat, answer_text(actions)) == actions
        declining = declines(match)
        made = match.act(seat, actions)
        self.declined = declining and not made
        self.see(made)
        return made

    @precondition(lambda self: not self.match.over)
    @rule(chance=chances)
    def answer_once(self, chance: random.Random) -> None:
        self.answer(chance)

    @precondition(lambda self: not self.match.over)
    @rule(chance=chances)
    def play_to_the_end_of_the_deal(self, chance: random.Random) -> None:
        while not any(isinstance(event, DealScored) for event in self.answer(chance)):
            self.check_cards()

    @precondition(lambda self: not self.match.over)
    @rule(chance=chances, policy=st.sampled_from(Revoke))
    def revoke(self, chance: random.Random, policy: Revoke) -> None:
        self.see(self.match.revoke(chance.choice(self.match.active), policy))
        self.declined = False

    @precondition(lambda self: self.match.over)
    @rule(seat=st.integers(0, 4))
    def nothing_is_asked_after_the_end(self, seat: int) -> None:
        assert self.match.legal(seat) == NOTHING
        assert not self.match.can(seat, [])

    @invariant()
    def check_cards(self) -> None:
        """Every card is in one place, and the witness knows which hand each is in."""
        match, deal = self.match, self.match.deal
        places = [*deal.hands, *deal.taken, *(1 << card for card in (*deal.table, *deal.stock))]
        if deal.set_aside is not None and any(deal.hands):
            places.append(1 << deal.set_aside)
        assert sum(places) == sum(1 << card for card in self.witness.deck)
        assert sum(mask.bit_count() for mask in places) == len(self.witness.deck)
        if not match.over:
            assert [set(cards_of(hand)) for hand in deal.hands] == self.witness.hands
            assert len(deal.stock) == self.witness.stock

    @invariant()
    def check_legal(self) -> None:
        """Something is legal, all that is listed is accepted, all else is refused and changes nothing."""
        match = self.match
        assert match.over == (match.stage is Stage.OVER) == (not match.pending)
        before = match.state()
        for seat in range(match.rules.players):
            if seat in match.pending:
                check_list(match, seat)
            else:
                assert match.legal(seat) == NOTHING
                refused(match, seat, [PlayCard(CARDS[0])])
                refused(match, seat, [])
        assert match.state() == before

    @invariant()
    def check_replay(self) -> None:
        """The events give the same state; but for declines, which only what comes later shows."""
        if not self.declined:
            again = replay(self.match.rules, self.decks, self.events)
            assert again.state() == self.match.state()

    def teardown(self) -> None:
        if not hasattr(self, "match"):
            return
        chance = random.Random(0)
        for _ in range(ANSWERS_AT_MOST):
            if self.match.over:
                break
            self.answer(chance)
        assert self.match.over
        assert self.witness.ended
        self.check_legal()
        self.check_replay()


def check_list(match: Match, seat: int) -> None:
    """``legal`` and ``check`` say the same about every single action."""
    legal = match.legal(seat)
    hand = set(match.hand(seat))
    assert set(cards_of(legal.cards | legal.discards)) <= hand
    accepted_cards = [card for card in CARDS if match.can(seat, [PlayCard(card)])]
    assert accepted_cards == list(cards_of(legal.cards))
    assert [card for card in CARDS if match.can(seat, [Discard(card)])] == list(cards_of(legal.discards))
    assert match.can(seat, []) == (not legal.cards and not legal.discards)
    assert match.can(seat, [CallMonte()]) == legal.monte
    assert match.can(seat, [CallOut()]) == legal.call_out
    last = [PlayCard(card) for card in accepted_cards[:1]]
    assert all(match.can(seat, [Declare(one), *last]) for one in legal.declarations)
    for play in last:
        assert match.can(seat, [PlayCard(play.card, Signal.VOLO)]) == legal.signals


def refused(match: Match, seat: int, actions: list[PlayCard]) -> None:
    with pytest.raises(ActionError):
        match.act(seat, actions)


def run(**chosen: Any) -> None:
    """A slow machine is no failure."""
    run_state_machine_as_test(
        MatchMachine, settings=settings(deadline=None, suppress_health_check=list(HealthCheck), **chosen)
    )


def test_every_match_of_every_rule_set_holds_to_the_rules() -> None:
    run(max_examples=120, stateful_step_count=15, derandomize=True)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_matches_of_every_rule_set_hold_to_the_rules() -> None:
    run(max_examples=3000, stateful_step_count=30)


@settings(deadline=None)
@given(st.lists(st.sampled_from(CARDS), unique=True))
def test_text_notation_round_trips(cards: list[Card]) -> None:
    assert parse_cards(" ".join(map(str, cards))) == tuple(cards)
    assert parse_cards([str(card) for card in cards]) == tuple(cards)
    assert list(cards_of(mask_of(cards))) == sorted(cards)


@settings(deadline=None)
@given(st.text(max_size=3))
def test_any_other_text_is_no_card(text: str) -> None:
    if text in {str(card) for card in CARDS}:
        assert str(parse_card(text)) == text
    else:
        with pytest.raises(NotationError) as error:
            parse_card(text)
        assert error.value.text == text


@settings(deadline=None)
@given(rule_sets())
def test_options_name_a_rule_set_completely(rules: RuleSet) -> None:
    again = RuleSet.from_options(rules.options())
    assert again == rules
    assert (again.options(), again.hash(), hash(again)) == (rules.options(), rules.hash(), hash(rules))
    assert rules.replace() == rules
