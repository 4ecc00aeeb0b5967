"""The known traps of grpc-python (design: the arena protocol), by their numbers, and what holds each shut.

``TRAPS`` names the test of each, against a server in another process or, for rules of code, of the sources; a
test here sees that they exist. What no other file has is below.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import itertools
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.patience import with_more_time
from support.processes import end, start
from support.streams import LIMIT_S, Client, all_of, connected, has_ended, hello
from support.tables import game_spec
from support.watched import Options, watching
from tressette.rules.presets import resolve
from tressette.v1 import arena_service_pb2 as pb
from tressette.wire.limits import MIN_KEEPALIVE_MS
from tressette_bot import play
from tressette_bot.bots import REFERENCE_BOTS

TESTS = Path(__file__).parents[1]
SERVER = TESTS.parent / "server" / "tressette"
CLIENT = TESTS.parent / "clients" / "python" / "tressette_bot"

HERE = "faults/test_traps.py"
EFFECTS = "faults/test_options.py"
STORMS = "faults/test_storms.py"
LAYERING = "test_layering.py"

TRAPS: dict[int, tuple[str, dict[str, str]]] = {
    1: (
        "two coroutines writing one stream: most writes fail silently",
        {
            "test_only_the_stream_writes": HERE,
            "test_a_bot_that_writes_all_the_time_still_hears_why_it_ends": HERE,
        },
    ),
    2: ("two readers: the second sees the end", {"test_only_one_place_reads": HERE}),
    3: (
        "a frozen peer with its TCP alive",
        {
            "test_a_frozen_bot_costs_its_own_time_only": HERE,
            "test_a_peer_that_is_gone_without_a_word_is_dropped": EFFECTS,
        },
    ),
    4: (
        "too_many_pings",
        {
            "test_a_bot_that_pings_as_often_as_it_may_is_not_cut_off": HERE,
            "test_quiet_peers_may_ping_as_often_as_published": EFFECTS,
            "test_a_peer_that_pings_without_end_is_cut_off": EFFECTS,
        },
    ),
    5: (
        "a misspelt channel option is silently ignored",
        {"test_every_option_is_seen_to_have_its_effect": HERE},
    ),
    6: (
        "aborting while the client writes",
        {"test_a_bot_that_writes_all_the_time_still_hears_why_it_ends": HERE},
    ),
    7: (
        "a handler that raises CancelledError leaves the client waiting",
        {"test_a_server_that_stops_tells_everybody_and_is_quick": HERE},
    ),
    8: ("swallowing CancelledError leaks", {"test_nobody_swallows_a_cancellation": HERE}),
    9: ("abandoned client calls are never collected", {"test_the_sdk_leaves_no_stream_behind": HERE}),
    10: ("cancelled() is false in done-callbacks", {"test_callbacks_are_for_tasks_only": HERE}),
    11: ("contextvar tokens across yields", {"test_nobody_does_what_is_forbidden": LAYERING}),
    12: (
        "a paused reader absorbs megabytes",
        {"test_a_bot_that_never_reads_is_cut_off": STORMS},
    ),
    13: (
        "a half-close is invisible unless a read is pending",
        {"test_slow_deaf_and_half_closed_streams": STORMS},
    ),
    14: (
        "an open health Watch takes the whole grace",
        {"test_a_server_that_stops_tells_everybody_and_is_quick": HERE},
    ),
    15: ("signals by add_signal_handler", {"test_games_are_played_out": "wire/test_drain.py"}),
    16: ("so_reuseport is on by default", {"test_no_other_process_gets_the_port": EFFECTS}),
    17: ("sync handlers in an aio server", {"test_handlers_in_the_sources_are_async": LAYERING}),
    18: ("one event loop a process", {"test_asyncio_run_stands_only_where_a_process_begins": LAYERING}),
    19: ("never fork after grpc is imported", {"test_nobody_does_what_is_forbidden": LAYERING}),
    20: (
        "generated code newer than the runtime",
        {"test_the_floor_of_grpcio_is_what_the_stubs_need": "test_packaging.py"},
    ),
    21: (
        "default limits",
        {
            "test_a_message_over_the_limit_ends_that_stream_only": EFFECTS,
            "test_a_message_may_be_larger_than_grpc_would_have_it": EFFECTS,
            "test_metadata_beyond_what_grpc_takes_ends_that_stream_only": EFFECTS,
        },
    ),
}

GONE = ("test_a_peer_that_is_gone_without_a_word_is_dropped", EFFECTS)
PINGING = ("test_a_client_pings_as_often_as_it_may_and_notices_when_nothing_comes_back", EFFECTS)
UNPROXIED = "test_a_proxy_is_not_asked_for_the_loopback"

OPTIONS: dict[Path, dict[str, tuple[str, str]]] = {
    SERVER / "wire" / "server.py": {
        "grpc.so_reuseport": ("test_no_other_process_gets_the_port", EFFECTS),
        "grpc.http2.min_ping_interval_without_data_ms": (
            "test_quiet_peers_may_ping_as_often_as_published",
            EFFECTS,
        ),
        "grpc.keepalive_permit_without_calls": GONE,
        "grpc.keepalive_time_ms": GONE,
        "grpc.http2.ping_timeout_ms": GONE,
        "grpc.server_handshake_timeout_ms": ("test_who_connects_and_says_nothing_is_dropped", EFFECTS),
        "grpc.max_receive_message_length": ("test_a_message_over_the_limit_ends_that_stream_only", EFFECTS),
        "grpc.max_concurrent_streams": ("test_one_connection_has_no_more_streams_than_it_may", EFFECTS),
        "grpc.max_allowed_incoming_connections": (
            "test_connections_leave_descriptors_for_the_rest",
            EFFECTS,
        ),
    },
    CLIENT / "client.py": {
        "grpc.enable_http_proxy": (UNPROXIED, "clients/test_client.py"),
        "grpc.enable_retries": ("test_every_attempt_is_the_clients_own", EFFECTS),
        "grpc.use_local_subchannel_pool": (
            "test_two_bots_of_a_process_do_not_wait_for_each_others_attempts",
            EFFECTS,
        ),
        "grpc.max_receive_message_length": ("test_a_message_may_be_larger_than_grpc_would_have_it", EFFECTS),
        "grpc.keepalive_time_ms": PINGING,
        "grpc.http2.ping_timeout_ms": PINGING,
        "grpc.http2.max_pings_without_data": PINGING,
    },
    CLIENT / "reveals.py": {"grpc.enable_http_proxy": (UNPROXIED, "test_reveal_command.py")},
}
"""The channel options of each module, and the test that sees from outside what each does."""


def is_defined(name: str, file: str) -> bool:
    """Whether a test stands in a file."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name for node in tree.body
    )


