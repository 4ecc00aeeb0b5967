"""Servers compress what is closed while they play; nobody has to ask for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.processes import LIMIT_S, Lines, end, hosting, start
from support.recorded import random_record
from support.runs import soon
from support.streams import connected
from tressette.record.reader import read_results
from tressette.record.replay import read_games
from tressette.rules.presets import PRESETS

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_an_earlier_writer_left_is_compressed_at_the_start(tmp_path: Path) -> None:
    random_record(tmp_path, {f"g{number}": PRESETS["tressette-21-duplicate"] for number in range(3)})
    before = list(read_games(tmp_path))
    (tmp_path / "tricks-0001-0001.jsonl.zst.new").write_bytes(b"left behind")
    async with hosting(tmp_path, {}) as host:
        await soon(lambda: not (tmp_path / "tricks-0001-0001.jsonl").exists(), "the compression")
        assert await host.stop() == 0
    assert names(tmp_path) == {"tricks-0001-0001.jsonl.zst", "tricks-w1-0001.jsonl"}
    assert list(read_games(tmp_path)) == before


_SMALL_SEGMENTS = """
import functools, sys
from tressette.cli import main
from tressette.commands import serve
from tressette.wire import compress
compress.EVERY_S = 0.02
serve.Record = functools.partial(serve.Record, segment_bytes=4000)
if sys.argv.pop(1) == "without":
    sys.modules["zstandard"] = None
main()
"""


def serving(folder: Path, zstandard: str) -> tuple[str, ...]:
    return (
        *("-c", _SMALL_SEGMENTS, zstandard, "serve", "--address", "127.0.0.1:0", "--log-format", "json"),
        *("--preset", "tressette-due-duplicate", "--record", str(folder)),
    )


@pytest.mark.parametrize("zstandard", ["with", "without"])
async def test_an_open_arena_compresses_its_own_segments_and_no_others(
    zstandard: str, tmp_path: Path
) -> None:
    """Another server may be at work in its folder."""
    random_record(tmp_path, {f"g{number}": PRESETS["tressette-21-duplicate"] for number in range(3)})
    (tmp_path / "tricks-0001-0002.jsonl").touch()
    other = {"tricks-0001-0001.jsonl", "tricks-0001-0002.jsonl"}
    process = await start(*serving(tmp_path, zstandard))
    try:
        log = Lines(process.stderr)
        address = (await log.until("event", "listening"))["address"]
        async with connected(address) as left, connected(address) as right:
            for client, name in ((left, "left"), (right, "right")):
                await client.greet(name)
            playing = [asyncio.create_task(client.play_until_told()) for client in (left, right)]
            for _ in range(4):
                await log.until("event", "game finished")
            if zstandard == "with":
                await soon(lambda: list(tmp_path.glob("tricks-0002-*.zst")), "the compression")
            process.terminate()
            await asyncio.gather(*playing)
            async with asyncio.timeout(LIMIT_S):
                _, rest = await process.communicate()
    finally:
        await end(process)
    assert process.returncode == 0, rest
    packed = {name for name in names(tmp_path) if name.endswith(".zst")}
    assert other <= names(tmp_path)
    assert bool(packed) == (zstandard == "with")
    said = [line["event"] for line in log.seen]
    assert said.count("record stays uncompressed") == (zstandard == "without")
    assert "segment stays uncompressed" not in said
    assert not any(name.endswith(".new") for name in names(tmp_path))
    finished = {line["game"] for line in read_results(tmp_path)}
    assert {game.opening["game"] for game in read_games(tmp_path)} == finished
    assert len(finished) >= 7


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("tricks-*")}
