"""Whole runs with a real server and real bot processes: complete, cut off, resumed, and with bots that fail.

Each run costs a second or two for starting processes, so tests share the uninterrupted one.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import random
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from support.disks import Disk, disk
from support.recorded import spec_of
from support.runs import (
    Bots,
    CommandRun,
    Notes,
    command_run,
    event,
    finish,
    hurry,
    loaded,
    player,
    result_lines,
    results,
    script,
    standing,
    tressette,
    tricks,
    turns_until,
    until,
)
from tressette.record.reader import read_lines
from tressette.record.segments import raw_lines
from tressette.rules.presets import PRESETS
from tressette.wire.host import HostConfig
from tressette_tournament.formats import Round
from tressette_tournament.journal import Journal, read_rounds
from tressette_tournament.local_host import HostFailed, LocalHost
from tressette_tournament.processes import log_of
from tressette_tournament.ratings import rate
from tressette_tournament.results import GameResult, read
from tressette_tournament.runner import Outcome, RunError, Runner
from tressette_tournament.schedule import Game, Schedule
from tressette_tournament.verify import Checked, verify

__all__ = ["disk"]

SLOWLY = "time.sleep(0.001)"


def scheduled(file: Path) -> list[Game]:
    """Every game that a tournament file asks for."""
    schedule = Schedule(loaded(file))
    games = []
    while (game := schedule.issue()) is not None:
        games.append(game)
        schedule.fix(game.id, None)
    return games


async def play(file: Path) -> tuple[Outcome, Notes, Runner]:
    """Run a tournament in this process."""
    notes = Notes()
    runner = Runner(loaded(file), notes)
    async with asyncio.timeout(60):
        return await runner.run(), notes, runner


# --- from beginning to end -------------------------------------------------------------------------


def standard(folder: Path, deal_sets: int = 6, each_turn: str = "pass", before: str = "") -> Path:
    """Pairs and two players, three bots without chance but that of their seed, one of them not hurried, which
    does this ``before`` it connects and on ``each_turn``."""
    bots: Bots = {
        "chance": "random",
        "first": "first_legal",
        "slow": script(folder, "slow", player(before, f"{SLOWLY}\n        {each_turn}")),
    }
    presets = ("tressette-due-duplicate", "tressette-21-duplicate")
    return event(folder, bots, presets=presets, deal_sets=deal_sets)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> CommandRun:
    """The standard tournament, played without any interruption."""
    return finish(standard(tmp_path_factory.mktemp("whole")))


def test_every_scheduled_game_is_played_once(whole: CommandRun) -> None:
    played = results(whole.folder)
    assert Counter(line["game"] for line in played) == Counter(game.id for game in scheduled(whole.file))
    by_id = {game.id: game for game in scheduled(whole.file)}
    for line in played:
        game = by_id[line["game"]]
        assert tuple(line["bots"]) == game.seats
        assert (line["deal_set"], line["set_size"], line["preset"]) == (
            game.deal_set,
            game.set_size,
            game.preset,
        )
        assert (line["attempt"], line["faults"], line["termination"]) == (1, [], "played_out")


def test_decks_are_named_alike_where_they_are_alike(whole: CommandRun) -> None:
    games = {game.id: game for game in scheduled(whole.file)}
    names = {(games[line["game"]].deck, line["deck"]) for line in results(whole.folder)}
    assert len(names) == len({deck for deck, _ in names}) == len({name for _, name in names})


def test_nothing_that_bots_are_told_names_the_deck(whole: CommandRun) -> None:
    commitments = Counter(line["commitment"] for line in results(whole.folder))
    assert set(commitments.values()) == {1}


def test_the_tricks_of_every_game_are_there(whole: CommandRun) -> None:
    for game, lines in groupby(tricks(whole.folder), key=lambda line: line["game"]):
        kinds = [line["kind"] for line in lines]
        count = 20 if game.startswith("p0") else 10
        assert kinds == ["match", *["trick"] * count, "deal"]


def test_the_folder_of_a_run(whole: CommandRun) -> None:
    assert {path.name for path in whole.folder.iterdir()} == {
        "event.json",
        "lock",
        "logs",
        "manifest.json",
        "ratings.json",
        "results-0001.jsonl",
        "reveals-0001.jsonl",
        "server.lock",
        "status.json",
        "tournament.toml",
        "tricks-0001-0001.jsonl",
    }
    logs = {path.name for path in (whole.folder / "logs" / "bots").iterdir()}
    assert logs == {f"{bot}-{number}.1.log" for bot in ("chance", "first", "slow") for number in (1, 2)}
    assert loaded(whole.folder / "tournament.toml") == loaded(whole.file)


def test_what_it_prints(whole: CommandRun) -> None:
    total = len(scheduled(whole.file))
    assert f"games: 0 of {total} done before" in whole.output
    assert f"games: {total} of {total}, " in whole.output
    assert "tressette-21-duplicate" in whole.output
    assert str(whole.folder) in whole.output


def test_a_finished_run_starts_nothing(whole: CommandRun) -> None:
    before = results(whole.folder), (whole.folder / "ratings.json").read_bytes()
    again = finish(whole.file)
    assert (results(whole.folder), (whole.folder / "ratings.json").read_bytes()) == before
    assert not (whole.folder / "results-0002.jsonl").exists()
    assert f"games: {len(before[0])} of {len(before[0])} done before" in again.output


@pytest.mark.parametrize("lost", ["the last result", "all results"])
def test_a_finished_run_that_lacks_results_is_not_played_again(
    whole: CommandRun, tmp_path: Path, lost: str
) -> None:
    # Its decks are public, and after another game nothing would tell that there had been a first one.
    folder = Path(shutil.copytree(whole.folder, tmp_path / "run"))
    path = folder / "results-0001.jsonl"
    if lost == "all results":
        path.unlink()
    else:
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    before = sorted(folder.iterdir())
    resumed = tressette("tournament", "resume", folder)
    assert resumed.exit_code == 1
    assert "does not hold the results that it had when the run ended" in resumed.output
    assert "results-0001.jsonl: " in resumed.output
    assert (folder / "manifest.json").exists()
    assert sorted(folder.iterdir()) == before
    shutil.copy(whole.folder / "results-0001.jsonl", path)
    assert tressette("tournament", "resume", folder).exit_code == 0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_games(whole: CommandRun, tmp_path: Path) -> None:
    again = finish(standard(tmp_path))
    assert results(again.folder) == results(whole.folder)
    assert tricks(again.folder) == tricks(whole.folder)
    ratings = (again.folder / "ratings.json").read_bytes()
    assert ratings == (whole.folder / "ratings.json").read_bytes()


async def test_secret_decks(tmp_path: Path) -> None:
    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"}, deal_sets=1, seed=None)
    outcome, _, runner = await play(file)
    assert outcome is Outcome.COMPLETE
    key = runner.folder / "event.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(bytes.fromhex(key.read_text())) == 32
    assert key.read_text().strip() not in (runner.folder / "tournament.toml").read_text()


# --- cut off and resumed ---------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_killed_runner_leaves_nothing_and_is_resumed(whole: CommandRun, tmp_path: Path) -> None:
    hold, held = tmp_path / "hold", tmp_path / "held"
    hold.touch()
    # Whichever of its games has this turn stays under way until its process ends; five are over before.
    last = turns_until(5, games_at_once=8) + 1
    holding = f"while HOLD and self.turns >= {last}: open({str(held)!r}, 'w').close(); time.sleep(0.01)"
    file = standard(tmp_path, each_turn=holding, before=f"HOLD = os.path.exists({str(hold)!r})")
    with command_run(file) as run:
        until(lambda: result_lines(run.folder) >= 5 and held.exists(), "five results and a game held up")
        run.signal(signal.SIGKILL)
        run.process.wait(60)
        hold.unlink()
        # Started again at once, while the server and the bots of the killed runner are still ending.
        outcome, notes, _ = await play(file)
        assert outcome is Outcome.COMPLETE
        run.assert_nothing_left()
    total = len(results(whole.folder))
    first = len(list(read_games_of(run.folder, "0001")))
    assert 5 <= first < total, "it was to be killed in the middle"
    assert (notes.before, notes.total) == (first, total)
    # Every game once, and whatever was cut off came out as it would have.
    assert results(run.folder, "attempt") == results(whole.folder, "attempt")
    assert tricks(run.folder, "attempt") == tricks(whole.folder, "attempt")
    assert rate(read(run.folder)) == rate(read(whole.folder))
    cut_off = begun(run.folder, "0001") - {(line["game"], 1) for line in read_games_of(run.folder, "0001")}
    assert cut_off, "no game was under way"
    attempts = {line["game"]: line["attempt"] for line in results(run.folder)}
    assert {game for game, attempt in attempts.items() if attempt == 2} == {game for game, _ in cut_off}
    assert set(attempts.values()) == {1, 2}


def read_games_of(run: Path, writer: str) -> list[dict[str, str]]:
    """The result lines of one writer that are whole."""
    lines = (run / f"results-{writer}.jsonl").read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines]


def begun(run: Path, writer: str) -> set[tuple[str, int]]:
    """The attempts that one writer has begun."""
    lines = [line for line in raw_lines(run / f"tricks-{writer}-0001.jsonl") if line.endswith(b"\n")]
    found = [json.loads(line) for line in lines if b'"kind":"match"' in line]
    return {(line["game"], line["attempt"]) for line in found}


async def test_an_interrupt_lets_the_games_under_way_finish(tmp_path: Path) -> None:
    bots: Bots = {"a": standing(tmp_path, turns_until(3, games_at_once=4)), "b": "first_legal"}
    file = event(tmp_path, bots, deal_sets=8, concurrency=4)
    total = len(scheduled(file))
    with command_run(file) as run:
        until(lambda: result_lines(run.folder) >= 3, "three results")
        run.signal(signal.SIGINT)
        until(lambda: "again to stop now" in run.output, "the answer")
        hurry(tmp_path)
        assert run.wait() == 3, run.output
        run.assert_nothing_left()
    assert "stopping when the games under way are finished" in run.output
    assert f"-m tressette tournament run {file}" in run.output
    games = results(run.folder)
    assert 3 <= len(games) < total
    assert begun(run.folder, "0001") == {(line["game"], 1) for line in games}
    assert not any(line["faults"] for line in games)
    assert (run.folder / "ratings.json").exists()
    assert (await play(file))[0] is Outcome.COMPLETE
    assert {line["game"] for line in results(run.folder)} == {game.id for game in scheduled(file)}
    assert {line["attempt"] for line in results(run.folder)} == {1}
    assert len(results(run.folder)) == total


def test_a_second_interrupt_stops_at_once(tmp_path: Path) -> None:
    slow = script(tmp_path, "slow", player(each_turn="time.sleep(20)"))
    file = event(tmp_path, {"a": slow, "b": "first_legal"}, deal_sets=1)
    with command_run(file) as run:
        tricks_file = run.folder / "tricks-0001-0001.jsonl"
        until(lambda: tricks_file.exists() and tricks_file.stat().st_size, "the first game")
        run.signal(signal.SIGTERM)
        until(lambda: "again to stop now" in run.output, "the answer")
        assert run.process.poll() is None
        run.signal(signal.SIGINT)
        assert run.wait(60) == 3, run.output
        run.assert_nothing_left()
    assert results(run.folder) == []  # above all no result made of the faults of bots that were ended
    slow.write_text(player())
    resumed = tressette("tournament", "resume", run.folder)
    assert resumed.exit_code == 0, resumed.output
    assert [(line["attempt"], line["faults"]) for line in results(run.folder)] == [(2, [])] * 2


@pytest.mark.slow
def test_what_is_counted_after_a_stop_is_what_the_record_has(tmp_path: Path) -> None:
    """Results that were being synced when the server was stopped are in the record."""
    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"}, deal_sets=10_000, concurrency=32)
    for least in (10, 50, 90):
        with command_run(file) as run:
            until(lambda least=least: result_lines(run.folder) >= least, "results")  # type: ignore[misc]
            run.signal(signal.SIGINT)
            until(lambda: "again to stop now" in run.output, "the answer")
            run.signal(signal.SIGINT)
            assert run.wait(60) == 3, run.output
        status = json.loads((run.folder / "status.json").read_text())
        assert status["games"]["done"] == result_lines(run.folder) < 20_000
    assert not any(line["faults"] for line in results(run.folder))


def test_games_dropped_by_an_interrupt_are_not_taken_for_played(tmp_path: Path) -> None:
    # Nothing is under way, so every game is dropped; that must not look like the end of the tournament.
    late = script(tmp_path, "late", player(before="open('started', 'w').close(); time.sleep(600)"))
    file = event(tmp_path, {"a": late, "b": "first_legal"}, deal_sets=1)
    with command_run(file) as run:
        until((tmp_path / "started").exists, "the bot")
        run.signal(signal.SIGINT)
        assert run.wait(60) == 3, run.output
        run.assert_nothing_left()
    assert "Stopped before its end" in run.output


def test_an_interrupt_while_everything_starts(tmp_path: Path) -> None:
    # No game can end, so that neither does the run, however late the signal comes.
    bots: Bots = {"a": "first_legal", "late": script(tmp_path, "late", "import time; time.sleep(600)")}
    file = event(tmp_path, bots, deal_sets=1)
    with command_run(file) as run:
        until((run.folder / "logs" / "server.log").exists, "the server")
        run.signal(signal.SIGINT)
        assert run.wait(60) == 3, run.output
        run.assert_nothing_left()


async def test_signal_handlers_are_put_back(tmp_path: Path) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)

    def mine(*_: object) -> None:
        """Never called."""

    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"})
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "tricks-0001-0001.jsonl").touch()
    original = [signal.signal(number, mine) for number in numbers]
    try:
        with pytest.raises(HostFailed):
            await play(file)
        assert [signal.getsignal(number) for number in numbers] == [mine, mine]
    finally:
        for number, handler in zip(numbers, original, strict=True):
            signal.signal(number, handler)


# --- whose folder it is ----------------------------------------------------------------------------


async def test_a_second_runner_is_refused(tmp_path: Path) -> None:
    late = script(tmp_path, "late", player(before="open('started', 'w').close(); time.sleep(600)"))
    file = event(tmp_path, {"a": late, "b": "first_legal"})
    with command_run(file) as run:
        until((tmp_path / "started").exists, "the first runner at work")
        with pytest.raises(RunError, match=f"another runner is at work in {re.escape(str(run.folder))}"):
            await play(file)
        assert run.process.poll() is None
        run.signal(signal.SIGINT)
        assert run.wait(60) == 3


async def test_another_tournament_is_refused(whole: CommandRun) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.folder.iterdir() if path.name != "lock"}
    other = event(
        whole.file.parent,
        {"chance": "random", "first": "first_legal"},
        deal_sets=6,
        concurrency=9,
        name="other.toml",
    )
    with pytest.raises(RunError) as caught:
        await play(other)
    after = {path: path.stat().st_mtime_ns for path in whole.folder.iterdir() if path.name != "lock"}
    assert before == after
    first, *lines = str(caught.value).split("\n")
    assert first.startswith(f"{whole.folder} holds a run of another tournament file; ")
    assert first.endswith(f"{whole.folder / 'tournament.toml'}:")
    assert "  tournament.concurrency: 8 there, 9 now" in lines
    assert '  bots[2].name: "slow" there, absent now' in lines
    assert any(line.startswith("  tournament.presets: [") for line in lines)
    assert not any("tournament.output" in line or "deal_sets" in line for line in lines)


async def test_a_moved_run_goes_on(whole: CommandRun, tmp_path: Path) -> None:
    total = len(results(whole.folder))
    moved = tmp_path / "moved" / "run"
    shutil.copytree(whole.folder, moved)
    assert str(whole.folder) not in (moved / "tournament.toml").read_text()
    runs = [replace(loaded(whole.file), output=str(moved)), loaded(moved / "tournament.toml")]
    for tournament in runs:
        assert tournament.output == str(moved)
        notes = Notes()
        assert await Runner(tournament, notes).run() is Outcome.COMPLETE
        assert (notes.before, notes.total) == (total, total)


async def test_a_run_whose_bots_were_moved_too_goes_on(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    file = event(old, {"a": "first_legal", "b": script(old, "b", player())}, deal_sets=1)
    text = file.read_text().replace(str(old / "b.py"), "b.py")
    file.write_text(text)
    assert (await play(file))[0] is Outcome.COMPLETE
    # A directory that is still there is another bot; one that is gone was moved.
    (old / "other").mkdir()
    file.write_text(text + 'directory = "other"\n')
    with pytest.raises(RunError, match=r"\n  bots\[1\]\.directory: "):
        await play(file)
    file.write_text(text)
    old.rename(new)
    outcome, notes, _ = await play(new / file.name)
    assert (outcome, notes.before) == (Outcome.COMPLETE, notes.total)
    assert loaded(new / "run" / "tournament.toml").bots[1].directory == str(new)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"\xff", "not UTF-8 text"), (b"name =", "not TOML"), (b"a=" + b"[" * 5000, "TOML")],
)
async def test_a_damaged_tournament_file_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "tournament.toml").write_bytes(content)
    with pytest.raises(RunError, match=rf"tournament\.toml is damaged: .*{reason}"):
        await play(event(tmp_path, {"a": "first_legal", "b": "first_legal"}))


async def test_games_without_their_tournament_or_key_are_refused(tmp_path: Path) -> None:
    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"}, deal_sets=1, seed=None)
    run = (await play(file))[2].folder
    for missing in ("event.key", "tournament.toml"):
        content = (run / missing).read_bytes()
        for without in ((), ("results-0001.jsonl", "manifest.json")):  # then only games that were begun
            for name in without:
                (run / name).unlink(missing_ok=True)
            (run / missing).unlink()
            before = {path.name for path in run.iterdir()}
            with pytest.raises(
                RunError, match=f"{re.escape(missing)}.* put it back|{missing} is missing.* Put"
            ):
                await play(file)
            assert {path.name for path in run.iterdir()} == before
            (run / missing).write_bytes(content)


async def test_a_resumed_run_waits_for_the_server_of_a_killed_one(
    whole: CommandRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (whole.folder / "server.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with monkeypatch.context() as patch:
            patch.setattr("tressette_tournament.folder.SERVER_GONE_S", 0.1)
            with pytest.raises(RunError, match="server of an earlier runner"):
                await play(whole.file)
        monkeypatch.setattr("tressette_tournament.folder.SERVER_GONE_S", 600)
        run = asyncio.create_task(play(whole.file))
        _, pending = await asyncio.wait((run,), timeout=0.3)
        assert pending == {run}
        fcntl.flock(lock, fcntl.LOCK_UN)
        outcome, _, _ = await run
    assert outcome is Outcome.COMPLETE


async def test_a_damaged_key_is_refused(tmp_path: Path) -> None:
    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"}, seed=None)
    run = tmp_path / "run"
    run.mkdir()
    for text in ("", "abcd\n", "no hex"):
        (run / "event.key").write_text(text)
        with pytest.raises(RunError, match=r"event\.key is damaged"):
            await play(file)


async def test_a_record_that_cannot_be_made(tmp_path: Path) -> None:
    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"})
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "tricks-0001-0001.jsonl").touch()
    with pytest.raises(HostFailed, match=r"did not start: cannot write the record: .*File exists"):
        await play(file)


@pytest.mark.slow
def test_a_record_that_cannot_be_written_ends_the_run(tmp_path: Path) -> None:
    # No file may grow over 100 blocks of half a kilobyte or, with some shells, a whole one.
    file = event(tmp_path, {"a": "first_legal", "b": "random"}, deal_sets=100)
    with command_run(file, shell_before="ulimit -f 100") as run:
        assert run.wait(60) == 1, run.output
        run.assert_nothing_left()
    assert "cannot write the record" in run.output
    assert "File too large" in run.output
    assert not any(line["faults"] for line in results(run.folder)), "the bots are not to blame"
    assert 0 < len(results(run.folder)) < 200


@contextmanager
def on_a_full_disk(folder: Path, disk: Disk) -> Iterator[CommandRun]:
    """A run of 200 games, some of them played, that stands still because the disk is full."""
    bots: Bots = {"a": standing(folder, turns_until(11, games_at_once=8)), "b": "random"}
    file = event(folder, bots, deal_sets=100)
    with command_run(file) as run:
        until(lambda: result_lines(run.folder) > 10, "a few games")
        disk.fill()
        hurry(folder)
        until(lambda: "games stand still until there is room: [Errno 28]" in run.output, "a full disk")
        yield run


def test_a_full_disk_is_waited_for(tmp_path: Path, disk: Disk) -> None:
    with on_a_full_disk(tmp_path, disk) as run:
        disk.make_room()
        assert run.wait(60) == 0, run.output
        run.assert_nothing_left()
    assert re.search(r"there is room again after \d+ s: games go on", run.output)
    assert Counter(line["game"] for line in results(run.folder)) == Counter(
        game.id for game in scheduled(run.file)
    )
    assert not any(line["faults"] for line in results(run.folder)), "the bots are not to blame"
    assert not list(verify(run.folder, Checked()))


@pytest.mark.slow
def test_bots_outlive_a_disk_that_is_full_for_more_than_a_minute(tmp_path: Path, disk: Disk) -> None:
    """They ping the server and are pinged: neither takes the other for gone."""
    with on_a_full_disk(tmp_path, disk) as run:
        time.sleep(70)
        disk.make_room()
        assert run.wait(60) == 0, run.output
    assert len(results(run.folder)) == 200
    assert not any(line["faults"] for line in results(run.folder))
    logs = {path.name for path in (run.folder / "logs" / "bots").iterdir()}
    assert logs == {"a-1.1.log", "b-1.1.log"}, "no process was started again"


@pytest.mark.slow
def test_a_run_is_stopped_while_the_disk_is_full(tmp_path: Path, disk: Disk) -> None:
    with on_a_full_disk(tmp_path, disk) as run:
        stop = time.monotonic()
        run.signal(signal.SIGINT)  # once: games that stand still would not finish
        run.wait(60)
        assert time.monotonic() - stop < 40
        run.assert_nothing_left()
    assert 0 < len(results(run.folder)) < 200
    disk.make_room()
    finish(run.file)
    assert Counter(line["game"] for line in results(run.folder)) == Counter(
        game.id for game in scheduled(run.file)
    )
    assert not list(verify(run.folder, Checked()))


@pytest.mark.parametrize("killed", ["runner", "server"])
@pytest.mark.slow
def test_a_run_is_killed_while_the_disk_is_full(tmp_path: Path, disk: Disk, killed: str) -> None:
    with on_a_full_disk(tmp_path, disk) as run:
        if killed == "runner":
            run.process.kill()
        else:
            (server,) = (pid for pid, line in run.others().items() if "tressette.wire.host" in line)
            os.kill(server, signal.SIGKILL)
        run.wait(60)
        run.assert_nothing_left()
    disk.make_room()
    finish(run.file)
    assert Counter(line["game"] for line in results(run.folder)) == Counter(
        game.id for game in scheduled(run.file)
    )
    assert not list(verify(run.folder, Checked()))


# --- bots that fail --------------------------------------------------------------------------------


async def test_a_bot_that_crashes_at_its_start(tmp_path: Path) -> None:
    crasher = script(tmp_path, "crasher", "raise RuntimeError('out of luck')")
    file = event(tmp_path, {"a": "first_legal", "bad": crasher, "c": "first_legal"})
    outcome, notes, runner = await play(file)
    assert outcome is Outcome.INCOMPLETE
    games = scheduled(file)
    theirs = {game.id for game in games if "bad" not in game.seats}
    assert {line["game"] for line in results(runner.folder)} == theirs
    assert set(runner.lost) == {"bad"}
    assert runner.left_out == len(games) - len(theirs)
    (note,) = notes.notes
    log = runner.folder / "logs" / "bots" / "bad-1.4.log"
    assert "bot bad (instance 1) failed 4 times in a row, the last time it ended with status 1" in note
    assert str(log) in note
    assert "RuntimeError: out of luck" in log.read_text()


async def test_one_crash_ending_the_event(tmp_path: Path) -> None:
    """A bot that crashes again and again ends its own pairings only."""
    crashes = "if self.turns > 30: raise RuntimeError('enough')"
    crasher = script(tmp_path, "crasher", player(each_turn=crashes))
    file = event(
        tmp_path, {"a": "first_legal", "bad": crasher, "c": "first_legal"}, deal_sets=10, concurrency=3
    )
    with command_run(file) as run:
        assert run.wait() == 4, run.output
        run.assert_nothing_left()
    games = {game.id: game for game in scheduled(file)}
    played = results(run.folder)
    assert {game for game, one in games.items() if "bad" not in one.seats} <= {
        line["game"] for line in played
    }
    assert len(played) < len(games)
    faulty = [line for line in played if line["faults"]]
    assert faulty, "the games that it left go on without it"
    assert {(bot, kind) for line in faulty for bot, kind, _ in line["faults"]} == {("bad", "crash")}
    left_out = len(games) - len(played)
    assert re.search(rf"Left out, because of bad: {left_out} games; .* tournament run ", run.output)
    assert "RuntimeError: enough" in (run.folder / "logs" / "bots" / "bad-1.1.log").read_text()
    # Once it is mended the same command plays what was left out.
    crasher.write_text(player())
    assert (await play(file))[0] is Outcome.COMPLETE
    assert len(results(run.folder)) == len(games)


async def test_a_bot_that_never_connects(tmp_path: Path) -> None:
    sleeper = script(tmp_path, "sleeper", "import time; time.sleep(600)")
    file = event(tmp_path, {"a": "first_legal", "asleep": sleeper, "c": "first_legal"}, deal_sets=1)

    ahead_s = 0.0

    class Impatient(Notes):
        """Calls the bot late once the others have played, and has it away for too long after that."""

        def finished(self, result: GameResult) -> None:
            super().finished(result)
            if len(self.games) == 2:
                runner.late_s = 0

        def note(self, text: str) -> None:
            nonlocal ahead_s
            super().note(text)
            ahead_s = runner.away_s

    notes = Impatient()
    runner = Runner(loaded(file), notes, clock=lambda: time.monotonic() + ahead_s)
    async with asyncio.timeout(60):
        assert await runner.run() is Outcome.INCOMPLETE
    assert len(results(runner.folder)) == 2
    assert set(runner.lost) == {"asleep"}
    assert runner.left_out == 4
    late, lost = notes.notes
    log = str(runner.folder / "logs" / "bots" / "asleep-1.1.log")
    assert "bot asleep has 0 of the 1 connections it needs; the run waits" in late
    assert "; its games are left out" in lost
    assert log in late
    assert log in lost


DRAINER = """
import asyncio, os
import grpc
from tressette.v1.arena_service_pb2 import Drain, Hello, PlayRequest
from tressette.v1.arena_service_pb2_grpc import ArenaServiceStub