def test_every_trap_is_held_shut() -> None:
    assert sorted(TRAPS) == list(range(1, 22))
    for number, (_, tests) in TRAPS.items():
        assert tests, number
        for name, file in tests.items():
            assert is_defined(name, file), (number, file, name)


def options_in(path: Path) -> list[str]:
    """The names of all channel options in a module."""
    return sorted(
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("grpc.")
    )


def test_every_option_is_seen_to_have_its_effect() -> None:
    for path, options in OPTIONS.items():
        assert options_in(path) == sorted(options)
        for name, file in options.values():
            assert is_defined(name, file), (path, file, name)


def test_options_are_set_in_these_modules_only() -> None:
    hand_written = [
        path for folder in (SERVER, CLIENT) for path in folder.rglob("*.py") if path.parent.name != "v1"
    ]
    assert {path for path in hand_written if options_in(path)} == set(OPTIONS)


# -- code rules ---------------------------------------------------------------------------------------


def sources() -> Iterator[tuple[str, ast.Module]]:
    """The hand-written sources of the server, by their path in it."""
    for path in sorted(SERVER.rglob("*.py")):
        if path.parent.name != "v1":
            yield str(path.relative_to(SERVER)), ast.parse(path.read_text(encoding="utf-8"))


def calls_on_context(method: str) -> set[tuple[str, str]]:
    """(file, function) of every use of ``context.METHOD``."""
    found = set()
    for file, tree in sources():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Attribute) and node.attr == method:
                        owner = node.value
                        name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                        if name == "context":
                            found.add((file, function.name))
    return found


