"""The bots of a tournament as processes: started, restarted, and ended for certain.

Each runs under a guard (``guard.py``) in a process group of its own. The guard ends its group when the
runner goes away, however it goes; what the bot prints is in ``logs/bots/NAME-INSTANCE.log``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tressette_tournament.commands import search_path
from tressette_tournament.tournament_file import Bot

MAX_RESTARTS: Final = 3
"""How often a bot that ends by itself is started again, for each instance."""
OUTPUT_LIMIT: Final = 1 << 20
"""Bytes that a bot may print at most from one start to its end; the rest is dropped."""
_GUARD: Final = Path(__file__).with_name("guard.py")
_END_TIMEOUT_S: Final = 5.0


@dataclass(slots=True)
class BotProcess:
    """One instance of a bot. starts: how often it was started; status: exit status of its last end;
    given_up: whether it will not be started again."""

    bot: Bot
    instance: int
    log: Path
    starts: int = 0
    status: int | None = None
    given_up: bool = False
    process: asyncio.subprocess.Process | None = None
    watcher: asyncio.Task[None] | None = field(default=None, repr=False)


class BotProcesses:
    """All bot processes of a run. ``on_given_up`` is called when one has ended too often."""

    def __init__(
        self,
        bots: tuple[Bot, ...],
        logs: Path,
        environment: Callable[[Bot], Mapping[str, str]],
        on_given_up: Callable[[BotProcess], None],
    ) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self.all = [
            BotProcess(bot, instance, logs / f"{bot.name}-{instance}.log")
            for bot in bots
            for instance in range(1, bot.instances + 1)
        ]
        self._environment = environment
        self._on_given_up = on_given_up
        self._stopping = False

    async def start(self) -> None:
        """Start every instance. Raises OSError if the system has no room for one more process."""
        for one in self.all:
            if self._stopping:
                return
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

    def let_end(self) -> None:
        """Start no bot again that ends from now on."""
        self._stopping = True

    async def stop(self) -> None:
        """End every instance: first by closing the guards' inputs, which they answer in three seconds."""
        self._stopping = True
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

    async def _start(self, one: BotProcess) -> None:
        one.starts += 1
        one.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(_GUARD),
            str(one.log.absolute()),
            str(OUTPUT_LIMIT),
            one.bot.directory or os.curdir,
            "--",
            *_command(one.bot),
            stdin=asyncio.subprocess.PIPE,
            env=self._variables(one.bot),
            start_new_session=True,
        )
        if self._stopping:  # meanwhile
            _close(one)

    def _variables(self, bot: Bot) -> dict[str, str]:
        """The runner's environment, in which ``python`` is the runner's own, and the bot's additions."""
        own = dict(bot.environment)
        return {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            **own,
            "PATH": search_path(own),
            **self._environment(bot),
        }

    async def _watch(self, one: BotProcess) -> None:
        while True:
            assert one.process is not None
            one.status = await one.process.wait()
            _kill_group(one.process.pid)
            if self._stopping:
                return
            if one.starts > MAX_RESTARTS:
                one.given_up = True
                self._on_given_up(one)
                return
            await self._start(one)


def _close(one: BotProcess) -> None:
    """Have the guard of an instance end it."""
    if one.process is not None and one.process.stdin is not None:
        one.process.stdin.close()


def _kill_group(group: int) -> None:
    """Kill what a guard has left behind: its number cannot be used again while anything is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # PermissionError: macOS, only zombies
        os.killpg(group, signal.SIGKILL)


def _command(bot: Bot) -> list[str]:
    if bot.reference is not None:
        return [sys.executable, "-m", "tressette", "bot", bot.reference]
    return list(bot.command)