async def main():
    async with grpc.aio.insecure_channel(os.environ["TRESSETTE_ADDRESS"]) as channel:
        call = ArenaServiceStub(channel).Play()
        hello = Hello(token=os.environ["TRESSETTE_TOKEN"], min_protocol=1, max_protocol=1)
        await call.write(PlayRequest(hello=hello))
        await call.write(PlayRequest(drain=Drain()))
        while await call.read() is not grpc.aio.EOF:
            pass

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_bot_that_drains_and_stays_holds_nobody_up(tmp_path: Path) -> None:
    bots: Bots = {"a": "first_legal", "b": "random", "drains": script(tmp_path, "drains", DRAINER)}
    # The others may take as long for their start as they need on a busy machine.
    patience = {"drains": "start_limit_s = 5"}
    file = event(
        tmp_path, bots, deal_sets=8, concurrency=2, sections="[server]\naway_s = 1", of_bots=patience
    )
    outcome, _, runner = await play(file)
    assert outcome is Outcome.INCOMPLETE
    assert set(runner.lost) == {"drains"}
    assert len(results(runner.folder)) == 16


@pytest.mark.slow
async def test_a_bot_that_is_slow_to_start(tmp_path: Path) -> None:
    late = script(tmp_path, "late", player(before="time.sleep(1)"))
    notes = Notes()
    runner = Runner(loaded(event(tmp_path, {"a": "first_legal", "late": late})), notes)
    runner.late_s = 0
    async with asyncio.timeout(60):
        assert await runner.run() is Outcome.COMPLETE
    assert any("bot late has 0 of the 1 connections" in note for note in notes.notes)
    assert len(notes.notes) == len(set(notes.notes)) <= 2, "each is named once"
    assert not any(line["faults"] for line in results(runner.folder))


