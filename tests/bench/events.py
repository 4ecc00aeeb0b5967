"""One session of a tournament, measured: ``python events.py stub|runner|bare FILE GAMES``.

FILE is a tournament file. ``stub``: through the runner, against a host in this process that plays nothing and
answers each game at once with a line as the server writes it, which it records; ends like a killed runner
after GAMES results, or normally if there are fewer. ``runner``: through the runner and the real host, to the
end. ``bare``: the same games in the same order through the same host and bots, driven by a loop that has
nothing to do but to write lines that are ready and to count those that come back. Prints one JSON object, see
``Measured``.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

import orjson
from tressette.record.decks import deck_name, deck_seed, game_salt, public_event_key
from tressette.record.game import GameSpec, commitment
from tressette.record.writer import Record
from tressette.rules.ruleset import RuleSet
from tressette_bot.bots import REFERENCE_BOTS
from tressette_tournament.local_host import LocalHost
from tressette_tournament.processes import BotProcess, BotProcesses
from tressette_tournament.progress import Several, State
from tressette_tournament.ratings import PoolRatings, RatingFold
from tressette_tournament.results import GameResult
from tressette_tournament.runner import Runner
from tressette_tournament.schedule import Schedule
from tressette_tournament.status import StatusFile
from tressette_tournament.tournament_file import Tournament, load

AT: Final = (0.01, 0.1, 0.5, 1.0)
"""When memory is looked at, as shares of GAMES."""
_WARM: Final = 0.2
_LOOK_EVERY_S: Final = 0.01


@dataclass
class Measured:
    """start_s: from before FILE is read to the first game issued (bare: until all bots are there). games:
    finished in this session; done: before it. Of those that come after the first fifth, in which bots start:
    timed: how many they are, play_s: seconds from the result before to the last, own_cpu_s: that this process
    took meanwhile, without what the stub did, others_cpu_s: server and bots. rss_kb: of this process
    before anything is read, and then by the share of games; server_kb: of the server; peak_kb: the most that
    this process had. block_ms: the longest time for which the event loop answered nobody. standings_s: spent
    on ratings in all; standings_ms: the most for one pool."""

    start_s: float = 0.0
    games: int = 0
    done: int = 0
    timed: int = 0
    play_s: float = 0.0
    own_cpu_s: float = 0.0
    others_cpu_s: float = 0.0
    rss_kb: dict[str, int] = field(default_factory=dict)
    server_kb: dict[str, int] = field(default_factory=dict)
    peak_kb: int = 0
    block_ms: float = 0.0
    standings_s: float = 0.0
    standings_ms: float = 0.0


def others_cpu_s() -> float:
    """The CPU time of all processes that this one has started, and those have."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # gone in the meantime
            fields = stat.read_text().rpartition(")")[2].split()
            process = int(stat.parent.name)
            parents[process], ticks[process] = int(fields[1]), int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(ticks[one] for one in ours - {os.getpid()}) / os.sysconf("SC_CLK_TCK")


