"""A file that is replaced is the earlier one or the new one, whatever happens on the way."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from tressette.record import whole
from tressette.record.whole import DRAFT, replace_file


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    replace_file(path, b"one")
    replace_file(path, b"2")
    assert path.read_bytes() == b"2"
    assert list(tmp_path.iterdir()) == [path]


def test_a_secret_is_never_readable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    sync = os.fsync

    def watched(file: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(file).st_mode))
        sync(file)

    monkeypatch.setattr(os, "fsync", watched)
    replace_file(tmp_path / "event.key", b"key", 0o600)
    assert seen[0] == 0o600
    assert stat.S_IMODE((tmp_path / "event.key").stat().st_mode) == 0o600


@pytest.mark.parametrize(("place", "name"), [(os, "fsync"), (Path, "replace")])
def test_a_full_disk_leaves_the_earlier_file_alone(
    place: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "event.json"
    replace_file(path, b"earlier")

    def full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(place, name, full)
        with pytest.raises(OSError, match="No space left"):
            replace_file(path, b"new")
    assert path.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [path], "nothing is left in the way"


def test_what_a_crash_left_behind_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    path.with_name(path.name + DRAFT).write_bytes(b"longer than what comes after it")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_the_new_name_is_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "event.json"
    synced: list[tuple[Path, bool]] = []
    monkeypatch.setattr(whole, "sync_folder", lambda folder: synced.append((folder, path.exists())))
    replace_file(path, b"new")
    assert synced == [(tmp_path, True)]
