"""The journal of a run: what was paired, on the disk before it is played. One JSON object a line.

Swiss and knockout rounds, and every choice of a ladder, are written here before their first game is issued;
a resumed run takes them from here. A line::

    {"round": 4, "fixtures": [{"preset": 0, "line_up": ["ada", "bob"], "first_set": 8, "sets": 2}]}

Rounds count from 0 without a gap. ``preset`` is its index in the tournament file; the other fields are those
of ``Fixture``. A last line without its end (the runner was killed while it wrote) is dropped: none of its
games has begun. Any other damage raises JournalError.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from tressette.record.whole import sync_folder

from tressette_tournament.formats import Fixture, Round


class JournalError(Exception):
    """A line that is not what was written; ``path``, ``line`` (from 1) and ``reason`` say which."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path}, line {line}: {reason}")
        self.path, self.line, self.reason = path, line, reason


def read_rounds(path: Path) -> Iterator[Round]:
    """The rounds of a journal, in order; none if there is no such file. Raises OSError or JournalError."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if not line.endswith(b"\n"):
                return
            try:
                yield _round(number, json.loads(line))
            except (ValueError, RecursionError) as error:
                raise JournalError(path, number + 1, f"not a round: {error}") from None


class Journal:
    """A journal to be continued. It is made if it is not there, and a torn last line is cut off: the caller
    has seen to it that nobody else writes. Raises OSError."""

    def __init__(self, path: Path) -> None:
        new = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._end = _whole_lines(self._file)
        if new:
            sync_folder(path.parent)

    def write(self, first_round: int, rounds: Iterable[Round]) -> None:
        """Add rounds that are numbered from ``first_round``; they are on the disk when this returns.

        Raises OSError, and then may be called with the same rounds again.
        """
        lines = (_line(number, fixtures) for number, fixtures in enumerate(rounds, start=first_round))
        data = "".join(lines).encode()
        os.ftruncate(self._file, self._end)  # what an earlier attempt left
        written = 0
        while written < len(data):
            written += os.pwrite(self._file, data[written:], self._end + written)
        os.fsync(self._file)
        self._end += len(data)

    def close(self) -> None:
        """Close the file; nothing is pending."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _line(number: int, fixtures: Round) -> str:
    plain = [
        {"preset": one.preset, "line_up": one.line_up, "first_set": one.first_set, "sets": one.sets}
        for one in fixtures
    ]
    return json.dumps({"round": number, "fixtures": plain}, ensure_ascii=False) + "\n"


def _round(number: int, data: object) -> Round:
    match data:
        case {"round": int(there), "fixtures": list(fixtures)} if there == number:
            return tuple(map(_fixture, fixtures))
        case {"round": there, "fixtures": _}:
            raise ValueError(f"round {there!r} where {number} is due")
    raise ValueError("round or fixtures are missing")


def _fixture(data: object) -> Fixture:
    match data:
        case {"preset": int(preset), "line_up": [*names], "first_set": int(first_set), "sets": int(sets)}:
            if names and all(isinstance(name, str) for name in names) and min(preset, first_set, sets) >= 0:
                return Fixture(preset, tuple(names), first_set, sets)
    raise ValueError(f"{json.dumps(data)[:60]} is not a fixture")


def _whole_lines(file: int) -> int:
    """Where the last whole line ends."""
    end = os.fstat(file).st_size
    while end:
        begin = max(0, end - 65536)
        found = os.pread(file, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
