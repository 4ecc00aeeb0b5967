"""``tressette serve`` as a process: what it refuses, TLS, playing, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from support.processes import LIMIT_S, Lines, end, run, start
from support.streams import Client, all_of, connected
from tressette.record.reader import read_lines, read_results
from tressette.v1 import arena_service_pb2 as pb

pytestmark = pytest.mark.asyncio(loop_scope="session")

SERVE = ("-m", "tressette", "serve")
BOTS = ("a", "b", "c", "d")


@dataclass
class Served:
    """A server process that listens."""

    process: asyncio.subprocess.Process
    log: Lines
    address: str

    async def terminated(self, by: signal.Signals = signal.SIGTERM) -> int:
        """Signal it; returns its status."""
        self.process.send_signal(by)
        async with asyncio.timeout(LIMIT_S):
            # What it still says must be read, or it could block on a full pipe.
            await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode


@contextlib.asynccontextmanager
async def served(*options: str) -> AsyncIterator[Served]:
    """``tressette serve`` on a free port."""
    process = await start(*SERVE, "--address", "127.0.0.1:0", "--log-format", "json", *options)
    try:
        log = Lines(process.stderr)
        address = (await log.until("event", "listening"))["address"]
        yield Served(process, log, address)
    finally:
        await end(process)


@contextlib.asynccontextmanager
async def bots(address: str, names: Sequence[str] = BOTS) -> AsyncIterator[list[Client]]:
    """Bots that have said Hello."""
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(address)) for _ in names]
        for client, name in zip(clients, names, strict=True):
            await client.greet(name)
        yield clients


# -- what it refuses ----------------------------------------------------------------------------------


async def test_a_refusal_is_a_line_and_a_status() -> None:
    status, output, errors = await run(*SERVE, "--address", "0.0.0.0:0")
    assert (status, output) == (2, "")
    assert "Traceback" not in errors


async def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    async with served() as first:
        status, _, errors = await run(*SERVE, "--address", first.address)
        assert status == 1
        assert "cannot listen" in errors
        assert first.address in errors
        async with bots(first.address, ["still-served"]):
            pass


async def test_certificates_that_are_none(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    status, _, errors = await run(
        *SERVE, "--address", "127.0.0.1:0", "--tls-cert", str(wrong), "--tls-key", str(wrong)
    )
    assert status == 2
    assert "--tls-cert" in errors
    assert "Traceback" not in errors


# -- TLS ----------------------------------------------------------------------------------------------


@pytest.fixture
async def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for this machine, signed by itself, and its key."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = await asyncio.create_subprocess_exec(
        *("openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        *("-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=localhost"),
        *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await made.communicate()
    assert made.returncode == 0, errors
    return cert, key


async def test_tls(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    async with served("--tls-cert", str(cert), "--tls-key", str(key)) as server:
        async with connected(server.address, cert.read_bytes()) as client:
            assert (await client.greet("safe")).name == "safe"
        async with connected(server.address) as client:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await client.greet("plain")
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert await server.terminated() == 0


# -- playing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
async def test_it_plays_until_it_is_stopped_and_leaves_a_record(tmp_path: Path, by: signal.Signals) -> None:
    folder = tmp_path / "deep" / "record"
    options = ("--record", str(folder), "--preset", "traversone-003-21-duplicate")
    async with served(*options) as server, bots(server.address) as clients:
        playing = [asyncio.create_task(client.play_until_told()) for client in clients]
        for _ in range(3):
            await server.log.until("event", "game finished")
        assert await server.terminated(by) == 0
        endings = await asyncio.gather(*playing)
    assert {ending.reason for ending in endings} == {pb.ERROR_REASON_SHUTTING_DOWN}
    results = list(read_results(folder))
    assert len(results) >= 3
    assert all(result["faults"] == [] for result in results)
    begun = [
        line["game"]
        for path in folder.glob("tricks-*")
        for line in read_lines(path)
        if line["kind"] == "match"
    ]
    assert set(begun) >= {result["game"] for result in results}
    assert len(begun) <= len(results) + 1


async def test_presets_take_turns_and_a_second_server_shares_the_folder(tmp_path: Path) -> None:
    presets = ("--preset", "tressette-due-duplicate", "--preset", "ciapano-duo-duplicate")
    options = ("--record", str(tmp_path), *presets)
    async with served(*options) as one, served(*options) as two:
        for server in (one, two):
            async with bots(server.address, ["left", "right"]) as clients:
                await all_of(*(client.play_games(2) for client in clients))
        assert await one.terminated() == 0
        assert await two.terminated() == 0
    for name in ("results-0001.jsonl", "results-0002.jsonl"):
        played = [line["preset"] for line in read_lines(tmp_path / name)]
        assert played[:2] == ["tressette-due-duplicate", "ciapano-duo-duplicate"]


async def test_without_a_record_it_plays_as_well() -> None:
    async with served("--preset", "tressette-due-duplicate") as server:
        async with bots(server.address, ["left", "right"]) as clients:
            await all_of(*(client.play_games() for client in clients))
        assert await server.terminated() == 0


async def test_the_log_level_does_not_touch_the_record(tmp_path: Path) -> None:
    process = await start(
        *(*SERVE, "--address", "127.0.0.1:0", "--log-level", "error", "--record", str(tmp_path))
    )
    try:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(LIMIT_S):
            output, errors = await process.communicate()
    finally:
        await end(process)
    assert (output, errors) == (b"", b"")


_SMALL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
from tressette.cli import main
main()
"""


async def test_a_record_that_cannot_be_written_ends_the_server(tmp_path: Path) -> None:
    process = await start(
        *("-c", _SMALL_DISK, "serve", "--address", "127.0.0.1:0", "--log-format", "json"),
        *("--preset", "traversone-003-21-duplicate", "--record", str(tmp_path)),
    )
    try:
        address = (await Lines(process.stderr).until("event", "listening"))["address"]
        async with bots(address) as clients:
            playing = [asyncio.create_task(client.play_until_told()) for client in clients]
            async with asyncio.timeout(LIMIT_S):
                _, errors = await process.communicate()
            for task in playing:
                task.cancel()
            await asyncio.gather(*playing, return_exceptions=True)
        assert process.returncode == 1
        assert b"File too large" in errors
    finally:
        await end(process)
