"""Who answers for what goes wrong, in real runs: forfeits count against who commits them, what is nobody's
fault is played again or left out, and nothing is ever held against the others."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest
import structlog
from support import virtual_time
from support.night import Character, Sessions, World, session
from support.runs import (
    Bots,
    Notes,
    command_run,
    event,
    hurry,
    lingering,
    loaded,
    player,
    result_lines,
    results,
    script,
    tressette,
    turns_until,
    until,
)
from support.virtual_time import VirtualLoop
from tressette.record.reader import begun_attempts
from tressette_tournament.runner import Outcome, Runner

SURVIVOR = """\
from tressette_bot.bot import Bot
from tressette_bot.client import run

class Survivor(Bot):
    def choose(self, view):
        return view.legal[0]
    def match_ended(self, view, ranks, totals):
        print("seat", view.seat, "ranks", *ranks)

run(Survivor())
"""
"""Plays the first legal card and says how its games end."""


async def play(file: Path) -> tuple[Outcome, Runner]:
    """Run a tournament in this process; its record must be in order then."""
    runner = Runner(loaded(file), Notes())
    async with asyncio.timeout(60):
        outcome = await runner.run()
    if results(runner.folder):
        verified = await asyncio.to_thread(tressette, "verify", runner.folder)
        assert verified.exit_code == 0, verified.output
    return outcome, runner


def assert_lost_by(line: dict[str, Any], bot: str, *kinds: str) -> None:
    """A game was lost by a bot's fault of one of these kinds, and nothing is held against the others."""
    assert line["termination"] == "forfeit"
    assert line["offender"] == bot
    assert {(who, kind in kinds) for who, kind, _ in line["faults"]} == {(bot, True)}
    for who, rank in zip(line["bots"], line["ranks"], strict=True):
        assert rank == (2 if who == bot else 1)


def table(run: Path) -> dict[str, Any]:
    """What the ratings say of each bot, those of one preset."""
    (pool,) = json.loads((run / "ratings.json").read_text())["pools"]
    return {bot["bot"]: bot for part in pool["components"] for bot in part["bots"]}


DEAF = player(each_turn="time.sleep(600)")
CRASHES = player(each_turn="if self.turns > 5: raise RuntimeError('enough')")


