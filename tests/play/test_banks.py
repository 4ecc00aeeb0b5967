"""Banks, increments and the time that the network takes, by a clock that is told when to move."""

from __future__ import annotations

from support.tables import Player, Table, committed_faults, game_spec
from tressette.play.config import PlayConfig
from tressette.play.session import Seat


def asked(table: Table) -> tuple[Player, Seat]:
    for player in table.players:
        for seat in player.take().turns:
            return player, seat
    raise AssertionError("nobody is asked")


def next_turn_of(table: Table, seat: Seat) -> None:
    """Have the others answer at once until this seat is asked again."""
    while True:
        player, now = asked(table)
        if now is seat:
            return
        player.answer(now)


async def test_the_bank_is_drawn_on_when_the_move_time_is_used_up() -> None:
    table = Table(PlayConfig(move_ms=1000, bank_ms=5000))
    table.sit(game_spec())
    player, seat = asked(table)
    table.clock.pass_ms(3500)
    table.arena.expire()
    player.answer(seat)
    assert round(seat.bank * 1000) == 2500
    next_turn_of(table, seat)
    table.clock.pass_ms(3400)
    table.arena.expire()
    assert not seat.lapsed
    table.clock.pass_ms(200)
    table.arena.expire()
    assert not seat.open
    assert [fault[:3] for fault in faults(seat)] == [(seat.number, "timeout", "substitute")]


async def test_an_answer_in_time_costs_nothing_and_earns_the_increment() -> None:
    table = Table(PlayConfig(move_ms=1000, bank_ms=1000, increment_ms=300))
    table.sit(game_spec())
    player, seat = asked(table)
    table.clock.pass_ms(900)
    player.answer(seat)
    assert round(seat.bank * 1000) == 1300
    next_turn_of(table, seat)
    table.clock.pass_ms(1500)
    player.answer(seat)
    assert round(seat.bank * 1000) == 1100


async def test_a_bank_alone_is_a_clock() -> None:
    table = Table(PlayConfig(move_ms=0, bank_ms=2000))
    table.sit(game_spec())
    _, seat = asked(table)
    table.clock.pass_ms(1999)
    table.arena.expire()
    assert not seat.lapsed
    table.clock.pass_ms(2)
    table.arena.expire()
    assert seat.lapsed


async def test_network_time_is_recorded_apart_and_not_charged() -> None:
    table = Table(PlayConfig(move_ms=1000, bank_ms=1000, allowance_ms=100))
    table.sit(game_spec())
    player, seat = asked(table)
    player.session.network = 0.06
    table.clock.pass_ms(1100)
    player.answer(seat)
    assert round(seat.bank * 1000) == 960
    table.finish()
    first = table.record.of("trick")[0]
    assert (first["think_ms"][0], first["net_ms"][0]) == (1040, 60)


async def test_the_network_allowance_is_capped() -> None:
    table = Table(PlayConfig(move_ms=1000, allowance_ms=100))
    table.sit(game_spec())
    player, seat = asked(table)
    player.session.network = 3.0
    deadline = seat.game.deadline(seat)
    assert deadline is not None
    assert round((deadline - table.clock()) * 1000) == 1100
    table.clock.pass_ms(1200)
    table.arena.expire()
    assert seat.lapsed


def faults(seat: Seat) -> list[tuple[int, str, str, str]]:
    return [
        (event.seat, str(event.kind), str(event.effect), event.reason)
        for event in committed_faults(seat.game.log)
    ]
