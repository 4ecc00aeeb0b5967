"""The lock of a run's folder: taken by its one runner, and how others find that runner and signal it.

Whether a runner is at work is known from the lock (``flock``) alone, which ends with its holder, however that
ends. What is written in the file only says who holds it: process id and host name.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

NAME: Final = "lock"
_LOOKED_AT_S: Final = 1.0


class NotSignalled(Exception):
    """The runner could not be told; the text says why."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lock. pid: None if it has not said yet. host: name of its machine."""

    pid: int | None
    host: str

    @property
    def here(self) -> bool:
        """Whether it runs on this machine."""
        return self.host == socket.gethostname()


def locked(file: IO[str]) -> bool:
    """Lock a file until it is closed, here and in all who have inherited it; False if another holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def take(file: IO[str]) -> bool:
    """Lock ``file`` (open for appending) as the runner and write there who holds it; False if another does.

    Who looks for a runner (``holder``) shares the lock for an instant. So it is tried for a second.
    """
    give_up_at = time.monotonic() + _LOOKED_AT_S
    while not locked(file):
        if time.monotonic() > give_up_at:
            return False
        await asyncio.sleep(0.02)
    file.truncate(0)
    file.write(f"{os.getpid()} {socket.gethostname()}\n")
    file.flush()
    return True


def holder(folder: Path) -> Holder | None:
    """Who is at work in a folder, None if nobody. Needs no more than permission to read.

    Raises OSError if the lock cannot be read. The lock is shared, not taken, so that those who look do not
    take each other for a runner. On a network file system that keeps locks on each machine by itself a runner
    elsewhere is not seen.
    """
    try:
        file = (folder / NAME).open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pid, _, host = file.read(1000).strip().partition(" ")
            return Holder(int(pid) if pid.isdecimal() else None, host or socket.gethostname())
    return None


def send(folder: Path, numbers: Iterable[int]) -> None:
    """Send signals to the runner at work in a folder. Raises NotSignalled, OSError.

    A process id may be used again, so nothing is sent to the id that was read. The process is opened first
    and the lock looked at after that: if the lock is still held, under the same id, then what was opened is
    its holder, and a signal sent through it reaches that process or nobody. Where processes cannot be opened
    (all but Linux) a runner that ends between the last look and the signal leaves a gap of microseconds.
    """
    found = holder(folder)
    if found is None:
        raise NotSignalled(f"no runner is at work in {folder}")
    if not found.here:
        raise NotSignalled(
            f"the runner in {folder} is at work on {found.host}, and this is {socket.gethostname()}: "
            "stop it there"
        )
    if found.pid is None:
        raise NotSignalled(f"the runner in {folder} has only just started; try again")
    try:
        with contextlib.ExitStack() as stack:
            opened = None
            if sys.platform == "linux":
                opened = os.pidfd_open(found.pid)
                stack.callback(os.close, opened)
            if holder(folder) != found:
                raise NotSignalled(f"the runner in {folder} has just ended")
            for number in numbers:
                if sys.platform == "linux" and opened is not None:
                    signal.pidfd_send_signal(opened, number)
                else:
                    os.kill(found.pid, number)
    except ProcessLookupError:
        raise NotSignalled(
            f"the lock of {folder} is held, but there is no process {found.pid} here: its runner is in "
            "another container or has just ended"
        ) from None
    except PermissionError:
        raise NotSignalled(f"the runner in {folder} (process {found.pid}) belongs to another user") from None
