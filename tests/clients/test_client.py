"""The client against an arena that follows a script: one coroutine for each stream, in order."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from support.patience import with_more_time
from support.streams import true_in_time
from tressette.rules.cards import Card
from tressette.rules.presets import PRESETS
from tressette.v1 import arena_service_pb2 as pb
from tressette.v1 import arena_service_pb2_grpc as service
from tressette.v1.event_pb2 import DealStarted, Event, MatchEnded
from tressette.wire.convert import rules_to_wire
from tressette_bot import ConnectionLost, NotConfigured, ProtocolViolated, Reconnect, Refused, client, play
from tressette_bot.bot import Bot
from tressette_bot.reveals import fetch_reveals
from tressette_bot.view import View

QUICK = Reconnect(first_s=0.001, longest_s=0.002, give_up_after_s=30, attempts=4)
RULES = rules_to_wire(PRESETS["tressette-21-duplicate"])


class Stream:
    """The arena's end of one stream."""

    def __init__(self, context: Any) -> None:
        self.context = context

    async def read(self) -> pb.PlayRequest | None:
        """The bot's next message; None when it has gone."""
        request = await self.context.read()
        return None if request is grpc.aio.EOF else request

    async def answers(self) -> list[pb.Answer]:
        """The next message, which must be answers."""
        request = await self.read()
        assert request is not None
        assert request.WhichOneof("message") == "answers", request
        return list(request.answers.answers)

    async def welcome(self, **fields: Any) -> pb.Hello:
        """Read the Hello and answer it."""
        request = await self.read()
        assert request is not None
        defaults: dict[str, Any] = {"name": "b", "protocol": 1, "max_answers": 100, "resume_token": "again"}
        await self.context.write(pb.PlayResponse(welcome=pb.Welcome(**defaults | fields)))
        return request.hello

    async def send(self, *updates: pb.MatchUpdate, errors: Sequence[pb.Error] = ()) -> None:
        """Send a batch."""
        await self.context.write(pb.PlayResponse(batch=pb.Batch(updates=updates, errors=errors)))

    async def end(self, reason: str = "SHUTTING_DOWN", will_return: bool = False) -> None:
        """Send the Ending."""
        value = pb.ErrorReason.Value(f"ERROR_REASON_{reason}")
        ending = pb.Ending(reason=value, message="so long", will_return=will_return)
        await self.context.write(pb.PlayResponse(ending=ending))


Script = Callable[[Stream], Awaitable[None]]


