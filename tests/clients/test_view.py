"""A view tells what its seat may know, and nothing else."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest
from support.bots import Table
from tressette.rules.cards import BITS, CARDS, SUIT_MASKS, SUIT_OF, cards_of, mask_of, parse_cards
from tressette.rules.presets import PRESETS, resolve
from tressette.v1.arena_service_pb2 import MatchStarted, MatchUpdate
from tressette.v1.card_pb2 import Suit
from tressette.v1.event_pb2 import CardPlayed, DealStarted, Event, MatchEnded
from tressette.wire.convert import rules_to_wire
from tressette_bot.bots import REFERENCE_BOTS
from tressette_bot.errors import ProtocolViolated, UnknownRules
from tressette_bot.messages import rules_from
from tressette_bot.view import View

RANDOM = REFERENCE_BOTS["random"]()
SEATED = MatchStarted(
    rules=rules_to_wire(PRESETS["tressette-21"]), preset="tressette-21", seat=3, bot_seed=bytes(32)
)


def check_against_engine(table: Table, seat: int) -> None:
    """Everything that the view of ``seat``, which is asked, says is so."""
    view, match = table.views[seat], table.match
    deal, rules = match.deal, match.rules
    assert view.hand == match.hand(seat)
    assert view.legal == cards_of(match.legal(seat).cards)
    assert view.discards == cards_of(match.legal(seat).discards)
    assert view.declarable == match.legal(seat).declarations
    assert view.table == tuple(deal.table)
    assert view.leader == deal.leader
    assert view.totals == tuple(match.standing.totals)
    seen = view.deal
    assert (seen.phase, seen.number, seen.attempt, seen.dealer) == (
        match.phase,
        match.number,
        match.attempt,
        match.dealer,
    )
    assert seen.active == match.active
    assert seen.taken == deal.taken
    assert seen.tricks_won == deal.tricks
    assert seen.thirds == [deal.value(mask) for mask in deal.taken]
    assert seen.stock == len(deal.stock)
    others = [other for other in range(rules.players) if other != seat]
    hidden = mask_of(deal.stock)
    for other in others:
        hidden |= deal.hands[other]
        assert not seen.shown[other] & ~deal.hands[other]
        for suit in range(4):
            if seen.voids[other] >> suit & 1:
                assert not deal.hands[other] & SUIT_MASKS[suit]
    if deal.set_aside is not None and seen.set_aside is None:
        hidden |= BITS[deal.set_aside]
    assert view.unseen == hidden


@pytest.mark.parametrize(
    "preset",
    ["tressette-21", "tressette-004", "tressette-due", "ciapano-31", "ciapano-trio", "traversone-trio"],
)
def test_agrees_with_the_engine_at_every_turn(preset: str) -> None:
    table = Table(PRESETS[preset], bytes([7]) * 32)
    turns = 0
    while not table.match.over:
        seat = table.match.pending[0]
        table.ask(seat, RANDOM, before=partial(check_against_engine, table, seat))
        turns += 1
    assert turns >= 10


def test_the_end_of_a_match_is_known_without_a_turn() -> None:
    table = Table(PRESETS["tressette-21-duplicate"], bytes(32))
    table.play([RANDOM] * 4)
    for seat, view in enumerate(table.views):
        assert not view.take(table.update(seat))
        assert view.ended is not None
        assert view.totals == tuple(table.match.standing.totals)
        assert view.deal.played == view.deal.in_play == mask_of(CARDS)


def test_winning_is_who_wins_in_the_end() -> None:
    table = Table(PRESETS["tressette-21-duplicate"], bytes(32))
    before_last: list[tuple[int, int]] = []
    while not table.match.over:
        seat = table.match.pending[0]
        table.ask(seat, RANDOM)
        view = table.views[seat]
        assert view.order[len(view.table)] == seat
        assert (view.winning is None) == (view.led is None) == (not view.table)
        if len(view.table) == 3:
            assert view.winning is not None
            assert view.winning[1] in view.table
            before_last.append((view.winning[0], seat))
    table.views[0].take(table.update(0))
    winners = [trick.winner for trick in table.views[0].deal.tricks]
    assert len(winners) == len(before_last) == 10
    assert all(winner in pair for winner, pair in zip(winners, before_last, strict=True))


def test_partner_and_side() -> None:
    view = View("h", SEATED)
    assert (view.seat, view.side, view.partner, view.players) == (3, 1, 1, 4)
    assert view.is_partner(1)
    assert not view.is_partner(3)
    alone = View("h", MatchStarted(rules=rules_to_wire(PRESETS["traversone-003-21"]), seat=3))
    assert (alone.side, alone.partner) == (3, None)
    assert not any(alone.is_partner(seat) for seat in range(4))


def test_nothing_is_there_before_the_first_deal() -> None:
    view = View("h", SEATED)
    assert (view.hand, view.legal, view.table, view.totals, view.clock) == ((), (), (), (0, 0), None)
    with pytest.raises(AttributeError, match="no deal"):
        _ = view.deal


def test_chance_comes_from_the_seed_of_the_match() -> None:
    one, same = View("a", SEATED), View("b", SEATED)
    assert [one.rng.random() for _ in range(3)] == [same.rng.random() for _ in range(3)]
    other = View("c", MatchStarted(rules=SEATED.rules, bot_seed=bytes([1]) * 32))
    assert other.rng.random() != Random(SEATED.bot_seed).random()


def _played(first: int, *cards: str) -> MatchUpdate:
    events = [
        Event(card_played=CardPlayed(seat=seat, card=card + 1))  # type: ignore[arg-type]  # enum values
        for seat, card in enumerate(parse_cards(cards))
    ]
    return MatchUpdate(handle="h", first_event=first, events=events)


def _dealt() -> View:
    view = View("h", SEATED)
    started = DealStarted(phase=1, number=1, attempt=1, active=range(4))  # type: ignore[arg-type]
    view.take(MatchUpdate(handle="h", first_event=1, events=[Event(deal_started=started)]))
    return view


def test_events_sent_again_are_skipped() -> None:
    view = _dealt()
    view.take(_played(2, "3c", "4c"))
    view.take(_played(2, "3c", "4c", "5d"))
    assert view.event == 4
    assert view.deal.trick_cards == list(parse_cards("3c 4c 5d"))
    assert view.deal.voids == [0, 0, 1 << SUIT_OF[parse_cards("3c")[0]], 0]
    view.take(_played(2, "3c"))
    assert view.event == 4


@pytest.mark.parametrize("first", [0, 3])
def test_missing_events_are_refused(first: int) -> None:
    with pytest.raises(ProtocolViolated, match="follows event 1"):
        _dealt().take(_played(first, "3c"))


def test_events_of_an_unknown_kind_are_ignored() -> None:
    view = _dealt()
    view.take(MatchUpdate(handle="h", first_event=2, events=[Event()]))
    view.take(_played(3, "3c"))
    assert view.deal.trick_cards == list(parse_cards("3c"))


def test_unread_events_do_not_pile_up() -> None:
    table = Table(resolve("tressette-21-duplicate", deals=8), bytes(32))
    first = REFERENCE_BOTS["first_legal"]()
    table.play([first] * 4)
    view = table.views[0]
    view.take(table.update(0))
    assert view.turn_id == 80
    assert view.totals == tuple(table.match.standing.totals)


@pytest.mark.parametrize("preset", PRESETS)
def test_rules_of_every_preset_arrive(preset: str) -> None:
    assert rules_from(rules_to_wire(PRESETS[preset])).hash() == PRESETS[preset].hash()


def test_rules_that_are_not_known_are_named() -> None:
    message = rules_to_wire(resolve("tressette-21"))
    message.monte = 99  # type: ignore[assignment]
    with pytest.raises(UnknownRules, match=r"monte.*99"):
        View("h", MatchStarted(rules=message))
    message = rules_to_wire(resolve("tressette-21"))
    message.ClearField("first_to")
    with pytest.raises(UnknownRules, match="end"):
        rules_from(message)
    message = rules_to_wire(resolve("tressette-21"))
    message.removed_card = 0  # type: ignore[assignment]
    with pytest.raises(UnknownRules, match="removed_card"):
        rules_from(message)
    message = rules_to_wire(resolve("tressette-21"))
    message.players = 3
    with pytest.raises(UnknownRules, match="sides"):
        rules_from(message)


def test_the_suit_order_is_there_when_the_match_is_over() -> None:
    view = View("h", SEATED)
    assert view.suits == ""
    suits = [Suit.SUIT_DENARI, Suit.SUIT_SPADE, Suit.SUIT_BASTONI, Suit.SUIT_COPPE]
    view.take(MatchUpdate(first_event=1, events=[Event(match_ended=MatchEnded(suits=suits))]))
    assert view.suits == "dsbc"
