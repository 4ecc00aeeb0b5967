"""A server process that plays the games it is told to: ``python -m tressette.wire.host``.

The tournament runner starts it and talks to it in JSON lines. On standard input it takes first

``{"start": {...}}``   a HostConfig; answered by ``{"listening": {"local": ADDRESS, "remote": ADDRESS}}``

and then, in any order,

``{"token": {"token": TEXT, "name": BOT, "process": ID}}``
                       the bot process with this id is about to be launched and will show this token; the id
                       is never used again. ``process`` may be "", for a bot of which nothing is known
``{"revoke": TEXT}``   a token is good no more; the sessions of its process end. For processes that are about
                       to be ended with no game under way
``{"crashed": {"process": ID}}``
                       a launched process has ended by itself: its tokens are good no more, its sessions leave
                       at once, and the policy for ``crash`` answers for its seats, clock or no clock
``{"play": {...}}``    a GameSpec; answered, once its result is on disk, by ``{"finished": {...}}`` with the
                       fields of its result line
``{"cancel": GAME}``   do not start this game; answered by ``{"cancelled": GAME}`` unless it has started
``{"refused": {"game": GAME, "bot": BOT}}``
                       this game is not to wait for this bot, which will not come: the policy for
                       ``refused_to_start`` answers for its seats. Ignored if the game has started
``{"retired": [DECK, ...]}``
                       there will be no further games of these decks
``{"stop": true}``     or the end of the input: stop now; games under way are cut off

and it says

``{"session": {"bot": BOT, "process": ID, "session": ID, "version": TEXT, "label": TEXT, "open": BOOL}}``
                       when a bot comes, and once when that session gets no new games any more: the bot drains
                       or leaves for good
``{"proven": {"bot": BOT, "process": ID}}``
                       when a launched process has played its first game to the end
``{"stale": {"bot": BOT, "process": ID}}``
                       with ``isolation = "fresh"``, when a launched process has to be replaced: games wait
                       for one that has not met their deck. It has no game under way and gets none any more
``{"frozen": TEXT}``   there is no room for the record: nothing is played and no clock runs until there is.
                       Only the end of the input is noticed meanwhile
``{"thawed": SECONDS}``
                       after that, when the games go on where they stood
``{"failed": TEXT}``   before it ends with status 1 because it cannot start, or cannot write the record

Should the runner die, the end of the input ends this process too. Operational logs go to standard error.

Launched bots and remote ones come in by different doors. The local one is on this machine, without TLS, and
lets in the tokens of launched processes only. The remote one, which other machines reach by TLS only, lets in
those tokens of the token file that stand for a bot named as remote.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import structlog

from tressette.play.arena import Arena
from tressette.play.clock import PausableClock
from tressette.play.commit import GroupCommit
from tressette.play.config import ConfigError, PlayConfig, policies_from
from tressette.play.session import Session
from tressette.record.game import GameSpec
from tressette.record.reveals import Reveals
from tressette.record.segments import Compressor
from tressette.record.writer import Record
from tressette.rules.events import FaultKind
from tressette.wire.compress import keep_compressed
from tressette.wire.freeze import Freeze, hung_up
from tressette.wire.limits import Limits
from tressette.wire.logs import configure
from tressette.wire.server import ArenaServer, BadAddress
from tressette.wire.tls import Tls, TlsError, takes_protection
from tressette.wire.tokens import LaunchTokens, TokenError, TokenFile, follow_revocations

log = structlog.get_logger("tressette.host")
_LINE_LIMIT = 1 << 20
_PLAY: Final = PlayConfig()
_ISOLATIONS: Final = ("relabel", "fresh")
_LOCAL_LIMITS: Final = Limits(max_sessions=1 << 20, max_streams=1 << 20)
"""Of launched bots: how many there are is the organiser's own choice."""