@pytest.mark.slow
async def test_a_bot_may_take_longer_to_start_than_others_may_be_away(tmp_path: Path) -> None:
    ahead_s = 0.0

    class Slow(Notes):
        """Has more time pass than a bot may be away, but less than the start of this one may take."""

        def note(self, text: str) -> None:
            nonlocal ahead_s
            super().note(text)
            ahead_s = runner.away_s + 1

    limits = dict.fromkeys(("a", "late"), "start_limit_s = 600")
    late = script(tmp_path, "late", player(before="time.sleep(1)"))
    file = event(tmp_path, {"a": "first_legal", "late": late}, of_bots=limits)
    runner = Runner(loaded(file), Slow(), clock=lambda: time.monotonic() + ahead_s)
    runner.late_s = 0
    async with asyncio.timeout(60):
        assert await runner.run() is Outcome.COMPLETE, runner.lost
    assert ahead_s


@pytest.mark.parametrize("clock", ["[clock]\nmove_ms = 0", "[clock]\nmove_ms = 0\nbank_ms = 60000"])
async def test_an_event_without_a_clock_is_warned_of(tmp_path: Path, clock: str) -> None:
    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"}, deal_sets=1)
    file.write_text(file.read_text().replace("[clock]\nmove_ms = 600000", clock))
    notes = Notes()
    async with asyncio.timeout(60):
        assert await Runner(loaded(file), notes).run() is Outcome.COMPLETE
    warned = any("no clock: a bot that hangs holds its games" in text for text in notes.infos)
    assert warned == ("bank_ms" not in clock)