def run_with_a_deaf_bot(file: Path) -> None:
    """Run a tournament in which the bot named deaf never answers, in virtual time: a real clock that is to
    strike one bot soon strikes others too, whose process or machine stands still for a moment."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    tournament = loaded(file)
    characters = {bot.name: Character() for bot in tournament.bots}
    characters["deaf"] = Character(think_s=(1e6, 1e6))

    async def play_it(patch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        world = World(loop, characters, random.Random(0))
        world.install(patch)
        sessions = Sessions()
        assert await session(world, tournament, sessions, None)
        assert sessions.outcomes == [Outcome.COMPLETE]
        assert loop.time() < 3600

    with pytest.MonkeyPatch.context() as patch:
        virtual_time.run(play_it(patch))


def test_a_run_that_never_ends_after_time_losses(tmp_path: Path) -> None:
    """A bot that never answers again loses every game by its clock, and the event ends."""
    bots: Bots = {"a": "first_legal", "deaf": "random", "c": "random"}
    file = event(tmp_path, bots, move_ms=2000, sections='[faults]\ntimeout = "forfeit"')
    run_with_a_deaf_bot(file)
    ended = tressette("tournament", "run", file)
    assert ended.exit_code == 0, ended.output
    run = tmp_path / "run"
    assert tressette("verify", run).exit_code == 0
    lines = results(run)
    assert len(lines) == 12
    for line in lines:
        if "deaf" in line["bots"]:
            assert_lost_by(line, "deaf", "timeout")
        else:
            assert (line["termination"], line["faults"]) == ("played_out", [])
    rated = table(run)
    assert rated["deaf"]["faults"] == {"timeout": 8}
    assert not rated["a"]["faults"]
    assert "timeout 8" in ended.stdout


def test_strikes_lose_a_game(tmp_path: Path) -> None:
    """Faults that are substituted, up to the third."""
    file = event(
        tmp_path, {"a": "first_legal", "deaf": "random"}, move_ms=2000, sections="[faults]\nstrikes = 3"
    )
    run_with_a_deaf_bot(file)
    assert tressette("verify", tmp_path / "run").exit_code == 0
    lines = results(tmp_path / "run")
    assert len(lines) == 4
    for line in lines:
        assert_lost_by(line, "deaf", "timeout")
        assert line["faults"] == [["deaf", "timeout", 3]]


async def test_the_surviving_bot_never_told_it_won(tmp_path: Path) -> None:
    """It is told the ranks of every game that the other one has lost by a crash."""
    bots: Bots = {"a": script(tmp_path, "a", SURVIVOR), "bad": script(tmp_path, "bad", CRASHES)}
    file = event(tmp_path, bots, deal_sets=4, concurrency=2, sections='[faults]\ncrash = "forfeit"')
    _, runner = await play(file)
    lines = results(runner.folder)
    assert lines
    for line in lines:
        assert_lost_by(line, "bad", "crash")
    told = (runner.folder / "logs" / "bots" / "a-1.1.log").read_text().splitlines()
    ranks = {0: "1 2", 1: "2 1"}  # of the one who sits at a
    expected = [f"seat {line['bots'].index('a')} ranks {ranks[line['bots'].index('a')]}" for line in lines]
    assert sorted(told) == sorted(expected)


async def test_errored_games_counted_as_losses(tmp_path: Path) -> None:
    """Games that the system cuts off have no result: nobody has lost them, and they are played again."""
    bots: Bots = {"a": lingering(tmp_path, turns_until(2, games_at_once=2)), "b": "first_legal"}
    file = event(tmp_path, bots, deal_sets=4, concurrency=2, sections='[faults]\ncrash = "forfeit"')
    with command_run(file) as run:
        until(lambda: result_lines(run.folder) >= 2, "two results")
        (server,) = (pid for pid, line in run.others().items() if "tressette.wire.host" in line)

        def stands_still_with_a_game_under_way() -> bool:
            os.kill(server, signal.SIGSTOP)
            if begun_attempts(run.folder).keys() - {line["game"] for line in results(run.folder)}:
                return True
            os.kill(server, signal.SIGCONT)
            return False

        until(stands_still_with_a_game_under_way, "a game under way")
        os.kill(server, signal.SIGKILL)
        assert run.wait(60) == 1, run.output
    assert not any(line["faults"] for line in results(run.folder))
    hurry(tmp_path)
    outcome, _ = await play(file)
    assert outcome is Outcome.COMPLETE
    lines = results(run.folder)
    assert len(lines) == 8
    assert all((line["termination"], line["faults"]) == ("played_out", []) for line in lines)
    assert {line["attempt"] for line in lines} == {1, 2}


@pytest.mark.slow
async def test_a_bot_killed_from_outside_answers_for_its_own_games(tmp_path: Path) -> None:
    """The next process of the bot goes on; every game that it left is its own fault and nobody else's."""
    bots: Bots = {
        "a": lingering(tmp_path, turns_until(3, games_at_once=4)),
        "b": "first_legal",
        "c": "random",
    }
    file = event(tmp_path, bots, deal_sets=4, concurrency=4, sections='[faults]\ncrash = "forfeit"')
    with command_run(file) as run:
        until(lambda: result_lines(run.folder) >= 3, "three results")
        killed = [
            pid for pid, line in run.others().items() if line.startswith("python ") and "slow.py" in line
        ]
        assert killed
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        hurry(tmp_path)
        assert run.wait() == 0, run.output
        run.assert_nothing_left()
    lines = results(run.folder)
    assert len(lines) == 24
    lost = [line for line in lines if line["faults"]]
    assert 1 <= len(lost) <= 4
    for line in lost:
        assert_lost_by(line, "a", "crash")
    assert "crash" in run.output


NEVER = "raise RuntimeError('no')"


async def test_a_bot_that_never_starts_forfeits_where_the_file_says_so(tmp_path: Path) -> None:
    """And a game of two such bots is no game."""
    bad = script(tmp_path, "bad", NEVER)
    bots: Bots = {"a": "first_legal", "bad": bad, "worse": bad}
    file = event(
        tmp_path,
        bots,
        sections='[faults]\nrefused_to_start = "forfeit"',
        of_bots={"bad": "restarts = 0", "worse": "restarts = 0"},
    )
    outcome, runner = await play(file)
    assert outcome is Outcome.INCOMPLETE
    assert set(runner.lost) == {"bad", "worse"}
    assert runner.left_out == 4
    lines = results(runner.folder)
    assert len(lines) == 8
    for line in lines:
        (other,) = set(line["bots"]) - {"a"}
        assert_lost_by(line, other, "refused_to_start")