class Arena(service.ArenaServiceServicer):
    """Runs the next script for each stream; what a script raises is kept for the test to see."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.streams = 0
        self.failures: list[BaseException] = []

    async def Play(self, request_iterator: Any, context: Any) -> None:  # type: ignore[override]  # noqa: N802
        """One stream."""
        script = self.scripts[self.streams]
        self.streams += 1
        try:
            await script(Stream(context))
        except Exception as failure:
            if type(failure).__name__ != "AbortError":
                self.failures.append(failure)
            raise

    async def GetReveals(self, request: pb.GetRevealsRequest, context: Any) -> pb.GetRevealsResponse:  # noqa: N802
        """Nothing is revealed in these tests."""
        return pb.GetRevealsResponse()


@asynccontextmanager
async def arena(*scripts: Script) -> AsyncIterator[str]:
    """A served script; gives its address, and checks that every stream of it came and went well."""
    server = grpc.aio.server()
    servicer = Arena(*scripts)
    service.add_ArenaServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(1)
    assert not servicer.failures
    assert servicer.streams == len(scripts)


class Lowest(Bot):
    """Plays the first legal card and remembers what it was asked."""

    name = "lowest"
    version = "7"
    max_matches = 5

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.told: list[str] = []

    def choose(self, view: View) -> Card:
        """The first legal card."""
        self.asked.append((view.handle, view.turn_id))
        return view.legal[0]

    def match_started(self, view: View) -> None:
        """Note it."""
        self.told.append(f"started {view.handle}")

    def match_ended(self, view: View, ranks: Sequence[int], totals: Sequence[int]) -> None:
        """Note it."""
        self.told.append(f"ended {view.handle} {list(ranks)} {list(totals)}")


def turn(handle: str, turn_id: int = 1, *, started: bool = True, first_event: int = 1) -> pb.MatchUpdate:
    """A turn to lead, with card number ``turn_id`` as the first legal one."""
    update = pb.MatchUpdate(handle=handle, first_event=first_event)
    if started:
        update.started.CopyFrom(
            pb.MatchStarted(rules=RULES, seat=0, bot_seed=bytes(32), deck_commitment=b"\xab")
        )
        deal = DealStarted(phase=1, number=1, attempt=1, active=range(4))  # type: ignore[arg-type]
        update.events.append(Event(deal_started=deal))
    update.turn.turn_id = turn_id
    update.turn.view.hand.extend((turn_id, 40))  # type: ignore[arg-type]
    update.turn.view.legal.cards.extend((turn_id, 40))  # type: ignore[arg-type]
    return update


def over(handle: str, first_event: int) -> pb.MatchUpdate:
    """The end of a match."""
    ended = MatchEnded(reason=1, ranks=[1, 2], totals=[42, 24])  # type: ignore[arg-type]
    return pb.MatchUpdate(handle=handle, first_event=first_event, events=[Event(match_ended=ended)])


def named(answers: Sequence[pb.Answer]) -> list[tuple[str, int, int]]:
    """What the answers say, in short."""
    return [(one.handle, one.turn_id, one.card) for one in answers]


async def test_plays_what_comes_until_the_arena_ends() -> None:
    async def script(stream: Stream) -> None:
        hello = await stream.welcome()
        assert (hello.token, hello.label, hello.version, hello.max_matches) == ("secret", "lowest", "7", 5)
        assert hello.min_protocol == hello.max_protocol == 1
        assert hello.client.startswith("tressette-arena/")
        assert not hello.resume_token
        await stream.send(turn("a", 3), turn("b", 4), turn("c", 5))
        assert named(await stream.answers()) == [("a", 3, 3), ("b", 4, 4), ("c", 5, 5)]
        await stream.send(over("b", 2), turn("a", 6, started=False))
        assert named(await stream.answers()) == [("a", 6, 6)]
        await stream.end()

    bot = Lowest()
    async with arena(script) as address:
        await play(bot, address, "secret")
    assert bot.told == ["started a", "started b", "started c", "ended b [1, 2] [42, 24]"]


async def test_answers_are_split_at_the_arenas_limit() -> None:
    async def script(stream: Stream) -> None:
        await stream.welcome(max_answers=2)
        await stream.send(*(turn(handle) for handle in "abcde"))
        assert [len(await stream.answers()) for _ in range(3)] == [2, 2, 1]
        await stream.end()

    async with arena(script) as address:
        await play(Lowest(), address)


async def test_a_slow_bots_answers_are_not_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FLUSH_S", 0.0)  # every choice takes longer than that

    async def script(stream: Stream) -> None:
        await stream.welcome()
        await stream.send(turn("a"), turn("b"), turn("c"))
        assert [named(await stream.answers())[0][0] for _ in range(3)] == ["a", "b", "c"]
        await stream.end()

    async with arena(script) as address:
        await play(Lowest(), address)


async def test_a_bot_that_wants_batches_gets_them() -> None:
    class Network(Lowest):
        def choose_many(self, views: Sequence[View]) -> Sequence[Card]:
            self.told.append(f"{len(views)} at once")
            return [view.legal[-1] for view in views]

    async def script(stream: Stream) -> None:
        await stream.welcome(max_answers=2)
        await stream.send(turn("a"), turn("b"), turn("c"))
        answers = await stream.answers() + await stream.answers()
        assert named(answers) == [("a", 1, 40), ("b", 1, 40), ("c", 1, 40)]
        await stream.end()

    bot = Network()
    async with arena(script) as address:
        await play(bot, address)
    assert bot.told[-1] == "3 at once"
    assert not bot.asked


async def test_signs_of_life_are_answered() -> None:
    async def script(stream: Stream) -> None:
        await stream.welcome()
        for nonce in (17, 2**64 - 1):
            await stream.context.write(pb.PlayResponse(ping=pb.Ping(nonce=nonce)))
            assert await stream.read() == pb.PlayRequest(pong=pb.Pong(nonce=nonce))
        await stream.context.write(pb.PlayResponse(drain=pb.Drain(message="soon")))
        await stream.end()

    async with arena(script) as address:
        await play(Lowest(), address)


async def test_a_refused_answer_is_corrected_once_when_the_turn_comes_again() -> None:
    async def script(stream: Stream) -> None:
        await stream.welcome()
        await stream.send(turn("a"), turn("b"))
        await stream.answers()
        reason = pb.ERROR_REASON_MUST_FOLLOW_SUIT
        errors = [
            pb.Error(reason=reason, handle="a", turn_id=1, may_retry=True),
            pb.Error(reason=reason, handle="b", turn_id=1, may_retry=True),
            pb.Error(reason=reason, handle="gone", turn_id=1),
        ]
        await stream.send(turn("a", started=False), errors=errors)
        assert sorted(named(await stream.answers())) == [("a", 1, 1), ("b", 1, 1)]
        await stream.end()

    bot = Lowest()
    async with arena(script) as address:
        await play(bot, address)
    assert sorted(bot.asked) == [("a", 1), ("a", 1), ("b", 1), ("b", 1)]


async def test_an_arena_that_means_to_be_back_is_resumed() -> None:
    async def suspended(stream: Stream) -> None:
        await stream.welcome(grace_ms=5000)
        await stream.send(turn("a"))
        await stream.answers()
        await stream.end(will_return=True)

    async def resumed(stream: Stream) -> None:
        hello = await stream.welcome(resumed=True)
        assert hello.resume_token == "again"
        assert [position.handle for position in hello.positions] == ["a"]
        await stream.end()

    async with arena(suspended, resumed) as address:
        await play(Lowest(), address, reconnect=QUICK)


async def test_a_dropped_stream_is_taken_up_where_it_was() -> None:
    async def dropped(stream: Stream) -> None:
        await stream.welcome()
        await stream.send(turn("a"), turn("b", 2))
        assert named(await stream.answers()) == [("a", 1, 1), ("b", 2, 2)]
        await stream.context.abort(grpc.StatusCode.UNAVAILABLE, "pulled the plug")

    async def resumed(stream: Stream) -> None:
        hello = await stream.welcome(resumed=True)
        assert hello.resume_token == "again"
        assert {one.handle: one.last_event for one in hello.positions} == {"a": 1, "b": 1}
        # The answer to a was lost, the one to b was not.
        await stream.send(turn("a"), turn("b", 3, first_event=1))
        assert named(await stream.answers()) == [("a", 1, 1), ("b", 3, 3)]
        await stream.end()

    bot = Lowest()
    async with arena(dropped, resumed) as address:
        await play(bot, address, reconnect=QUICK)
    assert bot.asked == [("a", 1), ("b", 2), ("b", 3)]
    assert bot.told == ["started a", "started b"]


@pytest.mark.parametrize("refused", [True, False])
async def test_a_session_that_is_lost_is_followed_by_a_new_one(refused: bool) -> None:
    async def dropped(stream: Stream) -> None:
        await stream.welcome()
        await stream.send(turn("a"))
        await stream.answers()

    async def unknown(stream: Stream) -> None:
        await stream.read()
        await stream.end("RESUME_UNKNOWN")

    async def fresh(stream: Stream) -> None:
        hello = await stream.welcome()
        assert bool(hello.resume_token) != refused
        await stream.send(turn("a"))
        assert named(await stream.answers()) == [("a", 1, 1)]
        await stream.end()

    bot = Lowest()
    scripts = (dropped, unknown, fresh) if refused else (dropped, fresh)
    async with arena(*scripts) as address:
        await play(bot, address, reconnect=QUICK)
    assert bot.told == ["started a", "started a"]


@contextmanager
def _nowhere() -> Iterator[str]:
    """An address where nobody listens, nor can while this lasts."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


