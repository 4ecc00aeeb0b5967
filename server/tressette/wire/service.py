"""The arena service: who may open a stream, whose session it gets, and what is said at its end.

A stream opens with a Hello. What is wrong with it is said in an Ending before the stream closes, never by
aborting: a client that is still writing would see only INTERNAL. For the same reason the bot is left a moment
to close the stream first once it has been sent the Ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

import grpc
import structlog

from tressette.play.arena import Arena
from tressette.play.session import Session
from tressette.v1 import arena_service_pb2 as arena_pb
from tressette.wire.access import Meter
from tressette.wire.limits import PROTOCOL, Limits, Refusal
from tressette.wire.reveals import RevealService
from tressette.wire.stream import CLOSING_S, Closed, Lost, Stream, within
from tressette.wire.tokens import token_id
from tressette.wire.updates import next_response

log = structlog.get_logger("tressette.service")

Names = Callable[[str], str | None]
"""Bot token -> the name that counts, or None."""
Processes = Callable[[str], str]
"""Bot token -> the id of the launched process that it was made for, or ""."""

_LABEL: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TEXT_LIMIT: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Admission:
    """The id of the token that let a session's newest stream in, and whether that is still good."""

    token_id: str
    revoked: asyncio.Event = field(default_factory=asyncio.Event)


