"""``tressette.wire.host`` as the tournament runner uses it: lines in, lines out."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.certificates import self_signed
from support.processes import HostProcess, Lines, end, hosting, start
from support.streams import Client, all_of, connected
from support.streams import hello as hello_message
from support.tables import game_spec
from tressette.play.config import ConfigError
from tressette.record.game import GameSpec
from tressette.record.reader import read_lines, read_results
from tressette.rules.presets import resolve
from tressette.v1 import arena_service_pb2 as pb
from tressette.wire.host import HostConfig
from tressette.wire.server import BadAddress
from tressette.wire.tokens import new_token, revoke_tokens

pytestmark = pytest.mark.asyncio(loop_scope="session")

BOTS = ("a", "b", "c", "d")
TOKENS = {f"token-of-{name}": name for name in BOTS}


@contextlib.asynccontextmanager
async def _bots(host: HostProcess, max_matches: int = 1) -> AsyncIterator[list[Client]]:
    async with contextlib.AsyncExitStack() as stack:
        clients = []
        for name in BOTS:
            clients.append(await stack.enter_async_context(connected(host.address)))
            await clients[-1].greet("somebody", token=f"token-of-{name}", max_matches=max_matches)
            await host.session(name, True)
        yield clients


async def test_it_plays_what_it_is_told_and_says_when_a_result_is_on_disk(tmp_path: Path) -> None:
    async with hosting(tmp_path, TOKENS) as host:
        host.play(game_spec("g1"), game_spec("g2", attempt=3))
        async with _bots(host) as clients:
            playing = asyncio.create_task(all_of(*(client.play_games(2) for client in clients)))
            for game in ("g1", "g2"):
                said = await host.finished(game)
                on_disk = next(line for line in read_results(tmp_path) if line["game"] == game)
                assert said.items() <= on_disk.items()
            await playing
        for name in BOTS:
            await host.session(name, False)
        assert await host.stop() == 0
    matches = [line for line in read_lines(tmp_path / "tricks-w1-0001.jsonl") if line["kind"] == "match"]
    assert {(line["game"], line["attempt"]) for line in matches} == {("g1", 1), ("g2", 3)}


async def test_a_game_can_be_cancelled_until_it_starts(tmp_path: Path) -> None:
    async with hosting(tmp_path, TOKENS) as host:
        host.play(game_spec("waits"), game_spec("goes-on"))
        host.tell(cancel="waits")
        assert await host.lines.until("cancelled") == {"cancelled": "waits"}
        async with _bots(host) as clients:
            for client in clients:
                playing = asyncio.create_task(client.play_games())
            host.tell(cancel="no-such-game")
            await host.finished("goes-on")
            await playing
        host.tell(cancel="goes-on")
        assert await host.stop() == 0
    assert [line for line in host.lines.seen if "cancelled" in line] == [{"cancelled": "waits"}]


@pytest.mark.parametrize("by", ["stop", "end of input"])
async def test_games_under_way_are_cut_off_without_a_result(tmp_path: Path, by: str) -> None:
    async with hosting(tmp_path, TOKENS) as host:
        host.play(game_spec("cut"))
        async with _bots(host) as clients:
            asked = [asyncio.create_task(client.asked()) for client in clients]
            await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED, timeout=60)
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            if by == "stop":
                host.tell(stop=True)
            else:
                assert host.process.stdin is not None
                host.process.stdin.close()
            assert await host.wait() == 0
    assert list(read_results(tmp_path)) == []
    lines = list(read_lines(tmp_path / "tricks-w1-0001.jsonl"))
    assert [line["kind"] for line in lines] == ["match"]
    assert not any("finished" in line for line in host.lines.seen)


async def test_an_interrupt_from_the_terminal_is_the_runners_business(tmp_path: Path) -> None:
    async with hosting(tmp_path, TOKENS) as host:
        host.process.send_signal(signal.SIGINT)
        host.play(game_spec("waits"))
        host.tell(cancel="waits")
        await host.lines.until("cancelled")
        assert await host.stop() == 0


async def test_no_input_at_all_is_the_end() -> None:
    process = await start("-m", "tressette.wire.host", stdin=True)
    try:
        async with asyncio.timeout(60):
            assert await process.communicate(b"") == (b"", b"")
    finally:
        await end(process)
    assert process.returncode == 0


async def test_a_writer_name_that_is_taken_is_a_failure_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "results-w1.jsonl").write_bytes(b"")
    with pytest.raises(AssertionError, match="failed"):
        async with hosting(tmp_path, TOKENS):
            pytest.fail("it listens")


_SMALL_DISK = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
runpy.run_module("tressette.wire.host", run_name="__main__")
"""


