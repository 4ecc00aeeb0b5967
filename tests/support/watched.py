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
import gc
import os
import sys
import time
from collections import Counter
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
from tressette.wire.limits import Limits
from tressette.wire.logs import configure
from tressette.wire.server import ArenaServer
from tressette.wire.stream import Stream

from support.processes import Lines, end
from support.tables import KEY

LIMIT_S: Final = 30.0
_LINE_LIMIT: Final = 1 << 20
_KEPT: Final = (Game, Seat, Session, Stream)


@dataclass(frozen=True)
class Options:
    """play, limits: the arguments of PlayConfig and Limits; presets: what the matchmaker deals out, empty:
    none is at work; tokens: bot names by token, empty: labels are names; stuck_s: of ``Stream``."""

    play: Mapping[str, Any] = field(default_factory=lambda: {"move_ms": 60_000})
    limits: Mapping[str, Any] = field(default_factory=dict)
    grace_s: float = 0.0
    presets: tuple[str, ...] = ()
    tokens: Mapping[str, str] = field(default_factory=dict)
    stuck_s: float = Stream.stuck_s


# -- the server -----------------------------------------------------------------------------------------


def _say(**message: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(message) + b"\n")
    sys.stdout.buffer.flush()


def rss_kib() -> int:
    """What this process has in memory, in KiB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise LookupError("VmRSS")


class _Server:
    def __init__(self, folder: Path, options: Options) -> None:
        Stream.stuck_s = options.stuck_s
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
            self._arena.close()
            await self._server.stop()
            self._record.close()

    def _counts(self) -> dict[str, int]:
        gc.collect()
        kinds = Counter(type(one) for one in gc.get_objects())
        alive = {f"alive_{kind.__name__.lower()}s": kinds[kind] for kind in _KEPT}
        arena, service = self._arena, self._server.service
        return {
            "tasks": len(asyncio.all_tasks()),
            "sessions": sum(map(len, arena.sessions.values())),
            "streams": len(service.streams),
            "games": len(arena.games),
            "waiting": len(arena.waiting),
            "deadlines": len(arena._due),
            "turns": arena.turns,
            "games_finished": arena.games_finished,
            "fds": len(os.listdir("/proc/self/fd")),
            "rss_kib": rss_kib(),
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
        self.process = process
        self.lines = Lines(process.stdout)
        self.address = ""
        self.errors = b""

    @property
    def results(self) -> list[dict[str, Any]]:
        """The result of every game whose line has been read."""
        return [line["finished"] for line in self.lines.seen if "finished" in line]

    def tell(self, **message: object) -> None:
        """Write one line to it."""
        assert self.process.stdin is not None
        self.process.stdin.write(orjson.dumps(message) + b"\n")

    def play(self, *specs: GameSpec) -> None:
        """Have games played."""
        for spec in specs:
            self.tell(play=spec.to_json())

    async def finished(self, game: str) -> dict[str, Any]:
        """The result of this game, when it is there."""
        line = await self.lines.find(
            lambda line: "finished" in line and line["finished"]["game"] == game, f"the end of {game}"
        )
        result: dict[str, Any] = line["finished"]
        return result

    async def counts(self) -> dict[str, int]:
        """What it holds now."""
        self.tell(counts=True)
        counts: dict[str, int] = (await self.lines.until("counts"))["counts"]
        return counts

    async def until(self, true: Callable[[dict[str, int]], bool], what: str) -> dict[str, int]:
        """Ask for its counts until they are as they should be; returns them."""
        counts: dict[str, int] = {}
        try:
            async with asyncio.timeout(LIMIT_S):
                while not true(counts := await self.counts()):
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
            assert await self.process.wait() == 0, self.errors.decode()

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
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},  # the same code as this process has
        limit=1 << 22,
    )
    watched = Watched(process)
    reading = asyncio.create_task(watched._read_errors())
    try:
        watched.address = (await watched.lines.until("listening"))["listening"]
        yield watched
        await watched.stop()
        async with asyncio.timeout(LIMIT_S):
            await reading
        assert not watched.errors, watched.errors.decode()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await end(process)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
