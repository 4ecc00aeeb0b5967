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

A write for which the disk has no room may be tried again and again (``Patience``): what the system has not
taken is kept, so that no line is lost, doubled or torn by that.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import orjson
import structlog

from tressette.record.whole import sync_folder

_T = TypeVar("_T")

SCHEMA: Final = 1
SEGMENT_BYTES: Final = 16 << 20
"""When a segment is full. So much is uncompressed on the disk for each writer, twice as much while one is
being compressed, and so much is looked through when a run goes on; larger ones hardly compress better."""
SEGMENT: Final = "segment"
"""The kind of the line that a segment after the first opens with."""
MANIFEST: Final = "manifest.json"
"""The name of the closing manifest in a folder."""
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
"""Why a write is refused when the disk is full, or a quota is used up."""
_KEPT_BYTES: Final = 1 << 16
"""Lines are handed to the operating system at the latest when there are so many bytes of them."""
_MOST_FULL: Final = 16
"""Full segments that stay open for the next sync."""


def line_hash(line: bytes) -> str:
    """The first 32 hex digits of the SHA-256 of a line without its end."""
    return hashlib.sha256(line).hexdigest()[:32]


FIRST_PREV: Final = line_hash(b"")


class Recorder(Protocol):
    """Where a running game writes. ``flush`` makes what was written visible to other processes, a result
    once a sync under way has ended."""

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


class Patience(Protocol):
    """What to do when there is no room for a write: the disk is full, or a quota is used up."""

    def wait(self, error: OSError) -> bool:
        """Whether to try again. Called after every attempt in vain; returns when the next one is due."""

    def over(self) -> None:
        """There was room after all."""


class NoPatience:
    """A full disk is a failure like any other."""

    def wait(self, error: OSError) -> bool:
        """Never."""
        return False

    def over(self) -> None:
        """Never called."""


class _LineLogger(structlog.BoundLoggerBase):
    """A structlog logger without levels: one method, one line."""

    def line(self, kind: str, **fields: object) -> None:
        self._proxy_to_logger("msg", kind, **fields)


