"""Runs a tournament: starts the server and the bots, hands out games, and keeps what is done.

A game is committed by its result line, which the server has synced to the disk before it reports it. A run
can be stopped at any time, by Ctrl-C or by a crash, and started again on the same folder: games with a
result are not played again, games that were cut off are played again as their next attempt.

A bot is **lost** when one of its processes has ended too often, or when it has been away for too long. Games
under way go on without it (the server plays its cards, a fault each); those not begun are **left out**: they
get no result, so a later session plays them. Nobody else is held up.

In the folder of a run::

    tournament.toml   the resolved tournament file; can itself be run
    event.key         the secret from which decks, handles and bot seeds are drawn (mode 0600); absent
                      when the file has a public ``seed``
    lock              held by the running runner (``run_lock``)
    server.lock       held by its server, which outlives a killed runner for a moment
    status.json       how the run stands (``status``)
    journal.jsonl     Swiss, knockout, ladder: who was paired
    results-*.jsonl, tricks-*.jsonl   the record
    logs/             operational log of the server, output of each bot
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Final

from tressette.record.game import GameSpec
from tressette.record.reader import begun_attempts
from tressette.record.writer import free_writer
from tressette.rules.ruleset import RuleSet

from tressette_tournament import run_lock
from tressette_tournament.decks import KEY_BYTES, deck_name, deck_seed, game_salt, public_event_key
from tressette_tournament.journal import Journal, read_rounds
from tressette_tournament.local_host import LocalHost
from tressette_tournament.processes import BotProcess, BotProcesses
from tressette_tournament.progress import Progress, State
from tressette_tournament.ratings import RatingFold
from tressette_tournament.results import GameResult, read_games
from tressette_tournament.schedule import Game, Schedule
from tressette_tournament.standings import rate_now_and_then
from tressette_tournament.tournament_file import Format, Tournament, differences, dump

LATE_S: Final = 30.0
"""How long a bot may take to connect before it is named as missing (the run goes on waiting)."""
LOST_S: Final = 300.0
"""How long a bot may be away, at the start or later, before its games are left out."""
JOURNAL: Final = "journal.jsonl"
"""The file in the folder of a run in which Swiss, knockout and ladder note who was paired."""
_LOOK_EVERY_S: Final = 0.2
_SERVER_GONE_S: Final = 15.0


class RunError(Exception):
    """A run that cannot begin or go on; the text is for the organiser."""


class Outcome(StrEnum):
    """How a session of a run ended. Every game has a result; it was stopped before that; or all is done
    but the games that were left out."""

    COMPLETE = State.COMPLETE
    STOPPED = State.STOPPED
    INCOMPLETE = State.INCOMPLETE


class Runner:
    """One session of one run. lost: the bots that take part no more; left_out: games without a result
    because of them. late_s, lost_s: as LATE_S and LOST_S, may be changed at any time."""

    def __init__(self, tournament: Tournament, progress: Progress) -> None:
        self.tournament = tournament
        self.folder = Path(tournament.output)
        self.lost: set[str] = set()
        self.left_out = 0
        self.late_s, self.lost_s = LATE_S, LOST_S
        self._progress = progress
        self._rules: Mapping[str, RuleSet] = {choice.name: choice.rules for choice in tournament.presets}
        # A game needs a process for each seat of a bot.
        self._needed = max(tournament.table(choice).most_seats for choice in tournament.presets)
        self._ratings = RatingFold()
        self._out: dict[str, Game] = {}
        self._connected: Counter[str] = Counter()
        self._away: dict[str, float] = {}  # since when, in seconds of the monotonic clock
        self._changed = asyncio.Event()
        self._stopping = False
        self._key: bytes
        self._schedule: Schedule
        self._host: LocalHost
        self._bots: BotProcesses

    async def run(self) -> Outcome:
        """Play until no game is left to play, or until stopped.

        Raises RunError if the folder belongs to another tournament or another runner, HostFailed if the
        server fails, OSError, and what reading a damaged record raises.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (
            (self.folder / run_lock.NAME).open("a") as lock,
            (self.folder / "server.lock").open("a") as server_lock,
        ):
            if not await run_lock.take(lock):
                raise RunError(f"another runner is at work in {self.folder}")
            await self._earlier_server_gone(server_lock)
            self._keep_tournament()
            self._key = self._event_key()
            with self._journal() as journal:
                self._schedule = Schedule(
                    self.tournament,
                    done=self._rated(read_games(self.folder)),
                    attempts=begun_attempts(self.folder),
                    journal=read_rounds(self.folder / JOURNAL),
                    write=None if journal is None else journal.write,
                )
                self._progress.begin(self._schedule.total_games, self._schedule.done_games)
                # Told while the folder is still this runner's own.
                try:
                    if not self._schedule.finished:
                        await self._session(server_lock.fileno())
                except Exception as error:
                    self._progress.ended(State.FAILED, str(error))
                    raise
                except BaseException:  # cancelled
                    self._progress.ended(State.STOPPED, "")
                    raise
                with suppress(ValueError):  # of which the final tables tell
                    self._progress.standings(self._ratings.rate())
                outcome = self._outcome()
                self._progress.ended(State(outcome), self._reason(outcome))
                return outcome

    def _rated(self, results: Iterable[GameResult]) -> Iterator[GameResult]:
        """The same results, each counted for the standings."""
        for result in results:
            self._ratings.add(result)
            yield result

    def _outcome(self) -> Outcome:
        if not self._schedule.finished:
            return Outcome.STOPPED
        return Outcome.COMPLETE if self._schedule.complete else Outcome.INCOMPLETE

    def _reason(self, outcome: Outcome) -> str:
        if outcome is Outcome.INCOMPLETE:
            return f"{self.left_out} games are left out, because of {', '.join(sorted(self.lost))}"
        return ""

    def _journal(self) -> Journal | nullcontext[None]:
        if self.tournament.format in (Format.SWISS, Format.KNOCKOUT, Format.LADDER):
            return Journal(self.folder / JOURNAL)
        return nullcontext()

    # -- the folder -----------------------------------------------------------------------------

    async def _earlier_server_gone(self, lock: IO[str]) -> None:
        """Wait for the server of a runner that was killed: what it still writes must be read first."""
        give_up_at = time.monotonic() + _SERVER_GONE_S
        while not run_lock.locked(lock):
            if time.monotonic() > give_up_at:
                raise RunError(f"the server of an earlier runner is still at work in {self.folder}")
            await asyncio.sleep(0.05)

    def _keep_tournament(self) -> None:
        path, text = self.folder / "tournament.toml", dump(replace(self.tournament, output="."))
        if not path.exists():
            if self._has_games():
                raise RunError(
                    f"{self.folder} has games but no tournament.toml, which says of what tournament: put it "
                    "back, or choose another output"
                )
            _write(path, text, 0o644)
            return
        try:
            kept = path.read_text(encoding="utf-8")
            different = differences(kept, text)
        except UnicodeDecodeError:
            raise RunError(f"{path} is damaged: not UTF-8 text") from None
        except (ValueError, RecursionError) as error:
            raise RunError(f"{path} is damaged: not TOML: {error}") from None
        if different:
            lines = [f"  {key}: {_shown(old)} there, {_shown(new)} now" for key, old, new in different]
            raise RunError(
                f"{self.folder} holds a run of another tournament file; choose another output, or undo what "
                f"differs from {path}:\n" + "\n".join(lines)
            )
        if kept != text:  # it was moved
            _write(path, text, 0o644)

    def _has_games(self) -> bool:
        """Whether the folder holds results, or games that were begun."""
        records = [*self.folder.glob("results-*.jsonl"), *self.folder.glob("tricks-*.jsonl")]
        return any(record.stat().st_size for record in records)

    def _event_key(self) -> bytes:
        if self.tournament.seed is not None:
            return public_event_key(self.tournament.seed)
        path = self.folder / "event.key"
        if not path.exists():
            if self._has_games():
                raise RunError(
                    f"{path} is missing, from which the decks of this run are drawn: with a new one the "
                    "games of a deal set would have different decks. Put it back, or choose another output"
                )
            _write(path, secrets.token_hex(KEY_BYTES) + "\n", 0o600)
        try:
            key = bytes.fromhex(path.read_text(encoding="ascii"))
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES:
            raise RunError(f"{path} is damaged: it must hold {KEY_BYTES} bytes in hex")
        return key

    # -- one session ----------------------------------------------------------------------------

    async def _session(self, server_lock: int) -> None:
        self._host = LocalHost(self.folder / "logs" / "server.log", self._message, keep_open=(server_lock,))
        self._bots = BotProcesses(
            self.tournament.bots, self.folder / "logs" / "bots", self._environment, self
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
        tournament = self.tournament
        await self._host.start(
            {
                "folder": str(self.folder),
                "writer": free_writer(self.folder),
                "key": self._key.hex(),
                "move_ms": tournament.clock.move_ms,
                "illegal_retries": tournament.faults.illegal_retries,
            }
        )
        if self._stopping:
            return
        self._away = dict.fromkeys((bot.name for bot in tournament.bots), time.monotonic())
        await self._bots.start()
        await _first_of(
            self._play(),
            self._host.failed(),
            self._bots.failed(),
            self._watch_connections(),
            rate_now_and_then(self._ratings.rate, self._progress.standings, self._progress.note),
        )

    def _environment(self, one: BotProcess) -> Mapping[str, str]:
        return {
            "TRESSETTE_ADDRESS": self._host.local_address,
            "TRESSETTE_TOKEN": one.token,
            "TRESSETTE_BOT_NAME": one.bot.name,
        }

    async def _play(self) -> None:
        """Keep ``concurrency`` games with the host until all are done, or until told to stop."""
        while True:
            while not self._stopping and len(self._out) < self.tournament.concurrency:
                game = self._schedule.issue()
                if game is None:
                    break
                if self.lost.intersection(game.seats):
                    self._schedule.fix(game.id, None)
                    self.left_out += 1
                    await asyncio.sleep(0)  # there may be a million of them
                    continue
                self._out[game.id] = game
                self._host.play(self._spec(game))
                self._progress.issued(game.id, game.preset, game.seats)
            if not self._out and (self._stopping or self._schedule.finished):
                return
            await self._changed.wait()
            self._changed.clear()

    def _spec(self, game: Game) -> GameSpec:
        rules = self._rules[game.preset]
        rules_hash = rules.hash()
        return GameSpec(
            game=game.id,
            attempt=game.attempt,
            tournament=self.tournament.name,
            preset=game.preset,
            rules=rules,
            bots=game.seats,
            deal_set=game.deal_set,
            set_size=game.set_size,
            deck=deck_name(self._key, rules_hash, game.deck_number),
            seed=deck_seed(self._key, rules_hash, game.deck_number),
            salt=game_salt(self._key, game.id),
        )

    # -- what happens ---------------------------------------------------------------------------

    def _message(self, message: dict[str, Any]) -> None:
        if "finished" in message:
            result = GameResult.from_line(message["finished"])
            del self._out[result.game]
            self._schedule.fix(result.game, result)
            self._ratings.add(result)
            self._progress.finished(result)
        elif "cancelled" in message:
            del self._out[message["cancelled"]]
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
        self._changed.set()

    def _session_changed(self, bot: str, is_open: bool) -> None:
        self._connected[bot] += 1 if is_open else -1
        there = self._connected[bot] >= self._needed
        if self.tournament.format is Format.LADDER:
            self._schedule.connected(bot, there and bot not in self.lost)
        if there:
            self._away.pop(bot, None)
        else:
            self._away.setdefault(bot, time.monotonic())

    def starting(self, one: BotProcess) -> None:
        """A bot process is about to be started."""
        self._host.token(one.token, one.bot.name, one.id)

    def crashed(self, one: BotProcess) -> None:
        """A bot process has failed."""
        self._host.crashed(one.id)

    def recycled(self, one: BotProcess) -> None:
        """A bot process is about to be replaced."""
        self._host.revoke(one.token)

    def given_up(self, one: BotProcess) -> None:
        """A bot has failed too often."""
        self._lose(
            one.bot.name,
            f"bot {one.bot.name} (instance {one.instance}) failed {one.failures} times in a row, the last "
            f"time it {one.end}; its games are left out. Its output: {one.log}",
        )

    def _lose(self, bot: str, why: str) -> None:
        """Have a bot take part in no further game; the others play on."""
        if bot in self.lost:
            return
        self.lost.add(bot)
        self._schedule.connected(bot, False)
        for game in list(self._out.values()):
            if bot in game.seats:
                self._host.cancel(game.id)
        self._changed.set()
        logs = [str(one.log) for one in self._bots.all if one.bot.name == bot]
        self._progress.lost(bot, why, logs)

    async def _watch_connections(self) -> None:
        """Name bots that are late, and give up those that stay away: games would wait for them for ever."""
        named: set[str] = set()
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            now = time.monotonic()
            for bot, since in list(self._away.items()):
                state = f"bot {bot} has {self._connected[bot]} of the {self._needed} connections it needs"
                logs = ", ".join(str(one.log) for one in self._bots.all if one.bot.name == bot)
                if now - since >= self.lost_s:
                    del self._away[bot]
                    why = f"{state}, for {self.lost_s:g} s; its games are left out. Output: {logs}"
                    self._lose(bot, why)
                elif now - since >= self.late_s and bot not in named | self.lost:
                    named.add(bot)
                    self._progress.note(f"{state}; the run waits for it. Output: {logs}")

    @contextmanager
    def _interruptible(self, work: asyncio.Task[None]) -> Iterator[None]:
        """Ctrl-C or SIGTERM once: no new games, those under way finish. Twice: stop now."""
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            if self._stopping:
                work.cancel()
                return
            self._stopping = True
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


def _shown(value: object) -> str:
    return "absent" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _write(path: Path, text: str, mode: int) -> None:
    """Make a file that after a crash is there as a whole or not at all."""
    draft = path.with_name(path.name + ".new")
    with open(draft, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
