"""How lines get into files: numbered, chained, in segments, in order, whatever the logs are set to."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st
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
    seen = synced(monkeypatch)
    tricks, results = tmp_path / "tricks-w-0001.jsonl", tmp_path / "results-w.jsonl"
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
    assert seen == ["tricks-w-0001.jsonl", tmp_path.name, "results-w.jsonl"]


def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files and folders that are synced from now on."""
    names: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda file: names.append(Path(os.readlink(f"/proc/self/fd/{file}")).name)
    )
    return names


def test_a_result_on_the_disk_has_its_tricks_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a power cut leaves no result that cannot be replayed: not where segments were full meanwhile either,
    nor where only the names of their files would be missing."""
    record = Record(tmp_path, "w", segment_bytes=1000)
    record.sync()
    seen = synced(monkeypatch)
    for number in range(40):
        record.trick_line("trick", n=number, text="x" * 50)
        record.flush()
    record.result_line(game="g")
    record.flush()
    record.sync()
    *tricks, folder, results = seen
    assert sorted(tricks) == sorted(path.name for path in tmp_path.glob("tricks-*"))
    assert len(tricks) > 3
    assert (folder, results) == (tmp_path.name, "results-w.jsonl")
    seen.clear()
    record.sync()
    assert len(seen) == 2, "nothing is synced for ever"
    record.close()


def test_a_result_that_comes_during_a_sync_waits_for_the_next(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tricks were not there yet when those of the others were synced."""
    on_disk: list[int] = []

    def fsync(file: int) -> None:
        if not on_disk:
            record.trick_line("trick", game="late")
            record.result_line(game="late")
            record.flush()
            assert len(_raw(tmp_path / "tricks-w-0001.jsonl")) == 2, "those hurt nobody"
        on_disk.append(len(_raw(tmp_path / "results-w.jsonl")))

    monkeypatch.setattr(os, "fsync", fsync)
    record.trick_line("trick", game="early")
    record.result_line(game="early")
    record.flush()
    record.sync()
    assert on_disk == [1, 1, 1]
    record.flush()
    record.sync()
    assert on_disk[3:] == [2, 2]


def test_closing_waits_for_a_sync_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record(tmp_path, "w")
    begun, may_end = threading.Event(), threading.Event()
    ended: list[str] = []

    def fsync(file: int) -> None:
        if not begun.is_set():
            begun.set()
            may_end.wait(60)
            ended.append("sync")

    monkeypatch.setattr(os, "fsync", fsync)
    syncing = threading.Thread(target=record.sync)
    syncing.start()
    assert begun.wait(60)
    record.result_line(game="last")

    def close() -> None:
        record.close()
        ended.append("close")

    closing = threading.Thread(target=close)
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()
    may_end.set()
    for thread in (syncing, closing):
        thread.join(60)
    assert ended == ["sync", "close"]
    assert len(_raw(tmp_path / "results-w.jsonl")) == 1


def test_a_result_that_comes_while_other_things_are_synced_waits_too(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as its reveal, which was not there yet when those of the others were synced."""
    record.trick_line("trick", game="early")
    record.flush()
    on_disk: list[int] = []

    def before() -> None:
        record.result_line(game="late")
        record.flush()

    monkeypatch.setattr(os, "fsync", lambda _: on_disk.append(len(_raw(tmp_path / "results-w.jsonl"))))
    record.sync(before)
    assert set(on_disk) == {0}
    record.flush()
    record.sync()
    assert on_disk[-1] == 1


def test_segments_stay_while_they_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many become full meanwhile, none is closed that the sync has yet to go through."""
    record = Record(tmp_path, "w", segment_bytes=1)
    real = os.fsync
    synced_files: list[str] = []

    def fsync(file: int) -> None:
        if not synced_files:
            for number in range(100):
                record.trick_line("trick", n=number)
                record.flush()
        synced_files.append(Path(os.readlink(f"/proc/self/fd/{file}")).name)
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    record.sync()
    record.result_line(game="g")
    record.flush()
    record.sync()
    assert set(synced_files) >= {path.name for path in tmp_path.glob("tricks-*")}
    record.close()
    tricks = [line for path in sorted(tmp_path.glob("tricks-*")) for line in read_lines(path)]
    assert [line["n"] for line in tricks if line["kind"] == "trick"] == list(range(100))


@pytest.mark.parametrize(
    "failing", ["tricks-w-0001.jsonl", "tricks-w-0002.jsonl", "results-w.jsonl", "before"]
)
def test_what_could_not_be_synced_stays_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """The system tells a failure once and drops what it could not write: a second fsync knows nothing."""
    open_before = len(os.listdir("/proc/self/fd"))
    record = Record(tmp_path, "w", segment_bytes=1)
    record.trick_line("trick", game="g")
    record.result_line(game="g")
    record.flush()
    failures = iter([OSError(errno.EIO, "Input/output error")])
    synced_files: list[str] = []

    def fsync(file: int) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{file}")).name
        synced_files.append(name)
        if name == failing and (error := next(failures, None)) is not None:
            raise error

    def before() -> None:
        if failing == "before" and (error := next(failures, None)) is not None:
            raise error

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="Input/output"):
        record.sync(before)
    synced_files.clear()
    for again in (record.sync, record.close):
        with pytest.raises(OSError, match="Input/output"):
            again(before)
    assert "results-w.jsonl" not in synced_files
    assert len(os.listdir("/proc/self/fd")) == open_before, "its files are closed all the same"


