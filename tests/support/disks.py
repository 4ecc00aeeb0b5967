"""Disks that are full for a while, for the processes that a test starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parent


class Disk:
    """On which all records of processes are that are started from now on. ``fill`` and ``make_room`` work at
    once, and for what follows: the file tells the processes."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def fill(self) -> None:
        """There is no room any more."""
        self._file.touch()

    def make_room(self) -> None:
        """There is room again."""
        self._file.unlink()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """A Disk with room."""
    file = tmp_path / "disk-is-full"
    monkeypatch.setenv("TRESSETTE_TEST_FULL_DISK", str(file))
    paths = (str(_HERE / "full_disk"), os.environ.get("PYTHONPATH", ""))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    yield Disk(file)
    file.unlink(missing_ok=True)