@dataclass(frozen=True, slots=True)
class HostConfig:
    """folder, writer: where the record goes; key: secret for handles and bot seeds, in hex.

    local_address: where launched bots connect, on this machine. remote_address: where remote bots do, "" if
    there are none; remote: their names; token_file: of their tokens; tls_cert, tls_key, tls_client_ca: files
    in PEM, "" for none; an address that other machines can reach takes TLS. limits: fields of
    ``wire.limits.Limits`` that are not to be the default, for remote bots.

    move_ms to strikes: as in PlayConfig, policies by name, e.g. ``{"timeout": "forfeit"}``. grace_s: how long
    the session of a bot that has lost its link is kept. That is for launched bots too: which of them have
    crashed is told, and what is merely lost may come back. isolation: "relabel" or "fresh", see
    ``play.isolation``."""

    folder: str
    writer: str
    key: str
    local_address: str = "127.0.0.1:0"
    remote_address: str = ""
    remote: Sequence[str] = ()
    token_file: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)
    move_ms: int = _PLAY.move_ms
    bank_ms: int = _PLAY.bank_ms
    increment_ms: int = _PLAY.increment_ms
    allowance_ms: int = _PLAY.allowance_ms
    illegal_retries: int = _PLAY.illegal_retries
    policies: Mapping[str, str] = field(default_factory=dict)
    strikes: int = _PLAY.strikes
    grace_s: float = 30.0
    isolation: str = "relabel"
    log_level: str = "info"

    def to_json(self) -> dict[str, Any]:
        """Plain data, the arguments of this class."""
        return asdict(self)

    def play(self) -> PlayConfig:
        """How matches are played. Raises ConfigError."""
        return PlayConfig(
            move_ms=self.move_ms,
            illegal_retries=self.illegal_retries,
            bank_ms=self.bank_ms,
            increment_ms=self.increment_ms,
            allowance_ms=self.allowance_ms,
            policies=policies_from(self.policies),
            strikes=self.strikes,
        )

    def tls(self) -> Tls | None:
        """How TLS is done, None without. Raises ConfigError."""
        if not self.tls_cert and not self.tls_key:
            if self.tls_client_ca:
                raise ConfigError("tls_client_ca", "needs tls_cert and tls_key")
            return None
        if not self.tls_cert or not self.tls_key:
            raise ConfigError("tls_cert, tls_key", "are needed together")
        client_ca = Path(self.tls_client_ca) if self.tls_client_ca else None
        return Tls(Path(self.tls_cert), Path(self.tls_key), client_ca)

    def check(self) -> None:
        """Raises ConfigError or BadAddress for what cannot or must not be: above all a server that stands
        open to other machines."""
        self.play()
        tls = self.tls()
        if self.isolation not in _ISOLATIONS:
            raise ConfigError("isolation", f"{self.isolation!r} is none of {', '.join(_ISOLATIONS)}")
        if takes_protection(self.local_address):
            raise ConfigError("local_address", f"{self.local_address} can be reached from other machines")
        if not self.remote_address:
            if self.remote:
                raise ConfigError("remote", "remote bots need a remote_address")
            return
        missing = [] if self.token_file else ["token_file"]
        if takes_protection(self.remote_address) and tls is None:
            missing += ["tls_cert", "tls_key"]
        if missing:
            raise ConfigError("remote_address", f"{self.remote_address} needs {', '.join(missing)}")


def _say(**message: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(message) + b"\n")
    sys.stdout.buffer.flush()


