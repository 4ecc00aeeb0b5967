"""One Play call: a coroutine that reads it, a task that writes it; nobody else does either.

Turns travel together where that costs nobody time, receipts ride along, and the arena's own pings measure the
network while the bot owes no answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, ClassVar, Final

import grpc
from google.protobuf.message import DecodeError

from tressette.play.arena import Arena
from tressette.play.session import DoesNotRead, Session
from tressette.rules.accuse import Declaration
from tressette.rules.errors import ActionError
from tressette.v1 import arena_service_pb2 as arena_pb
from tressette.wire.convert import actions_of
from tressette.wire.limits import MIN_KEEPALIVE_MS, PROTOCOL, Budget, Limits, Refusal
from tressette.wire.updates import next_response

PING_INTERVAL_S: Final = 5.0
"""How often the network is measured, in seconds."""
CLOSING_S: Final = 0.5
"""How long a bot that is sent an Ending may take to close the stream from its side."""
_STEPS: Final = 5
_SLACK: Final = 64
"""Matches that may be over and unread beyond twice those that a session plays at once."""
_PATIENCE_S: Final = 0.005
"""How long receipts, and turns for a busy bot, are kept for company."""


class Lost(Exception):
    """The bot is gone, or has not read for so long that it must be taken for that."""


class Closed(Exception):
    """The bot has closed its side without a Goodbye, or vanished: grpc says which only a moment later."""


@contextlib.asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """Raises TimeoutError for what takes longer. Where this process itself stood still for a while, as on a
    machine that was suspended, the bot has not had that time: it costs one of a few steps, not all."""
    loop = asyncio.get_running_loop()
    left = _STEPS

    async with asyncio.timeout(None) as limit:

        def step() -> None:
            nonlocal left
            left -= 1
            if left:
                timers.append(loop.call_later(seconds / _STEPS, step))
            else:
                limit.reschedule(loop.time())

        timers = [loop.call_later(seconds / _STEPS, step)]
        try:
            yield
        finally:
            timers[-1].cancel()


class Stream:
    """One Play call, the link of its session. ``context`` is grpc's; ``reader`` is the task that reads, at
    first for the Hello alone; ``ended`` is set when nothing more will be written for the session; ``stuck_s``
    is how long one write may take, in seconds."""

    stuck_s: ClassVar[float] = 30.0

    def __init__(self, arena: Arena, context: Any, limits: Limits) -> None:
        self._arena = arena
        self.context = context
        self.reader: asyncio.Task[Any] | None = None
        self.session: Session
        self.ended = asyncio.Event()
        self._limits = limits
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._receipts_due: asyncio.TimerHandle | None = None
        self._replaced = asyncio.Event()
        self._closed = False
        self._at_end = False
        self._budget = Budget(limits.messages_per_s, limits.burst, arena.clock())
        self._ping: tuple[int, float] | None = None  # nonce, and when it was written (0: not yet)
        self._turns_at_ping = 0
        self._writing_since: float | None = None

    def open(self, name: str, process: str, hello: arena_pb.Hello) -> None:
        """Make the session, or take over the one that the Hello names; ``process`` is the launched process
        that says it, if any. Raises Refusal."""
        if hello.resume_token:
            session = self._arena.resumable(hello.resume_token, name, process)
            if session is None:
                raise Refusal(
                    arena_pb.ERROR_REASON_RESUME_UNKNOWN, "resume_token: no such session of this bot"
                )
            self.session = session
            return
        granted = min(hello.max_matches or 1, self._limits.max_matches)
        self.session = Session(
            name,
            hello.version,
            granted,
            self._wake.set,
            self._wake_for_receipts,
            self._idle.set,
            process,
            hello.label,
        )

    def welcome(self, resumed: bool) -> bytes:
        """The Welcome, serialized."""
        session, limits = self.session, self._limits
        return arena_pb.PlayResponse(
            welcome=arena_pb.Welcome(
                session_id=session.id,
                resume_token=session.resume_token,
                name=session.name,
                protocol=PROTOCOL,
                max_answers=limits.max_answers,
                max_message_bytes=limits.max_message_bytes,
                max_matches=session.max_matches,
                min_keepalive_ms=MIN_KEEPALIVE_MS,
                grace_ms=round(self._arena.grace_s * 1000),
                addresses=limits.addresses,
                resumed=resumed,
            )
        ).SerializeToString()

    def attach(self, positions: Iterable[arena_pb.MatchPosition]) -> None:
        """Take the session over; a stream that had it before must have been told."""
        self.session.attach(
            self._wake.set,
            self._wake_for_receipts,
            self._idle.set,
            {position.handle: position.last_event for position in positions},
        )

    @property
    def replaced(self) -> bool:
        """Whether a newer stream has taken the session over."""
        return self._replaced.is_set()

    def replace(self) -> None:
        """A newer stream takes the session over."""
        self._replaced.set()

    async def until_replaced(self) -> None:
        """Raises Refusal when a newer stream has taken the session over."""
        await self._replaced.wait()
        raise Refusal(arena_pb.ERROR_REASON_REPLACED, "a newer stream resumed this session")

    async def measure(self) -> None:
        """Ping now and then, for ever, while the bot owes no answer. Raises Lost for a bot that does not
        read: its transport answers for it, so nothing else would ever notice, and what it does not take
        would pile up."""
        session = self.session
        while True:
            since = self._writing_since
            if self._is_stuck():
                await asyncio.sleep(CLOSING_S / _STEPS)  # perhaps it was this process that stood still
                if self._writing_since == since and self._is_stuck():
                    raise Lost
            if not session.owed:
                self._ping = (secrets.randbits(63) or 1, 0.0)
                self._wake.set()
            await asyncio.sleep(min(PING_INTERVAL_S, self.stuck_s))

    def _is_stuck(self) -> bool:
        """Whether a message is under way for too long, or too much waits behind it."""
        session, since = self.session, self._writing_since
        return since is not None and (
            self._arena.clock() - since >= self.stuck_s
            or len(session.news) > 2 * session.max_matches + _SLACK
        )

    def _pong(self, nonce: int) -> None:
        """A pong counts if nothing else was on the way meanwhile."""
        ping, self._ping = self._ping, None
        if ping is not None and ping[0] == nonce and ping[1] and self.session.asked == self._turns_at_ping:
            self.session.network = self._arena.clock() - ping[1]

    def _wake_for_receipts(self) -> None:
        """Receipts are in no hurry: they travel with the next turns, or alone after a moment."""
        if self._receipts_due is None:
            self._receipts_due = asyncio.get_running_loop().call_later(_PATIENCE_S, self._wake.set)

    async def said(self, message: bytes) -> bool:
        """Write a message while ``write`` does not run; False for a bot that is gone or does not read."""
        try:
            async with within(CLOSING_S):
                await self.context.write(message)
        except (TimeoutError, grpc.aio.InternalError):
            return False
        return True

    def close(self) -> None:
        """Nothing more is taken in; ``write`` returns after the message it is sending, if any."""
        self._closed = True
        self._wake.set()
        if self._receipts_due is not None:
            self._receipts_due.cancel()

    async def let_bot_close(self) -> None:
        """Read on, dropping what comes, until the bot has closed its side; for a moment at most."""
        with contextlib.suppress(TimeoutError):
            async with within(CLOSING_S):
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
        """Send whatever is waiting, until the stream is closed. Raises Lost."""
        arena, session = self._arena, self.session
        write = self._write
        while True:
            await self._gather()
            if self._closed:
                return
            # The record is written before anyone sees what comes of it (but for a result that comes during a
            # sync), and before it is said when that was sent: writing may have to wait for room on the disk.
            arena.recorder.flush()
            response = next_response(session, arena.clock(), time.time_ns() // 1_000_000)
            if response is not None:
                await write(response)
            if self._ping is not None and not self._ping[1] and not session.owed:
                nonce = self._ping[0]
                self._ping = (nonce, arena.clock())
                self._turns_at_ping = session.asked
                await write(arena_pb.PlayResponse(ping=arena_pb.Ping(nonce=nonce)).SerializeToString())
            if session.drain_notice:
                session.drain_notice = False
                await write(arena_pb.PlayResponse(drain=arena_pb.Drain()).SerializeToString())

    async def _write(self, message: bytes) -> None:
        self._writing_since = self._arena.clock()
        try:
            await self.context.write(message)
        except grpc.aio.InternalError as error:
            raise Lost from error  # and grpc is about to cancel this call
        self._writing_since = None

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
        """Take in what the bot sends until its Goodbye. Raises Closed where it does without one, and Refusal
        if the session must end."""
        receive, handle = self.receive, self._handle
        while True:
            request = await receive()
            if request is grpc.aio.EOF:
                raise Closed
            if not (self._closed or handle(request)):
                return

    def _charge(self) -> None:
        """Raises Refusal for a bot that sends faster than it may, for longer than it may."""
        if not self._budget.charge(self._arena.clock()):
            raise Refusal(
                arena_pb.ERROR_REASON_LIMIT_EXCEEDED, f"over {self._limits.messages_per_s} messages a second"
            )

    def _handle(self, request: arena_pb.PlayRequest) -> bool:
        """Deal with one message; False when the bot says goodbye."""
        self._charge()
        kind = request.WhichOneof("message")
        if kind == "answers":
            try:
                self._answers(request.answers)
            except DoesNotRead:
                raise Refusal(
                    arena_pb.ERROR_REASON_LIMIT_EXCEEDED, "answers keep coming while receipts are not read"
                ) from None
        elif kind == "pong":
            self._pong(request.pong.nonce)
        elif kind == "goodbye":
            return False
        elif kind == "drain":
            self._arena.drains(self.session)
        elif kind == "hello":
            raise Refusal(arena_pb.ERROR_REASON_HELLO_REPEATED, "a session has one Hello")
        elif kind is None:
            raise Refusal(arena_pb.ERROR_REASON_MALFORMED, "message: nothing that this arena knows")
        return True

    def _answers(self, message: arena_pb.Answers) -> None:
        answers = message.answers
        most = self._limits.max_answers
        if len(answers) > most:
            raise Refusal(arena_pb.ERROR_REASON_LIMIT_EXCEEDED, f"answers: {len(answers)}, over {most}")
        session = self.session
        seats = session.seats
        self._arena.turns += len(answers)
        session.turns += len(answers)
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
