"""Segments are compressed when they are closed, and read as before whatever happens on the way."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tressette.record import whole
from tressette.record.reader import DamagedRecord, RecordError, begun_attempts, read_lines
from tressette.record.segments import Compressor, compress_segment, compressed, raw_lines, segments
from tressette.record.writer import Record

FULL = OSError(errno.ENOSPC, "No space left on device")


def written(folder: Path, writer: str = "w", lines: int = 40, segment_bytes: int = 1000) -> list[Path]:
    """Tricks of one game, in several segments; returns their paths."""
    record = Record(folder, writer, segment_bytes)
    record.trick_line("match", game="g", attempt=1)
    for number in range(lines):
        record.trick_line("trick", game="g", attempt=1, n=number, text="x" * 50)
        record.flush()
    record.close()
    return sorted(folder.glob(f"tricks-{writer}-*.jsonl"))


def everything(folder: Path) -> list[dict[str, Any]]:
    """All lines of all segments."""
    return [line for paths in segments(folder).values() for path in paths for line in read_lines(path)]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("tricks-*"))


# -- compressing ------------------------------------------------------------------------------------


def test_what_was_compressed_is_read_as_before(tmp_path: Path) -> None:
    paths = written(tmp_path)
    before, size = everything(tmp_path), sum(path.stat().st_size for path in paths)
    assert Compressor(tmp_path, (), pytest.fail).step() == len(paths)
    assert names(tmp_path) == [f"{path.name}.zst" for path in paths]
    assert everything(tmp_path) == before
    assert sum(compressed(path).stat().st_size for path in paths) < size


def test_the_segment_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    record = Record(tmp_path, "w", segment_bytes=1000)
    compressor = Compressor(tmp_path, ("w",), pytest.fail)
    assert compressor.step() == 0
    for number in range(12):
        record.trick_line("trick", game="g", attempt=1, n=number, text="x" * 100)
        record.flush()
    last = segments(tmp_path)["w"][-1]
    assert compressor.step() == int(last.stem[-4:]) - 1
    assert [path.name for path in tmp_path.glob("tricks-*.jsonl")] == [last.name]
    record.close()


def test_what_earlier_writers_left_is_compressed_too(tmp_path: Path) -> None:
    written(tmp_path, "0001")
    assert len(segments(tmp_path)["0001"]) > 2
    kept = written(tmp_path, "0002")
    (tmp_path / "tricks-0003-0001.jsonl").touch()
    Compressor(tmp_path, ("0002",), pytest.fail).step()
    plain = {path.name for path in tmp_path.glob("tricks-*.jsonl")}
    assert plain == {kept[-1].name, "tricks-0003-0001.jsonl"}, "nothing is gained from an empty one"


def test_segments_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10000, 9999, 2):
        (tmp_path / f"tricks-w-{number:04}.jsonl").touch()
    (tmp_path / "tricks-w-0001.jsonl.zst").touch()
    for other in ("tricks-w-0001.jsonl.zst.new", "tricks-w-x.jsonl", "tricks-0001.jsonl", "tricks-w-1.json"):
        (tmp_path / other).touch()
    found = segments(tmp_path)
    assert [path.name for path in found.pop("w")] == [
        f"tricks-w-{number}.jsonl" for number in ("0001", "0002", "9999", "10000")
    ]
    assert found == {}


@given(st.lists(st.binary(max_size=30), max_size=20).map(b"\n".join))
def test_any_content_gives_the_same_lines(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tricks-w-0001.jsonl"
        path.write_bytes(content)
        before = list(raw_lines(path))
        compress_segment(path)
        assert list(raw_lines(path)) == before
        assert b"".join(before) == content


def test_lines_longer_than_a_chunk(tmp_path: Path) -> None:
    path = tmp_path / "tricks-w-0001.jsonl"
    path.write_bytes(b"short\n" + os.urandom(200_000).replace(b"\n", b"") + b"\nshort\n")
    before = list(raw_lines(path))
    compress_segment(path)
    assert list(raw_lines(path)) == before


# -- crashes and full disks -------------------------------------------------------------------------


class Crash(BaseException):
    """Stands for the end of the process."""


def _raise(error: BaseException) -> Callable[..., Any]:
    def fails(*_arguments: object, **_named: object) -> None:
        raise error

    return fails


@pytest.mark.parametrize(
    ("place", "name"), [(os, "fsync"), (Path, "replace"), (whole, "sync_folder"), (Path, "unlink")]
)
def test_a_crash_at_any_step_loses_nothing(
    place: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    before = everything(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(place, name, _raise(Crash()))
        with pytest.raises(Crash):
            Compressor(tmp_path, (), pytest.fail).step()
    assert len(list(tmp_path.glob("tricks-*"))) > len(segments(tmp_path)["w"]), "it was half done"
    assert everything(tmp_path) == before
    Compressor(tmp_path, (), pytest.fail).step()
    assert {path.suffix for path in tmp_path.glob("tricks-*")} == {".zst"}
    assert everything(tmp_path) == before


def test_a_full_disk_leaves_the_plain_file_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = written(tmp_path)
    before = everything(tmp_path)
    told: list[str] = []
    compressor = Compressor(tmp_path, (), told.append)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _raise(FULL))
        assert [compressor.step() for _ in range(3)] == [0, 0, 0]
    assert names(tmp_path) == [path.name for path in paths]
    assert len(told) == len(paths)
    assert all("No space left" in text and str(path) in text for text, path in zip(told, paths, strict=True))
    assert compressor.step() == len(paths)
    assert everything(tmp_path) == before


def test_where_zstandard_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_ = written(tmp_path)
    compress_segment(first)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(RecordError, match=r"tricks-w-0001\.jsonl\.zst is compressed.*\[tournament\]"):
        everything(tmp_path)
    told: list[str] = []
    assert Compressor(tmp_path, (), told.append).step() == 0
    assert told


# -- damage -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-20],
        lambda data: data[:10],
        lambda data: b"",
        lambda data: b"garbage" + data,
        lambda data: data + b"more",
        lambda data: data + bytes(100_000),
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: data[:40] + bytes([data[40] ^ 4]) + data[41:],
    ],
)
def test_a_damaged_compressed_segment_is_refused_by_name(
    damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (path,) = written(tmp_path, segment_bytes=1 << 20)
    packed = compress_segment(path)
    packed.write_bytes(damage(packed.read_bytes()))
    with pytest.raises(DamagedRecord) as caught:
        list(read_lines(path))
    assert caught.value.path == path


def test_a_changed_line_in_a_compressed_segment_is_found_by_the_chain(tmp_path: Path) -> None:
    (path,) = written(tmp_path, segment_bytes=1 << 20)
    packed = compress_segment(path)
    data = zstandard.decompress(packed.read_bytes()).replace(b'"n":7', b'"n":8')
    packed.write_bytes(zstandard.compress(data))
    with pytest.raises(DamagedRecord, match="line 10: the hash of the line before"):
        list(read_lines(path))


def test_only_the_segments_of_one_writer_are_touched_where_it_is_asked_for(tmp_path: Path) -> None:
    mine, others = written(tmp_path, "0001"), written(tmp_path, "0002")
    draft = tmp_path / "tricks-0002-0009.jsonl.zst.new"  # which the other is just writing
    draft.touch()
    compressor = Compressor(tmp_path, ("0001",), pytest.fail, only="0001")
    assert compressor.step() == len(mine) - 1
    assert all(path.exists() for path in (*others, mine[-1], draft))


# -- games under way --------------------------------------------------------------------------------


def test_a_segment_opens_with_the_games_under_way(tmp_path: Path) -> None:
    record = Record(tmp_path, "w", segment_bytes=1)
    record.trick_line("match", game="done", attempt=1)
    record.trick_line("match", game="open", attempt=3)
    record.result_line(game="done")
    record.trick_line("match", game="next", attempt=1)
    record.flush()
    record.close()
    *_, last = segments(tmp_path)["w"]
    assert next(read_lines(last))["games"] == [["open", 3], ["next", 1]]


def test_only_the_last_segment_of_a_writer_is_read_to_resume(tmp_path: Path) -> None:
    record = Record(tmp_path, "w", segment_bytes=300)
    for number in range(20):
        record.trick_line("match", game=f"g{number}", attempt=1)
        record.flush()
        if number % 4:
            record.result_line(game=f"g{number}")
    record.close()
    paths = segments(tmp_path)["w"]
    assert len(paths) > 3
    without_result = {f"g{number}": 1 for number in range(0, 20, 4)}
    for path in paths[:-1]:
        path.write_bytes(b"nothing that can be read\n")
    assert begun_attempts(tmp_path).items() >= without_result.items()


def test_a_writer_that_was_killed_before_it_named_the_games_under_way(tmp_path: Path) -> None:
    paths = written(tmp_path)
    for content in (b"", b'{"v":1,"seq":1,"prev":"e3b0c44298fc1c149afbf4c8996fb924","kind":"segment","ga'):
        paths[-1].write_bytes(content)
        assert begun_attempts(tmp_path) == {"g": 1}


def test_a_segment_that_opens_with_nonsense_is_refused(tmp_path: Path) -> None:
    *_, last = written(tmp_path)
    first, *rest = last.read_bytes().splitlines(keepends=True)
    for games in (b'{"g":1}', b"[[1]]", b'[["g"]]', b'[["g",0]]', b"null"):
        last.write_bytes(first.replace(b'[["g",1]]', games) + b"".join(rest))
        with pytest.raises(DamagedRecord, match="line 1"):
            begun_attempts(tmp_path)