class Host:
    """One arena, its doors and its record, driven by lines.

    input_ended: waits so many seconds for the end of the input, while nothing is read, and says whether it
    has come. say: gets the messages as keyword arguments. clock: seconds, never goes back."""

    def __init__(
        self,
        config: HostConfig,
        input_ended: Callable[[float], bool],
        say: Callable[..., None] = _say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises ConfigError, BadAddress, TokenError, TlsError for what the config asks for and cannot be,
        OSError if there can be no such record."""
        self._config = config
        self._say = say
        config.check()
        play = config.play()
        self._stopping = False
        self._tokens = LaunchTokens()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        tokens = _token_file(config)
        tls = config.tls()
        credentials = tls.credentials() if tls is not None else None
        pausable = PausableClock(clock)
        self._record = Record(
            Path(config.folder),
            config.writer,
            on_failure=self._fail,
            patience=Freeze(pausable, lambda seconds: self._stopping or input_ended(seconds), say),
        )
        # A game counts, and is reported, only once its result is on the disk.
        self._commit = GroupCommit(self._record, lambda result: self._say(finished=result))
        self._arena = Arena(
            key=bytes.fromhex(config.key),
            config=play,
            recorder=self._record,
            clock=pausable,
            on_finished=lambda _, result: self._commit.add(result),
            on_session=self._session,
            grace_s=config.grace_s,
            on_proven=self._proven,
            on_stale=lambda bot, process: self._say(stale={"bot": bot, "process": process}),
            fresh=config.isolation == "fresh",
            reveals=Reveals(Path(config.folder), config.writer),  # what the runner writes is found there
        )
        self._local = ArenaServer(
            self._arena, self._tokens.name_of, limits=_LOCAL_LIMITS, processes=self._tokens.process_of
        )
        self._remote: ArenaServer | None = None
        self._following: asyncio.Task[None] | None = None
        if tokens is not None:
            self._remote = ArenaServer(
                self._arena, _Remote(tokens, config.remote).name_of, credentials, Limits(**config.limits)
            )
            self._following = asyncio.create_task(follow_revocations(tokens, self._remote.keep_only))

    async def run(self, lines: asyncio.StreamReader) -> None:
        """Serve until told to stop, or until the input ends. Raises BadAddress, and OSError if the record
        cannot be written."""
        committing = asyncio.create_task(self._commit.run())
        compressing = asyncio.create_task(self._compress())
        reading = None
        try:
            await self._listen()
            reading = asyncio.create_task(self._read(lines))
            done, _ = await asyncio.wait(
                (committing, reading, self._failed), return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                task.result()
        finally:
            self._stopping = True
            tasks = [task for task in (committing, compressing, reading, self._following) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._arena.close()
            servers = [server for server in (self._local, self._remote) if server is not None]
            await asyncio.gather(*(server.stop() for server in servers))
            with contextlib.suppress(BrokenPipeError):  # a runner that was killed hears nothing any more
                self._commit.close()

    async def _listen(self) -> None:
        config = self._config
        doors = {"local": _at(config.local_address, await self._local.start(config.local_address))}
        if self._remote is not None:
            doors["remote"] = _at(config.remote_address, await self._remote.start(config.remote_address))
        self._say(listening=doors)

    async def _compress(self) -> None:
        """Compress segments when they are closed, those of earlier writers first."""
        compressor = Compressor(
            Path(self._config.folder),
            (self._config.writer,),
            lambda text: log.warning("segment stays uncompressed", reason=text),
        )
        await keep_compressed(compressor)

    def _fail(self, error: OSError) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            message = orjson.loads(line)
            if "stop" in message:
                return
            self._take(message)

    def _take(self, message: Mapping[str, Any]) -> None:
        arena = self._arena
        if "play" in message:
            arena.submit(GameSpec.from_json(message["play"]))
        elif "token" in message:
            one = message["token"]
            self._tokens.add(one["token"], one["name"], one["process"])
            if one["process"]:
                arena.launched(one["name"], one["process"])
        elif "revoke" in message:
            arena.ended(self._tokens.remove(message["revoke"]), FaultKind.DISCONNECT)
            self._local.keep_only(self._tokens.ids())
        elif "crashed" in message:
            process = message["crashed"]["process"]
            self._tokens.remove_process(process)
            arena.ended(process, FaultKind.CRASH)
            self._local.keep_only(self._tokens.ids())
        elif "refused" in message:
            arena.refused_to_start(message["refused"]["game"], message["refused"]["bot"])
        elif "cancel" in message:
            if arena.cancel(message["cancel"]):
                self._say(cancelled=message["cancel"])
        elif "retired" in message:
            arena.retired(message["retired"])

    def _session(self, session: Session, is_open: bool) -> None:
        self._say(
            session={
                "bot": session.name,
                "process": session.process,
                "session": session.id,
                "version": session.version,
                "label": session.label,
                "open": is_open,
            }
        )

    def _proven(self, session: Session) -> None:
        if session.process:
            self._say(proven={"bot": session.name, "process": session.process})


class _Remote:
    """The tokens of the bots that may come from elsewhere."""

    def __init__(self, tokens: TokenFile, bots: Sequence[str]) -> None:
        self._tokens = tokens
        self._bots = frozenset(bots)

    def name_of(self, token: str) -> str | None:
        """The remote bot that a token stands for; None for one that is unknown, revoked or of another."""
        name = self._tokens.name_of(token)
        return name if name in self._bots else None


def _token_file(config: HostConfig) -> TokenFile | None:
    """The tokens of remote bots, None where there are none. Raises TokenError."""
    if not config.remote_address:
        return None
    try:
        return TokenFile(Path(config.token_file))
    except OSError as error:
        raise TokenError(f"token_file: {error}") from None


def _at(address: str, port: int) -> str:
    return f"{address.rpartition(':')[0]}:{port}"


def _fail(reason: str, error: Exception) -> SystemExit:
    # The runner hears it first: the log may be on the very disk that is full.
    _say(failed=reason)
    with contextlib.suppress(OSError):
        log.error("host failed", reason=reason, exc_info=error)
    return SystemExit(1)


async def _main() -> None:
    loop = asyncio.get_running_loop()
    # The runner decides when to stop: an interrupt from the terminal reaches it too.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    # A descriptor of its own: that of standard input is closed by the loop when its end has been read.
    input_ended = hung_up(os.dup(sys.stdin.fileno()))
    lines = asyncio.StreamReader(limit=_LINE_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    first = await lines.readline()
    if not first:
        return
    config = HostConfig(**orjson.loads(first)["start"])
    configure(config.log_level, "json")
    try:
        await Host(config, input_ended).run(lines)
    except (ConfigError, BadAddress, TokenError, TlsError) as error:
        raise _fail(str(error), error) from error
    except OSError as error:
        raise _fail(f"cannot write the record: {error}", error) from error


if __name__ == "__main__":
    asyncio.run(_main())