async def test_a_record_that_cannot_be_written_ends_the_host_and_is_said(tmp_path: Path) -> None:
    """No file of this process may grow beyond 3000 bytes; the system refuses the write that would."""
    async with hosting(tmp_path, TOKENS, command=("-c", _SMALL_DISK)) as host:
        host.play(game_spec("g1"))
        async with _bots(host) as clients:
            tasks = [asyncio.create_task(client.play_games()) for client in clients]
            assert "File too large" in (await host.lines.until("failed"))["failed"]
            assert await host.wait() == 1
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    assert not (tmp_path / "results-w1.jsonl").read_bytes()


# -- processes ----------------------------------------------------------------------------------------

TWO = resolve("tressette-due-duplicate")


def _game(name: str, *bots: str, deck: str = "d") -> GameSpec:
    return replace(game_spec(name, rules=TWO, bots=bots), deck=deck)


async def _kinds(host: HostProcess, game: str) -> set[tuple[str, str]]:
    """(bot, kind) of the faults of a game, when it is over."""
    return {(bot, kind) for bot, kind, _ in (await host.finished(game))["faults"]}


async def _done(task: asyncio.Task[Any]) -> None:
    await task


async def test_a_session_is_told_with_its_process_and_what_the_bot_says_of_itself(tmp_path: Path) -> None:
    async with hosting(tmp_path, {}) as host, connected(host.address) as client:
        await client.greet("a label", token=host.launched("a", "a-2.5"), version="1.2 beta")
        said = await host.session("a", True)
        session = said.pop("session")
        assert said == {
            "bot": "a",
            "process": "a-2.5",
            "version": "1.2 beta",
            "label": "a label",
            "open": True,
        }
        await client.send(pb.PlayRequest(goodbye=pb.Goodbye()))
        assert await host.session("a", False) == {**said, "session": session, "open": False}
        assert await host.stop() == 0


async def test_a_crash_undetected_when_there_is_no_clock(tmp_path: Path) -> None:
    """The connection of a crashed bot may linger, as one half-open does, and no clock runs: it is the
    runner's word that ends the waiting, and the kind of fault is right."""
    async with hosting(tmp_path, {"token-of-b": "b"}, move_ms=0, grace_s=3600) as host:
        bot = await start("-m", "support.vanishing", host.address, host.launched("a", "a-1.1"))
        async with connected(host.address) as other:
            try:
                await other.greet(token="token-of-b")
                await host.session("a", True)
                playing = asyncio.create_task(other.play_games())
                host.play(_game("g", "a", "b"))
                await Lines(bot.stdout).until("asked", 1)
                bot.send_signal(signal.SIGKILL)
                await bot.wait()
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(host.lines.until("finished"), 0.5)
                before = time.monotonic()
                host.tell(crashed={"process": "a-1.1"})
                assert await _kinds(host, "g") == {("a", "crash")}
                assert time.monotonic() - before < 60, "not the hour of the grace"
                await playing
            finally:
                await end(bot)
        assert (await host.session("a", False))["process"] == "a-1.1"
        assert await host.stop() == 0


async def test_a_crashed_process_that_lives_on_is_shut_out(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"token-of-b": "b"}, grace_s=60) as host:
        token = host.launched("a", "a-1.1")
        async with connected(host.address) as first, connected(host.address) as other:
            await first.greet(token=token)
            await other.greet(token="token-of-b")
            playing = asyncio.create_task(other.play_games())
            host.play(_game("g", "a", "b"))
            await first.asked()
            host.tell(crashed={"process": "a-1.1"})
            assert (await first.ending()).reason == pb.ERROR_REASON_UNAUTHENTICATED
            assert await _kinds(host, "g") == {("a", "crash")}
            await playing
        async with connected(host.address) as again:
            await again.send(hello_message(token=token))
            assert (await again.ending()).reason == pb.ERROR_REASON_UNAUTHENTICATED
        assert await host.stop() == 0


