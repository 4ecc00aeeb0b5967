"""Storms: a thousand malformed streams, hundreds of bots that vanish, bots that do not read, sessions that
are resumed by many at once. All against a server in another process, which must come out of each as it was: a
match that was under way all the time and one that begins afterwards end right, nothing is left over, nothing
was written to the error log.

Chance is seeded; the seeds are in the tests' names.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import grpc
import pytest
from grpc.aio import EOF, AioRpcError
from support.hostile import KINDS, Target, malformed_stream
from support.rawstream import raw_stream
from support.streams import LIMIT_S, PLAY, Client, connected, first_choice, has_ended, hello
from support.watched import Options, Watched, watching
from tressette.v1 import arena_service_pb2 as pb

pytestmark = pytest.mark.asyncio(loop_scope="session")

_OPEN: Final = Options(
    play={"move_ms": 600_000},
    presets=("traversone-003-21-duplicate",),
    grace_s=0.5,
    limits={"max_matches": 4},
    stuck_s=1.0,
    closing_s=60.0,
)
"""An open arena: whoever comes is dealt into matches. An honest bot's turn stays open all through a storm.
Who is slow to close after an Ending, as this process may be, does not see INTERNAL for it."""
_LIMIT_S: Final = 60.0
_GONE: Final = (AioRpcError, asyncio.InvalidStateError)
GOODBYE: Final = pb.PlayRequest(goodbye=pb.Goodbye())


# -- what stays in order ----------------------------------------------------------------------------------


class Honest:
    """Four bots that play one match. target: what an enemy may know of the one that has a turn now."""

    def __init__(self, at: Watched, name: str, clients: Sequence[Client]) -> None:
        self._at = at
        self._names = [f"{name}-{seat}" for seat in range(4)]
        self._clients = clients
        self._welcomes: list[pb.Welcome] = []
        self._go = asyncio.Event()
        self._asked: asyncio.Future[Target] = asyncio.get_running_loop().create_future()

    async def begin(self) -> Target:
        """Connect, and play until the first of them has a turn."""
        for client, name in zip(self._clients, self._names, strict=True):
            self._welcomes.append(await client.greet(name))
        self._playing = [
            asyncio.create_task(self._play(client, welcome))
            for client, welcome in zip(self._clients, self._welcomes, strict=True)
        ]
        async with asyncio.timeout(_LIMIT_S):
            return await self._asked

    async def finish(self) -> None:
        """Play to the end: there is no fault in the result."""
        self._go.set()
        async with asyncio.timeout(_LIMIT_S):
            await asyncio.gather(*self._playing)
        result = await self._at.finished(lambda result: set(result["bots"]) == set(self._names))
        assert result["faults"] == []

    async def give_up(self) -> None:
        """Stop whatever is under way."""
        for task in self._playing:
            task.cancel()
        await asyncio.gather(*self._playing, return_exceptions=True)

    async def _play(self, client: Client, welcome: pb.Welcome) -> None:
        over = drains = False
        while not over:
            batch = await client.batch()
            assert not batch.errors
            if not drains:
                drains = True
                await client.send(pb.PlayRequest(drain=pb.Drain()))  # one match each
            over = any(map(has_ended, batch.updates))
            turns = [update for update in batch.updates if update.HasField("turn")]
            for update in turns:
                if not self._asked.done():
                    turn_id = update.turn.turn_id
                    self._asked.set_result(Target(update.handle, turn_id, welcome.name, welcome.resume_token))
                await self._go.wait()
                await client.answer(first_choice(update))
        await client.send(GOODBYE)
        await client.ending()


@contextlib.asynccontextmanager
async def _honest(at: Watched, name: str) -> AsyncIterator[tuple[Honest, Target]]:
    async with contextlib.AsyncExitStack() as stack:
        four = Honest(at, name, [await stack.enter_async_context(connected(at.address)) for _ in range(4)])
        target = await four.begin()
        try:
            yield four, target
        finally:
            await four.give_up()


async def _normal_match(at: Watched, name: str) -> dict[str, int]:
    """Play one; returns the counts when it is over and everybody has left."""
    async with _honest(at, name) as (four, _):
        await four.finish()
    return await at.until(lambda counts: counts["sessions"] == counts["streams"] == 0, "empty")


Storm = Callable[[Watched, Target, Random], Awaitable[None]]


async def survive(at: Watched, storm: Storm, seed: int, times: int = 1) -> list[int]:
    """Let a storm loose on a server in the middle of a match; it comes out as it was. Returns its memory in
    KiB after each time."""
    before = await _normal_match(at, "before")
    memory = []
    for turn in range(times):
        async with _honest(at, f"during-{turn}") as (four, target):
            await storm(at, target, Random(seed))
            await four.finish()
        # Those of the storm whose end the server has yet to notice would be dealt into the next match.
        await at.until(lambda counts: counts["sessions"] == counts["streams"] == 0, "empty")
        await _normal_match(at, f"after-{turn}")
        memory.append((await at.as_before(before))["rss_kib"])
    return memory


async def at_once(count: int, make: Callable[[int], Awaitable[None]], of: int) -> None:
    """Run ``of`` jobs, so many at a time; the first failure ends all."""
    jobs = iter(range(of))

    async def work() -> None:
        for job in jobs:
            await make(job)

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(work())


# -- malformed streams ------------------------------------------------------------------------------------


def malformed(streams: int) -> Storm:
    """So many streams of all kinds, in turn, over ten connections."""

    async def storm(at: Watched, target: Target, chance: Random) -> None:
        seeds = [chance.getrandbits(32) for _ in range(streams)]
        heard: list[bool] = []
        async with contextlib.AsyncExitStack() as stack:
            channels = [await stack.enter_async_context(channel(at.address)) for _ in range(10)]

            async def make(job: int) -> None:
                kind = job % len(KINDS)
                heard.append(await malformed_stream(channels[job % 10], Random(seeds[job]), target, kind))

            await at_once(20, make, of=streams)
        assert sum(heard) > streams / 2

    return storm


@contextlib.asynccontextmanager
async def channel(address: str) -> AsyncIterator[grpc.aio.Channel]:
    """A connection of its own."""
    async with grpc.aio.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as one:
        yield one


@pytest.mark.parametrize("seed", [1])
async def test_a_thousand_malformed_streams(tmp_path: Path, seed: int) -> None:
    async with watching(tmp_path, _OPEN) as at:
        await survive(at, malformed(1000), seed)


async def test_a_small_message_that_unfolds_to_a_large_one(tmp_path: Path) -> None:
    """Compressed it is far below the limit on messages, and is not unfolded beyond that."""
    async with watching(tmp_path, _OPEN) as at, channel(at.address) as one:
        before = await _normal_match(at, "before")
        for _ in range(3):
            call: Any = one.stream_stream(PLAY, None, None)(compression=grpc.Compression.Gzip)
            with contextlib.suppress(*_GONE):
                await call.write(bytes(100 << 20))
                assert await call.read() is EOF
            async with asyncio.timeout(LIMIT_S):
                assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await _normal_match(at, "after")
        after = await at.as_before(before)
    assert after["rss_kib"] < before["rss_kib"] + 50_000


# -- bots that vanish -------------------------------------------------------------------------------------


async def _vanishing(address: str, chance: Random) -> None:
    """Connect, come as far as chance has it, and be gone without a word."""
    async with connected(address) as client:
        await _come_along(client, chance)
        how = chance.randrange(3)
        if how == 0:
            client.cancel()
        elif how == 1:
            await client.call.done_writing()
        # else the connection goes down with everything on it


async def _come_along(client: Client, chance: Random) -> None:
    steps = chance.randrange(6)
    label = f"vanishing-{chance.getrandbits(40)}"
    with contextlib.suppress(*_GONE, TimeoutError):
        async with asyncio.timeout(chance.random()):
            if steps >= 1:
                await client.send(hello(label, max_matches=4))
            if steps >= 2:
                await client.receive()
            while steps >= 3:
                response = await client.receive()
                turns = [update for update in response.batch.updates if update.HasField("turn")]
                if steps == 3 and turns:
                    return
                if steps >= 4 and turns:
                    await client.answer(*map(first_choice, turns))
                if steps == 4 and turns:
                    return


async def _torn(address: str, chance: Random) -> None:
    """A connection that breaks in the middle of something."""
    async with raw_stream(address) as raw:
        what = chance.randrange(4)
        if what == 0:
            raw.writer.write(chance.randbytes(chance.randrange(2000)))
        elif what >= 1:
            raw.begin()
            message = raw.data(hello(f"torn-{chance.getrandbits(40)}"))
            if what == 2:
                message = message[: chance.randrange(len(message))]
            raw.writer.write(message)
        if chance.random() < 0.5:
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(0.2 * chance.random()):
                    await raw.until_ended()


def vanishing(clients: int) -> Storm:
    """So many that connect and vanish, every fifth in the middle of a frame."""

    async def storm(at: Watched, target: Target, chance: Random) -> None:
        seeds = [chance.getrandbits(32) for _ in range(clients)]

        async def make(job: int) -> None:
            vanish = _vanishing if job % 5 else _torn
            await vanish(at.address, Random(seeds[job]))

        await at_once(40, make, of=clients)

    return storm


@pytest.mark.parametrize("seed", [2])
async def test_two_hundred_bots_that_vanish(tmp_path: Path, seed: int) -> None:
    async with watching(tmp_path, _OPEN) as at:
        await survive(at, vanishing(200), seed)


# -- answers again ----------------------------------------------------------------------------------------


async def _parrot(address: str, chance: Random) -> bool:
    """Answers its turns, and with each answer sends all former ones again. Returns whether it was told so."""
    said: list[pb.Answer] = []
    told = False
    async with connected(address) as client:
        await client.greet(f"parrot-{chance.getrandbits(40)}", max_matches=4)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                while len(said) < 40:
                    batch = await client.batch()
                    assert {error.reason for error in batch.errors} <= {pb.ERROR_REASON_UNKNOWN_HANDLE}
                    repeated = pb.RECEIPT_STATUS_REPEATED
                    told |= any(receipt.status == repeated for receipt in batch.receipts)
                    if turns := [update for update in batch.updates if update.HasField("turn")]:
                        said += map(first_choice, turns)
                        await client.answer(*chance.sample(said, len(said)), *said)
    return told


def parrots(clients: int) -> Storm:
    """So many that repeat themselves."""

    async def storm(at: Watched, target: Target, chance: Random) -> None:
        seeds = [chance.getrandbits(32) for _ in range(clients)]
        told: list[bool] = []

        async def make(job: int) -> None:
            told.append(await _parrot(at.address, Random(seeds[job])))

        async with asyncio.timeout(LIMIT_S):
            while sum(told) <= clients / 2:  # again where all have stood still for a while
                await at_once(8, make, of=clients)

    return storm


@pytest.mark.parametrize("seed", [7])
async def test_bots_that_repeat_old_answers(tmp_path: Path, seed: int) -> None:
    async with watching(tmp_path, _OPEN) as at:
        await survive(at, parrots(16), seed)


# -- slow ones, deaf ones, and those who have said all they have to say -----------------------------------


async def _slow_reader(address: str, chance: Random) -> None:
    """Takes its time for each message, and then asks for more than it has read."""
    async with connected(address) as client:
        await client.greet(f"slow-{chance.getrandbits(40)}", max_matches=4)
        for _ in range(10):
            await client.answer(*[pb.Answer(handle="x" * 500, turn_id=1)] * 200)
            await asyncio.sleep(0.05 * chance.random())
            await client.receive()


async def _slow_writer(address: str, chance: Random) -> None:
    """Sends its messages byte by byte."""
    async with raw_stream(address) as raw:
        raw.begin()
        for request in (hello(f"drop-{chance.getrandbits(40)}"), GOODBYE):
            for byte in raw.data(request):
                raw.writer.write(bytes((byte,)))
                await asyncio.sleep(0.002)
        raw.half_close()
        assert len(await raw.until_ended()) >= 2, "a Welcome and an Ending"


async def _deaf(address: str, chance: Random) -> None:
    """Asks for megabytes and reads nothing, until it is cut off."""
    async with connected(address) as client:
        await client.greet(f"deaf-{chance.getrandbits(40)}", max_matches=4)
        with contextlib.suppress(*_GONE, TimeoutError):
            for _ in range(24):
                async with asyncio.timeout(1.0):
                    await client.answer(*[pb.Answer(handle="x" * 900, turn_id=1)] * 1000)


async def _shut(address: str, chance: Random) -> None:
    """Has a window of no size: not even a Welcome can be sent to it."""
    async with raw_stream(address) as raw:
        raw.begin(window=chance.choice((0, 1, 100)))
        raw.send(hello(f"shut-{chance.getrandbits(40)}"))
        if chance.random() < 0.5:
            raw.send(pb.PlayRequest(answers=pb.Answers(answers=[pb.Answer(handle="x")] * 1000)))
        await asyncio.sleep(0.5)


async def _half_closed(address: str, chance: Random) -> None:
    """Closes its side at once or in the middle of a match, and stays connected."""
    async with connected(address) as client:
        if chance.random() < 0.8:
            await client.send(hello(f"half-{chance.getrandbits(40)}"))
        await client.call.done_writing()
        with contextlib.suppress(*_GONE):
            async with asyncio.timeout(LIMIT_S):
                while await client.call.read() is not EOF:
                    pass
        assert await client.call.code() is grpc.StatusCode.OK


def slow(clients: int) -> Storm:
    """So many of each kind."""
    kinds = (_slow_reader, _slow_writer, _deaf, _shut, _half_closed)

    async def storm(at: Watched, target: Target, chance: Random) -> None:
        seeds = [chance.getrandbits(32) for _ in range(clients * len(kinds))]

        async def make(job: int) -> None:
            await kinds[job % len(kinds)](at.address, Random(seeds[job]))

        await at_once(15, make, of=len(seeds))

    return storm


@pytest.mark.parametrize("seed", [3])
async def test_slow_deaf_and_half_closed_streams(tmp_path: Path, seed: int) -> None:
    async with watching(tmp_path, _OPEN) as at:
        await survive(at, slow(6), seed)


@pytest.mark.parametrize("window", [0, 100, 65_535])
async def test_a_bot_that_never_reads_is_cut_off(tmp_path: Path, window: int) -> None:
    """It stays connected and says nothing any more; what happens in its matches must not pile up."""
    options = Options(
        play={"move_ms": 5}, presets=("traversone-003-21-duplicate",), limits={"max_matches": 64}, stuck_s=1.0
    )
    async with watching(tmp_path, options) as at, contextlib.AsyncExitStack() as stack:
        before = await at.counts()
        for number in range(4):
            raw = await stack.enter_async_context(raw_stream(at.address))
            raw.begin(window)
            raw.send(hello(f"deaf-{number}", max_matches=64))
        counts = await at.until(
            # Without a window not even a Welcome reaches them, and they play nothing.
            lambda counts: (
                (window == 0 or len(at.results) > 0) and counts["streams"] == counts["sessions"] == 0
            ),
            "cut off, after they have played",
        )
        assert counts["rss_kib"] < before["rss_kib"] + 60_000


# -- resuming ---------------------------------------------------------------------------------------------


async def resume_storm(at: Watched, target: Target, chance: Random) -> None:
    """One session is resumed a hundred times in a row and by ten streams at once, again and again; in the end
    one stream has it and plays its match to the end."""
    async with contextlib.AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(channel(at.address)) for _ in range(10)]
        name = f"wanted-{chance.getrandbits(40)}"
        first = await _resume(channels[0], name, "")
        others = [await _resume(channels[0], f"{name}-{seat}", "") for seat in range(3)]
        go = asyncio.Event()  # the others wait, or the match could be over before the storm is
        playing = [asyncio.create_task(_play_when_told(client, go)) for client, _ in others]
        token = first[1].resume_token
        ends = [asyncio.create_task(_outcome(first[0]))]
        for turn in range(100):
            client, _ = await _resume(channels[turn % 10], name, token)
            ends.append(asyncio.create_task(_outcome(client)))
        for _ in range(3):
            at_a_time = await asyncio.gather(*(_resume(one, name, token) for one in channels))
            ends += [asyncio.create_task(_outcome(client)) for client, _ in at_a_time]
        go.set()
        outcomes = await asyncio.gather(*ends)
        assert outcomes.count("played") == 1
        assert outcomes.count("replaced") > 100
        await asyncio.gather(*playing)
    result = await at.finished(lambda result: name in result["bots"])
    assert result["faults"] == []


async def _resume(one: grpc.aio.Channel, name: str, token: str) -> tuple[Client, pb.Welcome]:
    call: Any = one.stream_stream(PLAY, pb.PlayRequest.SerializeToString, pb.PlayResponse.FromString)()
    client = Client(call)
    return client, await client.greet(name, resume_token=token)


async def _play_when_told(client: Client, go: asyncio.Event) -> None:
    await go.wait()
    await client.play_games()


async def _outcome(client: Client) -> str:
    """Play what comes until the match or the stream ends."""
    while True:
        try:
            response = await client.receive()
        except AioRpcError:
            return "cut off"  # it was slow to hear the Ending and wrote into the closed stream
        if response.WhichOneof("message") == "ending":
            assert response.ending.reason == pb.ERROR_REASON_REPLACED
            client.cancel()
            return "replaced"
        updates = response.batch.updates
        if turns := [update for update in updates if update.HasField("turn")]:
            with contextlib.suppress(*_GONE):
                await client.answer(*map(first_choice, turns))
        if any(map(has_ended, updates)):
            client.cancel()
            return "played"


@pytest.mark.parametrize("seed", [4])
async def test_resume_storms(tmp_path: Path, seed: int) -> None:
    async with watching(tmp_path, _OPEN) as at:
        await survive(at, resume_storm, seed)


# -- all of it, again and again ---------------------------------------------------------------------------


def everything(scale: int) -> Storm:
    """All storms, one after the other; the one of slow readers, which fills every buffer, above a scale."""

    async def storm(at: Watched, target: Target, chance: Random) -> None:
        for one in (malformed(200 * scale), vanishing(20 * scale), resume_storm, slow(scale)):
            # Sooner the matchmaker would have those who are about to vanish play with those who come.
            await at.until(lambda counts: counts["sessions"] == 4, "alone with the honest ones")
            await one(at, target, chance)

    return storm


@pytest.mark.slow
async def test_a_small_storm_of_everything_three_times(tmp_path: Path) -> None:
    async with watching(tmp_path, _OPEN) as at:
        memory = await survive(at, everything(1), seed=5, times=3)
    print(f"KiB after each storm: {memory}")  # noqa: T201 - a figure for the notes
    assert memory[-1] <= 1.1 * memory[0]


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_three_equal_storms_leave_no_more_than_one(tmp_path: Path) -> None:
    async with watching(tmp_path, _OPEN) as at:
        memory = await survive(at, everything(10), seed=6, times=3)
    print(f"KiB after each storm: {memory}")  # noqa: T201 - a figure for the notes
    assert memory[-1] <= 1.1 * memory[0]
