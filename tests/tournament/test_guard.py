"""The guard: its command never outlives the starter, its log never outgrows the limit."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.runs import alive, until
from tressette_tournament import guard

GUARD = str(Path(guard.__file__))
LIMIT = 1000


def patient(folder: Path, *limits: str) -> str:
    """The path of a guard that waits ten minutes in place of these limits."""
    text = Path(GUARD).read_text(encoding="utf-8")
    for limit in limits:
        text, found = re.subn(rf"^{limit} = .*$", f"{limit} = 600.0", text, flags=re.MULTILINE)
        assert found == 1
    file = folder / "patient_guard.py"
    file.write_text(text, encoding="utf-8")
    return str(file)


@contextmanager
def guarded(
    folder: Path, *command: str, limit: int = LIMIT, nice: str = "0", cpus: str = "", program: str = GUARD
) -> Iterator[subprocess.Popen[bytes]]:
    """A guard in a group of its own, with its command; the log is ``log`` in the folder."""
    log = str(folder / "log")
    arguments = [sys.executable, "-I", "-S", program, log, str(limit), str(folder), nice, cpus, "--"]
    process = subprocess.Popen(
        [*arguments, *command], stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        yield process
    finally:
        process.stdin.close()
        try:
            process.wait(60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(60)
            process.stderr.close()


def python(text: str) -> tuple[str, ...]:
    """A command that runs a program. ``say(pid)`` in it writes a process id into the file ``pids``."""
    head = (
        "import os, signal, subprocess, sys, time\ndef say(pid):\n    open('pids', 'a').write(f'{pid}\\n')\n"
    )
    return (sys.executable, "-I", "-S", "-c", head + textwrap.dedent(text))


def pids(folder: Path, count: int) -> list[int]:
    """Wait until that many processes have said their ids."""
    file = folder / "pids"
    text = until(
        lambda: file.exists() and file.read_text().count("\n") >= count and file.read_text(), f"{count} ids"
    )
    assert text
    return [int(line) for line in text.split()]


FAMILY = """
    grandchild = subprocess.Popen([sys.executable, '-I', '-S', '-c', {grandchild!r}], {options})
    say(grandchild.pid)
    say(os.getpid())
    time.sleep(600)
"""
SLEEPER = "import time; time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("", id="with the pipe"),
        # A child that ends at once then lets the guard end at once: the grandchild must not be forgotten.
        pytest.param("stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL", id="without the pipe"),
    ],
)
@pytest.mark.parametrize("grandchild", [SLEEPER, STUBBORN], ids=["docile", "stubborn"])
def test_child_and_grandchild_end_when_the_input_closes(
    tmp_path: Path, grandchild: str, options: str
) -> None:
    command = python(FAMILY.format(grandchild=grandchild, options=options))
    with guarded(tmp_path, *command) as process:
        family = pids(tmp_path, 2)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
        until(lambda: not any(map(alive, family)), "the end of the family")


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    command = python("signal.signal(signal.SIGTERM, signal.SIG_IGN); say(os.getpid()); time.sleep(600)")
    with guarded(tmp_path, *command) as process:
        (child,) = pids(tmp_path, 1)
        assert process.stdin is not None
        process.stdin.close()
        until(lambda: not alive(child), "the end of the child")


def test_a_child_is_first_asked_to_end(tmp_path: Path) -> None:
    command = python(
        """
        def leave(*_):
            print('goodbye')
            sys.exit(0)
        signal.signal(signal.SIGTERM, leave)
        say(os.getpid())
        time.sleep(600)
        """
    )
    with guarded(tmp_path, *command, program=patient(tmp_path, "_PATIENCE_S")) as process:
        pids(tmp_path, 1)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
    assert (tmp_path / "log").read_text() == "goodbye\n"


def test_a_child_may_leave_by_itself_before_it_is_asked(tmp_path: Path) -> None:
    # So has a bot whose server went away for the same reason.
    (tmp_path / "go").touch()
    command = python(
        """
        signal.signal(signal.SIGTERM, lambda *_: print('asked'))
        say(os.getpid())
        while os.path.exists('go'):
            time.sleep(0.01)
        print('left')
        """
    )
    with guarded(tmp_path, *command, program=patient(tmp_path, "_HEAD_START_S")) as process:
        pids(tmp_path, 1)
        assert process.stdin is not None
        process.stdin.close()
        (tmp_path / "go").unlink()
        process.wait(60)
    assert (tmp_path / "log").read_text() == "left\n"


def test_nothing_survives_a_starter_that_is_killed(tmp_path: Path) -> None:
    sleeper = python("say(os.getpid()); time.sleep(600)")
    arguments = [sys.executable, "-I", "-S", GUARD, "log", "1000", str(tmp_path), "0", "", "--", *sleeper]
    text = f"""
        guard = subprocess.Popen({arguments!r}, stdin=subprocess.PIPE, start_new_session=True)
        say(guard.pid)
        time.sleep(600)
        """
    with subprocess.Popen(python(text), cwd=tmp_path) as starter:
        family = pids(tmp_path, 2)
        assert all(map(alive, family))
        starter.send_signal(signal.SIGKILL)
    until(lambda: not any(map(alive, family)), "the end of guard and sleeper")


# --- what leaves its group --------------------------------------------------------------------------

DAEMONS = """
    say(os.getpid())
    for _ in range({count}):
        if not os.fork():
            os.setsid()
            if os.fork():
                os._exit(0)
            os.closerange(0, 3)
            say(os.getpid())
            time.sleep({seconds})
            os._exit(0)
        os.wait()
    time.sleep(600)