def test_only_the_stream_writes() -> None:
    """``said`` and the Ending only before and after ``write`` runs, ``_write`` only within it."""
    assert calls_on_context("write") <= {
        ("wire/stream.py", "_write"),
        ("wire/stream.py", "said"),
        ("wire/service.py", "play"),
        ("wire/health.py", "Watch"),
    }


def test_only_one_place_reads() -> None:
    assert calls_on_context("read") == {("wire/stream.py", "receive")}


def test_nobody_swallows_a_cancellation() -> None:
    for file, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler):
                names = (
                    {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)}
                    if node.type
                    else {""}
                )
                names |= (
                    {n.attr for n in ast.walk(node.type) if isinstance(n, ast.Attribute)}
                    if node.type
                    else set()
                )
                if names & {"", "BaseException", "CancelledError"}:
                    assert any(isinstance(inner, ast.Raise) for inner in ast.walk(node)), (file, node.lineno)


def test_callbacks_are_for_tasks_only() -> None:
    used = [
        (file, node.lineno)
        for file, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "add_done_callback"
    ]
    assert {file for file, _ in used} <= {"wire/stream.py"}, used  # on the task that reads


# -- against a server in another process --------------------------------------------------------------


async def test_a_frozen_bot_costs_its_own_time_only(tmp_path: Path) -> None:
    """Under SIGSTOP a bot's TCP goes on; only the clock of its turns notices, unless ten of them outlast its
    keepalive, which they must not here."""
    await with_more_time(lambda move_ms: _one_is_frozen(tmp_path / f"{move_ms}", move_ms), 500, 1500, 2500)


async def _one_is_frozen(folder: Path, move_ms: int) -> None:
    heard: list[list[float]] = []

    async def play_and_note(client: Client) -> None:
        """Play a game, and note when it was heard of each fault."""
        at_s: list[float] = []
        heard.append(at_s)

        def note(batch: pb.Batch) -> bool:
            kinds = [event.WhichOneof("kind") for update in batch.updates for event in update.events]
            at_s.extend([time.monotonic()] * kinds.count("fault_committed"))
            return any(map(has_ended, batch.updates))

        await client.play(note)

    async with (
        watching(folder, Options(play={"move_ms": move_ms})) as at,
        contextlib.AsyncExitStack() as stack,
    ):
        bot = await start("-m", "tressette", "bot", "first_legal", "--address", at.address, "--label", "a")
        try:
            await at.until(lambda counts: counts["sessions"] == 1, "with the bot")
            bot.send_signal(signal.SIGSTOP)
            clients = [await stack.enter_async_context(connected(at.address)) for _ in range(7)]
            for client, name in zip(clients, "bcdefgh", strict=True):
                await client.greet(name)
            many = resolve("traversone-003-21-duplicate", deals=5)
            at.play(game_spec("frozen"), game_spec("others", rules=many, bots="efgh"))
            await all_of(
                *(play_and_note(client) for client in clients[:3]),
                *(client.play_games() for client in clients[3:]),
            )
            await at.finished(lambda result: result["game"] == "frozen")
        finally:
            bot.send_signal(signal.SIGCONT)
            await end(bot)
        others, frozen = at.results
    assert (others["game"], others["faults"]) == ("others", []), "the other match did not notice"
    assert frozen["faults"] == [["a", "timeout", 10]]
    assert 10 * move_ms <= frozen["duration_ms"] <= 10 * (move_ms + 500)
    # Each turn ends within half a second of its deadline; the others take next to no time for theirs.
    first_heard = [min(times) for times in zip(*heard, strict=True)]
    between = [later - earlier for earlier, later in itertools.pairwise(first_heard)]
    assert len(between) == 9
    assert max(between) <= move_ms / 1000 + 0.5, between


