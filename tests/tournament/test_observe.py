"""A run seen and steered from another terminal, and stopped in its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result
from support.runs import (
    Bots,
    CommandRun,
    command_run,
    event,
    hurry,
    lingering,
    player,
    result_lines,
    results,
    script,
    turns_until,
    until,
)
from support.told import game, rated
from tressette.cli import main
from tressette_tournament import run_lock
from tressette_tournament.progress import State
from tressette_tournament.run_lock import Holder
from tressette_tournament.status import NAME, StatusFile, read_status


def tressette(*arguments: object) -> Result:
    """Run the command in this process; an error that it does not report itself fails the test."""
    result = CliRunner().invoke(main, ["tournament", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(autouse=True)
def _called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/there/tressette"])


@pytest.fixture
def at_work(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """There is a runner at work, this process; the signals that it is sent, none of them for real."""
    sent: list[int] = []
    monkeypatch.setattr(run_lock, "holder", lambda _: Holder(os.getpid(), socket.gethostname()))
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda _, number: sent.append(number))
    return sent


def some_run(folder: Path, state: State | None = None) -> None:
    """A folder with the status of a run."""
    file = StatusFile(folder, "cup")
    file.begin(100, 10)
    file.issued("g2", "tressette-21", ("a", "[b]"))
    file.finished(game(1, "a", "[b]", faults=(("[b]", "timeout", 2),)))
    file.standings(rated("a", "[b]", games=24))
    file.lost("c", "bot c ended 4 times", ["c-1.log"])
    file.note("a note")
    file.stopping("time is up")
    if state is not None:
        file.ended(state, "time is up")


# --- status ----------------------------------------------------------------------------------------


def test_a_run_at_work_in_words(tmp_path: Path, at_work: list[int]) -> None:
    some_run(tmp_path)
    result = tressette("status", tmp_path)
    assert result.exit_code == 0
    first, *lines = result.stdout.splitlines()
    assert first.startswith(f"cup: stopping (process {os.getpid()} on {socket.gethostname()}) for ")
    assert lines[0] == "reason: time is up"
    assert lines[1].startswith("games: 11 of 100, ")
    assert lines[1].endswith("faults: 2")
    assert lines[2] == "tressette-21: 24 games"
    assert [line.split()[-1] for line in lines[3:5]] == ["a", "[b]"]
    assert all(" ± " in line for line in lines[3:5])
    assert "faults of [b]: timeout 2" in lines
    assert "lost: c: bot c ended 4 times" in lines
    assert "running: 1, longest" in lines
    assert any("g2 tressette-21: a, [b]" in line for line in lines)
    assert lines[-1].endswith(": a note")
    assert at_work == []


@pytest.mark.usefixtures("at_work")
def test_a_full_disk_is_told_though_the_runner_cannot_write_it_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_run(tmp_path)
    assert "free on the disk" not in tressette("status", tmp_path).stdout
    free = {tmp_path: 5000}
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free[path]))
    lines = tressette("status", tmp_path).stdout.splitlines()
    assert lines[1] == f"4 KiB are free on the disk of {tmp_path}: games stand still while there is no room"


def test_a_killed_run_says_so_and_how_to_go_on(tmp_path: Path) -> None:
    some_run(tmp_path)
    result = tressette("status", tmp_path)
    assert result.exit_code == 0
    first = result.stdout.splitlines()[0]
    assert first.startswith("cup: was stopping until 20")
    again = f"/there/tressette tournament run {tmp_path / 'tournament.toml'}"
    assert first.endswith(f", no runner is at work now; go on with: {again}")
    assert "running: " not in result.stdout


@pytest.mark.parametrize("state", [State.COMPLETE, State.STOPPED, State.INCOMPLETE, State.FAILED])
def test_a_run_that_has_ended(tmp_path: Path, state: State) -> None:
    some_run(tmp_path, state)
    first = tressette("status", tmp_path).stdout.splitlines()[0]
    assert first.startswith(f"cup: {state} since 20")
    assert ("go on with: " in first) == (state is not State.COMPLETE)


def test_earlier_sessions_are_mentioned(tmp_path: Path) -> None:
    some_run(tmp_path)
    some_run(tmp_path, State.COMPLETE)
    assert "earlier sessions: 1, the last one killed\n" in tressette("status", tmp_path).stdout


def test_as_json(tmp_path: Path) -> None:
    some_run(tmp_path)
    found = json.loads(tressette("status", tmp_path, "--json").stdout)
    kept = json.loads((tmp_path / NAME).read_text())
    assert found == {**kept, "state": "killed", "at_work": False}


def test_a_runner_that_starts(tmp_path: Path, at_work: list[int]) -> None:
    assert tressette("status", tmp_path).stdout.startswith("a runner is starting (process ")
    assert at_work == []


def test_watching_ends_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some_run(tmp_path)
    holders = [Holder(os.getpid(), socket.gethostname())] * 3
    monkeypatch.setattr(run_lock, "holder", lambda _: holders.pop() if holders else None)
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    result = tressette("status", tmp_path, "--watch", "7", "--json")
    assert [json.loads(line)["state"] for line in result.stdout.splitlines()] == [*["stopping"] * 3, "killed"]
    assert pauses == [7, 7, 7]


def test_an_interrupt_ends_watching(
    tmp_path: Path, at_work: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    some_run(tmp_path)
    monkeypatch.setattr(time, "sleep", interrupted)
    result = tressette("status", tmp_path, "--watch", "7")
    assert (result.exit_code, result.stderr) == (0, "")
    assert at_work == []


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (None, "no run has been at work there"),
        ("{", "is damaged"),
        ('{"v": 1, "state": "running"}', "is damaged"),
        ('{"v": 1}', "is damaged"),
    ],
)
def test_what_cannot_be_read_is_an_error(tmp_path: Path, damage: str | None, reason: str) -> None:
    if damage is not None:
        (tmp_path / NAME).write_text(damage)
    for arguments in ((), ("--json",)):
        result = tressette("status", tmp_path, *arguments)
        assert result.exit_code == 1
        assert reason in result.stderr
        assert result.stdout == ""
    assert tressette("status", tmp_path / "missing").exit_code == 2


# --- stop ------------------------------------------------------------------------------------------


def test_nobody_to_stop(tmp_path: Path) -> None:
    result = tressette("stop", tmp_path)
    assert (result.exit_code, result.stderr) == (1, f"Error: no runner is at work in {tmp_path}\n")
    some_run(tmp_path)
    assert tressette("stop", tmp_path).exit_code == 1
    assert tressette("stop", tmp_path / "missing").exit_code == 2


def test_a_runner_on_another_machine_is_not_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "holder", lambda _: Holder(1, "elsewhere.example"))
    result = tressette("stop", tmp_path)
    assert result.exit_code == 1
    assert "at work on elsewhere.example" in result.stderr


@pytest.mark.parametrize(
    ("stopping", "arguments", "signals"),
    [
        (False, (), [signal.SIGINT]),
        (False, ("--now",), [signal.SIGINT, signal.SIGTERM]),
        (True, (), []),
        (True, ("--now",), [signal.SIGTERM]),
    ],
)
def test_now_is_twice_and_a_stop_is_not_counted_twice(
    tmp_path: Path, at_work: list[int], stopping: bool, arguments: tuple[str, ...], signals: list[int]
) -> None:
    file = StatusFile(tmp_path, "cup")
    file.begin(100, 10)
    if stopping:
        file.stopping("time is up")
    result = tressette("stop", tmp_path, "--no-wait", *arguments)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"told the runner in {tmp_path} to stop")
    assert at_work == signals


def test_waiting_has_a_limit(tmp_path: Path, at_work: list[int]) -> None:
    some_run(tmp_path)
    result = tressette("stop", tmp_path, "--timeout", "0")
    assert result.exit_code == 3
    assert result.stderr == f"the runner in {tmp_path} is still finishing its games\n"
    assert tressette("stop", tmp_path, "--no-wait", "--timeout", "3").exit_code == 2


# --- a real run ------------------------------------------------------------------------------------


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """The command line from another terminal, under way; it is killed on the way out, if it still runs."""
    with subprocess.Popen(
        [sys.executable, "-m", "tressette", "tournament", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The same, to its end."""
    with started(*arguments) as process:
        output, errors = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def test_a_run_is_seen_from_outside_stopped_and_resumed(tmp_path: Path) -> None:
    # Shorter pauses: the status is written when a game has ended two seconds after the last time.
    slow = lingering(tmp_path, turns_until(2, games_at_once=4), pause_s=0.1)
    bots: Bots = {"a": slow, "b": "first_legal"}
    file = event(tmp_path, bots, deal_sets=12, concurrency=4)
    with command_run(file, "--json") as run:
        until(lambda: result_lines(run.folder) >= 2, "two results")
        until(lambda: json.loads((run.folder / NAME).read_text())["games"]["done"], "a game in the status")
        seen = json.loads(command("status", run.folder, "--json").stdout)
        assert (seen["state"], seen["at_work"], seen["pid"]) == ("running", True, run.process.pid)
        assert seen["games"]["total"] == 24
        assert 1 <= seen["running"]["count"] <= 4
        assert 1 <= seen["games"]["session"] < 24
        assert {"a", "b"} == set(seen["running"]["longest"][0]["seats"])
        with started("stop", run.folder) as stop:
            until(lambda: '"stopping"' in run.output, "the answer")
            hurry(tmp_path)
            said, errors = stop.communicate(timeout=60)
        assert stop.returncode == 0, errors
        assert said.startswith("stopped, games: ")
        assert f"-m tressette tournament run {run.folder / 'tournament.toml'}" in said
        assert read_status(run.folder).state == "stopped"
        assert run.wait(60) == 3, run.output
    before = results(run.folder)
    assert 2 <= len(before) < 24
    *lines, last = run.output.splitlines()
    events = [json.loads(line) for line in lines]
    kinds = [one["event"] for one in events if one["event"] != "standings"]
    assert kinds.count("stopping") == 1
    kinds.remove("stopping")
    assert kinds == ["begin", "info", *["game"] * len(before), "ended"]
    assert events[-2]["event"] == "standings"
    assert last.startswith("Stopped before its end; go on with: "), "on standard error"
    assert command("stop", run.folder).returncode == 1
    # To the end, with what stop has said.
    again = command("run", run.folder / "tournament.toml", "--quiet")
    assert again.returncode == 0, again.stderr
    assert again.stderr == ""
    assert "games: " not in again.stdout
    assert "Elo" in again.stdout
    assert len(results(run.folder)) == 24
    seen = json.loads(command("status", run.folder, "--json").stdout)
    assert (seen["state"], seen["at_work"], seen["games"]["done"]) == ("complete", False, 24)
    assert [one["state"] for one in seen["sessions"]] == ["stopped"]
    assert [bot["games"] for bot in seen["standings"][0]["components"][0]] == [24, 24]
    assert command("status", run.folder).stdout.startswith("test: complete since ")