async def test_pairs_of_a_bot_that_never_starts_forfeit_as_well(tmp_path: Path) -> None:
    bots: Bots = {"a": "first_legal", "bad": script(tmp_path, "bad", NEVER)}
    file = event(
        tmp_path,
        bots,
        presets=("tressette-21-duplicate",),
        sections='[faults]\nrefused_to_start = "forfeit"',
        of_bots={"bad": "restarts = 0"},
    )
    outcome, runner = await play(file)
    assert outcome is Outcome.COMPLETE
    lines = results(runner.folder)
    assert len(lines) == 4
    assert all(line["offender"] == "bad" for line in lines)
    assert all(line["ranks"][line["sides"].index(["a", "a"])] == 1 for line in lines)


@pytest.mark.parametrize(
    ("lines", "games"),
    [
        ('format = "gauntlet"', 4),
        ('format = "swiss"\nrounds = 2', 4),
        ('format = "knockout"\nextra_sets = 0', 4),
        ('format = "ladder"', 10),
    ],
)
async def test_a_bot_that_never_starts_ends_its_own_pairings_only(
    tmp_path: Path, lines: str, games: int
) -> None:
    """In every format: the others play all that they have to play with each other."""
    bots: Bots = {"bad": script(tmp_path, "bad", NEVER), "a": "first_legal", "b": "random", "c": "greedy"}
    file = event(
        tmp_path,
        bots,
        deal_sets=1,
        lines=lines,
        sections="[stop]\ngames = 10" if "ladder" in lines else "",
        of_bots={"bad": "restarts = 0", "a": "challenger = true" if "gauntlet" in lines else ""},
    )
    outcome, runner = await play(file)
    # A ladder plays with whoever is there.
    assert outcome is (Outcome.COMPLETE if "ladder" in lines else Outcome.INCOMPLETE)
    assert set(runner.lost) == {"bad"}
    lines_ = results(runner.folder)
    assert len(lines_) == games
    assert not any("bad" in line["bots"] or line["faults"] for line in lines_)
    assert {bot for line in lines_ for bot in line["bots"]} == {"a", "b", "c"}
    if "knockout" in lines:
        ((_, places),) = runner.placings()
        assert places[-1][0] > 2, "who is lost goes no further"
        assert "bad" not in [bot for place, bot in places if place <= 2]


@pytest.mark.slow
async def test_a_ladder_that_ends_without_a_bot_is_not_complete(tmp_path: Path) -> None:
    """Deal sets that wait for it stay open, their decks secret, until it is back."""
    bad = script(tmp_path, "bad", player(each_turn="if self.turns > 25: raise RuntimeError('enough')"))
    file = event(
        tmp_path,
        {"a": "first_legal", "bad": bad, "c": "random"},
        concurrency=4,
        seed=None,
        lines='format = "ladder"',
        sections="[stop]\ngames = 30",
        of_bots={"bad": "restarts = 0"},
    )
    outcome, runner = await play(file)
    assert outcome is Outcome.INCOMPLETE
    assert set(runner.lost) == {"bad"}
    assert runner.left_out == 30 - len(results(runner.folder)) > 0
    event_json = json.loads((runner.folder / "event.json").read_text())
    assert not any("key" in stage for stage in event_json["stages"])
    bad.write_text(player())
    outcome, _ = await play(file)
    assert outcome is Outcome.COMPLETE
    assert len(results(runner.folder)) == 30


# --- before the night ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_self_play_check_that_passes_a_failing_bot(tmp_path: Path) -> None:
    """Bots are checked against reference bots: two that never answer would draw with each other."""
    bots: Bots = {"deaf": script(tmp_path, "deaf", DEAF), "bad": script(tmp_path, "bad", CRASHES)}
    file = event(tmp_path, bots, move_ms=50, of_bots={"bad": "restarts = 1"})
    result = tressette("tournament", "check", file, "--output", tmp_path / "check", "--sets", 1)
    assert result.exit_code == 1
    assert "deaf: DOES NOT PASS" in result.stdout
    assert "timeout" in result.stdout
    assert "bad: DOES NOT PASS" in result.stdout
    assert f"in {tmp_path / 'check' / 'logs' / 'bots'}: bad-1.1.log" in result.stdout
    assert not (tmp_path / "run").exists()
    # With a clock that strikes no good bot because the machine stands still for a moment.
    file = event(tmp_path, {"good": script(tmp_path, "good", player()), "b": "first_legal"})
    again = tressette("tournament", "check", file, "--output", tmp_path / "again", "--sets", 1)
    assert again.exit_code == 0, again.output
    assert "good: passes, 4 games" in again.stdout
