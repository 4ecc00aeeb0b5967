"""Standings while a run goes on: what is kept of the ratings, how they read, and when they are made."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.told import Clock, game, rated
from tressette_tournament.ratings import PoolRatings, RatingFold
from tressette_tournament.standings import (
    RATE_EVERY_S,
    RATE_SHARE,
    PoolStanding,
    Standing,
    pools_data,
    pools_from,
    rate_now_and_then,
    rating_text,
    standing_lines,
    standings_of,
)

# --- what they say ---------------------------------------------------------------------------------


def test_they_are_the_figures_of_the_ratings() -> None:
    pools = rated("a", "b", "c", games=24)
    [pool] = standings_of(pools)
    assert (pool.preset, pool.games, pool.bots, len(pool.components)) == ("tressette-21", 72, 3, 1)
    for standing, rating in zip(pool.components[0], pools[0].components[0].bots, strict=True):
        assert (standing.bot, standing.rating, standing.error) == (rating.bot, rating.rating, rating.error)
        assert standing.error is not None
        assert standing.games == rating.games


def test_they_survive_being_written_down() -> None:
    pools = standings_of(rated("a", "b", "c", presets=("x", "y")))
    assert pools_from(json.loads(json.dumps(pools_data(pools)))) == pools


@pytest.mark.parametrize(
    ("standing", "text"),
    [
        (Standing("a", 45.4, 12.0, 33.4, 57.4, 9), "+45 ± 12"),
        (Standing("a", -0.2, 12.0, -12.2, 11.8, 9), "+0 ± 12"),
        (Standing("a", 400.0, None, 350.0, None, 9), "> +350"),
        (Standing("a", -400.0, None, None, -350.0, 9), "< -350"),
        (Standing("a", 45.0, None, None, None, 9), "+45 ± –"),
    ],
)
def test_ratings_in_words(standing: Standing, text: str) -> None:
    assert rating_text(standing) == text


def pool(preset: str, error: float | None, *bots: str, games: int = 10) -> PoolStanding:
    return PoolStanding(preset, games, 0, (tuple(Standing(bot, 0, error, None, None, 9) for bot in bots),))


def test_the_most_uncertain_come_first_then_the_largest() -> None:
    pools = [
        pool("sure", 5, "a", "b"),
        pool("unsure", 50, "a", "b"),
        pool("small", 5, "a", "b", games=2),
        pool("unknown", None, "a", "b"),
    ]
    wanted = ["unknown", "unsure", "sure", "small"]
    rows = standing_lines(pools, 4)
    assert [row.split(":")[0] for row in rows] == wanted
    tables = [row for row in standing_lines(pools) if not row.startswith(" ")]
    assert [row.split(":")[0] for row in tables] == wanted
    assert standing_lines(pools, 2)[1] == "… and 3 presets more"


@given(st.lists(st.integers(1, 5), max_size=6), st.integers(0, 30))
def test_they_keep_to_their_room(sizes: list[int], room: int) -> None:
    pools = [pool(f"p{index}", None, *"abcde"[:size]) for index, size in enumerate(sizes)]
    lines = standing_lines(pools, room)
    assert len(lines) <= room
    assert bool(lines) == bool(pools and room)
    assert len(standing_lines(pools)) == sum(size + 1 for size in sizes)


def test_groups_that_never_met_are_told_apart() -> None:
    bots = tuple(Standing(bot, 0, None, None, None, 9) for bot in "ab")
    apart = PoolStanding("x", 4, 3, (bots[:1], bots[1:]))
    assert standing_lines([apart])[0] == "x (1 of 2, not comparable): 4 games, 3 deal sets open"
    assert standing_lines([apart], 1) == ["x: a +0 ± – | b +0 ± –"]


# --- when they are made ----------------------------------------------------------------------------


class Pauses:
    """Sleep that returns at once and remembers; after the last one it never returns."""

    def __init__(self, most: int) -> None:
        self.asked: list[float] = []
        self.over = asyncio.Event()
        self._most = most

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        if len(self.asked) > self._most:
            self.over.set()
            await asyncio.Event().wait()


async def rated_for(
    pauses: Pauses, ratings: Callable[[], list[PoolRatings]], clock: Clock | None = None
) -> tuple[list[list[PoolRatings]], list[str]]:
    """What is told until the pauses are over."""
    told: list[list[PoolRatings]] = []
    notes: list[str] = []
    task = asyncio.create_task(
        rate_now_and_then(
            ratings,
            lambda pools: told.append(list(pools)),
            notes.append,
            sleep=pauses,
            clock=clock or Clock(),
        )
    )
    async with asyncio.timeout(60):
        await pauses.over.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return told, notes


async def test_they_come_again_and_again_and_only_with_new_games() -> None:
    fold = RatingFold()

    def ratings() -> list[PoolRatings]:
        if len(pauses.asked) in (2, 4):
            fold.add(game(len(pauses.asked)))
        return fold.rate()

    pauses = Pauses(6)
    told, notes = await rated_for(pauses, ratings)
    assert [[pool.games for pool in pools] for pools in told] == [[1], [2]]
    assert notes == []


async def test_rating_takes_a_small_part_of_the_time_at_most() -> None:
    clock = Clock()

    def slow() -> list[PoolRatings]:
        clock.now += 3
        return []

    pauses = Pauses(2)
    await rated_for(pauses, slow, clock)
    assert pauses.asked == [RATE_EVERY_S, 3 / RATE_SHARE, 3 / RATE_SHARE]


async def test_results_that_cannot_be_rated_are_one_note() -> None:
    fold = RatingFold()
    fold.add(game(1))
    fold.add(game(1, ranks=(1, 2)))
    told, notes = await rated_for(Pauses(3), fold.rate)
    assert told == []
    [note] = notes
    assert note == "no standings: game 'g1' has two different results"