@pytest.mark.slow
def test_events_that_nobody_reads_do_not_end_the_run(tmp_path: Path) -> None:
    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"}, deal_sets=4)
    with subprocess.Popen(
        [sys.executable, "-m", "tressette", "tournament", "run", str(file), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["event"] == "begin"
        process.stdout.close()
        assert process.wait(60) == 0
        errors = process.stderr.read().decode()
    assert len(results(tmp_path / "run")) == 8
    assert errors.count("the run goes on") == 1
    assert len(errors.splitlines()) == 1


# --- Ctrl-C ----------------------------------------------------------------------------------------


def stuck(run: CommandRun) -> None:
    """Wait until the first game has begun."""
    record = run.folder / "tricks-0001-0001.jsonl"
    until(lambda: record.exists() and record.stat().st_size, "the first game")


def test_ctrl_c_that_waits_a_minute(tmp_path: Path) -> None:
    """Twice: over in a few seconds, though a bot never answers and has much time left."""
    deaf = script(tmp_path, "deaf", player(each_turn="time.sleep(600)"))
    file = event(tmp_path, {"a": deaf, "b": "first_legal"}, deal_sets=1, move_ms=600_000)
    with command_run(file) as run:
        stuck(run)
        run.signal(signal.SIGINT)
        until(lambda: "again to stop now" in run.output, "the answer")
        run.signal(signal.SIGINT)
        assert run.wait(60) == 3, run.output
        run.assert_nothing_left()
    assert results(run.folder) == []


@pytest.mark.slow
def test_stop_now_does_not_wait_a_minute_either(tmp_path: Path) -> None:
    deaf = script(tmp_path, "deaf", player(each_turn="time.sleep(600)"))
    file = event(tmp_path, {"a": deaf, "b": "first_legal"}, deal_sets=1, move_ms=600_000)
    with command_run(file) as run:
        stuck(run)
        result = tressette("stop", run.folder, "--now", "--timeout", "60")
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("stopped, games: 0 of 2")
        assert run.wait(60) == 3, run.output


@pytest.mark.slow
def test_one_ctrl_c_takes_no_longer_than_the_clock_allows(tmp_path: Path) -> None:
    """The games under way end by the clock: 20 turns of a bot that never answers, 50 ms each."""
    deaf = script(tmp_path, "deaf", player(each_turn="time.sleep(600)"))
    file = event(tmp_path, {"a": deaf, "b": "first_legal"}, deal_sets=20, concurrency=2, move_ms=50)
    with command_run(file) as run:
        stuck(run)
        run.signal(signal.SIGINT)
        # A second for the games; ending processes that do not answer takes some more.
        assert run.wait(60) == 3, run.output
        run.assert_nothing_left()
    found = results(run.folder)
    assert 1 <= len(found) < 40
    assert all(line["faults"] for line in found)
