"""Real runs that end early by a stop rule, and real runs that are extended."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support.runs import (
    Bots,
    Notes,
    command_run,
    event,
    hurry,
    lingering,
    loaded,
    result_lines,
    results,
    script,
    standing,
    tressette,
    turns_until,
    until,
)
from tressette.record.segments import COMPRESSED, raw_lines
from tressette_tournament.ending import Ending
from tressette_tournament.ratings import RatingFold
from tressette_tournament.results import GameResult
from tressette_tournament.runner import Outcome, Runner
from tressette_tournament.schedule import Game, Schedule

TWO: Bots = {"first": "first_legal", "chance": "random"}
THREE: Bots = {**TWO, "greedy": "greedy"}
PAIRINGS = [("chance", "first"), ("chance", "greedy"), ("first", "greedy")]


def run(file: Path, *options: str, verified: bool = True) -> Result:
    """Run a tournament to a good end; its record must be in order then."""
    result = tressette("tournament", "run", file, *options)
    assert result.exit_code == 0, result.output
    if verified:
        found = tressette("verify", file.parent / "run")
        assert found.exit_code == 0, found.output
    return result


def told(folder: Path) -> dict[str, Any]:
    """event.json of a run."""
    return dict(json.loads((folder / "event.json").read_text()))


def assert_no_open_sets(folder: Path) -> None:
    """Deal sets that were open have been finished."""
    lines = results(folder)
    sizes = Counter(line["deal_set"] for line in lines)
    assert {line["deal_set"]: line["set_size"] for line in lines} == sizes


def assert_revealed(folder: Path) -> None:
    """What was played is revealed, and so are the keys."""
    text = "".join(path.read_text() for path in folder.glob("reveals-*.jsonl"))
    games = {json.loads(line)["game"] for line in text.splitlines()}
    assert games == {line["game"] for line in results(folder)}
    assert all("key" in stage for stage in told(folder)["stages"])


# --- stop rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "games", "reason"),
    [
        ("games = 5", 6, "the limit of 5 games is reached"),
        ("deal_sets = 4", 8, "the limit of 4 deal sets is reached"),
        pytest.param(
            "error_below = 900",
            None,
            "the ± of every bot is below 900",
            marks=pytest.mark.slow,
            id="error_below",
        ),
    ],
)
def test_a_rule_ends_the_event(tmp_path: Path, rule: str, games: int | None, reason: str) -> None:
    """Open deal sets are finished and count; a rerun starts nothing; what was played is revealed."""
    file = event(tmp_path, TWO, deal_sets=200, concurrency=3, seed=None, sections=f"[stop]\n{rule}")
    first = run(file)
    folder = tmp_path / "run"
    lines = results(folder)
    if games is not None:
        assert len(lines) == games
    else:
        assert 60 <= len(lines) < 120
    assert_no_open_sets(folder)
    assert_revealed(folder)
    assert reason in first.stdout
    assert told(folder)["ended"] == reason
    again = run(file)
    assert reason in again.stdout
    assert results(folder) == lines
    assert not (folder / "results-0002.jsonl").exists()


@pytest.mark.slow
def test_a_limit_holds_for_a_run_that_is_killed(tmp_path: Path) -> None:
    """Deal sets that were open, but had no result, are no less part of it."""
    bots: Bots = {"slow": lingering(tmp_path, turns_until(1, games_at_once=2)), "b": "random"}
    limit = "[stop]\ndeal_sets = 6"
    file = event(tmp_path, bots, deal_sets=20, concurrency=2, sections=limit)
    with command_run(file) as one:
        until(lambda: result_lines(one.folder), "a result")
        one.signal(signal.SIGKILL)
        one.process.wait(60)
    assert len({line["deal_set"] for line in results(one.folder)}) < 6
    hurry(tmp_path)
    run(file)
    played = {line["game"] for line in results(one.folder)}
    assert played == {f"p0-l0-s{number}-g{game}" for number in range(6) for game in (0, 1)}


@pytest.mark.parametrize("rule", ["games = 20", "deal_sets = 10"])
def test_games_that_are_left_out_do_not_use_up_a_limit(rule: str, tmp_path: Path) -> None:
    """Two bots of three play as many games as the file asks for, though the third never starts."""
    ends = script(tmp_path, "ends", "raise SystemExit(1)")
    bots: Bots = {"a": "first_legal", "bad": ends, "c": "random"}
    file = event(tmp_path, bots, deal_sets=200, sections=f"[stop]\n{rule}", of_bots={"bad": "restarts = 0"})
    result = tressette("tournament", "run", file)
    assert result.exit_code == 4, result.output
    assert re.search(r"^Left out, because of bad: \d+ games$", result.stdout, re.MULTILINE), "for good"
    folder = tmp_path / "run"
    lines = results(folder)
    assert len(lines) == 20
    assert {int(line["deal_set"].rpartition("-s")[2]) for line in lines} == set(range(10))
    assert all(sorted(line["bots"]) == ["a", "c"] for line in lines)
    assert_no_open_sets(folder)
    assert not (folder / "manifest.json").exists()
    # Nothing is open, and the limit is reached: there is nothing more to play, whoever is there.
    again = run(file)
    assert "the limit of" in again.stdout
    assert results(folder) == lines


def test_what_an_ending_counts_and_forgets(tmp_path: Path) -> None:
    """A deal set of which nothing was played does not count, and none is kept that is over."""
    file = event(tmp_path, THREE, deal_sets=9, sections="[stop]\ndeal_sets = 2")
    tournament = loaded(file)
    schedule = Schedule(tournament)
    ending = Ending(tournament, schedule, RatingFold(), lambda: (), lambda: 0.0)
    games = {game.id: game for game in iter(schedule.issue, None)}
    sets = [[game for game in games.values() if game.deal_set == f"p0-l{line_up}-s0"] for line_up in range(3)]

    def full() -> bool:
        return ending.full

    for one in (sets[0][0], sets[1][0]):
        ending.issued(one)
    assert full()
    assert ending.reason(()) is None, "either may still be left out"
    ending.rolled_back(sets[0][0])
    for one in sets[0]:
        ending.left_out(one)
    assert not full()
    ending.finished(result_of(sets[1][0]))
    ending.issued(sets[2][0])
    assert full()
    ending.left_out(sets[1][1])
    assert ending.reason(()) is None
    ending.finished(result_of(sets[2][0]))
    assert ending.reason(()) == "the limit of 2 deal sets is reached"
    ending.issued(sets[2][1])
    ending.finished(result_of(sets[2][1]))
    assert not ending._open


def result_of(game: Game) -> GameResult:
    sides = tuple((bot,) for bot in game.seats)
    ranks = tuple(range(1, 1 + len(sides)))
    return GameResult(
        game.id, game.deal_set, game.set_size, game.deck, "x", "x", "most", sides, ranks, (6, 0), 1
    )


class Clock:
    """A clock that can be put forward, and progress that does so when so many games are done."""

    def __init__(self, games: int, minutes: float) -> None:
        self.notes = Notes()
        self._later = 0.0
        self._finished = self.notes.finished
        self.notes.finished = self.finished  # type: ignore[method-assign]
        self._games, self._minutes = games, minutes

    def __call__(self) -> float:
        return time.monotonic() + self._later

    def finished(self, result: GameResult) -> None:
        """See ``Progress``."""
        self._finished(result)
        if len(self.notes.games) == self._games:
            self._later += 60 * self._minutes


async def test_the_time_ends_the_event(tmp_path: Path) -> None:
    file = event(tmp_path, TWO, deal_sets=100, concurrency=3, sections="[stop]\nminutes = 10")
    clock = Clock(games=5, minutes=10)
    runner = Runner(loaded(file), clock.notes, clock=clock)
    async with asyncio.timeout(60):
        assert await runner.run() is Outcome.COMPLETE
    assert runner.ended == "the time of 10 minutes is over"
    lines = results(runner.folder)
    assert 6 <= len(lines) < 20
    assert_no_open_sets(runner.folder)
    assert_revealed(runner.folder)
    again = Runner(loaded(file), Notes())
    assert await again.run() is Outcome.COMPLETE
    assert again.ended == runner.ended
    assert results(runner.folder) == lines


@pytest.mark.slow
def test_nothing_is_revealed_before_its_time(tmp_path: Path) -> None:
    """Decks of settled batches are, the keys are not, until the event is over."""
    bots: Bots = {"stands": standing(tmp_path, turns_until(20, games_at_once=4)), "chance": "random"}
    file = event(tmp_path, bots, deal_sets=60, concurrency=4, seed=None, lines="reveal_sets = 2\nwindow = 4")
    folder = tmp_path / "run"
    with command_run(file) as one:
        until(lambda: result_lines(folder) >= 20, "twenty results")
        until(lambda: told(folder).get("revealed_sets", 0) >= 2, "decks that are revealed")
        one.signal(signal.SIGINT)
        until(lambda: "again to stop now" in one.output, "the answer")
        hurry(tmp_path)
        assert one.wait() == 3, one.output
    assert not any("key" in stage for stage in told(folder)["stages"])
    below = told(folder)["revealed_sets"]
    assert below >= 2
    revealed = [
        json.loads(line) for path in folder.glob("reveals-*") for line in path.read_text().splitlines()
    ]
    games = {line["game"] for line in revealed}
    played = {line["game"] for line in results(folder)}
    # A batch may have been cut off while it was written: it is written again.
    assert games >= {f"p0-l0-s{number}-g{game}" for number in range(below) for game in (0, 1)}
    for game in games:
        assert {f"{game[:-1]}0", f"{game[:-1]}1"} <= played, "its deal set was settled"
    run(file)
    assert_revealed(folder)


# --- extending -------------------------------------------------------------------------------------


def kept(folder: Path) -> dict[str, bytes]:
    """What has been recorded, as it was before it was compressed."""
    names = {path.name.removesuffix(COMPRESSED) for path in folder.glob("*-0*.jsonl*")}
    return {name: b"".join(raw_lines(folder / name)) for name in names}


@pytest.mark.parametrize(
    ("deal_sets", "bots", "meetings"),
    [
        pytest.param(4, TWO, {("chance", "first"): 8}, marks=pytest.mark.slow, id="deal sets"),
        pytest.param(2, THREE, dict.fromkeys(PAIRINGS, 4), marks=pytest.mark.slow, id="bots"),
        pytest.param(3, THREE, dict.fromkeys(PAIRINGS, 6), id="both"),
    ],
)
def test_an_event_grows(
    tmp_path: Path, deal_sets: int, bots: Bots, meetings: dict[tuple[str, ...], int]
) -> None:
    """Every line-up plays what it lacks, on fresh decks of a fresh key; what was played stays as it is."""
    file = event(tmp_path, TWO, seed=None)
    run(file)
    folder = tmp_path / "run"
    before, decks = kept(folder), {line["deck"] for line in results(folder)}
    old = {line["game"] for line in results(folder)}
    event(tmp_path, bots, deal_sets=deal_sets, seed=None)
    refused = tressette("tournament", "run", file)
    assert refused.exit_code == 1
    assert "to have the run grow by it, add --extend" in refused.stderr
    assert ("tournament.deal_sets: 2 there" in refused.stderr) == (deal_sets != 2)
    assert ("bots[2]" in refused.stderr) == (bots is THREE)
    assert kept(folder) == before
    run(file, "--extend")
    assert before.items() <= kept(folder).items()
    assert Counter(tuple(sorted(line["bots"])) for line in results(folder)) == meetings
    assert_no_open_sets(folder)
    assert_revealed(folder)
    assert not {line["deck"] for line in results(folder) if line["game"] not in old} & decks
    first, second = told(folder)["stages"]
    assert first["key"] != second["key"]
    # Extended by the same once more, it is over.
    after = kept(folder)
    run(file, "--extend")
    run(file)
    assert kept(folder) == after


@pytest.mark.slow
def test_an_extended_run_that_is_killed_is_resumed(tmp_path: Path) -> None:
    file = event(tmp_path, TWO, seed=None)
    run(file)
    event(
        tmp_path,
        {**TWO, "greedy": standing(tmp_path, turns_until(8, games_at_once=8))},
        deal_sets=12,
        seed=None,
    )
    with command_run(file, "--extend") as one:
        until(lambda: result_lines(one.folder) >= 12, "some further results")
        one.signal(signal.SIGKILL)
        one.process.wait(60)
    assert not all("key" in stage for stage in told(one.folder)["stages"])
    hurry(tmp_path)
    resumed = tressette("tournament", "resume", one.folder)
    assert resumed.exit_code == 0, resumed.output
    assert len(results(one.folder)) == 72
    assert_no_open_sets(one.folder)
    run(file)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"deal_sets": 1}, "tournament.deal_sets: 2 there, 1 now"),
        ({"bots": {"chance": "random", "first": "first_legal"}}, 'bots[0].name: "first" there, "chance" now'),
        ({"move_ms": 5}, "clock.move_ms: 600000 there, 5 now"),
    ],
)
def test_what_is_no_extension_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    run(event(tmp_path, TWO), verified=False)
    before = kept(tmp_path / "run")
    file = event(tmp_path, **{"bots": TWO, **changes})
    refused = tressette("tournament", "run", file, "--extend")
    assert refused.exit_code == 1
    assert key in refused.stderr
    assert kept(tmp_path / "run") == before


@pytest.mark.slow
def test_another_limit_lets_an_ended_event_go_on(tmp_path: Path) -> None:
    file = event(tmp_path, TWO, deal_sets=20, concurrency=2, sections="[stop]\ndeal_sets = 2")
    run(file)
    folder = tmp_path / "run"
    before = kept(folder)
    event(tmp_path, TWO, deal_sets=20, concurrency=2, sections="[stop]\ndeal_sets = 5")
    refused = tressette("tournament", "run", file)
    assert refused.exit_code == 1
    assert "stop.deal_sets: 2 there, 5 now" in refused.stderr
    run(file, "--extend")
    assert len(results(folder)) == 10
    assert_no_open_sets(folder)
    assert before.items() <= kept(folder).items()
    assert told(folder)["ended"] == "the limit of 5 deal sets is reached"
    event(tmp_path, TWO, deal_sets=20, concurrency=2)
    run(file, "--extend")
    assert len(results(folder)) == 40
    assert told(folder).get("ended") is None


def test_an_ended_event_does_not_go_on_with_decks_that_are_published(tmp_path: Path) -> None:
    file = event(tmp_path, TWO, deal_sets=20, concurrency=2, seed=None, sections="[stop]\ndeal_sets = 2")
    run(file)
    before = kept(tmp_path / "run")
    event(tmp_path, TWO, deal_sets=20, concurrency=2, seed=None)
    refused = tressette("tournament", "run", file, "--extend")
    assert refused.exit_code == 1
    assert "were published when it ended (the limit of 2 deal sets is reached)" in refused.stderr
    assert kept(tmp_path / "run") == before


def test_a_folder_without_a_run_cannot_be_resumed(tmp_path: Path) -> None:
    result = tressette("tournament", "resume", tmp_path)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {tmp_path} holds no run: there is no tournament.toml in it\n"
