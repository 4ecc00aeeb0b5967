"""One table from domain error to what a client is told: gRPC status, machine-readable reason, details.

On a stream an error becomes a message with the reason and the details (``to_wire``), and the stream goes on;
a unary call ends with the status, and with the same reason and details in ``google.rpc.ErrorInfo``
(``status_of``).
Domain errors that never reach a client are listed as such, so that none is forgotten. What each reason means
is said in ``proto/tressette/v1/arena_service.proto`` and listed in ``clients/ERRORS.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from tressette.play.config import ConfigError
from tressette.play.session import Disqualified, DoesNotRead, UnknownHandle, UnknownTurn
from tressette.play.suspend import SuspensionError
from tressette.record.reader import DamagedRecord
from tressette.record.replay import ReplayDiffers
from tressette.record.reveals import NotKept, UnknownPage
from tressette.record.segments import NeedsZstandard, UnreadableSegment
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
from tressette.wire.limits import Refusal


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
    NotKept: Entry(grpc.StatusCode.FAILED_PRECONDITION, _always(arena_pb.ERROR_REASON_NO_RECORD)),
    UnknownPage: Entry(
        grpc.StatusCode.INVALID_ARGUMENT, _always(arena_pb.ERROR_REASON_MALFORMED), lambda _: "page_token"
    ),
}
"""Errors that a client is told of."""

_REFUSED: Final[Mapping[int, grpc.StatusCode]] = {
    arena_pb.ERROR_REASON_MALFORMED: grpc.StatusCode.INVALID_ARGUMENT,
    arena_pb.ERROR_REASON_UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    arena_pb.ERROR_REASON_LIMIT_EXCEEDED: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
"""The status of a unary call that is refused before the domain sees it, by the reason."""

DOMAIN: Final = "tressette.v1"
"""The domain of every ErrorInfo."""

INTERNAL: Final[frozenset[type[Exception]]] = frozenset(
    {DamagedRecord, NeedsZstandard, ReplayDiffers, ReplayError, SuspensionError, UnreadableSegment}
)
"""Errors of the arena's own data; a client would see INTERNAL."""


def entry_of(error: Exception) -> Entry:
    """What a client is told of an error; INTERNAL for one that is in no table."""
    if isinstance(error, Refusal):
        return Entry(_REFUSED[error.reason], lambda e: int(e.reason), lambda e: str(e.field))
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


def status_of(error: Exception) -> Any:
    """How a unary call ends: a ``grpc.Status`` with the code, a message and, as details, an ErrorInfo whose
    metadata names the field at fault. Of what is in no table the client hears nothing but INTERNAL."""
    entry = entry_of(error)
    known = entry.status is not grpc.StatusCode.INTERNAL
    field = entry.field(error)
    info = error_details_pb2.ErrorInfo(
        reason=arena_pb.ErrorReason.Name(entry.reason(error)).removeprefix("ERROR_REASON_"),  # type: ignore[arg-type]
        domain=DOMAIN,
        metadata={"field": field} if field else {},
    )
    details = AnyMessage()
    details.Pack(info)
    return rpc_status.to_status(
        status_pb2.Status(
            code=entry.status.value[0],
            message=str(error) if known else "the arena failed",
            details=[details],
        )
    )
