"""Writes the record: JSON lines through a structlog logger of its own, chained by hashes.

A writer owns two kinds of file in its folder, named after it:

``results-<writer>.jsonl``     one line a game; such a line commits the game
``tricks-<writer>-<n>.jsonl``  a line when a game starts, one a trick, one a deal; a full one is closed and
                               the next begun, with a ``segment`` line: which games are under way

Every line is a JSON object that opens with ``v`` (schema version), ``seq`` (from 1 in each file),
``prev`` (the first 32 hex digits of the SHA-256 of the line before, of the empty string for the first)
and ``kind``. The logger is bound to no level and to no global configuration, so that nothing that is
set for operational logs can silence it.

A folder that is written has no closing manifest (``record.manifest``): a new writer takes it away.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import orjson
import structlog

SCHEMA: Final = 1
SEGMENT_BYTES: Final = 16 << 20
"""When a segment is full. So much is uncompressed on the disk for each writer, twice as much while one is
being compressed, and so much is looked through when a run goes on; larger ones hardly compress better."""
SEGMENT: Final = "segment"
"""The kind of the line that a segment after the first opens with."""
MANIFEST: Final = "manifest.json"
"""The name of the closing manifest in a folder."""


def line_hash(line: bytes) -> str:
    """The first 32 hex digits of the SHA-256 of a line without its end."""
    return hashlib.sha256(line).hexdigest()[:32]


FIRST_PREV: Final = line_hash(b"")


class Recorder(Protocol):
    """Where a running game writes. ``flush`` makes what was written visible to other processes."""

    def trick_line(self, kind: str, **fields: object) -> None:
        """Write one line of a game under way."""

    def result_line(self, **fields: object) -> None:
        """Write the line that commits a game; everything about the game was written before."""

    def flush(self) -> None:
        """Hand all lines so far to the operating system."""


class NullRecorder:
    """For arenas without a record."""

    def trick_line(self, kind: str, **fields: object) -> None:
        """Nothing is kept."""

    def result_line(self, **fields: object) -> None:
        """Nothing is kept."""

    def flush(self) -> None:
        """Nothing to do."""


class _LineLogger(structlog.BoundLoggerBase):
    """A structlog logger without levels: one method, one line."""

    def line(self, kind: str, **fields: object) -> None:
        self._proxy_to_logger("msg", kind, **fields)


class _Sink:
    """One file: a structlog logger whose renderer numbers and chains the lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: BinaryIO = path.open("xb")
        self.size = 0
        self._sequence = 0
        self._previous = FIRST_PREV
        self.log = _LineLogger(structlog.BytesLogger(self), [self._render], {})  # type: ignore[arg-type]

    # structlog.BytesLogger wants a file and flushes after every line; lines are flushed in groups here.
    def write(self, data: bytes) -> int:
        self.size += len(data)
        return self.file.write(data)

    def flush(self) -> None:
        """Called by structlog after each line; see ``Record.flush`` for the real one."""

    def _render(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> bytes:
        self._sequence += 1
        line = orjson.dumps(
            {"v": SCHEMA, "seq": self._sequence, "prev": self._previous, "kind": event.pop("event"), **event}
        )
        self._previous = line_hash(line)
        return line


class Record:
    """The record of one writing process. Raises FileExistsError if the writer's name is taken.

    ``on_failure`` hears of every write that the system refuses, before the error is raised: whoever owns
    the record should stop playing then, since what cannot be recorded must not be played.
    """

    def __init__(
        self,
        folder: Path,
        writer: str,
        segment_bytes: int = SEGMENT_BYTES,
        on_failure: Callable[[OSError], None] = lambda error: None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.writer = writer
        self._segment_bytes = segment_bytes
        self._closed_bytes = 0
        self._on_failure = on_failure
        self._under_way: dict[object, object] = {}  # attempt by game
        self._results = _Sink(folder / f"results-{writer}.jsonl")
        (folder / MANIFEST).unlink(missing_ok=True)
        self._segment = 1
        self._tricks = self._open_segment(self._segment)
        self._dirty = False

    @property
    def bytes_written(self) -> int:
        """The size of all lines so far, those that have not reached the operating system included."""
        return self._closed_bytes + self._results.size + self._tricks.size

    def trick_line(self, kind: str, **fields: object) -> None:
        """Write one line of a game under way."""
        self._dirty = True
        if kind == "match":
            self._under_way[fields.get("game")] = fields.get("attempt")
        try:
            self._tricks.log.line(kind, **fields)
        except OSError as error:
            self._on_failure(error)
            raise

    def result_line(self, **fields: object) -> None:
        """Commit a game. Its tricks reach the operating system first."""
        self.flush()
        self._dirty = True
        try:
            self._results.log.line("game", **fields)
            self._under_way.pop(fields.get("game"), None)
        except OSError as error:
            self._on_failure(error)
            raise

    def flush(self) -> None:
        """Hand all lines so far to the operating system; start a new segment where one is full."""
        if not self._dirty:
            return
        self._hand_over()
        if self._tricks.size >= self._segment_bytes:
            self._start_segment()

    def _hand_over(self) -> None:
        try:
            self._tricks.file.flush()
            self._results.file.flush()
            self._dirty = False
        except OSError as error:
            self._on_failure(error)
            raise

    def _start_segment(self) -> None:
        full = self._tricks
        try:
            self._tricks = self._open_segment(self._segment + 1)
        except OSError as error:
            self._on_failure(error)
            raise
        full.file.close()
        self._segment += 1
        self._closed_bytes += full.size
        self.trick_line(SEGMENT, games=list(self._under_way.items()))

    def sync(self) -> None:
        """Force the results to the disk. Blocks; may run in another thread than the writing."""
        os.fsync(self._results.file.fileno())

    def close(self) -> None:
        """Flush, sync and close; the record cannot be written any more."""
        with self._results.file, self._tricks.file:
            self._hand_over()
            self.sync()

    def _open_segment(self, number: int) -> _Sink:
        return _Sink(self.folder / f"tricks-{self.writer}-{number:04}.jsonl")


def free_writer(folder: Path) -> str:
    """The first writer name, from ``0001`` on, that has neither results nor reveals in the folder yet: a
    session that only reveals leaves no results."""
    number = 1
    while any((folder / f"{kind}-{number:04}.jsonl").exists() for kind in ("results", "reveals")):
        number += 1
    return f"{number:04}"
