"""``status.json``: how a run stands, kept in its folder for other terminals and for programs.

One JSON object::

    v                 1
    tournament        name of the tournament
    pid, host         the runner that wrote it
    state             running, stopping (no game is begun any more), complete, stopped, incomplete (games were
                      left out) or failed
    reason            of the state; may be empty
    started_unix_ms   of this session
    updated_unix_ms   of the file
    games             done (with a result), total (null: not known), session (finished in this session),
                      returned (cancelled or cut off in this session), rate (games a second of the last
                      minute, or null), seconds_left (or null)
    running           count; longest: the games that run longest, game, preset, seats and since_unix_ms of
                      each
    standings         for each preset preset, games, open_sets and components, each a list of bots, best
                      first: bot, rating (Elo), error (its ± or null), low and high (ends of the 95 % interval
                      or null), games; rated now and then and at the end
    standings_cut     presets left off for want of room
    faults            of the games of this session: list of {bot, kind, count}, bots with most faults first
    faults_cut        entries left off
    lost              bots that take part no more: list of {bot, why, logs}
    notes             the last notes: list of {unix_ms, text}
    sessions          earlier sessions, the last ones: started_unix_ms, updated_unix_ms, state, reason,
                      session, returned of each; state is killed for one that did not end by itself

The file is replaced as a whole, every two seconds at most and only when something happens, at once when the
state changes. Its size is bounded. It tells nothing about whether the runner still lives: ``read_status``
does.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tressette_tournament import run_lock
from tressette_tournament.progress import Figures, LostBot, RunningGame, State, Tally
from tressette_tournament.results import GameResult
from tressette_tournament.run_lock import Holder
from tressette_tournament.standings import PoolStanding, pools_data, pools_from

if TYPE_CHECKING:  # `status` and `stop` are quick because they need no numpy
    from tressette_tournament.ratings import PoolRatings

NAME: Final = "status.json"
VERSION: Final = 1
WRITE_EVERY_S: Final = 2.0
KILLED: Final = "killed"
"""State of a session that said it was running and has no runner."""
STARTING: Final = "starting"
"""State of a run whose runner has written nothing yet."""
_MOST_NOTES: Final = 20
_MOST_SESSIONS: Final = 20
_MOST_ROWS: Final = 500
_MOST_FAULTS: Final = 200
_MOST_LOST: Final = 50
_MOST_LOGS: Final = 4
_MOST_TEXT: Final = 1000


class StatusError(Exception):
    """There is no status to read; the text says why."""


class StatusFile(Tally):
    """Keeps ``status.json`` in a run's folder. Writes from ``begin`` on, when the folder is the runner's own,
    and not after ``ended``. A file that cannot be written is not written: the run goes on.

    clock: seconds, monotonic. unix_s: seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        tournament: str,
        clock: Callable[[], float] = time.monotonic,
        unix_s: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(clock)
        self._folder = folder
        self._tournament = tournament
        self._unix_s = unix_s
        self._notes: deque[dict[str, Any]] = deque(maxlen=_MOST_NOTES)
        self._sessions: list[dict[str, Any]] = []
        self._started = 0
        self._next: float | None = None  # when it may be written again; None: not at all

    def begin(self, total: int | None, done: int) -> None:
        """See ``Progress``."""
        super().begin(total, done)
        self._started = self._unix_ms()
        self._sessions = _earlier_sessions(self._folder)
        self._write()

    def issued(self, game: str, preset: str, seats: tuple[str, ...]) -> None:
        """See ``Progress``."""
        super().issued(game, preset, seats)
        self._write_if_due()

    def finished(self, result: GameResult) -> None:
        """See ``Progress``."""
        super().finished(result)
        self._write_if_due()

    def returned(self, game: str) -> None:
        """See ``Progress``."""
        super().returned(game)
        self._write_if_due()

    def standings(self, pools: Sequence[PoolRatings]) -> None:
        """See ``Progress``."""
        super().standings(pools)
        self._write_if_due()

    def lost(self, bot: str, why: str, logs: Sequence[str] = ()) -> None:
        """See ``Progress``."""
        super().lost(bot, _cut(why), [_cut(log) for log in logs[:_MOST_LOGS]])
        self._write_if_due()

    def note(self, text: str) -> None:
        """See ``Progress``."""
        self._notes.append({"unix_ms": self._unix_ms(), "text": _cut(text)})
        self._write_if_due()

    def stopping(self, text: str) -> None:
        """See ``Progress``."""
        super().stopping(_cut(text))
        if self._next is not None:
            self._write()

    def ended(self, state: State, reason: str) -> None:
        """See ``Progress``."""
        super().ended(state, _cut(reason))
        if self._next is not None:
            self._write()
        self._next = None

    def _write_if_due(self) -> None:
        if self._next is not None and self._clock() >= self._next:
            self._write()

    def _write(self) -> None:
        self._next = self._clock() + WRITE_EVERY_S
        text = json.dumps(self._data(), indent=1) + "\n"
        path = self._folder / NAME
        draft = path.with_name(path.name + ".new")
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
        except OSError:  # a full disk, say, of which the record will tell
            with contextlib.suppress(OSError):
                draft.unlink()

    def _data(self) -> dict[str, Any]:
        figures = self.figures()
        now = self._unix_ms()
        standings = _that_fit(figures.pools)
        return {
            "v": VERSION,
            "tournament": self._tournament,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "state": figures.state,
            "reason": figures.reason,
            "started_unix_ms": self._started,
            "updated_unix_ms": now,
            "games": {
                "done": figures.done,
                "total": figures.total,
                "session": figures.session,
                "returned": figures.returned,
                "rate": figures.rate,
                "seconds_left": figures.seconds_left,
            },
            "running": {
                "count": figures.running,
                "longest": [
                    {
                        "game": one.game,
                        "preset": one.preset,
                        "seats": list(one.seats),
                        "since_unix_ms": now - round(one.age_s * 1000),
                    }
                    for one in figures.longest
                ],
            },
            "standings": pools_data(standings),
            "standings_cut": len(figures.pools) - len(standings),
            "faults": [
                {"bot": bot, "kind": kind, "count": count}
                for bot, kind, count in figures.faults[:_MOST_FAULTS]
            ],
            "faults_cut": max(0, len(figures.faults) - _MOST_FAULTS),
            "lost": [
                {"bot": one.bot, "why": one.why, "logs": list(one.logs)} for one in figures.lost[-_MOST_LOST:]
            ],
            "notes": list(self._notes),
            "sessions": self._sessions,
        }

    def _unix_ms(self) -> int:
        return round(self._unix_s() * 1000)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"


