"""Spans of calls, as an exporter gets them: an operator sees each call, and a bot notices nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import pytest
from click.testing import CliRunner
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from support.processes import LIMIT_S, Lines, end, start
from support.streams import Client, all_of, connected, hello
from support.tables import KEY, game_spec
from tressette.cli import main
from tressette.play.arena import Arena
from tressette.play.config import PlayConfig
from tressette.v1 import arena_service_pb2 as pb
from tressette.v1 import arena_service_pb2_grpc as service
from tressette.wire import telemetry
from tressette.wire.server import ArenaServer
from tressette.wire.telemetry import Telemetry, TelemetryUnavailable

pytestmark = pytest.mark.asyncio(loop_scope="session")

ARENA = "tressette.v1.ArenaService"
HEALTH = "grpc.health.v1.Health"


class Traced:
    """A server with telemetry. ``arena``: what it serves; ``address``: where; ``spans``: those exported, once
    it is closed."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._telemetry = Telemetry([self._exporter])
        self.arena = Arena(KEY, PlayConfig(move_ms=60_000))
        self.server = ArenaServer(
            self.arena,
            {"s3cret": "alice"}.get,
            reflect=True,
            interceptors=self._telemetry.interceptors,
        )
        self.address = ""
        self.spans: Sequence[ReadableSpan] = ()

    async def close(self) -> None:
        self.arena.close()
        await self.server.stop(0.2)
        await self._telemetry.close()
        self.spans = self._exporter.get_finished_spans()

    def span(self, method: str) -> ReadableSpan:
        """The one span of a method."""
        (found,) = (span for span in self.spans if span.name == method)
        return found


@contextlib.asynccontextmanager
async def traced() -> AsyncIterator[Traced]:
    running = Traced()
    running.address = f"127.0.0.1:{await running.server.start('127.0.0.1:0')}"
    try:
        yield running
    finally:
        await running.close()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_unary_call_is_a_span() -> None:
    async with traced() as server, grpc.aio.insecure_channel(server.address) as channel:
        response = await health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(service=ARENA)
        )
        assert response.status == health_pb2.HealthCheckResponse.SERVING
    span = server.span(f"/{HEALTH}/Check")
    assert (
        attributes(span).items()
        >= {
            "rpc.system": "grpc",
            "rpc.service": HEALTH,
            "rpc.method": "Check",
            "rpc.grpc.status_code": 0,
            "net.peer.ip": "127.0.0.1",
        }.items()
    )
    assert span.resource.attributes["service.name"] == "tressette-arena"
    assert span.end_time is not None
    assert span.start_time is not None
    assert 0 < span.end_time - span.start_time < LIMIT_S * 1e9


async def test_a_call_that_is_refused_has_its_status() -> None:
    async with traced() as server, grpc.aio.insecure_channel(server.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await service.ArenaServiceStub(channel).GetReveals(
                pb.GetRevealsRequest(commitments=[b"short"]), metadata=(("authorization", "Bearer s3cret"),)
            )
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    span = server.span(f"/{ARENA}/GetReveals")
    assert attributes(span)["rpc.grpc.status_code"] == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert "s3cret" not in span.to_json()


async def test_bots_play_as_without_it_and_their_streams_are_spans() -> None:
    """The standard interceptor alone ends every Play stream with a TypeError."""
    async with traced() as server, contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(server.address)) for _ in range(4)]
        server.arena.submit(game_spec(bots=("alice",) * 4))
        for client in clients:
            await client.greet("label", token="s3cret")
        await all_of(*(client.play_games() for client in clients))
        for client in clients:
            await client.send(pb.PlayRequest(goodbye=pb.Goodbye()))
            assert (await client.ending()).reason == pb.ERROR_REASON_UNSPECIFIED
    spans = [span for span in server.spans if span.name == f"/{ARENA}/Play"]
    assert len(spans) == 4, "one for each stream, however much has passed on it"
    assert {span.status.status_code for span in spans} == {StatusCode.UNSET}
    assert not any(span.events for span in spans)
    assert "s3cret" not in "".join(span.to_json() for span in spans)