async def test_gives_up_when_no_arena_is_there() -> None:
    lost = pytest.raises(ConnectionLost, match="after 4 attempts: UNAVAILABLE")
    with _nowhere() as address, lost as caught:
        await play(Lowest(), address, reconnect=QUICK)
    assert caught.value.attempts == 4


async def test_gives_up_in_time_when_the_arena_is_gone_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def monotonic() -> float:
        """A second passes from one look to the next once the arena is gone."""
        nonlocal now
        now += is_over
        return now

    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=monotonic))
    is_over = False

    async def dropped(stream: Stream) -> None:
        await stream.welcome()
        gone.set()
        assert await stream.read() is None

    patience = Reconnect(first_s=0.01, longest_s=0.02, give_up_after_s=30, attempts=1000)
    gone = asyncio.Event()
    async with arena(dropped) as address:
        task = asyncio.create_task(play(Lowest(), address, reconnect=patience))
        await gone.wait()
    is_over = True
    with pytest.raises(ConnectionLost) as caught:
        await task
    assert 2 < caught.value.attempts < 30


async def test_matches_under_way_are_worth_the_whole_grace_period(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: now))

    async def dropped(stream: Stream) -> None:
        await stream.welcome(grace_ms=20_000)
        await stream.send(turn("a"))
        await stream.answers()
        await stream.context.abort(grpc.StatusCode.UNAVAILABLE, "pulled the plug")

    async def still_away(stream: Stream) -> None:
        nonlocal now
        now += 3.0
        await stream.context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")

    async def resumed(stream: Stream) -> None:
        await stream.welcome(resumed=True)
        await stream.end()

    # Its own limits, of time and of attempts, are long past in the end: 18 seconds and seven attempts.
    short = Reconnect(first_s=0.01, longest_s=0.02, give_up_after_s=10, attempts=2)
    async with arena(dropped, *[still_away] * 6, resumed) as address:
        await play(Lowest(), address, reconnect=short)