@pytest.mark.parametrize("in_a_session", [False, True])
async def test_a_bot_that_writes_all_the_time_still_hears_why_it_ends(
    tmp_path: Path, in_a_session: bool
) -> None:
    """Closing a stream under the hands of a client that writes would show it INTERNAL instead."""
    nonsense = pb.Answer(handle="none", turn_id=1)

    async def write(client: Client) -> None:
        for number in itertools.count():
            await client.answer(nonsense)
            if number == 20:
                await client.send(hello())

    # However long this process stands still, the server waits for it to close.
    async with watching(tmp_path, Options(closing_s=LIMIT_S)) as at, connected(at.address) as client:
        if in_a_session:
            await client.greet()
        writing = asyncio.create_task(write(client))
        while (response := await client.receive()).WhichOneof("message") != "ending":
            assert response.batch.errors
        assert not writing.done(), "the stream is open for writing still"
        writing.cancel()
        await asyncio.wait((writing,))
    wrong = pb.ERROR_REASON_HELLO_REPEATED if in_a_session else pb.ERROR_REASON_HELLO_EXPECTED
    assert response.ending.reason == wrong


async def test_a_server_that_stops_tells_everybody_and_is_quick(tmp_path: Path) -> None:
    """Bots in the middle of a match and a watch on its health: each call ends in good order, not by being cut
    off when the grace is over."""
    async with watching(tmp_path) as at, contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(at.address)) for _ in range(4)]
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(at.address))
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        for client, name in zip(clients, "abcd", strict=True):
            await client.greet(name)
        at.play(game_spec("cut off"))
        await at.until(lambda counts: counts["games"] == 1, "playing")
        at.tell(stop=True)
        endings = await all_of(*(client.ending() for client in clients))
        assert {ending.reason for ending in endings} == {pb.ERROR_REASON_SHUTTING_DOWN}
        async with asyncio.timeout(LIMIT_S):
            while (last := await watch.read()) is not grpc.aio.EOF:
                assert last.status == health_pb2.HealthCheckResponse.NOT_SERVING
            assert await watch.code() is grpc.StatusCode.OK


async def test_the_sdk_leaves_no_stream_behind(tmp_path: Path) -> None:
    async with watching(tmp_path) as at:
        tasks = [asyncio.create_task(play(REFERENCE_BOTS["random"](), at.address)) for _ in range(3)]
        await at.until(lambda counts: counts["streams"] == 3, "with three streams")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await at.until(lambda counts: counts["streams"] == 0, "without streams")


@pytest.mark.slow
async def test_a_bot_that_pings_as_often_as_it_may_is_not_cut_off(tmp_path: Path) -> None:
    """The core answers the third ping that comes too early with GOAWAY; these never do."""
    options = [
        ("grpc.keepalive_time_ms", MIN_KEEPALIVE_MS),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    async with watching(tmp_path) as at, grpc.aio.insecure_channel(at.address, options) as channel:
        call = channel.stream_stream(
            "/tressette.v1.ArenaService/Play", pb.PlayRequest.SerializeToString, pb.PlayResponse.FromString
        )()
        client = Client(call)
        await client.greet("quiet")

        async def read_on() -> None:
            while await call.read() is not grpc.aio.EOF:
                pass  # the arena's own pings, unanswered

        # Not cut short by a timeout of its own: a read that is cancelled would end the stream.
        reading = asyncio.create_task(read_on())
        ended, _ = await asyncio.wait((reading,), timeout=4.5 * MIN_KEEPALIVE_MS / 1000)
        assert not ended, "the stream has ended"
        assert (await at.counts())["streams"] == 1
        call.cancel()
        await asyncio.gather(reading, return_exceptions=True)
