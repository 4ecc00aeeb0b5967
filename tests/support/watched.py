"""A server process that can be asked what it holds: ``python -m support.watched FOLDER OPTIONS``.

OPTIONS is a JSON object, see ``Options``. On standard input it takes JSON lines: ``{"play": {...}}`` (a
GameSpec), ``{"counts": true}``, answered by ``{"counts": {...}}``, and ``{"stop": true}`` or the end of the
input. It says ``{"listening": "127.0.0.1:PORT"}``, and ``{"finished": {...}}`` for each game. Only errors are
logged, to standard error, so that whatever stands there is one.

``watching`` starts one from a test, and sees at its end that it made no error.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import re
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
from tressette.play.arena import Arena
from tressette.play.config import PlayConfig
from tressette.play.game import Game
from tressette.play.matchmaker import Matchmaker
from tressette.play.session import Seat, Session
from tressette.record.game import GameSpec
from tressette.record.writer import Record
from tressette.rules.presets import resolve
from tressette.wire import service, stream
from tressette.wire.limits import Limits
from tressette.wire.logs import configure
from tressette.wire.server import ArenaServer
from tressette.wire.stream import Stream

from support.processes import TESTS, end
from support.tables import KEY

LIMIT_S: Final = 60.0
_LINE_LIMIT: Final = 1 << 20
_BEAT_S: Final = 0.01
_KEPT: Final = (Game, Seat, Session, Stream)


_NOTED: Final = re.compile(r"I\d{4} .* chttp2_transport\.cc:\d+\] .* Got goaway ")


@dataclass(frozen=True)
class Options:
    """play, limits: the arguments of PlayConfig and Limits; presets: what the matchmaker deals out, empty:
    none is at work; tokens: bot names by token, empty: labels are names; stuck_s: of ``Stream``;
    closing_s: how long a bot may take to close after its Ending."""

    play: Mapping[str, Any] = field(default_factory=lambda: {"move_ms": 60_000})
    limits: Mapping[str, Any] = field(default_factory=dict)
    grace_s: float = 0.0
    presets: tuple[str, ...] = ()
    tokens: Mapping[str, str] = field(default_factory=dict)
    stuck_s: float = Stream.stuck_s
    closing_s: float = stream.CLOSING_S


# -- the server -----------------------------------------------------------------------------------------


def _say(**message: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(message) + b"\n")
    sys.stdout.buffer.flush()


def rss_kib() -> int:
    """What this process has in memory, in KiB, without what the allocator keeps for later."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise LookupError("VmRSS")


