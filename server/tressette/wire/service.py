"""The arena service: one coroutine reads a stream, one task writes it, nobody else does either.

A stream opens with a Hello. What is wrong with it is said in an Ending before the stream closes, never by
aborting: a client that is still writing would see only INTERNAL. For the same reason the bot is left a moment
to close the stream first once it has been sent the Ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import grpc
import structlog
from google.protobuf.message import DecodeError

from tressette.play.arena import Arena
from tressette.play.session import Session
from tressette.rules.accuse import Declaration
from tressette.rules.errors import ActionError
from tressette.v1 import arena_service_pb2 as arena_pb
from tressette.wire.convert import actions_of
from tressette.wire.updates import next_response

log = structlog.get_logger("tressette.service")

PROTOCOL: Final = 1
MAX_ANSWERS: Final = 1024
MAX_MESSAGE_BYTES: Final = 1 << 20
MAX_MATCHES: Final = 1024
MIN_KEEPALIVE_MS: Final = 10_000
_LABEL: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TEXT_LIMIT: Final = 64
_PATIENCE_S: Final = 0.005
"""How long receipts, and turns for a busy bot, are kept for company."""
_CLOSING_S: Final = 0.5
"""How long a bot that is sent an Ending may take to close the stream from its side."""


class Refusal(Exception):
    """A stream that must end; ``reason`` goes into its Ending."""

    def __init__(self, reason: arena_pb.ErrorReason.ValueType, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class _Stream:
    """One Play call. ``context`` is grpc's; ``reader`` is the task that reads once there is a session."""

    def __init__(self, arena: Arena, context: Any) -> None:
        self._arena = arena
        self.context = context
        self.reader: asyncio.Task[None] | None = None
        self.session: Session
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._receipts_due: asyncio.TimerHandle | None = None
        self._closed = False
        self._at_end = False

    def open(self, name: str, hello: arena_pb.Hello) -> bytes:
        """Make the session; returns the Welcome, serialized."""
        granted = min(hello.max_matches or 1, MAX_MATCHES)
        self.session = Session(
            name, hello.version, granted, self._wake.set, self._wake_for_receipts, self._idle.set
        )
        return arena_pb.PlayResponse(
            welcome=arena_pb.Welcome(
                session_id=secrets.token_hex(8),
                name=name,
                protocol=PROTOCOL,
                max_answers=MAX_ANSWERS,
                max_message_bytes=MAX_MESSAGE_BYTES,
                max_matches=granted,
                min_keepalive_ms=MIN_KEEPALIVE_MS,
            )
        ).SerializeToString()

    def _wake_for_receipts(self) -> None:
        """Receipts are in no hurry: they travel with the next turns, or alone after a moment."""
        if self._receipts_due is None:
            self._receipts_due = asyncio.get_running_loop().call_later(_PATIENCE_S, self._wake.set)

    def close(self) -> None:
        """Nothing more is taken in; ``write`` returns after the message it is sending, if any."""
        self._closed = True
        self._wake.set()
        if self._receipts_due is not None:
            self._receipts_due.cancel()

    async def let_bot_close(self) -> None:
        """Read on, dropping what comes, until the bot has closed its side; for a moment at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                if self.reader is not None:
                    await asyncio.wait((self.reader,))
                while not self._at_end:
                    with contextlib.suppress(Refusal):
                        await self.receive()

    def abandon(self) -> None:
        """The call is over."""
        if self.reader is not None:
            self.reader.cancel()
            self.reader.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def _gather(self) -> None:
        """Wait for something to send and for what belongs with it.

        A pass of the loop lets every answer that has arrived be played, so that the turns which follow from
        them travel together; as long as a pass brings more, there is another. While the bot still works on
        turns that it was sent before, more of them can only wait there: they wait here for company, a few
        milliseconds at most, and cost one message. A lone turn waits for one pass and nothing else.
        """
        session = self.session
        await self._wake.wait()
        waiting = -1
        while len(session.news) > waiting:
            waiting = len(session.news)
            await asyncio.sleep(0)
        if session.owed:
            self._idle.clear()
            patience = asyncio.get_running_loop().call_later(_PATIENCE_S, self._idle.set)
            await self._idle.wait()
            patience.cancel()
        self._wake.clear()
        if self._receipts_due is not None:
            self._receipts_due.cancel()
            self._receipts_due = None

    async def write(self) -> None:
        """Send whatever is waiting, until the stream is closed."""
        arena, session = self._arena, self.session
        while True:
            await self._gather()
            if self._closed:
                return
            response = next_response(session, arena.clock(), time.time_ns() // 1_000_000)
            if response is not None:
                # The record is written before anyone sees what comes of it.
                arena.recorder.flush()
                await self.context.write(response)

    async def receive(self) -> Any:
        """The next message of the bot or EOF; raises Refusal for bytes that are none."""
        try:
            request = await self.context.read()
        except DecodeError as error:
            reason = arena_pb.ERROR_REASON_MALFORMED
            raise Refusal(reason, f"bytes that are no PlayRequest: {error}") from None
        self._at_end = request is grpc.aio.EOF
        return request

    async def read(self) -> None:
        """Take in what the bot sends until it leaves. Raises Refusal if the session must end."""
        receive, handle = self.receive, self._handle
        while True:
            request = await receive()
            if request is grpc.aio.EOF or not (self._closed or handle(request)):
                return

    def _handle(self, request: arena_pb.PlayRequest) -> bool:
        """Deal with one message; False when the bot says goodbye."""
        kind = request.WhichOneof("message")
        if kind == "answers":
            self._answers(request.answers)
        elif kind == "goodbye":
            return False
        elif kind == "drain":
            self.session.draining = True
        elif kind == "hello":
            raise Refusal(arena_pb.ERROR_REASON_HELLO_REPEATED, "a session has one Hello")
        elif kind is None:
            raise Refusal(arena_pb.ERROR_REASON_MALFORMED, "message: nothing that this arena knows")
        return True

    def _answers(self, message: arena_pb.Answers) -> None:
        answers = message.answers
        if len(answers) > MAX_ANSWERS:
            raise Refusal(
                arena_pb.ERROR_REASON_LIMIT_EXCEEDED, f"answers: {len(answers)}, over {MAX_ANSWERS}"
            )
        session = self.session
        seats = session.seats
        self._arena.turns += len(answers)
        for answer in answers:
            handle, turn = answer.handle, answer.turn_id
            seat = seats.get(handle)
            held: Sequence[Declaration] = ()
            if answer.declarations and seat is not None and seat.open:
                held = seat.game.match.declarable(seat.number)
            try:
                actions = actions_of(answer, held)
            except ActionError as error:
                session.malformed(handle, turn, error)
            else:
                session.answer(handle, turn, actions)


class ArenaService:
    """Serves one arena. ``tokens`` maps each bot token to the name that it stands for; None: no tokens,
    the bot's label is its name."""

    def __init__(self, arena: Arena, tokens: Mapping[str, str] | None = None) -> None:
        self._arena = arena
        self._tokens = tokens
        self.streams: set[asyncio.Task[Any]] = set()
        self._closed = asyncio.Event()

    def shut_down(self) -> None:
        """Have every stream end, and refuse new ones."""
        self._closed.set()

    def handlers(self) -> grpc.GenericRpcHandler:
        """What to add to a server. Responses are serialized here, which the generated code cannot know."""
        play: Any = grpc.stream_stream_rpc_method_handler(
            self.play,
            request_deserializer=arena_pb.PlayRequest.FromString,
        )
        service = arena_pb.DESCRIPTOR.services_by_name["ArenaService"]
        return grpc.method_handlers_generic_handler(service.full_name, {service.methods[0].name: play})

    async def play(self, _requests: Any, context: Any) -> None:
        """One session, from Hello to Ending.

        A coroutine that reads and writes by itself, which grpc.aio takes as well as a generator: only so
        can one task write whenever there is news while this one waits for the bot.
        """
        task = asyncio.current_task()
        assert task is not None
        self.streams.add(task)
        stream = _Stream(self._arena, context)
        try:
            ending = await self._session(stream)
            if ending is not None:
                await context.write(arena_pb.PlayResponse(ending=ending).SerializeToString())
                await stream.let_bot_close()
        finally:
            stream.abandon()
            self.streams.discard(task)

    async def _session(self, stream: _Stream) -> arena_pb.Ending | None:
        """Run a session; returns its last message, None if the bot never said or will not hear anything."""
        try:
            first = await stream.receive()
            if first is grpc.aio.EOF:
                return None
            await stream.context.write(stream.open(self._greet(first), first.hello))
        except Refusal as refusal:
            log.info("refused", peer=stream.context.peer(), reason=str(refusal))
            return arena_pb.Ending(reason=refusal.reason, message=str(refusal))
        self._arena.join(stream.session)
        stream.reader = asyncio.create_task(stream.read())
        writer = asyncio.create_task(stream.write())
        closed = asyncio.create_task(self._shutting_down())
        try:
            done, _ = await asyncio.wait((stream.reader, writer, closed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Also when grpc cancels this call because the bot is gone.
            stream.close()
            closed.cancel()
            self._arena.leave(stream.session)
            # Never cancelled in the middle of a write: the Ending would be a second one beside it.
            _, stuck = await asyncio.wait((writer,), timeout=_CLOSING_S)
            writer.cancel()
            await asyncio.gather(writer, closed, return_exceptions=True)
        ending = self._ending(stream.session.name, done.pop().exception())
        return None if stuck else ending

    async def _shutting_down(self) -> None:
        await self._closed.wait()
        raise Refusal(arena_pb.ERROR_REASON_SHUTTING_DOWN, "the arena is shutting down")

    @staticmethod
    def _ending(name: str, error: BaseException | None) -> arena_pb.Ending:
        """What a bot is told at the end of its session, by what ended it."""
        if error is None:
            return arena_pb.Ending(message="goodbye")
        if isinstance(error, Refusal):
            if error.reason != arena_pb.ERROR_REASON_SHUTTING_DOWN:
                log.warning("session refused", bot=name, reason=str(error))
            return arena_pb.Ending(reason=error.reason, message=str(error))
        log.error("session failed", bot=name, exc_info=error)
        return arena_pb.Ending(reason=arena_pb.ERROR_REASON_INTERNAL, message="the arena failed")

    def _greet(self, first: arena_pb.PlayRequest) -> str:
        """The name of the bot that says Hello; raises Refusal."""
        if first.WhichOneof("message") != "hello":
            raise Refusal(arena_pb.ERROR_REASON_HELLO_EXPECTED, "the first message must be a Hello")
        if self._closed.is_set():
            raise Refusal(arena_pb.ERROR_REASON_SHUTTING_DOWN, "the arena is shutting down")
        hello = first.hello
        if not hello.min_protocol <= PROTOCOL <= hello.max_protocol:
            raise Refusal(arena_pb.ERROR_REASON_PROTOCOL_VERSION, f"this arena speaks protocol {PROTOCOL}")
        for field in ("version", "client"):
            if len(getattr(hello, field)) > _TEXT_LIMIT:
                raise Refusal(arena_pb.ERROR_REASON_MALFORMED, f"{field}: over {_TEXT_LIMIT} characters")
        return self._name_of(hello)

    def _name_of(self, hello: arena_pb.Hello) -> str:
        if self._tokens is None:
            if not _LABEL.fullmatch(hello.label):
                raise Refusal(
                    arena_pb.ERROR_REASON_MALFORMED, "label: 1 to 64 letters, digits, '.', '_' or '-'"
                )
            return hello.label
        for token, name in self._tokens.items():
            if hmac.compare_digest(token.encode(), hello.token.encode()):
                return name
        raise Refusal(arena_pb.ERROR_REASON_UNAUTHENTICATED, "token: unknown")
