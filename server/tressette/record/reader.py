"""Reads a record back, checking every line; segments may be compressed (``record.segments``).

A torn last line (the writer was killed while writing) is dropped and reported; any other damage raises
DamagedRecord with file and line::

    RecordError            anything below
    +-- DamagedRecord      a line that is not what the writer wrote

A compressed segment where zstandard is not installed is a RecordError that names the extra to install.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from tressette.record.segments import NeedsZstandard, UnreadableSegment, raw_lines, segments
from tressette.record.writer import FIRST_PREV, SCHEMA, SEGMENT, line_hash


class RecordError(Exception):
    """Base of what reading a record raises."""


class DamagedRecord(RecordError):
    """A line that does not continue the file; ``path``, ``line`` (from 1) and ``reason`` say which."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path}, line {line}: {reason}")
        self.path, self.line, self.reason = path, line, reason


def read_lines(path: Path, torn: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """The lines of one file as dictionaries, in order, each checked against the chain.

    A torn last line is left out; a text that says so is added to ``torn``. A line is given out only when
    the one after it has confirmed its hash; the last has none after it.
    """
    previous = FIRST_PREV
    held: dict[str, Any] | None = None
    for number, raw in numbered_lines(path):
        if not raw.endswith(b"\n"):
            if torn is not None:
                torn.append(f"{path}, line {number}: dropped an incomplete last line")
            break
        line = raw[:-1]
        fields = _parse(path, number, line)
        if fields.get("seq") != number:
            raise DamagedRecord(path, number, f"sequence number {fields.get('seq')!r}, not {number}")
        if fields.get("prev") != previous:
            raise DamagedRecord(path, number, "the hash of the line before does not match")
        previous = line_hash(line)
        if held is not None:
            yield held
        held = fields
    if held is not None:
        yield held


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file as they are, unchecked, with their line ends, numbered from 1. Raises RecordError
    for a compressed segment that cannot be unpacked."""
    number = 0
    try:
        for number, raw in enumerate(raw_lines(path), start=1):
            yield number, raw
    except UnreadableSegment as error:
        raise DamagedRecord(path, number + 1, str(error)) from error
    except NeedsZstandard as error:
        raise RecordError(str(error)) from error


def _parse(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise DamagedRecord(path, number, f"not JSON: {error}") from None
    if not isinstance(fields, dict) or fields.get("v") != SCHEMA:
        raise DamagedRecord(path, number, f"not a line of schema {SCHEMA}")
    return fields


def read_results(folder: Path, torn: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """The ``game`` lines of every writer in the folder."""
    for path in result_files(folder):
        yield from read_lines(path, torn)


def result_files(folder: Path) -> list[Path]:
    """The files with the ``game`` lines of each writer, by name."""
    return sorted(path for path in folder.glob("results-*.jsonl") if path.is_file())


def begun_attempts(folder: Path) -> dict[str, int]:
    """The highest attempt begun of each game in the folder that has no result, and of some that have one.

    A segment opens with the games that were under way when it began, so that only the last one of each
    writer is looked through, and of it only the ``match`` lines are read. Earlier ones are where that line
    is missing: its writer was killed before it.
    """
    begun: dict[str, int] = {}

    def add(path: Path, number: int, game: object, attempt: object) -> None:
        name, count = _named(path, number, game, attempt)
        begun[name] = max(count, begun.get(name, 0))

    for paths in segments(folder).values():
        for path in reversed(paths):
            carried_over = False
            for number, raw in numbered_lines(path):
                if not raw.endswith(b"\n"):
                    continue
                if number == 1 and _SEGMENT_MARK in raw[:_HEAD]:
                    for game, attempt in _carried_over(path, _parse(path, number, raw[:-1])):
                        add(path, number, game, attempt)
                    carried_over = True
                elif b'"kind":"match"' in raw[:_HEAD]:
                    fields = _parse(path, number, raw[:-1])
                    add(path, number, fields.get("game"), fields.get("attempt"))
            if carried_over:
                break
    return begun


_SEGMENT_MARK: Final = b'"kind":"%s"' % SEGMENT.encode()
_HEAD: Final = 128
"""What a line opens with, up to its kind, is shorter than this many bytes."""


def _carried_over(path: Path, fields: dict[str, Any]) -> list[tuple[object, object]]:
    games = fields.get("games")
    if not isinstance(games, list) or not all(isinstance(one, list) and len(one) == 2 for one in games):
        raise DamagedRecord(path, 1, "does not say which games are under way")
    return [(game, attempt) for game, attempt in games]


def game_of(path: Path, number: int, fields: dict[str, Any]) -> tuple[str, int]:
    """The game and attempt that a line belongs to; raises DamagedRecord for one that names none."""
    return _named(path, number, fields.get("game"), fields.get("attempt"))


def _named(path: Path, number: int, game: object, attempt: object) -> tuple[str, int]:
    if not isinstance(game, str) or type(attempt) is not int or attempt < 1:
        raise DamagedRecord(path, number, f"game {game!r}, attempt {attempt!r}: names no game")
    return game, attempt


def seconds_played(folder: Path) -> float:
    """For how long the writers of a folder have played, in seconds: the sum over all of them of the time from
    the beginning of the first game with a result to the end of the last one. Only their lines are read.
    Raises DamagedRecord."""
    milliseconds = 0
    for path in result_files(folder):
        with path.open("rb") as file:
            first = file.readline()
            file.seek(max(len(first), os.fstat(file.fileno()).st_size - _TAIL))
            whole = [line for line in (first, *file) if line.endswith(b"\n")]
        if not whole:
            continue
        begin, end = _parse(path, 1, first[:-1]), _parse(path, len(whole), whole[-1][:-1])
        try:
            milliseconds += end["ended_unix_ms"] - begin["ended_unix_ms"] + begin["duration_ms"]
        except (KeyError, TypeError) as error:
            raise DamagedRecord(path, 1, f"has no times: {error!r}") from None
    return milliseconds / 1000


_TAIL: Final = 1 << 20
"""A result line is shorter than this many bytes."""
