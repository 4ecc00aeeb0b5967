"""``tressette serve``: an open arena where any connected bots play each other."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable
from typing import Any

import click
import grpc
import structlog

from tressette.commands.config_file import SettingsCommand, as_toml
from tressette.commands.serve_operations import Operations, operations_options
from tressette.commands.serve_options import (
    Settings,
    access_options,
    config_options,
    limit_options,
    match_options,
    output_options,
)
from tressette.play.arena import Arena
from tressette.play.commit import GroupCommit
from tressette.play.matchmaker import Matchmaker
from tressette.play.session import Session
from tressette.play.suspend import Suspension, SuspensionError, claim, left_behind
from tressette.record.game import GameSpec
from tressette.record.reader import DamagedRecord
from tressette.record.reveals import Reveal, Reveals
from tressette.record.segments import Compressor, can_compress
from tressette.record.writer import NullRecorder, Record, free_writer
from tressette.rules.presets import resolve
from tressette.wire.compress import keep_compressed
from tressette.wire.drain import Stopping, play_out, suspend, take_up
from tressette.wire.logs import configure
from tressette.wire.metrics import MetricsServer, MetricsUnavailable
from tressette.wire.server import ArenaServer, BadAddress
from tressette.wire.telemetry import Telemetry, TelemetryUnavailable
from tressette.wire.tls import Tls, TlsError
from tressette.wire.tokens import TokenError, TokenFile, follow_revocations

log = structlog.get_logger("tressette.serve")


@click.command(
    cls=SettingsCommand,
    context_settings={"auto_envvar_prefix": "TRESSETTE_SERVE", "help_option_names": ["-h", "--help"]},
)
@access_options
@match_options
@limit_options
@output_options
@operations_options
@config_options
@click.pass_context
def serve(ctx: click.Context, /, show_config: bool, **options: Any) -> None:
    """Run an arena on which connected bots play each other until it is stopped.

    Whoever is free is given a match, the least busy first. On Ctrl-C or SIGTERM matches under way are played
    out or suspended, then it ends; the second time it ends at once. Other machines are let in with TLS and
    tokens only. How to run it for others: server/OPERATING.md.

    Each setting is taken from the first of these that has it:

    \b
    1. the option on the command line
    2. the environment: --move-ms is TRESSETTE_SERVE_MOVE_MS; values of a
       repeated option are separated by spaces
    3. the file given by --config or TRESSETTE_SERVE_CONFIG, in TOML:
       move_ms = 2000, preset = ["tressette-21"], and for --policy a table,
       [policy] with timeout = "forfeit"; paths are relative to the file
    4. the default

    A repeated option is taken from one of them as a whole. Unknown keys of the file and unknown variables
    that begin with TRESSETTE_SERVE_ are refused.
    """
    settings = Settings.of(options)
    credentials = _credentials(settings.tls) if settings.tls is not None else None
    tokens = _tokens(settings)
    operations = Operations.of(options)
    telemetry = _telemetry() if operations.telemetry else None
    if show_config:
        click.echo(as_toml(ctx))
        return
    configure(settings.log_level, settings.log_format)
    asyncio.run(_serve(settings, operations, credentials, tokens, telemetry))


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    try:
        return tls.credentials()
    except TlsError as error:
        hint = "--tls-client-ca" if error.of_clients else "--tls-cert, --tls-key"
        raise click.BadParameter(str(error), param_hint=hint) from None


def _tokens(settings: Settings) -> TokenFile | None:
    if settings.tokens is None:
        return None
    try:
        return TokenFile(settings.tokens)
    except (TokenError, OSError) as error:
        raise click.BadParameter(str(error), param_hint="--tokens") from None


def _telemetry() -> Telemetry:
    try:
        return Telemetry()
    except TelemetryUnavailable as error:
        raise click.BadParameter(str(error), param_hint="--telemetry") from None


def _open_record(
    settings: Settings, failed: Callable[[Exception], None]
) -> tuple[Record | None, Reveals | None, Suspension | None]:
    """The record to write with its reveals, and what an earlier server has suspended into its folder."""
    folder = settings.record
    if folder is None:
        return None, None, None
    record = None
    try:
        record = Record(folder, free_writer(folder), on_failure=failed)
        return record, Reveals(folder, record.writer, on_failure=failed), claim(folder, record.writer)
    except (OSError, DamagedRecord, SuspensionError) as error:
        _abandon(record)
        raise click.BadParameter(str(error), param_hint="--record") from None


def _abandon(record: Record | None) -> None:
    """Leave no empty files in the folder when the server does not start: it may be tried again and again."""
    if record is not None:
        with contextlib.suppress(OSError):  # why it does not start is what should be read
            record.abandon()


async def _keep_compressed(record: Record) -> None:
    """Compress the segments of this server as they are closed. Others of its folder may be another's, who
    may be at work."""
    if not can_compress():
        log.info("record stays uncompressed", reason="that takes tressette-arena[tournament]")
        return
    compressor = Compressor(
        record.folder,
        (record.writer,),
        lambda text: log.warning("segment stays uncompressed", reason=text),
        only=record.writer,
    )
    await keep_compressed(compressor)


class _Disk:
    """Record and reveals, forced to the disk together. A result may be there when its reveal is: the
    other way round its deck could be lost. Results that come while reveals are synced wait for the next."""

    def __init__(self, record: Record, reveals: Reveals) -> None:
        self._record = record
        self._reveals = reveals

    def flush(self) -> None:
        """Hand all lines so far to the operating system. Raises OSError."""
        self._record.flush()

    def sync(self) -> None:
        """Force what was handed over to the disk. Raises OSError."""
        self._record.sync(self._reveals.sync)

    def close(self) -> None:
        """Flush, sync and close both, once a sync under way has ended. Raises OSError."""
        try:
            self._record.close(self._reveals.sync)
        finally:
            self._reveals.close()


async def _keep_committed(commit: GroupCommit, failed: Callable[[Exception], None]) -> None:
    """Have results on the disk soon after their games."""
    try:
        await commit.run()
    except Exception as error:  # no thread to sync in, for one: nobody else would notice
        failed(error)


async def _serve(
    settings: Settings,
    operations: Operations,
    credentials: grpc.ServerCredentials | None,
    tokens: TokenFile | None,
    telemetry: Telemetry | None,
) -> None:
    loop = asyncio.get_running_loop()
    stopping = Stopping()
    # Before the suspension is claimed: whoever stops this server from here on gets it suspended again.
    stopping.listen()
    failures: list[Exception] = []

    def failed(error: Exception) -> None:
        failures.append(error)
        stopping.fail()

    record, reveals, suspension = _open_record(settings, failed)
    commit = None
    if record is not None and reveals is not None:
        commit = GroupCommit(_Disk(record, reveals), lambda _: None)
    for path in left_behind(settings.record, suspension):
        log.error("suspension left behind", file=str(path), hint="see Draining in server/OPERATING.md")

    def fill() -> None:
        if not arena.draining:
            matchmaker.fill()

    def refill(*_: Any) -> None:
        loop.call_soon(fill)

    def finished(spec: GameSpec, result: dict[str, Any]) -> None:
        log.info("game finished", game=spec.game, preset=spec.preset, bots=spec.bots, ranks=result["ranks"])
        if commit is not None:
            commit.add(result)
        if reveals is not None:
            # No other game has this deck.
            arena.reveal([Reveal.of(spec)])
        refill()

    def session(_session: Session, _is_open: bool) -> None:
        refill()

    arena = Arena(
        suspension.key if suspension is not None else secrets.token_bytes(32),
        settings.play,
        record or NullRecorder(),
        on_finished=finished,
        on_session=session,
        grace_s=settings.grace_s,
        reveals=reveals,
    )
    run = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    # Servers that share a folder may start in the same second.
    run = f"{run}-{record.writer}" if record is not None else run
    matchmaker = Matchmaker(arena, [(name, resolve(name)) for name in settings.presets], run)
    names = tokens.name_of if tokens is not None else None
    interceptors = telemetry.interceptors if telemetry is not None else ()
    server = ArenaServer(
        arena, names, credentials, settings.limits, operations.reflection, interceptors=interceptors
    )
    metrics = None
    try:
        all_taken_up = suspension is not None and take_up(arena, suspension)
        if operations.metrics_address is not None:
            metrics = MetricsServer(operations.metrics_address, server, record)
        port = await server.start(settings.address)
    except (BadAddress, MetricsUnavailable, SuspensionError) as error:
        arena.close()
        if suspension is not None:
            suspension.put_back()
        if metrics is not None:
            await metrics.close()
        _abandon(record)
        raise click.ClickException(str(error)) from None
    if suspension is not None and all_taken_up:
        suspension.done()
    elif suspension is not None:
        log.error("suspension kept", file=str(suspension.path))
    if metrics is not None:
        log.info("metrics", address=metrics.address)
    host = settings.address.rpartition(":")[0]
    log.info("listening", address=f"{host}:{port}", presets=settings.presets)
    revoking = (
        asyncio.create_task(follow_revocations(tokens, server.keep_only)) if tokens is not None else None
    )
    committing = asyncio.create_task(_keep_committed(commit, failed)) if commit is not None else None
    compressing = asyncio.create_task(_keep_compressed(record)) if record is not None else None
    await stopping.asked.wait()
    await play_out(server, stopping, operations.drain_s)
    for task in (revoking, committing, compressing):
        if task is not None:
            task.cancel()
    log.info("stopping", games=len(arena.games))
    if failures:
        kept = suspend(arena, None, "the record cannot be written")
    else:
        kept = suspend(arena, settings.record)
    await server.stop(will_return=kept)
    if telemetry is not None:
        await telemetry.close()
    if metrics is not None:
        await metrics.close()
    if commit is not None:
        try:
            commit.close()
        except OSError as error:
            failures.append(error)
    stopping.deafen()
    if failures:
        raise click.ClickException(f"the record cannot be written: {failures[0]}")
