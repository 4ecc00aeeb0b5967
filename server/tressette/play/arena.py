"""The arena: which bots are here, which games wait, which are being played, and whose time is up.

A game starts when every seat has a session of its bot with room for one more match; two seats of one
game never share a session, nor a process that was launched for the bot. What runs behind the sessions of a
remote bot is not known: they may well be one process. Games that cannot start wait without holding up those
behind them (``play.waiting``). Processes may be kept from meeting a deck twice (``play.isolation``).

A session whose link is lost is kept for ``grace_s``, its clocks running; then it leaves, and the fault policy
answers for its seats. The sessions of a launched process that has ended leave at once.

An arena may **drain**: what is under way goes on, nothing new begins. It may be **suspended** to plain data,
which another arena takes up (``play.suspend``).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import structlog

from tressette.play.config import PlayConfig
from tressette.play.game import Game
from tressette.play.isolation import Isolation
from tressette.play.session import Seat, Session
from tressette.play.suspend import (
    RestoredSession,
    SuspendedGame,
    SuspensionError,
    game_restored,
    sessions_restored,
    suspended,
    token_hash,
)
from tressette.play.waiting import Block, Waiting, WaitingGame
from tressette.record.game import GameSpec
from tressette.record.reveals import NotKept, Reveal, Reveals
from tressette.record.writer import NullRecorder, Recorder
from tressette.rules.events import FaultCommitted, FaultEffect, FaultKind

log = structlog.get_logger("tressette.arena")

_SLICE_S: Final = 0.01
"""How long the arena may play for those who have left before it lets others go on, in seconds."""
_STALE: Final = 256
"""Entries of finished games that the queue of deadlines may hold in any case."""

Finished = Callable[[GameSpec, dict[str, Any]], None]


class Arena:
    """All sessions and games of one server process; used from one event loop.

    ``key`` is the secret from which handles and bot seeds are drawn. ``clock`` gives seconds and never
    goes back; while it stands still, no time is up, neither that of a turn nor a grace period.
    ``on_finished`` hears of each game after its result line was written (not synced), ``on_session`` of each
    session that comes (True) and, once, that it gets no new game any more: its bot drains or leaves for good
    (False); ``on_proven`` of each that has played its first game
    to the end. ``grace_s`` is how long a session is kept without a link. With ``fresh`` no launched process
    meets a deck twice; ``on_stale`` then gets the bot and the id of each process that has to be replaced.
    ``reveals`` keeps the decks that are revealed.

    turns: answers taken in so far; faults: how many of each kind led to each effect. They only grow.
    """

    def __init__(
        self,
        key: bytes,
        config: PlayConfig | None = None,
        recorder: Recorder | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_finished: Finished | None = None,
        on_session: Callable[[Session, bool], None] | None = None,
        grace_s: float = 0.0,
        reveals: Reveals | None = None,
        on_proven: Callable[[Session], None] = lambda _: None,
        on_stale: Callable[[str, str], None] = lambda _bot, _process: None,
        fresh: bool = False,
    ) -> None:
        self.config = config or PlayConfig()
        self.recorder = recorder or NullRecorder()
        self._reveals = reveals
        self.clock = clock
        self.sessions: dict[str, list[Session]] = {}
        self.games: set[Game] = set()
        self.waiting = Waiting()
        self.grace_s = grace_s
        self.turns = 0
        self.games_finished = 0
        self.faults: Counter[tuple[FaultKind, FaultEffect]] = Counter()
        self.draining = False
        self._ended = asyncio.Event()  # a game has; see until_idle
        self._by_token_hash: dict[str, Session] = {}
        self._token_hashes: dict[Session, str] = {}
        self._taking_games: set[Session] = set()
        # Restored sessions whose bots are not back, and the turns that they had been sent: no clock runs.
        self._away: dict[Session, list[tuple[Seat, float]]] = {}
        self._grace: dict[Session, asyncio.TimerHandle] = {}
        self._key = key
        self._on_finished = on_finished
        self._on_session = on_session
        self._on_proven = on_proven
        self._on_stale = on_stale
        self._isolation = Isolation() if fresh else None
        self._launched: dict[str, str] = {}  # bots by process
        self._due: list[tuple[float, int, Seat]] = []
        self._order = itertools.count()
        self._deserted: deque[Seat] = deque()  # with open turns; see leave
        self._stale = 0  # entries of finished games in that queue, at most
        self._timer: asyncio.TimerHandle | None = None
        self._filling = False

    # -- processes ------------------------------------------------------------------------------

    def launched(self, bot: str, process: str) -> None:
        """A process has been started for a bot; its sessions will name it. No id is ever used again."""
        self._launched[process] = bot
        if self._isolation is not None:
            self._isolation.launched(bot, process)

    def ended(self, process: str, kind: FaultKind) -> None:
        """A launched process has ended, or is about to be ended: its sessions leave at once, for which
        ``kind`` is the fault. One that is not known is ignored."""
        bot = self._launched.pop(process, None)
        if bot is None:
            return
        for session in list(self.sessions.get(bot, ())):
            if session.process == process:
                self.leave(session, kind)
        if self._isolation is not None:
            self._isolation.ended(process)
            # Those that are left may have to be replaced now.
            self._changed(bot)

    def retired(self, decks: Iterable[str]) -> None:
        """There will be no further games of these decks."""
        if self._isolation is not None:
            self._isolation.forget(decks)

    # -- sessions -------------------------------------------------------------------------------

    def join(self, session: Session) -> None:
        """A bot has connected. A session of a process that has ended meanwhile never gets in."""
        if session.process and session.process not in self._launched:
            return
        log.info("session opened", **_about(session), version=session.version)
        self._enter(session, token_hash(session.resume_token))
        if self.draining:
            _say_drain(session)

    def _enter(self, session: Session, hashed: str) -> None:
        self.sessions.setdefault(session.name, []).append(session)
        self._by_token_hash[hashed] = session
        self._token_hashes[session] = hashed
        self._taking_games.add(session)
        if self._on_session is not None:
            self._on_session(session, True)
        if self._isolation is not None:
            self._isolation.joined(session.process)
        self._changed(session.name)

    def _changed(self, bot: str) -> None:
        """A bot has other sessions than before."""
        self.waiting.sessions(bot)
        self._fill_soon()

    def drains(self, session: Session) -> None:
        """A bot wants no new game on a session; those under way go on."""
        session.draining = True
        self._takes_no_more(session)

    def _takes_no_more(self, session: Session) -> None:
        if session in self._taking_games:
            self._taking_games.remove(session)
            if self._on_session is not None:
                self._on_session(session, False)

    def __contains__(self, session: Session) -> bool:
        """Whether a session is here, attached or not."""
        return session in self._token_hashes

    def resumable(self, resume_token: str, name: str, process: str = "") -> Session | None:
        """The session that a bot may take over with this token, attached or not; None if there is none.
        Processes of one bot cannot take over each other's."""
        session = self._by_token_hash.get(token_hash(resume_token))
        if session is None or (session.name, session.process) != (name, process):
            return None
        session.resume_token = resume_token  # a restored session does not know it
        return session

    def resumed(self, session: Session) -> None:
        """A session has a new link."""
        timer = self._grace.pop(session, None)
        if timer is not None:
            timer.cancel()
        self._returned(session)
        log.info("session resumed", **_about(session))
        self._changed(session.name)

    def lost(self, session: Session) -> None:
        """The link of a session is gone. It is kept for the grace period, if it has anything to keep."""
        if not self.grace_s or not session.seats:
            self.leave(session)
            return
        session.detach()
        log.info("session lost", **_about(session), grace_s=self.grace_s)
        self._keep(session, self.clock() + self.grace_s)

    def _keep(self, session: Session, until: float) -> None:
        """Have a session leave at a time of the arena's clock, unless it comes back."""
        delay = max(0.0, until - self.clock())
        self._grace[session] = asyncio.get_running_loop().call_later(delay, self._grace_over, session, until)

    def _grace_over(self, session: Session, until: float) -> None:
        if self.clock() < until:  # it has stood still
            self._keep(session, until)
        else:
            self.leave(session)

    def leave(self, session: Session, kind: FaultKind = FaultKind.DISCONNECT) -> None:
        """A bot is gone for good; its games go on without it. A session that has left already is ignored."""
        mates = self.sessions.get(session.name, [])
        if session not in mates:
            return
        mates.remove(session)
        if not mates:
            del self.sessions[session.name]
        del self._by_token_hash[self._token_hashes.pop(session)]
        self._away.pop(session, None)
        timer = self._grace.pop(session, None)
        if timer is not None:
            timer.cancel()
        session.detach()
        log.info("session closed", **_about(session))
        for seat in session.seats.values():
            seat.session = None
            seat.gone = kind
            if seat.open:
                self._deserted.append(seat)
        session.seats.clear()
        session.news = []  # the stream may be there still, where the process is known to have ended
        self._answer_for_deserters()
        self._takes_no_more(session)
        self._changed(session.name)

    def _answer_for_deserters(self, all_at_once: bool = False) -> None:
        """Answer the turns of those who have left. Bots with a thousand matches that leave together would
        hold up everybody else while those are played to their ends, so there is a pause now and then."""
        until = time.perf_counter() + _SLICE_S
        while self._deserted:
            seat = self._deserted.popleft()
            seat.game.deserted(seat)
            if self._deserted and not all_at_once and time.perf_counter() >= until:
                asyncio.get_running_loop().call_soon(self._answer_for_deserters)
                return

    # -- games ----------------------------------------------------------------------------------

    def submit(self, spec: GameSpec) -> None:
        """Play a game as soon as its bots are here."""
        self.waiting.add(spec)
        self._fill_soon()

    def cancel(self, game: str) -> bool:
        """Forget a game that has not started; False if there is none of that id."""
        return self.waiting.remove(game)

    def refused_to_start(self, game: str, absent: str) -> bool:
        """Have a waiting game begin without the bot ``absent``, which will not come, as soon as the others
        are here: the fault policy answers for its seats. False if no such game waits."""
        found = self.waiting.without(game, absent)
        self._fill_soon()
        return found

    def _fill_soon(self) -> None:
        """Start what can be started, once for all the reasons of this pass of the loop."""
        if not self._filling and self.waiting and not self.draining:
            self._filling = True
            asyncio.get_running_loop().call_soon(self._fill)

    def _fill(self) -> None:
        self._filling = False
        if self.draining:
            return
        for spec, sessions in self.waiting.startable(self._place):
            self.start(spec, sessions)
        if self._isolation is not None:
            self._retire_processes(self._isolation)

    def _place(self, game: WaitingGame) -> Block | list[Session | None]:
        """One session with room for each seat, the least busy first, None for the seats of those who will not
        come; or what keeps the game waiting."""
        chosen: dict[str, list[Session]] = {}
        for bot, seats in game.wanted.items():
            found = self._free_sessions(bot, seats, game.spec.deck)
            if isinstance(found, Block):
                return found
            chosen[bot] = found
        return [None if bot in game.absent else chosen[bot].pop(0) for bot in game.spec.bots]

    def _free_sessions(self, bot: str, seats: int, deck: str) -> Block | list[Session]:
        isolation = self._isolation
        sessions = [
            session
            for session in self.sessions.get(bot, ())
            if isolation is None or not isolation.barred(session.process, deck)
        ]
        free = sorted(
            (session for session in sessions if session.has_room), key=lambda session: session.playing
        )
        chosen: dict[str, Session] = {}
        for session in free:
            chosen.setdefault(_player(session), session)
        if len(chosen) >= seats:
            return list(chosen.values())[:seats]
        if isolation is None:
            return Block(bot, seats)
        return Block(bot, seats, deck, seen=len(set(map(_player, sessions))) < seats)

    def _retire_processes(self, isolation: Isolation) -> None:
        """Ask for new processes where games wait for some that have not met their deck. Only those without a
        game under way are given up, and as few as will do."""
        games = self.waiting.barred()
        bots = {bot for game in games for bot in game.wanted}
        idle = {bot: self._idle_processes(bot, isolation) for bot in bots}
        for game in games:
            for bot, seats in game.wanted.items():
                for process in self._to_replace(bot, seats, game.spec.deck, idle[bot], isolation):
                    idle[bot].remove(process)
                    isolation.retire(bot, process)
                    log.info("process stale", bot=bot, process=process)
                    self._on_stale(bot, process)

    def _to_replace(
        self, bot: str, seats: int, deck: str, idle: Sequence[str], isolation: Isolation
    ) -> list[str]:
        """Which of the idle processes of a bot must go for a game of a deck with so many seats of it."""
        if not idle:
            return []
        able = {
            _player(session) for session in self.sessions[bot] if not isolation.barred(session.process, deck)
        }
        missing = seats - len(able) - isolation.coming(bot)
        return [process for process in idle if isolation.barred(process, deck)][: max(0, missing)]

    def _idle_processes(self, bot: str, isolation: Isolation) -> list[str]:
        sessions = self.sessions.get(bot, ())
        busy = {session.process for session in sessions if session.playing}
        idle = dict.fromkeys(session.process for session in sessions if session.process not in busy)
        return [process for process in idle if process and not isolation.retired(process)]

    def start(self, spec: GameSpec, sessions: Sequence[Session | None]) -> None:
        """Play a game now; one session with room for each seat, none twice; None: a bot that refused to
        start."""
        game = self._new_game(spec, self.config, sessions)
        for seat in game.seats:
            if seat.session is None:
                seat.gone = FaultKind.REFUSED_TO_START
            elif self._isolation is not None and seat.session.process:
                self._isolation.sits_down(seat.session.process, spec.deck)
        game.start()

    def _new_game(
        self,
        spec: GameSpec,
        config: PlayConfig,
        sessions: Sequence[Session | None],
        handles: Sequence[str] = (),
    ) -> Game:
        game = Game(
            spec,
            self._key,
            config,
            sessions,
            self.recorder,
            self.clock,
            self._watch,
            self._game_finished,
            self._faulted,
            handles,
        )
        self.games.add(game)
        return game

    def _faulted(self, event: FaultCommitted) -> None:
        self.faults[event.kind, event.effect] += 1

    def _game_finished(self, game: Game) -> None:
        self.games.discard(game)
        self.games_finished += 1
        self._forget_deadlines(game)
        self._ended.set()
        duration_ms = round((self.clock() - game.started_at) * 1000)
        result = game.scribe.committed(duration_ms, time.time_ns() // 1_000_000)
        for seat in game.seats:
            if seat.session is not None:
                self.waiting.room(seat.session.name)
                if not seat.session.proven:
                    seat.session.proven = True
                    self._on_proven(seat.session)
        if self._on_finished is not None:
            self._on_finished(game.spec, result)
        self._fill_soon()

    # -- decks ----------------------------------------------------------------------------------

    def reveal(self, reveals: Iterable[Reveal]) -> None:
        """Let everybody know the decks of these games: nobody plays from them any more, and nobody will. They
        are not on the disk yet when this returns. Raises NotKept and OSError."""
        self.reveals.add(reveals)

    @property
    def reveals(self) -> Reveals:
        """The decks that have been revealed. Raises NotKept where the arena keeps no record."""
        if self._reveals is None:
            raise NotKept("the arena keeps no record")
        return self._reveals

    # -- the end, and what comes after it ---------------------------------------------------------

    def drain(self) -> None:
        """Begin nothing any more, and tell every bot; what is under way goes on."""
        self.draining = True
        for sessions in self.sessions.values():
            for session in sessions:
                _say_drain(session)

    async def until_idle(self) -> None:
        """Wait until no game is under way."""
        while self.games:
            self._ended.clear()
            await self._ended.wait()

    def suspend(self) -> dict[str, Any]:
        """Plain data of all games under way and the sessions that play them, for ``restore``. Close the arena
        in the same pass of the loop: nothing may move the games on."""
        self._answer_for_deserters(all_at_once=True)
        for session in self._away:
            self._count_anew(session)
        playing = {session: known for session, known in self._token_hashes.items() if session.playing}
        return suspended(self._key, playing, list(self.games), self.clock())

    def restore(self, data: Mapping[str, Any], grace_s: float) -> int:
        """Take up what ``suspend`` gave an arena with the same key; returns how many games that are. Their
        sessions are detached and have ``grace_s`` to come back; no clock runs for them until then. Call it
        before anything else. Raises SuspensionError for data that are none of ours, before any effect; a game
        that cannot be played to where it stood is left out and logged."""
        sessions = sessions_restored(data)
        now = self.clock()
        for one in data["games"]:
            try:
                game = game_restored(one, sessions)
            except SuspensionError as error:
                log.error("game not taken up", error=str(error))
            else:
                self._take_up(game, [sessions.get(seat.session) for seat in game.seats], now)
        for restored in sessions.values():
            if restored.session.playing:
                self._expect(restored, now, grace_s)
        return len(self.games)

    def _take_up(
        self, taken_up: SuspendedGame, sessions: Sequence[RestoredSession | None], now: float
    ) -> None:
        game = self._new_game(
            taken_up.spec,
            taken_up.config,
            [restored.session if restored is not None else None for restored in sessions],
            [seat.handle for seat in taken_up.seats],
        )
        game.started_at = now - taken_up.played_s
        game.scribe.versions = list(taken_up.versions)
        game.take_up(taken_up.match, taken_up.steps, taken_up.happened)
        for seat in game.seats:
            taken_up.seats[seat.player].restore(seat, now)

    def _expect(self, restored: RestoredSession, now: float, grace_s: float) -> None:
        """Wait for the bot of a restored session, whose turns stand as of ``now``."""
        session = restored.session
        sent = [
            (seat, now - seat.sent_at)
            for seat in session.seats.values()
            if seat.open and seat.sent_at is not None
        ]
        session.owed = len(sent)
        self._away[session] = sent
        self._enter(session, restored.token_hash)
        self._keep(session, now + grace_s)
        log.info("session awaited", **_about(session), grace_s=grace_s)

    def _count_anew(self, session: Session) -> None:
        """The turns that a session was sent before a restart have used no time since."""
        now = self.clock()
        for seat, used in self._away[session]:
            if seat.open and seat.sent_at is not None:  # else another turn was asked meanwhile
                seat.sent_at = now - used

    def _returned(self, session: Session) -> None:
        """The bot of a restored session is back: its clocks run."""
        if session not in self._away:
            return
        self._count_anew(session)
        del self._away[session]
        for seat in session.seats.values():
            seat.asked_at = self.clock()
            self._watch(seat)

    # -- deadlines ------------------------------------------------------------------------------

    def _watch(self, seat: Seat) -> None:
        """Keep one entry for each seat in the queue. It may be early (the turn it was made for has been
        answered), never late, since a later turn of a seat always has a later deadline."""
        due = seat.game.deadline(seat)
        if due is None or seat.session in self._away:
            return
        seat.timed = True
        heapq.heappush(self._due, (due, next(self._order), seat))
        if self._due[0][2] is seat:
            self._set_timer()

    def _forget_deadlines(self, finished: Game) -> None:
        """Clear the queue of finished games now and then: with large banks their deadlines are far away, and
        each entry keeps its whole game in memory."""
        self._stale += sum(seat.timed for seat in finished.seats)
        if (self._stale > _STALE and self._stale * 2 > len(self._due)) or not self.games:
            self._stale = 0
            self._due = [entry for entry in self._due if not entry[2].closed]
            heapq.heapify(self._due)

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
                seat.game.expired(seat)

    def close(self) -> None:
        """Forget all games and timers; nothing is played any more, not for those who leave either."""
        for game in self.games:
            game.stop()
        for sessions in self.sessions.values():
            for session in sessions:
                session.draining = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for timer in self._grace.values():
            timer.cancel()
        self._grace.clear()
        self._away.clear()
        self._deserted.clear()
        self._due.clear()
        self.games.clear()
        self.waiting.clear()


def _player(session: Session) -> str:
    """What must not have two seats of one game: a launched process, else the session."""
    return session.process or session.id


def _about(session: Session) -> dict[str, object]:
    """What a log line says of a session; nothing in it is secret."""
    return {
        "bot": session.name,
        "session": session.id,
        **({"process": session.process} if session.process else {}),
        "playing": session.playing,
        "max_matches": session.max_matches,
        "turns": session.turns,
    }


def _say_drain(session: Session) -> None:
    session.drain_notice = True
    session.wake()