class _Sink:
    """One new file: a structlog logger whose renderer numbers and chains the lines. They are kept until they
    are handed over. ``size`` is that of all lines, those that are kept included."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        self._kept = bytearray()
        self.size = 0
        self._sequence = 0
        self._previous = FIRST_PREV
        self.log = _LineLogger(structlog.BytesLogger(self), [self._render], {})  # type: ignore[arg-type]

    @property
    def kept(self) -> int:
        """Bytes that have not been handed over."""
        return len(self._kept)

    # structlog.BytesLogger wants a file and flushes after every line; lines are handed over in groups here.
    def write(self, data: bytes) -> int:
        """Take a line in. Raises ValueError after ``close``."""
        if self._file < 0:
            raise ValueError("the record is closed")
        self.size += len(data)
        self._kept += data
        return len(data)

    def flush(self) -> None:
        """Called by structlog after each line; see ``hand_over`` for the real one."""

    # Python's own buffered files would do, but for a line that is longer than their buffer: of such a one
    # nobody knows how much was written when the disk is full.
    def hand_over(self) -> None:
        """Hand all lines to the operating system. May be called again when OSError was raised."""
        while self._kept:
            del self._kept[: os.write(self._file, self._kept)]

    def sync(self) -> None:
        """Force what was handed over to the disk."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file, if it is open; what is kept is lost."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _render(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> bytes:
        self._sequence += 1
        line = orjson.dumps(
            {"v": SCHEMA, "seq": self._sequence, "prev": self._previous, "kind": event.pop("event"), **event}
        )
        self._previous = line_hash(line)
        return line


class Record:
    """The record of one writing process. Raises FileExistsError if the writer's name is taken.

    ``patience`` is asked when there is no room for a write. ``on_failure`` hears of every other write that
    the system refuses, and of those that are given up, before the error is raised: whoever owns the record
    should stop playing then, since what cannot be recorded must not be played.
    """

    def __init__(
        self,
        folder: Path,
        writer: str,
        segment_bytes: int = SEGMENT_BYTES,
        on_failure: Callable[[OSError], None] = lambda error: None,
        patience: Patience | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.writer = writer
        self._segment_bytes = segment_bytes
        self._closed_bytes = 0
        self._on_failure = on_failure
        self._patience = patience or NoPatience()
        self._under_way: dict[object, object] = {}  # attempt by game
        self._results_path = folder / f"results-{writer}.jsonl"
        self._results = _Sink(self._results_path)
        (folder / MANIFEST).unlink(missing_ok=True)
        self._full = deque[_Sink]()  # segments that are full, until the next sync
        self._not_synced: OSError | None = None
        self._new_names = True
        self._syncing = threading.Lock()
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
        self._tricks.log.line(kind, **fields)
        if self._tricks.kept >= _KEPT_BYTES:
            self._written(self._hand_over)

    def result_line(self, **fields: object) -> None:
        """Commit a game. Its tricks reach the operating system first."""
        self.flush()
        self._dirty = True
        self._results.log.line("game", **fields)
        self._under_way.pop(fields.get("game"), None)

    def flush(self) -> None:
        """Hand all lines so far to the operating system; start a new segment where one is full. During a sync
        results are kept, and segments go on: the next flush makes up for it."""
        if not self._dirty:
            return
        self._written(self._hand_over)
        # Not during a sync: it goes through the segments.
        if self._tricks.size >= self._segment_bytes and self._syncing.acquire(blocking=False):
            try:
                self._start_segment()
            finally:
                self._syncing.release()

    def _written(self, write: Callable[[], _T]) -> _T:
        """Write, again and again if there is no room for it, as long as there is patience. Raises OSError."""
        waited = False
        while True:
            try:
                done = write()
            except OSError as error:
                if error.errno in NO_ROOM and self._patience.wait(error):
                    waited = True
                    continue
                self._on_failure(error)
                raise
            if waited:
                self._patience.over()
            return done

    def _hand_over(self) -> None:
        """Hand over tricks and then results, but no result while others are synced: the tricks of those are
        on the disk by then, and the power might fail before its own are."""
        if self._syncing.acquire(blocking=False):
            try:
                self._hand_over_all()
            finally:
                self._syncing.release()
        else:
            self._tricks.hand_over()

    def _hand_over_all(self) -> None:
        self._tricks.hand_over()
        self._results.hand_over()
        self._dirty = False

    def _start_segment(self) -> None:
        full = self._tricks
        self._tricks = self._written(lambda: self._open_segment(self._segment + 1))
        self._full.append(full)
        if len(self._full) > _MOST_FULL:  # nobody syncs this record
            self._full.popleft().close()
        self._new_names = True
        self._segment += 1
        self._closed_bytes += full.size
        self.trick_line(SEGMENT, games=list(self._under_way.items()))

    def sync(self, before: Callable[[], None] = lambda: None) -> None:
        """Force what was handed over to the disk, results last: what is left after a power cut is a record
        whose results have their tricks. ``before`` forces to the disk whatever else results must not be there
        without. Raises OSError, and from then on always. Blocks; may run in another thread than the
        writing."""
        with self._syncing:
            self._sync(before)

    def _sync(self, before: Callable[[], None]) -> None:
        if self._not_synced is not None:
            # The system tells once what it could not write, and forgets it: the next fsync would succeed.
            raise self._not_synced
        try:
            before()
            self._tricks.sync()
            while self._full:
                full = self._full[0]
                full.sync()
                self._full.popleft().close()
            if self._new_names:
                self._new_names = False
                sync_folder(self.folder)
            self._results.sync()
        except OSError as error:
            self._not_synced = error
            raise

    def close(self, before: Callable[[], None] = lambda: None) -> None:
        """Flush, sync and close, once a sync under way has ended; the record cannot be written any more. Does
        not wait for room. ``before``: see ``sync``."""
        self._patience = NoPatience()
        with self._syncing:
            try:
                self._written(self._hand_over_all)
            finally:
                try:
                    self._sync(before)
                finally:
                    for sink in (*self._full, self._tricks, self._results):
                        sink.close()

    def abandon(self) -> None:
        """Close, and take the files away if nothing has been written. Raises OSError."""
        self.close()
        if not self.bytes_written:
            for path in (self._results_path, self._segment_path(1)):
                path.unlink(missing_ok=True)

    def _open_segment(self, number: int) -> _Sink:
        return _Sink(self._segment_path(number))

    def _segment_path(self, number: int) -> Path:
        return self.folder / f"tricks-{self.writer}-{number:04}.jsonl"


def free_writer(folder: Path) -> str:
    """The first writer name, from ``0001`` on, that has nothing in the folder yet: results; reveals, since a
    session that only reveals leaves no results; a file that ends in ``.0001``, such as a suspension, of a
    server that has abandoned its record."""
    number = 1
    while any(
        next(folder.glob(name), None)
        for name in (f"results-{number:04}.jsonl", f"reveals-{number:04}.jsonl", f"*.{number:04}")
    ):
        number += 1
    return f"{number:04}"
