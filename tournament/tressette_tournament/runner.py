"""Runs a tournament: starts the server and the bots, hands out games, and keeps what is done.

A game is committed by its result line, which the server has synced to the disk before it reports it. A run
can be stopped at any time, by Ctrl-C or by a crash, and started again on the same folder: games with a
result are not played again, games that were cut off are played again as their next attempt. What is in the
folder is said in ``folder``.

A bot is **lost** when one of its processes has failed too often, or when it has been away for too long. Games
under way go on without it (the server plays its cards, a fault each); those not begun are **left out**: they
get no result, so a later session plays them. Nobody else is held up. Where the file has a policy for
``refused_to_start``, such games are begun without it instead, and the policy counts against it.

An event that is **ended** by one of its stop rules opens no new deal sets; those that are open are finished
and count.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from tressette.record.decks import deck_name, deck_seed, game_salt
from tressette.record.game import GameSpec
from tressette.record.manifest import check_manifest, read_manifest, write_manifest
from tressette.record.reader import begun_attempts, seconds_played
from tressette.record.writer import NO_ROOM, free_writer
from tressette.rules.events import FaultKind
from tressette.rules.ruleset import RuleSet

from tressette_tournament import repeats
from tressette_tournament.ending import Ending
from tressette_tournament.folder import (
    Event,
    RunError,
    forget_tables,
    open_event,
    open_keys,
    say_ended,
    working,
)
from tressette_tournament.formats import Knockout, Ladder, Rated, Ratings, Rounds, Stage, format_of
from tressette_tournament.journal import Journal, read_rounds
from tressette_tournament.local_host import LocalHost
from tressette_tournament.processes import BotProcess, BotProcesses
from tressette_tournament.progress import Progress, State
from tressette_tournament.ratings import PoolRatings, RatingFold
from tressette_tournament.results import GameResult, read_games
from tressette_tournament.retirement import Retirement
from tressette_tournament.schedule import Game, Schedule
from tressette_tournament.sprt import SequentialTest
from tressette_tournament.standings import rate_now_and_then
from tressette_tournament.tournament_file import Bot, Format, Tournament

LATE_S: Final = 30.0
"""How long a bot may take to connect before it is named as missing (the run goes on waiting)."""
_LOOK_EVERY_S: Final = 0.2
_RETRY_S: Final = 1.0
"""How often it is seen whether there is room, at least."""

__all__ = ["Outcome", "RunError", "Runner"]


class Outcome(StrEnum):
    """How a session of a run ended. Every game has a result, or the event was ended by a rule; it was stopped
    before that; or all is done but the games that were left out."""

    COMPLETE = State.COMPLETE
    STOPPED = State.STOPPED
    INCOMPLETE = State.INCOMPLETE


class Runner:
    """One session of one run. extend: whether the event may grow by what the file has more. host, processes:
    what plays the games and what starts the bots; clock: seconds, monotonic.

    lost: the bots that take part no more, and why; left_out: games without a result because of them.
    failures: of processes, by bot; ended: why a stop rule has ended the event, or empty. test: of an
    SPRT, once ``run`` has begun. late_s: as LATE_S; away_s: how long a bot may be away that is not starting;
    both may be changed.
    """

    def __init__(
        self,
        tournament: Tournament,
        progress: Progress,
        *,
        extend: bool = False,
        host: Callable[..., LocalHost] = LocalHost,
        processes: Callable[..., BotProcesses] = BotProcesses,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tournament = tournament
        self.folder = Path(tournament.output)
        self.lost: dict[str, str] = {}
        self.left_out = 0
        self.failures: Counter[str] = Counter()
        self.ended = ""
        self.test: SequentialTest | None = None
        self.late_s, self.away_s = LATE_S, float(tournament.place.away_s)
        self._progress = progress
        self._extend = extend
        self._make_host, self._make_processes = host, processes
        self._clock = clock
        self._rules: Mapping[str, RuleSet] = {choice.name: choice.rules for choice in tournament.presets}
        self._rules_hashes = {name: rules.hash() for name, rules in self._rules.items()}
        # A game needs a session for each seat of a bot.
        self._needed = max(tournament.table(choice).most_seats for choice in tournament.presets)
        self._refusals_count = FaultKind.REFUSED_TO_START in dict(tournament.faults.policies)
        self._out: dict[str, Game] = {}
        self._in_set: Counter[str] = Counter()  # games with a result, of the open deal sets
        self._connected: Counter[str] = Counter()
        self._seen: set[str] = set()  # bots that were there once
        self._away: dict[str, float] = {}  # since when, by the clock
        self._changed = asyncio.Event()
        self._thawed = asyncio.Event()  # not set while the server stands still; each freeze has its own
        self._thawed.set()
        self._stop_now: Callable[[], object]
        self._stopping = False
        self._fold = RatingFold()
        self._rated: Sequence[PoolRatings] = ()
        self._event: Event
        self._format: Rounds | Ladder | None = None
        self._schedule: Schedule
        self._ending: Ending
        self._retirement: Retirement
        self._host: LocalHost
        self._bots: BotProcesses

    async def run(self) -> Outcome:
        """Play until no game is left to play, or until stopped.

        Raises RunError if the folder belongs to another tournament or another runner, HostFailed if the
        server fails, OSError, and what reading a damaged record raises.
        """
        async with working(self.folder) as server_lock:
            with ExitStack() as stack:
                self._open(stack)
                # Told while the folder is still this runner's own.
                try:
                    if not self._schedule.finished:
                        await self._session(server_lock)
                    outcome = self._outcome()
                    if outcome is Outcome.COMPLETE:
                        await self._close()
                    with suppress(ValueError):  # of which the final tables tell
                        self._standings(self._fold.rate())
                except Exception as error:
                    self._progress.ended(State.FAILED, str(error))
                    raise
                except BaseException:  # cancelled
                    self._progress.ended(State.STOPPED, "")
                    raise
                self._progress.ended(State(outcome), self._reason(outcome))
                return outcome

    def placings(self) -> Iterator[tuple[str, list[tuple[int, str]]]]:
        """Of a knockout the places by preset, best first, as far as they are known; otherwise nothing."""
        if isinstance(self._format, Knockout):
            for preset, choice in enumerate(self.tournament.presets):
                yield choice.name, self._format.placings(preset, self._schedule.history)

    def _outcome(self) -> Outcome:
        if self._schedule.finished and not self._stopping:
            # A Swiss may have come to its end for now because too few of its bots are left.
            done = not self.left_out and (self.ended or self._schedule.complete)
            return Outcome.COMPLETE if done else Outcome.INCOMPLETE
        if self._schedule.complete:  # stopped when there was nothing left to stop
            return Outcome.COMPLETE
        return Outcome.STOPPED

    @property
    def missing(self) -> str:
        """What the lost bots leave out, in words."""
        return f"{self.left_out} games" if self.left_out else "later rounds"

    def _reason(self, outcome: Outcome) -> str:
        if outcome is Outcome.INCOMPLETE:
            return f"{self.missing} are left out, because of {', '.join(sorted(self.lost))}"
        return self.ended

    # -- the folder -----------------------------------------------------------------------------

    def _open(self, stack: ExitStack) -> None:
        """Read what earlier sessions have left, and say how far the event is."""
        self._confirm_results()
        event = self._event = open_event(self.tournament, extend=self._extend)
        began = self._clock()
        self._retirement = Retirement(event, self._rules, lambda: self._schedule.settled_sets)
        stack.callback(self._retirement.close)
        path = self.folder / "journal.jsonl"
        journalled = self.tournament.format in (Format.SWISS, Format.KNOCKOUT, Format.LADDER)
        stages = [Stage(stage.bots, stage.deal_sets, stage.first_set) for stage in event.stages]
        event_format = self._format = format_of(self.tournament, stages=stages, ratings=self._ladder_ratings)
        self._schedule = Schedule(
            self.tournament,
            event_format,
            done=self._earlier(),
            attempts=begun_attempts(self.folder),
            journal=read_rounds(path),
            write=stack.enter_context(Journal(path)).write if journalled else None,
        )
        played_s = seconds_played(self.folder)
        self._ending = Ending(
            self.tournament,
            self._schedule,
            self._fold,
            lambda: read_games(self.folder),
            lambda: played_s + self._clock() - began,
        )
        self.test = self._ending.test
        self._progress.begin(self._schedule.total_games, self._schedule.done_games)
        for text in (event.decks, *repeats.warnings(self.tournament)):
            self._progress.info(text)
        if not self.tournament.clock.runs:
            self._progress.info("no clock: a bot that hangs holds its games until somebody ends it")
        if event.ended is not None:
            self._end(event.ended)
        self._end_by_rule()

    def _confirm_results(self) -> None:
        """Refuse a run that had ended and whose results are others now: what is missing would be played
        again, from decks that are public by then, and a new manifest would confirm it."""
        manifest = read_manifest(self.folder)
        if manifest is None:
            return
        if different := list(check_manifest(self.folder, manifest, results_only=True)):
            raise RunError(
                f"{self.folder} does not hold the results that it had when the run ended; put them back: "
                + "; ".join(different)
            )

    def _earlier(self) -> Iterator[GameResult]:
        for result in read_games(self.folder):
            self._fold.add(result)
            self._retirement.played(result.game)
            yield result
        self._in_set.update(self._fold.open_sets)

    async def _close(self) -> None:
        """Nothing is left to play: reveal every deck and the keys, and confirm the record."""
        if self.ended:
            say_ended(self._event, self.ended)
        await self._retirement.reveal_all()
        if read_manifest(self.folder) is None:  # a run that was complete before has its own
            open_keys(self._event)
            write_manifest(self.folder)

    # -- one session ----------------------------------------------------------------------------

    async def _session(self, server_lock: int) -> None:
        forget_tables(self.folder)
        self._host = self._make_host(
            self.folder / "logs" / "server.log", self._message, keep_open=(server_lock,)
        )
        self._bots = self._make_processes(
            self.tournament.bots, self.folder / "logs" / "bots", self._environment, self, self._sleep
        )
        work = asyncio.create_task(self._work())
        with self._interruptible(work):
            try:
                await asyncio.wait((work,))
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
                # The server first: to a bot that leaves before, the rest of its games would be faults.
                self._bots.let_end()
                try:
                    await self._host.stop()
                finally:
                    await self._bots.stop()
        if not work.cancelled():
            work.result()

    async def _work(self) -> None:
        """Start everything and play; raises what goes wrong anywhere."""
        await self._host.start(self._host_config())
        if self._stopping:
            return
        if self._host.remote_address:
            self._progress.info(f"remote bots connect to {self._host.remote_address}")
        self._away = dict.fromkeys((bot.name for bot in self.tournament.bots), self._clock())
        await self._bots.start()
        await _first_of(
            self._play(),
            self._host.failed(),
            self._bots.failed(),
            self._watch_connections(),
            rate_now_and_then(self._fold.rate_each, self._standings, self._progress.note),
            self._retirement.work(self._host.retired),
        )

    def _host_config(self) -> dict[str, Any]:
        """Fields of the server's HostConfig."""
        clock, faults, place = self.tournament.clock, self.tournament.faults, self.tournament.place
        remote = [bot.name for bot in self.tournament.bots if bot.remote]
        config: dict[str, Any] = {
            "folder": str(self.folder),
            "writer": free_writer(self.folder),
            "key": self._event.stages[-1].key.hex(),
            "move_ms": clock.move_ms,
            "bank_ms": clock.bank_ms,
            "increment_ms": clock.increment_ms,
            "allowance_ms": clock.allowance_ms,
            "illegal_retries": faults.illegal_retries,
            "strikes": faults.strikes,
            "policies": dict(faults.policies),
            "grace_s": place.grace_s,
            "isolation": self.tournament.isolation,
        }
        if remote:
            config |= {
                "remote_address": place.listen,
                "remote": remote,
                "token_file": place.tokens,
                "tls_cert": place.certificate or "",
                "tls_key": place.key or "",
                "tls_client_ca": place.client_ca or "",
            }
        return config

    def _environment(self, one: BotProcess) -> Mapping[str, str]:
        return {
            "TRESSETTE_ADDRESS": self._host.local_address,
            "TRESSETTE_TOKEN": one.token,
            "TRESSETTE_BOT_NAME": one.bot.name,
        }

    async def _play(self) -> None:
        """Keep ``concurrency`` games with the host until all are done, or until told to stop."""
        if self.tournament.format is Format.LADDER:
            await self._assemble()
        while True:
            while not self._stopping and len(self._out) < self.tournament.concurrency:
                game = await self._next_game()
                if game is None:
                    break
                absent = self.lost.keys() & set(game.seats)
                if absent and not (self._refusals_count and len(absent) == 1):
                    self._leave_out(game)
                    await asyncio.sleep(0)  # there may be a million of them
                    continue
                self._out[game.id] = game
                self._ending.issued(game)
                self._progress.issued(game.id, game.preset, game.seats)
                self._host.play(self._spec(game))
                for bot in absent:
                    self._host.refused(game.id, bot)
            if not self._out and (self._stopping or (self._schedule.finished and not self._awaited())):
                self.left_out += len(self._schedule.set_aside)
                return
            await self._changed.wait()
            self._changed.clear()

    async def _next_game(self) -> Game | None:
        """The next game to play, None if there is none now. What follows for the folder is written before it
        begins: where there is no room for that it waits, as the server does, but not for longer than until
        told to stop; games under way go on."""
        noted = False
        while not self._stopping:
            try:
                self._end_by_rule()
                self._schedule.hold(self._ending.full)
                game = self._schedule.issue()
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                if not noted:
                    self._progress.note(f"no game is begun until there is room: {error}")
                noted = True
                with suppress(TimeoutError):
                    async with asyncio.timeout(_RETRY_S):
                        await self._changed.wait()
                self._changed.clear()
            else:
                if noted:
                    self._progress.note("there is room again: games are begun")
                return game
        return None

    async def _assemble(self) -> None:
        """Wait for the launched bots, each as long as it may take to start: a ladder chooses among those that
        are there, and would begin with the two that start fastest."""
        began = self._clock()
        expected = {bot.name: bot.start_limit_s for bot in self.tournament.bots if not bot.remote}
        while expected and not self._stopping:
            await asyncio.sleep(_LOOK_EVERY_S)
            waited = self._clock() - began
            here = self._seen | self.lost.keys()
            expected = {bot: limit for bot, limit in expected.items() if bot not in here and waited < limit}

    def _awaited(self) -> bool:
        """Whether a ladder that was ended waits for bots that may come back to its open deal sets."""
        return any(self.lost.keys().isdisjoint(game.seats) for game in self._schedule.set_aside)

    def _leave_out(self, game: Game) -> None:
        self._schedule.fix(game.id, None)
        self._ending.left_out(game)
        self.left_out += 1

    def _end_by_rule(self) -> None:
        """Open no new deal sets if a stop rule says so."""
        if not self.ended and (reason := self._ending.reason(self.lost)) is not None:
            # A limit is found again by a session that goes on, which may have to open sets that this one has
            # opened and played no game of.
            if not self._ending.by_count:
                say_ended(self._event, reason)
            self._end(reason)

    def _end(self, reason: str) -> None:
        self.ended = reason
        self._schedule.close()
        self._progress.info(f"{reason}: no new deal set is begun, those that are open are finished")

    def _spec(self, game: Game) -> GameSpec:
        rules = self._rules[game.preset]
        rules_hash = self._rules_hashes[game.preset]
        key = self._event.key_of(game.set_number)
        return GameSpec(
            game=game.id,
            attempt=game.attempt,
            tournament=self.tournament.name,
            preset=game.preset,
            rules=rules,
            bots=game.seats,
            deal_set=game.deal_set,
            set_size=game.set_size,
            deck=deck_name(key, rules_hash, game.deck_number),
            seed=deck_seed(key, rules_hash, game.deck_number),
            salt=game_salt(key, game.id),
        )

    # -- what happens ---------------------------------------------------------------------------

    def _message(self, message: dict[str, Any]) -> None:
        if "finished" in message:
            self._finished(GameResult.from_line(message["finished"]))
        elif "cancelled" in message:
            self._ending.rolled_back(self._out.pop(message["cancelled"]))
            self._schedule.roll_back(message["cancelled"])
            self._progress.returned(message["cancelled"])
        elif "session" in message:
            session = message["session"]
            if session["open"]:
                self._bots.connected(session["process"])
            self._session_changed(session["bot"], session["open"])
        elif "proven" in message:
            self._bots.proven(message["proven"]["process"])
        elif "stale" in message:
            self._bots.recycle(message["stale"]["process"])
        elif "frozen" in message:
            self._thawed = asyncio.Event()
            self._progress.note(f"games stand still until there is room: {message['frozen']}")
            if self._stopping:  # what is under way will not finish
                self._stop_now()
        elif "thawed" in message:
            self._thawed.set()
            self._away = {bot: since + message["thawed"] for bot, since in self._away.items()}
            self._progress.note(f"there is room again after {message['thawed']:.0f} s: games go on")
        self._changed.set()

    def _finished(self, result: GameResult) -> None:
        del self._out[result.game]
        self._in_set[result.deal_set] += 1
        set_over = self._in_set[result.deal_set] == result.set_size
        if set_over:
            del self._in_set[result.deal_set]
        self._schedule.fix(result.game, result)
        self._fold.add(result)
        self._ending.finished(result)
        self._retirement.played(result.game)
        if set_over:
            self._retirement.look()
        self._progress.finished(result)

    def _session_changed(self, bot: str, is_open: bool) -> None:
        self._connected[bot] += 1 if is_open else -1
        if self._connected[bot] >= self._needed:
            self._away.pop(bot, None)
            self._seen.add(bot)
            self._take_part(bot, True)
        elif bot not in self._away:
            self._away[bot] = self._clock()
            self._take_part(bot, False)

    def _take_part(self, bot: str, there: bool) -> None:
        """In a ladder bots come and go: games that wait for one that has gone are given back."""
        if self.tournament.format is not Format.LADDER or bot in self.lost:
            return
        self._schedule.connected(bot, there)
        if not there:
            self._cancel_games_of(bot)

    def _cancel_games_of(self, bot: str) -> None:
        for game in list(self._out.values()):
            if bot in game.seats:
                self._host.cancel(game.id)

    def _lose(self, bot: str, why: str) -> None:
        """Have a bot take part in no further game; the others play on."""
        if bot in self.lost:
            return
        self.lost[bot] = why
        self._schedule.connected(bot, False)
        self._cancel_games_of(bot)
        self._changed.set()
        self._progress.lost(bot, why, [str(log) for log in self._logs_of(bot)])

    def _logs_of(self, bot: str) -> list[Path]:
        return [one.log for one in self._bots.all if one.bot.name == bot]

    # -- processes of bots ----------------------------------------------------------------------

    def starting(self, one: BotProcess) -> None:
        """See ``processes.Listener``."""
        self._host.token(one.token, one.bot.name, one.id)

    def crashed(self, one: BotProcess) -> None:
        """See ``processes.Listener``."""
        self.failures[one.bot.name] += 1
        self._host.crashed(one.id)

    def recycled(self, one: BotProcess) -> None:
        """See ``processes.Listener``."""
        self._host.revoke(one.token)

    def given_up(self, one: BotProcess) -> None:
        """See ``processes.Listener``."""
        self._lose(
            one.bot.name,
            f"bot {one.bot.name} (instance {one.instance}) failed {one.failures} times in a row, the last "
            f"time it {one.end}; its games are left out. Its output: {one.log}",
        )

    async def _sleep(self, seconds: float) -> None:
        """Wait so long for a bot; anew after a time in which the server stood still and let nobody in."""
        thawed = None
        while thawed is not self._thawed:
            thawed = self._thawed
            await thawed.wait()
            await asyncio.sleep(seconds)

    async def _watch_connections(self) -> None:
        """Name bots that are late, and give up those that stay away: games would wait for them for ever."""
        named: set[str] = set()
        bots = {bot.name: bot for bot in self.tournament.bots}
        ladder = self.tournament.format is Format.LADDER
        while True:
            await self._sleep(_LOOK_EVERY_S)
            now = self._clock()
            for bot, since in list(self._away.items()):
                logs = ", ".join(map(str, self._logs_of(bot)))
                output = f" Output: {logs}" if logs else ""
                state = f"bot {bot} has {self._connected[bot]} of the {self._needed} connections it needs"
                limit = self._patience(bots[bot])
                if (ladder and not self.ended) or bot in self.lost:
                    continue
                if now - since >= limit:
                    del self._away[bot]
                    self._lose(bot, f"{state}, for {limit:g} s; its games are left out.{output}")
                elif now - since >= self.late_s and bot not in named:
                    named.add(bot)
                    self._progress.note(f"{state}; the run waits for it.{output}")

    def _patience(self, bot: Bot) -> float:
        """For how many seconds a bot may be away: one that is launched for as long as a start may take it."""
        if not bot.remote:
            return max(self.away_s, bot.start_limit_s)
        return self.away_s if bot.name in self._seen else bot.start_limit_s

    # -- ratings --------------------------------------------------------------------------------

    def _standings(self, pools: Sequence[PoolRatings]) -> None:
        self._rated = pools
        self._progress.standings(pools)

    def _ladder_ratings(self) -> Ratings:
        presets = {choice.name: index for index, choice in enumerate(self.tournament.presets)}
        return {
            (presets[pool.preset], bot.bot): Rated(bot.rating, bot.error, bot.deal_sets)
            for pool in self._rated
            for component in pool.components
            for bot in component.bots
        }

    @contextmanager
    def _interruptible(self, work: asyncio.Task[None]) -> Iterator[None]:
        """Ctrl-C or SIGTERM once: no new games, those under way finish. Twice, or while games stand still,
        which may last for ever: stop now."""
        loop = asyncio.get_running_loop()
        self._stop_now = work.cancel

        def interrupt() -> None:
            now = self._stopping or not self._thawed.is_set()
            self._stopping = True
            if now:
                work.cancel()
                return
            for game in list(self._out):
                self._host.cancel(game)
            self._changed.set()
            self._progress.stopping("stopping when the games under way are finished; again to stop now")

        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            loop.add_signal_handler(number, interrupt)
        try:
            yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                if handler is not None:  # None: not one of Python's
                    signal.signal(number, handler)


async def _first_of(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run all until the first one ends, then cancel the others. Raises what the first one raises."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
