"""The arena: which bots are here, which games wait, which are being played, and whose time is up.

A game starts when every seat has a session of its bot with room for one more match; two seats of one
game never share a session. Games that cannot start wait without holding up those behind them.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from tressette.play.config import PlayConfig
from tressette.play.game import Game
from tressette.play.session import Seat, Session
from tressette.record.game import GameSpec
from tressette.record.writer import NullRecorder, Recorder
from tressette.rules.events import FaultKind

log = structlog.get_logger("tressette.arena")

Finished = Callable[[GameSpec, dict[str, Any]], None]


class Arena:
    """All sessions and games of one server process; used from one event loop.

    ``key`` is the secret from which handles and bot seeds are drawn. ``clock`` gives seconds and never
    goes back. ``on_finished`` hears of each game after its result line was written (not synced).
    """

    def __init__(
        self,
        key: bytes,
        config: PlayConfig | None = None,
        recorder: Recorder | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_finished: Finished | None = None,
        on_session: Callable[[Session, bool], None] | None = None,
    ) -> None:
        self.config = config or PlayConfig()
        self.recorder = recorder or NullRecorder()
        self.clock = clock
        self.sessions: dict[str, list[Session]] = {}
        self.games: set[Game] = set()
        self.waiting: list[GameSpec] = []
        self.turns = 0
        self._key = key
        self._on_finished = on_finished
        self._on_session = on_session
        self._due: list[tuple[float, int, Seat]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._filling = False

    # -- sessions -------------------------------------------------------------------------------

    def join(self, session: Session) -> None:
        """A bot has connected."""
        self.sessions.setdefault(session.name, []).append(session)
        log.info("session opened", bot=session.name, version=session.version, max_matches=session.max_matches)
        if self._on_session is not None:
            self._on_session(session, True)
        self._fill_soon()

    def leave(self, session: Session) -> None:
        """A bot is gone; its games go on without it. A session that has left already is ignored."""
        mates = self.sessions.get(session.name, [])
        if session not in mates:
            return
        mates.remove(session)
        if not mates:
            del self.sessions[session.name]
        log.info("session closed", bot=session.name, playing=session.playing)
        for seat in list(session.seats.values()):
            seat.game.left(seat)
        session.seats.clear()
        if self._on_session is not None:
            self._on_session(session, False)

    # -- games ----------------------------------------------------------------------------------

    def submit(self, spec: GameSpec) -> None:
        """Play a game as soon as its bots are here."""
        self.waiting.append(spec)
        self._fill_soon()

    def cancel(self, game: str) -> bool:
        """Forget a game that has not started; False if there is none of that id."""
        before = len(self.waiting)
        self.waiting = [spec for spec in self.waiting if spec.game != game]
        return len(self.waiting) < before

    def _fill_soon(self) -> None:
        """Start what can be started, once for all the reasons of this pass of the loop."""
        if not self._filling and self.waiting:
            self._filling = True
            asyncio.get_running_loop().call_soon(self._fill)

    def _fill(self) -> None:
        self._filling = False
        waiting, self.waiting = self.waiting, []
        for spec in waiting:
            sessions = self._sessions_for(spec)
            if sessions is None:
                self.waiting.append(spec)
            else:
                self.start(spec, sessions)

    def _sessions_for(self, spec: GameSpec) -> list[Session] | None:
        """One session with room for each seat, the least busy first; None if there are not enough."""
        chosen: list[Session] = []
        for bot in spec.bots:
            free = [
                session
                for session in self.sessions.get(bot, ())
                if session.has_room and session not in chosen
            ]
            if not free:
                return None
            chosen.append(min(free, key=lambda session: session.playing))
        return chosen

    def start(self, spec: GameSpec, sessions: Sequence[Session]) -> None:
        """Play a game now; one session with room for each seat, none twice."""
        game = Game(
            spec,
            self._key,
            self.config,
            sessions,
            self.recorder,
            self.clock,
            self._watch,
            self._game_finished,
        )
        self.games.add(game)
        game.start()

    def _game_finished(self, game: Game) -> None:
        self.games.discard(game)
        duration_ms = round((self.clock() - game.started_at) * 1000)
        result = game.scribe.committed(duration_ms, time.time_ns() // 1_000_000)
        if self._on_finished is not None:
            self._on_finished(game.spec, result)
        self._fill_soon()

    # -- deadlines ------------------------------------------------------------------------------

    def _watch(self, seat: Seat) -> None:
        """Keep one entry for each seat in the queue. It may be early (the turn it was made for has been
        answered), never late, since a later turn of a seat always has a later deadline."""
        due = seat.game.deadline(seat)
        if due is None:
            return
        seat.timed = True
        heapq.heappush(self._due, (due, next(self._order), seat))
        if self._due[0][2] is seat:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        delay = max(0.0, self._due[0][0] - self.clock())
        self._timer = loop.call_later(delay, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self.expire()
        if self._due:
            self._set_timer()

    def expire(self) -> None:
        """Answer for every seat whose time is up."""
        now = self.clock()
        while self._due and self._due[0][0] <= now:
            _, _, seat = heapq.heappop(self._due)
            seat.timed = False
            due = seat.game.deadline(seat)
            if due is None:
                continue
            if due > now:
                self._watch(seat)
            else:
                seat.game.play_substitute(seat, FaultKind.TIMEOUT, "MOVE_TIME_EXCEEDED")

    def close(self) -> None:
        """Forget all games and timers; nothing is played any more, not for those who leave either."""
        for game in self.games:
            game.withdraw()
        for sessions in self.sessions.values():
            for session in sessions:
                session.draining = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due.clear()
        self.games.clear()
        self.waiting.clear()
