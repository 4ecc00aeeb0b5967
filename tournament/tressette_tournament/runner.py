"""Runs a tournament: starts the server and the bots, hands out games, and keeps what is done.

A game is committed by its result line, which the server has synced to the disk before it reports it. A run
can be stopped at any time, by Ctrl-C or by a crash, and started again on the same folder: games with a
result are not played again, games that were cut off are played again as their next attempt.

In the folder of a run::

    tournament.toml   the resolved tournament file
    event.key         the secret from which decks, handles and bot seeds are drawn (mode 0600); absent
                      when the file has a public ``seed``
    lock              held by the running runner
    results-*.jsonl, tricks-*.jsonl   the record
    logs/             operational log of the server, output of each bot
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from tressette.record.game import GameSpec
from tressette.record.reader import begun_attempts, read_results
from tressette.record.writer import free_writer
from tressette.rules.ruleset import RuleSet

from tressette_tournament.decks import KEY_BYTES, deck_salt, deck_seed, public_event_key
from tressette_tournament.local_host import LocalHost
from tressette_tournament.processes import BotProcess, BotProcesses
from tressette_tournament.results import GameResult
from tressette_tournament.schedule import Game, Schedule
from tressette_tournament.tournament_file import Bot, Tournament, dump

START_LIMIT_S: Final = 30.0
"""How long bots may take to connect before they are named as missing (the run goes on waiting)."""


class RunError(Exception):
    """A run that cannot begin or go on; the text is for the organiser."""


class Progress(Protocol):
    """Who is told how the run goes."""

    def begin(self, total: int, done: int) -> None:
        """There are ``total`` games, of which ``done`` were finished in earlier sessions."""

    def finished(self, result: GameResult) -> None:
        """A game has been committed."""

    def note(self, text: str) -> None:
        """Something the organiser should read."""


class Runner:
    """One session of one run."""

    def __init__(self, tournament: Tournament, progress: Progress) -> None:
        self.tournament = tournament
        self.folder = Path(tournament.output)
        self._progress = progress
        self._rules: Mapping[str, RuleSet] = {choice.name: choice.rules for choice in tournament.presets}
        self._tokens = {bot.name: secrets.token_urlsafe(24) for bot in tournament.bots}
        self._out: dict[str, Game] = {}
        self._lost: set[str] = set()
        self._connected: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self._stopping = False
        self._key: bytes
        self._schedule: Schedule
        self._host: LocalHost
        self._bots: BotProcesses

    async def run(self) -> bool:
        """Play until every game has a result; returns False if it was stopped before that.

        Raises RunError if the folder belongs to another tournament or another runner, HostFailed if the
        server fails, and what reading a damaged record raises.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder / "lock"):
            self._keep_tournament()
            self._key = self._event_key()
            done = [GameResult.from_line(line) for line in read_results(self.folder)]
            self._schedule = Schedule(
                self.tournament,
                done={result.game for result in done},
                attempts=begun_attempts(self.folder),
            )
            self._progress.begin(self._schedule.total_games, len(done))
            if self._schedule.finished:
                return True
            return await self._session()

    # -- the folder -----------------------------------------------------------------------------

    def _keep_tournament(self) -> None:
        path, text = self.folder / "tournament.toml", dump(self.tournament)
        if not path.exists():
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            raise RunError(
                f"{self.folder} holds a run of another tournament file (see {path}); choose another output"
            )

    def _event_key(self) -> bytes:
        if self.tournament.seed is not None:
            return public_event_key(self.tournament.seed)
        path = self.folder / "event.key"
        if not path.exists():
            with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
                file.write(secrets.token_hex(KEY_BYTES) + "\n")
                file.flush()
                os.fsync(file.fileno())
        return bytes.fromhex(path.read_text().strip())

    # -- one session ----------------------------------------------------------------------------

    async def _session(self) -> bool:
        tournament = self.tournament
        self._host = LocalHost(self.folder / "logs" / "server.log", self._message)
        address = await self._host.start(
            {
                "address": "127.0.0.1:0",
                "folder": str(self.folder),
                "writer": free_writer(self.folder),
                "key": self._key.hex(),
                "move_ms": tournament.move_ms,
                "illegal_retries": tournament.illegal_retries,
                "tokens": {token: name for name, token in self._tokens.items()},
            }
        )

        def environment(bot: Bot) -> Mapping[str, str]:
            return {
                "TRESSETTE_ADDRESS": address,
                "TRESSETTE_TOKEN": self._tokens[bot.name],
                "TRESSETTE_BOT_NAME": bot.name,
            }

        self._bots = BotProcesses(tournament.bots, self.folder / "logs" / "bots", environment, self._given_up)
        failed = asyncio.create_task(self._host.failed())
        play = asyncio.create_task(self._play())
        late = asyncio.create_task(self._name_late_bots())
        try:
            with self._interruptible(play):
                await self._bots.start()
                await asyncio.wait((play, failed), return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                failed.result()
        finally:
            for task in (play, failed, late):
                task.cancel()
            await asyncio.gather(play, failed, late, return_exceptions=True)
            await asyncio.gather(self._host.stop(), self._bots.stop())
        return self._schedule.finished

    async def _play(self) -> None:
        """Keep ``concurrency`` games with the host until all are done, or until told to stop."""
        while True:
            while not self._stopping and len(self._out) < self.tournament.concurrency:
                game = self._schedule.issue()
                if game is None:
                    break
                if self._lost.intersection(game.seats):
                    self._schedule.fix(game.id)
                    continue
                self._out[game.id] = game
                self._host.play(self._spec(game))
            if not self._out and (self._stopping or self._schedule.finished):
                return
            await self._changed.wait()
            self._changed.clear()

    def _spec(self, game: Game) -> GameSpec:
        rules = self._rules[game.preset]
        rules_hash = rules.hash()
        spec = GameSpec(
            game=game.id,
            attempt=game.attempt,
            tournament=self.tournament.name,
            preset=game.preset,
            rules=rules,
            bots=game.seats,
            deal_set=game.deal_set,
            set_size=game.set_size,
            deck="",
            seed=deck_seed(self._key, rules_hash, game.deck_number),
            salt=deck_salt(self._key, rules_hash, game.deck_number),
        )
        # Folders that were dealt from the same decks must name them alike, so the name is the commitment.
        return spec.with_deck(spec.commitment[:16])

    # -- what happens ---------------------------------------------------------------------------

    def _message(self, message: dict[str, Any]) -> None:
        if "finished" in message:
            result = GameResult.from_line(message["finished"])
            del self._out[result.game]
            self._schedule.fix(result.game)
            self._progress.finished(result)
        elif "cancelled" in message:
            del self._out[message["cancelled"]]
            self._schedule.fix(message["cancelled"])
        elif "session" in message:
            self._connected[message["session"]["bot"]] += 1 if message["session"]["open"] else -1
        elif "failed" in message:
            self._progress.note(f"the server cannot write the record: {message['failed']}")
        self._changed.set()

    def _given_up(self, one: BotProcess) -> None:
        """A bot that keeps ending takes part in no further game; the others play on."""
        self._progress.note(
            f"bot {one.bot.name} (instance {one.instance}) ended {one.starts} times, the last time with "
            f"status {one.status}; its games are left out. Its output: {one.log}"
        )
        self._lost.add(one.bot.name)
        for game in list(self._out.values()):
            if one.bot.name in game.seats:
                self._host.cancel(game.id)
        self._changed.set()

    async def _name_late_bots(self) -> None:
        await asyncio.sleep(START_LIMIT_S)
        for one in self._bots.all:
            if not self._connected[one.bot.name]:
                self._progress.note(f"bot {one.bot.name} has not connected yet. Its output: {one.log}")

    @contextmanager
    def _interruptible(self, play: asyncio.Task[None]) -> Iterator[None]:
        """Ctrl-C or SIGTERM once: no new games, those under way finish. Twice: stop now."""
        loop = asyncio.get_running_loop()

        def interrupt() -> None:
            if self._stopping:
                play.cancel()
                return
            self._stopping = True
            self._progress.note(f"stopping after {len(self._out)} games under way; again to stop now")
            for game in list(self._out):
                self._host.cancel(game)
            self._changed.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a run; raises RunError if another runner does."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"another runner is at work in {path.parent}") from None
        yield
