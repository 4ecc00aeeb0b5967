"""One table from domain error to what a client is told: gRPC status, machine-readable reason, details.

On a stream an error becomes a message with the reason and the details (``to_wire``), and the stream goes on;
a unary call would end with the status, and with the same reason and details in ``google.rpc.ErrorInfo``.
Domain errors that never reach a client are listed as such, so that none is forgotten. What each reason means
is said in ``proto/tressette/v1/arena_service.proto`` and listed in ``clients/ERRORS.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import grpc

from tressette.play.config import ConfigError
from tressette.play.session import Disqualified, DoesNotRead, UnknownHandle, UnknownTurn
from tressette.play.suspend import SuspensionError
from tressette.record.reader import DamagedRecord
from tressette.record.replay import ReplayDiffers
from tressette.rules.errors import (
    IllegalAction,
    MalformedAction,
    NotationError,
    NotYourTurn,
    ReplayError,
    RuleSetError,
    UnknownPreset,
)
from tressette.v1 import arena_service_pb2 as arena_pb
from tressette.wire.convert import REASONS


@dataclass(frozen=True, slots=True)
class Entry:
    """status: of a unary call; reason: gives the ErrorReason of an error; field: gives the name of the
    field at fault, empty if there is none."""

    status: grpc.StatusCode
    reason: Callable[[Any], int]
    field: Callable[[Any], str] = lambda _: ""


def _always(reason: int) -> Callable[[Any], int]:
    return lambda _: reason


def _code(error: Any) -> int:
    return REASONS[error.code]


TABLE: Final[Mapping[type[Exception], Entry]] = {
    MalformedAction: Entry(grpc.StatusCode.INVALID_ARGUMENT, _code),
    IllegalAction: Entry(grpc.StatusCode.FAILED_PRECONDITION, _code),
    NotYourTurn: Entry(grpc.StatusCode.FAILED_PRECONDITION, _code),
    NotationError: Entry(grpc.StatusCode.INVALID_ARGUMENT, _always(arena_pb.ERROR_REASON_UNKNOWN_CARD)),
    UnknownPreset: Entry(
        grpc.StatusCode.NOT_FOUND, _always(arena_pb.ERROR_REASON_MALFORMED), lambda _: "preset"
    ),
    RuleSetError: Entry(
        grpc.StatusCode.INVALID_ARGUMENT,
        _always(arena_pb.ERROR_REASON_MALFORMED),
        lambda error: f"rules.{error.option}",
    ),
    ConfigError: Entry(
        grpc.StatusCode.INVALID_ARGUMENT, _always(arena_pb.ERROR_REASON_MALFORMED), lambda error: error.name
    ),
    UnknownHandle: Entry(
        grpc.StatusCode.NOT_FOUND, _always(arena_pb.ERROR_REASON_UNKNOWN_HANDLE), lambda _: "handle"
    ),
    UnknownTurn: Entry(
        grpc.StatusCode.NOT_FOUND, _always(arena_pb.ERROR_REASON_UNKNOWN_TURN), lambda _: "turn_id"
    ),
    Disqualified: Entry(grpc.StatusCode.PERMISSION_DENIED, _always(arena_pb.ERROR_REASON_DISQUALIFIED)),
    DoesNotRead: Entry(grpc.StatusCode.RESOURCE_EXHAUSTED, _always(arena_pb.ERROR_REASON_LIMIT_EXCEEDED)),
}
"""Errors that a client is told of."""

INTERNAL: Final[frozenset[type[Exception]]] = frozenset(
    {DamagedRecord, ReplayDiffers, ReplayError, SuspensionError}
)
"""Errors of the arena's own data; a client would see INTERNAL."""


def entry_of(error: Exception) -> Entry:
    """What a client is told of an error; INTERNAL for one that is in no table."""
    entry = TABLE.get(type(error))
    return entry or Entry(grpc.StatusCode.INTERNAL, _always(arena_pb.ERROR_REASON_INTERNAL))


def to_wire(error: Exception, handle: str, turn: int, may_retry: bool) -> arena_pb.Error:
    """The message about a refused answer."""
    entry = entry_of(error)
    return arena_pb.Error(
        reason=entry.reason(error),  # type: ignore[arg-type]  # the stubs want the enum's own type
        message=getattr(error, "reason", None) or str(error),
        handle=handle,
        turn_id=turn,
        field=entry.field(error),
        may_retry=may_retry,
    )
