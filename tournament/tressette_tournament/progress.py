"""How a run goes, for whoever watches: the events that the runner tells, and what they add up to.

An event must cost the runner next to nothing, whatever the number of games, and whoever is told cannot fail
the run (``Several``). The displays are in ``displays``, the file for other terminals in ``status``.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from tressette_tournament.results import GameResult
from tressette_tournament.standings import PoolStanding, standings_of

if TYPE_CHECKING:  # `status` and `stop` are quick because they need no numpy
    from tressette_tournament.ratings import PoolRatings

RECENT_S: Final = 60
"""The rate is that of the last so many seconds."""
LONGEST: Final = 5
"""How many of the running games are named."""


class State(StrEnum):
    """How a run stands: at work; at work, but no game is begun any more; or how its session ended."""

    RUNNING = "running"
    STOPPING = "stopping"
    COMPLETE = "complete"
    STOPPED = "stopped"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class Progress(Protocol):
    """Who is told how the run goes. After ``begin`` come the others, in any number; ``ended`` is the last."""

    def begin(self, total: int | None, done: int) -> None:
        """There are ``total`` games (None: not known, it ends when told to), of which ``done`` were finished
        in earlier sessions."""

    def issued(self, game: str, preset: str, seats: tuple[str, ...]) -> None:
        """A game has been handed to the host. seats: the bot of each seat."""

    def finished(self, result: GameResult) -> None:
        """A game has been committed."""

    def returned(self, game: str) -> None:
        """A game was cancelled or cut off: it is no longer with the host, and has no result."""

    def standings(self, pools: Sequence[PoolRatings]) -> None:
        """The ratings by the games so far; now and then."""

    def lost(self, bot: str, why: str, logs: Sequence[str] = ()) -> None:
        """A bot takes part no more. why: a sentence for the organiser; logs: files with its output."""

    def note(self, text: str) -> None:
        """Something the organiser should read: trouble, as a rule."""

    def info(self, text: str) -> None:
        """Something that anybody may want to know."""

    def stopping(self, text: str) -> None:
        """No game is begun any more, those under way finish. text: a sentence for the organiser."""

    def ended(self, state: State, reason: str) -> None:
        """The session is over. reason: may be empty."""


@dataclass(frozen=True, slots=True)
class RunningGame:
    """A game that is with the host, for ``age_s`` seconds."""

    game: str
    preset: str
    seats: tuple[str, ...]
    age_s: float


@dataclass(frozen=True, slots=True)
class LostBot:
    """A bot that takes part no more; see ``Progress.lost``."""

    bot: str
    why: str
    logs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """How a run stands at one moment.

    total: games in all, None if not known. done: with a result, those of earlier sessions included. session:
    finished in this session. returned: in this session cancelled or cut off. rate: games a second over the
    last RECENT_S seconds, None before any time has passed. seconds_left: None where nothing can be said, and
    once it is to stop. running: how many games are with the host; longest: those that have been there
    longest, LONGEST at most. faults: (bot, kind, count) of the games of this session, bots with most faults
    first. pools: as last told.
    """

    state: State
    reason: str
    total: int | None
    done: int
    session: int
    returned: int
    rate: float | None
    seconds_left: float | None
    running: int
    longest: tuple[RunningGame, ...]
    faults: tuple[tuple[str, str, int], ...]
    lost: tuple[LostBot, ...]
    pools: tuple[PoolStanding, ...]


class Tally:
    """Progress that adds up. An event takes constant time; memory is bounded by running games, bots and
    RECENT_S. May be asked from another thread. clock: seconds, monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._state, self._reason = State.RUNNING, ""
        self._total: int | None = None
        self._done = self._session = self._returned = 0
        self._begun = clock()
        self._recent: deque[tuple[int, int]] = deque()  # (second, games finished in it)
        self._in_recent = 0
        self._running: dict[str, tuple[str, tuple[str, ...], float]] = {}  # in order of issue, with its time
        self._faults: Counter[tuple[str, str]] = Counter()
        self._lost: dict[str, LostBot] = {}
        self._pools: tuple[PoolStanding, ...] = ()

    def begin(self, total: int | None, done: int) -> None:
        """See ``Progress``."""
        with self._guard:
            self._total, self._done, self._begun = total, done, self._clock()

    def issued(self, game: str, preset: str, seats: tuple[str, ...]) -> None:
        """See ``Progress``."""
        with self._guard:
            self._running[game] = (preset, seats, self._clock())

    def finished(self, result: GameResult) -> None:
        """See ``Progress``."""
        with self._guard:
            self._running.pop(result.game, None)
            self._done += 1
            self._session += 1
            for bot, kind, count in result.faults:
                self._faults[bot, kind] += count
            second = int(self._clock())
            games = self._recent.pop()[1] if self._recent and self._recent[-1][0] == second else 0
            self._recent.append((second, games + 1))
            self._in_recent += 1
            self._forget(second)

    def returned(self, game: str) -> None:
        """See ``Progress``."""
        with self._guard:
            self._running.pop(game, None)
            self._returned += 1

    def standings(self, pools: Sequence[PoolRatings]) -> None:
        """See ``Progress``."""
        with self._guard:
            self._pools = standings_of(pools)

    def lost(self, bot: str, why: str, logs: Sequence[str] = ()) -> None:
        """See ``Progress``."""
        with self._guard:
            self._lost[bot] = LostBot(bot, why, tuple(logs))

    def note(self, text: str) -> None:
        """See ``Progress``; adds nothing up."""

    def info(self, text: str) -> None:
        """See ``Progress``; adds nothing up."""

    def stopping(self, text: str) -> None:
        """See ``Progress``."""
        with self._guard:
            self._state, self._reason = State.STOPPING, text

    def ended(self, state: State, reason: str) -> None:
        """See ``Progress``."""
        with self._guard:
            self._state, self._reason = state, reason
            self._running.clear()

    def figures(self) -> Figures:
        """How the run stands."""
        with self._guard:
            now = self._clock()
            self._forget(int(now))
            elapsed = min(now - self._begun, RECENT_S)
            rate = self._in_recent / elapsed if elapsed > 0 else None
            # Of a knockout not all games may have been known at the beginning.
            total = None if self._total is None else max(self._total, self._done)
            left = total - self._done if total is not None and self._state is State.RUNNING else None
            by_bot: Counter[str] = Counter()
            for (bot, _), count in self._faults.items():
                by_bot[bot] += count
            return Figures(
                state=self._state,
                reason=self._reason,
                total=total,
                done=self._done,
                session=self._session,
                returned=self._returned,
                rate=rate,
                seconds_left=left / rate if left is not None and rate else None,
                running=len(self._running),
                longest=tuple(
                    RunningGame(game, preset, seats, now - since)
                    for game, (preset, seats, since) in islice(self._running.items(), LONGEST)
                ),
                faults=tuple(
                    (bot, kind, count)
                    for (bot, kind), count in sorted(
                        self._faults.items(), key=lambda fault: (-by_bot[fault[0][0]], fault[0])
                    )
                ),
                lost=tuple(self._lost.values()),
                pools=self._pools,
            )

    def _forget(self, second: int) -> None:
        """Drop what is not recent at this second."""
        while self._recent and self._recent[0][0] <= second - RECENT_S:
            self._in_recent -= self._recent.popleft()[1]


