"""The arena over real gRPC: a server inside this process, and clients that read and write one stream by
hand. Every wait has a limit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import grpc
from grpc.aio import EOF
from tressette.play.arena import Arena
from tressette.play.config import PlayConfig
from tressette.record.reveals import Reveals
from tressette.record.writer import Recorder
from tressette.v1 import arena_service_pb2 as pb
from tressette.wire.limits import Limits
from tressette.wire.server import ArenaServer

from support.tables import KEY

LIMIT_S: Final = 60.0
PLAY: Final = "/tressette.v1.ArenaService/Play"


class Client:
    """One stream. ``pings`` counts those that were answered."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.pings = 0
        self._writing = asyncio.Lock()  # two writes at once are refused by grpc

    async def send(self, request: pb.PlayRequest | bytes) -> None:
        """Write one message, or bytes as they are."""
        async with asyncio.timeout(LIMIT_S), self._writing:
            await self.call.write(request)

    async def receive(self) -> pb.PlayResponse:
        """The next message but for pings, which are answered; the test fails if the stream ends instead."""
        while True:
            async with asyncio.timeout(LIMIT_S):
                response = await self.call.read()
            assert response is not EOF, "the stream has ended"
            assert isinstance(response, pb.PlayResponse)
            if response.WhichOneof("message") != "ping":
                return response
            self.pings += 1
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                await self.send(pb.PlayRequest(pong=pb.Pong(nonce=response.ping.nonce)))

    async def greet(self, label: str = "bot", **fields: Any) -> pb.Welcome:
        """Exchange Hello and Welcome."""
        await self.send(hello(label, **fields))
        response = await self.receive()
        assert response.WhichOneof("message") == "welcome", response
        return response.welcome

    async def batch(self) -> pb.Batch:
        """The next message, a batch."""
        response = await self.receive()
        assert response.WhichOneof("message") == "batch", response
        return response.batch

    async def asked(self) -> pb.MatchUpdate:
        """Read on to the next update with a turn; what comes before it is dropped."""
        while True:
            for update in (await self.batch()).updates:
                if update.HasField("turn"):
                    return update

    async def answer(self, *answers: pb.Answer) -> None:
        """Send answers in one message."""
        await self.send(pb.PlayRequest(answers=pb.Answers(answers=answers)))

    async def ending(self) -> pb.Ending:
        """Read on to the Ending, and see that the stream ends in good order after it."""
        while (response := await self.receive()).WhichOneof("message") != "ending":
            assert response.WhichOneof("message") == "batch", response
        await self.close()
        return response.ending

    async def close(self) -> None:
        """Close this side and see that the other closes too."""
        await self.call.done_writing()
        async with asyncio.timeout(LIMIT_S):
            assert await self.call.read() is EOF
            assert await self.call.code() is grpc.StatusCode.OK

    async def play(self, done: Callable[[pb.Batch], bool]) -> None:
        """Answer every turn by its first legal choice until ``done`` is true of a batch."""
        while True:
            batch = await self.batch()
            if turns := [update for update in batch.updates if update.HasField("turn")]:
                await self.answer(*map(first_choice, turns))
            if done(batch):
                return

    async def play_games(self, count: int = 1) -> list[pb.MatchUpdate]:
        """Answer every turn by its first legal choice until so many matches have ended; returns their
        last updates."""
        ended: list[pb.MatchUpdate] = []

        def done(batch: pb.Batch) -> bool:
            assert not batch.errors, batch.errors
            ended.extend(update for update in batch.updates if has_ended(update))
            return len(ended) >= count

        await self.play(done)
        return ended

    async def play_until_told(self) -> pb.Ending:
        """Answer every turn by its first legal choice until the arena ends the session."""
        while (response := await self.receive()).WhichOneof("message") in ("batch", "drain"):
            if turns := [update for update in response.batch.updates if update.HasField("turn")]:
                await self.answer(*map(first_choice, turns))
        await self.close()
        return response.ending

    def cancel(self) -> None:
        """Give the stream up."""
        self.call.cancel()


def _serialized(request: pb.PlayRequest | bytes) -> bytes:
    return request if isinstance(request, bytes) else request.SerializeToString()


def hello(label: str = "bot", **fields: Any) -> pb.PlayRequest:
    """A Hello with nothing wrong in it."""
    given = {"min_protocol": 1, "max_protocol": 1, "max_matches": 1} | fields
    return pb.PlayRequest(hello=pb.Hello(label=label, **given))