"""
"""Starts processes that have nothing to do with it any more: another parent and session, no open file."""
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans a new parent")


@on_linux
@pytest.mark.parametrize("killed", [False, True], ids=["the input closes", "it is killed"])
def test_a_grandchild_in_a_session_of_its_own_ends_too(tmp_path: Path, killed: bool) -> None:
    with guarded(tmp_path, *python(DAEMONS.format(count=1, seconds=600))) as process:
        family = pids(tmp_path, 2)
        assert all(map(alive, family))
        if killed:
            os.kill(family[0], signal.SIGKILL)
            assert process.wait(60) == 128 + signal.SIGKILL
        else:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)
        until(lambda: not any(map(alive, family)), "the end of the family")


@on_linux
def test_what_a_child_left_behind_and_has_ended_is_waited_for(tmp_path: Path) -> None:
    with guarded(tmp_path, *python(DAEMONS.format(count=20, seconds=0))) as process:
        child, *_ = pids(tmp_path, 21)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: children.read_text().split() == [str(child)], "the last of them")


# --- what it may use -------------------------------------------------------------------------------


def test_niceness_is_added_to_that_of_the_starter(tmp_path: Path) -> None:
    with guarded(tmp_path, *python("print(os.nice(0))"), nice="3") as process:
        assert process.wait(60) == 0
    assert (tmp_path / "log").read_text() == f"{min(19, os.nice(0) + 3)}\n"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU sets")
def test_a_child_and_what_it_starts_keep_to_their_processors(tmp_path: Path) -> None:
    one = max(os.sched_getaffinity(0))
    again = "import os; print(sorted(os.sched_getaffinity(0)))"
    text = "print(sorted(os.sched_getaffinity(0)), flush=True)\n"
    text += f"subprocess.run([sys.executable, '-c', {again!r}])"
    with guarded(tmp_path, *python(text), cpus=str(one)) as process:
        assert process.wait(60) == 0
    assert (tmp_path / "log").read_text() == f"[{one}]\n" * 2


def test_what_the_system_refuses_is_noted_and_the_child_runs_without(tmp_path: Path) -> None:
    with guarded(tmp_path, *python("print('here')"), cpus="65000") as process:
        assert process.wait(60) == 0
    note, said = (tmp_path / "log").read_text().splitlines()
    assert note.startswith("cannot use the processors [65000] alone: ")
    assert said == "here"


# --- output ----------------------------------------------------------------------------------------


def test_a_chatty_child_is_capped_and_not_blocked(tmp_path: Path) -> None:
    command = python("os.write(1, b'x' * 600)\nfor _ in range(300): os.write(1, b'y' * 10_000)")
    with guarded(tmp_path, *command) as process:
        assert process.wait(60) == 0
    text = (tmp_path / "log").read_text()
    assert text == "x" * 600 + "y" * (LIMIT - 600) + "\n[more output was dropped]\n"


def test_output_that_just_fits_is_complete(tmp_path: Path) -> None:
    with guarded(tmp_path, *python(f"os.write(1, b'x' * {LIMIT})")) as process:
        assert process.wait(60) == 0
    assert (tmp_path / "log").read_text() == "x" * LIMIT


def test_the_log_has_both_outputs_and_is_added_to(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("before\n")
    with guarded(tmp_path, *python("print('out', flush=True); print('err', file=sys.stderr)")) as process:
        assert process.wait(60) == 0
    assert (tmp_path / "log").read_text() == "before\nout\nerr\n"


def test_a_log_that_cannot_be_written_does_not_block_the_child(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with guarded(tmp_path, *python("os.write(1, b'x' * 1_000_000); sys.exit(5)")) as process:
        assert process.wait(60) == 5


# --- how it ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "status"), [("pass", 0), ("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 128 + 9)]
)
def test_the_status_is_the_childs(tmp_path: Path, text: str, status: int) -> None:
    with guarded(tmp_path, *python(text)) as process:
        assert process.wait(60) == status


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("before\n")
    with guarded(tmp_path, "no-such-command", "--fast") as process:
        assert process.wait(60) == 127
        assert process.stderr is not None
        assert process.stderr.read() == b""
    before, message = (tmp_path / "log").read_text().splitlines()
    assert before == "before"
    assert message.startswith("cannot start 'no-such-command' in ")
    assert "No such file" in message


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    log = str(tmp_path / "log")
    arguments = [sys.executable, "-I", "-S", GUARD, log, "100", str(missing), "0", "", "--", "true"]
    assert subprocess.run(arguments, stdin=subprocess.DEVNULL, timeout=60).returncode == 127
    assert str(missing) in (tmp_path / "log").read_text()