def test_a_full_disk_at_the_end_does_not_keep_the_rest_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record(tmp_path, "w")
    record.result_line(game="there")
    record.flush()
    record.trick_line("trick", game="too much")
    seen = synced(monkeypatch)
    with monkeypatch.context() as patch:
        Disk(patch, errno.ENOSPC, 1, 100)
        with pytest.raises(OSError, match="No space"):
            record.close()
    assert seen[-1] == "results-w.jsonl"
    assert [line["game"] for line in read_lines(tmp_path / "results-w.jsonl")] == ["there"]


def test_a_record_that_nobody_syncs_holds_few_files(tmp_path: Path) -> None:
    record = Record(tmp_path, "w", segment_bytes=1)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(100):
        record.trick_line("trick", n=number)
        record.flush()
    assert len(list(tmp_path.glob("tricks-*"))) > 50
    assert len(os.listdir("/proc/self/fd")) < before + 20
    record.close()
    assert len(os.listdir("/proc/self/fd")) < before


def test_the_names_of_new_files_are_on_the_disk_before_their_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its name a result is lost when the power goes, however well it was synced."""
    seen: list[list[str]] = []

    def sync(descriptor: int) -> None:
        if os.path.samestat(os.fstat(descriptor), tmp_path.stat()):
            seen.append(sorted(os.listdir(tmp_path)))

    (tmp_path / "manifest.json").touch()
    monkeypatch.setattr(os, "fsync", sync)
    Record(tmp_path, "w").close()
    assert "results-w.jsonl" in seen[0]
    assert "manifest.json" not in seen[0]


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


@pytest.mark.parametrize("name", ["results-0001.jsonl", "reveals-0001.jsonl", "suspended.json.0001"])
def test_a_writer_that_has_left_anything_is_not_free(tmp_path: Path, name: str) -> None:
    """The next one would put its own in the place of a suspension."""
    assert free_writer(tmp_path) == "0001"
    (tmp_path / name).touch()
    assert free_writer(tmp_path) == "0002"


def test_the_folder_is_made(tmp_path: Path) -> None:
    Record(tmp_path / "a" / "b", "w").close()
    assert (tmp_path / "a" / "b" / "results-w.jsonl").exists()


def test_an_abandoned_record_leaves_nothing_but_what_was_written(tmp_path: Path) -> None:
    Record(tmp_path, "w").abandon()
    assert list(tmp_path.iterdir()) == []
    record = Record(tmp_path, "w")
    record.trick_line("trick", n=1)
    record.abandon()
    assert [line["n"] for line in read_lines(tmp_path / "tricks-w-0001.jsonl")] == [1]
    with pytest.raises(ValueError, match="closed"):
        record.trick_line("trick")


def test_a_closed_record_cannot_be_written(tmp_path: Path) -> None:
    record = Record(tmp_path, "w")
    record.close()
    with pytest.raises(ValueError, match="closed"):
        record.trick_line("trick")


# -- disks that refuse ------------------------------------------------------------------------------


class Disk:
    """In place of ``os.write``: refuses so many writes in a row, again and again, and takes ``most`` bytes of
    those that it does not refuse."""

    def __init__(self, patch: pytest.MonkeyPatch, number: int, refusals: int, most: int) -> None:
        self._write = os.write
        self._number = number
        self._refusals = refusals
        self._most = most
        self._refused = 0
        patch.setattr(os, "write", self)

    def __call__(self, file: int, data: bytes) -> int:
        if self._refused < self._refusals:
            self._refused += 1
            raise OSError(self._number, os.strerror(self._number))
        self._refused = 0
        return self._write(file, bytes(data[: self._most]))


class Waiting:
    """Patience for so many attempts in vain. ``waits``: attempts in vain; ``overs``: how often there was room
    after all."""

    def __init__(self, limit: int = 1_000_000) -> None:
        self.limit = limit
        self.waits = self.overs = 0

    def wait(self, error: OSError) -> bool:
        assert error.errno in (errno.ENOSPC, errno.EDQUOT)
        self.waits += 1
        return self.waits < self.limit

    def over(self) -> None:
        self.overs += 1


def _write_games(record: Record, games: int, length: int) -> None:
    for game in range(games):
        record.trick_line("match", game=f"g{game}", attempt=1)
        record.trick_line("trick", game=f"g{game}", attempt=1, text="x" * length)
        record.flush()
        record.result_line(game=f"g{game}")
    record.flush()


@given(
    number=st.sampled_from((errno.ENOSPC, errno.EDQUOT)),
    refusals=st.integers(1, 5),
    most=st.integers(1, 400),
    length=st.integers(0, 3000),
)
@settings(max_examples=30)
def test_what_had_to_wait_for_room_is_written_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, number: int, refusals: int, most: int, length: int
) -> None:
    folders = [tmp_path_factory.mktemp(name) for name in ("waits", "does-not")]
    patience = Waiting()
    with pytest.MonkeyPatch.context() as patch:
        Disk(patch, number, refusals, most)
        record = Record(folders[0], "w", segment_bytes=2000, patience=patience)
        _write_games(record, 5, length)
    record.close()
    smooth = Record(folders[1], "w", segment_bytes=2000)
    _write_games(smooth, 5, length)
    smooth.close()
    assert {path.name: path.read_bytes() for path in folders[0].iterdir()} == {
        path.name: path.read_bytes() for path in folders[1].iterdir()
    }
    assert patience.waits >= refusals
    assert patience.waits % refusals == 0
    assert 0 < patience.overs <= patience.waits // refusals


def test_a_line_that_is_longer_than_anything_waits_like_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record(tmp_path, "w", patience=Waiting())
    with monkeypatch.context() as patch:
        Disk(patch, errno.ENOSPC, 1, 100_000)
        record.trick_line("trick", text="x" * 1_000_000)
    record.trick_line("trick", text="after it")
    record.close()
    lines = [len(line["text"]) for line in read_lines(tmp_path / "tricks-w-0001.jsonl")]
    assert lines == [1_000_000, 8]


def test_a_segment_that_finds_no_room_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patience = Waiting()
    record = Record(tmp_path, "w", segment_bytes=1, patience=patience)
    record.trick_line("trick", n=1)
    refused = iter(range(3))
    real = os.open

    def opened(path: Any, *arguments: Any) -> int:
        if next(refused, None) is not None:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opened)
        record.flush()
    record.close()
    assert (patience.waits, patience.overs) == (3, 1)
    assert [line["kind"] for line in read_lines(tmp_path / "tricks-w-0002.jsonl")] == ["segment"]


def test_whoever_owns_the_record_hears_of_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[OSError] = []
    patience = Waiting()
    record = Record(tmp_path, "w", on_failure=heard.append, patience=patience)
    record.trick_line("trick")
    with monkeypatch.context() as patch:
        Disk(patch, errno.EIO, 2, 1)
        with pytest.raises(OSError, match="Input/output error"):
            record.flush()
        with pytest.raises(OSError, match="Input/output error"):
            record.result_line(game="g")
    assert [error.errno for error in heard] == [errno.EIO] * 2
    assert patience.waits == 0, "there is nothing to wait for"
    record.close()
    assert len(_raw(tmp_path / "tricks-w-0001.jsonl")) == 1
    assert _raw(tmp_path / "results-w.jsonl") == []


def test_patience_may_come_to_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[OSError] = []
    patience = Waiting(limit=3)
    record = Record(tmp_path, "w", on_failure=heard.append, patience=patience)
    record.trick_line("trick")
    with monkeypatch.context() as patch:
        Disk(patch, errno.ENOSPC, 1_000_000, 1)
        with pytest.raises(OSError, match="No space left"):
            record.flush()
        assert (patience.waits, patience.overs, len(heard)) == (3, 0, 1)
        patience.limit = 1_000_000
        with pytest.raises(OSError, match="No space left"):
            record.close()
    assert patience.waits == 3, "closing does not wait"
    assert _raw(tmp_path / "tricks-w-0001.jsonl") == []


def test_without_a_record_nothing_happens(tmp_path: Path) -> None:
    recorder = NullRecorder()
    recorder.trick_line("trick", n=1)
    recorder.result_line(game="g")
    recorder.flush()