def first_choice(update: pb.MatchUpdate) -> pb.Answer:
    """The answer with the first legal card or discard, or nothing."""
    legal = update.turn.view.legal
    answer = pb.Answer(handle=update.handle, turn_id=update.turn.turn_id)
    if legal.cards:
        answer.card = legal.cards[0]
    elif legal.discards:
        answer.discard = legal.discards[0]
    return answer


def has_ended(update: pb.MatchUpdate) -> bool:
    """Whether this is the last update of its match."""
    return bool(update.events) and update.events[-1].WhichOneof("kind") == "match_ended"


class Serving:
    """A server under way. ``finished``: the result lines of games, as they end."""

    def __init__(
        self,
        config: PlayConfig,
        recorder: Recorder | None,
        tokens: Mapping[str, str] | None,
        limits: Limits | None,
        grace_s: float,
        reveals: Reveals | None,
    ) -> None:
        self.finished: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.arena = Arena(
            KEY,
            config,
            recorder,
            on_finished=lambda spec, result: self.finished.put_nowait(result),
            on_session=lambda session, is_open: self._changed.set(),
            grace_s=grace_s,
            reveals=reveals,
        )
        names = None if tokens is None else tokens.get
        self.server = ArenaServer(self.arena, names, limits=limits)
        self.address = ""
        self._changed = asyncio.Event()
        self._clients = contextlib.AsyncExitStack()

    async def sessions(self, count: int) -> None:
        """Wait until there are so many sessions: a client may have its Welcome before the arena has it."""
        async with asyncio.timeout(LIMIT_S):
            while sum(map(len, self.arena.sessions.values())) != count:
                self._changed.clear()
                await self._changed.wait()

    async def connect(self) -> Client:
        """A client on a connection of its own."""
        return await self._clients.enter_async_context(connected(self.address))

    async def bots(self, *names: str, **fields: Any) -> list[Client]:
        """Clients that have said Hello."""
        before = sum(map(len, self.arena.sessions.values()))
        clients = [await self.connect() for _ in names]
        for client, name in zip(clients, names, strict=True):
            await client.greet(name, **fields)
        await self.sessions(before + len(names))
        return clients

    async def result(self) -> dict[str, Any]:
        """The result of the next game to end."""
        async with asyncio.timeout(LIMIT_S):
            return await self.finished.get()

    async def close(self) -> None:
        """End the clients, then the server."""
        await self._clients.aclose()
        self.arena.close()
        await self.server.stop(0.1)


@contextlib.asynccontextmanager
async def connected(
    address: str, roots: bytes | None = None, authority: str | None = None
) -> AsyncIterator[Client]:
    """A client on a connection of its own, over TLS where roots are given."""
    # One subchannel pool each: clients of one process would share a connection otherwise.
    options: list[tuple[str, Any]] = [("grpc.use_local_subchannel_pool", 1)]
    if authority is not None:
        options.append(("grpc.ssl_target_name_override", authority))
    if roots is None:
        channel = grpc.aio.insecure_channel(address, options)
    else:
        channel = grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(roots), options)
    async with channel:
        call: Any = channel.stream_stream(PLAY, _serialized, pb.PlayResponse.FromString)()
        try:
            yield Client(call)
        finally:
            call.cancel()


@contextlib.asynccontextmanager
async def serving(
    config: PlayConfig | None = None,
    recorder: Recorder | None = None,
    tokens: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    grace_s: float = 0.0,
    address: str = "127.0.0.1:0",
    reveals: Reveals | None = None,
) -> AsyncIterator[Serving]:
    """An arena behind a server on a free port."""
    running = Serving(config or PlayConfig(move_ms=60_000), recorder, tokens, limits, grace_s, reveals)
    port = await running.server.start(address)
    running.address = f"127.0.0.1:{port}"
    try:
        yield running
    finally:
        await running.close()


async def all_of(*waits: Any) -> list[Any]:
    """Run all at once; the first failure ends the others."""
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        tasks = [group.create_task(wait) for wait in waits]
    return [task.result() for task in tasks]


def lines_of(paths: Iterable[Path]) -> list[bytes]:
    """Every complete line of some files."""
    return [
        line for path in paths for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")
    ]


async def true_in_time(condition: Callable[[], bool]) -> None:
    """Wait for something that another task brings about and tells nobody of."""
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.005)
