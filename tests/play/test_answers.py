"""What becomes of an answer: taken in, repeated, late, refused, understood or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support.tables import MONTE, TWO_POOR_HANDS, Player, Table, committed_faults, game_spec
from tressette.play.config import PlayConfig
from tressette.play.session import Seat, Status, UnknownHandle, UnknownTurn
from tressette.rules.actions import Action, CallMonte, PlayCard
from tressette.rules.cards import CARDS, cards_of
from tressette.rules.errors import ActionError, MalformedAction, Refusal
from tressette.rules.events import CardPlayed, FaultEffect, FaultKind
from tressette.rules.substitute import substitute


def _asked(players: Sequence[Player]) -> tuple[Player, Seat]:
    """The one player that is asked, and its seat; its news is taken."""
    (player,) = (player for player in players if player.session.news)
    (seat,) = player.take().turns
    return player, seat


def _not_held(seat: Seat) -> list[Action]:
    hand = seat.game.match.deal.hands[seat.number]
    return [PlayCard(next(card for card in CARDS if not hand >> card & 1))]


def _refusal(player: Player) -> Any:
    (refused,) = player.take().refused
    return refused


# -- receipts -----------------------------------------------------------------------------------------


async def test_an_answer_is_accepted_once_and_then_repeated() -> None:
    table = Table()
    player, seat = _asked(table.sit(game_spec()))
    player.answer(seat)
    player.session.answer(seat.handle, 1, [])
    player.session.answer(seat.handle, 1, _not_held(seat))
    delivery = player.take()
    assert delivery.receipts == [
        (seat.handle, 1, Status.ACCEPTED),
        (seat.handle, 1, Status.REPEATED),
        (seat.handle, 1, Status.REPEATED),
    ]
    assert delivery.refused == []
    assert table.faults() == []


async def test_an_answer_to_a_turn_that_was_played_for_it_is_too_late() -> None:
    table = Table(PlayConfig(move_ms=100))
    player, seat = _asked(table.sit(game_spec()))
    table.clock.pass_ms(101)
    table.arena.expire()
    player.answer(seat)
    assert player.take().receipts == [(seat.handle, 1, Status.TURN_OVER)]


@pytest.mark.parametrize("turn", [0, 2, 99, -1])
async def test_a_turn_that_was_never_asked(turn: int) -> None:
    table = Table()
    player, seat = _asked(table.sit(game_spec()))
    player.session.answer(seat.handle, turn, [])
    refused = _refusal(player)
    assert isinstance(refused.error, UnknownTurn)
    assert (refused.handle, refused.turn, refused.may_retry) == (seat.handle, turn, False)
    assert seat.open
    assert table.faults() == []


async def test_the_handle_of_another_bot_is_unknown() -> None:
    table = Table()
    players = table.sit(game_spec())
    player, seat = _asked(players)
    thief = players[(players.index(player) + 1) % 4]
    thief.session.answer(seat.handle, 1, [])
    assert isinstance(_refusal(thief).error, UnknownHandle)
    assert seat.open
    assert table.faults() == []


async def test_after_the_end_answers_still_get_a_fitting_receipt() -> None:
    table = Table(PlayConfig(move_ms=100))
    players = table.sit(game_spec())
    player, seat = _asked(players)
    table.clock.pass_ms(101)
    table.arena.expire()
    table.finish()
    assert player.session.seats == {}
    for turn in (1, 2, 10, 11, 0):
        player.session.answer(seat.handle, turn, [])
    delivery = player.take()
    assert [(turn, status) for _, turn, status in delivery.receipts] == [
        (1, Status.TURN_OVER),
        (2, Status.REPEATED),
        (10, Status.REPEATED),
    ]
    assert [refused.turn for refused in delivery.refused] == [11, 0]
    assert all(isinstance(refused.error, UnknownTurn) for refused in delivery.refused)


async def test_only_the_last_finished_handles_are_remembered() -> None:
    table = Table()
    players = [table.player(name) for name in "abcd"]
    handles = []
    for number in range(1100):
        table.arena.start(game_spec(f"g{number}"), [player.session for player in players])
        handles.append(players[0].seat().handle)
        (game,) = table.arena.games
        for player in players:
            player.take()
        while game.match.pending:
            seat = game.seats[game.match.pending[0]]
            assert seat.session is not None
            seat.session.answer(seat.handle, seat.turn, substitute(game.match.legal(seat.number)))
        for player in players:
            player.take()
            assert player.session.seats == {}
    session = players[0].session
    session.answer(handles[-1], 1, [])
    session.answer(handles[-1000], 1, [])
    session.answer(handles[0], 1, [])
    delivery = players[0].take()
    assert [handle for handle, _, _ in delivery.receipts] == [handles[-1], handles[-1000]]
    assert [refused.handle for refused in delivery.refused] == [handles[0]]


# -- illegal and malformed ------------------------------------------------------------------------------


async def test_an_illegal_answer_is_told_and_the_turn_is_asked_again() -> None:
    table = Table(PlayConfig(move_ms=1000, illegal_retries=1))
    player, seat = _asked(table.sit(game_spec()))
    due = seat.game.deadline(seat)
    table.clock.pass_ms(300)
    player.answer(seat, _not_held(seat))
    delivery = player.take()
    (refused,) = delivery.refused
    assert isinstance(refused.error, ActionError)
    assert (refused.error.code, refused.turn, refused.may_retry) == (Refusal.CARD_NOT_HELD, 1, True)
    assert delivery.turns == [seat]
    assert (seat.turn, seat.open) == (1, True)
    assert seat.game.deadline(seat) == due, "the clock runs on"
    (fault,) = committed_faults(delivery.events[seat.handle])
    assert (fault.seat, fault.kind, fault.effect) == (seat.number, FaultKind.ILLEGAL, FaultEffect.RETRY)
    player.answer(seat)
    assert player.take().receipts == [(seat.handle, 1, Status.ACCEPTED)]


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_when_the_retries_are_used_up_the_substitute_is_played(retries: int) -> None:
    table = Table(PlayConfig(move_ms=1000, illegal_retries=retries))
    players = table.sit(game_spec())
    player, seat = _asked(players)
    wanted = substitute(seat.game.match.legal(seat.number))
    for number in range(retries + 1):
        player.answer(seat, _not_held(seat))
        assert _refusal(player).may_retry == (number < retries)
    played = next(event for event in seat.game.log if isinstance(event, CardPlayed))
    assert [PlayCard(played.card)] == list(wanted)
    following, its_seat = _asked(players)
    assert following is not player
    following.answer(its_seat)
    table.finish()
    assert table.faults() == [(seat.number, "illegal", "retry", "CARD_NOT_HELD")] * retries + [
        (seat.number, "illegal", "substitute", "CARD_NOT_HELD")
    ]
    assert table.results[0]["faults"] == [[player.session.name, "illegal", retries + 1]]


async def test_the_retries_are_counted_anew_in_each_turn() -> None:
    table = Table(PlayConfig(illegal_retries=1))
    table.sit(game_spec())
    tried: set[tuple[str, int]] = set()

    def choose(seat: Seat) -> Sequence[Action] | None:
        key = seat.handle, seat.turn
        if key in tried:
            return None
        tried.add(key)
        return _not_held(seat)

    table.finish(choose)
    assert [fault[2] for fault in table.faults()] == ["retry"] * 40


async def test_an_answer_that_means_nothing_is_a_fault_of_another_kind() -> None:
    table = Table(PlayConfig(illegal_retries=1))
    player, seat = _asked(table.sit(game_spec()))
    error = MalformedAction(Refusal.UNKNOWN_CARD, "99 is no card")
    player.session.malformed(seat.handle, 1, error)
    assert _refusal(player).may_retry
    player.session.malformed(seat.handle, 1, error)
    assert not _refusal(player).may_retry
    player.session.malformed(seat.handle, 1, error)  # the turn is over: told, and no fault
    assert not _refusal(player).may_retry
    player.session.malformed("none", 1, error)
    assert _refusal(player).handle == "none"
    table.finish()
    assert table.faults() == [
        (seat.number, "malformed", "retry", "UNKNOWN_CARD"),
        (seat.number, "malformed", "substitute", "UNKNOWN_CARD"),
    ]


async def test_actions_that_are_none_are_malformed() -> None:
    table = Table(PlayConfig(illegal_retries=1))
    player, seat = _asked(table.sit(game_spec()))
    player.answer(seat, [PlayCard(card) for card in CARDS[:2]])
    player.answer(seat, ["card"])  # type: ignore[list-item]
    table.finish()
    assert {fault[1] for fault in table.faults()} == {"malformed"}


# -- monte --------------------------------------------------------------------------------------------


def _two_asked(table: Table) -> list[tuple[Player, Seat]]:
    table.sit(game_spec(rules=MONTE, seed=TWO_POOR_HANDS))
    asked = [(player, seat) for player in table.players for seat in player.take().turns]
    assert len(asked) == 2
    return asked


async def test_a_monte_withdraws_the_other_open_turn() -> None:
    table = Table()
    (first, one), (second, other) = _two_asked(table)
    first.answer(one, [CallMonte()])
    assert other.turn in other.lapsed or not other.open
    second.session.answer(other.handle, 1, [CallMonte()])
    delivery = second.take()
    assert delivery.receipts == [(other.handle, 1, Status.TURN_OVER)]
    assert one.game.match.attempt == 2
    table.finish()
    assert table.faults() == []
    assert len(table.results) == 1


async def test_declining_monte_leaves_the_other_turn_open() -> None:
    table = Table()
    (first, one), (second, other) = _two_asked(table)
    first.answer(one, [])
    assert first.take().receipts == [(one.handle, 1, Status.ACCEPTED)]
    assert other.open
    second.answer(other, [CallMonte()])
    assert one.game.match.attempt == 2


async def test_off_turn_decisions_can_time_out_together() -> None:
    table = Table(PlayConfig(move_ms=100))
    (_, one), (_, other) = _two_asked(table)
    table.clock.pass_ms(101)
    table.arena.expire()
    assert not any(event for event in one.game.log if type(event).__name__ == "DealVoided")
    assert {fault.seat for fault in committed_faults(one.game.log)} == {one.number, other.number}
    table.finish()


# -- what travels together ------------------------------------------------------------------------------


async def test_one_take_carries_all_turns_of_all_games() -> None:
    table = Table()
    players = [table.player(name, max_matches=50) for name in "abcd"]
    for number in range(50):
        table.arena.start(game_spec(f"g{number}"), [player.session for player in players])
    turns = 0
    for _ in range(40):
        for player in players:
            seats = player.take().turns
            turns = max(turns, len(seats))
            for seat in seats:
                player.answer(seat)
    assert turns == 50
    assert len(table.results) == 50


async def test_news_of_a_seat_is_queued_once_however_much_happens() -> None:
    table = Table(PlayConfig(illegal_retries=9))
    player, seat = _asked(table.sit(game_spec()))
    for _ in range(3):
        player.answer(seat, _not_held(seat))
    assert player.session.news == [seat]
    delivery = player.take()
    assert len(delivery.refused) == 3
    assert len(list(committed_faults(delivery.events[seat.handle]))) == 3
    assert player.take().events == {}


async def test_the_arena_wakes_whoever_has_something_to_send() -> None:
    table = Table()
    players = table.sit(game_spec())
    player, seat = _asked(players)
    for other in players:
        other.woken = 0
    player.answer(seat)
    following = [other for other in players if other.session.news]
    assert len(following) == 1
    assert following[0].woken == player.woken == 1


async def test_a_card_that_was_played_for_a_seat_is_legal() -> None:
    table = Table(PlayConfig(move_ms=100))
    table.sit(game_spec())
    for _ in range(40):
        (game,) = table.arena.games
        (number,) = game.match.pending
        legal = cards_of(game.match.legal(number).cards)
        table.clock.pass_ms(101)
        table.arena.expire()
        played = [event for event in game.log if isinstance(event, CardPlayed)][-1]
        assert (played.seat, played.card in legal) == (number, True)
    assert len(table.results) == 1