async def test_a_chatty_bot(tmp_path: Path) -> None:
    talks = "print('x' * 100_000)"
    chatty = script(tmp_path, "chatty", player(each_turn=talks))
    outcome, _, runner = await play(event(tmp_path, {"a": "first_legal", "chatty": chatty}))
    assert outcome is Outcome.COMPLETE
    log = (runner.folder / "logs" / "bots" / "chatty-1.1.log").read_bytes()
    assert len(log) < 1_100_000
    assert log.endswith(b"[more output was dropped]\n")


@pytest.mark.slow
async def test_no_way_from_a_bad_game_to_its_log(tmp_path: Path) -> None:
    """The record says which processes played a game; their output is under these names."""
    crashes = "if self.turns > 30: raise RuntimeError('lost my cards')"
    crasher = script(tmp_path, "crasher", player(each_turn=crashes))
    _, _, runner = await play(event(tmp_path, {"a": "first_legal", "bad": crasher}, deal_sets=10))
    (path,) = runner.folder.glob("tricks-*.jsonl")
    processes = {
        line["game"]: dict(zip(line["bots"], line["processes"], strict=True))
        for line in read_lines(path)
        if line["kind"] == "match"
    }
    bad = [line["game"] for line in results(runner.folder) if line["faults"]]
    assert bad
    for game in bad:
        text = log_of(runner.folder / "logs" / "bots", processes[game]["bad"]).read_text()
        assert "RuntimeError: lost my cards" in text
        assert log_of(runner.folder / "logs" / "bots", processes[game]["a"]).exists()


