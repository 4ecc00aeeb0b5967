"""Reading a record back: whole, torn or damaged."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tressette.record.reader import (
    DamagedRecord,
    RecordError,
    begun_attempts,
    read_lines,
    read_results,
    seconds_played,
)
from tressette.record.writer import Record

LINES = 6


def _written(folder: Path, count: int = LINES) -> Path:
    record = Record(folder, "w")
    for number in range(count):
        record.result_line(game=f"g{number}", points=[66 - number, number], bots=["ä", "b"])
    record.close()
    return folder / "results-w.jsonl"


with tempfile.TemporaryDirectory() as _folder:
    DATA = _written(Path(_folder)).read_bytes()
SPLIT = DATA.splitlines(keepends=True)


def _read(tmp_path: Path, data: bytes) -> tuple[list[str], list[str]]:
    """The games in a file of this content, and what is said about its end."""
    path = tmp_path / "results-w.jsonl"
    path.write_bytes(data)
    torn: list[str] = []
    return [line["game"] for line in read_lines(path, torn)], torn


def _damaged(tmp_path: Path, data: bytes) -> DamagedRecord:
    with pytest.raises(DamagedRecord) as caught:
        _read(tmp_path, data)
    error = caught.value
    assert isinstance(error, RecordError)
    assert error.path == tmp_path / "results-w.jsonl"
    assert str(error) == f"{error.path}, line {error.line}: {error.reason}"
    return error


# -- whole and torn -----------------------------------------------------------------------------------


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert _read(tmp_path, DATA) == ([f"g{number}" for number in range(LINES)], [])
    assert _read(tmp_path, b"") == ([], [])


def test_a_torn_last_line_is_dropped_and_reported(tmp_path: Path) -> None:
    start = len(DATA) - len(SPLIT[-1])
    for end in range(start + 1, len(DATA)):
        games, torn = _read(tmp_path, DATA[:end])
        assert games == [f"g{number}" for number in range(LINES - 1)]
        (said,) = torn
        assert f"results-w.jsonl, line {LINES}" in said


def test_a_file_cut_at_a_line_is_whole(tmp_path: Path) -> None:
    """That lines are missing at the end is for the manifest to tell."""
    for count in range(LINES):
        games, torn = _read(tmp_path, b"".join(SPLIT[:count]))
        assert (len(games), torn) == (count, [])


def test_nobody_has_to_listen_for_torn_lines(tmp_path: Path) -> None:
    path = tmp_path / "results-w.jsonl"
    path.write_bytes(DATA[:-5])
    assert len(list(read_lines(path))) == LINES - 1


# -- damaged ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", range(LINES - 1))
def test_a_line_that_is_missing(tmp_path: Path, position: int) -> None:
    lines = SPLIT[:position] + SPLIT[position + 1 :]
    assert _damaged(tmp_path, b"".join(lines)).line == position + 1


@pytest.mark.parametrize("position", range(LINES + 1))
@pytest.mark.parametrize("extra", [b"\n", b"{}\n", b"null\n", b"garbage\n", SPLIT[0], SPLIT[2]])
def test_a_line_too_many(tmp_path: Path, position: int, extra: bytes) -> None:
    lines = [*SPLIT[:position], extra, *SPLIT[position:]]
    error = _damaged(tmp_path, b"".join(lines))
    assert position + 1 <= error.line <= position + 3


@pytest.mark.parametrize("position", range(LINES - 1))
def test_two_lines_changed_places(tmp_path: Path, position: int) -> None:
    lines = list(SPLIT)
    lines[position], lines[position + 1] = lines[position + 1], lines[position]
    assert _damaged(tmp_path, b"".join(lines)).line == position + 1


@pytest.mark.parametrize("position", range(LINES - 1))
def test_a_result_that_was_improved(tmp_path: Path, position: int) -> None:
    """Valid JSON, right number: found at the line after it."""
    lines = list(SPLIT)
    lines[position] = lines[position].replace(b'"points":[6', b'"points":[9')
    assert _damaged(tmp_path, b"".join(lines)).line == position + 2


def test_a_line_of_another_schema(tmp_path: Path) -> None:
    error = _damaged(tmp_path, SPLIT[0].replace(b'"v":1', b'"v":2'))
    assert (error.line, "schema" in error.reason) == (1, True)


def test_a_line_is_given_out_only_when_the_next_has_confirmed_it(tmp_path: Path) -> None:
    path = tmp_path / "results-w.jsonl"
    path.write_bytes(b"".join([*SPLIT[:2], SPLIT[2].replace(b'"game":', b'"name":'), *SPLIT[3:]]))
    lines = read_lines(path)
    assert [next(lines)["game"] for _ in range(2)] == ["g0", "g1"]
    with pytest.raises(DamagedRecord) as caught:
        next(lines)
    assert caught.value.line == 4


def test_lines_of_another_file(tmp_path: Path) -> None:
    other = SPLIT[0].replace(b'"g0"', b'"x0"')
    assert _damaged(tmp_path, other + b"".join(SPLIT[1:])).line == 2


_BEFORE_LAST = len(DATA) - len(SPLIT[-1])


@given(position=st.integers(0, _BEFORE_LAST - 1), byte=st.integers(0, 255))
def test_no_byte_changes_unnoticed(position: int, byte: int) -> None:
    """Any byte but those of the last line, which nothing follows yet."""
    assume(DATA[position] != byte)
    _refused(DATA[:position] + bytes((byte,)) + DATA[position + 1 :])


@given(position=st.integers(0, _BEFORE_LAST), extra=st.binary(min_size=1, max_size=4))
def test_no_byte_is_added_unnoticed(position: int, extra: bytes) -> None:
    changed = DATA[:position] + extra + DATA[position:]
    assume(changed != DATA)
    # Blanks before the last line's object would be JSON still, and nothing follows that line.
    assume(not (position == _BEFORE_LAST and not extra.strip()))
    _refused(changed)


@given(start=st.integers(0, _BEFORE_LAST - 1), length=st.integers(1, 200))
def test_no_byte_is_removed_unnoticed(start: int, length: int) -> None:
    end = min(start + length, _BEFORE_LAST)
    _refused(DATA[:start] + DATA[end:])


def _refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _damaged(Path(folder), data)


@given(position=st.integers(_BEFORE_LAST, len(DATA) - 1), byte=st.integers(0, 255))
def test_in_the_last_line_all_but_its_own_content_is_checked(position: int, byte: int) -> None:
    """A last line that was changed is read as changed, torn, or refused; those before it stay as they are."""
    data = DATA[:position] + bytes((byte,)) + DATA[position + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results-w.jsonl"
        path.write_bytes(data)
        read = []
        with contextlib.suppress(DamagedRecord):
            for line in read_lines(path):
                read.append(line["seq"])
    assert read == list(range(1, len(read) + 1))
    assert LINES - 2 <= len(read) <= LINES


# -- folders ------------------------------------------------------------------------------------------


def test_results_of_all_writers_are_read(tmp_path: Path) -> None:
    for name in ("b", "a"):
        record = Record(tmp_path, name)
        record.result_line(game=f"of-{name}")
        record.close()
    (tmp_path / "results-c.jsonl").write_bytes(SPLIT[0][:-3])
    torn: list[str] = []
    assert [line["game"] for line in read_results(tmp_path, torn)] == ["of-a", "of-b"]
    assert len(torn) == 1


def test_the_highest_attempt_begun_of_each_game(tmp_path: Path) -> None:
    for name, attempts in (
        ("a", [("g1", 1), ("g2", 1), ("g1", 2)]),
        ("b", [("g1", 3), ("g3", 1), ("g1", 5)]),
    ):
        record = Record(tmp_path, name, segment_bytes=200)
        for game, attempt in attempts:
            record.trick_line("match", game=game, attempt=attempt, versions=['"kind":"match"'])
            record.trick_line("trick", game="g9", attempt=9, text='"kind":"match"')
            record.flush()
        record.close()
    assert begun_attempts(tmp_path) == {"g1": 5, "g2": 1, "g3": 1}
    assert begun_attempts(tmp_path / "nothing") == {}


def test_a_torn_opening_is_no_attempt(tmp_path: Path) -> None:
    record = Record(tmp_path, "w")
    record.trick_line("match", game="g1", attempt=1)
    record.trick_line("match", game="g1", attempt=2)
    record.close()
    path = tmp_path / "tricks-w-0001.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    assert begun_attempts(tmp_path) == {"g1": 1}


@pytest.mark.parametrize(
    "damage", [lambda line: line[:-5] + b"\n", lambda line: line.replace(b'"v":1', b'"v":7')]
)
def test_a_damaged_opening_is_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    record = Record(tmp_path, "w")
    record.trick_line("match", game="g1", attempt=1)
    record.close()
    path = tmp_path / "tricks-w-0001.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamagedRecord):
        begun_attempts(tmp_path)


def test_seconds_played_are_those_of_every_writer(tmp_path: Path) -> None:
    assert seconds_played(tmp_path) == 0
    for writer, ends in (("0001", [5_000, 6_000, 9_500]), ("0002", [100_000]), ("0003", [])):
        record = Record(tmp_path, writer)
        for number, end in enumerate(ends):
            record.result_line(game=f"g{number}", attempt=1, duration_ms=1_500, ended_unix_ms=end)
        record.close()
    with (tmp_path / "results-0001.jsonl").open("ab") as torn:
        torn.write(b'{"torn')
    assert seconds_played(tmp_path) == (9.5 - 5 + 1.5) + 1.5
    path = tmp_path / "results-0004.jsonl"
    path.write_bytes(b'{"v":1}\n')
    with pytest.raises(DamagedRecord, match="has no times"):
        seconds_played(tmp_path)
