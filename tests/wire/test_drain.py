"""How an open arena stops: health first, games played out or suspended, and taken up by the next server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from support.ports import lasting_address
from support.processes import LIMIT_S, Lines, end, run, start
from support.streams import Client, connected, first_choice, has_ended, hello, serving, true_in_time
from support.tables import game_spec
from tressette.play.suspend import FILE
from tressette.record.reader import read_results
from tressette.record.replay import read_games, replay_game
from tressette.v1 import arena_service_pb2 as pb
from tressette.wire.drain import Stopping
from tressette_bot import play
from tressette_bot.bots import REFERENCE_BOTS

pytestmark = pytest.mark.asyncio(loop_scope="session")

PRESET = ("--preset", "traversone-003-21-duplicate")  # one deal, ten turns for each of four
PATIENT = ("--move-ms", "600000", "--grace-s", "600")
NAMES = ("a", "b", "c", "d")
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


# -- bots that remember ---------------------------------------------------------------------------------


@dataclass
class Bot:
    """Plays first choices over one stream after the other. quiet: it answers no turn; positions: what it has
    of each match under way; ended: the handles of those that are over; drains: how often it was told."""

    name: str
    quiet: bool = False
    welcome: pb.Welcome = field(default_factory=pb.Welcome)
    positions: dict[str, int] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    refused: list[pb.Error] = field(default_factory=list)
    drains: int = 0
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    async def connect(self, client: Client, matches: int) -> None:
        """Say Hello, as the session of before if there was one."""
        known = [pb.MatchPosition(handle=handle, last_event=last) for handle, last in self.positions.items()]
        self.welcome = await client.greet(
            self.name, max_matches=matches, resume_token=self.welcome.resume_token, positions=known
        )

    async def play(self, client: Client) -> pb.Ending:
        """Play until the arena ends the session."""
        while True:
            response = await client.receive()
            kind = response.WhichOneof("message")
            if kind == "ending":
                await client.close()
                return response.ending
            if kind == "drain":
                self.drains += 1
            else:
                assert kind == "batch", response
                await self._take(client, response.batch)
            self.heard.set()

    async def _take(self, client: Client, batch: pb.Batch) -> None:
        self.refused += batch.errors
        for update in batch.updates:
            known = self.positions.get(update.handle, 0)
            assert update.first_event == known + 1 or not update.events, "none is missed, none comes twice"
            self.positions[update.handle] = known + len(update.events)
            if has_ended(update):
                del self.positions[update.handle]
                self.ended.append(update.handle)
        turns = [update for update in batch.updates if update.HasField("turn")]
        if turns and not self.quiet:
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # the Ending tells
                await client.answer(*map(first_choice, turns))

    async def until_in(self, matches: int) -> None:
        """Wait until it has seen so many matches."""
        async with asyncio.timeout(LIMIT_S):
            while len(self.positions) < matches:
                self.heard.clear()
                await self.heard.wait()


@contextlib.asynccontextmanager
async def playing(
    address: str, bots: Sequence[Bot], matches: int = 1
) -> AsyncIterator[list[asyncio.Task[pb.Ending]]]:
    """The bots, connected and at play; their tasks end with their Endings."""
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(address)) for _ in bots]
        for bot, client in zip(bots, clients, strict=True):
            await bot.connect(client, matches)
        tasks = [asyncio.create_task(bot.play(client)) for bot, client in zip(bots, clients, strict=True)]
        try:
            yield tasks
        finally:
            for task in tasks:
                task.cancel()
            # What went wrong with a bot says more than that a test waited for it in vain.
            for error in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(error, Exception):
                    raise error


async def endings(tasks: Sequence[asyncio.Task[pb.Ending]]) -> set[int]:
    async with asyncio.timeout(LIMIT_S):
        return {ending.reason for ending in await asyncio.gather(*tasks)}


# -- servers ------------------------------------------------------------------------------------------


@dataclass
class Served:
    process: asyncio.subprocess.Process
    log: Lines
    address: str

    async def ended(self) -> tuple[int, list[dict[str, Any]]]:
        """Its status, and all that it has logged."""
        async with asyncio.timeout(LIMIT_S):
            _, rest = await self.process.communicate()
        assert self.process.returncode is not None
        lines = [json.loads(line) for line in rest.splitlines()]
        return self.process.returncode, [*self.log.seen, *lines]


@contextlib.asynccontextmanager
async def served(*options: str, address: str = "127.0.0.1:0") -> AsyncIterator[Served]:
    process = await start("-m", "tressette", "serve", "--address", address, "--log-format", "json", *options)
    try:
        log = Lines(process.stderr)
        yield Served(process, log, (await log.until("event", "listening"))["address"])
    finally:
        await end(process)


async def health_of(address: str, watching: asyncio.Event) -> list[int]:
    """Every status that a watch of the whole server says until it ends; sets ``watching`` at the first."""
    found = []
    async with grpc.aio.insecure_channel(address) as channel:
        async for response in health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest()):
            found.append(response.status)
            watching.set()
    return found


def games(folder: Path) -> list[tuple[str, int]]:
    """(game, attempt) of every result; all of them as the rules want them, none twice."""
    found = Counter(line["game"] for line in read_results(folder))
    assert all(count == 1 for count in found.values()), found
    replayed = list(read_games(folder))
    for game in replayed:
        replay_game(game)
    assert {game.opening["game"] for game in replayed} == set(found)
    return [(game.opening["game"], game.opening["attempt"]) for game in replayed]


# -- draining -----------------------------------------------------------------------------------------


async def test_a_draining_server_takes_nobody_new_but_lets_bots_come_back() -> None:
    async with serving(grace_s=60) as arena:
        lost = await arena.connect()
        welcome = await lost.greet("a")
        (stream,) = arena.server.service.streams
        await arena.bots("b", "c", "d")
        arena.arena.submit(game_spec())
        await true_in_time(lambda: bool(arena.arena.games))
        arena.server.drain()
        stranger = await arena.connect()
        await stranger.send(hello("e"))
        assert (await stranger.ending()).reason == pb.ERROR_REASON_SHUTTING_DOWN
        stream.cancel()  # what grpc does when a client has vanished
        await true_in_time(lambda: not arena.arena.sessions["a"][0].attached)
        again = await arena.connect()
        assert (await again.greet("a", resume_token=welcome.resume_token)).resumed


async def test_every_bot_is_told_of_the_drain_and_of_the_end_of_its_match() -> None:
    async with serving() as arena:
        bots = [Bot(name) for name in NAMES]
        async with playing(arena.address, bots) as tasks:
            arena.arena.submit(game_spec())
            await true_in_time(lambda: bool(arena.arena.games))
            arena.server.drain()
            async with asyncio.timeout(LIMIT_S):
                await arena.arena.until_idle()
            # The last events are still to be sent when it is told to stop.
            await arena.server.stop(LIMIT_S)
            assert await endings(tasks) == {pb.ERROR_REASON_SHUTTING_DOWN}
        assert [(bot.drains, len(bot.ended), bot.positions) for bot in bots] == [(1, 1, {})] * 4


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_games_are_played_out(tmp_path: Path, by: signal.Signals) -> None:
    bots = [Bot(name) for name in NAMES]
    async with served(*PRESET, *PATIENT, "--record", str(tmp_path)) as server:
        watching = asyncio.Event()
        health = asyncio.create_task(health_of(server.address, watching))
        async with asyncio.timeout(LIMIT_S):
            await watching.wait()
        async with playing(server.address, bots, matches=8) as tasks:
            for _ in range(10):
                await server.log.until("event", "game finished")
            server.process.send_signal(by)
            assert await endings(tasks) == {pb.ERROR_REASON_SHUTTING_DOWN}
            status, log = await server.ended()
        assert status == 0
        assert await health == [SERVING, NOT_SERVING]
    assert [bot.drains for bot in bots] == [1] * 4
    assert [bot.positions for bot in bots] == [{}] * 4, "every match that began has ended"
    assert not (tmp_path / FILE).exists()
    assert len(games(tmp_path)) == len(bots[0].ended) >= 10
    events = [line["event"] for line in log]
    assert events.index("draining") < events.index("stopping")
    assert {line["ending"] for line in log if line["event"] == "stream ended"} == {"SHUTTING_DOWN"}


async def test_without_games_it_ends_at_once() -> None:
    async with served(*PRESET) as server, playing(server.address, [Bot("a")]) as tasks:
        server.process.send_signal(signal.SIGTERM)
        assert await endings(tasks) == {pb.ERROR_REASON_SHUTTING_DOWN}
        assert (await server.ended())[0] == 0


# -- suspending ---------------------------------------------------------------------------------------


async def test_games_are_suspended_at_the_limit_and_go_on_after_a_restart(tmp_path: Path) -> None:
    options = (*PRESET, *PATIENT, "--record", str(tmp_path))
    bots = [Bot(name) for name in NAMES]
    address = lasting_address()
    async with (
        served(*options, "--drain-s", "1", address=address) as server,
        playing(server.address, bots, 4) as tasks,
    ):
        for _ in range(4):
            await server.log.until("event", "game finished")
        bots[1].quiet = True
        server.process.send_signal(signal.SIGTERM)
        assert await endings(tasks) == {pb.ERROR_REASON_SHUTTING_DOWN}
        status, log = await server.ended()
    assert status == 0
    (line,) = (line for line in log if line["event"] == "games suspended")
    file = tmp_path / FILE
    assert file.stat().st_mode & 0o777 == 0o600
    suspended = json.loads(file.read_text())
    assert len(suspended["games"]) == line["games"] > 0
    assert not any(bot.welcome.resume_token in file.read_text() for bot in bots)
    assert not any(bot.refused for bot in bots)
    over = Counter(game for game, _ in games(tmp_path))

    async with served(*options, address=server.address) as again:
        assert suspensions(tmp_path) == []
        bots[1].quiet = False
        async with playing(again.address, bots, matches=4) as tasks:
            for bot in bots:
                assert bot.welcome.resumed
                await until_ended(bot, handles_of(suspended, bot.name))
            again.process.send_signal(signal.SIGTERM)
            assert await endings(tasks) == {pb.ERROR_REASON_SHUTTING_DOWN}
        assert (await again.ended())[0] == 0
    assert not any(bot.refused for bot in bots)
    attempts = dict(games(tmp_path))
    resumed = {game["spec"]["game"] for game in suspended["games"]}
    assert {game for game, attempt in attempts.items() if attempt == 2} == resumed
    assert not resumed.intersection(over)
    assert all(line["faults"] == [] for line in read_results(tmp_path))
    status, output, _ = await run("-m", "tressette", "replay", str(tmp_path), min(resumed))
    assert status == 0
    assert f"{min(resumed)}, attempt 2" in output


def suspensions(folder: Path) -> list[Path]:
    return list(folder.glob(f"{FILE}*"))


def handles_of(suspended: dict[str, Any], name: str) -> set[str]:
    """The seats of a bot in suspended games."""
    ids = {session["id"] for session in suspended["sessions"] if session["name"] == name}
    seats = [seat for game in suspended["games"] for seat in game["seats"]]
    return {seat["handle"] for seat in seats if seat["session"] in ids}


async def until_ended(bot: Bot, handles: set[str]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not handles.issubset(bot.ended):
            bot.heard.clear()
            await bot.heard.wait()


async def test_bots_of_the_python_client_come_back_by_themselves(tmp_path: Path) -> None:
    options = ("--preset", "tressette-21", *PATIENT, "--record", str(tmp_path))
    async with asyncio.TaskGroup() as bots:
        async with served(*options, "--drain-s", "0", address=lasting_address()) as server:
            for name in NAMES:
                bot = REFERENCE_BOTS["first_legal"]()
                bot.name, bot.max_matches = name, 8
                bots.create_task(play(bot, server.address))
            for _ in range(8):
                await server.log.until("event", "game finished")
            server.process.send_signal(signal.SIGTERM)
            assert (await server.ended())[0] == 0
        suspended = json.loads((tmp_path / FILE).read_text())
        resumed = {game["spec"]["game"] for game in suspended["games"]}
        async with served(*options, address=server.address) as again:
            waiting = set(resumed)
            while waiting:
                waiting.discard((await again.log.until("event", "game finished"))["game"])
            again.process.send_signal(signal.SIGTERM)
            # Games are played out this time, so that the bots end with the server.
            assert (await again.ended())[0] == 0
    assert {game for game, attempt in games(tmp_path) if attempt == 2} == resumed != set()
    assert all(line["faults"] == [] for line in read_results(tmp_path))


async def test_a_server_that_shall_outlive_its_terminal_does() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stopping = Stopping()
    try:
        stopping.listen()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        stopping.deafen()
        for number, handler in before.items():
            signal.signal(number, handler)


async def test_a_second_signal_stops_at_once_and_loses_nothing(tmp_path: Path) -> None:
    bots = [Bot(name, quiet=True) for name in NAMES]
    async with served(*PRESET, *PATIENT, "--record", str(tmp_path), "--drain-s", "600") as server:
        async with playing(server.address, bots) as tasks:
            await first_asked(bots)
            server.process.send_signal(signal.SIGINT)
            await server.log.until("event", "draining")
            server.process.send_signal(signal.SIGINT)
            assert await endings(tasks) == {pb.ERROR_REASON_SHUTTING_DOWN}
            assert [task.result().will_return for task in tasks] == [True] * 4
        status, log = await server.ended()
    assert status == 0
    assert [line["at_once"] for line in log if line["event"] == "asked to stop"] == [False, True]
    assert len(json.loads((tmp_path / FILE).read_text())["games"]) == 1


async def first_asked(bots: Sequence[Bot]) -> None:
    """Wait until the first turn of the only match has been sent."""
    async with asyncio.timeout(LIMIT_S):
        await asyncio.wait(
            [asyncio.create_task(bot.heard.wait()) for bot in bots], return_when=asyncio.FIRST_COMPLETED
        )


@pytest.mark.slow
async def test_a_suspension_outlives_a_server_that_nobody_comes_back_to(tmp_path: Path) -> None:
    options = (*PRESET, *PATIENT, "--record", str(tmp_path), "--drain-s", "0")
    bots = [Bot(name, quiet=True) for name in NAMES]
    async with served(*options) as server, playing(server.address, bots) as tasks:
        await first_asked(bots)
        server.process.send_signal(signal.SIGTERM)
        await endings(tasks)
        assert (await server.ended())[0] == 0
    async with served(*options) as second:
        second.process.send_signal(signal.SIGTERM)
        assert (await second.ended())[0] == 0
    for bot in bots:
        bot.quiet = False
    async with served(*options) as third, playing(third.address, bots) as tasks:
        await true_in_time(lambda: all(bot.ended for bot in bots))
        third.process.send_signal(signal.SIGTERM)
        await endings(tasks)
        assert (await third.ended())[0] == 0
    assert max(attempt for _, attempt in games(tmp_path)) == 3


async def test_a_stop_while_it_starts_loses_no_suspension(tmp_path: Path) -> None:
    """From the moment the file is claimed a signal has it suspended again."""
    options = (*PRESET, *PATIENT, "--record", str(tmp_path), "--drain-s", "0")
    bots = [Bot(name, quiet=True) for name in NAMES]
    async with served(*options) as server, playing(server.address, bots) as tasks:
        await first_asked(bots)
        server.process.send_signal(signal.SIGTERM)
        await endings(tasks)
        assert (await server.ended())[0] == 0
    second = await start("-m", "tressette", "serve", "--address", "127.0.0.1:0", *options)
    try:
        await true_in_time(lambda: bool(list(tmp_path.glob(f"{FILE}.*"))) or not (tmp_path / FILE).exists())
        second.send_signal(signal.SIGTERM)
        async with asyncio.timeout(LIMIT_S):
            assert await second.wait() == 0
    finally:
        await end(second)
    assert suspensions(tmp_path) == [tmp_path / FILE]
    assert len(json.loads((tmp_path / FILE).read_text())["games"]) == 1


async def test_a_suspension_that_was_left_behind_is_named(tmp_path: Path) -> None:
    (tmp_path / f"{FILE}.0007").write_text("{}")
    async with served(*PRESET, "--record", str(tmp_path)) as server:
        server.process.send_signal(signal.SIGTERM)
        status, log = await server.ended()
    assert status == 0
    (line,) = (line for line in log if line["event"] == "suspension left behind")
    assert line["file"].endswith(f"{FILE}.0007")


async def test_signals_at_the_very_end_change_nothing() -> None:
    async with served(*PRESET) as server:
        for _ in range(40):
            with contextlib.suppress(ProcessLookupError):
                server.process.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.02)
        assert (await server.ended())[0] == 0


async def test_without_a_record_games_are_cut_off_and_the_log_says_so() -> None:
    bots = [Bot(name, quiet=True) for name in NAMES]
    async with served(*PRESET, *PATIENT, "--drain-s", "0") as server:
        async with playing(server.address, bots) as tasks:
            await first_asked(bots)
            server.process.send_signal(signal.SIGTERM)
            assert await endings(tasks) == {pb.ERROR_REASON_SHUTTING_DOWN}
        status, log = await server.ended()
    assert status == 0
    (line,) = (line for line in log if line["event"] == "games cut off")
    assert (line["games"], line["level"]) == (1, "warning")


async def test_a_server_that_cannot_listen_leaves_the_suspension_to_the_next(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps({"v": 1, "key": "00", "sessions": [], "games": []}))
    async with served() as other:
        status, _, errors = await run(
            *("-m", "tressette", "serve", "--address", other.address, "--record", str(tmp_path))
        )
    assert status == 1
    assert "cannot listen" in errors
    assert (tmp_path / FILE).exists()
    async with served("--record", str(tmp_path)):
        assert suspensions(tmp_path) == []


async def test_a_game_that_cannot_be_taken_up_is_kept_for_the_operator(tmp_path: Path) -> None:
    data = {"v": 1, "key": "00", "sessions": [], "games": [{"spec": {}}]}
    (tmp_path / FILE).write_text(json.dumps(data))
    async with served("--record", str(tmp_path)) as server:
        (kept,) = suspensions(tmp_path)
        assert json.loads(kept.read_text()) == data
        assert {line["event"] for line in server.log.seen} >= {"game not taken up", "suspension kept"}


async def test_a_suspension_that_is_none_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{}")
    status, _, errors = await run(
        *("-m", "tressette", "serve", "--address", "127.0.0.1:0", "--record", str(tmp_path))
    )
    assert status == 2
    assert FILE in errors
    assert "Traceback" not in errors
    assert (tmp_path / FILE).read_text() == "{}"


async def test_the_options_for_operators() -> None:
    async with served("--reflection", "--metrics-address", "0") as server:
        (metrics,) = (line["address"] for line in server.log.seen if line["event"] == "metrics")
        text = await asyncio.to_thread(_fetch, f"http://{metrics}/metrics")
        assert "\ntressette_draining 0.0\n" in text
        async with grpc.aio.insecure_channel(server.address) as channel:
            call: Any = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
            await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            async with asyncio.timeout(LIMIT_S):
                assert (await call.read()).list_services_response.service
        server.process.send_signal(signal.SIGTERM)
        assert (await server.ended())[0] == 0


def _fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=LIMIT_S) as response:
        text: str = response.read().decode()
        return text
