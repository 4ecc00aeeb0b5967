"""Starts and stops the gRPC server around an arena."""

from __future__ import annotations

import asyncio
import ipaddress
import resource
from collections.abc import Collection, Sequence
from typing import Final

import grpc
from grpc_health.v1.health import SERVICE_NAME as HEALTH
from grpc_reflection.v1alpha import reflection

from tressette.play.arena import Arena
from tressette.v1 import arena_service_pb2 as arena_pb
from tressette.wire.health import Health
from tressette.wire.limits import MIN_KEEPALIVE_MS, Limits
from tressette.wire.service import ArenaService, Names, Processes

# What each does is seen in tests/faults/test_options.py: gRPC ignores names that it does not know.
_OPTIONS: Final = (
    # Without this two servers could share a port, each getting some of the bots.
    ("grpc.so_reuseport", 0),
    # Quiet bots may ping this often without being cut off for it.
    ("grpc.http2.min_ping_interval_without_data_ms", MIN_KEEPALIVE_MS),
    # So may those without a stream; and they are pinged too.
    ("grpc.keepalive_permit_without_calls", 1),
    # A peer whose machine is gone is noticed by these; a frozen one only by the clocks of its turns.
    ("grpc.keepalive_time_ms", 30_000),
    # Not grpc.keepalive_timeout_ms, which does nothing: without this one an answer has a minute.
    ("grpc.http2.ping_timeout_ms", 10_000),
    # Who connects and says nothing holds a descriptor for this long, and not for two minutes.
    ("grpc.server_handshake_timeout_ms", 10_000),
)


_NO_LIMIT: Final = 2**31 - 1

ARENA: Final = arena_pb.DESCRIPTOR.services_by_name["ArenaService"].full_name


class BadAddress(ValueError):
    """An address that is not HOST:PORT, or that cannot be listened on."""


def split_address(address: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT`` (``[::1]:0`` for IPv6); raises BadAddress."""
    host, colon, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or not bare or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise BadAddress(f"{address!r} is not HOST:PORT with a port from 0 to 65535")
    if ":" in bare and host != f"[{bare}]":  # gRPC would take all of it for the host
        raise BadAddress(f"{address!r} is not HOST:PORT: an IPv6 host stands in brackets, [::1]:{port}")
    return bare, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def most_connections() -> int:
    """How many connections may be open. Each takes a file descriptor before anybody has said who he is: a
    quarter of those that the process may have is kept for the record, the tokens and all else."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = descriptors == resource.RLIM_INFINITY
    return _NO_LIMIT if unlimited else min(descriptors * 3 // 4, _NO_LIMIT)


class ArenaServer:
    """The gRPC server of one arena, with the standard health service and, where ``reflect`` is set, the
    reflection service. ``interceptors`` see each call first. ``start`` gives the port, ``stop`` ends all
    streams; ``drain`` comes before it where games are to be played to their ends."""

    def __init__(
        self,
        arena: Arena,
        names: Names | None = None,
        credentials: grpc.ServerCredentials | None = None,
        limits: Limits | None = None,
        reflect: bool = False,
        processes: Processes = lambda _: "",
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
    ) -> None:
        limits = limits or Limits()
        self.service = ArenaService(arena, names, limits, processes)
        self._health = Health([ARENA])
        self._credentials = credentials
        self._server = grpc.aio.server(
            interceptors=interceptors,
            options=(
                *_OPTIONS,
                ("grpc.max_receive_message_length", limits.max_message_bytes),
                ("grpc.max_concurrent_streams", limits.max_connection_streams),
                ("grpc.max_allowed_incoming_connections", most_connections()),
            ),
        )
        self._server.add_generic_rpc_handlers((self.service.handlers(),))
        self._health.add_to(self._server)
        if reflect:
            reflection.enable_server_reflection((ARENA, HEALTH, reflection.SERVICE_NAME), self._server)

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
        self._health.set_serving(True)
        return port

    def drain(self) -> None:
        """Say NOT_SERVING, then let nothing begin any more: no sessions, no games. Every bot is told; games
        go on, and their bots may come back when they lose their streams."""
        self._health.set_serving(False)
        self.service.arena.drain()

    def keep_only(self, token_ids: Collection[str]) -> None:
        """End every session that came in with another token than these, each with its Ending."""
        self.service.keep_only(token_ids)

    async def stop(self, grace_s: float = 1.0, will_return: bool = False) -> None:
        """End all streams, each with its Ending, and stop. ``will_return``: bots whose games are suspended
        are told to come back. Takes as long as the bots take to close their streams, for those that do not
        up to twice the grace."""
        self._health.set_serving(False)
        self._health.close()
        self.service.shut_down(will_return)
        # What is open when the server is told to stop makes that take the whole grace.
        if open_calls := self.service.streams | self._health.watches:
            await asyncio.wait(open_calls, timeout=grace_s)
        await self._server.stop(grace_s)
