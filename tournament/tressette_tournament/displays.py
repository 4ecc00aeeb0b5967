"""Shows how a run goes: a live display on a terminal, plain lines elsewhere, quiet, or JSON lines for
programs.

Each is a ``progress.Progress`` and a context manager.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import IO, TYPE_CHECKING, Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from tressette_tournament.progress import Figures, State, Tally
from tressette_tournament.results import GameResult
from tressette_tournament.standings import pools_data, standing_lines, standings_of

if TYPE_CHECKING:  # `status` and `stop` are quick because they need no numpy
    from tressette_tournament.ratings import PoolRatings

REDRAWS_A_SECOND: Final = 4
_OFTEN_S: Final = 5.0
_SELDOM_S: Final = 60.0
_OFTEN_FOR_S: Final = 120.0
_LEADERS_EVERY_S: Final = 300.0
_BAR_WIDTH: Final = 60
_BAR_FROM_HEIGHT: Final = 12


# --- words -----------------------------------------------------------------------------------------


def duration_text(seconds: float) -> str:
    """``95 s``, ``12 min``, ``3 h 20 min``, ``2 d 4 h``."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def games_text(figures: Figures) -> str:
    """``games: 50 of 1000, 10/s, 95 s left``."""
    words = [f"games: {figures.done}" + ("" if figures.total is None else f" of {figures.total}")]
    if figures.rate is not None:
        words.append(_rate_text(figures.rate))
    if figures.seconds_left:
        words.append(f"{duration_text(figures.seconds_left)} left")
    faults = sum(count for _, _, count in figures.faults)
    if faults:
        words.append(f"faults: {faults}")
    return ", ".join(words)


def _rate_text(rate: float) -> str:
    """Games a second, or a minute where those are few."""
    if rate >= 10 or not rate:
        return f"{rate:.0f}/s"
    return f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min"


def fault_lines(figures: Figures, room: int) -> list[str]:
    """A line a bot, bots with most faults first; if they do not fit, one line with the sum of each."""
    by_bot = {
        bot: [(kind, count) for _, kind, count in faults]
        for bot, faults in groupby(figures.faults, key=lambda fault: fault[0])
    }
    if len(by_bot) > room:
        sums = (f"{bot} {sum(count for _, count in faults)}" for bot, faults in by_bot.items())
        return [f"faults: {', '.join(sums)}"]
    return [
        f"faults of {bot}: " + ", ".join(f"{kind} {count}" for kind, count in faults)
        for bot, faults in by_bot.items()
    ]


def running_lines(figures: Figures, room: int) -> list[str]:
    """The number of running games, and those that have run longest."""
    if not figures.running or room < 1:
        return []
    longest = [
        f"  {duration_text(one.age_s)}: {one.game} {one.preset}: {', '.join(one.seats)}"
        for one in figures.longest
    ]
    first = f"running: {figures.running}" + (", longest" if room > 1 else "")
    return [first, *longest[: room - 1]]


def lost_lines(figures: Figures, room: int) -> list[str]:
    """A line for each lost bot, with why; if they do not fit, one line with their names."""
    if len(figures.lost) > room:
        return [f"lost: {', '.join(one.bot for one in figures.lost)}"]
    return [f"lost: {one.bot}: {one.why}" for one in figures.lost]


