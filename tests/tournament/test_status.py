"""``status.json``: what is in it, when it is written, how large it gets, and what is made of it later."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.told import Clock, game, rated
from tressette_tournament import run_lock, status
from tressette_tournament.progress import Several, State
from tressette_tournament.status import KILLED, NAME, STARTING, StatusError, StatusFile, read_status


def kept(folder: Path) -> dict[str, Any]:
    data = json.loads((folder / NAME).read_text())
    assert isinstance(data, dict)
    return data


def a_file(folder: Path, begin: bool = True) -> tuple[StatusFile, Clock]:
    clock = Clock()
    file = StatusFile(folder, "cup", clock, lambda: 1_700_000_000 + clock.now)
    if begin:
        file.begin(100, 10)
    return file, clock


@contextlib.contextmanager
def runner(folder: Path) -> Iterator[None]:
    """A runner is at work in the folder: this process."""
    with (folder / run_lock.NAME).open("a") as lock:
        assert run_lock.locked(lock)
        lock.truncate(0)
        lock.write(f"{os.getpid()} {socket.gethostname()}\n")
        lock.flush()
        yield


# --- what is in it ---------------------------------------------------------------------------------


def test_everything_that_is_documented_and_nothing_else(tmp_path: Path) -> None:
    file, clock = a_file(tmp_path)
    file.issued("g1", "tressette-21", ("a", "b"))
    file.issued("g2", "tressette-21", ("b", "a"))
    clock.now += 4
    file.finished(game(1, faults=(("a", "timeout", 2),)))
    file.returned("g9")
    file.standings(rated("a", "b", games=24))
    file.lost("c", "bot c ended 4 times", ["logs/bots/c-1.log"])
    file.note("a note")
    file.stopping("time is up")
    found = kept(tmp_path)
    documented = re.findall(r"^    (\w+(?:, \w+)*) {2,}\S", str(status.__doc__), re.MULTILINE)
    assert set(found) == {name for names in documented for name in names.split(", ")}
    assert (found["v"], found["tournament"], found["state"], found["reason"]) == (
        1,
        "cup",
        "stopping",
        "time is up",
    )
    assert (found["pid"], found["host"]) == (os.getpid(), socket.gethostname())
    assert (found["started_unix_ms"], found["updated_unix_ms"]) == (1_700_001_000_000, 1_700_001_004_000)
    assert found["games"] == {
        "done": 11,
        "total": 100,
        "session": 1,
        "returned": 1,
        "rate": 0.25,
        "seconds_left": None,
    }
    assert found["running"] == {
        "count": 1,
        "longest": [
            {"game": "g2", "preset": "tressette-21", "seats": ["b", "a"], "since_unix_ms": 1_700_001_000_000}
        ],
    }
    [pool] = found["standings"]
    [component] = pool["components"]
    assert [bot["bot"] for bot in component] == ["a", "b"]
    assert component[0]["error"] > 0
    assert found["faults"] == [{"bot": "a", "kind": "timeout", "count": 2}]
    assert found["lost"] == [{"bot": "c", "why": "bot c ended 4 times", "logs": ["logs/bots/c-1.log"]}]
    assert found["notes"] == [{"unix_ms": 1_700_001_004_000, "text": "a note"}]
    assert found["sessions"] == []


def test_what_is_read_is_what_was_told(tmp_path: Path) -> None:
    file, clock = a_file(tmp_path)
    for number in range(9):
        file.issued(f"g{number}", "tressette-21", ("a", "b"))
        clock.now += 1
    file.finished(game(1, faults=(("a", "timeout", 2),)))
    file.standings(rated("a", "b"))
    file.lost("c", "why", ["log"])
    file.stopping("time is up")
    with runner(tmp_path):
        assert read_status(tmp_path).figures(1_700_000_000 + clock.now) == file.figures()


def test_the_sessions_of_a_run(tmp_path: Path) -> None:
    for state in (State.STOPPED, State.FAILED, None, State.INCOMPLETE, State.COMPLETE):
        file, clock = a_file(tmp_path)
        file.finished(game(1))
        clock.now += 5
        if state is not None:
            file.ended(state, f"reason: {state}")
    sessions = kept(tmp_path)["sessions"]
    assert [one["state"] for one in sessions] == ["stopped", "failed", KILLED, "incomplete"]
    assert [one["session"] for one in sessions] == [1, 1, 0, 1]
    assert sessions[0]["updated_unix_ms"] - sessions[0]["started_unix_ms"] == 5000


# --- when it is written ----------------------------------------------------------------------------


def test_it_is_written_every_two_seconds_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    replace = Path.replace

    def counted(self: Path, target: Path) -> Path:
        written.append(target)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", counted)
    file, clock = a_file(tmp_path)
    for number in range(10_000):  # a thousand a second
        clock.now += 0.001
        file.issued(f"g{number}", "tressette-21", ("a", "b"))
        file.finished(game(number))
    assert len(written) == 1 + 4
    file.ended(State.COMPLETE, "")
    assert len(written) == 6
    assert kept(tmp_path)["games"]["done"] == 10_010


def test_a_change_of_state_is_written_at_once(tmp_path: Path) -> None:
    file, _ = a_file(tmp_path)
    assert kept(tmp_path)["state"] == "running"
    file.stopping("time is up")
    assert kept(tmp_path)["state"] == "stopping"
    file.ended(State.STOPPED, "by hand")
    assert (kept(tmp_path)["state"], kept(tmp_path)["reason"]) == ("stopped", "by hand")


def test_nothing_is_written_before_the_folder_is_the_runners_own_nor_afterwards(tmp_path: Path) -> None:
    file, clock = a_file(tmp_path, begin=False)
    clock.now += 100
    file.note("another runner is at work")
    file.ended(State.FAILED, "another runner is at work")
    assert list(tmp_path.iterdir()) == []
    file, clock = a_file(tmp_path)
    file.ended(State.STOPPED, "")
    before = kept(tmp_path)
    clock.now += 100
    file.note("too late")
    file.ended(State.COMPLETE, "")
    assert kept(tmp_path) == before


def test_a_reader_never_finds_half_of_it(tmp_path: Path) -> None:
    file, clock = a_file(tmp_path)
    with (tmp_path / NAME).open() as reading:
        for number in range(20):
            clock.now += 3
            file.note("x" * 200 * number)
        assert json.loads(reading.read())["games"]["done"] == 10
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_its_size_is_bounded(tmp_path: Path) -> None:
    file, clock = a_file(tmp_path)
    for number in range(300):
        file.issued(f"g{number}", "tressette-21", ("a", "b"))
        file.note("n" * 100_000)
        file.lost(f"bot-{number}", "w" * 100_000, ["l" * 5000] * 50)
        file.finished(
            game(number, faults=tuple((f"bot-{number}", kind, 1) for kind in ("timeout", "illegal")))
        )
    file.standings(rated(*(f"bot-{n}" for n in range(12)), presets=tuple(map(str, range(50))), games=1))
    for _ in range(25):
        clock.now += 3
        file.begin(100, 10)
    file.ended(State.FAILED, "r" * 100_000)
    found = kept(tmp_path)
    assert (tmp_path / NAME).stat().st_size < 500_000
    assert len(found["sessions"]) == 20
    assert len(found["notes"]) == 20
    assert len(found["standings"]) + found["standings_cut"] == 50
    assert found["standings_cut"] > 0
    assert len(found["faults"]) + found["faults_cut"] == 600
    assert found["reason"].endswith("…")


@pytest.mark.parametrize("failing", ["write_text", "replace"])
def test_a_full_disk_does_not_fail_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    file, clock = a_file(tmp_path)
    several = Several(file)
    with monkeypatch.context() as patch:
        patch.setattr(Path, failing, full)
        clock.now += 3
        several.note("a note")
        several.stopping("the disk is full")
    assert kept(tmp_path)["state"] == "running"
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    several.ended(State.FAILED, "the disk was full")
    assert kept(tmp_path)["reason"] == "the disk was full"


def test_a_damaged_one_is_replaced(tmp_path: Path) -> None:
    for damage in ("", "{", "[]", '{"v":1}', '{"v":1,"state":"stopped","sessions":3,"games":4}'):
        (tmp_path / NAME).write_text(damage)
        a_file(tmp_path)
        assert kept(tmp_path)["sessions"] == []


# --- reading it ------------------------------------------------------------------------------------


def test_a_run_at_work(tmp_path: Path) -> None:
    a_file(tmp_path)
    with runner(tmp_path):
        found = read_status(tmp_path)
        assert (found.state, found.to_json()["at_work"]) == ("running", True)


@pytest.mark.parametrize("stopping", [False, True])
def test_a_run_whose_runner_was_killed_says_so(tmp_path: Path, stopping: bool) -> None:
    file, _ = a_file(tmp_path)
    if stopping:
        file.stopping("time is up")
    (tmp_path / run_lock.NAME).write_text(f"{os.getpid()} {socket.gethostname()}\n")
    found = read_status(tmp_path)
    assert (found.state, found.holder) == (KILLED, None)
    assert found.to_json() == {**kept(tmp_path), "state": KILLED, "at_work": False}


@pytest.mark.parametrize("state", [State.COMPLETE, State.STOPPED, State.INCOMPLETE, State.FAILED])
def test_a_run_that_has_ended(tmp_path: Path, state: State) -> None:
    file, _ = a_file(tmp_path)
    file.ended(state, "")
    found = read_status(tmp_path)
    assert (found.state, found.to_json()["at_work"]) == (state, False)


def test_a_runner_that_has_written_nothing_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with runner(tmp_path):
        found = read_status(tmp_path)
        assert (found.state, found.kept) == (STARTING, None)
        assert found.to_json() == {"state": STARTING, "at_work": True}
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 1)
        a_file(tmp_path)[0].ended(State.STOPPED, "")
    with runner(tmp_path):
        assert read_status(tmp_path).state == STARTING


def test_a_runner_that_ends_while_one_looks_was_not_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that starts is no ghost. The file is read between two looks at the lock."""
    file, _ = a_file(tmp_path)
    here = run_lock.Holder(os.getpid(), socket.gethostname())
    answers = [None, here, here]
    with monkeypatch.context() as patch:
        patch.setattr(run_lock, "holder", lambda _: answers.pop(0))
        assert read_status(tmp_path).state == "running"

    def ends(_: Path) -> run_lock.Holder | None:
        file.ended(State.COMPLETE, "")
        return None

    monkeypatch.setattr(run_lock, "holder", ends)
    assert read_status(tmp_path).state == "complete"


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(StatusError, match="no run has been at work there"):
        read_status(tmp_path)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"v":2}', "[" * 100_000])
def test_damage_is_told(tmp_path: Path, damage: str) -> None:
    (tmp_path / NAME).write_text(damage)
    with pytest.raises(StatusError, match="is damaged"):
        read_status(tmp_path)