class _Server:
    def __init__(self, folder: Path, options: Options) -> None:
        Stream.stuck_s = options.stuck_s
        for module in (stream, service):
            vars(module)["CLOSING_S"] = options.closing_s
        self._record = Record(folder, "0001")
        self._arena = Arena(
            KEY,
            PlayConfig(**options.play),
            self._record,
            on_finished=self._finished,
            on_session=lambda session, is_open: self._fill_soon(),
            grace_s=options.grace_s,
        )
        names = dict(options.tokens).get if options.tokens else None
        self._server = ArenaServer(self._arena, names, limits=Limits(**options.limits))
        self._lag_s = 0.0
        presets = [(name, resolve(name)) for name in options.presets]
        self._matchmaker = Matchmaker(self._arena, presets, "casual") if presets else None

    def _finished(self, _spec: GameSpec, result: dict[str, Any]) -> None:
        _say(finished=result)
        self._fill_soon()

    def _fill_soon(self) -> None:
        if self._matchmaker is not None:
            asyncio.get_running_loop().call_soon(self._matchmaker.fill)

    async def run(self, lines: asyncio.StreamReader) -> None:
        _say(listening=f"127.0.0.1:{await self._server.start('127.0.0.1:0')}")
        beating = asyncio.create_task(self._beat())
        try:
            while line := await lines.readline():
                message = orjson.loads(line)
                if "play" in message:
                    self._arena.submit(GameSpec.from_json(message["play"]))
                elif "counts" in message:
                    _say(counts=self._counts())
                elif "stop" in message:
                    break
        finally:
            beating.cancel()
            self._arena.close()
            await self._server.stop()
            self._record.close()

    async def _beat(self) -> None:
        """Note how long the loop is kept from what it wants to do."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _BEAT_S
            await asyncio.sleep(_BEAT_S)
            self._lag_s = max(self._lag_s, loop.time() - due)

    def _counts(self) -> dict[str, int]:
        lag_s, self._lag_s = self._lag_s, 0.0
        gc.collect()
        kinds = Counter(type(one) for one in gc.get_objects())
        alive = {f"alive_{kind.__name__.lower()}s": kinds[kind] for kind in _KEPT}
        arena = self._arena
        return {
            "tasks": len(asyncio.all_tasks()),
            "sessions": sum(map(len, arena.sessions.values())),
            "streams": len(self._server.service.streams),
            "games": len(arena.games),
            "waiting": len(arena.waiting),
            "deadlines": len(arena._due),
            "turns": arena.turns,
            "games_finished": arena.games_finished,
            "fds": len(os.listdir("/proc/self/fd")),
            "rss_kib": rss_kib(),
            "lag_ms": round(lag_s * 1000),
            "at_ms": time.monotonic_ns() // 1_000_000,
            **alive,
        }


async def _main(folder: str, options: str) -> None:
    configure("error", "json")
    lines = asyncio.StreamReader(limit=_LINE_LIMIT)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    await _Server(Path(folder), Options(**orjson.loads(options))).run(lines)


# -- for tests --------------------------------------------------------------------------------------------

LEFT_OVER: Final = ("tasks", "sessions", "streams", "games", "fds", "alive_sessions", "alive_streams")
"""What must be as many after a storm as before it."""


class Watched:
    """A watched server. ``address`` is where bots connect; ``errors`` is what it wrote to standard error;
    ``results`` are those of the games that have ended so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        loop = asyncio.get_running_loop()
        self.process = process
        self.address = ""
        self.errors = b""
        self.results: list[dict[str, Any]] = []
        self.on_finished: Callable[[dict[str, Any]], None] = lambda result: None
        self._listening: asyncio.Future[str] = loop.create_future()
        self._asked: deque[asyncio.Future[dict[str, int]]] = deque()
        self._finished = asyncio.Event()
        self._reading = [loop.create_task(self._read_lines()), loop.create_task(self._read_errors())]

    def tell(self, **message: object) -> None:
        """Write one line to it."""
        assert self.process.stdin is not None
        self.process.stdin.write(orjson.dumps(message) + b"\n")

    def play(self, *specs: GameSpec) -> None:
        """Have games played."""
        for spec in specs:
            self.tell(play=spec.to_json())

    async def finished(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first result of which ``wanted`` is true, when it is there."""
        seen = 0
        async with asyncio.timeout(LIMIT_S):
            while True:
                for result in self.results[seen:]:
                    if wanted(result):
                        return result
                seen = len(self.results)
                self._finished.clear()
                await self._finished.wait()

    async def counts(self) -> dict[str, int]:
        """What it holds now."""
        answer: asyncio.Future[dict[str, int]] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self.tell(counts=True)
        async with asyncio.timeout(LIMIT_S):
            return await answer

    async def until(self, true: Callable[[dict[str, int]], bool], what: str) -> dict[str, int]:
        """Ask for its counts until they are as they should be; returns them."""
        counts: dict[str, int] = {}
        try:
            async with asyncio.timeout(LIMIT_S):
                while not true(counts := await self.counts()):  # noqa: ASYNC110 - it is another process
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"not {what} in {LIMIT_S:g} s: {counts}; {self.errors.decode()}") from None
        return counts

    async def as_before(self, before: Mapping[str, int]) -> dict[str, int]:
        """Wait until nothing is left over of what came since."""
        wanted = {name: before[name] for name in LEFT_OVER}
        return await self.until(
            lambda counts: all(counts[name] <= most for name, most in wanted.items()), f"back at {wanted}"
        )

    async def stop(self) -> None:
        """Tell it to stop, and see that it ends well and has made no error."""
        self.tell(stop=True)
        async with asyncio.timeout(LIMIT_S):
            status = await self.process.wait()
            await asyncio.gather(*self._reading)
        # What gRPC notes of a peer's own doing, such as a bot that was frozen past its ping, is no error.
        errors = [line for line in self.errors.decode().splitlines() if not _NOTED.match(line)]
        assert not errors, self.errors.decode()
        assert status == 0

    async def begin(self) -> None:
        """Wait until it listens."""
        async with asyncio.timeout(LIMIT_S):
            self.address = await self._listening

    async def end(self) -> None:
        """See that it is gone."""
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        await end(self.process)

    async def _read_lines(self) -> None:
        assert self.process.stdout is not None
        async for raw in self.process.stdout:
            line = orjson.loads(raw)
            if "finished" in line:
                self.results.append(line["finished"])
                self._finished.set()
                self.on_finished(line["finished"])
            elif "counts" in line:
                self._asked.popleft().set_result(line["counts"])
            else:
                self._listening.set_result(line["listening"])

    async def _read_errors(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(1 << 16):
            self.errors += data


@contextlib.asynccontextmanager
async def watching(folder: Path, options: Options | None = None) -> AsyncIterator[Watched]:
    """A watched server that listens. It must have written nothing to standard error by its end."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "support.watched"),
        *(str(folder), orjson.dumps(asdict(options or Options())).decode()),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", ""))),
            # One heap: with one for each thread, which of gRPC's threads did what decides over megabytes.
            "MALLOC_ARENA_MAX": "1",
        },
        limit=1 << 22,
    )
    watched = Watched(process)
    try:
        await watched.begin()
        yield watched
        await watched.stop()
    finally:
        await watched.end()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
