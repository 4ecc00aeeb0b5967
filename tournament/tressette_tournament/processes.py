"""The bots of a tournament as processes: started, restarted, replaced, and ended for certain.

Each runs under a guard (``guard.py``) in a process group of its own. The guard ends its group when the
runner goes away, however it goes, and takes what the bot prints: not a byte of it passes through the runner.

Vocabulary: an **instance** is a place for one process of a bot, numbered from 1; a **generation** is one
process in it. The id of a process is ``NAME-INSTANCE.GENERATION``, e.g. ``alpha-1.3``, and its output is in
``logs/bots/`` under that name with ``.log``. Generations are counted on where an earlier session of the run
has left off, so an id means one process for good. The record says of each game which processes played it.

Decisions:
1. A process **fails** when it ends by itself, whatever its status, or has not connected ``start_limit_s``
   after its start, for which it is killed. Failures of an instance are counted until one of its processes
   has played a game to its end. The first ``restarts`` of them in a row are answered by a new process, the
   next by giving the instance up.
2. Before a restart there is a pause, longer with each failure in a row and 30 seconds at most, so that a bot
   that only crashes costs little.
3. A process that is replaced because the games need a fresh one (``recycle``) has not failed. It is told by
   the server that its token is revoked, and is then ended.
4. A log has OUTPUT_LIMIT bytes at most. Of those of an instance the first and the last ones are kept,
   KEPT_BYTES in all; a small one counts as LEAST_BYTES, so that there is a bound on their number too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from tressette_tournament.commands import search_path
from tressette_tournament.tournament_file import Bot

OUTPUT_LIMIT: Final = 1 << 20
"""Bytes that a process may print at most; the rest is dropped."""
KEPT_BYTES: Final = 16 << 20
LEAST_BYTES: Final = 1 << 12
_GUARD: Final = Path(__file__).with_name("guard.py")
_END_TIMEOUT_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 30.0


def log_of(logs: Path, process: str) -> Path:
    """Where the output of a process is, in the folder of the logs, unless it was removed (decision 4)."""
    return logs / f"{process}.log"


def logs_of(logs: Path, bot: str) -> list[Path]:
    """All logs of a bot's processes, by instance and generation."""
    form = re.compile(re.escape(bot) + r"-(\d+)\.(\d+)\.log")
    found = {path: form.fullmatch(path.name) for path in logs.iterdir()} if logs.is_dir() else {}
    numbers = {path: (int(match[1]), int(match[2])) for path, match in found.items() if match is not None}
    return sorted(numbers, key=numbers.__getitem__)


@dataclass(slots=True)
class BotProcess:
    """One instance of a bot and its newest process. logs: the folder of its logs; token: what that process
    shows the server; starts: how many there were in this session of the run; failures: how many have failed
    in a row; status: exit status of the last that ended; late: whether that was killed because it did not
    connect; given_up: whether there will be no other."""

    bot: Bot
    instance: int
    logs: Path
    generation: int = 0
    token: str = field(default="", repr=False)
    starts: int = 0
    failures: int = 0
    status: int | None = None
    late: bool = False
    given_up: bool = False
    recycling: bool = False
    connected: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    process: asyncio.subprocess.Process | None = field(default=None, repr=False)
    watcher: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def id(self) -> str:
        """The id of the process."""
        return f"{self.bot.name}-{self.instance}.{self.generation}"

    @property
    def log(self) -> Path:
        """Where its output is."""
        return log_of(self.logs, self.id)

    @property
    def end(self) -> str:
        """How the last process ended, in words."""
        if self.late:
            return f"was killed, not having connected within {self.bot.start_limit_s:g} s"
        return f"ended with status {self.status}"


class Listener(Protocol):
    """Who is told what becomes of the processes."""

    def starting(self, one: BotProcess) -> None:
        """A process with this id and this token is about to be started."""

    def crashed(self, one: BotProcess) -> None:
        """A process has failed."""

    def recycled(self, one: BotProcess) -> None:
        """A process is about to be ended and replaced: nothing that it does counts any more."""

    def given_up(self, one: BotProcess) -> None:
        """An instance has failed too often; ``crashed`` came before."""


