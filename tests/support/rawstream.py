"""HTTP/2 spoken in frames by hand, for what no gRPC library would do: windows of no size, bytes that come one
at a time, connections that break in the middle of a message, peers that answer no pings.

``raw_stream`` is a bot's end of a connection, ``raw_arena`` an arena's.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple

from tressette.v1 import arena_service_pb2 as pb

from support.streams import LIMIT_S, PLAY

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_INITIAL_WINDOW_SIZE = 4
_PING_SIZE: Final = 8
REFUSED_STREAM: Final = 7
"""Why a call is reset that was not looked at."""


class Frame(NamedTuple):
    """One frame of a peer. ``stream`` is 0 for those of the connection."""

    kind: int
    flags: int
    stream: int
    payload: bytes


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _header(name: str, value: str) -> bytes:
    """Never indexed, never compressed; neither is as long as 127 bytes."""
    return b"\x10" + b"".join(bytes((len(text),)) + text.encode() for text in (name, value))


def _headers(**fields: str) -> bytes:
    """Headers; a name that begins with an underscore stands for the one with a colon."""
    return b"".join(
        _header(name.replace("_", ":", 1) if name[0] == "_" else name.replace("_", "-"), value)
        for name, value in fields.items()
    )


def _data(message: pb.PlayRequest | pb.PlayResponse, stream: int) -> bytes:
    content = message.SerializeToString()
    return _frame(DATA, 0, stream, struct.pack(">BI", 0, len(content)) + content)


class RawConnection:
    """One connection. What the peer sends is read only by ``frames``."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def frames(self) -> AsyncIterator[Frame]:
        """What the peer sends until it closes the connection."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await self._reader.readexactly(9)
                kind, flags, stream = struct.unpack(">BBI", head[3:])
                size = int.from_bytes(head[:3], "big")
                yield Frame(kind, flags, stream, await self._reader.readexactly(size))

    def ping(self) -> None:
        """Ask for a sign of life."""
        self.writer.write(_frame(PING, 0, 0, bytes(_PING_SIZE)))

    def pong(self, ping: Frame) -> None:
        """Answer one that asks for it."""
        self.writer.write(_frame(PING, _ACK, 0, ping.payload))

    def abort(self) -> None:
        """Break the connection."""
        self.writer.transport.abort()

    async def until_closed(self, pongs: int) -> str:
        """Read until the peer closes the connection, answering its first so many pings; returns the reason
        that it gave, if any."""
        reason = ""
        async for frame in self.frames():
            if frame.kind == GOAWAY:
                reason = frame.payload[8:].decode()
            elif asks(frame) and pongs:
                pongs -= 1
                self.pong(frame)
        return reason


def asks(frame: Frame) -> bool:
    """Whether this is a ping to be answered."""
    return frame.kind == PING and not frame.flags & _ACK


class RawStream(RawConnection):
    """A bot's end of a connection, with calls numbered 1, 3, 5 and so on."""

    def open(self, window: int = 65_535) -> None:
        """The connection's preface, and nothing else. window: bytes of each call that the server may send
        before it is told that they were read, which it never is."""
        self.writer.write(
            _PREFACE
            + _frame(SETTINGS, 0, 0, struct.pack(">HI", _INITIAL_WINDOW_SIZE, window))
            + _frame(SETTINGS, _ACK, 0)
        )

    def call(self, stream: int = 1) -> None:
        """The headers of a call."""
        headers = _headers(
            _method="POST",
            _scheme="http",
            _path=PLAY,
            _authority="arena",
            te="trailers",
            content_type="application/grpc",
        )
        self.writer.write(_frame(HEADERS, _END_HEADERS, stream, headers))

    def begin(self, window: int = 65_535) -> None:
        """``open`` and the first call."""
        self.open(window)
        self.call()

    def send(self, request: pb.PlayRequest, stream: int = 1) -> None:
        """One message."""
        self.writer.write(self.data(request, stream))

    @staticmethod
    def data(request: pb.PlayRequest, stream: int = 1) -> bytes:
        """The frame of one message."""
        return _data(request, stream)

    def half_close(self) -> None:
        """End the sending side of the first call."""
        self.writer.write(_frame(DATA, _END_STREAM, 1))

    async def until_ended(self) -> list[int]:
        """Read until the server has ended a call; returns the sizes of the data frames that came."""
        sizes = []
        async with asyncio.timeout(LIMIT_S):
            async for frame in self.frames():
                if frame.stream and frame.kind == DATA:
                    sizes.append(len(frame.payload))
                if frame.stream and frame.kind in (DATA, HEADERS) and frame.flags & _END_STREAM:
                    return sizes
        raise ConnectionError("the connection ended before the call")


@contextlib.asynccontextmanager
async def raw_stream(address: str) -> AsyncIterator[RawStream]:
    """A bot's end of a connection to an arena."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield RawStream(reader, writer)
    finally:
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


class RawArena(RawConnection):
    """An arena's end of a connection. ``number``: 0 for the first of an address."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        super().__init__(reader, writer)
        self.number = number

    async def accept(self) -> None:
        """Take the bot's preface in and answer it."""
        assert await self._reader.readexactly(len(_PREFACE)) == _PREFACE
        self.writer.write(_frame(SETTINGS, 0, 0) + _frame(SETTINGS, _ACK, 0))

    def respond(self, stream: int, *messages: pb.PlayResponse) -> None:
        """Begin to answer a call."""
        headers = _headers(_status="200", content_type="application/grpc")
        self.writer.write(_frame(HEADERS, _END_HEADERS, stream, headers))
        for message in messages:
            self.writer.write(_data(message, stream))

    def end(self, stream: int) -> None:
        """End a call in good order."""
        self.writer.write(_frame(HEADERS, _END_HEADERS | _END_STREAM, stream, _headers(grpc_status="0")))

    def turn_away(self) -> None:
        """Say that no call of this connection was looked at, nor will be."""
        self.writer.write(_frame(GOAWAY, 0, 0, bytes(8)))


@contextlib.asynccontextmanager
async def raw_arena(serve: Callable[[RawArena], Awaitable[None]]) -> AsyncIterator[str]:
    """Serve every connection so until it returns, then close it; gives the address. What fails in there fails
    the test."""
    numbers = 0
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal numbers
        number, numbers = numbers, numbers + 1
        try:
            await serve(RawArena(reader, writer, number))
        finally:
            writer.transport.abort()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(connected(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    for end in ends:
        if isinstance(end, Exception):
            raise end