async def test_a_bot_that_loses_its_link_comes_back_to_its_game(tmp_path: Path) -> None:
    async with hosting(tmp_path, {"token-of-b": "b"}, grace_s=60) as host:
        token = host.launched("a", "a-1.1")
        async with connected(host.address) as other:
            await other.greet(token="token-of-b")
            playing = asyncio.create_task(other.play_games())
            async with connected(host.address) as first:
                resume = (await first.greet(token=token)).resume_token
                host.play(_game("g", "a", "b"))
                await first.asked()
            async with connected(host.address) as thief:
                stolen = host.launched("a", "a-2.1")
                await thief.send(hello_message(token=stolen, resume_token=resume))
                assert (await thief.ending()).reason == pb.ERROR_REASON_RESUME_UNKNOWN
            async with connected(host.address) as second:
                assert (await second.greet(token=token, resume_token=resume)).resumed
                back = asyncio.create_task(second.play_games())
                assert await _kinds(host, "g") == set()
                await all_of(*map(_done, (playing, back)))
        assert await host.stop() == 0


async def test_with_isolation_a_process_is_replaced_and_the_games_go_on(tmp_path: Path) -> None:
    async with hosting(tmp_path, {}, isolation="fresh") as host, contextlib.AsyncExitStack() as stack:

        async def launch(name: str, process: str) -> tuple[str, asyncio.Task[Any]]:
            token = host.launched(name, process)
            client = await stack.enter_async_context(connected(host.address))
            await client.greet(token=token, max_matches=9)
            await host.session(name, True)
            return token, asyncio.create_task(client.play_until_told())

        tasks = []
        tokens = {}
        for name in "ab":
            tokens[name], task = await launch(name, f"{name}-1.1")
            tasks.append(task)
        host.play(_game("g1", "a", "b"), _game("g2", "b", "a"), _game("other", "a", "b", deck="d2"))
        for game in ("g1", "other"):
            assert await _kinds(host, game) == set()
        for name in "ba":
            assert (await host.lines.until("stale"))["stale"] == {"bot": name, "process": f"{name}-1.1"}
            host.tell(revoke=tokens[name])
            await host.session(name, False)
            tasks.append((await launch(name, f"{name}-1.2"))[1])
        assert await _kinds(host, "g2") == set()
        assert await host.stop() == 0
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    proven = [line["proven"]["process"] for line in host.lines.seen if "proven" in line]
    assert sorted(proven) == ["a-1.1", "a-1.2", "b-1.1", "b-1.2"]
    matches = [line for line in read_lines(tmp_path / "tricks-w1-0001.jsonl") if line["kind"] == "match"]
    assert {line["game"]: line["processes"] for line in matches} == {
        "g1": ["a-1.1", "b-1.1"],
        "g2": ["b-1.2", "a-1.2"],
        "other": ["a-1.1", "b-1.1"],
    }


async def test_a_game_can_begin_without_a_bot_that_will_not_come(tmp_path: Path) -> None:
    policies = {"refused_to_start": "forfeit"}
    async with hosting(tmp_path, {"token-of-b": "b"}, policies=policies) as host:
        host.play(_game("g", "a", "b"))
        host.tell(refused={"game": "g", "bot": "a"})
        host.tell(refused={"game": "unknown", "bot": "a"})
        async with connected(host.address) as other:
            await other.greet(token="token-of-b")
            playing = asyncio.create_task(other.play_games())
            result = await host.finished("g")
            assert (result["termination"], result["offender"]) == ("forfeit", "a")
            assert result["faults"] == [["a", "refused_to_start", 1]]
            await playing
        assert await host.stop() == 0


# -- the two doors ------------------------------------------------------------------------------------


async def _refused(address: str, token: str, roots: bytes | None = None) -> None:
    async with connected(address, roots) as client:
        await client.send(hello_message("far", token=token))
        assert (await client.ending()).reason == pb.ERROR_REASON_UNAUTHENTICATED