class Several:
    """Progress that tells others, each on its own: one that fails is told no more, and the rest go on. The
    failure is a note to the rest."""

    def __init__(self, *others: Progress) -> None:
        self._others = list(others)

    def begin(self, total: int | None, done: int) -> None:
        """See ``Progress``."""
        self._tell(lambda other: other.begin(total, done))

    def issued(self, game: str, preset: str, seats: tuple[str, ...]) -> None:
        """See ``Progress``."""
        self._tell(lambda other: other.issued(game, preset, seats))

    def finished(self, result: GameResult) -> None:
        """See ``Progress``."""
        self._tell(lambda other: other.finished(result))

    def returned(self, game: str) -> None:
        """See ``Progress``."""
        self._tell(lambda other: other.returned(game))

    def standings(self, pools: Sequence[PoolRatings]) -> None:
        """See ``Progress``."""
        self._tell(lambda other: other.standings(pools))

    def lost(self, bot: str, why: str, logs: Sequence[str] = ()) -> None:
        """See ``Progress``."""
        self._tell(lambda other: other.lost(bot, why, logs))

    def note(self, text: str) -> None:
        """See ``Progress``."""
        self._tell(lambda other: other.note(text))

    def info(self, text: str) -> None:
        """See ``Progress``."""
        self._tell(lambda other: other.info(text))

    def stopping(self, text: str) -> None:
        """See ``Progress``."""
        self._tell(lambda other: other.stopping(text))

    def ended(self, state: State, reason: str) -> None:
        """See ``Progress``."""
        self._tell(lambda other: other.ended(state, reason))

    def _tell(self, tell: Callable[[Progress], None]) -> None:
        failures = []
        for other in list(self._others):
            try:
                tell(other)
            # SystemExit: what rich does when its output is a closed pipe.
            except (Exception, SystemExit) as error:
                self._others.remove(other)
                failures.append(f"{type(other).__name__} has failed and is told no more: {error!r}")
        for failure in failures:
            self.note(failure)