def screen(figures: Figures, height: int) -> list[str]:
    """Everything in at most ``height`` lines, any of which may be wider than the screen."""
    few = max(1, height // 8)
    head = [games_text(figures)]
    if figures.state is not State.RUNNING:
        head.append(figures.reason or figures.state)
    tail = [*lost_lines(figures, few), *fault_lines(figures, few), *running_lines(figures, 1 + few)]
    middle = standing_lines(figures.pools, max(0, height - len(head) - len(tail)))
    return [*head, *middle, *tail][:height]


# --- displays --------------------------------------------------------------------------------------


class LiveProgress(Tally):
    """Redrawn in place a few times a second, whatever the number of games; fits the terminal."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._console = console
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=REDRAWS_A_SECOND)

    def __enter__(self) -> LiveProgress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone
            self._live.stop()

    def lost(self, bot: str, why: str, logs: Sequence[str] = ()) -> None:
        """See ``Progress``."""
        super().lost(bot, why, logs)
        self.note(why)

    def note(self, text: str) -> None:
        """See ``Progress``."""
        self._console.print(text, style="yellow", markup=False)

    def info(self, text: str) -> None:
        """See ``Progress``."""
        self._console.print(text, markup=False, highlight=False)

    def stopping(self, text: str) -> None:
        """See ``Progress``."""
        super().stopping(text)
        self.note(text)

    def _render(self) -> RenderableType:
        figures = self.figures()
        height = max(self._console.height - 1, 1)  # the cursor takes a line
        parts: list[RenderableType] = []
        if figures.total and height >= _BAR_FROM_HEIGHT:
            parts.append(ProgressBar(figures.total, figures.done, width=min(self._console.width, _BAR_WIDTH)))
        lines = screen(figures, height - len(parts))
        return Group(*parts, *(Text(line, no_wrap=True, overflow="ellipsis") for line in lines))


class PlainProgress(Tally):
    """Lines for logs and pipes: every 5 seconds in the first two minutes, then every minute; the leaders of
    each preset every 5 minutes. A line comes with a game: while none is finished there is none."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._console = console
        self._started = self._last = self._leaders_at = clock()
        self._untold = 0

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to put back."""

    def begin(self, total: int | None, done: int) -> None:
        """See ``Progress``."""
        super().begin(total, done)
        self._started = self._last = self._leaders_at = self._clock()
        self._print(f"games: {done} " + ("" if total is None else f"of {total} ") + "done before")

    def finished(self, result: GameResult) -> None:
        """See ``Progress``."""
        super().finished(result)
        self._untold += 1
        now = self._clock()
        every = _OFTEN_S if now - self._started <= _OFTEN_FOR_S else _SELDOM_S
        if now - self._last >= every:
            self._tell_games()

    def standings(self, pools: Sequence[PoolRatings]) -> None:
        """See ``Progress``."""
        super().standings(pools)
        now = self._clock()
        if now - self._leaders_at >= _LEADERS_EVERY_S:
            self._leaders_at = now
            found = self.figures().pools
            for line in standing_lines(found, len(found)):
                self._print(f"standings of {line}")

    def lost(self, bot: str, why: str, logs: Sequence[str] = ()) -> None:
        """See ``Progress``."""
        super().lost(bot, why, logs)
        self._print(why)

    def note(self, text: str) -> None:
        """See ``Progress``."""
        self._print(text)

    def info(self, text: str) -> None:
        """See ``Progress``."""
        self._print(text)

    def stopping(self, text: str) -> None:
        """See ``Progress``."""
        super().stopping(text)
        self._print(text)

    def ended(self, state: State, reason: str) -> None:
        """See ``Progress``."""
        super().ended(state, reason)
        if self._untold:
            self._tell_games()

    def _tell_games(self) -> None:
        self._last, self._untold = self._clock(), 0
        self._print(games_text(self.figures()))

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class QuietProgress(Tally):
    """Only notes, lost bots and why it stops. The console should be that of standard error."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def __enter__(self) -> QuietProgress:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to put back."""

    def lost(self, bot: str, why: str, logs: Sequence[str] = ()) -> None:
        """See ``Progress``."""
        self.note(why)

    def note(self, text: str) -> None:
        """See ``Progress``."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def info(self, text: str) -> None:
        """See ``Progress``; no trouble."""

    def stopping(self, text: str) -> None:
        """See ``Progress``."""
        self.note(text)


class JsonProgress(Tally):
    """One JSON object a line, written out at once. Every line has ``event`` and ``unix_ms``; further fields:

    begin      total (null: not known), done (games finished in earlier sessions)
    game       game, deal_set, preset, sides (bots of each side), ranks (1 is best), points (of each side, in
               sixths of a point), deals, forfeit (side or null), offender (bot or null), faults (list of
               [bot, kind, count]); done and total as they are now
    standings  pools: for each preset preset, games, open_sets and components, each a list of bots, best
               first: bot, rating (Elo), error (its ± or null), low and high (ends of the 95 % interval or
               null), games
    lost       bot, why, logs (files)
    note       text: trouble, as a rule
    info       text: what anybody may want to know, e.g. where remote bots connect
    stopping   text: no game is begun any more
    ended      state (complete, stopped, incomplete or failed), reason, done, total

    Games handed out and taken back are no events. When nobody reads any more (a closed pipe) one line on
    standard error says so, and nothing more is written. A reader that stops reading but does not close holds
    the run up.
    """

    def __init__(
        self, stream: IO[str], trouble: Callable[[str], None], unix_s: Callable[[], float] = time.time
    ) -> None:
        super().__init__()
        self._stream = stream
        self._trouble = trouble
        self._unix_s = unix_s
        self._closed = False

    def __enter__(self) -> JsonProgress:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to put back."""

    def begin(self, total: int | None, done: int) -> None:
        """See ``Progress``."""
        super().begin(total, done)
        self._write("begin", total=total, done=done)

    def finished(self, result: GameResult) -> None:
        """See ``Progress``."""
        super().finished(result)
        fields = (
            "game",
            "deal_set",
            "preset",
            "sides",
            "ranks",
            "points",
            "deals",
            "forfeit",
            "offender",
            "faults",
        )
        self._write(
            "game", **{name: getattr(result, name) for name in fields}, done=self._done, total=self._total
        )

    def standings(self, pools: Sequence[PoolRatings]) -> None:
        """See ``Progress``."""
        self._write("standings", pools=pools_data(standings_of(pools)))

    def lost(self, bot: str, why: str, logs: Sequence[str] = ()) -> None:
        """See ``Progress``."""
        self._write("lost", bot=bot, why=why, logs=list(logs))

    def note(self, text: str) -> None:
        """See ``Progress``."""
        self._write("note", text=text)

    def info(self, text: str) -> None:
        """See ``Progress``."""
        self._write("info", text=text)

    def stopping(self, text: str) -> None:
        """See ``Progress``."""
        self._write("stopping", text=text)

    def ended(self, state: State, reason: str) -> None:
        """See ``Progress``."""
        self._write("ended", state=state, reason=reason, done=self._done, total=self._total)

    def _write(self, event: str, **fields: Any) -> None:
        if self._closed:
            return
        line = {"event": event, "unix_ms": round(self._unix_s() * 1000), **fields}
        try:
            self._stream.write(json.dumps(line, separators=(",", ":")) + "\n")
            self._stream.flush()
        except OSError as error:
            self._closed = True
            _to_nowhere(self._stream)
            self._trouble(f"events are written no more, the run goes on: {error}")


def _to_nowhere(stream: IO[str]) -> None:
    """Let what a stream could not write go nowhere, or the interpreter would fail on it when it ends."""
    with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


Display = LiveProgress | PlainProgress | QuietProgress | JsonProgress


def display_for(console: Console, *, quiet: bool = False, as_json: bool = False) -> Display:
    """The display that is asked for, otherwise the one that suits where the output goes."""
    errors = Console(stderr=True)
    if as_json:
        return JsonProgress(sys.stdout, QuietProgress(errors).note)
    if quiet:
        return QuietProgress(errors)
    return LiveProgress(console) if console.is_terminal else PlainProgress(console)
