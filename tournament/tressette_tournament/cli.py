"""``tressette tournament`` run, resume and check, and ``tressette ratings``."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from tressette.record.reader import RecordError
from tressette_bot.bots import REFERENCE_BOTS

from tressette_tournament.check import checked, rehearsal
from tressette_tournament.displays import display_for
from tressette_tournament.folder import RATINGS, SPRT_TEST, write_json
from tressette_tournament.formats import FormatError
from tressette_tournament.invocation import called
from tressette_tournament.journal import JournalError
from tressette_tournament.local_host import HostFailed
from tressette_tournament.progress import Several
from tressette_tournament.ratings import PoolRatings, rate
from tressette_tournament.report import as_json, print_sprt, print_stop, print_tables, sprt_as_json
from tressette_tournament.results import GameResult, no_results, read, read_games
from tressette_tournament.runner import Outcome, RunError, Runner
from tressette_tournament.status import StatusFile
from tressette_tournament.toml_source import TournamentFileError
from tressette_tournament.tournament_file import Tournament, load

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


_STOPPED = 3
_INCOMPLETE = 4


_QUIET = click.option(
    "--quiet", is_flag=True, help="Say nothing but trouble, on standard error, and the final tables."
)
_JSON = click.option(
    "--json", "as_data", is_flag=True, help="Print events as JSON lines in place of everything else."
)


@click.command()
@click.argument("file", type=_FILE)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the run, in place of the file's own `output`.",
)
@click.option(
    "--extend",
    is_flag=True,
    help="Have the run in the folder grow by what FILE has more: bots at its end, deal sets, another [stop].",
)
@_QUIET
@_JSON
def run(file: Path, output: Path | None, extend: bool, quiet: bool, as_data: bool) -> None:
    """Play the tournament that FILE (TOML) describes and print its ratings.

    The folder of the run holds the resolved file, the record of every trick, and the bots' output. Started
    again on the same folder a run goes on where it stopped: no game is played twice, none is lost. Ctrl-C
    once lets the games under way finish, twice stops at once; SIGTERM is the same. In the first second, while
    the program itself is being loaded, either ends it without these words and with another status; nothing
    has begun then.

    A bot that keeps ending, or that stays away for five minutes, is named with its output; its games that
    were not begun are left out and the others are played. The same command plays them later.

    FILE may not differ from the one that the run was begun with. With --extend it may have more: what was
    played is kept, further deal sets and bots play on decks that nobody has seen.

    \b
    Exit status:
      0  every game has a result, or a stop rule has ended the event
      1  the run failed or the file was refused
      2  the command line was wrong
      3  it was stopped before its end
      4  it ended, but games of bots that were lost are left out
    """
    where = [] if output is None else ["--output", str(output)]
    _run(file, output, ["run", str(file), *where], extend=extend, quiet=quiet, as_data=as_data)


@click.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@_QUIET
@_JSON
def resume(folder: Path, quiet: bool, as_data: bool) -> None:
    """Go on with the run in DIR, as it was begun.

    The same as `tressette tournament run` with the file of that run, for which there is a copy in DIR.

    \b
    Exit status:
      0  every game has a result, or a stop rule has ended the event
      1  the run failed, or DIR holds none
      2  the command line was wrong
      3  it was stopped before its end
      4  it ended, but games of bots that were lost are left out
    """
    file = folder / "tournament.toml"
    if not file.is_file():
        raise click.ClickException(f"{folder} holds no run: there is no {file.name} in it")
    _run(file, folder, ["resume", str(folder)], extend=False, quiet=quiet, as_data=as_data)


@click.command()
@click.argument("file", type=_FILE)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the games of the check; by default the file's own `output` with -check and the time.",
)
@click.option(
    "--sets",
    type=click.IntRange(1, 1000),
    default=2,
    show_default=True,
    help="Deal sets that each bot plays at each table.",
)
@_QUIET
def check(file: Path, output: Path | None, sets: int, quiet: bool) -> None:
    """Play a few games of each bot in FILE against the reference bots, and report what goes wrong.

    For the evening before a long run. Every preset of FILE is played, with its clocks and fault policies
    (without a clock: 60 seconds for each decision). A bot passes if it played all its games without a fault
    and none of its processes ended by itself; of every other one it is said what was wrong, and where its
    output is. Remote bots are waited for. Nothing is written to the folder of the tournament itself.

    \b
    Exit status:
      0  every bot passes
      1  a bot does not pass, or the check failed or the file was refused
      2  the command line was wrong
      3  it was stopped before its end
    """
    event = _load(file, None)
    output = output or Path(f"{event.output}-check-{time.strftime('%Y%m%d-%H%M%S')}")
    output = Path(os.path.realpath(output))
    if output.exists() and any(output.iterdir()):
        raise click.ClickException(f"{output} is not empty: a check begins anew")
    event = rehearsal(event, output, sets)
    console = Console()
    with _as_errors(), _sigterm_as_interrupt():
        with display_for(console, quiet=quiet, as_json=False) as display:
            runner = Runner(event, Several(display, StatusFile(output, event.name)))
            outcome = asyncio.run(runner.run())
        if outcome is Outcome.STOPPED:
            _say(console, "Stopped before its end: nothing was found out.")
            raise SystemExit(_STOPPED)
        found = checked(
            event.bots, read_games(output), runner.failures, runner.lost, output / "logs" / "bots"
        )
    for one in found:
        for line in one.lines:
            _say(console, line)
    failing = [one.bot for one in found if not one.passes]
    _say(console, f"{len(found) - len(failing)} of {len(found)} bots pass. Games and logs: {output}")
    if any(one.faulty for one in found):
        _say(console, f"A game trick by trick: {shlex.join([*called(), 'replay', str(output), 'GAME'])}")
    if failing:
        raise SystemExit(1)


def _run(
    file: Path, output: Path | None, words: list[str], *, extend: bool, quiet: bool, as_data: bool
) -> None:
    """Play, show the ratings, and end with the status of ``run``. words: how to call it again."""
    if quiet and as_data:
        raise click.UsageError("--quiet and --json exclude each other")
    # Events have standard output to themselves.
    console, shown = Console(stderr=as_data or quiet), Console(quiet=as_data)
    again = shlex.join([*called(), "tournament", *words])
    try:
        with _as_errors(), _sigterm_as_interrupt():
            event = _load(file, output)
            folder = Path(event.output)
            with display_for(shown, quiet=quiet, as_json=as_data) as display:
                runner = Runner(event, Several(display, StatusFile(folder, event.name)), extend=extend)
                outcome = asyncio.run(runner.run())
            _show(folder, shown)
            _show_ending(runner, shown)
    except KeyboardInterrupt:  # before the runner has begun to listen for it, or after
        outcome = Outcome.STOPPED
    if outcome is Outcome.STOPPED:
        _say(console, f"Stopped before its end; go on with: {again}")
        raise SystemExit(_STOPPED)
    if outcome is Outcome.INCOMPLETE:
        lost = ", ".join(sorted(runner.lost))
        # Once a rule has ended the event nothing more of it is played.
        how = "" if runner.ended else f"; play them with: {again}"
        _say(console, f"Left out, because of {lost}: {runner.missing}{how}")
        raise SystemExit(_INCOMPLETE)


@contextmanager
def _as_errors() -> Iterator[None]:
    """Have what a run raises told in one line."""
    try:
        yield
    except (RunError, HostFailed, JournalError, FormatError, RecordError, OSError) as error:
        raise click.ClickException(str(error)) from error


def _show_ending(runner: Runner, console: Console) -> None:
    """Why the event ended early, the test of an SPRT, the places of a knockout."""
    if runner.ended:
        print_stop(runner.ended, console)
    if runner.test is not None:
        a, b = (bot.name for bot in runner.tournament.bots)
        print_sprt(a, b, runner.test, console)
        write_json(runner.folder / SPRT_TEST, sprt_as_json(a, b, runner.test))
    for preset, places in runner.placings():
        _say(console, f"{preset}: " + ", ".join(f"{place}. {bot}" for place, bot in places))


@click.command()
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=_FOLDER)
@click.option("--json", "as_data", is_flag=True, help="Print the ratings as JSON in place of tables.")
def ratings(folders: tuple[Path, ...], as_data: bool) -> None:
    """Rate the bots from the records in one or more folders, rated together.

    Only the results are read; the same results in any order give the same ratings. Games that share a deck
    are one piece of evidence, also across folders. A torn last line is left out with a warning, any other
    damage is refused.

    \b
    Exit status:
      0  rated
      1  a folder has no results, or they are damaged or contradict each other
      2  the command line was wrong
    """
    pools = _rate(folders, wanted=True)
    if as_data:
        click.echo(json.dumps(as_json(pools), indent=2))
    else:
        print_tables(pools, Console())


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Have SIGTERM raise KeyboardInterrupt, as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if before is not None:  # None: not one of Python's
            signal.signal(signal.SIGTERM, before)


def _load(file: Path, output: Path | None) -> Tournament:
    try:
        return load(file, reference_bots=REFERENCE_BOTS, output=output)
    except (TournamentFileError, OSError) as error:
        raise click.ClickException(str(error)) from None


def _rate(folders: tuple[Path, ...], *, wanted: bool) -> list[PoolRatings]:
    """Rate the folders together. wanted: whether one without results is refused."""
    torn: list[str] = []
    found = dict.fromkeys(folders, 0)

    def results() -> Iterator[GameResult]:
        for folder in folders:
            for result in read(folder, torn):
                found[folder] += 1
                yield result

    try:
        # Contradictions are told when all is read: damage is a better reason than what follows from it.
        pools = rate(results())
    except (RecordError, ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for warning in torn:
        click.echo(f"warning: {warning}", err=True)
    for folder, games in found.items():
        if wanted and not games:
            raise click.ClickException(no_results(folder))
    return pools


def _show(folder: Path, console: Console) -> None:
    """Write ratings.json and print the tables and where everything is."""
    pools = _rate((folder,), wanted=False)
    write_json(folder / RATINGS, as_json(pools))
    print_tables(pools, console)
    _say(console, f"Record, logs and ratings.json: {folder}")


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
