"""What the events of a run add up to, at what cost, and that who is told cannot fail the run."""

from __future__ import annotations

import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.told import Clock, game, rated
from tressette_tournament.progress import LONGEST, RECENT_S, LostBot, Several, State, Tally


def begun(total: int | None = 100, done: int = 0) -> tuple[Tally, Clock]:
    clock = Clock()
    tally = Tally(clock)
    tally.begin(total, done)
    return tally, clock


# --- adding up -------------------------------------------------------------------------------------


def test_games() -> None:
    tally, clock = begun(total=10, done=3)
    tally.issued("g1", "tressette-21", ("a", "b"))
    tally.issued("g2", "tressette-21", ("b", "a"))
    clock.now += 2
    tally.finished(game(1))
    tally.returned("g2")
    tally.issued("g3", "tressette-21", ("a", "b"))
    clock.now += 2
    figures = tally.figures()
    assert (figures.done, figures.total, figures.session, figures.returned) == (4, 10, 1, 1)
    assert figures.rate == pytest.approx(1 / 4)
    assert figures.seconds_left == pytest.approx(6 * 4)
    assert [(one.game, one.seats, one.age_s) for one in figures.longest] == [("g3", ("a", "b"), 2)]
    assert figures.state is State.RUNNING


def test_the_rate_is_that_of_the_last_minute() -> None:
    tally, clock = begun(total=100_000)
    for number in range(3000):  # ten a second for five minutes
        clock.now += 0.1
        tally.finished(game(number))
    assert tally.figures().rate == pytest.approx(10, rel=0.05)
    for number in range(60):  # one a second for a minute
        clock.now += 1
        tally.finished(game(number))
    assert tally.figures().rate == pytest.approx(1, rel=0.05)
    clock.now += RECENT_S
    assert tally.figures().rate == 0
    assert tally.figures().seconds_left is None


def test_nothing_is_said_of_the_time_left_where_nothing_is_known() -> None:
    tally, clock = begun(total=None, done=7)
    assert tally.figures().rate is None
    clock.now += 1
    tally.finished(game(1))
    figures = tally.figures()
    assert (figures.done, figures.rate, figures.seconds_left) == (8, 1, None)


def test_more_games_than_were_known_at_the_beginning() -> None:
    tally, clock = begun(total=1)
    clock.now += 1
    tally.finished(game(1))
    tally.finished(game(2))
    figures = tally.figures()
    assert (figures.done, figures.total, figures.seconds_left) == (2, 2, 0)


def test_the_longest_running_games_are_named() -> None:
    tally, clock = begun()
    for number in range(50):
        tally.issued(f"g{number}", "tressette-21", ("a", "b"))
        clock.now += 1
    tally.finished(game(0))
    figures = tally.figures()
    assert figures.running == 49
    assert [one.game for one in figures.longest] == [f"g{number}" for number in range(1, 1 + LONGEST)]
    assert figures.longest[0].age_s == 49


def test_faults_by_bot_and_kind_the_worst_bot_first() -> None:
    tally, _ = begun()
    tally.finished(game(1, faults=(("a", "timeout", 1), ("b", "illegal", 1))))
    tally.finished(game(2, faults=(("b", "timeout", 2),)))
    assert tally.figures().faults == (("b", "illegal", 1), ("b", "timeout", 2), ("a", "timeout", 1))


def test_lost_bots_and_how_it_ends() -> None:
    tally, _ = begun()
    tally.issued("g1", "tressette-21", ("a", "b"))
    tally.lost("a", "why", ["log"])
    tally.stopping("time is up")
    assert tally.figures().lost == (LostBot("a", "why", ("log",)),)
    assert (tally.figures().state, tally.figures().reason) == (State.STOPPING, "time is up")
    tally.ended(State.INCOMPLETE, "2 games left out")
    assert (tally.figures().state, tally.figures().running) == (State.INCOMPLETE, 0)