async def test_remote_bots_come_in_with_tls_and_a_token_of_the_file(tmp_path: Path) -> None:
    pair = await self_signed(tmp_path / "tls")
    roots = pair.cert.read_bytes()
    tokens = tmp_path / "tokens"
    far, _ = new_token(tokens, "far")
    stranger, _ = new_token(tokens, "stranger")
    config: dict[str, Any] = {
        "remote_address": "127.0.0.1:0",
        "remote": ("far",),
        "token_file": str(tokens),
        "tls_cert": str(pair.cert),
        "tls_key": str(pair.key),
    }
    async with hosting(tmp_path / "run", {}, **config) as host:
        near = host.launched("near", "near-1.1")
        async with connected(host.remote_address, roots) as client, connected(host.address) as other:
            await client.greet("whoever", token=far)
            said = await host.session("far", True)
            assert (said["process"], said["label"]) == ("", "whoever")
            await other.greet(token=near)
            playing = [asyncio.create_task(one.play_games()) for one in (client, other)]
            host.play(_game("g", "far", "near"))
            assert await _kinds(host, "g") == set()
            await all_of(*map(_done, playing))
            # Each door has its own tokens, and only the bots of this tournament get in.
            await _refused(host.address, far)
            await _refused(host.remote_address, near, roots)
            await _refused(host.remote_address, stranger, roots)
            await _refused(host.remote_address, "", roots)
            revoke_tokens(tokens, "far")
            assert (await client.ending()).reason == pb.ERROR_REASON_UNAUTHENTICATED
            await host.session("far", False)
        assert await host.stop() == 0
    (match,) = (line for line in read_lines(tmp_path / "run/tricks-w1-0001.jsonl") if line["kind"] == "match")
    assert match["processes"] == ["", "near-1.1"]


CONFIG = HostConfig("folder", "w1", "00")
FAR: dict[str, Any] = {"remote_address": "0.0.0.0:0", "token_file": "tokens", "tls_cert": "c", "tls_key": "k"}


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"local_address": "0.0.0.0:0"}, "local_address"),
        ({"local_address": "arena.example:0"}, "local_address"),
        ({"remote": ("far",)}, "remote"),
        ({**FAR, "tls_cert": "", "tls_key": ""}, "tls_cert, tls_key"),
        ({**FAR, "remote_address": "[::]:0", "tls_cert": "", "tls_key": ""}, "tls_cert, tls_key"),
        ({**FAR, "token_file": ""}, "token_file"),
        ({"remote_address": "127.0.0.1:0"}, "token_file"),
        ({**FAR, "tls_key": ""}, "tls_key"),
        ({"tls_client_ca": "ca"}, "tls_client_ca"),
        ({"isolation": "none"}, "isolation"),
        ({"policies": {"late": "forfeit"}}, "policies.late"),
        ({"strikes": -1}, "strikes"),
    ],
)
async def test_what_a_host_cannot_be_asked_for(changes: dict[str, Any], setting: str) -> None:
    with pytest.raises(ConfigError, match=setting):
        replace(CONFIG, **changes).check()


async def test_what_a_host_can_be_asked_for() -> None:
    for changes in ({}, FAR, {"remote_address": "127.0.0.1:0", "token_file": "tokens"}):
        replace(CONFIG, **changes).check()
    with pytest.raises(BadAddress):
        replace(CONFIG, local_address="nowhere").check()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"remote_address": "0.0.0.0:0", "token_file": "t"},
            "0.0.0.0:0 needs tls_cert, tls_key",
        ),
        ({"remote_address": "127.0.0.1:0", "token_file": "no-such-file"}, "token_file: .*no-such-file"),
    ],
)
async def test_a_host_that_cannot_start_says_why(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    process = await start("-m", "tressette.wire.host", stdin=True)
    try:
        host = HostProcess(process, tmp_path)
        host.tell(start=replace(CONFIG, folder=str(tmp_path), log_level="error", **changes).to_json())
        assert re.search(said, (await host.lines.until("failed"))["failed"])
        assert await host.wait() == 1
    finally:
        await end(process)


async def test_an_address_that_is_taken_is_a_failure_that_is_said(tmp_path: Path) -> None:
    async with hosting(tmp_path / "one", {}) as host:
        with pytest.raises(AssertionError, match=f"cannot listen on {host.address}"):
            async with hosting(tmp_path / "two", {}, local_address=host.address):
                pytest.fail("it listens")
        assert await host.stop() == 0
