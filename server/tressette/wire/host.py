"""A server process that plays the games it is told to: ``python -m tressette.wire.host``.

The tournament runner starts it and talks to it in JSON lines. On standard input it takes, in this order,

``{"start": {...}}``   a HostConfig; answered by ``{"listening": "127.0.0.1:PORT"}``
``{"play": {...}}``    a GameSpec, any number of times; each answered, once its result is on disk, by
                       ``{"finished": {...}}`` with the fields of its result line
``{"reveal": [{...}]}`` the decks of these games are retired (``record.reveals.Reveal``): let everybody know
``{"cancel": GAME}``   do not start this game; answered by ``{"cancelled": GAME}`` unless it has started
``{"stop": true}``     or the end of the input: stop now; games under way are cut off

and it says ``{"session": {"bot": NAME, "open": BOOL}}`` when a bot comes or goes, and ``{"failed": TEXT}``
before it ends with status 1 because the record cannot be written. Should the runner die,
the end of the input ends this process too. Operational logs go to standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
import structlog

from tressette.play.arena import Arena
from tressette.play.commit import GroupCommit
from tressette.play.config import PlayConfig
from tressette.play.session import Session
from tressette.record.game import GameSpec
from tressette.record.reveals import Reveal, Reveals
from tressette.record.segments import Compressor
from tressette.record.writer import Record
from tressette.wire.logs import configure
from tressette.wire.server import ArenaServer

log = structlog.get_logger("tressette.host")
_LINE_LIMIT = 1 << 20
_COMPRESS_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class HostConfig:
    """folder, writer: where the record goes; key: secret for handles and bot seeds, in hex; tokens: bot
    names by token."""

    address: str
    folder: str
    writer: str
    key: str
    move_ms: int
    illegal_retries: int
    tokens: Mapping[str, str]
    log_level: str = "info"

    def to_json(self) -> dict[str, Any]:
        """Plain data, the arguments of this class."""
        return asdict(self)


def _say(**message: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(message) + b"\n")
    sys.stdout.buffer.flush()


class Host:
    """One arena, its server and its record, driven by lines."""

    def __init__(self, config: HostConfig) -> None:
        self._config = config
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._record = Record(Path(config.folder), config.writer, on_failure=self._fail)
        # A game counts, and is reported, only once its result is on the disk.
        self._commit = GroupCommit(self._record, lambda result: _say(finished=result))
        self._reveals = Reveals(Path(config.folder), config.writer, on_failure=self._fail)
        self._arena = Arena(
            key=bytes.fromhex(config.key),
            config=PlayConfig(config.move_ms, config.illegal_retries),
            recorder=self._record,
            on_finished=lambda _, result: self._commit.add(result),
            on_session=self._session,
            reveals=self._reveals,
        )
        self._server = ArenaServer(self._arena, dict(config.tokens).get)

    async def run(self, lines: asyncio.StreamReader) -> None:
        """Serve until told to stop, or until the input ends."""
        port = await self._server.start(self._config.address)
        committing = asyncio.create_task(self._commit.run())
        compressing = asyncio.create_task(self._compress())
        reading = asyncio.create_task(self._read(lines))
        _say(listening=f"{self._config.address.rpartition(':')[0]}:{port}")
        try:
            done, _ = await asyncio.wait(
                (committing, reading, self._failed), return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                task.result()
        finally:
            for task in (committing, compressing, reading):
                task.cancel()
            await asyncio.gather(committing, compressing, reading, return_exceptions=True)
            self._arena.close()
            await self._server.stop()
            self._record.close()
            self._reveals.close()

    async def _compress(self) -> None:
        """Compress segments when they are closed, those of earlier writers first."""
        compressor = Compressor(
            Path(self._config.folder),
            (self._config.writer,),
            lambda text: log.warning("segment stays uncompressed", reason=text),
        )
        while True:
            await asyncio.to_thread(compressor.step)
            await asyncio.sleep(_COMPRESS_EVERY_S)

    def _fail(self, error: OSError) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            message = orjson.loads(line)
            if "play" in message:
                self._arena.submit(GameSpec.from_json(message["play"]))
            elif "reveal" in message:
                self._arena.reveal(map(Reveal.from_json, message["reveal"]))
                await asyncio.to_thread(self._reveals.sync)
            elif "cancel" in message:
                if self._arena.cancel(message["cancel"]):
                    _say(cancelled=message["cancel"])
            elif "stop" in message:
                return

    def _session(self, session: Session, is_open: bool) -> None:
        _say(session={"bot": session.name, "open": is_open})


async def _main() -> None:
    loop = asyncio.get_running_loop()
    # The runner decides when to stop: an interrupt from the terminal reaches it too.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    lines = asyncio.StreamReader(limit=_LINE_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    first = await lines.readline()
    if not first:
        return
    config = HostConfig(**orjson.loads(first)["start"])
    configure(config.log_level, "json")
    try:
        await Host(config).run(lines)
    except OSError as error:
        # The runner hears it first: the log may be on the very disk that is full.
        _say(failed=str(error))
        with contextlib.suppress(OSError):
            log.error("record failed", exc_info=error)
        raise SystemExit(1) from error


if __name__ == "__main__":
    asyncio.run(_main())