async def test_two_seats_of_a_bot_are_two_processes(tmp_path: Path) -> None:
    says = "print(view.deck_commitment.hex(), view.seat)"
    talker = script(tmp_path, "talker", player(each_match=says))
    file = event(tmp_path, {"a": talker, "b": talker}, presets=("tressette-21-duplicate",), deal_sets=3)
    outcome, _, runner = await play(file)
    assert outcome is Outcome.COMPLETE
    seen: Counter[str] = Counter()
    for name in ("a-1", "a-2", "b-1", "b-2"):
        lines = (runner.folder / "logs" / "bots" / f"{name}.1.log").read_text().split("\n")[:-1]
        pairs = [line.split() for line in lines]
        seen.update(f"{name[0]} {deck} {seat}" for deck, seat in pairs)
        # The two games of a deal set have one deck; in each a bot sits north-south or east-west.
        games = [(deck, int(seat) % 2) for deck, seat in pairs]
        assert len(games) == len(set(games)) == 6
    assert len(seen) == 3 * 2 * 4
    assert set(seen.values()) == {1}


# --- a server that fails ---------------------------------------------------------------------------


async def test_a_killed_server_is_named_and_the_run_resumed(tmp_path: Path) -> None:
    bots: Bots = {"a": standing(tmp_path, turns_until(2, games_at_once=2)), "b": "first_legal"}
    file = event(tmp_path, bots, deal_sets=12, concurrency=2)
    with command_run(file) as run:
        until(lambda: result_lines(run.folder) >= 2, "two results")
        (server,) = (pid for pid, line in run.others().items() if "tressette.wire.host" in line)
        os.kill(server, signal.SIGKILL)
        assert run.wait(60) == 1, run.output
        run.assert_nothing_left()
    log = run.folder / "logs" / "server.log"
    assert f"Error: the server ended by itself; see {log}\n" in run.output
    assert log.exists()
    hurry(tmp_path)
    assert (await play(file))[0] is Outcome.COMPLETE
    assert len(results(run.folder)) == len({line["game"] for line in results(run.folder)}) == 24
    assert not any(line["faults"] for line in results(run.folder))


