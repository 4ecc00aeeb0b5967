"""How lines get into files: numbered, chained, in segments, in order, whatever the logs are set to."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog
from tressette.record.reader import read_lines
from tressette.record.writer import FIRST_PREV, SCHEMA, NullRecorder, Record, free_writer
from tressette.wire.logs import configure


def _raw(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    made = Record(tmp_path, "w")
    yield made
    made.close()


def test_every_line_opens_with_version_number_chain_and_kind(record: Record, tmp_path: Path) -> None:
    for number in range(5):
        record.trick_line("trick", number=number)
    record.result_line(game="g")
    record.flush()
    for path, kind, count in (
        (tmp_path / "tricks-w-0001.jsonl", "trick", 5),
        (tmp_path / "results-w.jsonl", "game", 1),
    ):
        previous = hashlib.sha256(b"").hexdigest()[:32]
        lines = _raw(path)
        assert len(lines) == count
        for number, line in enumerate(lines, start=1):
            fields = orjson.loads(line)
            assert list(fields)[:4] == ["v", "seq", "prev", "kind"]
            assert (fields["v"], fields["seq"], fields["kind"]) == (SCHEMA, number, kind)
            assert fields["prev"] == previous
            previous = hashlib.sha256(line).hexdigest()[:32]
    assert hashlib.sha256(b"").hexdigest()[:32] == FIRST_PREV


def test_fields_keep_their_order_and_values(record: Record, tmp_path: Path) -> None:
    record.trick_line("trick", z=1, a="ü", n=None, l=[1, [2, "x"]], d={"k": True})
    record.flush()
    (line,) = _raw(tmp_path / "tricks-w-0001.jsonl")
    assert line.endswith('"kind":"trick","z":1,"a":"ü","n":null,"l":[1,[2,"x"]],"d":{"k":true}}'.encode())


def test_text_with_line_breaks_stays_one_line(record: Record, tmp_path: Path) -> None:
    record.result_line(game="a\nb\r\u2028c")
    record.flush()
    assert (tmp_path / "results-w.jsonl").read_bytes().count(b"\n") == 1
    assert next(read_lines(tmp_path / "results-w.jsonl"))["game"] == "a\nb\r\u2028c"


def test_no_log_level_silences_it(tmp_path: Path) -> None:
    before = structlog.get_config()
    level = logging.root.manager.disable
    try:
        for name in ("error", "debug"):
            configure(name, "json")
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
            processors=[_drop],
            logger_factory=structlog.ReturnLoggerFactory(),
        )
        logging.disable(logging.CRITICAL)
        record = Record(tmp_path, "w")
        record.trick_line("trick", n=1)
        record.result_line(game="g")
        record.close()
    finally:
        logging.disable(level)
        structlog.configure(**before)
    assert [line["kind"] for line in read_lines(tmp_path / "tricks-w-0001.jsonl")] == ["trick"]
    assert [line["game"] for line in read_lines(tmp_path / "results-w.jsonl")] == ["g"]


def _drop(_logger: Any, _method: str, _event: Any) -> Any:
    raise structlog.DropEvent


def test_the_record_writes_nothing_to_the_logs(record: Record, capfd: pytest.CaptureFixture[str]) -> None:
    record.trick_line("trick", n=1)
    record.result_line(game="g")
    record.flush()
    assert capfd.readouterr() == ("", "")


def test_lines_reach_the_system_when_flushed(record: Record, tmp_path: Path) -> None:
    record.trick_line("trick", n=1)
    record.flush()
    assert len(_raw(tmp_path / "tricks-w-0001.jsonl")) == 1


def test_tricks_reach_the_system_before_the_result_is_written(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is killed right after the result line has left all tricks of the game."""
    seen: list[int] = []
    tricks, results = tmp_path / "tricks-w-0001.jsonl", tmp_path / "results-w.jsonl"
    monkeypatch.setattr(os, "fsync", seen.append)
    for number in range(3):
        record.trick_line("trick", n=number)
    assert len(_raw(tricks)) < 3, "still in the buffer"
    record.result_line(game="g")
    assert len(_raw(tricks)) == 3
    assert _raw(results) == [], "not even handed over yet"
    record.flush()
    assert len(_raw(results)) == 1
    assert seen == [], "flushing is not syncing"
    record.sync()
    assert len(seen) == 1


