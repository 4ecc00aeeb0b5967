"""A Play call spoken in HTTP/2 frames by hand, for what no gRPC library would do: windows of no size, bytes
that come one at a time, connections that break in the middle of a message."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from typing import Final

from tressette.v1 import arena_service_pb2 as pb

from support.streams import LIMIT_S, PLAY

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS = 0, 1, 4
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_INITIAL_WINDOW_SIZE = 4


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _header(name: str, value: str) -> bytes:
    """Never indexed, never compressed; neither is as long as 127 bytes."""
    return b"\x10" + b"".join(bytes((len(text),)) + text.encode() for text in (name, value))


class RawStream:
    """One connection with one call. What the server sends is read only by ``until_ended``."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    def begin(self, window: int = 65_535) -> None:
        """The connection's preface and the call's headers. window: bytes of each call that the server may
        send before it is told that they were read, which it never is."""
        headers = b"".join(
            _header(name, value)
            for name, value in (
                (":method", "POST"),
                (":scheme", "http"),
                (":path", PLAY),
                (":authority", "arena"),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
            )
        )
        self.writer.write(
            _PREFACE
            + _frame(_SETTINGS, 0, 0, struct.pack(">HI", _INITIAL_WINDOW_SIZE, window))
            + _frame(_SETTINGS, _ACK, 0)
            + _frame(_HEADERS, _END_HEADERS, 1, headers)
        )

    def send(self, request: pb.PlayRequest) -> None:
        """One message."""
        self.writer.write(self.data(request))

    @staticmethod
    def data(request: pb.PlayRequest) -> bytes:
        """The frame of one message."""
        message = request.SerializeToString()
        return _frame(_DATA, 0, 1, struct.pack(">BI", 0, len(message)) + message)

    def half_close(self) -> None:
        """End the sending side of the call."""
        self.writer.write(_frame(_DATA, _END_STREAM, 1))

    def abort(self) -> None:
        """Break the connection."""
        self.writer.transport.abort()

    async def until_ended(self) -> list[int]:
        """Read until the server has ended the call; returns the sizes of the data frames that came."""
        sizes = []
        async with asyncio.timeout(LIMIT_S):
            while True:
                head = await self._reader.readexactly(9)
                kind, flags, stream = struct.unpack(">BBI", head[3:])
                size = int.from_bytes(head[:3], "big")
                await self._reader.readexactly(size)
                if stream and kind == _DATA:
                    sizes.append(size)
                if stream and kind in (_DATA, _HEADERS) and flags & _END_STREAM:
                    return sizes


@contextlib.asynccontextmanager
async def raw_stream(address: str) -> AsyncIterator[RawStream]:
    """A raw call on a connection of its own."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield RawStream(reader, writer)
    finally:
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
