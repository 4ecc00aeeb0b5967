"""Runs one command and never outlives whoever started it.

Usage: ``python guard.py LOG LIMIT FOLDER NICE CPUS -- COMMAND...``

The starter holds the other end of this process's standard input. When that closes, because the starter
stopped or was killed, the command gets half a second to end by itself, then SIGTERM and, two seconds later,
it and all that it started SIGKILL. The half second is for a server that has lost the same starter: it must
notice that before its bots leave, or it would count their leaving against them. When the command ends by
itself, what it left behind is killed at once. On Linux that is found wherever it went, in sessions of its own
too, since the guard is its new parent; elsewhere it is what stayed in the guard's process group.

Everything the command prints goes to LOG, LIMIT bytes at most; the rest is read and dropped, so that a
chatty command neither fills the disk nor blocks. The command runs in FOLDER. Exits with the command's own
status, 128 more than the signal that ended it, or 127 if it cannot be started, which LOG then explains.

NICE (0 for none) is added to the niceness of the command; CPUS are the numbers of the processors that it may
use, separated by commas (none: any). Both hold for the guard as well, so that the command is never without
them. Where the system refuses, the command runs without, and LOG says so.

The starter must give the guard a process group of its own, and should kill what is left of that group after
the guard, which may itself be killed.

Uses only the standard library and is run by its path: a guard should start in an instant.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

_HEAD_START_S = 0.5
_PATIENCE_S = 2.0
_CANNOT_START = 127
_PR_SET_CHILD_SUBREAPER = 36


def _confine(nice: int, cpus: set[int]) -> list[str]:
    """Set niceness and processors of this process and all that it starts; returns what was refused."""
    refused = []
    try:
        if nice:
            os.nice(nice)
    except OSError as error:
        refused.append(f"cannot add {nice} to the niceness: {error}\n")
    try:
        if cpus:
            os.sched_setaffinity(0, cpus)
    except (AttributeError, OSError) as error:  # AttributeError: not on every system
        refused.append(f"cannot use the processors {sorted(cpus)} alone: {error}\n")
    return refused


def _note(log: Path, lines: list[str]) -> None:
    with contextlib.suppress(OSError), log.open("a", encoding="utf-8") as out:
        out.writelines(lines)


def _copy(source: IO[bytes], log: Path, limit: int) -> None:
    """Read to the end, whatever becomes of the log: a full disk is no reason to block the command."""
    left, dropped = limit, False
    with contextlib.ExitStack() as files:
        out: IO[bytes] | None = None
        with contextlib.suppress(OSError):
            out = files.enter_context(log.open("ab", buffering=0))
        while chunk := os.read(source.fileno(), 65536):
            if out is None or dropped:
                continue
            with contextlib.suppress(OSError):
                out.write(chunk[:left])
            if len(chunk) > left:
                dropped = True
                with contextlib.suppress(OSError):
                    out.write(b"\n[more output was dropped]\n")
            left -= min(left, len(chunk))


def _adopt() -> bool:
    """Become the parent of whatever the command leaves behind. False where the system cannot do that."""
    try:
        return ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 and hasattr(os, "waitid")
    except AttributeError:  # no Linux
        return False


def _wait(child: subprocess.Popen[bytes]) -> int:
    """The status of the command when it ends; what it leaves behind meanwhile is waited for too."""
    with contextlib.suppress(ChildProcessError):  # the other thread has been told already
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)) and ended.si_pid != child.pid:
            os.waitpid(ended.si_pid, 0)
    return child.wait()


def _kill_children() -> None:
    """Kill this process's children, and theirs as they become its own, until there are none; where the system
    does not tell of children, nobody."""
    spared = set[int]()
    while found := set(_children()) - spared:
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            except PermissionError:  # it has become another user
                spared.add(pid)
        for pid in found - spared:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    found: list[int] = []
    for of_thread in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found += map(int, of_thread.read_text().split())
    return found


def _end_with_starter(
    child: subprocess.Popen[bytes], ending: threading.Event, copier: threading.Thread
) -> None:
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 4096):
            pass  # nothing is expected; only the end of it matters
    ending.set()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_HEAD_START_S)
    child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_PATIENCE_S)
    _kill_children()
    copier.join(_HEAD_START_S)  # the last words of the command may still be in the pipe
    # The group holds this guard, the command, and what the command left behind in it.
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status, 127 if it cannot be started."""
    log, limit, folder, nice, cpus, _, *command = arguments
    if refused := _confine(int(nice), {int(cpu) for cpu in cpus.split(",") if cpu}):
        _note(Path(log), refused)
    adopts = _adopt()
    try:
        child = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        _note(Path(log), [f"cannot start {command[0]!r} in {folder!r}: {error}\n"])
        return _CANNOT_START
    assert child.stdout is not None
    ending = threading.Event()
    copier = threading.Thread(target=_copy, args=(child.stdout, Path(log), int(limit)), daemon=True)
    copier.start()
    ender = threading.Thread(target=_end_with_starter, args=(child, ending, copier), daemon=True)
    ender.start()
    status = _wait(child) if adopts else child.wait()
    if ending.is_set():
        ender.join()  # it ends this process too; leaving before it would spare what the command started
    _kill_children()
    copier.join(_PATIENCE_S)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