def test_segments_rotate_and_each_has_a_chain_of_its_own(tmp_path: Path) -> None:
    record = Record(tmp_path, "w", segment_bytes=1000)
    for number in range(40):
        record.trick_line("trick", n=number, text="x" * 50)
        record.flush()
    record.close()
    paths = sorted(tmp_path.glob("tricks-*.jsonl"))
    assert [path.name for path in paths] == [
        f"tricks-w-{number:04}.jsonl" for number in range(1, len(paths) + 1)
    ]
    assert 4 <= len(paths) <= 8
    assert all(path.stat().st_size < 1000 + 200 for path in paths)
    lines = [[line for line in read_lines(path) if line["kind"] == "trick"] for path in paths]
    assert [line["n"] for of_one in lines for line in of_one] == list(range(40))
    assert {next(read_lines(path))["seq"] for path in paths if path.stat().st_size} == {1}


def test_closing_starts_no_new_segment(tmp_path: Path) -> None:
    record = Record(tmp_path, "w", segment_bytes=1)
    record.trick_line("trick", n=1)
    record.close()
    assert [path.name for path in tmp_path.glob("tricks-*")] == ["tricks-w-0001.jsonl"]


def test_a_segment_that_cannot_be_started_is_a_failure_and_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "tricks-w-0002.jsonl").touch()
    failures: list[OSError] = []
    record = Record(tmp_path, "w", segment_bytes=1, on_failure=failures.append)
    record.trick_line("trick", n=1)
    with pytest.raises(FileExistsError):
        record.flush()
    assert len(failures) == 1
    record.close()
    assert [line["n"] for line in read_lines(tmp_path / "tricks-w-0001.jsonl")] == [1]


def test_a_name_that_is_taken_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    first = Record(tmp_path, "w")
    first.result_line(game="kept")
    first.close()
    with pytest.raises(FileExistsError):
        Record(tmp_path, "w")
    assert [line["game"] for line in read_lines(tmp_path / "results-w.jsonl")] == ["kept"]


def test_writers_share_a_folder(tmp_path: Path) -> None:
    names = []
    for number in range(3):
        names.append(free_writer(tmp_path))
        record = Record(tmp_path, names[-1])
        record.result_line(game=f"g{number}")
        record.close()
    assert names == ["0001", "0002", "0003"]
    assert len(list(tmp_path.glob("results-*.jsonl"))) == 3


def test_the_folder_is_made(tmp_path: Path) -> None:
    Record(tmp_path / "a" / "b", "w").close()
    assert (tmp_path / "a" / "b" / "results-w.jsonl").exists()


def test_a_closed_record_cannot_be_written(tmp_path: Path) -> None:
    record = Record(tmp_path, "w")
    record.close()
    with pytest.raises(ValueError, match="closed"):
        record.trick_line("trick")


def test_whoever_owns_the_record_hears_of_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[OSError] = []
    record = Record(tmp_path, "w", on_failure=heard.append)

    def refuse() -> None:
        raise OSError("no space")

    record.trick_line("trick")
    real = record._tricks.file
    monkeypatch.setattr(record._tricks, "file", _Refusing(real))
    with pytest.raises(OSError, match="no space"):
        record.flush()
    with pytest.raises(OSError, match="no space"):
        record.result_line(game="g")
    assert [str(error) for error in heard] == ["no space"] * 2
    monkeypatch.undo()
    record.close()
    assert len(_raw(tmp_path / "tricks-w-0001.jsonl")) == 1
    assert _raw(tmp_path / "results-w.jsonl") == []


class _Refusing:
    def __init__(self, file: Any) -> None:
        self._file = file

    def flush(self) -> None:
        raise OSError("no space")

    def write(self, data: bytes) -> int:
        return int(self._file.write(data))


def test_without_a_record_nothing_happens(tmp_path: Path) -> None:
    recorder = NullRecorder()
    recorder.trick_line("trick", n=1)
    recorder.result_line(game="g")
    recorder.flush()
