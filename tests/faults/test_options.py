"""What the channel options of the server and of the client do, seen from the other end of the connection:
gRPC takes a name that it does not know, and a value that means nothing, without a word. ``OPTIONS`` in
``test_traps`` says which test is whose; without its option each of these fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import resource
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.certificates import self_signed
from support.rawstream import (
    DATA,
    HEADERS,
    REFUSED_STREAM,
    RST_STREAM,
    RawArena,
    RawStream,
    asks,
    raw_arena,
    raw_stream,
)
from support.streams import LIMIT_S, PLAY, Client, connected, hello, serving
from support.tables import KEY
from support.watched import Options, watching
from tressette.play.arena import Arena
from tressette.v1 import arena_service_pb2 as pb
from tressette.wire.limits import MIN_KEEPALIVE_MS, Limits
from tressette.wire.server import ArenaServer, BadAddress, most_connections
from tressette.wire.tls import Tls
from tressette_bot import Bot, ConnectionLost, Reconnect, play
from tressette_bot.bots import REFERENCE_BOTS

QUIET_S = 30.0
"""How long the server hears nothing before it asks."""
ANSWER_S = 10.0
"""How long it waits for the answer."""
SILENT_S = 10.0
"""How long a connection may say nothing from its beginning."""
BOT_ANSWER_S = 5.0
"""How long the client waits for it."""
_NOTICED_S = 30.0
"""How much later than due all this may be."""
_GOODBYE = pb.PlayResponse(ending=pb.Ending(reason=pb.ERROR_REASON_SHUTTING_DOWN))
_BACK_SOON = pb.PlayResponse(ending=pb.Ending(reason=pb.ERROR_REASON_SHUTTING_DOWN, will_return=True))


# -- the server -------------------------------------------------------------------------------------------


async def _gone(raw: RawStream, pongs: int) -> tuple[str, float]:
    """Be a peer that answers so many pings and no more. Returns why the server has closed the connection, and
    after how many seconds."""
    since = time.monotonic()
    reason = await raw.until_closed(pongs)
    return reason, time.monotonic() - since


@pytest.mark.slow
async def test_a_peer_that_is_gone_without_a_word_is_dropped(tmp_path: Path) -> None:
    """With a stream and without one; those beside it that answer are kept."""
    async with watching(tmp_path) as at, contextlib.AsyncExitStack() as stack:
        playing, idle, alive = [await stack.enter_async_context(raw_stream(at.address)) for _ in range(3)]
        for number, raw in enumerate((playing, alive)):
            raw.begin()
            raw.send(hello(f"raw-{number}"))
        idle.open()
        answering = asyncio.create_task(alive.until_closed(pongs=1000))
        await at.until(lambda counts: counts["sessions"] == 2, "with both")
        async with asyncio.timeout(QUIET_S + ANSWER_S + LIMIT_S):
            # The first ping comes with the first data: it measures the network and is no sign of doubt.
            ends = await asyncio.gather(_gone(playing, pongs=1), _gone(idle, pongs=0))
        counts = await at.until(lambda counts: counts["streams"] == 1, "without the one that is gone")
        assert counts["sessions"] == 1
        assert not answering.done()
        answering.cancel()
    for reason, after_s in ends:
        assert reason == "ping_timeout"
        assert QUIET_S + ANSWER_S - 1 <= after_s <= QUIET_S + ANSWER_S + _NOTICED_S


async def _pinging(raw: RawStream, every_s: float, times: int, patience_s: float = 1.0) -> str | None:
    """Ping so many times. Returns why the server has closed the connection, None if it has not some seconds
    after that."""
    closed = asyncio.create_task(raw.until_closed(pongs=1000))
    for _ in range(times):
        await asyncio.wait((closed,), timeout=every_s)
        if closed.done():
            return closed.result()
        raw.ping()
    await asyncio.wait((closed,), timeout=patience_s)
    if closed.done():
        return closed.result()
    closed.cancel()
    return None


@pytest.mark.slow
async def test_quiet_peers_may_ping_as_often_as_published(tmp_path: Path) -> None:
    """The third ping that comes too early would be answered by GOAWAY; without a stream, too, none is."""
    async with watching(tmp_path) as at, contextlib.AsyncExitStack() as stack:
        playing, idle = [await stack.enter_async_context(raw_stream(at.address)) for _ in range(2)]
        playing.begin(window=0)  # what the server would send would allow for more pings
        playing.send(hello("raw"))
        idle.open()
        every_s = MIN_KEEPALIVE_MS / 1000 + 0.1
        ends = await asyncio.gather(*(_pinging(raw, every_s, times=5) for raw in (playing, idle)))
    assert ends == [None, None]


@pytest.mark.parametrize("in_a_call", [True, False])
async def test_a_peer_that_pings_without_end_is_cut_off(tmp_path: Path, in_a_call: bool) -> None:
    async with (
        watching(tmp_path) as at,
        raw_stream(at.address) as raw,
        raw_stream(at.address) as other,
    ):
        for one in (raw, other):
            one.open()
            if in_a_call:
                one.call()
        assert await _pinging(raw, every_s=0.05, times=20, patience_s=LIMIT_S) == "too_many_pings"
        assert await _pinging(other, every_s=0.05, times=2) is None


@asynccontextmanager
async def _one_connection(address: str) -> AsyncIterator[Callable[..., Any]]:
    """What opens a call on a connection that all of them share."""
    async with grpc.aio.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield channel.stream_stream(PLAY, pb.PlayRequest.SerializeToString, pb.PlayResponse.FromString)


async def _is_kept(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
    """Whether the server takes a connection: it speaks first."""
    with contextlib.suppress(OSError):
        return bool(await connection[0].read(1))
    return False


async def _is_welcome(address: str) -> bool:
    """Whether the server takes a bot on a new connection."""
    async with connected(address) as client:
        with contextlib.suppress(grpc.aio.AioRpcError):
            await client.send(hello("late"))
            return (await client.receive()).HasField("welcome")
    return False


async def test_connections_leave_descriptors_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those over the limit are closed without a word; when others go there is room again."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4, 4))
    async with serving() as running, asyncio.timeout(LIMIT_S):
        host, _, port = running.address.rpartition(":")
        connections = [await asyncio.open_connection(host, int(port)) for _ in range(5)]
        assert sum([await _is_kept(one) for one in connections]) == 3
        for _, writer in connections:
            writer.close()
        while not await _is_welcome(running.address):
            pass  # the server has yet to notice that the others went


@pytest.mark.slow
@pytest.mark.parametrize("over_tls", [False, True])
async def test_who_connects_and_says_nothing_is_dropped(tmp_path: Path, over_tls: bool) -> None:
    pair = await self_signed(tmp_path)
    credentials = Tls(pair.cert, pair.key, None).credentials() if over_tls else None
    server = ArenaServer(Arena(KEY), credentials=credentials)
    reader, writer = await asyncio.open_connection("127.0.0.1", await server.start("127.0.0.1:0"))
    since = time.monotonic()
    with contextlib.suppress(ConnectionResetError):
        async with asyncio.timeout(SILENT_S + _NOTICED_S):
            while await reader.read(1024):
                pass
    assert time.monotonic() - since > SILENT_S / 4  # a slow network is given time
    writer.close()
    await server.stop()


@pytest.mark.parametrize(("descriptors", "connections"), [(1024, 768), (resource.RLIM_INFINITY, 2**31 - 1)])
def test_a_quarter_of_the_descriptors_is_kept(
    monkeypatch: pytest.MonkeyPatch, descriptors: int, connections: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
    assert most_connections() == connections


async def test_one_connection_has_no_more_streams_than_it_may(tmp_path: Path) -> None:
    """The next waits in its client's library until one ends; other connections notice nothing."""
    options = Options(limits={"max_connection_streams": 3})
    async with watching(tmp_path, options) as at, _one_connection(at.address) as open_call:
        clients = [Client(open_call()) for _ in range(3)]
        for number, client in enumerate(clients):
            await client.greet(f"bot-{number}")
        fourth = asyncio.create_task(Client(open_call()).greet("fourth"))
        async with connected(at.address) as other:
            await other.greet("other")
            await other.answer(pb.Answer(handle="none", turn_id=1))
            assert (await other.batch()).errors
            assert not fourth.done()
            assert (await at.counts())["streams"] == 4
            await clients[0].send(pb.PlayRequest(goodbye=pb.Goodbye()))
            await clients[0].ending()
            assert (await fourth).name == "fourth"