def _that_fit(pools: Sequence[PoolStanding]) -> list[PoolStanding]:
    """The first of the pools, _MOST_ROWS bots in all."""
    kept, rows = [], 0
    for pool in pools:
        rows += pool.bots
        if rows > _MOST_ROWS:
            break
        kept.append(pool)
    return kept


def _earlier_sessions(folder: Path) -> list[dict[str, Any]]:
    """Those that the file of the last session names, and the last session itself. A file that cannot be read
    has none: this is a run's history, not its record."""
    try:
        kept = _read(folder)
        state = kept["state"]
        last = {
            "started_unix_ms": kept["started_unix_ms"],
            "updated_unix_ms": kept["updated_unix_ms"],
            "state": KILLED if state in (State.RUNNING, State.STOPPING) else state,
            "reason": kept["reason"],
            "session": kept["games"]["session"],
            "returned": kept["games"]["returned"],
        }
        return [*kept["sessions"], last][-_MOST_SESSIONS:]
    except (StatusError, KeyError, TypeError):
        return []


# --- reading ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How a run stands. holder: the runner at work, None if there is none. kept: the fields of
    ``status.json``; None before a runner has written one.

    state: that of the file; ``starting`` while the runner at work has not written it yet, so that ``kept`` is
    of the session before; ``killed`` if the file tells of a runner at work and there is none.
    """

    holder: Holder | None
    kept: Mapping[str, Any] | None

    @property
    def state(self) -> str:
        if self.holder is not None and (self.kept is None or not self._written_by(self.holder)):
            return STARTING
        assert self.kept is not None
        state = str(self.kept["state"])
        return KILLED if self.holder is None and _at_work(self.kept) else state

    def _written_by(self, holder: Holder) -> bool:
        return self.kept is not None and (self.kept["pid"], self.kept["host"]) == (holder.pid, holder.host)

    def to_json(self) -> dict[str, Any]:
        """The fields of the file with the state as it is, and ``at_work``: whether a runner is."""
        return {**(self.kept or {}), "state": self.state, "at_work": self.holder is not None}

    def figures(self, unix_s: float) -> Figures:
        """The same as figures, to be shown. There must be a file. unix_s: the time now."""
        kept = self.kept
        assert kept is not None
        games = kept["games"]
        state = State.STOPPED if self.state in (KILLED, STARTING) else State(self.state)
        return Figures(
            state=state,
            reason=kept["reason"],
            total=games["total"],
            done=games["done"],
            session=games["session"],
            returned=games["returned"],
            rate=games["rate"],
            seconds_left=games["seconds_left"] if state is State.RUNNING else None,
            running=kept["running"]["count"],
            longest=tuple(
                RunningGame(
                    one["game"], one["preset"], tuple(one["seats"]), unix_s - one["since_unix_ms"] / 1000
                )
                for one in kept["running"]["longest"]
            ),
            faults=tuple((one["bot"], one["kind"], one["count"]) for one in kept["faults"]),
            lost=tuple(LostBot(one["bot"], one["why"], tuple(one["logs"])) for one in kept["lost"]),
            pools=pools_from(kept["standings"]),
        )


def read_status(folder: Path) -> RunStatus:
    """How the run in a folder stands. Needs permission to read, no more.

    Raises StatusError if no runner has worked there or the file is damaged, OSError if it cannot be read.
    """
    while True:
        # A runner writes its last words before it lets go of the lock. So the lock is looked at first: with
        # no holder the file is final, unless a runner has come in between, which is why it is looked at
        # again.
        holder = run_lock.holder(folder)
        kept = _read(folder) if (folder / NAME).exists() else None
        if holder is None and kept is None:
            if run_lock.holder(folder) is None:
                raise StatusError(f"{folder} has no {NAME}: no run has been at work there")
        elif holder is not None or not _at_work(kept) or run_lock.holder(folder) is None:
            return RunStatus(holder, kept)


def _at_work(kept: Mapping[str, Any] | None) -> bool:
    return kept is not None and kept["state"] in (State.RUNNING, State.STOPPING)


def _read(folder: Path) -> dict[str, Any]:
    path = folder / NAME
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StatusError(f"there is no {path}") from None
    except (ValueError, RecursionError) as error:
        raise StatusError(f"{path} is damaged: {error}") from None
    if not isinstance(kept, dict) or kept.get("v") != VERSION:
        raise StatusError(f"{path} is damaged, or of another version of this program")
    return kept
