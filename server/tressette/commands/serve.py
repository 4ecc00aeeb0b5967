"""``tressette serve``: an open arena where any connected bots play each other."""

from __future__ import annotations

import asyncio
import secrets
import signal
import ssl
import time
from pathlib import Path
from typing import Any

import click
import grpc
import structlog

from tressette.play.arena import Arena
from tressette.play.config import PlayConfig
from tressette.play.matchmaker import Matchmaker
from tressette.play.session import Session
from tressette.record.game import GameSpec
from tressette.record.writer import NullRecorder, Record, free_writer
from tressette.rules.errors import UnknownPreset
from tressette.rules.presets import canonical_name, resolve
from tressette.wire.logs import LEVELS, Format, configure
from tressette.wire.server import ArenaServer, BadAddress, is_loopback, split_address

log = structlog.get_logger("tressette.serve")


def _presets(_ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(canonical_name(name) for name in names)
    except UnknownPreset as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@click.option(
    "--address",
    default="127.0.0.1:50051",
    show_default=True,
    help="HOST:PORT to listen on; port 0 takes a free one.",
)
@click.option(
    "--preset",
    "presets",
    multiple=True,
    default=("tressette-21",),
    show_default=True,
    callback=_presets,
    help="Rules of the matches, a name from `tressette rules list`; repeat it to have several take turns.",
)
@click.option(
    "--record",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the game record; without it nothing is kept.",
)
@click.option(
    "--move-ms",
    type=click.IntRange(1, 3_600_000),
    default=2000,
    show_default=True,
    help="Time for one answer, in milliseconds.",
)
@click.option(
    "--illegal-retries",
    type=click.IntRange(0, 10),
    default=1,
    show_default=True,
    help="How often a refused answer may be corrected in its turn.",
)
@click.option(
    "--tls-cert",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Certificate chain (PEM). Needs --tls-key.",
)
@click.option(
    "--tls-key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Private key (PEM). Needs --tls-cert.",
)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    help="Least severe operational log shown.",
)
@click.option(
    "--log-format",
    type=click.Choice(("console", "json")),
    default="console",
    show_default=True,
    help="How operational logs look on standard error.",
)
def serve(
    address: str,
    presets: tuple[str, ...],
    record: Path | None,
    move_ms: int,
    illegal_retries: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    log_level: str,
    log_format: Format,
) -> None:
    """Run an arena on which connected bots play each other until it is stopped.

    Whoever is free is given a match, the least busy first. Ends on Ctrl-C or SIGTERM; bots are told.
    Without TLS only a loopback address is served.
    """
    try:
        host, _ = split_address(address)
    except BadAddress as error:
        raise click.BadParameter(str(error), param_hint="--address") from None
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key are needed together")
    credentials = None
    if tls_cert is not None and tls_key is not None:
        credentials = _credentials(tls_cert, tls_key)
    elif not is_loopback(host):
        raise click.UsageError(
            f"--address {address} can be reached from other machines: give --tls-cert and --tls-key"
        )
    configure(log_level, log_format)
    config = PlayConfig(move_ms, illegal_retries)
    asyncio.run(_serve(address, presets, record, config, credentials))


def _credentials(cert: Path, key: Path) -> grpc.ServerCredentials:
    try:
        # gRPC would not say what is wrong with them.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint="--tls-cert, --tls-key") from None
    return grpc.ssl_server_credentials([(key.read_bytes(), cert.read_bytes())])


async def _serve(
    address: str,
    presets: tuple[str, ...],
    folder: Path | None,
    config: PlayConfig,
    credentials: grpc.ServerCredentials | None,
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    failures: list[OSError] = []

    def failed(error: OSError) -> None:
        failures.append(error)
        stop.set()

    try:
        record = Record(folder, free_writer(folder), on_failure=failed) if folder is not None else None
    except OSError as error:
        raise click.BadParameter(str(error), param_hint="--record") from None

    def refill(*_: Any) -> None:
        loop.call_soon(matchmaker.fill)

    def finished(spec: GameSpec, result: dict[str, Any]) -> None:
        log.info("game finished", game=spec.game, preset=spec.preset, bots=spec.bots, ranks=result["ranks"])
        refill()

    def session(_session: Session, _is_open: bool) -> None:
        refill()

    arena = Arena(
        secrets.token_bytes(32), config, record or NullRecorder(), on_finished=finished, on_session=session
    )
    run = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    matchmaker = Matchmaker(arena, [(name, resolve(name)) for name in presets], run)
    server = ArenaServer(arena, credentials=credentials)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        port = await server.start(address)
    except BadAddress as error:
        if record is not None:
            record.close()
        raise click.ClickException(str(error)) from None
    log.info("listening", address=f"{address.rpartition(':')[0]}:{port}", presets=presets)
    await stop.wait()
    log.info("stopping", games_cut_off=len(arena.games))
    arena.close()
    await server.stop()
    if record is not None:
        try:
            record.close()
        except OSError as error:
            failed(error)
    if failures:
        raise click.ClickException(f"the record cannot be written: {failures[0]}")