async def test_one_that_opens_more_all_the_same_is_refused(tmp_path: Path) -> None:
    most, opened = 3, 50
    options = Options(limits={"max_connection_streams": most})
    async with watching(tmp_path, options) as at, raw_stream(at.address) as raw:
        raw.open()
        for stream in range(1, 2 * opened, 2):
            raw.call(stream)
        refused = 0
        async with asyncio.timeout(LIMIT_S):
            async for frame in raw.frames():
                if frame.kind == RST_STREAM and int.from_bytes(frame.payload) == REFUSED_STREAM:
                    refused += 1
                if refused == opened - most:
                    break
        assert (await at.counts())["streams"] <= most
        async with connected(at.address) as other:
            await other.greet("other")


async def test_a_message_over_the_limit_ends_that_stream_only(tmp_path: Path) -> None:
    async with watching(tmp_path) as at, _one_connection(at.address) as open_call:
        beside, large = Client(open_call()), Client(open_call())
        for client, name in ((beside, "beside"), (large, "large")):
            assert (await client.greet(name)).max_message_bytes == Limits().max_message_bytes
        await large.answer(*[pb.Answer(handle="x" * 64, turn_id=1)] * (Limits().max_message_bytes // 64))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await large.receive()
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await beside.answer(pb.Answer(handle="none", turn_id=1))
        assert (await beside.batch()).errors


async def test_metadata_beyond_what_grpc_takes_ends_that_stream_only(tmp_path: Path) -> None:
    """It takes 8 KiB surely and 16 KiB at most; nothing here wants any."""
    async with watching(tmp_path) as at, _one_connection(at.address) as open_call:
        beside = Client(open_call())
        await beside.greet("beside")
        large = open_call(metadata=(("x-large", "x" * (20 << 10)),))
        async with asyncio.timeout(LIMIT_S):
            assert await large.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await beside.answer(pb.Answer(handle="none", turn_id=1))
        assert (await beside.batch()).errors
        await Client(open_call(metadata=(("x-small", "x" * (7 << 10)),))).greet("small")


async def test_no_other_process_gets_the_port(tmp_path: Path) -> None:
    async with watching(tmp_path) as at:
        with pytest.raises(BadAddress, match="cannot listen"):
            async with serving(address=at.address):
                pytest.fail("it listens")
        async with connected(at.address) as client:
            await client.greet()


# -- the client -------------------------------------------------------------------------------------------


def _welcome(**fields: Any) -> pb.PlayResponse:
    return pb.PlayResponse(
        welcome=pb.Welcome(name="b", protocol=1, max_answers=10, resume_token="again", **fields)
    )


def _bot() -> Bot:
    return REFERENCE_BOTS["random"]()


@pytest.mark.slow
async def test_a_client_pings_as_often_as_it_may_and_notices_when_nothing_comes_back() -> None:
    """For as long as it is quiet, too. Its second stream knows what the arena allows."""
    pings: list[float] = []
    noticed: list[float] = []

    async def arena(end: RawArena) -> None:
        await end.accept()
        async for frame in end.frames():
            if frame.kind == DATA and end.number == 1:
                end.respond(frame.stream, _welcome(min_keepalive_ms=1000, resumed=True))
            elif frame.kind == DATA:  # the Hello
                end.respond(
                    frame.stream, _welcome(min_keepalive_ms=1000), _BACK_SOON if end.number == 0 else _GOODBYE
                )
                end.end(frame.stream)
            elif asks(frame):
                if end.number == 1:
                    pings.append(time.monotonic())
                if len(pings) < 5:
                    end.pong(frame)
        if end.number == 1:
            noticed.append(time.monotonic())

    async with raw_arena(arena) as address, asyncio.timeout(LIMIT_S):
        await play(_bot(), address, reconnect=Reconnect(first_s=0.01))
    between = [later - earlier for earlier, later in itertools.pairwise(pings[1:])]
    assert len(pings) == 5
    assert sorted(between)[1] < 2.0, between  # a shared machine may stand still now and then
    (when,) = noticed
    assert BOT_ANSWER_S / 2 <= when - pings[-1] <= BOT_ANSWER_S + _NOTICED_S


async def test_every_attempt_is_the_clients_own() -> None:
    """An arena that refuses streams is dialled anew for each attempt, at the client's pauses: gRPC neither
    tries again by itself nor makes one wait for the attempts of others in the same process."""
    calls: list[int] = []

    async def refusing(end: RawArena) -> None:
        await end.accept()
        async for frame in end.frames():
            if frame.kind == HEADERS:
                calls.append(end.number)
                end.turn_away()

    async with raw_arena(refusing) as address, asyncio.timeout(LIMIT_S):
        for first in (0, 4):
            with pytest.raises(ConnectionLost):
                await play(_bot(), address, reconnect=Reconnect(first_s=0.001, longest_s=0.01, attempts=4))
            assert calls[first:] == list(range(first, first + 4))


async def test_two_bots_of_a_process_do_not_wait_for_each_others_attempts() -> None:
    """gRPC's pause between two attempts at the same address is a second and grows."""
    dialled: list[float] = []

    async def hanging_up(end: RawArena) -> None:
        dialled.append(time.monotonic())

    patience = Reconnect(first_s=0.01, longest_s=0.01, attempts=10)
    async with raw_arena(hanging_up) as address, asyncio.timeout(LIMIT_S):
        await asyncio.gather(
            *(play(_bot(), address, reconnect=patience) for _ in range(2)), return_exceptions=True
        )
    assert len(dialled) == 20
    assert dialled[-1] - dialled[0] < 20.0


@asynccontextmanager
async def _sending(size: int) -> AsyncIterator[str]:
    """An arena whose second message has so many bytes, in a field that nobody knows."""

    async def handler(_requests: Any, context: Any) -> None:
        await context.read()
        await context.write(_welcome().SerializeToString())
        ping = pb.PlayResponse(ping=pb.Ping(nonce=7)).SerializeToString()
        septets = bytes(size >> shift & 127 | (128 if shift < 28 else 0) for shift in range(0, 35, 7))
        await context.write(ping + b"\xfa\x7f" + septets + bytes(size))
        assert (await context.read()).pong.nonce == 7
        await context.write(_GOODBYE.SerializeToString())

    server = grpc.aio.server()
    method: Any = grpc.stream_stream_rpc_method_handler(handler, pb.PlayRequest.FromString)
    service, _, name = PLAY[1:].partition("/")
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {name: method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


async def test_a_message_may_be_larger_than_grpc_would_have_it() -> None:
    """A thousand matches that are resumed at once come in one."""
    async with _sending(5 << 20) as address, asyncio.timeout(LIMIT_S):
        await play(_bot(), address)