def resident_kb(process: str = "self") -> int:
    """How much memory of a process is in use and not swapped out."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


class Stopwatch:
    """Takes the times of the games after the first fifth of so many."""

    def __init__(self, measured: Measured, expected: int) -> None:
        self._measured = measured
        self._expected = expected
        self._warm = round(_WARM * expected)
        self._since = (0.0, 0.0)
        self._others_s = 0.0
        self.elsewhere_s = 0.0
        """CPU time of this process that does not count."""

    def finished(self) -> None:
        measured, now = self._measured, (time.perf_counter(), time.process_time() - self.elsewhere_s)
        measured.games += 1
        if measured.games <= self._warm:
            self._since = now
        else:
            measured.timed = measured.games - self._warm
            measured.play_s, measured.own_cpu_s = now[0] - self._since[0], now[1] - self._since[1]
        if measured.games == self._warm:
            self._others_s = others_cpu_s()
        elif measured.games == self._expected:
            measured.others_cpu_s = others_cpu_s() - self._others_s


def tell(measured: Measured) -> None:
    measured.peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(asdict(measured)), flush=True)


class Watch:
    """Progress that takes the times of a session. expected: games after which ``enough`` is called."""

    def __init__(self, measured: Measured, began: float, expected: int, enough: Callable[[], None]) -> None:
        self._measured = measured
        self._began = began
        self._enough = enough
        self._expected = expected
        self._marks = {round(share * expected): f"{share:.0%}" for share in AT}
        self.stopwatch = Stopwatch(measured, expected)
        self.server = ""

    def begin(self, total: int | None, done: int) -> None:
        self._measured.done = done

    def issued(self, game: str, preset: str, seats: tuple[str, ...]) -> None:
        if not self._measured.start_s:
            self._measured.start_s = time.perf_counter() - self._began

    def finished(self, result: GameResult) -> None:
        measured = self._measured
        self.stopwatch.finished()
        if mark := self._marks.get(measured.games):
            measured.rss_kb[mark] = resident_kb()
            if self.server:
                measured.server_kb[mark] = resident_kb(self.server)
        if measured.games == self._expected:
            self._enough()

    def returned(self, game: str) -> None:
        raise AssertionError(f"{game} was not played")

    def standings(self, pools: Sequence[PoolRatings]) -> None:
        pass

    def lost(self, bot: str, why: str, logs: Sequence[str] = ()) -> None:
        raise AssertionError(why)

    def note(self, text: str) -> None:
        print(text, file=sys.stderr)

    def info(self, text: str) -> None:
        pass

    def stopping(self, text: str) -> None:
        pass

    def ended(self, state: State, reason: str) -> None:
        pass


def time_standings(measured: Measured) -> None:
    """Note how long the ratings of each pool take while a session goes on."""
    inner = RatingFold.rate_each

    def rate_each(self: RatingFold) -> Iterator[PoolRatings]:
        pools = inner(self)
        while True:
            began = time.perf_counter()
            pool = next(pools, None)
            took = time.perf_counter() - began
            measured.standings_s += took
            measured.standings_ms = max(measured.standings_ms, took * 1000)
            if pool is None:
                return
            yield pool

    RatingFold.rate_each = rate_each  # type: ignore[method-assign]


async def look(measured: Measured) -> NoReturn:
    """Note for how long the event loop leaves others waiting."""
    while True:
        before = time.perf_counter()
        await asyncio.sleep(_LOOK_EVERY_S)
        late = time.perf_counter() - before - _LOOK_EVERY_S
        measured.block_ms = max(measured.block_ms, late * 1000)


# --- a host that plays nothing ---------------------------------------------------------------------


class StubHost(LocalHost):
    """Has every bot there, and answers games by chance."""

    tournament: Tournament
    watch: Watch

    async def start(self, config: dict[str, Any]) -> None:
        self._record = Record(Path(config["folder"]), config["writer"])
        self._rules: Mapping[str, RuleSet] = {one.name: one.rules for one in self.tournament.presets}
        self._hashes = {name: rules.hash() for name, rules in self._rules.items()}
        self._rng = random.Random(config["writer"])

    async def failed(self) -> None:
        for bot in self.tournament.bots:
            for _ in range(bot.instances):
                self._on_message({"session": {"bot": bot.name, "process": "", "open": True}})
        await asyncio.Event().wait()

    async def stop(self) -> None:
        self._record.close()

    def _send(self, **message: Any) -> None:
        # What the runner would do for a real one is done and counts as its own.
        line = json.dumps(message).encode() + b"\n"
        if "play" in message:
            asyncio.get_running_loop().call_soon(self._answer, line)

    def _answer(self, line: bytes) -> None:
        began = time.process_time()
        answer = orjson.dumps({"finished": self._played(orjson.loads(line)["play"])})
        self.watch.stopwatch.elsewhere_s += time.process_time() - began
        self._on_message(json.loads(answer))

    def _played(self, game: Mapping[str, Any]) -> dict[str, Any]:
        rules = self._rules[game["preset"]]
        sides = [[game["bots"][seat] for seat in rules.seats_of(side)] for side in range(rules.side_count)]
        # Strengths differ, and a deck has luck for each seat.
        strength = [sum(map(len, side)) + self._rng.gauss(0, 4) for side in sides]
        points = [max(0, round(60 + 6 * one)) for one in strength]
        fields: dict[str, Any] = {
            **{
                name: game[name] for name in ("game", "attempt", "tournament", "deal_set", "set_size", "deck")
            },
            "preset": game["preset"],
            "rules_hash": self._hashes[game["preset"]],
            "objective": str(rules.objective),
            "commitment": commitment(bytes.fromhex(game["seed"]), bytes.fromhex(game["salt"])),
            "bots": game["bots"],
            "sides": sides,
            "points": points,
            "ranks": [1 + sum(other > one for other in points) for one in points],
            "deals": 1,
            "termination": "played_out",
            "forfeit": None,
            "offender": None,
            "faults": [],
            "duration_ms": 1000,
            "ended_unix_ms": round(time.time() * 1000),
        }
        self._record.trick_line("match", game=game["game"], attempt=game["attempt"], bots=game["bots"])
        self._record.result_line(**fields)
        self._record.flush()
        return fields


async def with_stub(event: Tournament, began: float, measured: Measured, games: int) -> None:
    """The runner against the stub."""

    def killed() -> None:
        tell(measured)
        os._exit(0)

    StubHost.tournament = event
    StubHost.watch = watch = Watch(measured, began, games, killed)
    await run(event, measured, watch, StubHost, lambda bots, *rest: BotProcesses((), *rest))


async def run(
    event: Tournament,
    measured: Measured,
    watch: Watch,
    host: Callable[..., LocalHost],
    processes: Callable[..., BotProcesses],
) -> None:
    progress = Several(watch, StatusFile(Path(event.output), event.name))
    time_standings(measured)
    looking = asyncio.create_task(look(measured))
    await Runner(event, progress, host=host, processes=processes).run()
    looking.cancel()


# --- the real one ----------------------------------------------------------------------------------


async def with_runner(event: Tournament, began: float, measured: Measured, games: int) -> None:
    """The runner with the server and bots."""
    watch = Watch(measured, began, games, lambda: None)

    class Watched(LocalHost):
        async def start(self, config: dict[str, Any]) -> None:
            await super().start(config)
            assert self._process is not None
            watch.server = str(self._process.pid)

    await run(event, measured, watch, Watched, BotProcesses)


class BareHost(LocalHost):
    """Takes lines that are ready, and counts results without a look at them."""

    def __init__(self, log: Path, lines: Sequence[bytes], bots: int, stopwatch: Stopwatch) -> None:
        super().__init__(log, self._message)
        self._left = len(lines)
        self._lines = iter(lines)
        self._sessions = bots
        self._stopwatch = stopwatch
        self.bots: BotProcesses
        self.over = asyncio.Event()
        self.all_there = asyncio.Event()

    def next_game(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        line = next(self._lines, None)
        if line is not None:
            self._process.stdin.write(line)

    def _message(self, message: dict[str, Any]) -> None:
        if "session" in message:
            self.bots.connected(message["session"]["process"])
            self._sessions -= 1
            if self._sessions == 0:
                self.all_there.set()

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while (line := await lines.readline()).endswith(b"\n"):
            if line.startswith(b'{"finished"'):
                self.next_game()
                self._stopwatch.finished()
                self._left -= 1
                if self._left == 0:
                    self.over.set()
            else:
                self._on_message(json.loads(line))


class Bare:
    """What processes tell, handed on to the host (``processes.Listener``)."""

    def __init__(self, host: BareHost) -> None:
        self._host = host

    def environment(self, one: BotProcess) -> Mapping[str, str]:
        return {
            "TRESSETTE_ADDRESS": self._host.local_address,
            "TRESSETTE_TOKEN": one.token,
            "TRESSETTE_BOT_NAME": one.bot.name,
        }

    def starting(self, one: BotProcess) -> None:
        self._host.token(one.token, one.bot.name, one.id)

    def crashed(self, one: BotProcess) -> None:
        raise AssertionError(f"{one.id} {one.end}")

    def recycled(self, one: BotProcess) -> None:
        raise AssertionError(one.id)

    def given_up(self, one: BotProcess) -> None:
        raise AssertionError(one.id)


def lines_of(event: Tournament) -> Iterator[bytes]:
    """Every game of an event with public decks, as it is told to the server."""
    assert event.seed is not None
    key = public_event_key(event.seed)
    rules = {choice.name: choice.rules for choice in event.presets}
    hashes = {choice.name: choice.rules.hash() for choice in event.presets}
    schedule = Schedule(event)
    while (game := schedule.issue()) is not None:
        spec = GameSpec(
            game=game.id,
            attempt=game.attempt,
            tournament=event.name,
            preset=game.preset,
            rules=rules[game.preset],
            bots=game.seats,
            deal_set=game.deal_set,
            set_size=game.set_size,
            deck=deck_name(key, hashes[game.preset], game.deck_number),
            seed=deck_seed(key, hashes[game.preset], game.deck_number),
            salt=game_salt(key, game.id),
        )
        yield orjson.dumps({"play": spec.to_json()}) + b"\n"
        schedule.fix(game.id, None)


async def without_runner(event: Tournament, began: float, measured: Measured, games: int) -> None:
    """A loop in the place of the runner."""
    lines = list(lines_of(event))
    folder = Path(event.output)
    processes = sum(bot.instances for bot in event.bots)
    host = BareHost(folder / "logs" / "server.log", lines, processes, Stopwatch(measured, len(lines)))
    bare = Bare(host)
    host.bots = BotProcesses(event.bots, folder / "logs" / "bots", bare.environment, bare)
    try:
        await host.start(
            {"folder": str(folder), "writer": "0001", "key": "00" * 32, "move_ms": event.clock.move_ms}
        )
        await host.bots.start()
        await host.all_there.wait()
        measured.start_s = time.perf_counter() - began
        for _ in range(event.concurrency):
            host.next_game()
        await host.over.wait()
    finally:
        host.bots.let_end()
        await host.stop()
        await host.bots.stop()


def main(mode: str, file: str, games: int) -> None:
    measured = Measured()
    measured.rss_kb["start"] = resident_kb()
    began = time.perf_counter()
    event = load(Path(file), reference_bots=REFERENCE_BOTS)
    session = {"stub": with_stub, "runner": with_runner, "bare": without_runner}[mode]
    asyncio.run(session(event, began, measured, games))
    tell(measured)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
