"""A whole tournament in one process and in virtual time: the runner and the host as they are, but for what is
between processes. Bots are processes and connections that are none; the disk may be full for a while.

``World`` is everything that outlives a runner. ``killed`` in its place cuts a run off as ``kill -9`` would:
what the operating system had of its files at that moment is what the next one finds.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from tressette.play.arena import Arena
from tressette.play.session import Seat, Session
from tressette.rules.actions import Action
from tressette.wire import compress
from tressette.wire import host as wire_host
from tressette.wire.host import Host, HostConfig
from tressette_tournament import processes as tournament_processes
from tressette_tournament import runner as tournament_runner
from tressette_tournament import standings
from tressette_tournament.local_host import HostFailed, LocalHost
from tressette_tournament.runner import Outcome, Runner
from tressette_tournament.tournament_file import Tournament

from support.matches import plain_answer, random_answer
from support.runs import Notes
from support.virtual_time import VirtualLoop

BEGINNING_NS: Final = 1_800_000_000 * 1_000_000_000
"""When the night begins, in nanoseconds since 1970."""
_NO_PID: Final = 1 << 30
"""No process can have this number or a greater one."""


@dataclass(frozen=True)
class Character:
    """How a bot behaves. think_s: from, to; starts_s: seconds until it connects, from, to; crash_every_s,
    freeze_every_s: seconds between two of them in one process on average; freeze_s: how long it is frozen;
    by_chance: whether it plays by the chance that it is given, else the first legal card."""

    think_s: tuple[float, float] = (0.3, 1.9)
    starts_s: tuple[float, float] = (0.5, 3.0)
    crash_every_s: float | None = None
    freeze_every_s: float | None = None
    freeze_s: float = 20.0
    by_chance: bool = False

    def choose(self, seat: Seat) -> Sequence[Action]:
        """An answer to the open turn of a seat; the same in every attempt at a game."""
        if not self.by_chance:
            return plain_answer(seat.game.match, seat.number)
        chance = random.Random(seat.game.bot_seed(seat) + seat.turn.to_bytes(4, "big"))
        return random_answer(seat.game.match, seat.number, chance)


class World:
    """What there is besides runner and host. crashes, freezes, starts: of bots, by bot; refusals: writes that
    found no room."""

    def __init__(self, loop: VirtualLoop, characters: Mapping[str, Character], chance: random.Random) -> None:
        self.loop = loop
        self.characters = characters
        self.chance = chance
        self.doors: dict[str, Door] = {}
        self.running: dict[int, BotOnPaper] = {}
        self.host: HostInside | None = None
        self.full_until = 0.0
        self.refusals = 0
        self.starts: Counter[str] = Counter()
        self.crashes: Counter[str] = Counter()
        self.freezes: Counter[str] = Counter()
        self._pids = _NO_PID
        self._ports = 1

    # -- in place of the operating system --------------------------------------------------------

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Be the world for all that follows."""
        write, torn = os.write, set[str]()

        def write_if_there_is_room(file: int, data: bytes) -> int:
            if self.loop.time() < self.full_until and (path := _path(file)).endswith(".jsonl"):
                if path not in torn:
                    torn.add(path)
                    return write(file, bytes(data[:5]))  # the last bytes that there is room for
                self.refusals += 1
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            torn.clear()
            return write(file, data)

        patch.setattr(os, "write", write_if_there_is_room)
        patch.setattr(os, "fsync", lambda file: None)  # the power does not fail tonight
        patch.setattr(time, "time_ns", lambda: BEGINNING_NS + round(self.loop.time() * 1e9))
        patch.setattr(asyncio, "create_subprocess_exec", self._launch)
        patch.setattr(tournament_processes, "_kill_group", self._kill)
        patch.setattr(wire_host, "ArenaServer", self._door)
        # They are right at any pace, and cost real time.
        patch.setattr(standings, "RATE_EVERY_S", 900.0)
        patch.setattr(tournament_runner, "_LOOK_EVERY_S", 1.0)
        patch.setattr(compress, "EVERY_S", 300.0)

    def _door(self, arena: Arena, names: Callable[[str], str | None], **options: Any) -> Door:
        return Door(self, arena, names, options["processes"])

    def open(self, door: Door) -> int:
        """A door is there; returns its port."""
        self._ports += 1
        self.doors[f"127.0.0.1:{self._ports}"] = door
        return self._ports

    async def _launch(self, *command: str, **options: Any) -> BotOnPaper:
        self._pids += 1
        environment = options["env"]
        self.starts[environment["TRESSETTE_BOT_NAME"]] += 1
        bot = BotOnPaper(self, self._pids, Path(command[4]), environment)
        self.running[bot.pid] = bot
        return bot

    def _kill(self, pid: int) -> None:
        if pid in self.running:
            self.running[pid].end(-9)

    # -- what goes wrong -------------------------------------------------------------------------

    def fill_disk(self, seconds: float) -> None:
        """Let there be no room for any record for so long."""
        self.full_until = self.loop.time() + seconds


