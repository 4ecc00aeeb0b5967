"""Time limits under a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from support.tables import Player, Table, game_spec, settle
from tressette.play.arena import Arena
from tressette.play.config import PlayConfig
from tressette.play.session import Seat, Session
from tressette.rules.actions import PlayCard
from tressette.rules.presets import resolve


def _asked(players: Sequence[Player]) -> Player:
    (player,) = (player for player in players if player.session.news)
    return player


async def test_time_runs_from_the_moment_the_turn_is_sent() -> None:
    table = Table(PlayConfig(move_ms=1000))
    player = _asked(table.sit(game_spec()))
    table.clock.pass_ms(900)
    (seat,) = player.take().turns
    table.clock.pass_ms(999)
    table.arena.expire()
    assert seat.open
    table.clock.pass_ms(2)
    table.arena.expire()
    assert seat.lapsed == {1}
    assert [fault.reason for fault in seat.game.log if hasattr(fault, "reason")] == ["MOVE_TIME_EXCEEDED"]


async def test_a_bot_that_never_reads_has_the_same_time() -> None:
    table = Table(PlayConfig(move_ms=1000))
    players = table.sit(game_spec())
    deaf = _asked(players)
    (seat,) = deaf.session.news
    table.clock.pass_ms(1001)
    table.arena.expire()
    assert seat.lapsed == {1}
    assert _asked([player for player in players if player is not deaf])
    others = [player for player in players if player is not deaf]
    while not table.results:
        for player in others:
            for one in player.take().turns:
                player.answer(one)
        if seat.open:
            table.clock.pass_ms(1001)
            table.arena.expire()
    assert table.results[0]["faults"] == [[deaf.session.name, "timeout", 10]]
    # When it does read, everything is there at once, and the turn is long gone.
    delivery = deaf.take()
    assert delivery.turns == []
    assert delivery.events[seat.handle] == seat.game.log


async def test_each_turn_has_its_own_time() -> None:
    table = Table(PlayConfig(move_ms=1000))
    players = table.sit(game_spec())
    for _ in range(40):
        player = _asked(players)
        (seat,) = player.take().turns
        table.clock.pass_ms(999)
        table.arena.expire()
        player.answer(seat)
    assert table.results[0]["faults"] == []
    assert table.record.of("trick")[0]["think_ms"] == [999] * 4


async def test_thinking_time_is_in_the_record() -> None:
    table = Table(PlayConfig(move_ms=1000))
    players = table.sit(game_spec())
    for number in range(4):
        player = _asked(players)
        (seat,) = player.take().turns
        table.clock.pass_ms(10 * number)
        player.answer(seat)
    (trick,) = table.record.of("trick")
    assert trick["think_ms"] == [0, 10, 20, 30]
    assert trick["net_ms"] == [0, 0, 0, 0]


async def test_only_those_whose_time_is_up_are_played_for() -> None:
    table = Table(PlayConfig(move_ms=1000))
    slow = table.sit(game_spec("slow"))
    (seat,) = _asked(slow).take().turns
    table.clock.pass_ms(600)
    quick = table.sit(game_spec("quick", bots=("e", "f", "g", "h")))
    (other,) = _asked(quick).take().turns
    table.clock.pass_ms(500)
    table.arena.expire()
    assert (seat.open, other.open) == (False, True)


async def test_a_correction_does_not_buy_time() -> None:
    table = Table(PlayConfig(move_ms=1000, illegal_retries=100))
    player = _asked(table.sit(game_spec()))
    (seat,) = player.take().turns
    for _ in range(9):
        table.clock.pass_ms(110)
        player.answer(seat, [])
        player.take()
    assert seat.open
    table.clock.pass_ms(11)
    table.arena.expire()
    assert seat.lapsed == {1}
    assert table.faults() == []  # they go with the next trick's line
    table.finish()
    assert [fault[1] for fault in table.faults()] == ["illegal"] * 9 + ["timeout"]


async def test_without_a_limit_nothing_is_watched() -> None:
    table = Table(PlayConfig(move_ms=0))
    players = table.sit(game_spec())
    (seat,) = _asked(players).take().turns
    assert seat.game.deadline(seat) is None
    table.clock.pass_ms(10**12)
    table.arena.expire()
    assert seat.open
    assert deadlines(table.arena) == []


def deadlines(arena: Arena) -> list[Seat]:
    """The seats in the arena's queue of deadlines."""
    return [seat for _, _, seat in arena._due]


async def test_the_queue_of_deadlines_holds_each_seat_once() -> None:
    """However long a match is: a thousand turns leave four entries, and none when all is over."""
    table = Table(PlayConfig(move_ms=1000))
    rules = resolve("traversone-003-21-duplicate", deals=25)
    players = table.sit(game_spec(rules=rules))
    for _ in range(1000):
        player = _asked(players)
        (seat,) = player.take().turns
        table.clock.pass_ms(7)
        table.arena.expire()
        player.answer(seat)
        queue = deadlines(table.arena)
        assert len(queue) == len(set(queue)) <= 4
    assert table.results[0]["faults"] == []
    table.clock.pass_ms(2001)
    table.arena.expire()
    assert deadlines(table.arena) == []


async def test_finished_games_leave_the_queue() -> None:
    table = Table(PlayConfig(move_ms=1000))
    players = [table.player(name) for name in "abcd"]
    most = 0
    for number in range(200):
        table.arena.start(game_spec(f"g{number}"), [player.session for player in players])
        table.finish()
        table.clock.pass_ms(100)
        table.arena.expire()
        most = max(most, len(deadlines(table.arena)))
    assert len(table.results) == 200
    assert most <= 4 * 12, "only games of the last second are in it"


async def test_the_loop_wakes_the_arena_when_time_is_up() -> None:
    """With the real clock, once: the timer is set and does what ``expire`` does."""
    done = asyncio.Event()
    arena = Arena(bytes(32), PlayConfig(move_ms=1), on_finished=lambda spec, result: done.set())
    sessions = [Session(name, "", 1, lambda: None) for name in "abcd"]
    for session in sessions:
        arena.join(session)
    arena.submit(game_spec())
    async with asyncio.timeout(60):
        await done.wait()
    await settle()
    arena.close()


@pytest.mark.parametrize("close_first", [False, True])
async def test_closing_cancels_the_timer(close_first: bool) -> None:
    table = Table(PlayConfig(move_ms=1000))
    player = _asked(table.sit(game_spec()))
    (seat,) = player.take().turns
    if close_first:
        table.arena.close()
        assert deadlines(table.arena) == []
        assert not seat.open
    else:
        player.answer(seat, [PlayCard(next(iter(seat.game.match.hand(seat.number))))])
        table.arena.close()
    assert table.arena._timer is None