async def test_a_host_that_was_never_started_can_be_stopped(tmp_path: Path) -> None:
    await LocalHost(tmp_path / "log", lambda _: None).stop()


async def test_the_last_messages_of_a_server_are_handed_on_when_nobody_waits_for_its_end(
    tmp_path: Path,
) -> None:
    messages: list[dict[str, Any]] = []
    host = LocalHost(tmp_path / "log", messages.append)
    await host.start(HostConfig(str(tmp_path / "run"), "0001", bytes(32).hex()).to_json())
    failed = asyncio.create_task(host.failed())
    await asyncio.sleep(0)
    failed.cancel()
    await asyncio.gather(failed, return_exceptions=True)
    host.play(spec_of(PRESETS["tressette-due-duplicate"], "p0-l0-s0-g0"))
    host.cancel("p0-l0-s0-g0")
    await host.stop()
    assert messages == [{"cancelled": "p0-l0-s0-g0"}]


async def test_a_server_that_does_not_start(tmp_path: Path) -> None:
    host = LocalHost(tmp_path / "log", lambda _: None)
    with pytest.raises(HostFailed, match="the server did not start; see "):
        await host.start({"no": "config"})
    await host.stop()
    assert "TypeError" in (tmp_path / "log").read_text()


async def test_an_error_while_reading_messages_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Notes):
        def finished(self, result: object) -> None:
            raise BrokenPipeError("nobody listens")

    runner = Runner(loaded(event(tmp_path, {"a": "first_legal", "b": "first_legal"})), Broken())
    async with asyncio.timeout(60):
        with pytest.raises(BrokenPipeError, match="nobody listens"):
            await runner.run()


