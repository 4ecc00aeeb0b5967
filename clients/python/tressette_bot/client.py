"""Connects a bot to an arena and plays until the arena says that it is over.

Vocabulary: a **session** is what the arena knows a bot by; it outlives its **stream**, the one RPC that
is open at a time. Each address of an arena has a session of its own; the bot is the same object.

Decisions:
1. One coroutine reads a stream and hands on what came; one works on it in the order of arrival. Writes
   of both (answers, signs of life) go through one lock: of two writes at once on a grpc.aio stream one
   would be lost.
2. A failed write says nothing: the reader finds out, and also finds the Ending that may have come first.
3. The bot is asked in the event loop's thread. Answers go out once for each batch, or whenever the bot
   has taken ``FLUSH_S`` since the last ones went, so a slow bot's answers are not held back.
4. After a lost stream the session is taken over with its resume token. An answer that may have been
   lost on the way is sent again as it was, when the arena repeats its turn; the bot is not asked twice.
   An arena that does not know the session any more gets a new one; its matches are gone.
5. Reconnecting has an end (``Reconnect``), so a bot whose arena is gone does not stay behind.
6. Keepalive finds a peer that is gone without a word. What an arena allows is known only after its
   Welcome, so the first stream is careful and later ones use that.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import platform
import signal
import ssl
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import grpc
from grpc.aio import EOF, AioRpcError, Channel, StreamStreamCall
from tressette.v1.arena_service_pb2 import (
    Answer,
    Answers,
    Batch,
    Ending,
    Error,
    ErrorReason,
    Goodbye,
    Hello,
    MatchPosition,
    MatchUpdate,
    PlayRequest,
    PlayResponse,
    Pong,
    Welcome,
)
from tressette.v1.arena_service_pb2_grpc import ArenaServiceStub
from tressette.v1.event_pb2 import MatchEnded

from tressette_bot.answers import decide, decide_many
from tressette_bot.bot import Bot
from tressette_bot.errors import ConnectionLost, NotConfigured, ProtocolViolated, Refused
from tressette_bot.view import View

FLUSH_S: Final = 0.02
PROTOCOL: Final = 1
_GOODBYE_S: Final = 1.0
_MAX_RECEIVE_BYTES: Final = 64 << 20
_CAREFUL_KEEPALIVE_MS: Final = 60_000
_PING_TIMEOUT_MS: Final = 5_000
# What no second attempt would change.
_FINAL_CODES: Final = frozenset(
    (
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INVALID_ARGUMENT,
    )
)

# After a Goodbye, and when the arena is done.
_REGULAR_ENDS: Final = (ErrorReason.ERROR_REASON_UNSPECIFIED, ErrorReason.ERROR_REASON_SHUTTING_DOWN)

_log: Final = logging.getLogger("tressette_bot")

_Call = StreamStreamCall[PlayRequest, PlayResponse]


@dataclass(frozen=True, slots=True)
class Reconnect:
    """How long a client tries to reach an arena, at first and after each lost stream.

    The pauses between attempts start at ``first_s`` and double up to ``longest_s``, in seconds. It gives
    up ``give_up_after_s`` seconds after the loss, or after ``attempts`` attempts if that is earlier; with
    matches under way not before the arena's grace period is over.
    """

    first_s: float = 0.1
    longest_s: float = 2.0
    give_up_after_s: float = 10.0
    attempts: int = 20


def run(
    bot: Bot,
    address: str | None = None,
    token: str | None = None,
    *,
    tls_root: Path | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    reconnect: Reconnect = Reconnect(),  # frozen
) -> None:
    """Play until the arena ends the session; blocks. The parameters are those of ``play``.

    Ctrl-C and SIGTERM say Goodbye and return. Raises what ``play`` raises; left uncaught it shows the
    traceback on stderr and ends the process with a non-zero status, which is what a crash should do.
    """

    def playing() -> Coroutine[None, None, None]:
        return play(
            bot,
            address,
            token,
            tls_root=tls_root,
            tls_cert=tls_cert,
            tls_key=tls_key,
            reconnect=reconnect,
        )

    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        asyncio.run(_until_signal(playing))


async def play(
    bot: Bot,
    address: str | None = None,
    token: str | None = None,
    *,
    tls_root: Path | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    reconnect: Reconnect = Reconnect(),  # frozen
) -> None:
    """Play until the arena ends the session. Cancel it to leave: it says Goodbye first.

    address: ``host:port``, default TRESSETTE_ADDRESS; token: the bot token, default TRESSETTE_TOKEN or
    none. The connection is plain text on loopback addresses and TLS elsewhere; ``tls_root`` is a file
    with the root certificates (PEM) to trust instead of the usual ones; ``tls_cert`` and ``tls_key`` are
    the bot's own certificate and its key (PEM), for arenas that ask for one. Any of them asks for TLS
    everywhere.

    Raises NotConfigured without an address, for one that is none, for TLS files that are none and for a token
    or name that is no text, ConnectionLost when the arena is gone for good (at one of its addresses: after
    the sessions at the others), Refused when it ends the session for any reason but its own shutdown,
    ProtocolViolated, UnknownRules, and whatever the bot's methods raise.
    """
    address = address or os.environ.get("TRESSETTE_ADDRESS")
    if not address:
        raise NotConfigured("address: pass one or set TRESSETTE_ADDRESS, for example 127.0.0.1:50051")
    check_address(address)
    if token is None:
        token = os.environ.get("TRESSETTE_TOKEN", "")
    for what, text in (("token", token), ("name", bot.name)):
        try:
            text.encode()
        except UnicodeEncodeError:  # as from a command line or environment that is not UTF-8
            raise NotConfigured(f"{what}: not UTF-8 text") from None
    credentials = credentials_of(tls_root, tls_cert, tls_key)
    known: set[str] = set()
    gone: list[ConnectionLost] = []

    async def keep_session(where: str) -> None:
        try:
            await _Session(bot, where, token, credentials, reconnect, open_session).run()
        except ConnectionLost as lost:
            if len(known) > 1:
                _log.error("%s", lost)  # it is raised only when the others are over
            gone.append(lost)

    def open_session(where: str) -> None:
        if where not in known:
            known.add(where)
            group.create_task(keep_session(where))

    try:
        async with asyncio.TaskGroup() as group:
            open_session(address)
    except BaseExceptionGroup as failed:
        # The first one ended the others; a caller should not have to unpack it.
        raise failed.exceptions[0] from None
    if gone:
        raise gone[0]


def check_address(address: str) -> None:
    """Raises NotConfigured for what is not HOST:PORT: gRPC would look for a host of that name, or take the
    port modulo 65536. Its own forms of addresses, which have a slash, are left to it."""
    host, _, port = address.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536
    if not ("/" in address or address.startswith("unix:") or (host and is_port)):
        raise NotConfigured(f"address: {address!r} is not HOST:PORT with a port from 1 to 65535")


def credentials_of(root: Path | None, cert: Path | None, key: Path | None) -> grpc.ChannelCredentials | None:
    """What the TLS options ask for, None without any; raises NotConfigured."""
    if (cert is None) != (key is None):
        raise NotConfigured("tls_cert, tls_key: one needs the other")
    if root is None and cert is None:
        return None
    checked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # gRPC would only fail to connect
    try:
        if root is not None:
            checked.load_verify_locations(root)
        if cert is not None:
            checked.load_cert_chain(cert, key, password="")
        root_bytes, key_bytes, cert_bytes = (
            path.read_bytes() if path is not None else None for path in (root, key, cert)
        )
    except (OSError, ValueError) as error:
        given = ", ".join(str(path) for path in (root, cert, key) if path is not None)
        raise NotConfigured(f"TLS with {given}: {error}") from None
    return grpc.ssl_channel_credentials(root_bytes, key_bytes, cert_bytes)


async def _until_signal(playing: Callable[[], Coroutine[None, None, None]]) -> None:
    task = asyncio.current_task()
    if task is not None and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await playing()


class _Lost(Exception):
    """A stream ended without an Ending, or with one that promises a return."""


class _Attempts:
    """Counts the attempts since the arena was last seen and says how long to wait before the next."""

    def __init__(self, reconnect: Reconnect) -> None:
        self._reconnect = reconnect
        self.made = 0
        self._pause = reconnect.first_s
        self._since = time.monotonic()
        self._connected = False
        self._patience = 0.0

    def connected(self) -> None:
        """The arena has answered: the time to give up runs from the next loss."""
        self._connected = True

    def useful(self) -> None:
        """The stream has brought something: the next loss is a new one, with short pauses again."""
        self.made = 0
        self._pause = self._reconnect.first_s

    def stretch(self, seconds: float) -> None:
        """The arena keeps the session for so many seconds: try for as long, however often."""
        self._patience = seconds

    def lost(self) -> float | None:
        """The pause before the next attempt, in seconds; None: give up."""
        now = time.monotonic()
        if self._connected:
            self._connected, self._since = False, now
        self.made += 1
        pause, self._pause = self._pause, min(2 * self._pause, self._reconnect.longest_s)
        tired = self.made >= self._reconnect.attempts and not self._patience
        if tired or pause >= self.left():
            return None
        return pause

    def left(self) -> float:
        """Seconds until it is time to give up."""
        patience = max(self._reconnect.give_up_after_s, self._patience)
        return self._since + patience - time.monotonic()


class _Session:
    """One session of a bot on one address, over as many streams as it takes."""

    def __init__(
        self,
        bot: Bot,
        address: str,
        token: str,
        credentials: grpc.ChannelCredentials | None,
        reconnect: Reconnect,
        discovered: Callable[[str], None],
    ) -> None:
        self._bot = bot
        self._address = address
        self._token = token
        self._credentials = credentials
        self._discovered = discovered
        self._attempts = _Attempts(reconnect)
        self._views: dict[str, View] = {}
        self._answers: dict[str, Answer] = {}  # the last one of each match, see decision 4
        self._in_batches = type(bot).choose_many is not Bot.choose_many
        self._welcome: Welcome | None = None
        self._lock = asyncio.Lock()
        self._writes: set[asyncio.Task[None]] = set()  # the loop itself keeps tasks weakly

    async def run(self) -> None:
        """Play until the arena's Ending; raises as ``play`` does."""
        while True:
            try:
                await self._stream()
                return
            except _Lost as lost:
                # Matches under way are worth the whole grace period; without any the session is not kept.
                grace_ms = self._welcome.grace_ms if self._welcome is not None and self._views else 0
                self._attempts.stretch(grace_ms / 1000)
                pause = self._attempts.lost()
                if pause is None:
                    raise ConnectionLost(self._address, str(lost), self._attempts.made) from lost
                _log.warning("%s: %s; next attempt in %.1f s", self._address, lost, pause)
                await asyncio.sleep(pause)

    # -- one stream -----------------------------------------------------------------------------

    async def _stream(self) -> None:
        """Open a stream and play on it; returns at an Ending that is no refusal."""
        async with self._channel() as channel:
            call: _Call = ArenaServiceStub(channel).Play()
            try:
                welcome = await self._greet(call)
                if welcome is not None:
                    self._greeted(welcome)
                    await self._converse(call)
            finally:
                call.cancel()  # an abandoned call is never collected

    def _channel(self) -> Channel:
        keepalive = self._welcome.min_keepalive_ms if self._welcome else 0
        options: list[tuple[str, int]] = [
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),  # or the pause of the last channel would add to ours
            ("grpc.max_receive_message_length", _MAX_RECEIVE_BYTES),
            ("grpc.keepalive_time_ms", keepalive or _CAREFUL_KEEPALIVE_MS),
            ("grpc.http2.ping_timeout_ms", _PING_TIMEOUT_MS),
            ("grpc.http2.max_pings_without_data", 0),
        ]
        local = is_loopback(self._address)
        options.append(("grpc.enable_http_proxy", int(not local)))
        if self._credentials is None and local:
            return grpc.aio.insecure_channel(self._address, options)
        credentials = self._credentials or grpc.ssl_channel_credentials()
        return grpc.aio.secure_channel(self._address, credentials, options)

    def _hello(self) -> Hello:
        bot = self._bot
        hello = Hello(
            token=self._token,
            label=bot.name or os.environ.get("TRESSETTE_BOT_NAME") or type(bot).__name__,
            version=bot.version,
            client=f"tressette-arena/{version('tressette-arena')} python/{platform.python_version()}",
            min_protocol=PROTOCOL,
            max_protocol=PROTOCOL,
            max_matches=bot.max_matches,
        )
        if self._welcome is not None and self._welcome.resume_token:
            hello.resume_token = self._welcome.resume_token
            hello.positions.extend(
                MatchPosition(handle=handle, last_event=view.event) for handle, view in self._views.items()
            )
        return hello

    async def _greet(self, call: _Call) -> Welcome | None:
        """Exchange Hello and Welcome within the time that is left for reconnecting; None: the arena is
        just shutting down."""
        try:
            async with asyncio.timeout(self._attempts.left()):
                await call.write(PlayRequest(hello=self._hello()))
                first = await call.read()
        except TimeoutError:
            raise _Lost("no Welcome in time") from None
        except AioRpcError as error:
            raise _why(error) from error
        except asyncio.InvalidStateError:
            raise _Lost("the stream was closed before the Welcome") from None
        if first is EOF:
            raise _Lost("the stream ended before the Welcome")
        assert isinstance(first, PlayResponse)
        kind = first.WhichOneof("message")
        if kind == "ending":
            if first.ending.will_return:
                raise _Lost("the arena is going to be back")
            if first.ending.reason in _REGULAR_ENDS:
                return None
            if first.ending.reason == ErrorReason.ERROR_REASON_RESUME_UNKNOWN and self._welcome is not None:
                self._forget()
                # The arena is there: what is left of the time for finding it does not matter any more.
                self._attempts.connected()
                self._attempts.useful()
                raise _Lost("the arena does not know the session any more")
            raise _refusal(first.ending)
        if kind != "welcome" or first.welcome.protocol != PROTOCOL:
            raise ProtocolViolated(f"a Welcome to protocol {PROTOCOL} was expected, not {first!s:.200}")
        return first.welcome

    def _greeted(self, welcome: Welcome) -> None:
        if not welcome.resumed and self._views:
            self._forget()
        self._welcome = welcome
        self._attempts.connected()
        for address in welcome.addresses:
            self._discovered(address)

    def _forget(self) -> None:
        _log.warning("%s: %d matches are lost", self._address, len(self._views))
        self._welcome = None
        self._views.clear()
        self._answers.clear()

    async def _converse(self, call: _Call) -> None:
        inbox: asyncio.Queue[Batch | Ending | Exception] = asyncio.Queue()
        reader = asyncio.create_task(self._read(call, inbox))
        try:
            await self._work(call, inbox)
        except asyncio.CancelledError:
            await self._say_goodbye(call, inbox)
            raise
        finally:
            reader.cancel()
            await asyncio.wait([reader])

    async def _read(self, call: _Call, inbox: asyncio.Queue[Batch | Ending | Exception]) -> None:
        """Hand on what comes until the stream ends; answer signs of life at once."""
        try:
            while (response := await call.read()) is not EOF:
                assert isinstance(response, PlayResponse)
                kind = response.WhichOneof("message")
                if kind == "batch":
                    inbox.put_nowait(response.batch)
                elif kind == "ping":
                    await self._send(call, PlayRequest(pong=Pong(nonce=response.ping.nonce)))
                elif kind == "ending":
                    inbox.put_nowait(response.ending)
                elif kind == "drain":
                    _log.info("%s gives no new matches: %s", self._address, response.drain.message)
            inbox.put_nowait(_Lost("the stream ended"))
        except AioRpcError as error:
            inbox.put_nowait(_why(error))
        except Exception as error:  # a task's exception would go unheard
            inbox.put_nowait(error)

    async def _send(self, call: _Call, request: PlayRequest) -> None:
        """Write a message. Being cancelled meanwhile leaves the write alone: grpc.aio would cancel the
        whole stream with it, and the Goodbye could not be said any more."""
        write = asyncio.create_task(self._write(call, request))
        self._writes.add(write)
        write.add_done_callback(self._writes.discard)
        await asyncio.shield(write)

    async def _write(self, call: _Call, request: PlayRequest) -> None:
        async with self._lock:
            with contextlib.suppress(AioRpcError, asyncio.InvalidStateError):  # decision 2
                await call.write(request)

    async def _say_goodbye(self, call: _Call, inbox: asyncio.Queue[Batch | Ending | Exception]) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE_S):
                await self._send(call, PlayRequest(goodbye=Goodbye()))
                while isinstance(await inbox.get(), Batch):
                    pass  # nothing more is answered

    async def _work(self, call: _Call, inbox: asyncio.Queue[Batch | Ending | Exception]) -> None:
        while True:
            item = await inbox.get()
            if isinstance(item, Exception):
                raise item
            if isinstance(item, Ending):
                if item.will_return:
                    raise _Lost("the arena is going to be back")
                if item.reason in _REGULAR_ENDS:
                    return
                raise _refusal(item)
            self._attempts.useful()
            await self._answer(call, item)

    # -- playing --------------------------------------------------------------------------------

    async def _answer(self, call: _Call, batch: Batch) -> None:
        """Take in a batch and answer its turns."""
        ready: list[Answer] = []
        fresh: list[View] = []
        for view in self._take(batch):
            last = self._answers.get(view.handle)
            if last is not None and last.turn_id == view.turn_id:
                ready.append(last)  # decision 4
            else:
                fresh.append(view)
        assert self._welcome is not None
        limit = self._welcome.max_answers or len(ready) + len(fresh)
        flush_at = time.monotonic() + FLUSH_S
        for answer in self._decide(fresh):
            self._answers[answer.handle] = answer
            ready.append(answer)
            if len(ready) >= limit or time.monotonic() >= flush_at:
                await self._send_answers(call, ready, limit)
                if call.done():
                    return  # the turns left come again with the next stream
                ready = []
                flush_at = time.monotonic() + FLUSH_S
        await self._send_answers(call, ready, limit)

    def _decide(self, views: Sequence[View]) -> Iterable[Answer]:
        bot = self._bot
        if self._in_batches:
            return decide_many(bot, views)
        return (decide(bot, view) for view in views)

    async def _send_answers(self, call: _Call, answers: Sequence[Answer], limit: int) -> None:
        for start in range(0, len(answers), limit or 1):
            await self._send(call, PlayRequest(answers=Answers(answers=answers[start : start + limit])))

    def _take(self, batch: Batch) -> Collection[View]:
        """Bring the views up to date; returns those of which something is asked."""
        views = self._views
        asked: dict[str, View] = {}
        for error in batch.errors:
            self._refused(error, asked)
        for update in batch.updates:
            handle = update.handle
            view = views.get(handle) or self._start(update)
            if view.take(update):
                asked[handle] = view
            elif update.events and update.events[-1].WhichOneof("kind") == "match_ended":
                asked.pop(handle, None)
                self._end(view, update.events[-1].match_ended)
        return asked.values()

    def _start(self, update: MatchUpdate) -> View:
        if not update.HasField("started"):
            raise ProtocolViolated(f"{update.handle}: news of a match that has not started")
        view = View(update.handle, update.started)
        self._views[update.handle] = view
        self._bot.match_started(view)
        return view

    def _end(self, view: View, ended: MatchEnded) -> None:
        self._bot.match_ended(view, tuple(ended.ranks), tuple(ended.totals))
        del self._views[view.handle]
        self._answers.pop(view.handle, None)

    def _refused(self, error: Error, asked: dict[str, View]) -> None:
        """Report what the arena refused, and ask the bot again where it may correct itself."""
        reason = _reason(error.reason)
        _log.warning("%s: %s (match %s, turn %d)", reason, error.message, error.handle, error.turn_id)
        view = self._views.get(error.handle)
        if error.may_retry and view is not None and view.turn_id == error.turn_id:
            self._answers.pop(error.handle, None)
            asked[error.handle] = view


def _reason(reason: ErrorReason.ValueType) -> str:
    """A reason by its name without prefix; one that this client does not know by its number."""
    names = {value: name for name, value in ErrorReason.items()}
    return names.get(reason, str(reason)).removeprefix("ERROR_REASON_")


def _refusal(ending: Ending) -> Refused:
    return Refused(_reason(ending.reason), ending.message)


def _why(error: AioRpcError) -> Exception:
    """What the end of a stream by a gRPC status means for the session."""
    if error.code() in _FINAL_CODES:
        return Refused(error.code().name, error.details() or "")
    return _Lost(f"{error.code().name}: {error.details()}")


def is_loopback(address: str) -> bool:
    """Whether an arena's address, ``host:port``, is on this machine: plain text there, TLS elsewhere."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost" or address.startswith("unix:"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