class ArenaService:
    """Serves one arena. ``names`` gives the name that a bot token stands for, or None for one that is
    unknown or revoked; without it there are no tokens and the bot's label is its name. ``processes`` gives
    the launched process that a token was made for, where there are any.

    endings: how many streams have ended for which reason, see ``wire.access``; it only grows."""

    def __init__(
        self,
        arena: Arena,
        names: Names | None = None,
        limits: Limits | None = None,
        processes: Processes = lambda _: "",
    ) -> None:
        self._arena = arena
        self._names = names
        self._processes = processes
        self._limits = limits or Limits()
        self._reveals = RevealService(arena, names, self._limits)
        self._links: dict[Session, Stream] = {}
        self._heirs: Counter[Session] = Counter()  # streams that wait for a session which another has
        self._admissions: WeakKeyDictionary[Session, _Admission] = WeakKeyDictionary()
        self.streams: set[asyncio.Task[Any]] = set()
        self.endings: Counter[str] = Counter()
        self._closed = asyncio.Event()
        self._will_return = False

    @property
    def arena(self) -> Arena:
        """The arena that is served."""
        return self._arena

    def shut_down(self, will_return: bool = False) -> None:
        """Have every stream end, and refuse new ones. ``will_return``: games are suspended, their bots are
        told to come back."""
        self._will_return = will_return
        self._closed.set()

    def keep_only(self, token_ids: Collection[str]) -> None:
        """End every session that came in with another token than these."""
        for session, admission in list(self._admissions.items()):
            if admission.token_id not in token_ids:
                admission.revoked.set()
                if not session.attached:
                    self._arena.leave(session)

    def handlers(self) -> grpc.GenericRpcHandler:
        """What to add to a server. Responses are serialized here, which the generated code cannot know."""
        play: Any = grpc.stream_stream_rpc_method_handler(
            self.play,
            request_deserializer=arena_pb.PlayRequest.FromString,
        )
        service = arena_pb.DESCRIPTOR.services_by_name["ArenaService"]
        handlers = {"Play": play, "GetReveals": self._reveals.handler()}
        return grpc.method_handlers_generic_handler(service.full_name, handlers)

    async def play(self, _requests: Any, context: Any) -> None:
        """One session, from Hello to Ending.

        A coroutine that reads and writes by itself, which grpc.aio takes as well as a generator: only so
        can one task write whenever there is news while this one waits for the bot.
        """
        task = asyncio.current_task()
        assert task is not None
        self.streams.add(task)
        meter = Meter(context)
        stream = Stream(self._arena, meter, self._limits)
        try:
            ending = await self._session(stream, meter)
            if ending is not None:
                meter.ended(ending)
                if await stream.said(arena_pb.PlayResponse(ending=ending).SerializeToString()):
                    await stream.let_bot_close()
        finally:
            stream.abandon()
            self.streams.discard(task)
            self.endings[meter.ending] += 1
            meter.write_log()

    async def _session(self, stream: Stream, meter: Meter) -> arena_pb.Ending | None:
        """Run a stream; returns its last message, None if the bot never said or will not hear anything."""
        context = stream.context
        try:
            if len(self.streams) > self._limits.max_streams:
                raise Refusal(arena_pb.ERROR_REASON_TOO_MANY_SESSIONS, "the arena is full")
            hello = await self._hello(stream)
            if hello is None:
                return None
            stream.open(self._greet(hello), self._processes(hello.token), hello)
        except Refusal as refusal:
            log.info("refused", peer=context.peer(), reason=str(refusal))
            return arena_pb.Ending(
                reason=refusal.reason, message=str(refusal), will_return=refusal.will_return
            )
        session = stream.session
        meter.opened(session)
        if not await self._take_over(session, stream):
            reason = arena_pb.ERROR_REASON_RESUME_UNKNOWN
            return arena_pb.Ending(reason=reason, message="resume_token: the session has just ended")
        self._admissions[session] = admission = _Admission(token_id(hello.token))
        left = stuck = False
        try:
            if hello.resume_token:
                # Before the Welcome, or the grace period could end while that is being written.
                stream.attach(hello.positions)
                self._arena.resumed(session)
            if not await stream.said(stream.welcome(resumed=bool(hello.resume_token))):
                return None
            if not hello.resume_token:
                self._arena.join(session)
            error, stuck = await self._converse(stream, admission)
            if self._closed.is_set() and not (stuck or stream.replaced):
                await self._send_rest(stream)
            playing = bool(session.seats)
            # Who says goodbye or misbehaves is gone; who merely vanishes may come back.
            left = error is None or isinstance(error, Refusal)
        finally:
            # Also when grpc cancels this call because the bot is gone.
            stream.ended.set()
            if self._links.get(session) is stream:
                del self._links[session]
                if self._heirs[session]:
                    pass  # the session goes on with a newer stream
                elif left and not stream.replaced:
                    self._arena.leave(session)
                else:
                    self._arena.lost(session)
        if stuck or isinstance(error, Lost):
            return None
        ending = self._ending(session.name, error)
        if ending.reason == arena_pb.ERROR_REASON_SHUTTING_DOWN:
            ending.will_return = self._will_return and playing
        return ending

    async def _converse(self, stream: Stream, admission: _Admission) -> tuple[BaseException | None, bool]:
        """Read and write until one of them ends; returns what ended it, None for a goodbye, and whether a
        write hangs because the bot does not read."""
        stream.reader = asyncio.create_task(stream.read())
        writer = asyncio.create_task(stream.write())
        others = [
            asyncio.create_task(part)
            for part in (
                stream.measure(),
                stream.until_replaced(),
                self._revoked(admission),
                self._shutting_down(),
            )
        ]
        stuck = False
        try:
            done, _ = await asyncio.wait(
                (stream.reader, writer, *others), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            stream.close()
            for task in others:
                task.cancel()
            try:
                # Never cancelled in the middle of a write: the Ending would be a second one beside it.
                with contextlib.suppress(TimeoutError):
                    async with within(CLOSING_S):
                        await asyncio.wait((writer,))
                stuck = not writer.done()
            finally:
                # Also when grpc cancels this call meanwhile.
                writer.cancel()
                await asyncio.gather(writer, *others, return_exceptions=True)
        return done.pop().exception(), stuck

    async def _send_rest(self, stream: Stream) -> None:
        """What a bot has not been sent when the arena stops, such as the end of its last match."""
        response = next_response(stream.session, self._arena.clock(), time.time_ns() // 1_000_000)
        if response is not None:
            self._arena.recorder.flush()
            await stream.said(response)

    async def _take_over(self, session: Session, stream: Stream) -> bool:
        """Make this the one stream of the session; False if the session has ended. Another that has it is
        ended first, so that no two ever write its news; several may want it at once."""
        resuming = session in self._arena
        self._heirs[session] += 1
        try:
            while (older := self._links.get(session)) is not None:
                older.replace()
                await older.ended.wait()
            if resuming and session not in self._arena:
                return False
            self._links[session] = stream
        finally:
            self._heirs[session] -= 1
            if not self._heirs[session]:
                del self._heirs[session]
                if resuming and session.attached and session not in self._links:
                    self._arena.lost(session)  # this one is gone too before it had the session
        return True

    async def _hello(self, stream: Stream) -> arena_pb.Hello | None:
        """The Hello of a new stream, None if it closes without one. Raises Refusal."""
        stream.reader = reading = asyncio.create_task(stream.receive())
        closing = asyncio.create_task(self._closed.wait())
        try:
            await asyncio.wait(
                (reading, closing), timeout=self._limits.hello_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            closing.cancel()
        if not reading.done():
            # It goes on reading: until the bot has closed its side that is the one read of the stream.
            if self._closed.is_set():
                # Whether the Hello on its way resumes a session cannot be known; a new bot may come back too.
                raise Refusal(
                    arena_pb.ERROR_REASON_SHUTTING_DOWN, "the arena is shutting down", self._will_return
                )
            raise Refusal(
                arena_pb.ERROR_REASON_HELLO_EXPECTED, f"no Hello within {self._limits.hello_s:g} seconds"
            )
        first = reading.result()
        if first is grpc.aio.EOF:
            return None
        if first.WhichOneof("message") != "hello":
            raise Refusal(arena_pb.ERROR_REASON_HELLO_EXPECTED, "the first message must be a Hello")
        hello: arena_pb.Hello = first.hello
        return hello

    async def _shutting_down(self) -> None:
        await self._closed.wait()
        raise Refusal(arena_pb.ERROR_REASON_SHUTTING_DOWN, "the arena is shutting down")

    @staticmethod
    async def _revoked(admission: _Admission) -> None:
        await admission.revoked.wait()
        raise Refusal(arena_pb.ERROR_REASON_UNAUTHENTICATED, "token: revoked")

    @staticmethod
    def _ending(name: str, error: BaseException | None) -> arena_pb.Ending:
        """What a bot is told at the end of its session, by what ended it."""
        if error is None or isinstance(error, Closed):
            return arena_pb.Ending(message="goodbye")
        if isinstance(error, Refusal):
            if error.reason != arena_pb.ERROR_REASON_SHUTTING_DOWN:
                log.warning("session refused", bot=name, reason=str(error))
            return arena_pb.Ending(reason=error.reason, message=str(error))
        log.error("session failed", bot=name, exc_info=error)
        return arena_pb.Ending(reason=arena_pb.ERROR_REASON_INTERNAL, message="the arena failed")

    def _greet(self, hello: arena_pb.Hello) -> str:
        """The name of the bot that says Hello; raises Refusal."""
        if self._closed.is_set():
            will_return = self._will_return and bool(hello.resume_token)
            raise Refusal(arena_pb.ERROR_REASON_SHUTTING_DOWN, "the arena is shutting down", will_return)
        if self._arena.draining and not hello.resume_token:
            raise Refusal(arena_pb.ERROR_REASON_SHUTTING_DOWN, "the arena takes no new sessions any more")
        if not hello.min_protocol <= PROTOCOL <= hello.max_protocol:
            raise Refusal(arena_pb.ERROR_REASON_PROTOCOL_VERSION, f"this arena speaks protocol {PROTOCOL}")
        for text in ("label", "version", "client"):
            if len(getattr(hello, text)) > _TEXT_LIMIT:
                raise Refusal(arena_pb.ERROR_REASON_MALFORMED, f"{text}: over {_TEXT_LIMIT} characters")
        name = self._name_of(hello)
        if not hello.resume_token and len(self._arena.sessions.get(name, ())) >= self._limits.max_sessions:
            raise Refusal(
                arena_pb.ERROR_REASON_TOO_MANY_SESSIONS, f"{name} has {self._limits.max_sessions} sessions"
            )
        return name

    def _name_of(self, hello: arena_pb.Hello) -> str:
        if self._names is None:
            if not _LABEL.fullmatch(hello.label):
                raise Refusal(
                    arena_pb.ERROR_REASON_MALFORMED, "label: 1 to 64 letters, digits, '.', '_' or '-'"
                )
            return hello.label
        name = self._names(hello.token)
        if name is None:
            raise Refusal(arena_pb.ERROR_REASON_UNAUTHENTICATED, "token: unknown")
        return name
