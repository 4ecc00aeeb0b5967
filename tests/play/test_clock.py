"""A clock that is stopped now and then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import FakeClock, Table, game_spec
from tressette.play.clock import PausableClock
from tressette.play.config import PlayConfig


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 1000)), max_size=20))
def test_it_counts_the_time_that_it_was_not_paused(steps: list[tuple[bool, int]]) -> None:
    source = FakeClock(0.0)
    clock = PausableClock(source)
    run = stood = 0
    for pause, seconds in steps:
        if pause:
            clock.pause()
        elif clock.paused:
            assert clock.resume() == stood
            stood = 0
        source.now += seconds
        if pause:
            stood += seconds
        else:
            run += seconds
        assert clock() == run
        assert clock.paused == pause


def test_one_that_runs_is_resumed_in_vain() -> None:
    assert PausableClock(FakeClock()).resume() == 0.0


async def test_no_time_passes_for_those_who_think_while_it_is_paused() -> None:
    table = Table(PlayConfig(move_ms=1000, bank_ms=500))
    clock = PausableClock(table.clock)
    table.arena.clock = clock
    players = table.sit(game_spec())
    (player,) = (player for player in players if player.session.news)
    news, _, _ = player.session.take(clock())
    (seat,) = news
    table.clock.pass_ms(1200)
    clock.pause()
    table.clock.pass_ms(3_600_000)
    table.arena.expire()
    assert seat.open
    clock.resume()
    table.clock.pass_ms(100)
    table.arena.expire()
    assert seat.open
    player.answer(seat)
    assert seat.bank == pytest.approx(0.2)
