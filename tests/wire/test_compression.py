"""The host compresses what is closed while it plays; nobody has to ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.processes import hosting
from support.recorded import random_record
from support.runs import soon
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


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("tricks-*")}
