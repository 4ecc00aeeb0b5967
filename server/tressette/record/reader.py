"""Reads a record back, checking every line.

A torn last line (the writer was killed while writing) is dropped and reported; any other damage raises
DamagedRecord with file and line::

    RecordError            anything below
    +-- DamagedRecord      a line that is not what the writer wrote
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from tressette.record.writer import FIRST_PREV, SCHEMA


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
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
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
            previous = hashlib.sha256(line).hexdigest()[:32]
            if held is not None:
                yield held
            held = fields
    if held is not None:
        yield held


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
    for path in sorted(path for path in folder.glob("results-*.jsonl") if path.is_file()):
        yield from read_lines(path, torn)


def begun_attempts(folder: Path) -> dict[str, int]:
    """The highest attempt begun of each game in the folder, from its ``match`` lines; also of those whose
    result was never written. Other lines are passed over unread."""
    begun: dict[str, int] = {}
    for path in sorted(path for path in folder.glob("tricks-*.jsonl") if path.is_file()):
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if b'"kind":"match"' in raw and raw.endswith(b"\n"):
                    game, attempt = game_of(path, number, _parse(path, number, raw[:-1]))
                    begun[game] = max(attempt, begun.get(game, 0))
    return begun


def game_of(path: Path, number: int, fields: dict[str, Any]) -> tuple[str, int]:
    """The game and attempt that a line belongs to; raises DamagedRecord for one that names none."""
    game, attempt = fields.get("game"), fields.get("attempt")
    if not isinstance(game, str) or type(attempt) is not int or attempt < 1:
        raise DamagedRecord(path, number, f"game {game!r}, attempt {attempt!r}: names no game")
    return game, attempt
