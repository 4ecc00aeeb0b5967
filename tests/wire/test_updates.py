"""What goes out to each seat, byte for byte: nothing that it may not know, nothing missing, and nothing that
protobuf itself would have written otherwise."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rulesets import rule_sets
from support.tables import MONTE, TWO_POOR_HANDS, Table, game_spec
from support.wiretap import UNIX_MS, Knowledge, cards_in, playing, sent_to
from tressette.play.config import PlayConfig
from tressette.play.session import Seat
from tressette.rules.actions import PlayCard
from tressette.rules.cards import CARDS, SUIT_LETTERS, cards_of
from tressette.rules.deck import Phase
from tressette.rules.events import DealStarted, MatchEnded, redact
from tressette.rules.presets import PRESETS, resolve
from tressette.rules.ruleset import RuleSet
from tressette.v1 import arena_service_pb2 as pb
from tressette.v1 import view_pb2 as view_pb
from tressette.wire.convert import (
    ended_to_wire,
    event_from_wire,
    event_to_wire,
    legal_to_wire,
    rules_from_wire,
    wire_cards,
)

LONG = [
    "tressette-004-drawn",
    "tressette-002",
    "tressette-due",
    "ciapano-five",
    "ciapano-trio",
    "traversone-pairs",
]


def _walk(rules: RuleSet, seed: int) -> None:
    """Check every update of a random match."""
    known: dict[str, Knowledge] = {}
    received: dict[str, int] = defaultdict(int)
    for seat, update in playing(rules, seed):
        knows = known.setdefault(seat.handle, Knowledge(seat.number))
        assert update.handle == seat.handle
        _check_started(seat, update, first=not received[seat.handle])
        _check_events(seat, update, received[seat.handle], knows)
        received[seat.handle] += len(update.events)
        if update.HasField("turn"):
            _check_turn(seat, update.turn, knows)
    assert len(known) == rules.players
    assert len(set(received.values())) == 1


def _check_started(seat: Seat, update: pb.MatchUpdate, first: bool) -> None:
    assert update.HasField("started") == first
    if first:
        started, spec = update.started, seat.game.spec
        assert rules_from_wire(started.rules).hash() == spec.rules.hash()
        assert (started.preset, started.attempt, started.seat) == (spec.preset, spec.attempt, seat.number)
        assert started.bot_seed == seat.game.bot_seed(seat)
        assert started.deck_commitment.hex() == spec.commitment
        assert started.clock.move_ms == seat.game.config.move_ms
        assert not started.names, "opponents are anonymous"
        assert cards_in(started) == {spec.rules.removed_card}


def _check_events(seat: Seat, update: pb.MatchUpdate, before: int, knows: Knowledge) -> None:
    log = seat.game.log
    if update.events:
        assert update.first_event == before + 1
    for message, truth in zip(update.events, log[before:], strict=True):
        knows.learn(truth)
        assert cards_in(message) <= knows.cards, f"seat {seat.number} may not know this: {message}"
        if isinstance(truth, MatchEnded):
            assert message == ended_to_wire(truth, seat.game.spec.suits)
            continue
        assert message == event_to_wire(truth, (seat.number,))
        assert event_from_wire(message, seat.number, seat.game.spec.rules) == redact(truth, (seat.number,))


def _check_turn(seat: Seat, turn: view_pb.Turn, knows: Knowledge) -> None:
    match = seat.game.match
    deal = match.deal
    legal = match.legal(seat.number)
    assert turn == view_pb.Turn(
        turn_id=seat.turn,
        view=view_pb.SeatView(
            hand=wire_cards(deal.hands[seat.number]),
            table=[card + 1 for card in deal.table],  # type: ignore[misc]  # enum values
            leader=deal.leader,
            legal=legal_to_wire(legal),
            totals=match.standing.totals if legal.call_out else (),
            taken_thirds=[pile.thirds if pile else 0 for pile in match.piles()] if legal.call_out else (),
            active=match.active if len(match.active) < match.rules.players else (),
        ),
        clock=view_pb.Clock(move_ms=seat.game.config.move_ms),
        sent_unix_ms=UNIX_MS,
    )
    assert cards_in(turn) <= knows.cards
    view = turn.view
    assert {CARDS[card - 1] for card in view.hand} == set(match.hand(seat.number))
    assert set(view.legal.cards) <= set(view.hand)
    assert set(view.legal.discards) <= set(view.hand)


@pytest.mark.parametrize("preset", [*(name for name in PRESETS if name.endswith("-duplicate")), *LONG])
async def test_a_seat_is_told_all_that_it_may_know_and_no_more(preset: str) -> None:
    for seed in range(2):
        _walk(PRESETS[preset], seed)


@settings(max_examples=40, deadline=None)
@given(rules=rule_sets(), seed=st.integers(0, 1 << 30))
async def test_under_any_rules(rules: RuleSet, seed: int) -> None:
    _walk(rules, seed)


async def test_the_suits_are_told_at_the_end_and_no_sooner() -> None:
    told = []
    for seat, update in playing(resolve("tressette-21-duplicate"), 3):
        for event in update.events:
            suits = "".join(SUIT_LETTERS[suit - 1] for suit in event.match_ended.suits)
            assert suits == (seat.game.spec.suits if event.HasField("match_ended") else "")
            told.append(suits)
    assert sum(map(bool, told)) == 4


async def test_several_seats_are_asked_for_monte_at_once() -> None:
    table = Table()
    players = table.sit(game_spec(rules=MONTE, seed=TWO_POOR_HANDS))
    asked = [batch.updates[0] for _, batch in map(sent_to, players) if batch.updates]
    assert len(asked) == 2
    for update in asked:
        legal = update.turn.view.legal
        assert (legal.monte, list(legal.cards)) == (True, [])


async def test_no_clock_where_there_is_no_limit() -> None:
    table = Table(PlayConfig(move_ms=0))
    players = table.sit(game_spec())
    (update,) = (batch.updates[0] for _, batch in map(sent_to, players) if batch.updates)
    assert not update.turn.HasField("clock")
    assert not update.started.HasField("clock")


async def test_asking_again_gives_what_is_left_of_the_time() -> None:
    table = Table(PlayConfig(move_ms=2000, illegal_retries=5))
    players = table.sit(game_spec())
    player = next(player for player in players if player.session.news)
    left = []
    for passed in (0, 500, 1499, 400):
        table.clock.pass_ms(passed)
        _, batch = sent_to(player)
        (update,) = batch.updates
        assert update.turn.turn_id == 1
        left.append(update.turn.clock.move_ms)
        player.answer(player.seat(), [])
    assert left == [2000, 1500, 1, 1]


async def test_receipts_errors_and_updates_travel_in_one_message() -> None:
    table = Table()
    players = [table.player(name, max_matches=3) for name in "abcd"]
    for number in range(3):
        table.arena.start(game_spec(f"g{number}"), [player.session for player in players])
    turns = 0
    while not table.results:
        for player in players:
            seats, batch = sent_to(player)
            turns = max(turns, len(batch.updates))
            assert [update.handle for update in batch.updates] == [seat.handle for seat in seats]
            for seat in seats:
                if seat.open:
                    player.answer(seat)
                    player.session.answer("none", 1, [])
            if any(seat.open for seat in seats):
                assert len(player.session.receipts) == len(player.session.refused)
    assert turns == 3


@pytest.mark.parametrize(
    ("handle", "turn", "reason"),
    [("none", 1, pb.ERROR_REASON_UNKNOWN_HANDLE), ("", 7, pb.ERROR_REASON_UNKNOWN_TURN)],
)
async def test_errors_name_handle_and_turn(handle: str, turn: int, reason: pb.ErrorReason.ValueType) -> None:
    table = Table()
    player = table.sit(game_spec())[0]
    handle = handle or player.seat().handle
    player.session.answer(handle, turn, [PlayCard(CARDS[0])])
    _, batch = sent_to(player)
    (error,) = batch.errors
    assert (error.handle, error.turn_id, error.reason, error.may_retry) == (handle, turn, reason, False)


async def test_a_partner_that_is_a_copy_is_announced() -> None:
    rules = resolve("tressette-21-duplicate")
    for bots, copies in (
        (("a", "b", "a", "c"), (True, False, True, False)),
        (("a", "a", "b", "b"), (False,) * 4),
    ):
        table = Table()
        spec = game_spec(rules=rules, bots=bots)
        players = table.sit(spec)
        told: dict[int, bool] = {}
        while len(told) < 4:
            for player in players:
                for update in sent_to(player)[1].updates:
                    if update.HasField("started"):
                        told[update.started.seat] = update.started.partner_is_copy
                    if update.HasField("turn"):
                        player.answer(player.seat())
        assert tuple(told[seat] for seat in range(4)) == copies


async def test_after_a_draw_everybody_is_told_the_seat_that_counts() -> None:
    for seed in range(8):
        table = Table()
        players = table.sit(game_spec(rules=resolve("tressette-004-drawn"), seed=seed.to_bytes(32, "big")))
        (game,) = table.arena.games
        seats = {player.session.name: player.seat().number for player in players}
        assert sorted(seats.values()) == [0, 1, 2, 3]
        assert seats == {name: game.match.seating[index] for index, name in enumerate("abcd")}
        for player in players:
            for seat, update in zip(*(lambda told: (told[0], told[1].updates))(sent_to(player)), strict=True):
                dealt = next(event for event in game.log if isinstance(event, DealStarted))
                assert dealt.phase is Phase.MAIN
                assert update.started.seat == seat.number
                hand = event_to_wire(dealt, (seat.number,)).deal_started.hand.cards
                assert list(hand) == list(wire_cards(dealt.hands[seat.number] or 0))
                assert set(cards_of(game.match.deal.hands[seat.number])) <= {CARDS[card - 1] for card in hand}