async def test_streams_that_break_or_are_refused_or_stopped_are_spans_too() -> None:
    async with traced() as server, contextlib.AsyncExitStack() as stack:
        lost, refused, stopped = [
            await stack.enter_async_context(connected(server.address)) for _ in range(3)
        ]
        await lost.greet(token="s3cret")
        lost.cancel()
        await refused.send(hello(token="wrong"))
        assert (await refused.ending()).reason == pb.ERROR_REASON_UNAUTHENTICATED
        await stopped.greet(token="s3cret")
        ending, _ = await all_of(_last(stopped), server.server.stop(LIMIT_S))
        assert ending.reason == pb.ERROR_REASON_SHUTTING_DOWN
    assert [span.name for span in server.spans] == [f"/{ARENA}/Play"] * 3


async def _last(client: Client) -> pb.Ending:
    return await client.ending()


async def test_the_other_streams_of_the_server_go_on_as_well() -> None:
    """A watch is a coroutine as Play is, the reflection service a generator."""
    async with traced() as server, grpc.aio.insecure_channel(server.address) as channel:
        watch: Any = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        asking: Any = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
        async with asyncio.timeout(LIMIT_S):
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
            await asking.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            assert len((await asking.read()).list_services_response.service) == 3
            await asking.done_writing()
            assert await asking.read() is grpc.aio.EOF
            server.server.drain()
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert len(server.spans) == 2


# -- what it is set up by -----------------------------------------------------------------------------


async def test_without_its_packages_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.grpc", None)
    with pytest.raises(TelemetryUnavailable, match=r"tressette-arena\[telemetry\]"):
        Telemetry()
    result = CliRunner().invoke(main, ["serve", "--address", "127.0.0.1:0", "--telemetry"])
    assert result.exit_code == 2
    assert "--telemetry" in result.stderr
    assert "tressette-arena[telemetry]" in result.stderr


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"OTEL_TRACES_EXPORTER": "pigeon"}, "pigeon"),
        ({"OTEL_TRACES_EXPORTER": "none,pigeon"}, "pigeon"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "pigeon"}, "pigeon"),
        ({"OTEL_EXPORTER_OTLP_COMPRESSION": "pigeon"}, "otlp_proto_grpc"),
    ],
)
async def test_variables_that_cannot_be_are_refused(
    variables: dict[str, str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(TelemetryUnavailable, match=named):
        Telemetry()


async def test_the_service_may_have_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=cup,deployment.environment=home")
    async with traced() as server, grpc.aio.insecure_channel(server.address) as channel:
        await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    found = server.span(f"/{HEALTH}/Check").resource.attributes
    assert (found["service.name"], found["deployment.environment"]) == ("cup", "home")


@contextlib.asynccontextmanager
async def served(*options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, Lines, str]]:
    fixed = ("-m", "tressette", "serve", "--address", "127.0.0.1:0", "--log-format", "json")
    process = await start(*fixed, *options)
    try:
        log = Lines(process.stderr)
        yield process, log, (await log.until("event", "listening"))["address"]
    finally:
        await end(process)


async def test_the_command_exports_where_the_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setenv("TRESSETTE_SERVE_TELEMETRY", "true")
    async with served() as (process, _, address):
        async with grpc.aio.insecure_channel(address) as channel:
            await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(LIMIT_S):
            output, errors = await process.communicate()
    assert process.returncode == 0, errors
    assert json.loads(output)["name"] == f"/{HEALTH}/Check"


@pytest.mark.slow
async def test_a_collector_that_is_not_there_is_said_in_the_log_and_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    async with served("--telemetry") as (process, log, address):
        async with grpc.aio.insecure_channel(address) as channel:
            await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        line = await log.until("event", "opentelemetry")
        assert line["level"] == "warning"
        assert "UNAVAILABLE" in line["said"]
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(LIMIT_S):
            await process.communicate()
    assert process.returncode == 0


async def test_the_last_spans_are_waited_for_in_reason_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "_LAST_S", 0.05)
    exporter = _Stuck()
    running = Telemetry([exporter])
    server = ArenaServer(Arena(KEY), interceptors=running.interceptors)
    address = f"127.0.0.1:{await server.start('127.0.0.1:0')}"
    async with grpc.aio.insecure_channel(address) as channel:
        await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    await server.stop(0.1)
    async with asyncio.timeout(LIMIT_S):
        await running.close()
    assert exporter.given_up.is_set()


class _Stuck(SpanExporter):
    """Tries for ever, as long as it may."""

    def __init__(self) -> None:
        self.given_up = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Until it is told to end."""
        assert self.given_up.wait(LIMIT_S)
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """End it."""
        self.given_up.set()
