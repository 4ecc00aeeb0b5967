"""What the tests of runs share: tournament files, bots made of a few lines, waiting, and looking for
processes that should be gone."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from click.testing import CliRunner, Result
from tressette.cli import main
from tressette.record.reader import read_lines, read_results
from tressette.record.segments import segments
from tressette_bot.bots import REFERENCE_BOTS
from tressette_tournament.progress import State
from tressette_tournament.ratings import PoolRatings
from tressette_tournament.results import GameResult
from tressette_tournament.tournament_file import Tournament, load

_T = TypeVar("_T")

Bots = dict[str, str | Path]
"""What plays by name: a reference bot (text) or a script (path)."""

MARK = "TRESSETTE_TEST_MARK"
"""Environment variable by which a process and all that it started are found again."""

PLAYER = """\
import os, sys, time
from tressette_bot.bot import Bot
from tressette_bot.client import run

class Scripted(Bot):
    turns = 0
    def choose(self, view):
        self.turns += 1
        {each_turn}
        return view.legal[-1]
    def match_started(self, view):
        {each_match}

{before}
run(Scripted())
"""
"""A bot that plays the last legal card."""


def player(before: str = "", each_turn: str = "pass", each_match: str = "pass") -> str:
    """The text of a bot, with statements to do before it connects, on each turn and at each match."""
    return PLAYER.format(before=before, each_turn=each_turn, each_match=each_match)


def event(
    folder: Path,
    bots: Mapping[str, str | Path],
    *,
    presets: tuple[str, ...] = ("tressette-due-duplicate",),
    deal_sets: int = 2,
    concurrency: int = 8,
    move_ms: int = 600_000,
    seed: str | None = "test",
    name: str = "event.toml",
    lines: str = "",
    sections: str = "",
    of_bots: Mapping[str, str] | None = None,
) -> Path:
    """Write a tournament file, by default with a clock that strikes nobody. ``bots``: see Bots. ``lines``:
    more of its [tournament]; ``sections``: further tables; ``of_bots``: more lines of a bot, by name."""
    text = [
        "[tournament]",
        'name = "test"',
        f"presets = {json.dumps(presets)}",
        f"deal_sets = {deal_sets}",
        f"concurrency = {concurrency}",
        'output = "run"',
    ]
    if seed is not None:
        text.append(f"seed = {json.dumps(seed)}")
    text += [lines, "[clock]", f"move_ms = {move_ms}", sections]
    for bot, what in bots.items():
        text += ["[[bots]]", f'name = "{bot}"']
        if isinstance(what, Path):
            text.append(f"command = {json.dumps(['python', str(what)])}")
        else:
            text.append(f'bot = "{what}"')
        text.append((of_bots or {}).get(bot, ""))
    file = folder / name
    file.write_text("\n".join(line for line in text if line) + "\n")
    return file


def script(folder: Path, name: str, text: str) -> Path:
    """Write a script; returns its path."""
    file = folder / f"{name}.py"
    file.write_text(text)
    return file


def turns_until(results: int, games_at_once: int, turns: int = 20) -> int:
    """How many turns a bot must have for so many of its games to be over, in whatever order it is asked: all
    games under way may lack their last turn."""
    return results * turns + games_at_once * (turns - 1)


def lingering(folder: Path, quick_turns: int, pause_s: float = 0.5) -> Path:
    """A bot that is quick for so many turns and then pauses at each, until ``hurry``, which ends a pause too.
    A run with it is not over before the test has done what it wants to do in its middle: what is left of its
    turns takes most of a minute, so that test and machine may stand still for a while."""
    linger = f"""
def linger(turns):
    time.sleep(0.002)
    pause_ends = time.monotonic() + {pause_s}
    while turns > {quick_turns} and time.monotonic() < pause_ends and not os.path.exists({_hurry(folder)!r}):
        time.sleep(0.005)
"""
    return script(folder, "slow", player(linger, "linger(self.turns)"))


def standing(folder: Path, quick_turns: int) -> Path:
    """A bot that plays so many turns at once and the next not before ``hurry``, however long that takes."""
    stand = f"while self.turns > {quick_turns} and not os.path.exists({_hurry(folder)!r}): time.sleep(0.005)"
    return script(folder, "stands", player(each_turn=stand))


def hurry(folder: Path) -> None:
    """Let the lingering and the standing bots of a folder be quick again."""
    Path(_hurry(folder)).touch()


def _hurry(folder: Path) -> str:
    return str(folder / "hurry")


def loaded(file: Path) -> Tournament:
    """A tournament file, read."""
    return load(file, reference_bots=REFERENCE_BOTS)


def tressette(*arguments: object) -> Result:
    """Run the command in this process; an error that it does not report itself fails the test."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], terminal_width=200)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