class BotProcesses:
    """All processes of a run; remote bots have none. ``environment`` gives variables for a process on top of
    the runner's and those of the bot; ``sleep`` waits for some seconds."""

    def __init__(
        self,
        bots: tuple[Bot, ...],
        logs: Path,
        environment: Callable[[BotProcess], Mapping[str, str]],
        listener: Listener,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self.all = [
            BotProcess(bot, instance, logs)
            for bot in bots
            if not bot.remote
            for instance in range(1, bot.instances + 1)
        ]
        self._environment = environment
        self._listener = listener
        self._sleep = sleep
        self._ending = asyncio.Event()

    async def start(self) -> None:
        """Start every instance. Raises OSError if the system has no room for one more process."""
        for one in self.all:
            if self._ending.is_set():
                return
            one.generation = max(_generations(one), default=0)
            await self._start(one)
            one.watcher = asyncio.create_task(self._watch(one))

    async def failed(self) -> None:
        """Wait for ever, unless watching over a bot fails; raises what went wrong."""
        watchers = [one.watcher for one in self.all if one.watcher is not None]
        if watchers:
            done, _ = await asyncio.wait(watchers, return_when=asyncio.FIRST_EXCEPTION)
            for watcher in done:
                watcher.result()
        await asyncio.Event().wait()

    def connected(self, process: str) -> None:
        """A process has opened a session."""
        for one in self._of(process):
            one.connected.set()

    def proven(self, process: str) -> None:
        """A process has played a game to its end: what failed before it is forgotten."""
        for one in self._of(process):
            one.failures = 0

    def recycle(self, process: str) -> None:
        """End a process and start another in its place, which is no failure. One that has been replaced or
        has ended already is ignored."""
        for one in self._of(process):
            running = one.process is not None and one.process.returncode is None
            if running and not one.recycling and not self._ending.is_set():
                one.recycling = True
                self._listener.recycled(one)
                _close(one)

    def let_end(self) -> None:
        """Start no bot again that ends from now on."""
        self._ending.set()

    async def stop(self) -> None:
        """End every instance: first by closing the guards' inputs, which they answer in three seconds."""
        self._ending.set()
        for one in self.all:
            _close(one)
        watchers = [one.watcher for one in self.all if one.watcher is not None]
        if watchers:
            await asyncio.wait(watchers, timeout=_END_TIMEOUT_S)
        for one in self.all:
            if one.process is not None and one.process.returncode is None:
                _kill_group(one.process.pid)
                await one.process.wait()
        await asyncio.gather(*watchers, return_exceptions=True)

    def _of(self, process: str) -> list[BotProcess]:
        """The instance whose newest process this is."""
        return [one for one in self.all if one.id == process]

    async def _start(self, one: BotProcess) -> None:
        _make_room(one)
        one.generation += 1
        one.starts += 1
        one.token = secrets.token_urlsafe(24)
        one.late = one.recycling = False
        one.connected.clear()
        self._listener.starting(one)
        bot = one.bot
        one.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(_GUARD),
            str(one.log.absolute()),
            str(OUTPUT_LIMIT),
            bot.directory or os.curdir,
            str(bot.nice),
            ",".join(map(str, bot.cpus)),
            "--",
            *_command(bot),
            stdin=asyncio.subprocess.PIPE,
            env=self._variables(one),
            start_new_session=True,
        )
        if self._ending.is_set():  # meanwhile
            _close(one)

    def _variables(self, one: BotProcess) -> dict[str, str]:
        """The runner's environment, in which ``python`` is the runner's own, and the bot's additions."""
        own = dict(one.bot.environment)
        return {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            **own,
            "PATH": search_path(own),
            **self._environment(one),
        }

    async def _watch(self, one: BotProcess) -> None:
        while True:
            await self._end_of(one)
            if self._ending.is_set():
                return
            if not one.recycling:
                one.failures += 1
                self._listener.crashed(one)
                if one.failures > one.bot.restarts:
                    one.given_up = True
                    self._listener.given_up(one)
                    return
                pause = min(_FIRST_PAUSE_S * 4 ** (one.failures - 1), _LONGEST_PAUSE_S)
                await _first(self._wait(pause), self._ending.wait())
                if self._ending.is_set():
                    return
            await self._start(one)

    async def _end_of(self, one: BotProcess) -> None:
        """Wait until a process has ended; kill it if it does not connect in time."""
        process = one.process
        assert process is not None
        await _first(process.wait(), one.connected.wait(), self._wait(one.bot.start_limit_s))
        if process.returncode is None and not one.connected.is_set() and not one.recycling:
            one.late = not self._ending.is_set()
            _kill_group(process.pid)
        one.status = await process.wait()
        _kill_group(process.pid)

    async def _wait(self, seconds: float) -> None:
        await self._sleep(seconds)


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of them has ended, then cancel the others."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _close(one: BotProcess) -> None:
    """Have the guard of an instance end it."""
    if one.process is not None and one.process.stdin is not None:
        one.process.stdin.close()


def _kill_group(group: int) -> None:
    """Kill what a guard has left behind: its number cannot be used again while anything is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # PermissionError: macOS, only zombies
        os.killpg(group, signal.SIGKILL)


def _generations(one: BotProcess) -> dict[int, Path]:
    """The logs of an instance by generation."""
    form = re.compile(re.escape(f"{one.bot.name}-{one.instance}.") + r"(\d+)\.log")
    found = {path: form.fullmatch(path.name) for path in one.logs.iterdir()}
    return {int(match[1]): path for path, match in found.items() if match is not None}


def _make_room(one: BotProcess) -> None:
    """Remove logs of an instance, the oldest but the first, so that there is room for one more."""
    logs = [path for _, path in sorted(_generations(one).items())]
    sizes = [max(path.stat().st_size, LEAST_BYTES) for path in logs]
    excess = sum(sizes) + OUTPUT_LIMIT - KEPT_BYTES
    for path, size in list(zip(logs, sizes, strict=True))[1:]:
        if excess <= 0:
            return
        path.unlink()
        excess -= size


def _command(bot: Bot) -> list[str]:
    if bot.reference is not None:
        return [sys.executable, "-m", "tressette", "bot", bot.reference]
    return list(bot.command)
