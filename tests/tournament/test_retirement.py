"""Decks are revealed batch by batch, and whatever cuts that off, none is forgotten."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest
from support.runs import event, loaded
from tressette.record.reveals import read_reveals
from tressette_tournament.folder import Event, open_event
from tressette_tournament.retirement import Retirement

GAMES = [f"p0-l{line_up}-s{number}-g{game}" for number in (0, 1) for line_up in range(400) for game in (0, 1)]
"""So many of one set number that they are not revealed at once."""


@pytest.fixture
def an_event(tmp_path: Path) -> Event:
    """One of set numbers that are revealed one by one."""
    file = event(tmp_path, {"a": "random", "b": "random"}, lines="reveal_sets = 1", seed=None)
    (tmp_path / "run").mkdir()
    return open_event(loaded(file))


def revealed(of: Event) -> Counter[str]:
    """How often each game is revealed."""
    return Counter(one.game for path in of.folder.glob("reveals-*") for one in read_reveals(path))


def retirement(of: Event, settled: int) -> Retirement:
    """All games have been played."""
    rules = {choice.name: choice.rules for choice in of.tournament.presets}
    made = Retirement(of, rules, lambda: settled)
    for game in GAMES:
        made.played(game)
    return made


async def cut_off(work: Retirement) -> None:
    """Reveal what is due, and be cut off in the middle, as by the end of the last game."""
    begun = asyncio.Event()
    task = asyncio.create_task(work.work(lambda decks: begun.set()))
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_what_is_cut_off_is_revealed_at_the_end(an_event: Event) -> None:
    work = retirement(an_event, settled=2)
    await cut_off(work)
    assert 0 < len(revealed(an_event)) < len(GAMES)
    await work.reveal_all()
    work.close()
    assert revealed(an_event).keys() == set(GAMES)


async def test_what_is_cut_off_is_revealed_by_the_next_session(an_event: Event) -> None:
    work = retirement(an_event, settled=2)
    await cut_off(work)
    work.close()
    again = open_event(an_event.tournament)
    later = retirement(again, settled=2)
    await later.reveal_all()
    later.close()
    assert revealed(an_event).keys() == set(GAMES)


async def test_the_rest_waits_until_it_is_settled(an_event: Event) -> None:
    work = retirement(an_event, settled=1)
    told: list[Collection[str]] = []
    over = asyncio.Event()

    def retired(decks: Collection[str]) -> None:
        told.append(decks)
        if len(told) == 2:  # of 500 games and 300
            over.set()

    task = asyncio.create_task(work.work(retired))
    await over.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    work.close()
    assert revealed(an_event) == Counter(game for game in GAMES if "-s0-" in game)
    assert told[0] == told[1]
    assert len(told[0]) == 1


async def test_a_ladder_may_have_millions_of_meetings(an_event: Event) -> None:
    """Each of them is a round: 65,536 of them are an hour of quick bots."""
    games = [f"p0-r{number}-l0-s{number}-g0" for number in (65_535, 65_536, 5_000_000)]
    work = retirement(an_event, settled=0)
    for game in games:
        work.played(game)
    await work.reveal_all()
    work.close()
    assert revealed(an_event).keys() == {*GAMES, *games}
