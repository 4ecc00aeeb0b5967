"""``tressette tournament status`` and ``stop``: how a run is seen and steered from another terminal."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from tressette_tournament import run_lock, status
from tressette_tournament.displays import duration_text, fault_lines, games_text, lost_lines, running_lines
from tressette_tournament.invocation import called
from tressette_tournament.progress import State
from tressette_tournament.standings import standing_lines
from tressette_tournament.status import RunStatus, StatusError, read_status

_FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)
_LOOK_EVERY_S: Final = 0.1
_STILL_AT_WORK: Final = 3
_ALL: Final = 1_000_000
_NOTES: Final = 5
_LITTLE_ROOM: Final = 1 << 24


@click.command("status")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--json", "as_data", is_flag=True, help="Print status.json, with `at_work`, in place of text.")
@click.option(
    "--watch",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1, max=86_400),
    help="Print it again every so many seconds, until no runner is at work.",
)
def status_(folder: Path, as_data: bool, watch: float | None) -> None:
    """Show how the run in DIR stands, while it runs and afterwards.

    Needs no more than permission to read, and disturbs nothing. A run whose runner was killed says so. With
    --watch and --json every status is one line. Ctrl-C ends watching, not the run. On a network file system
    that does not share its locks between machines a runner elsewhere looks as if it had been killed.

    \b
    Exit status:
      0  shown, however the run stands
      1  no run has been at work in DIR, or its status cannot be read
      2  the command line was wrong
    """
    console = Console()
    try:
        while True:
            found = _found(folder)
            if as_data:
                click.echo(json.dumps(found.to_json(), indent=1 if watch is None else None))
            else:
                if watch is not None and console.is_terminal:
                    console.clear()
                for line in _lines(folder, found, time.time()):
                    console.print(line, markup=False, highlight=False, soft_wrap=True)
            if watch is None or found.holder is None:
                return
            time.sleep(watch)
    except KeyboardInterrupt:
        if watch is None:
            raise


@click.command("stop")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--now", is_flag=True, help="Cut off the games under way; they are played again later.")
@click.option("--wait/--no-wait", default=True, help="Return only when the runner has ended (the default).")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="How long to wait at most; without it as long as it takes.",
)
def stop(folder: Path, now: bool, wait: bool, timeout: float | None) -> None:
    """Stop the run in DIR: no new games, those under way are finished, all is kept.

    The same as Ctrl-C in its own terminal, or with --now the same as Ctrl-C twice. A run that is stopping
    already is left to it, unless --now is given. The runner must be on this machine and of this user. After
    the games the runner still rates them and prints its tables, which is not waited for.

    \b
    Exit status:
      0  the runner has ended, or with --no-wait has been told
      1  no runner is at work in DIR, or it cannot be told from here
      2  the command line was wrong
      3  it has been told and was still at work after the timeout
    """
    if timeout is not None and not wait:
        raise click.UsageError("--timeout says how long to wait, which --no-wait does not")
    give_up_at = None if timeout is None else time.monotonic() + timeout
    try:
        run_lock.send(folder, _signals(folder, now))
    except (run_lock.NotSignalled, OSError) as error:
        raise click.ClickException(str(error)) from error
    if not wait:
        click.echo(f"told the runner in {folder} to stop" + (" now" if now else ""))
        return
    while run_lock.holder(folder) is not None:
        if give_up_at is not None and time.monotonic() >= give_up_at:
            click.echo(f"the runner in {folder} is still finishing its games", err=True)
            raise SystemExit(_STILL_AT_WORK)
        time.sleep(_LOOK_EVERY_S)
    try:
        found = read_status(folder)
        if found.kept is None:
            raise StatusError
        click.echo(f"{found.state}, {games_text(found.figures(time.time()))}{_again(folder, found)}")
    except (StatusError, OSError):  # it had not got as far as its first game
        click.echo(f"stopped{_how(folder)}")


def _signals(folder: Path, now: bool) -> list[int]:
    """What to send: the runner takes the first signal for "stop" and the second for "now".

    Two different ones, since two of a kind that wait to be taken are one. Two commands at the same instant
    may both find a run that is not stopping yet; the second then counts as "now". That loses nothing but the
    games under way, which are played again.
    """
    try:
        stopping = read_status(folder).state == State.STOPPING
    except (StatusError, OSError):
        stopping = False
    if now:
        return [signal.SIGTERM] if stopping else [signal.SIGINT, signal.SIGTERM]
    return [] if stopping else [signal.SIGINT]


def _found(folder: Path) -> RunStatus:
    try:
        found = read_status(folder)
        if found.kept is not None:
            found.figures(0)
        return found
    except (StatusError, OSError) as error:
        raise click.ClickException(str(error)) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise click.ClickException(f"{folder / status.NAME} is damaged: {error!r}") from error


def _lines(folder: Path, found: RunStatus, now: float) -> Iterator[str]:
    """A status in words. now: seconds since 1970."""
    kept, holder = found.kept, found.holder
    at = "" if holder is None else f" (process {holder.pid} on {holder.host})"
    if kept is None:
        yield f"a runner is starting{at}"
        return
    updated = kept["updated_unix_ms"] / 1000
    when = datetime.fromtimestamp(updated).strftime("%Y-%m-%d %H:%M:%S")
    if found.state == status.STARTING:
        yield f"{kept['tournament']}: a runner is starting{at}; what follows is of the session before"
    elif found.state == status.KILLED:
        was = f"was {kept['state']} until {when}, no runner is at work now"
        yield f"{kept['tournament']}: {was}{_how(folder)}"
    elif holder is not None:
        for_s = duration_text(now - kept["started_unix_ms"] / 1000)
        yield f"{kept['tournament']}: {found.state}{at} for {for_s}, as of {duration_text(now - updated)} ago"
    else:
        yield f"{kept['tournament']}: {found.state} since {when}{_again(folder, found)}"
    # A runner that finds the disk full cannot write that down.
    if holder is not None and (free := shutil.disk_usage(folder).free) < _LITTLE_ROOM:
        yield f"{free >> 10} KiB are free on the disk of {folder}: games stand still while there is no room"
    if kept["reason"]:
        yield f"reason: {kept['reason']}"
    figures = found.figures(now)
    yield games_text(figures)
    yield from standing_lines(figures.pools)
    if kept["standings_cut"]:
        yield f"… and {kept['standings_cut']} presets more"
    yield from fault_lines(figures, _ALL)
    yield from lost_lines(figures, _ALL)
    if holder is not None:
        yield from running_lines(figures, _ALL)
    for note in kept["notes"][-_NOTES:]:
        yield f"note of {datetime.fromtimestamp(note['unix_ms'] / 1000):%H:%M:%S}: {note['text']}"
    if kept["sessions"]:
        yield f"earlier sessions: {len(kept['sessions'])}, the last one {kept['sessions'][-1]['state']}"


def _again(folder: Path, found: RunStatus) -> str:
    """How to go on, if there is anything left to do."""
    return "" if found.state == State.COMPLETE else _how(folder)


def _how(folder: Path) -> str:
    return f"; go on with: {shlex.join([*called(), 'tournament', 'run', str(folder / 'tournament.toml')])}"