async def test_an_arena_that_is_back_late_without_the_session_gets_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: now))

    async def dropped(stream: Stream) -> None:
        await stream.welcome(grace_ms=20_000)
        await stream.send(turn("a"))
        await stream.answers()

    async def away(stream: Stream) -> None:
        nonlocal now
        now += 6.0
        await stream.context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")

    async def unknown(stream: Stream) -> None:
        hello = await stream.read()
        assert hello is not None
        assert hello.hello.resume_token
        await stream.end("RESUME_UNKNOWN")

    async def fresh(stream: Stream) -> None:
        assert not (await stream.welcome()).resume_token
        await stream.end()

    # Without matches to win back it would have given up after ten seconds, or two attempts.
    short = Reconnect(first_s=0.01, longest_s=0.02, give_up_after_s=10, attempts=2)
    async with arena(dropped, away, away, away, unknown, fresh) as address:
        await play(Lowest(), address, reconnect=short)


async def test_a_new_session_that_is_unknown_is_refused() -> None:
    async def unknown(stream: Stream) -> None:
        await stream.read()
        await stream.end("RESUME_UNKNOWN")

    async with arena(unknown) as address:
        with pytest.raises(Refused, match="RESUME_UNKNOWN"):
            await play(Lowest(), address, reconnect=QUICK)


async def test_gives_up_on_an_arena_that_says_nothing() -> None:
    """After a time in which its Hello must have come to the arena."""
    await with_more_time(_says_nothing, 200, 2000, 20_000)


async def _says_nothing(patience_ms: int) -> None:
    async def silent(stream: Stream) -> None:
        await stream.read()
        assert await stream.read() is None

    patience = Reconnect(give_up_after_s=patience_ms / 1000)
    async with arena(silent) as address:
        with pytest.raises(ConnectionLost, match="no Welcome in time"):
            await play(Lowest(), address, reconnect=patience)


@pytest.mark.parametrize("when", ["first", "later"])
async def test_a_refusal_is_final_and_typed(when: str) -> None:
    async def script(stream: Stream) -> None:
        if when == "later":
            await stream.welcome()
        else:
            await stream.read()
        await stream.end("UNAUTHENTICATED" if when == "first" else "REPLACED")

    async with arena(script) as address:
        with pytest.raises(Refused, match="so long") as caught:
            await play(Lowest(), address)
    assert caught.value.reason == ("UNAUTHENTICATED" if when == "first" else "REPLACED")


