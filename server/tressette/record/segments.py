"""Segments of a record on the disk: their names, and the compression of those that are full.

A **segment** is one ``tricks-<writer>-<n>.jsonl``. It is **closed** once its writer has gone on to the next
one, or is gone; a closed segment never changes, and is compressed to ``tricks-<writer>-<n>.jsonl.zst`` (one
zstd frame with a checksum). Everybody names a segment by its plain path, whichever of the two is there.

The compressed file is made under a draft name, synced and renamed before the plain one is deleted. So a
crash at any point leaves the plain file, or both, or the compressed one, each of them whole: while the plain
file is there it counts, and the next compressor does the step that is missing. A draft left behind is
removed by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final

from tressette.record.whole import DRAFT, replace_file

COMPRESSED: Final = ".zst"
"""Added to the name of a segment that is compressed."""
LEVEL: Final = 1
"""The zstd level. Measured on games of the reference bots: level 9 takes nine times as long and leaves 3 %
less, since the hashes of the chain, two fifths of what is left, cannot be made smaller."""
_CHUNK: Final = 1 << 16


class UnreadableSegment(Exception):
    """A compressed segment that cannot be unpacked; the text says why."""


class NeedsZstandard(Exception):
    """A compressed segment was met where the package for it is not installed."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is compressed; reading it needs the package zstandard: install this distribution with "
            "its extra, pip install '.[tournament]' in the project's folder"
        )


def segments(folder: Path) -> dict[str, list[Path]]:
    """The plain paths of the segments of each writer in the folder, plain or compressed, in the order in
    which they were written; writers by name."""
    found: dict[str, dict[int, Path]] = {}
    for path in folder.glob("tricks-*.jsonl*"):
        plain = path.with_suffix("") if path.suffix == COMPRESSED else path
        writer, _, number = plain.stem.removeprefix("tricks-").rpartition("-")
        if plain.suffix == ".jsonl" and writer and number.isascii() and number.isdigit() and path.is_file():
            found.setdefault(writer, {})[int(number)] = plain
    return {writer: [found[writer][number] for number in sorted(found[writer])] for writer in sorted(found)}


def raw_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file with their line ends, from its compressed form where the plain one is gone; the
    last may lack its end. Raises OSError, UnreadableSegment and NeedsZstandard."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        packed = compressed(path)
        if not packed.is_file():
            raise
        yield from _unpacked_lines(packed)
        return
    with file:
        yield from file


def compressed(path: Path) -> Path:
    """Where the compressed form of a segment is."""
    return path.with_name(path.name + COMPRESSED)


def _unpacked_lines(path: Path) -> Iterator[bytes]:
    rest = b""
    for chunk in _unpacked(path):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest


def _unpacked(path: Path) -> Iterator[bytes]:
    try:
        import zstandard
    except ModuleNotFoundError as error:
        raise NeedsZstandard(path) from error
    unpacking = zstandard.ZstdDecompressor().decompressobj()
    try:
        with path.open("rb") as file:
            while (chunk := file.read(_CHUNK)) and not unpacking.eof:
                yield unpacking.decompress(chunk)
    except zstandard.ZstdError as error:
        raise UnreadableSegment(f"{path.name} cannot be unpacked: {error}") from error
    if not unpacking.eof:
        raise UnreadableSegment(f"{path.name} ends too early")
    if chunk or unpacking.unused_data:
        raise UnreadableSegment(f"{path.name} goes on after its end")


def can_compress() -> bool:
    """Whether the package that compresses is installed."""
    try:
        import zstandard  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


def compress_segment(path: Path) -> Path:
    """Put the compressed form of a closed segment in place of the plain one; returns its path.

    Needs the size of the segment in memory. Raises OSError, and then the plain file is still there; raises
    ModuleNotFoundError without zstandard.
    """
    import zstandard

    target = compressed(path)
    replace_file(target, zstandard.ZstdCompressor(LEVEL, write_checksum=True).compress(path.read_bytes()))
    path.unlink()
    return target


class Compressor:
    """Compresses what is closed in a folder. ``writing``: the writers that are at work, whose last segments
    are left alone. ``warn`` hears, once for each segment, why it stays as it is: a run goes on without
    compression. ``only``: the one writer whose segments it may touch, for a folder that several servers
    share; None: all. Only one compressor may work on the segments of a writer at a time; it may do so in any
    thread. Raises OSError if a draft that was left behind cannot be removed."""

    def __init__(
        self,
        folder: Path,
        writing: Collection[str],
        warn: Callable[[str], None],
        only: str | None = None,
    ) -> None:
        self._folder = folder
        self._writing = frozenset(writing)
        self._warn = warn
        self._only = only
        self._warned: set[Path] = set()
        for draft in folder.glob(f"tricks-{only or '*'}-*{COMPRESSED}{DRAFT}"):
            draft.unlink(missing_ok=True)

    def step(self) -> int:
        """Compress all that is closed and not empty, those that failed before included; returns how many
        segments that were. Raises nothing that a disk can be the reason of."""
        try:
            closed = list(self._closed())
        except OSError as error:
            self._refused(self._folder, error)
            return 0
        return sum(self._compress(path) for path in closed)

    def _closed(self) -> Iterator[Path]:
        for writer, paths in segments(self._folder).items():
            if self._only not in (None, writer):
                continue
            for path in paths[:-1] if writer in self._writing else paths:
                if path.is_file() and path.stat().st_size:
                    yield path

    def _compress(self, path: Path) -> bool:
        try:
            compress_segment(path)
        except (OSError, ModuleNotFoundError) as error:
            self._refused(path, error)
            return False
        return True

    def _refused(self, path: Path, error: Exception) -> None:
        if path not in self._warned:
            self._warned.add(path)
            self._warn(f"{path}: {error}")