def test_standings_are_the_last_ones_told() -> None:
    tally, _ = begun()
    tally.standings(rated("a", "b"))
    tally.standings(rated("a", "b", "c"))
    [pool] = tally.figures().pools
    assert [bot.bot for bot in pool.components[0]] == ["a", "b", "c"]


@given(st.lists(st.tuples(st.floats(0, 200), st.booleans()), max_size=60))
def test_the_rate_counts_the_games_of_the_last_minute_and_no_others(
    steps: list[tuple[float, bool]],
) -> None:
    tally, clock = begun()
    times = []
    for number, (pause, finishes) in enumerate(steps):
        clock.now += pause
        if finishes:
            tally.finished(game(number))
            times.append(clock.now)
    figures = tally.figures()
    elapsed = min(clock.now - 1000, RECENT_S)
    if figures.rate is None:
        assert elapsed == 0
    else:
        # Games are kept by the second in which they ended.
        low = sum(one > clock.now - RECENT_S + 1 for one in times)
        high = sum(one > clock.now - RECENT_S - 1 for one in times)
        assert low - 0.01 <= figures.rate * elapsed <= high + 0.01
    assert figures.session == len(times)


def test_memory_does_not_grow_with_the_games() -> None:
    tally, clock = begun(total=None)

    def play(games: int) -> None:
        for number in range(games):
            clock.now += 0.01
            tally.issued(f"g{number}", "tressette-21", ("a", "b"))
            tally.finished(game(number, faults=(("a", "timeout", 1),)))

    play(10_000)
    tracemalloc.start()
    try:
        play(1000)
        before, _ = tracemalloc.get_traced_memory()
        play(10_000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 50_000, "five bytes a game, less than any object takes"


# --- several ---------------------------------------------------------------------------------------


class Failing(Tally):
    """Fails at every finished game."""

    told = 0

    def finished(self, result: object) -> None:
        self.told += 1
        raise OSError("no space left")


class Hearing(Tally):
    """Remembers notes."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_all_are_told_everything() -> None:
    listeners = [Tally(Clock()), Tally(Clock())]
    several = Several(*listeners)
    several.begin(10, 2)
    several.issued("g1", "tressette-21", ("a", "b"))
    several.issued("g2", "tressette-21", ("a", "b"))
    several.issued("g3", "tressette-21", ("a", "b"))
    several.finished(game(1))
    several.returned("g2")
    several.standings(rated("a", "b"))
    several.lost("a", "why", ["log"])
    several.note("a note")
    several.stopping("time is up")
    first, second = (one.figures() for one in listeners)
    assert first == second
    assert (first.done, first.returned, first.running, first.state) == (3, 1, 1, State.STOPPING)
    assert first.pools
    assert first.lost
    several.ended(State.STOPPED, "")
    assert {one.figures().state for one in listeners} == {State.STOPPED}


def test_a_failing_display_fails_neither_the_run_nor_the_others() -> None:
    failing, hearing = Failing(), Hearing()
    several = Several(failing, hearing)
    several.begin(10, 0)
    several.finished(game(1))
    several.finished(game(2))
    assert failing.told == 1
    assert hearing.figures().done == 2
    [note] = hearing.notes
    assert "Failing has failed" in note
    assert "no space left" in note


def test_a_display_that_wants_to_exit_does_not_end_the_run() -> None:
    class Exiting(Tally):
        def note(self, text: str) -> None:
            sys.exit(1)

    hearing = Hearing()
    Several(Exiting(), hearing).note("a note")
    assert hearing.notes[0] == "a note"


def test_everything_may_fail() -> None:
    class Hopeless(Failing):
        def note(self, text: str) -> None:
            raise OSError

    several = Several(Hopeless(), Failing(), Hopeless())
    several.finished(game(1))
    several.finished(game(2))


def test_an_interrupt_is_not_swallowed() -> None:
    class Interrupted(Tally):
        def note(self, text: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Several(Interrupted()).note("a note")
