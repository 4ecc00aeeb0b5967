"""Results that are on the disk are told, each once, also those of the last moment."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tressette.play.commit import GroupCommit
from tressette.record.reader import read_results
from tressette.record.writer import Record


@pytest.mark.parametrize("syncing", [False, True])
async def test_the_last_results_are_told_when_the_record_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, syncing: bool
) -> None:
    record = Record(tmp_path, "0001")
    told: list[Any] = []
    commit = GroupCommit(record, told.append)
    begun, may_end = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def sync() -> None:
        loop.call_soon_threadsafe(begun.set)
        may_end.wait(60)

    def play(game: str) -> None:
        record.result_line(game=game)
        commit.add({"game": game})

    with monkeypatch.context() as patch:
        patch.setattr(record, "sync", sync)
        running = asyncio.create_task(commit.run())
        if syncing:  # cut off in the middle of it
            play("a")
            async with asyncio.timeout(60):
                await begun.wait()
        play("b")
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        may_end.set()
    assert told == []
    commit.close()
    assert [one["game"] for one in told] == [line["game"] for line in read_results(tmp_path)]
    assert told[-1] == {"game": "b"}


async def test_a_result_that_could_not_be_synced_is_never_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when the record is closed either: the system tells a failure once, and syncs what is left."""
    record = Record(tmp_path, "0001")
    told: list[Any] = []
    commit = GroupCommit(record, told.append)
    failures = iter([OSError(errno.EIO, "Input/output error")])

    def fsync(file: int) -> None:
        if (error := next(failures, None)) is not None:
            raise error

    monkeypatch.setattr(os, "fsync", fsync)
    record.result_line(game="a")
    commit.add({"game": "a"})
    with pytest.raises(OSError, match="Input/output"):
        async with asyncio.timeout(60):
            await commit.run()
    with pytest.raises(OSError, match="Input/output"):
        commit.close()
    assert told == []
