"""``tressette serve`` as a process: what it refuses, TLS, playing, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import orjson
import pytest
from support.certificates import authority, self_signed, signed
from support.processes import LIMIT_S, Lines, end, run, start
from support.streams import Client, all_of, connected, has_ended, hello
from tressette.record.reader import read_lines, read_results
from tressette.v1 import arena_service_pb2 as pb
from tressette.wire.tokens import new_token, token_id
from tressette_bot import Bot, ConnectionLost, Reconnect, play
from tressette_bot.bots import REFERENCE_BOTS

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
    """``tressette serve`` on a free port; bots that vanish are not waited for."""
    fixed = ("--address", "127.0.0.1:0", "--log-format", "json", "--grace-s", "0", "--move-ms", "600000")
    process = await start(*SERVE, *fixed, *options)
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


@pytest.mark.parametrize("why", ["port", "metrics", "reveals", "suspension"])
async def test_a_server_that_does_not_start_leaves_nothing_in_its_folder(tmp_path: Path, why: str) -> None:
    """Such as the hundreds of empty files of one that is started anew every second."""
    folder = tmp_path / "record"
    folder.mkdir()
    async with served() as other:
        options = ["--address", other.address if why == "port" else "127.0.0.1:0"]
        if why == "metrics":
            options += ["--metrics-address", other.address]
        elif why == "reveals":
            (folder / "reveals-0001.jsonl").write_text("no reveal\n")
        elif why == "suspension":
            (folder / "suspended.json").write_text("no suspension")
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        for _ in range(2):
            status, _, errors = await run(*SERVE, "--record", str(folder), *options)
            assert status != 0
            assert "Traceback" not in errors
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


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


async def test_tls(tmp_path: Path) -> None:
    pair = await self_signed(tmp_path / "tls")
    async with served("--tls-cert", str(pair.cert), "--tls-key", str(pair.key)) as server:
        async with connected(server.address, pair.cert.read_bytes()) as client:
            assert (await client.greet("safe")).name == "safe"
        async with connected(server.address) as client:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await client.greet("plain")
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert await server.terminated() == 0


_QUICK = Reconnect(first_s=0.001, longest_s=0.002, give_up_after_s=LIMIT_S, attempts=2)


def _known() -> Bot:
    bot = REFERENCE_BOTS["first_legal"]()
    bot.name = "known"
    return bot


async def test_with_mutual_tls_only_clients_with_a_certificate_get_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRPC_VERBOSITY", "NONE")  # it would write of each handshake among our lines
    ca, other_ca = await authority(tmp_path / "ours"), await authority(tmp_path / "others")
    arena, bot, strange = await signed(ca, "arena"), await signed(ca, "bot"), await signed(other_ca, "bot")
    options = ("--tls-cert", str(arena.cert), "--tls-key", str(arena.key), "--tls-client-ca", str(ca.cert))
    async with served(*options) as server:
        for pair in (None, strange):
            cert, key = (pair.cert, pair.key) if pair is not None else (None, None)
            with pytest.raises(ConnectionLost):
                await play(
                    _known(), server.address, tls_root=ca.cert, tls_cert=cert, tls_key=key, reconnect=_QUICK
                )
        playing = asyncio.create_task(
            play(_known(), server.address, tls_root=ca.cert, tls_cert=bot.cert, tls_key=bot.key)
        )
        assert (await server.log.until("event", "session opened"))["bot"] == "known"
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        assert not any(line["event"] == "session opened" for line in server.log.rest)
        assert await server.terminated() == 0


async def test_the_bot_command_has_a_certificate_too(tmp_path: Path) -> None:
    ca = await authority(tmp_path / "ours")
    arena, bot = await signed(ca, "arena"), await signed(ca, "bot")
    options = ("--tls-cert", str(arena.cert), "--tls-key", str(arena.key), "--tls-client-ca", str(ca.cert))
    async with served(*options) as server:
        process = await start(
            *("-m", "tressette", "bot", "first_legal", "--address", server.address),
            *("--tls-root", str(ca.cert), "--tls-cert", str(bot.cert), "--tls-key", str(bot.key)),
        )
        try:
            await server.log.until("event", "session opened")
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(LIMIT_S):
                await process.communicate()
            assert process.returncode == 0
        finally:
            await end(process)


# -- tokens -------------------------------------------------------------------------------------------


async def test_tokens_can_be_made_and_revoked_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    old, _ = new_token(path, "mine")
    async with served("--tokens", str(path)) as server, contextlib.AsyncExitStack() as stack:
        first, second, third, fourth = [
            await stack.enter_async_context(connected(server.address)) for _ in range(4)
        ]
        assert (await first.greet("label", token=old)).name == "mine"
        new, _ = new_token(path, "mine")
        assert (await second.greet("label", token=new)).name == "mine"
        status, output, _ = await run(
            "-m", "tressette", "token", "revoke", token_id(old), "--file", str(path)
        )
        assert (status, output) == (0, f"revoked {token_id(old)} of mine\n")
        ending = await first.ending()
        assert (ending.reason, ending.message) == (pb.ERROR_REASON_UNAUTHENTICATED, "token: revoked")
        await third.send(hello("label", token=old))
        assert (await third.ending()).reason == pb.ERROR_REASON_UNAUTHENTICATED
        assert (await fourth.greet("label", token=new)).name == "mine"
        await second.send(pb.PlayRequest(goodbye=pb.Goodbye()))
        assert (await second.ending()).reason == pb.ERROR_REASON_UNSPECIFIED


async def test_secrets_are_in_no_log_and_no_record(tmp_path: Path) -> None:
    path, record = tmp_path / "tokens", tmp_path / "record"
    tokens = [new_token(path, name)[0] for name in ("left", "right")]
    wrong = f"tressette_{'x' * 43}"
    options = ("--tokens", str(path), "--log-level", "debug", "--record", str(record), "--grace-s", "60")
    async with (
        served(*options, "--preset", "tressette-due-duplicate") as server,
        contextlib.AsyncExitStack() as stack,
    ):
        clients = [await stack.enter_async_context(connected(server.address)) for _ in range(6)]
        welcomes = [await clients[number].greet(token=token) for number, token in enumerate(tokens)]
        await all_of(*(client.play_games() for client in clients[:2]))
        await clients[2].send(hello(token=wrong))
        assert (await clients[2].ending()).reason == pb.ERROR_REASON_UNAUTHENTICATED
        await clients[3].send(hello(token=tokens[0], resume_token=wrong))
        assert (await clients[3].ending()).reason == pb.ERROR_REASON_RESUME_UNKNOWN
        resumed = await clients[4].greet(token=tokens[0], resume_token=welcomes[0].resume_token)
        assert resumed.resumed
        await clients[4].send(hello(token=tokens[0], version=tokens[0]))
        assert (await clients[4].ending()).reason == pb.ERROR_REASON_HELLO_REPEATED
        await clients[5].send(hello().SerializeToString() + tokens[1].encode())
        assert (await clients[5].ending()).reason == pb.ERROR_REASON_MALFORMED
        new_token(path, "later")
        await clients[1].send(pb.PlayRequest(goodbye=pb.Goodbye()))
        assert (await clients[1].ending()).reason == pb.ERROR_REASON_UNSPECIFIED
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(LIMIT_S):
            _, rest = await server.process.communicate()
    said = orjson.dumps(server.log.seen) + rest
    kept = _contents(tmp_path)
    assert b'"refused"' in said
    assert len(kept) >= 3  # the tokens, tricks, results
    for secret in (*tokens, wrong, *(one.resume_token for one in (*welcomes, resumed))):
        assert secret.encode() not in said
        assert [name for name, data in kept.items() if secret.encode() in data] == []


def _contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


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


async def test_a_deck_is_revealed_when_its_game_is_over(tmp_path: Path) -> None:
    """Each game of an open arena has a deck of its own, so nobody else can be waiting for it."""
    folder = tmp_path / "record"
    options = ("--record", str(folder), "--preset", "tressette-due-duplicate", "--preset", "tressette-due")
    async with served(*options) as server:
        async with bots(server.address, ["left", "right"]) as (left, right):
            other = asyncio.create_task(right.play_until_told())
            told: list[bytes] = []

            def done(batch: pb.Batch) -> bool:
                told.extend(one.started.deck_commitment for one in batch.updates if one.HasField("started"))
                return any(map(has_ended, batch.updates))

            await left.play(done)
            other.cancel()
            await asyncio.gather(other, return_exceptions=True)
        asked = [option for one in told[:1] for option in ("--commitment", one.hex())]
        fetch = ("-m", "tressette", "reveal", "fetch", "--address", server.address)
        status, revealed, errors = await run(*fetch, *asked)
        assert (status, errors) == (0, "")
        assert orjson.loads(revealed)["commitment"] == told[0].hex()
        assert await server.terminated() == 0
    status, output, _ = await run("-m", "tressette", "reveal", "verify", str(folder))
    assert status == 0, output
    assert output.endswith("right, 0 not revealed\n")


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


@contextlib.asynccontextmanager
async def changed(
    code: str, record: Path, *options: str, preset: str = "tressette-due-duplicate"
) -> AsyncIterator[tuple[asyncio.subprocess.Process, Lines, str]]:
    """``tressette serve`` with a record, once some code has changed the process that it runs in: the process,
    its log and its address."""
    fixed = ("--address", "127.0.0.1:0", "--log-format", "json", "--preset", preset, "--record", str(record))
    program = f"{code}\nfrom tressette.cli import main; main()"
    process = await start("-c", program, "serve", *fixed, *options)
    try:
        log = Lines(process.stderr)
        yield process, log, (await log.until("event", "listening"))["address"]
    finally:
        await end(process)


async def ended(process: asyncio.subprocess.Process, address: str, names: Sequence[str]) -> bytes:
    """Have bots play until the server has failed; returns what it has said of that."""
    async with bots(address, names) as clients:
        playing = [asyncio.create_task(client.play_until_told()) for client in clients]
        async with asyncio.timeout(LIMIT_S):
            _, errors = await process.communicate()
        for task in playing:
            task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)
    assert process.returncode == 1
    return errors


_SYNCS_WHEN_TOLD = """
import json, os, sys, time
sync = os.fsync
def fsync(file):
    name = os.path.basename(os.readlink(f"/proc/self/fd/{{file}}"))
    sys.stderr.write(json.dumps({{"syncing": name}}) + "\\n")
    while not os.path.exists({may_sync!r}):
        time.sleep(0.01)
    sync(file)