async def test_a_grpc_status_that_no_attempt_would_change_is_final() -> None:
    async def script(stream: Stream) -> None:
        await stream.read()  # while the Hello is being written, grpc may say INTERNAL: that is tried again
        await stream.context.abort(grpc.StatusCode.PERMISSION_DENIED, "not you")

    async with arena(script) as address:
        with pytest.raises(Refused, match="PERMISSION_DENIED: not you"):
            await play(Lowest(), address)


async def test_an_arena_that_is_just_shutting_down_is_no_error() -> None:
    async def script(stream: Stream) -> None:
        await stream.read()
        await stream.end()

    async with arena(script) as address:
        await play(Lowest(), address)


async def test_nonsense_of_the_arena_is_refused() -> None:
    async def not_a_welcome(stream: Stream) -> None:
        await stream.read()
        await stream.send()

    async def unknown_match(stream: Stream) -> None:
        await stream.welcome()
        await stream.send(turn("a", started=False))
        assert await stream.read() is None

    for script in (not_a_welcome, unknown_match):
        async with arena(script) as address:
            with pytest.raises(ProtocolViolated):
                await play(Lowest(), address)


async def test_a_crash_of_the_bot_is_a_crash(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Lowest):
        def choose(self, view: View) -> Card:
            raise ZeroDivisionError("a bug")

    async def script(stream: Stream) -> None:
        await stream.welcome()
        await stream.send(turn("a"))
        assert await stream.read() is None  # gone without a Goodbye

    async with arena(script) as address:
        with pytest.raises(ZeroDivisionError, match="a bug"):
            await play(Broken(), address)
    assert "seat 0, turn 1 of the match with deck commitment ab: the bot raised ZeroD" in caplog.text


async def test_a_crash_of_a_bot_that_wants_batches_is_a_crash(caplog: pytest.LogCaptureFixture) -> None:
    """Cards that are too few as well as what it raises itself."""

    class Network(Lowest):
        def choose_many(self, views: Sequence[View]) -> Sequence[Card]:
            return [view.legal[0] for view in views[1:]]

    async def script(stream: Stream) -> None:
        await stream.welcome()
        await stream.send(turn("a"), turn("b"), turn("c"))
        assert await stream.read() is None

    async with arena(script) as address:
        with pytest.raises(ValueError, match="shorter"):
            await play(Network(), address)
    told = "seat 0, turn 1 of the match with deck commitment ab and of 2 more: the bot raised ValueError"
    assert told in caplog.text


@pytest.mark.parametrize("card", [-1, 40])
async def test_what_is_no_card_is_a_crash(card: int) -> None:
    class Broken(Lowest):
        def choose(self, view: View) -> Card:
            return Card(card)

    async def script(stream: Stream) -> None:
        await stream.welcome()
        await stream.send(turn("a"))
        assert await stream.read() is None

    async with arena(script) as address:
        with pytest.raises(ValueError, match="is no card"):
            await play(Broken(), address)


async def test_leaving_says_goodbye() -> None:
    ready = asyncio.Event()

    async def script(stream: Stream) -> None:
        await stream.welcome()
        await stream.send(turn("a"))
        await stream.answers()
        ready.set()
        request = await stream.read()
        assert request is not None
        assert request.WhichOneof("message") == "goodbye"
        await stream.end("UNSPECIFIED")

    async with arena(script) as address:
        task = asyncio.create_task(play(Lowest(), address))
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_opens_a_session_on_every_address() -> None:
    def member(handle: str, *others: str) -> Script:
        async def script(stream: Stream) -> None:
            await stream.welcome(addresses=others)
            await stream.send(turn(handle))
            await stream.answers()
            await stream.end()

        return script

    bot = Lowest()
    async with arena(member("b")) as second, arena(member("a", second, second)) as first:
        await play(bot, first)
    assert sorted(bot.asked) == [("a", 1), ("b", 1)]


async def test_an_address_that_cannot_be_reached_is_no_reason_to_leave_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def script(stream: Stream) -> None:
        await stream.welcome(addresses=[nowhere])
        await true_in_time(lambda: f"no arena at {nowhere}" in caplog.text)
        await stream.send(turn("a"))
        await stream.answers()
        await stream.end()

    bot = Lowest()
    with _nowhere() as nowhere:
        async with arena(script) as address:
            with pytest.raises(ConnectionLost) as caught:
                await play(bot, address, reconnect=QUICK)
    assert caught.value.address == nowhere
    assert bot.asked == [("a", 1)]