def _path(file: int) -> str:
    return os.readlink(f"/proc/self/fd/{file}")


# -- bots -----------------------------------------------------------------------------------------------


class Door:
    """In place of ``wire.server.ArenaServer``. held: whether those who come have to wait outside."""

    def __init__(
        self,
        world: World,
        arena: Arena,
        names: Callable[[str], str | None],
        processes: Callable[[str], str],
    ) -> None:
        self._world = world
        self.arena = arena
        self.names = names
        self.processes = processes
        self.links: set[Link] = set()
        self.held = False

    async def start(self, address: str) -> int:
        """Listen."""
        return self._world.open(self)

    async def stop(self) -> None:
        """Send everybody away."""
        self._world.doors = {at: door for at, door in self._world.doors.items() if door is not self}
        links, self.links = self.links, set()
        for link in links:
            self._world.loop.call_later(0.2, link.bot.end, 0)

    def keep_only(self, token_ids: object) -> None:
        """Send those away whose process is known no more."""
        for link in list(self.links):
            if link.session not in self.arena:
                link.bot.end(0)


class Link:
    """One connection, in place of ``wire.stream.Stream``."""

    def __init__(self, door: Door, bot: BotOnPaper, name: str, process: str) -> None:
        self.door = door
        self.bot = bot
        self._sending = False
        self.session = Session(name, "1.0", 4, self._wake, process=process)
        door.links.add(self)
        door.arena.join(self.session)

    def _wake(self) -> None:
        if not self._sending:
            self._sending = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._sending = False
        if self not in self.door.links:
            return
        arena = self.door.arena
        arena.recorder.flush()
        news, _, _ = self.session.take(arena.clock())
        for seat in news:
            if seat.open:
                self.bot.asked(self, seat)
            self.session.delivered(seat)

    def close(self) -> None:
        """The bot is gone."""
        if self in self.door.links:
            self.door.links.remove(self)
            if self.session in self.door.arena:
                self.door.arena.lost(self.session)


class _Input:
    """The standard input of a process; closing it has the process ended."""

    def __init__(self, bot: BotOnPaper) -> None:
        self._bot = bot

    def close(self) -> None:
        """As of a real one: the guard ends the bot soon."""
        asyncio.get_running_loop().call_later(0.1, self._bot.end, 0)