os.fsync = fsync
"""


async def test_results_are_forced_to_the_disk_while_it_runs(tmp_path: Path) -> None:
    """Each after its tricks and its deck: a power cut costs matches under way only."""
    code = _SYNCS_WHEN_TOLD.format(may_sync=str(tmp_path))
    async with changed(code, tmp_path) as (_, lines, address):
        async with bots(address, ["left", "right"]) as clients:
            await all_of(*(client.play_games() for client in clients))
            await lines.until("syncing", "results-0001.jsonl")
        synced = [line["syncing"] for line in lines.seen if "syncing" in line]
        order = ("reveals-0001", "tricks-0001-0001", "results-0001")
        places = [synced.index(f"{name}.jsonl") for name in order]
        assert places == sorted(places)
        assert list(read_lines(tmp_path / "results-0001.jsonl"))


async def test_a_server_that_is_stopped_during_a_sync_loses_no_result(tmp_path: Path) -> None:
    """Games end while the first results are synced, and wait for the next sync, which is that of the end."""
    folder, may_sync = tmp_path / "record", tmp_path / "may-sync"
    code = _SYNCS_WHEN_TOLD.format(may_sync=str(may_sync))
    async with changed(code, folder, "--grace-s", "0") as (process, lines, address):
        async with bots(address, ["left", "right"]) as clients:
            await all_of(*(client.play_games() for client in clients))
            await lines.until("syncing", "reveals-0001.jsonl")
            await all_of(*(client.play_games(2) for client in clients))
            process.send_signal(signal.SIGTERM)
            await lines.until("event", "draining")
        may_sync.touch()
        async with asyncio.timeout(LIMIT_S):
            rest = [orjson.loads(line) for line in (await process.communicate())[1].splitlines()]
        assert process.returncode == 0
    log = lines.seen + rest
    finished = [line["game"] for line in log if line.get("event") == "game finished"]
    assert len(finished) >= 3
    assert [line["game"] for line in read_lines(folder / "results-0001.jsonl")] == finished
    synced = [line["syncing"].partition("-")[0] for line in log if "syncing" in line]
    order = [name for name in synced if name in ("reveals", "tricks", "results")]
    assert order[-4:] == ["reveals", "tricks", "results", "reveals"], "a result comes after its deck"


_CANNOT_SYNC = {
    "the disk refuses": """
