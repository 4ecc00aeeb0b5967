"""A session without its link: what runs on, and what a new link is sent."""

from __future__ import annotations

import asyncio

import pytest
from support.tables import Player, Table, committed_faults, game_spec, settle
from tressette.play.config import PlayConfig
from tressette.play.session import MAX_WAITING, DoesNotRead, Seat
from tressette.rules.events import FaultEffect, FaultKind, MatchEnded


def nothing() -> None:
    """A transport that is not woken in these tests."""


def attach(player: Player, positions: dict[str, int]) -> None:
    player.session.attach(nothing, nothing, nothing, positions)


def asked(table: Table) -> tuple[Player, Seat]:
    for player in table.players:
        for seat in player.take().turns:
            return player, seat
    raise AssertionError("nobody is asked")


async def test_a_resuming_bot_gets_what_it_missed_and_its_open_turn() -> None:
    table = Table()
    table.sit(game_spec())
    player, seat = asked(table)
    known = len(seat.game.log)
    player.session.detach()
    others = [other for other in table.players if other is not player]
    attach(player, {seat.handle: known - 1})
    delivery = player.take()
    assert delivery.turns == [seat]
    assert delivery.events[seat.handle] == seat.game.log[known - 1 :]
    player.answer(seat)
    assert player.take().receipts[0][:2] == (seat.handle, 1)
    assert others


async def test_a_bot_that_lost_its_memory_gets_everything() -> None:
    table = Table()
    table.sit(game_spec())
    player, seat = asked(table)
    player.session.detach()
    attach(player, {})
    assert player.take().events[seat.handle] == seat.game.log


async def test_a_position_that_does_not_exist_is_answered_with_everything() -> None:
    table = Table()
    table.sit(game_spec())
    player, seat = asked(table)
    player.session.detach()
    attach(player, {seat.handle: 10_000, "another": 3})
    assert player.take().events[seat.handle] == seat.game.log


async def test_the_clock_runs_while_nobody_is_there() -> None:
    table = Table(PlayConfig(move_ms=1000))
    table.sit(game_spec())
    player, seat = asked(table)
    player.session.detach()
    table.clock.pass_ms(1500)
    table.arena.expire()
    assert not seat.open
    (fault,) = committed_faults(seat.game.log)
    assert (fault.seat, fault.kind, fault.effect) == (
        seat.number,
        FaultKind.DISCONNECT,
        FaultEffect.SUBSTITUTE,
    )
    attach(player, {seat.handle: 0})
    assert player.take().turns == []


async def test_the_end_of_a_match_that_was_missed_is_sent_again() -> None:
    table = Table()
    table.sit(game_spec())
    player = table.players[0]
    seat = player.seat()
    seen = 0
    while not table.results:
        for other in table.players:
            for turn in other.take().turns:
                other.answer(turn)
            if other is player and not table.results:
                seen = len(seat.game.log)
    player.take()
    assert seat.handle not in player.session.seats
    player.session.detach()
    attach(player, {seat.handle: seen - 1})
    events = player.take().events[seat.handle]
    assert isinstance(events[-1], MatchEnded)
    assert events == seat.game.log[seen - 1 :]


async def test_the_grace_period_ends_in_leaving() -> None:
    table = Table(PlayConfig(move_ms=60_000))
    table.arena.grace_s = 0.01
    table.sit(game_spec())
    player, _ = asked(table)
    table.arena.lost(player.session)
    assert player.session in table.arena.sessions[player.session.name]
    gone = asyncio.Event()
    table.arena._on_session = lambda _session, is_open: None if is_open else gone.set()
    table.clock.pass_ms(10)
    await asyncio.wait_for(gone.wait(), 60)
    assert player.session.name not in table.arena.sessions
    table.players.remove(player)
    table.finish()
    assert table.results[0]["faults"] == [[player.session.name, "disconnect", 10]]


async def test_a_grace_period_stands_still_with_the_clock() -> None:
    table = Table(PlayConfig(move_ms=60_000))
    table.arena.grace_s = 0.01
    table.sit(game_spec())
    player, _ = asked(table)
    table.arena.lost(player.session)
    await asyncio.sleep(0.05)
    assert player.session in table.arena
    table.clock.pass_ms(9)
    await asyncio.sleep(0.05)
    assert player.session in table.arena
    table.arena.close()


async def test_a_session_without_matches_is_not_kept() -> None:
    table = Table()
    table.arena.grace_s = 60
    player = table.player("a")
    table.arena.lost(player.session)
    assert not table.arena.sessions


async def test_only_the_same_bot_may_resume() -> None:
    table = Table()
    player = table.player("a")
    token = player.session.resume_token
    assert table.arena.resumable(token, "a") is player.session
    assert table.arena.resumable(token, "b") is None
    assert table.arena.resumable("nonsense", "a") is None
    player.leave()
    assert table.arena.resumable(token, "a") is None


async def test_a_detached_session_gets_no_new_match_until_it_is_back() -> None:
    table = Table()
    table.arena.grace_s = 60
    table.sit(game_spec())
    player = table.players[0]
    player.session.max_matches = 2
    table.arena.lost(player.session)
    assert not player.session.has_room
    table.arena.submit(game_spec("g2", bots=("a", "x", "y", "z")))
    for name in "xyz":
        table.player(name)
    await settle()
    assert len(table.arena.games) == 1
    attach(player, {})
    table.arena.resumed(player.session)
    await settle()
    assert len(table.arena.games) == 2
    table.arena.close()


async def test_receipts_that_nobody_reads_are_not_kept_without_end() -> None:
    table = Table()
    table.sit(game_spec())
    player, seat = asked(table)
    player.answer(seat)
    for _ in range(MAX_WAITING - 1):
        player.session.answer(seat.handle, 1, [])
    with pytest.raises(DoesNotRead):
        player.session.answer(seat.handle, 1, [])
