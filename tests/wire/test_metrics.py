"""Metrics as Prometheus would scrape them, and the access log: what an operator sees of the bots."""

from __future__ import annotations

import asyncio
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families
from support.streams import LIMIT_S, Serving, first_choice, hello, serving, true_in_time
from support.tables import game_spec
from tressette.cli import main
from tressette.play.config import PlayConfig
from tressette.record.writer import Record
from tressette.v1 import arena_service_pb2 as pb
from tressette.wire.metrics import LoopLag, MetricsServer, MetricsUnavailable
from tressette.wire.server import BadAddress

OPERATING = Path(__file__).resolve().parents[2] / "server" / "OPERATING.md"

Samples = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape waits for the loop for as long as a test waits for anything."""
    monkeypatch.setattr("tressette.wire.metrics._PATIENCE_S", LIMIT_S)


def _fetch(address: str, query: str = "") -> str:
    try:
        with urllib.request.urlopen(f"http://{address}/metrics{query}", timeout=60) as response:
            text: str = response.read().decode()
            return text
    except urllib.error.HTTPError as error:
        error.close()
        raise


async def scraped(metrics: MetricsServer, query: str = "") -> Samples:
    """(name, labels) -> value, as a scrape gives them."""
    text = await asyncio.to_thread(_fetch, metrics.address, query)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((f"tressette_{name}", tuple(sorted(labels.items()))), 0.0)


async def seated(arena: Serving) -> list[Any]:
    clients = await arena.bots(*"abcd")
    arena.arena.submit(game_spec())
    return clients


def lose(arena: Serving, among: set[asyncio.Task[Any]]) -> None:
    """Do what grpc does when the client of the only stream that is not in ``among`` has vanished. (A client
    that cancels may look for a moment as if it had closed its side in good order.)"""
    (task,) = arena.server.service.streams - among
    task.cancel()


# -- scraping -----------------------------------------------------------------------------------------


async def test_what_is_scraped_is_what_happened(tmp_path: Path) -> None:
    record = Record(tmp_path, "0001")
    async with serving(PlayConfig(move_ms=60_000, illegal_retries=1), record, grace_s=60) as arena:
        metrics = MetricsServer("127.0.0.1:0", arena.server, record)
        before = await scraped(metrics)
        assert value(before, "sessions", state="attached") == 0
        clients = await seated(arena)
        arena.arena.submit(game_spec("g2", bots=["nobody"] * 4))

        playing = [asyncio.create_task(client.play_games()) for client in clients[1:]]
        turn = await clients[0].asked()
        await clients[0].answer(pb.Answer(handle=turn.handle, turn_id=turn.turn.turn_id))  # no card
        await clients[0].asked()
        during = await scraped(metrics)
        assert value(during, "sessions", state="attached") == 4
        assert value(during, "streams") == 4
        assert value(during, "games", state="running") == 1
        assert value(during, "games", state="waiting") == 1
        assert value(during, "faults_total", kind="illegal", effect="retry") == 1
        assert value(during, "games_finished_total") == 0

        await clients[0].answer(first_choice(turn))
        await clients[0].play_games()
        await asyncio.gather(*playing)
        after = await scraped(metrics)
        assert value(after, "games_finished_total") == 1
        assert value(after, "games", state="running") == 0
        assert value(after, "turns_total") == 41
        record.flush()
        assert value(after, "record_bytes_total") == sum(p.stat().st_size for p in _files(tmp_path))
        assert value(after, "draining") == 0

        arena.server.drain()
        assert value(await scraped(metrics), "draining") == 1
        await metrics.close()
    record.close()


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_sessions_without_a_stream_are_told_apart() -> None:
    async with serving(grace_s=60) as arena:
        metrics = MetricsServer("127.0.0.1:0", arena.server, None)
        await arena.bots(*"bcd")
        others = set(arena.server.service.streams)
        await arena.bots("a")
        arena.arena.submit(game_spec())
        await true_in_time(lambda: bool(arena.arena.games))
        lose(arena, others)
        await true_in_time(lambda: not arena.arena.sessions["a"][0].attached)
        samples = await scraped(metrics)
        assert value(samples, "sessions", state="attached") == 3
        assert value(samples, "sessions", state="detached") == 1
        assert value(samples, "streams") == 3
        assert value(samples, "streams_ended_total", reason="LOST") == 1
        await metrics.close()


async def test_why_streams_ended_is_counted() -> None:
    async with serving(tokens={"secret": "known"}) as arena:
        metrics = MetricsServer("127.0.0.1:0", arena.server, None)
        for token in ("secret", "wrong", ""):
            client = await arena.connect()
            await client.send(hello(token=token))
            if token == "secret":
                await client.receive()
                await client.send(pb.PlayRequest(goodbye=pb.Goodbye()))
            await client.ending()
        await true_in_time(lambda: not arena.server.service.streams)
        samples = await scraped(metrics)
        assert value(samples, "streams_ended_total", reason="UNAUTHENTICATED") == 2
        assert value(samples, "streams_ended_total", reason="GOODBYE") == 1
        await metrics.close()


async def test_process_metrics_and_the_lag_of_the_loop() -> None:
    async with serving() as arena:
        metrics = MetricsServer("127.0.0.1:0", arena.server, None)
        samples = await scraped(metrics)
        assert samples["process_resident_memory_bytes", ()] > 1e6
        assert samples["process_open_fds", ()] > 0
        assert ("tressette_event_loop_lag_seconds_sum", ()) in samples
        one = await scraped(metrics, "?name[]=tressette_streams")
        assert set(one) == {("tressette_streams", ())}
        await metrics.close()


async def test_names_follow_the_conventions() -> None:
    async with serving() as arena:
        metrics = MetricsServer("127.0.0.1:0", arena.server, None)
        text = await asyncio.to_thread(_fetch, metrics.address)
        await metrics.close()
    operating = OPERATING.read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(tressette_\w+)` \| (\w+) \|", operating, re.MULTILINE))
    families = list(text_string_to_metric_families(text))
    served = {family.name + "_total" * (family.type == "counter"): family.type for family in families}
    assert told == {name: kind for name, kind in served.items() if name.startswith("tressette_")}
    for family in families:
        assert family.documentation
        assert family.name.startswith(("tressette_", "process_"))
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")


def test_a_late_timer_falls_into_its_bucket() -> None:
    async def measured() -> LoopLag:
        lag = LoopLag()
        lag.stop()
        return lag

    lag = asyncio.run(measured())
    for late_s in (0.0, 0.001, 0.03, 7.0):
        lag.note(late_s)
    buckets = dict(lag.buckets())
    assert (buckets["0.001"], buckets["0.025"], buckets["0.05"], buckets["1.0"]) == (2, 2, 3, 3)
    assert buckets["+Inf"] == 4
    assert lag.total == pytest.approx(7.031)


async def test_a_loop_that_is_held_up_shows() -> None:
    async with serving() as arena:
        metrics = MetricsServer("127.0.0.1:0", arena.server, None)
        time.sleep(0.4)  # noqa: ASYNC251  # holding the loop up is the point
        await true_in_time(lambda: sum(metrics._collector.lag.counts[-4:]) >= 1)
        await metrics.close()


async def test_a_scrape_of_a_stuck_loop_fails_and_the_next_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as arena, AsyncExitStack() as stack:
        metrics = MetricsServer("127.0.0.1:0", arena.server, None)
        pool = stack.enter_context(ThreadPoolExecutor(1))
        with monkeypatch.context() as patch:
            patch.setattr("tressette.wire.metrics._PATIENCE_S", 0.05)
            scrape = pool.submit(_fetch, metrics.address)
            with pytest.raises(urllib.error.HTTPError):
                scrape.result(LIMIT_S)  # holding the loop up is the point, for as long as that takes
        assert value(await scraped(metrics), "streams") == 0
        await metrics.close()


# -- starting -----------------------------------------------------------------------------------------


async def test_a_port_that_is_taken_is_said() -> None:
    async with serving() as arena:
        metrics = MetricsServer("127.0.0.1:0", arena.server, None)
        with pytest.raises(BadAddress, match=f"cannot listen on {metrics.address}"):
            MetricsServer(metrics.address, arena.server, None)
        await metrics.close()
        await MetricsServer(metrics.address, arena.server, None).close()


async def test_an_address_that_others_can_read_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving() as arena:
            await MetricsServer("127.0.0.1:0", arena.server, None).close()
            monkeypatch.setattr("tressette.wire.metrics.is_loopback", lambda host: False)
            await MetricsServer("127.0.0.1:0", arena.server, None).close()
    assert len([line for line in logs if line["log_level"] == "warning"]) == 1


async def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    async with serving() as arena:
        with pytest.raises(MetricsUnavailable, match=r"pip install 'tressette-arena\[metrics\]'"):
            MetricsServer("127.0.0.1:0", arena.server, None)


def test_serve_says_so_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    result = CliRunner().invoke(main, ["serve", "--address", "127.0.0.1:0", "--metrics-address", "0"])
    assert result.exit_code == 1
    assert "tressette-arena[metrics]" in result.stderr


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1:99999", "99999", ":"])
def test_a_wrong_address_is_refused_by_name(address: str) -> None:
    result = CliRunner().invoke(main, ["serve", "--address", "127.0.0.1:0", "--metrics-address", address])
    assert result.exit_code == 2
    assert "--metrics-address" in result.stderr


# -- the access log -----------------------------------------------------------------------------------


async def test_every_stream_leaves_one_line() -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving() as arena:
            clients = await arena.bots(*"acd")
            others = set(arena.server.service.streams)
            clients += await arena.bots("b")
            arena.arena.submit(game_spec())
            await asyncio.gather(*(client.play_games() for client in clients))
            await clients[0].send(pb.PlayRequest(goodbye=pb.Goodbye()))
            assert (await clients[0].ending()).reason == 0
            lose(arena, others)
            await true_in_time(lambda: len(arena.server.service.streams) == 2)
            told = [asyncio.create_task(client.ending()) for client in clients[1:3]]
            await arena.server.stop()
            await asyncio.gather(*told)
    lines = {line["bot"]: line for line in logs if line["event"] == "stream ended"}
    assert {bot: line["ending"] for bot, line in lines.items()} == {
        "a": "GOODBYE",
        "b": "LOST",
        "c": "SHUTTING_DOWN",
        "d": "SHUTTING_DOWN",
    }
    line = lines["a"]
    assert line["peer"].startswith("ipv4:127.0.0.1:")
    assert line["answers"] == 10
    assert line["messages_in"] >= 12
    assert line["messages_out"] >= 12
    assert line["duration_s"] > 0
    assert line["session"]


async def test_a_stream_that_is_refused_leaves_one_too_and_no_secret() -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving(tokens={"a-secret-token": "known"}) as arena:
            known, stranger, silent = [await arena.connect() for _ in range(3)]
            welcome = await known.greet("label", token="a-secret-token")
            await stranger.send(hello(token="a-wrong-token"))
            await stranger.ending()
            await silent.call.done_writing()
            await known.send(pb.PlayRequest(goodbye=pb.Goodbye()))
            await known.ending()
            await true_in_time(lambda: not arena.server.service.streams)
    endings = [(line["bot"], line["ending"]) for line in logs if line["event"] == "stream ended"]
    assert sorted(endings, key=str) == [("known", "GOODBYE"), (None, "LOST"), (None, "UNAUTHENTICATED")]
    text = str(logs)
    for secret in ("a-secret-token", "a-wrong-token", welcome.resume_token):
        assert secret not in text
