"""Waiting for room on the disk."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.disks import Disk, disk
from support.patience import with_more_time
from support.processes import HostProcess, hosting
from support.streams import LIMIT_S, Client, connected, first_choice, has_ended
from support.tables import FakeClock, game_spec
from tressette.play.clock import PausableClock
from tressette.record.reader import read_lines, read_results
from tressette.rules.presets import resolve
from tressette.wire.freeze import RETRY_S, Freeze, hung_up

__all__ = ["disk"]

FULL = OSError(errno.ENOSPC, "No space left on device")


class Frozen:
    """A Freeze under a clock that moves by what is waited, and an input that ends after so many seconds."""

    def __init__(self, ends_at: float = 1e9) -> None:
        self.said: list[dict[str, Any]] = []
        self.source = FakeClock(0.0)
        self.ends_at = ends_at
        self.clock = PausableClock(self.source)
        self.freeze = Freeze(self.clock, self._ended, lambda **message: self.said.append(message))

    def _ended(self, seconds: float) -> bool:
        self.source.now = min(self.source.now + seconds, max(self.ends_at, self.source.now))
        return self.source.now >= self.ends_at


def test_it_says_once_that_it_waits_and_how_long_it_has() -> None:
    one = Frozen()
    for freeze in (1, 2):
        for _ in range(5):
            assert one.freeze.wait(FULL)
        assert one.clock() == 0
        one.freeze.over()
        assert one.said == [{"frozen": str(FULL)}, {"thawed": 5 * RETRY_S}] * freeze


def test_it_gives_up_when_the_input_ends() -> None:
    one = Frozen(ends_at=2.5)
    assert [one.freeze.wait(FULL) for _ in range(3)] == [True, True, False]
    assert one.said == [{"frozen": str(FULL)}]


def test_where_the_input_has_ended_nothing_is_waited_for() -> None:
    one = Frozen(ends_at=0)
    assert not one.freeze.wait(FULL)
    assert one.said == []


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_the_end_of_the_input_is_seen_behind_what_was_not_read(kind: str) -> None:
    if kind == "pipe":
        read, write = os.pipe()
    else:
        read, write = (one.detach() for one in socket.socketpair())
    try:
        ended = hung_up(read)
        assert not ended(0)
        os.write(write, b"lines that nobody reads\n")
        assert not ended(0.01)
        os.close(write)
        assert ended(10)
        assert os.read(read, 100) == b"lines that nobody reads\n"
    finally:
        os.close(read)


# -- a host in a process of its own -----------------------------------------------------------------

TWO = resolve("tressette-due-duplicate")


class Held:
    """A game of two bots that answer nothing until they are let. ``asked`` is set when one of them waits.
    ``began_s``: a moment before it began."""

    def __init__(self) -> None:
        self.began_s = 0.0
        self.asked = asyncio.Event()
        self.let = asyncio.Event()

    async def play(self, client: Client) -> None:
        """Play a game for one of them."""
        while True:
            updates = (await client.batch()).updates
            if turns := [update for update in updates if update.HasField("turn")]:
                self.asked.set()
                await self.let.wait()
                await client.answer(*map(first_choice, turns))
            if any(map(has_ended, updates)):
                return


@contextlib.asynccontextmanager
async def _hosting(folder: Path, *games: Held, **config: Any) -> AsyncIterator[HostProcess]:
    """A host with games under way, each between two bots of its own."""
    names = [f"bot{number}" for number in range(2 * len(games))]
    async with (
        hosting(folder, {f"token-of-{name}": name for name in names}, **config) as host,
        contextlib.AsyncExitStack() as stack,
    ):
        playing = []
        for name, game in zip(names, [game for game in games for _ in range(2)], strict=True):
            client = await stack.enter_async_context(connected(host.address))
            await client.greet(token=f"token-of-{name}")
            await host.session(name, True)
            playing.append(asyncio.create_task(game.play(client)))
        for number, game in enumerate(games, start=1):
            game.began_s = time.monotonic()
            host.play(game_spec(f"g{number}", TWO, bots=names[2 * number - 2 : 2 * number]))
            await asyncio.wait_for(game.asked.wait(), LIMIT_S)
        try:
            yield host
        finally:
            for task in playing:
                task.cancel()
            await asyncio.gather(*playing, return_exceptions=True)


async def test_games_stand_still_while_the_disk_is_full_and_then_go_on(tmp_path: Path, disk: Disk) -> None:
    """In one game a bot has been asked and thinks, in the other there is something to write."""
    await with_more_time(lambda ms: _frozen_and_thawed(tmp_path / f"{ms}", disk, ms), 2500, 20_000)


async def _frozen_and_thawed(run: Path, disk: Disk, move_ms: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        disk.make_room()  # where an earlier try has left it full
    thinking, writing = Held(), Held()
    async with _hosting(run, thinking, writing, move_ms=move_ms) as host:
        disk.fill()
        writing.let.set()
        assert await host.lines.until("frozen") == {"frozen": "[Errno 28] No space left on device"}
        await asyncio.sleep(move_ms / 1000 + 0.5)  # the turn that is thought about would be over by now
        assert {line["kind"] for line in _whole_lines(run / "tricks-w1-0001.jsonl")} == {"match"}
        disk.make_room()
        frozen_s = (await host.lines.until("thawed"))["thawed"]
        assert frozen_s > move_ms / 1000
        thinking.let.set()
        for name, game in (("g1", thinking), ("g2", writing)):
            result = await host.finished(name)
            assert result["faults"] == []
            assert result["duration_ms"] <= 1000 * (time.monotonic() - game.began_s - frozen_s) + 2  # rounded
        assert await host.stop() == 0
    lines = list(read_lines(run / "tricks-w1-0001.jsonl"))
    assert Counter(line["kind"] for line in lines) == {"match": 2, "trick": 40, "deal": 2}
    assert len(list(read_results(run))) == 2


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    """What is in a file that is being written."""
    return [
        orjson.loads(line) for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")
    ]


async def test_the_end_of_the_input_ends_a_frozen_host(tmp_path: Path, disk: Disk) -> None:
    game = Held()
    async with _hosting(tmp_path / "run", game) as host:
        disk.fill()
        game.let.set()
        await host.lines.until("frozen")
        host.tell(cancel="what nobody reads any more")
        assert host.process.stdin is not None
        host.process.stdin.close()
        async with asyncio.timeout(60):
            assert await host.process.wait() == 1
        assert (await host.lines.until("failed"))["failed"].startswith("cannot write the record: ")
    assert list(read_results(tmp_path / "run")) == []