import errno, os
sync, refuse = os.fsync, ["results"]
def fsync(file):
    name = os.path.basename(os.readlink(f"/proc/self/fd/{file}")).partition("-")[0]
    if name in refuse:
        refuse.remove(name)
        raise OSError(errno.EIO, "it cannot be synced")
    sync(file)
os.fsync = fsync
""",
    "no thread can be started": """
import asyncio
thread = asyncio.to_thread
async def to_thread(function, *arguments):
    if function.__name__ == "sync":
        raise RuntimeError("it cannot be synced")
    return await thread(function, *arguments)
asyncio.to_thread = to_thread
""",
}


@pytest.mark.parametrize("why", _CANNOT_SYNC)
async def test_results_that_cannot_be_synced_end_the_server(tmp_path: Path, why: str) -> None:
    async with changed(_CANNOT_SYNC[why], tmp_path) as (process, _, address):
        errors = await ended(process, address, ["left", "right"])
    assert b"the record cannot be written: " in errors
    assert b"it cannot be synced" in errors
    assert b"Traceback" not in errors


_SMALL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
"""


async def test_a_record_that_cannot_be_written_ends_the_server(tmp_path: Path) -> None:
    preset = "traversone-003-21-duplicate"
    async with changed(_SMALL_DISK, tmp_path, preset=preset) as (process, _, address):
        errors = await ended(process, address, BOTS)
    assert b"File too large" in errors
