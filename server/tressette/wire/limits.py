"""What the server takes from one bot at most, and how a stream says that it takes no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tressette.v1 import arena_service_pb2 as arena_pb

PROTOCOL: Final = 1
"""The protocol version that this server speaks."""
MIN_KEEPALIVE_MS: Final = 10_000
"""Quiet clients may send HTTP/2 keepalive pings this far apart."""


@dataclass(frozen=True, slots=True)
class Limits:
    """max_answers: in one message; max_message_bytes: of one message; max_matches: at once on one
    session; max_sessions: under one name; max_streams: open in all; max_connection_streams:
    of those on one connection, the next wait or are refused by gRPC; messages_per_s, burst: a bot that
    sends faster than so many messages per second for longer than ``burst`` messages is cut off; hello_s:
    seconds that a new stream has for its Hello; addresses: further ones of the same arena.

    Unary calls count as messages, and so does everything that a response holds or a request asks for."""

    max_answers: int = 1024
    max_message_bytes: int = 1 << 20
    max_matches: int = 1024
    max_sessions: int = 16
    max_streams: int = 1024
    max_connection_streams: int = 128
    messages_per_s: int = 2000
    burst: int = 10_000
    hello_s: float = 10.0
    addresses: Sequence[str] = ()


class Budget:
    """What one sender may still send: ``per_s`` a second, and ``burst`` at once after a rest."""

    def __init__(self, per_s: float, burst: float, now: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._left = burst
        self._at = now

    def charge(self, now: float, cost: float = 1) -> bool:
        """Take something in at ``now``, in seconds on any clock; False for a sender that is over it, and
        then it costs nothing. More than the burst never costs more than the burst."""
        self._left = min(self._burst, self._left + (now - self._at) * self._per_s)
        self._at = now
        cost = min(cost, self._burst)
        if self._left < cost:
            return False
        self._left -= cost
        return True


class Refusal(Exception):
    """A stream that must end, ``reason`` and ``will_return`` go into its Ending; or a unary call that is
    refused, ``field`` names what is at fault with it."""

    def __init__(
        self,
        reason: arena_pb.ErrorReason.ValueType,
        message: str,
        will_return: bool = False,
        field: str = "",
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.will_return = will_return
        self.field = field
