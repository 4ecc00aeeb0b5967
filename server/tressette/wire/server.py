"""Starts and stops the gRPC server around an arena."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Collection
from typing import Final

import grpc

from tressette.play.arena import Arena
from tressette.wire.limits import MIN_KEEPALIVE_MS, Limits
from tressette.wire.service import ArenaService, Names

_OPTIONS: Final = (
    # Without this two servers could share a port, each getting some of the bots.
    ("grpc.so_reuseport", 0),
    # Quiet bots may ping this often without being cut off for it.
    ("grpc.http2.min_ping_interval_without_data_ms", MIN_KEEPALIVE_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    # A peer whose machine is gone is noticed by these; a frozen one only by the clocks of its turns.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)


class BadAddress(ValueError):
    """An address that is not HOST:PORT, or that cannot be listened on."""


def split_address(address: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT`` (``[::1]:0`` for IPv6); raises BadAddress."""
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise BadAddress(f"{address!r} is not HOST:PORT with a port from 0 to 65535")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class ArenaServer:
    """The gRPC server of one arena. ``start`` gives the port, ``stop`` ends all streams."""

    def __init__(
        self,
        arena: Arena,
        names: Names | None = None,
        credentials: grpc.ServerCredentials | None = None,
        limits: Limits | None = None,
    ) -> None:
        limits = limits or Limits()
        self._service = ArenaService(arena, names, limits)
        self._credentials = credentials
        self._server = grpc.aio.server(
            options=(*_OPTIONS, ("grpc.max_receive_message_length", limits.max_message_bytes))
        )
        self._server.add_generic_rpc_handlers((self._service.handlers(),))

    async def start(self, address: str) -> int:
        """Listen; returns the port. Raises BadAddress if the address is malformed or taken."""
        split_address(address)
        try:
            if self._credentials is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, self._credentials)
        except RuntimeError as error:
            raise BadAddress(f"cannot listen on {address}: {error}") from None
        await self._server.start()
        return port

    def keep_only(self, token_ids: Collection[str]) -> None:
        """End every session that came in with another token than these, each with its Ending."""
        self._service.keep_only(token_ids)

    async def stop(self, grace_s: float = 1.0) -> None:
        """End all streams, each with its Ending, and stop. Takes as long as the bots take to close their
        streams, for those that do not up to twice the grace."""
        self._service.shut_down()
        if self._service.streams:
            await asyncio.wait(self._service.streams, timeout=grace_s)
        await self._server.stop(grace_s)
