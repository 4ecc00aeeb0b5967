"""Server processes under test: ``tressette.wire.host`` and ``tressette serve``, started and ended here."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import orjson
from tressette.record.game import GameSpec
from tressette.wire.host import HostConfig

from support.tables import KEY

LIMIT_S: Final = 60.0
TESTS: Final = Path(__file__).resolve().parent.parent


async def start(*arguments: str, stdin: bool = False) -> asyncio.subprocess.Process:
    """``python`` with these arguments; all of its streams are pipes."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdin=pipe if stdin else asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", "")))},
        limit=1 << 22,
    )


async def end(process: asyncio.subprocess.Process) -> None:
    """See that a process of ours is gone."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await process.wait()
    # Otherwise the transport complains when the loop is closed before it.
    process._transport.close()  # type: ignore[attr-defined]


async def run(*arguments: str) -> tuple[int, str, str]:
    """Run to the end; returns status, output and error output."""
    process = await start(*arguments)
    try:
        async with asyncio.timeout(LIMIT_S):
            output, errors = await process.communicate()
    finally:
        await end(process)
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


class Lines:
    """JSON lines that a process writes, read in order. ``seen``: all so far; ``rest``: those that nobody
    has waited for yet."""

    def __init__(self, stream: asyncio.StreamReader | None) -> None:
        assert stream is not None
        self._stream = stream
        self.seen: list[dict[str, Any]] = []
        self.rest: list[dict[str, Any]] = []

    async def until(self, key: str, value: object = None) -> dict[str, Any]:
        """The first line not waited for yet that has this key (with this value)."""
        return await self.find(lambda line: key in line and value in (None, line[key]), f"{key}: {value}")

    async def find(self, wanted: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """The first line not waited for yet of which ``wanted`` is true."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                for line in self.rest:
                    if wanted(line):
                        self.rest.remove(line)
                        return line
                raw = await self._stream.readline()
                assert raw, f"the output ended before {what}: {self.seen}"
                self.seen.append(orjson.loads(raw))
                self.rest.append(self.seen[-1])


class HostProcess:
    """A host that has been told to start. ``address`` is where launched bots connect, ``remote_address``
    where remote ones do."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.lines = Lines(process.stdout)
        self.address = self.remote_address = ""

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

    async def session(self, bot: str, is_open: bool) -> dict[str, Any]:
        """Wait until this bot has come or gone; returns what is said of its session."""
        wanted = {"bot": bot, "open": is_open}
        line = await self.lines.find(
            lambda line: "session" in line and wanted.items() <= line["session"].items(), f"{wanted}"
        )
        session: dict[str, Any] = line["session"]
        return session

    def launched(self, name: str, process: str) -> str:
        """Have the process of a bot expected; returns its token."""
        token = f"token-of-{process}"
        self.tell(token={"token": token, "name": name, "process": process})
        return token

    async def stop(self) -> int:
        """Tell it to stop; returns its status."""
        self.tell(stop=True)
        return await self.wait()

    async def wait(self) -> int:
        """Its status, when it has ended."""
        async with asyncio.timeout(LIMIT_S):
            return await self.process.wait()


@contextlib.asynccontextmanager
async def hosting(
    folder: Path,
    tokens: dict[str, str],
    command: tuple[str, ...] = ("-m", "tressette.wire.host"),
    **config: Any,
) -> AsyncIterator[HostProcess]:
    """A host process that listens. tokens: names of bots by the tokens that they will show, whatever process
    they are; config: fields of HostConfig."""
    process = await start(*command, stdin=True)
    host = HostProcess(process, folder)
    try:
        defaults: dict[str, Any] = {"move_ms": 60_000, "grace_s": 0, "log_level": "error"}
        start_with = HostConfig(str(folder), "w1", KEY.hex(), **(defaults | config))
        host.tell(start=start_with.to_json())
        listening = (await host.lines.until("listening"))["listening"]
        host.address, host.remote_address = listening["local"], listening.get("remote", "")
        for token, name in tokens.items():
            host.tell(token={"token": token, "name": name, "process": ""})
        yield host
    finally:
        await end(process)
