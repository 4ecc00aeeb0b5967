"""Who works in a folder: seen without taking the lock, signalled without hitting anybody else."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tressette_tournament import run_lock
from tressette_tournament.run_lock import Holder, NotSignalled, holder, locked, send, take

HOLDS = """\
import asyncio, signal, sys
from tressette_tournament.run_lock import take
async def main():
    with open(sys.argv[1], "a") as lock:
        assert await take(lock)
        print("holds", flush=True)
        signal.sigwait([signal.SIGINT, signal.SIGTERM])
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
asyncio.run(main())
"""


@contextlib.contextmanager
def another(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the lock until it is interrupted."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(folder / run_lock.NAME)], stdout=subprocess.PIPE
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"holds\n"
            yield process
        finally:
            process.kill()


async def test_the_holder_is_seen_from_outside(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    with (tmp_path / run_lock.NAME).open("a") as file:
        assert holder(tmp_path) is None
        assert await take(file)
        found = holder(tmp_path)
        assert found == Holder(os.getpid(), socket.gethostname())
        assert found.here
    assert holder(tmp_path) is None


async def test_what_an_earlier_holder_wrote_is_gone(tmp_path: Path) -> None:
    path = tmp_path / run_lock.NAME
    path.write_text("1234567890 elsewhere.example\nmore\n")
    with path.open("a") as file:
        assert await take(file)
        assert path.read_text() == f"{os.getpid()} {socket.gethostname()}\n"


async def test_who_looks_keeps_no_runner_from_starting(tmp_path: Path) -> None:
    path = tmp_path / run_lock.NAME
    path.touch()
    with path.open() as looking, path.open("a") as file:
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert not locked(file)
        # Two who look do not take each other for a runner.
        assert holder(tmp_path) is None

        async def let_go(_: float) -> None:
            fcntl.flock(looking, fcntl.LOCK_UN)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio, "sleep", let_go)
            patch.setattr(run_lock, "_LOOKED_AT_S", 60.0)
            assert await take(file)


async def test_a_runner_that_is_there_is_not_waited_for(tmp_path: Path) -> None:
    with another(tmp_path), (tmp_path / run_lock.NAME).open("a") as file:
        assert not await take(file)


def test_signals_reach_the_holder(tmp_path: Path) -> None:
    with another(tmp_path) as process:
        found = holder(tmp_path)
        assert found is not None
        assert found.pid == process.pid
        send(tmp_path, [signal.SIGINT])
        assert process.wait(60) == 0
    assert holder(tmp_path) is None


def test_a_killed_holder_is_none(tmp_path: Path) -> None:
    with another(tmp_path) as process:
        process.kill()
        process.wait(60)
        with pytest.raises(NotSignalled, match="no runner is at work in"):
            send(tmp_path, [signal.SIGINT])


@contextlib.contextmanager
def held(folder: Path, text: str) -> Iterator[None]:
    """The lock is held, with a text of ours in it."""
    with (folder / run_lock.NAME).open("a") as file:
        assert locked(file)
        file.write(text)
        file.flush()
        yield


def ended() -> int:
    """The id of a process that is gone."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait(60)
    return process.pid


def test_who_cannot_be_told_is_not(tmp_path: Path) -> None:
    here = socket.gethostname()
    with held(tmp_path, "1 elsewhere.example\n"), pytest.raises(NotSignalled, match=r"on elsewhere\.example"):
        send(tmp_path, [signal.SIGINT])
    for text in ("", "what?\n"):
        (tmp_path / run_lock.NAME).unlink()
        with held(tmp_path, text), pytest.raises(NotSignalled, match="only just started; try again"):
            send(tmp_path, [signal.SIGINT])
    (tmp_path / run_lock.NAME).unlink()
    with held(tmp_path, f"{ended()} {here}\n"), pytest.raises(NotSignalled, match="there is no process"):
        send(tmp_path, [signal.SIGINT])


def test_nothing_is_sent_to_a_process_that_has_got_the_id_of_a_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner ends between the first look and the second."""
    answers = [Holder(os.getpid(), socket.gethostname()), None]
    monkeypatch.setattr(run_lock, "holder", lambda _: answers.pop(0))
    with pytest.raises(NotSignalled, match="has just ended"):
        send(tmp_path, [signal.SIGKILL])
