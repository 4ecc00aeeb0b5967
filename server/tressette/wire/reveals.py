"""Decks revealed, by a unary call: for bots and for anybody else, at any time.

What is revealed is public, so no token is needed; with a good one a caller has a budget of its own, without
it shares that of its host.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote

import grpc
import structlog
from google.protobuf.message import DecodeError

from tressette.play.arena import Arena
from tressette.record.reveals import Reveal
from tressette.v1 import arena_service_pb2 as arena_pb
from tressette.wire.errors import entry_of, status_of
from tressette.wire.limits import Budget, Limits, Refusal

log = structlog.get_logger("tressette.access")

PAGE: Final = 1000
"""Most reveals in one response, and most commitments in one request."""
_CALLERS: Final = 4096
"""Budgets kept; the caller that has not asked for longest goes first."""
_BEARER: Final = "Bearer "


class RevealService:
    """Answers GetReveals for one arena. ``names`` as for ``wire.service.ArenaService``."""

    def __init__(self, arena: Arena, names: Callable[[str], str | None] | None, limits: Limits) -> None:
        self._arena = arena
        self._names = names
        self._limits = limits
        self._budgets: OrderedDict[str, Budget] = OrderedDict()

    def handler(self) -> Any:
        """What the method GetReveals is served by."""
        return grpc.unary_unary_rpc_method_handler(
            self.get,
            request_deserializer=_request,
            response_serializer=arena_pb.GetRevealsResponse.SerializeToString,
        )

    async def get(
        self, request: arena_pb.GetRevealsRequest | None, context: Any
    ) -> arena_pb.GetRevealsResponse:
        """The unary call; every error ends it with a status from ``wire.errors``. request: None for bytes
        that are none."""
        caller, given, ending = _host(context), 0, "OK"
        try:
            caller = self._caller(context)
            response = self._response(request, caller)
            given = len(response.reveals)
        except Exception as error:
            ending = entry_of(error).status.name
            if ending == "INTERNAL":
                log.error("reveals failed", exc_info=error)
            status = status_of(error)
            await context.abort(status.code, status.details, status.trailing_metadata)
            raise  # for the type checker: abort always raises
        else:
            return response
        finally:
            log.info("reveals asked", caller=caller, given=given, ending=ending)

    def _response(
        self, request: arena_pb.GetRevealsRequest | None, caller: str
    ) -> arena_pb.GetRevealsResponse:
        if request is None:
            raise Refusal(arena_pb.ERROR_REASON_MALFORMED, "bytes that are no GetRevealsRequest")
        _check(request)
        size = min(request.page_size or PAGE, PAGE)
        self._charge(caller, 1 + (len(request.commitments) or size))
        reveals = self._arena.reveals
        if request.commitments:
            return arena_pb.GetRevealsResponse(reveals=map(_to_wire, reveals.find(request.commitments)))
        page, after = reveals.page(request.page_token, size)
        return arena_pb.GetRevealsResponse(reveals=map(_to_wire, page), next_page_token=after)

    def _caller(self, context: Any) -> str:
        """Whose budget it is. Raises Refusal for a token that is not good."""
        sent = [value for key, value in context.invocation_metadata() or () if key == "authorization"]
        if not sent or self._names is None:
            return _host(context)
        name = self._names(sent[0].removeprefix(_BEARER)) if sent[0].startswith(_BEARER) else None
        if name is None:
            raise Refusal(arena_pb.ERROR_REASON_UNAUTHENTICATED, "token: unknown", field="authorization")
        return f"bot:{name}"

    def _charge(self, caller: str, cost: int) -> None:
        limits, now = self._limits, self._arena.clock()
        budget = self._budgets.get(caller)
        if budget is None:
            budget = self._budgets[caller] = Budget(limits.messages_per_s, limits.burst, now)
            if len(self._budgets) > _CALLERS:
                self._budgets.popitem(last=False)
        self._budgets.move_to_end(caller)
        if not budget.charge(now, cost):
            raise Refusal(
                arena_pb.ERROR_REASON_LIMIT_EXCEEDED, f"over {limits.messages_per_s} reveals a second"
            )


def _request(message: bytes) -> arena_pb.GetRevealsRequest | None:
    """The request in a message. What gRPC would make of the error has no reason and names our classes."""
    try:
        return arena_pb.GetRevealsRequest.FromString(message)
    except DecodeError:
        return None


def _check(request: arena_pb.GetRevealsRequest) -> None:
    """Raises Refusal for a request that means nothing."""
    malformed = arena_pb.ERROR_REASON_MALFORMED
    if len(request.commitments) > PAGE:
        raise Refusal(malformed, f"commitments: over {PAGE}", field="commitments")
    if any(len(one) != 32 for one in request.commitments):
        raise Refusal(malformed, "commitments: one that is not 32 bytes", field="commitments")
    if request.commitments and request.page_token:
        raise Refusal(malformed, "page_token: means nothing with commitments", field="page_token")


def _host(context: Any) -> str:
    """Where a call comes from, without its port."""
    peer: str = unquote(context.peer())
    return peer.rpartition(":")[0]


def _to_wire(reveal: Reveal) -> arena_pb.Reveal:
    return arena_pb.Reveal(
        commitment=bytes.fromhex(reveal.commitment),
        seed=reveal.seed,
        salt=reveal.salt,
        game=reveal.game,
        deck=reveal.deck,
        rules_hash=reveal.rules_hash,
    )
