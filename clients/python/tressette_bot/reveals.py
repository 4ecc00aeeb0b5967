"""Checking afterwards that no deck was chosen: what an arena has revealed, and what to keep for that.

An arena tells the commitment to a deck before the first card and, when nobody plays from the deck any more,
the seed and salt that open it. ``fetch_reveals`` gets them, also long after the bot has gone; ``dealt_line``
is what a bot writes down of each deal so that ``tressette reveal verify --hands`` can compare.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
from tressette.rules.cards import cards_of
from tressette.rules.deck import Phase
from tressette.v1.arena_service_pb2 import GetRevealsRequest, GetRevealsResponse, Reveal
from tressette.v1.arena_service_pb2_grpc import ArenaServiceStub

from tressette_bot.client import check_address, credentials_of, is_loopback
from tressette_bot.errors import ConnectionLost, Refused
from tressette_bot.view import View

_AT_ONCE: Final = 1000
"""Commitments in one request, and reveals in one page."""
_CALL_S: Final = 20.0
_AGAIN_S: Final = 1.0
_BUSY: Final = 60
"""How often in a row an arena may say that it is asked too fast, a second apart."""


def fetch_reveals(
    address: str,
    token: str = "",
    commitments: Sequence[bytes] = (),
    *,
    tls_root: Path | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
) -> Iterator[Reveal]:
    """The reveals of these commitments (32 bytes each), or all that there are; blocks while it waits. What is
    not revealed yet is left out. The other parameters are those of ``play``; no token is needed.

    Raises NotConfigured for an address or TLS files that are none, ConnectionLost without an arena, Refused
    by one that will not.
    """
    check_address(address)
    credentials = credentials_of(tls_root, tls_cert, tls_key)
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    with _channel(address, credentials) as channel:
        stub = ArenaServiceStub(channel)
        for request in _requests(commitments):
            while True:
                response = _called(stub, request, metadata, address)
                yield from response.reveals
                if not response.next_page_token:
                    break
                request.page_token = response.next_page_token


def _requests(commitments: Sequence[bytes]) -> Iterator[GetRevealsRequest]:
    if not commitments:
        yield GetRevealsRequest(page_size=_AT_ONCE)
    for first in range(0, len(commitments), _AT_ONCE):
        yield GetRevealsRequest(commitments=commitments[first : first + _AT_ONCE])


@contextmanager
def _channel(address: str, credentials: grpc.ChannelCredentials | None) -> Iterator[grpc.Channel]:
    local = is_loopback(address)
    options = (("grpc.enable_http_proxy", int(not local)),)
    if credentials is None and local:
        channel = grpc.insecure_channel(address, options)
    else:
        channel = grpc.secure_channel(address, credentials or grpc.ssl_channel_credentials(), options)
    with channel:
        yield channel


def _called(
    stub: ArenaServiceStub,
    request: GetRevealsRequest,
    metadata: tuple[tuple[str, str | bytes], ...],
    address: str,
) -> GetRevealsResponse:
    """One call, made again where the arena asks for patience."""
    for _ in range(_BUSY):
        try:
            return stub.GetReveals(request, timeout=_CALL_S, metadata=metadata)
        except grpc.RpcError as error:
            status: Any = error  # what a stub raises is a Call as well
            code, details = status.code(), status.details() or ""
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            raise ConnectionLost(address, f"{code.name}: {details}", 1)
        if code is not grpc.StatusCode.RESOURCE_EXHAUSTED:
            raise Refused(code.name, details)
        time.sleep(_AGAIN_S)
    raise Refused(code.name, details)


def dealt_line(view: View) -> dict[str, Any]:
    """What to keep of the deal under way, as plain data for one line of JSON: call it in ``choose`` for the
    first card of each deal, or in ``match_ended`` where a match has one deal."""
    deal = view.deal
    return {
        "commitment": view.deck_commitment.hex(),
        "rules": view.rules.options(),
        "seat": view.seat,
        "phase": "tie_break" if deal.phase is Phase.TIE_BREAK else "main",
        "deal": deal.number,
        "dealt": deal.attempt,
        "dealer": deal.dealer,
        "active": list(deal.active),
        "hand": " ".join(map(str, cards_of(deal.dealt))),
    }