class Notes:
    """Progress that remembers what it was told."""

    def __init__(self) -> None:
        self.total: int | None = 0
        self.before = 0
        self.games: list[str] = []
        self.notes: list[str] = []
        self.infos: list[str] = []
        self.out: set[str] = set()
        self.pools: list[PoolRatings] = []
        self.end: State | None = None

    def begin(self, total: int | None, done: int) -> None:
        self.total, self.before = total, done

    def issued(self, game: str, preset: str, seats: tuple[str, ...]) -> None:
        self.out.add(game)

    def finished(self, result: GameResult) -> None:
        self.out.remove(result.game)
        self.games.append(result.game)

    def returned(self, game: str) -> None:
        self.out.remove(game)

    def standings(self, pools: Sequence[PoolRatings]) -> None:
        self.pools = list(pools)

    def lost(self, bot: str, why: str, logs: Sequence[str] = ()) -> None:
        self.note(why)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def info(self, text: str) -> None:
        self.infos.append(text)

    def stopping(self, text: str) -> None:
        self.note(text)

    def ended(self, state: State, reason: str) -> None:
        self.end = state


# --- waiting ---------------------------------------------------------------------------------------


def until(condition: Callable[[], _T], what: str, timeout_s: float = 60) -> _T:
    """Wait until a condition holds and return its value; fails after ``timeout_s`` seconds."""
    give_up_at = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < give_up_at, f"{what}: not within {timeout_s} s"
        time.sleep(0.01)
    return value


async def soon(condition: Callable[[], _T], what: str, timeout_s: float = 60) -> _T:
    """``until`` for coroutines."""
    give_up_at = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < give_up_at, f"{what}: not within {timeout_s} s"
        await asyncio.sleep(0.01)
    return value


def result_lines(run: Path) -> int:
    """How many results a run has at this moment, torn ones included."""
    return sum(path.read_bytes().count(b"\n") for path in run.glob("results-*.jsonl"))


# --- processes -------------------------------------------------------------------------------------


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def all_end(pids: Iterable[int], limit_s: float = 60.0) -> bool:
    """Whether they are all gone within the limit: the kernel takes a moment to end what was killed."""
    waited_for = list(pids)
    deadline = time.monotonic() + limit_s
    while any(map(alive, waited_for)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def marked(mark: str) -> dict[int, str]:
    """The command lines of all running processes that have inherited a mark."""
    found = {}
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0") and alive(int(folder.name)):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, IndexError):
            continue  # gone in the meantime
    return found


class CommandRun:
    """``tressette tournament run FILE`` as a process, its output in a file."""

    def __init__(self, file: Path, *arguments: str, shell_before: str = "") -> None:
        self.file = file
        self.folder = file.parent / "run"
        self.mark = uuid.uuid4().hex
        self._log = file.parent / f"output-{self.mark}.txt"
        command = [sys.executable, "-m", "tressette", "tournament", "run", str(file), *arguments]
        if shell_before:
            command = ["sh", "-c", f'{shell_before}; exec "$@"', "sh", *command]
        with self._log.open("wb") as out:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, MARK: self.mark},
            )

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self._log.read_text()

    def wait(self, timeout_s: float = 60) -> int:
        """Its exit status."""
        return self.process.wait(timeout_s)

    def signal(self, number: int) -> None:
        """Send a signal to the runner alone."""
        self.process.send_signal(number)

    def others(self) -> dict[int, str]:
        """Server, guards and bots that are running."""
        return {pid: line for pid, line in marked(self.mark).items() if pid != self.process.pid}

    def assert_nothing_left(self) -> None:
        """Every process that it started is gone, or will be in a few seconds."""
        until(lambda: not self.others(), f"the end of {self.others()}", timeout_s=60)


@contextmanager
def command_run(file: Path, *arguments: str, shell_before: str = "") -> Iterator[CommandRun]:
    """A CommandRun that is killed on the way out, if it still runs."""
    run = CommandRun(file, *arguments, shell_before=shell_before)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.wait(60)
        run.assert_nothing_left()


def finish(file: Path, *arguments: str) -> CommandRun:
    """Run a tournament to its end, which must be a good one."""
    with command_run(file, *arguments) as run:
        assert run.wait() == 0, run.output
    return run


# --- what was played -------------------------------------------------------------------------------

TIMES = ("duration_ms", "ended_unix_ms", "think_ms", "net_ms")
PROCESSES = ("processes",)
CHAIN = ("seq", "prev")


def results(run: Path, *without: str) -> list[dict[str, Any]]:
    """The result lines of a run by game, without what may differ between two runs and what is named."""
    return sorted(
        (_less(line, (*TIMES, *CHAIN, *without)) for line in read_results(run)), key=lambda line: line["game"]
    )


def tricks(run: Path, *without: str) -> list[dict[str, Any]]:
    """The same for the lines of the games, of those attempts that have a result. Which processes played
    them is left out as well."""
    committed = {(line["game"], line["attempt"]) for line in read_results(run)}
    lines = [line for paths in segments(run).values() for path in paths for line in read_lines(path)]
    kept = [line for line in lines if (line.get("game"), line.get("attempt")) in committed]
    return sorted(
        (_less(line, (*TIMES, *CHAIN, *PROCESSES, *without)) for line in kept),
        key=lambda line: str(line["game"]),
    )


def _less(line: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in names}
