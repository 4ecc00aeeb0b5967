"""The journal: what was written comes back, torn ends are cut off, other damage is named."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tressette_tournament.formats import Fixture, Round
from tressette_tournament.journal import Journal, JournalError, read_rounds

BYE = Fixture(1, ("ada",), 4, 0)
FIRST: list[Round] = [(Fixture(0, ("ada", "bob"), 0, 4), Fixture(1, ("bob", "bob", "eve", "eve"), 0, 4), BYE)]
LATER: list[Round] = [(Fixture(0, ("eve", "ada"), 4, 1),), (Fixture(0, ("Zoë", "bob"), 5, 1),)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def test_rounds_come_back_as_they_were_written(path: Path) -> None:
    assert list(read_rounds(path)) == []
    with Journal(path) as journal:
        journal.write(0, FIRST)
        assert list(read_rounds(path)) == FIRST, "there as soon as write returns"
    with Journal(path) as journal:
        journal.write(1, LATER)
    assert list(read_rounds(path)) == FIRST + LATER


@given(cut=st.integers(1, 400))
def test_a_torn_last_line_is_dropped_and_written_over(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("torn") / "journal.jsonl"
    with Journal(path) as journal:
        journal.write(0, FIRST + LATER)
    whole = path.read_bytes()
    kept = whole[: max(0, len(whole) - cut)]
    path.write_bytes(kept)
    rounds = (FIRST + LATER)[: kept.count(b"\n")]
    assert list(read_rounds(path)) == rounds
    with Journal(path) as journal:
        journal.write(len(rounds), LATER)
    assert list(read_rounds(path)) == rounds + LATER


def test_a_torn_line_of_any_length_is_cut_off(path: Path) -> None:
    with Journal(path) as journal:
        journal.write(0, FIRST)
    whole = path.read_bytes()
    path.write_bytes(whole + b"x" * 200_000)
    with Journal(path):
        pass
    with Journal(path) as journal:
        journal.write(1, LATER)
    assert list(read_rounds(path)) == FIRST + LATER


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", "not a round"),
        ('{"round": 2, "fixtures": []}', "round 2 where 1 is due"),
        ('{"round": 1}', "missing"),
        ('{"round": 1, "fixtures": [{"preset": 0}]}', "is not a fixture"),
        (
            '{"round": 1, "fixtures": [{"preset": -1, "line_up": ["a"], "first_set": 0, "sets": 0}]}',
            "fixture",
        ),
        ('{"round": 1, "fixtures": [{"preset": 0, "line_up": [], "first_set": 0, "sets": 0}]}', "fixture"),
        ('{"round": 1, "fixtures": [{"preset": 0, "line_up": [3], "first_set": 0, "sets": 0}]}', "fixture"),
        ("[" * 100_000, "not a round"),
        ("\udcff", "not a round"),
    ],
)
def test_other_damage_is_named_with_file_and_line(path: Path, line: str, reason: str) -> None:
    with Journal(path) as journal:
        journal.write(0, FIRST)
    with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(line + "\n")
    with pytest.raises(JournalError, match=reason) as caught:
        list(read_rounds(path))
    assert (caught.value.path, caught.value.line) == (path, 2)
    assert str(caught.value).startswith(f"{path}, line 2: ")


def test_what_a_full_disk_left_is_written_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(path) as journal:
        journal.write(0, FIRST)
        whole = os.pwrite

        def half(file: int, data: bytes, offset: int) -> int:
            whole(file, data[:20], offset)
            raise OSError(errno.ENOSPC, "no space left")

        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", half)
            with pytest.raises(OSError, match="no space left"):
                journal.write(1, LATER)
        assert list(read_rounds(path)) == FIRST
        journal.write(1, LATER)
    assert list(read_rounds(path)) == FIRST + LATER


def test_a_round_is_on_the_disk_before_its_games_are_issued(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    write, sync = os.pwrite, os.fsync

    def writing(file: int, data: bytes, offset: int) -> int:
        order.append("write")
        return write(file, data, offset)

    def syncing(file: int) -> None:
        order.append("sync")
        sync(file)

    with Journal(path) as journal:
        monkeypatch.setattr(os, "pwrite", writing)
        monkeypatch.setattr(os, "fsync", syncing)
        journal.write(0, FIRST + LATER)
        assert order == ["write", "sync"], "one for all"
