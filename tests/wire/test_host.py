"""``tressette.wire.host`` as the tournament runner uses it: lines in, lines out."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.processes import HostProcess, end, hosting, start
from support.streams import Client, all_of, connected
from support.tables import game_spec
from tressette.record.reader import read_lines, read_results

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
            await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED, timeout=20)
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
        async with asyncio.timeout(20):
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