class BotOnPaper:
    """In place of ``asyncio.subprocess.Process``: a process of a bot under its guard."""

    def __init__(self, world: World, pid: int, log: Path, environment: Mapping[str, str]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin = _Input(self)
        self._world = world
        self._log = log
        self._environment = environment
        self._name = environment["TRESSETTE_BOT_NAME"]
        self._character = world.characters[self._name]
        self._ended = asyncio.Event()
        self._link: Link | None = None
        self._frozen_until = 0.0
        log.touch()
        self._after(world.chance.uniform(*self._character.starts_s), self._connect)

    async def wait(self) -> int:
        """Its status, when it has ended."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def end(self, status: int) -> None:
        """It is gone; harmless if it was."""
        if self.returncode is not None:
            return
        self.returncode = status
        del self._world.running[self.pid]
        if self._link is not None:
            self._link.close()
        self._ended.set()

    def asked(self, link: Link, seat: Seat) -> None:
        """A turn has come in."""
        think = self._world.chance.uniform(*self._character.think_s)
        thaws = max(0.0, self._frozen_until - self._world.loop.time())
        self._after(max(think, thaws), self._answer, link, seat, seat.turn)

    def _after(self, seconds: float, act: Callable[..., None], *arguments: Any) -> None:
        def unless_ended() -> None:
            if self.returncode is None:
                act(*arguments)

        self._world.loop.call_later(seconds, unless_ended)

    def _connect(self) -> None:
        door = self._world.doors.get(self._environment["TRESSETTE_ADDRESS"])
        if door is not None and door.held:
            self._after(1.0, self._connect)
            return
        token = self._environment["TRESSETTE_TOKEN"]
        name = door.names(token) if door is not None else None
        if door is None or name is None:  # nobody there, or refused
            self.end(1)
            return
        self._link = Link(door, self, name, door.processes(token))
        character, chance = self._character, self._world.chance
        if character.crash_every_s is not None:
            self._after(chance.expovariate(1 / character.crash_every_s), self._crash)
        if character.freeze_every_s is not None:
            self._after(chance.expovariate(1 / character.freeze_every_s), self._freeze)

    def _answer(self, link: Link, seat: Seat, turn: int) -> None:
        still_asked = seat.open and seat.turn == turn
        link.session.answer(seat.handle, turn, self._character.choose(seat) if still_asked else [])

    def _crash(self) -> None:
        self._world.crashes[self._name] += 1
        self._log.write_text("RuntimeError: enough\n")
        self.end(1)

    def _freeze(self) -> None:
        assert self._character.freeze_every_s is not None
        self._world.freezes[self._name] += 1
        self._frozen_until = self._world.loop.time() + self._character.freeze_s
        pause = self._world.chance.expovariate(1 / self._character.freeze_every_s)
        self._after(self._character.freeze_s + pause, self._freeze)


# -- runner and host --------------------------------------------------------------------------------


class HostInside(LocalHost):
    """The host in this process; it hears and says what it would through pipes."""

    def __init__(self, world: World, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._world = world
        self._lines = asyncio.StreamReader()
        self._said: asyncio.Queue[bytes] = asyncio.Queue()
        self._listening = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        world.host = self

    async def start(self, config: dict[str, Any]) -> None:
        """See ``LocalHost``."""
        host = Host(HostConfig(**config), self._input_ended, self._say, self._world.loop.time)
        self._running = asyncio.create_task(host.run(self._lines))
        self._reader = asyncio.create_task(self._hear())
        await self._listening.wait()

    async def failed(self) -> None:
        """See ``LocalHost``."""
        assert self._running is not None
        assert self._reader is not None
        done, _ = await asyncio.wait((self._running, self._reader), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled():
                task.result()
        raise HostFailed("the server ended by itself")

    async def stop(self) -> None:
        """See ``LocalHost``."""
        self._lines.feed_eof()
        assert self._running is not None
        assert self._reader is not None
        await asyncio.wait((self._running,))
        self._said.put_nowait(b"")
        await asyncio.wait((self._reader,))

    def kill(self) -> None:
        """End it as a crash of the server would."""
        assert self._running is not None
        self._running.cancel()

    def hold(self, seconds: float) -> None:
        """Let nobody in for so long, and say that this is a freeze. Here a real one holds the runner too."""
        door = self._world.doors[self.local_address]

        def over() -> None:
            door.held = False
            self._say(thawed=seconds)

        door.held = True
        self._say(frozen="nobody gets in")
        self._world.loop.call_later(seconds, over)

    def _send(self, **message: Any) -> None:
        self._lines.feed_data(orjson.dumps(message) + b"\n")

    def _say(self, **message: Any) -> None:
        self._said.put_nowait(orjson.dumps(message))

    async def _hear(self) -> None:
        while line := await self._said.get():
            message = orjson.loads(line)
            if "listening" in message:
                self.local_address = message["listening"]["local"]
                self._listening.set()
            else:
                self._on_message(message)

    def _input_ended(self, seconds: float) -> bool:
        """Waits, while nobody else does anything."""
        self._world.loop.advance(seconds)
        return False


@dataclass
class Sessions:
    """What became of the sessions of a run. outcomes: "killed", "server killed" or the outcome of each;
    notes: what the organiser was told; failures: of processes, by bot, as the runners have counted them."""

    outcomes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    lost: dict[str, str] = field(default_factory=dict)


async def session(world: World, tournament: Tournament, into: Sessions, kill_after_s: float | None) -> bool:
    """One session of a run, killed after a while if it still runs then; whether it came to its end."""
    notes = Notes()
    runner = Runner(
        tournament,
        notes,
        host=lambda *arguments, **options: HostInside(world, *arguments, **options),
        clock=world.loop.time,
    )
    running = asyncio.create_task(runner.run())
    await asyncio.wait((running,), timeout=kill_after_s)
    outcome = "killed"
    if not running.done():
        await _kill(running, runner.folder)
    else:
        try:
            outcome = str(running.result())
        except HostFailed:
            outcome = "server killed"
    assert not world.running, "no bot outlives its runner"
    into.outcomes.append(outcome)
    into.notes += notes.notes
    into.failures += runner.failures
    into.lost |= runner.lost
    return outcome in (Outcome.COMPLETE, Outcome.INCOMPLETE)


async def _kill(running: asyncio.Task[Any], folder: Path) -> None:
    """What it does on the way out, which one that was killed would not, is undone."""
    found = folder.with_name(folder.name + "-when-killed")
    shutil.copytree(folder, found)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    shutil.rmtree(folder)
    found.rename(folder)
    _tear(folder)


def _tear(folder: Path) -> None:
    """Have the newest files end in lines that were being written."""
    for name in ("results", "tricks"):
        newest = max(folder.glob(f"{name}-*.jsonl"), default=None)
        if newest is not None:
            with newest.open("ab") as file:
                file.write(b'{"v":1,"seq":')
