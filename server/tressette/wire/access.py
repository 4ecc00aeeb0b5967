"""The access log: one line at the end of each stream, saying whose it was, what passed, and why it ended.

Nothing in it is secret: neither tokens nor cards.
"""

from __future__ import annotations

import time
from typing import Any, Final
from urllib.parse import unquote

import grpc
import structlog

from tressette.play.session import Session
from tressette.v1 import arena_service_pb2 as arena_pb

log = structlog.get_logger("tressette.access")

GOODBYE: Final = "GOODBYE"
"""How a stream ends whose bot left in good order."""
LOST: Final = "LOST"
"""How a stream ends without an Ending: its bot vanished, does not read, or never said Hello."""


class Meter:
    """The context of a call, counting the messages that pass. ``session``: once there is one; ``ending``: the
    reason of the Ending without its prefix, GOODBYE or LOST."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._since = time.monotonic()
        self._turns = 0
        self.messages_in = 0
        self.messages_out = 0
        self.session: Session | None = None
        self.ending = LOST

    def peer(self) -> str:
        """The address of the other side, as gRPC writes it."""
        peer: str = self._context.peer()
        return unquote(peer)

    async def read(self) -> Any:
        """The next message."""
        message = await self._context.read()
        if message is not grpc.aio.EOF:
            self.messages_in += 1
        return message

    async def write(self, message: bytes) -> None:
        """Send a message."""
        self.messages_out += 1
        await self._context.write(message)

    def opened(self, session: Session) -> None:
        """The stream carries this session from now on."""
        self.session = session
        self._turns = session.turns

    def ended(self, ending: arena_pb.Ending) -> None:
        """The stream ends by this."""
        name = arena_pb.ErrorReason.Name(ending.reason).removeprefix("ERROR_REASON_")
        self.ending = name if ending.reason else GOODBYE

    def write_log(self) -> None:
        """Log the line."""
        session = self.session
        log.info(
            "stream ended",
            peer=self.peer(),
            bot=session.name if session is not None else None,
            session=session.id if session is not None else None,
            duration_s=round(time.monotonic() - self._since, 3),
            messages_in=self.messages_in,
            messages_out=self.messages_out,
            answers=session.turns - self._turns if session is not None else 0,
            ending=self.ending,
        )