async def test_an_error_while_handing_out_games_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Runner, game: Game) -> None:
        raise LookupError("no such rules")

    monkeypatch.setattr(Runner, "_spec", fail)
    with pytest.raises(LookupError, match="no such rules"):
        await play(event(tmp_path, {"a": "first_legal", "b": "first_legal"}))


# --- many times ------------------------------------------------------------------------------------


def swiss(folder: Path, deal_sets: int, each_turn: str = "pass") -> Path:
    """Four bots whose pairings follow from the results."""
    bots: Bots = {
        "chance": "random",
        "first": "first_legal",
        "greedy": "greedy",
        "slow": script(folder, "slow", player(each_turn=f"{SLOWLY}\n        {each_turn}")),
    }
    return event(folder, bots, deal_sets=deal_sets, lines='format = "swiss"\nrounds = 3')


@pytest.mark.slow
async def test_a_round_for_which_the_disk_has_no_room_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, refused = Journal.write, 0

    def full(self: Journal, first_round: int, rounds: Iterable[Round]) -> None:
        nonlocal refused
        if first_round == 1 and refused < 2:
            refused += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, first_round, rounds)

    monkeypatch.setattr(Journal, "write", full)
    outcome, notes, runner = await play(swiss(tmp_path, 1))
    assert outcome is Outcome.COMPLETE
    assert refused == 2
    assert len(list(read_rounds(runner.folder / "journal.jsonl"))) == 3
    assert [note for note in notes.notes if "room" in note] == [
        "no game is begun until there is room: [Errno 28] No space left on device",
        "there is room again: games are begun",
    ]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("make", "deal_sets", "kills"),
    [
        (standard, 6, 3),
        (swiss, 4, 2),
        pytest.param(standard, 60, 30, marks=pytest.mark.slow),
        pytest.param(swiss, 60, 20, marks=pytest.mark.slow),
    ],
)
def test_resume_that_loses_or_double_counts_games(
    tmp_path: Path, make: Callable[[Path, int, str], Path], deal_sets: int, kills: int
) -> None:
    """However often a run is killed, and whenever, it comes out as one that was not."""
    chance = random.Random(kills)
    (tmp_path / "whole").mkdir()
    whole = make(tmp_path / "whole", deal_sets, "pass")
    ended = tressette("tournament", "run", whole)
    assert ended.exit_code == 0, ended.output
    expected = tmp_path / "whole" / "run"
    hold = tmp_path / "hold"
    hold.touch()
    # No session gets to the end of the run, however long it is until it is killed.
    last = turns_until(1, games_at_once=8)
    file = make(tmp_path, deal_sets, f"while self.turns > {last} and os.path.exists({str(hold)!r}): {SLOWLY}")
    for kill in range(kills):
        with command_run(file) as run:
            # Most times in the middle of games, now and then before there are any.
            before = result_lines(run.folder)
            if kill % 4 != 3:
                until(lambda: result_lines(run.folder) > before, "a result")  # noqa: B023  # called here
            time.sleep(chance.uniform(0, 0.1))
            assert run.process.poll() is None, "it was to be killed before its end"
            run.signal(signal.SIGKILL)
            run.process.wait(60)
    hold.unlink()
    tear(max(run.folder.glob("results-*.jsonl"), key=lambda path: path.stat().st_mtime))
    ended = tressette("tournament", "resume", run.folder)
    assert ended.exit_code == 0, ended.output
    assert results(run.folder, "attempt") == results(expected, "attempt")
    assert tricks(run.folder, "attempt") == tricks(expected, "attempt")
    for name in ("ratings.json", "journal.jsonl"):
        assert (run.folder / name).exists() == (expected / name).exists()
        if (expected / name).exists():
            assert (run.folder / name).read_bytes() == (expected / name).read_bytes()
    verified = tressette("verify", run.folder)
    assert verified.exit_code == 0, verified.output


@pytest.mark.slow
def test_a_ladder_that_is_killed_goes_on_by_its_journal(tmp_path: Path) -> None:
    stands = standing(tmp_path, turns_until(10, games_at_once=8))
    bots: Bots = {"chance": "random", "first": "first_legal", "stands": stands}
    file = event(tmp_path, bots, lines='format = "ladder"', sections="[stop]\ngames = 80")
    with command_run(file) as run:
        until(lambda: result_lines(run.folder) >= 10, "ten results")
        run.signal(signal.SIGKILL)
        run.process.wait(60)
    journal = (run.folder / "journal.jsonl").read_bytes()
    before = {line["game"] for line in results(run.folder)}
    hurry(tmp_path)
    resumed = tressette("tournament", "resume", run.folder)
    assert resumed.exit_code == 0, resumed.output
    assert (run.folder / "journal.jsonl").read_bytes().startswith(journal)
    after = [line["game"] for line in results(run.folder)]
    assert len(after) == len(set(after)) == 80
    assert before < set(after)
    verified = tressette("verify", run.folder)
    assert verified.exit_code == 0, verified.output


def tear(path: Path) -> None:
    """Cut the end of a file off, as a crash of the machine may leave it."""
    path.write_bytes(path.read_bytes()[:-9])
