"""A network that can fail: a TCP forwarder between a bot and an arena, which a test cuts and mends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Link:
    """Forwards connections to ``there`` (HOST:PORT). address: where to dial instead, of the same host name.

    While it is cut every connection is refused or dropped at once, which is what a bot sees of a broken line.
    """

    def __init__(self, there: str) -> None:
        self._host, _, port = there.rpartition(":")
        self._port = int(port)
        self._open: set[asyncio.StreamWriter] = set()
        self._cut = False
        self._server: asyncio.Server
        self.address = ""

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.address = f"{self._host}:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Drop all connections; new ones are dropped too until ``mend``."""
        self._cut = True
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        """Let connections through again."""
        self._cut = False

    async def stop(self) -> None:
        """Drop everything for good."""
        self.cut()
        self._server.close()
        await self._server.wait_closed()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            with contextlib.suppress(OSError):
                far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
                self._open.add(far_writer)
                await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
                self._open.discard(far_writer)
        finally:
            self._open.discard(writer)
            writer.transport.abort()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Carry bytes until either end is gone; then neither is of use."""
    with contextlib.suppress(OSError):
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
    target.transport.abort()


@contextlib.asynccontextmanager
async def link(there: str) -> AsyncIterator[Link]:
    """A link that is whole."""
    one = Link(there)
    await one.start()
    try:
        yield one
    finally:
        await one.stop()