async def test_a_proxy_is_not_asked_for_the_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(stream: Stream) -> None:
        await stream.welcome()
        await stream.end()

    for name in ("no_grpc_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with _nowhere() as proxy:
        monkeypatch.setenv("http_proxy", f"http://{proxy}")
        async with arena(script) as address:
            await play(Lowest(), address, reconnect=QUICK)


async def test_address_and_token_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(stream: Stream) -> None:
        hello = await stream.welcome()
        assert (hello.token, hello.label) == ("from outside", "outsider")
        await stream.end()

    class Nameless(Lowest):
        name = ""

    monkeypatch.delenv("TRESSETTE_ADDRESS", raising=False)
    with pytest.raises(NotConfigured, match="TRESSETTE_ADDRESS"):
        await play(Nameless())
    async with arena(script) as address:
        monkeypatch.setenv("TRESSETTE_ADDRESS", address)
        monkeypatch.setenv("TRESSETTE_TOKEN", "from outside")
        monkeypatch.setenv("TRESSETTE_BOT_NAME", "outsider")
        await play(Nameless())


@pytest.mark.parametrize(
    "address", ["nonsense", "127.0.0.1:99999", "127.0.0.1:0", "127.0.0.1:", ":50051", "127.0.0.1:x", "[::1]"]
)
async def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    """gRPC would look for a host of that name, or take the port modulo 65536."""
    with pytest.raises(NotConfigured, match=r"is not HOST:PORT with a port from 1 to 65535"):
        await play(Lowest(), address)
    with pytest.raises(NotConfigured, match=r"is not HOST:PORT with a port from 1 to 65535"):
        list(fetch_reveals(address))


async def test_a_token_or_name_that_is_no_text_is_refused() -> None:
    class Odd(Lowest):
        name = "\udcff"

    with pytest.raises(NotConfigured, match=r"^token: not UTF-8 text"):
        await play(Lowest(), "127.0.0.1:1", "\udcff")
    with pytest.raises(NotConfigured, match=r"^name: not UTF-8 text"):
        await play(Odd(), "127.0.0.1:1")


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("unix:/tmp/arena", True),
        ("10.0.0.1:1", False),
        ("arena.example:443", False),
        ("localhost.example:443", False),
    ],
)
def test_plain_text_only_on_loopback(address: str, loopback: bool) -> None:
    assert client.is_loopback(address) == loopback


async def _python(code: str, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(code), *arguments, stderr=asyncio.subprocess.PIPE
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_process_cleanly(number: signal.Signals) -> None:
    ready = asyncio.Event()

    async def script(stream: Stream) -> None:
        hello = await stream.welcome()
        assert (hello.label, hello.max_matches) == ("me", 3)
        await stream.send(turn("a"))
        await stream.answers()
        ready.set()
        request = await stream.read()
        assert request is not None
        assert request.WhichOneof("message") == "goodbye"
        await stream.end("UNSPECIFIED")

    code = "import sys; from tressette_bot.cli import bot; bot(sys.argv[1:])"
    async with arena(script) as address:
        process = await _python(code, "random", "--address", address, "--label", "me", "--max-matches", "3")
        await ready.wait()
        process.send_signal(number)
        _, stderr = await process.communicate()
    assert (process.returncode, stderr) == (0, b"")


async def test_a_crash_shows_its_traceback_and_a_status() -> None:
    async def script(stream: Stream) -> None:
        await stream.welcome()
        await stream.send(turn("a"))
        assert await stream.read() is None

    code = """
        import sys
        from tressette_bot import Bot, run

        class Broken(Bot):
            def choose(self, view):
                raise ZeroDivisionError("a bug")

        run(Broken(), sys.argv[1])
    """
    async with arena(script) as address:
        process = await _python(code, address)
        _, stderr = await process.communicate()
    assert process.returncode == 1
    assert b"in choose" in stderr
    assert stderr.rstrip().endswith(b"ZeroDivisionError: a bug")
