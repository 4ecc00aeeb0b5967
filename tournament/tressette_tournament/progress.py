"""Shows how a run goes: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tressette_tournament.results import GameResult

_LINE_EVERY_S: Final = 5.0
_POINT: Final = 6


class _Tally:
    """Points and faults so far, by preset and bot; enough for a glance, no rating."""

    def __init__(self) -> None:
        self.points: Counter[tuple[str, str]] = Counter()
        self.deals: Counter[tuple[str, str]] = Counter()
        self.faults: Counter[str] = Counter()
        self.objectives: dict[str, str] = {}

    def add(self, result: GameResult) -> None:
        self.objectives[result.preset] = result.objective
        for side, points in zip(result.sides, result.points, strict=True):
            for bot in set(side):
                self.points[result.preset, bot] += points
                self.deals[result.preset, bot] += result.deals
        for bot, _, count in result.faults:
            self.faults[bot] += count

    def leaders(self) -> list[tuple[str, list[tuple[str, float]]]]:
        """For each preset its bots with their points per deal, best first."""
        tables = []
        for preset, objective in sorted(self.objectives.items()):
            rows = [
                (bot, self.points[preset, bot] / _POINT / deals)
                for (name, bot), deals in self.deals.items()
                if name == preset and deals
            ]
            rows.sort(key=lambda row: (-row[1] if objective == "most" else row[1], row[0]))
            tables.append((preset, rows))
        return tables


class LiveProgress:
    """A bar and the points per deal so far, redrawn in place. Use as a context manager."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._tally = _Tally()
        self._lock = threading.Lock()  # the display is drawn by a thread of its own
        self._bar = Progress(
            TextColumn("games"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._bar.add_task("games", total=None, rate="")
        self._started = clock()
        self._games = 0
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=4)

    def __enter__(self) -> LiveProgress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def begin(self, total: int, done: int) -> None:
        """See ``runner.Progress``."""
        self._bar.update(self._task, total=total, completed=done)

    def finished(self, result: GameResult) -> None:
        """See ``runner.Progress``."""
        with self._lock:
            self._tally.add(result)
        self._games += 1
        rate = self._games / max(self._clock() - self._started, 1e-9)
        self._bar.update(self._task, advance=1, rate=f"{rate:.0f}/s")

    def note(self, text: str) -> None:
        """See ``runner.Progress``."""
        self._console.print(text, style="yellow", markup=False)

    def _render(self) -> RenderableType:
        table = Table(title="points per deal so far", expand=False)
        table.add_column("preset")
        table.add_column("best first")
        with self._lock:
            leaders = self._tally.leaders()
            faults = self._tally.faults.total()
        for preset, rows in leaders:
            table.add_row(preset, "  ".join(f"{bot} {points:.2f}" for bot, points in rows))
        table.caption = f"faults so far: {faults}" if faults else None
        return Group(self._bar, table)


class PlainProgress:
    """A line every few seconds, for logs and pipes. Use as a context manager."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._total = self._done = 0
        self._games = 0
        self._started = self._last = clock()

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to put back."""

    def begin(self, total: int, done: int) -> None:
        """See ``runner.Progress``."""
        self._total, self._done = total, done
        self._print(f"games: {done} of {total} done before")

    def finished(self, result: GameResult) -> None:
        """See ``runner.Progress``."""
        self._done += 1
        self._games += 1
        now = self._clock()
        if now - self._last >= _LINE_EVERY_S or self._done == self._total:
            self._last = now
            rate = self._games / max(now - self._started, 1e-9)
            left = (self._total - self._done) / rate
            self._print(f"games: {self._done} of {self._total}, {rate:.0f}/s, {left:.0f} s left")

    def note(self, text: str) -> None:
        """See ``runner.Progress``."""
        self._print(text)

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def progress_for(console: Console) -> LiveProgress | PlainProgress:
    """The display that suits where the output goes."""
    return LiveProgress(console) if console.is_terminal else PlainProgress(console)
