"""The closing manifest of a run: what its record holds, so that the last line of each file is confirmed too.

``manifest.json`` in the folder of a run whose games are all done::

    {"v": 1,
     "games": 120, "deals": 120, "forfeits": 0,               totals of the result lines
     "files": {"results-0001.jsonl": {"lines": 120,           whole lines
                                      "bytes": 90210,         of these lines, uncompressed
                                      "head": "1f0c..."}}}    hash of the last, as the next would hold it

Every ``*.jsonl`` of the folder is in it, compressed segments under their plain names. A writer that begins to
write in the folder takes the manifest away (``record.writer``), since it is true no more; at the end of that
session a new one is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from tressette.record.reader import RecordError, numbered_lines, read_results
from tressette.record.segments import COMPRESSED
from tressette.record.whole import replace_file
from tressette.record.writer import FIRST_PREV, MANIFEST, line_hash

_SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class FileSummary:
    """Whole lines, their bytes (uncompressed), and the hash of the last of them."""

    lines: int
    bytes: int
    head: str


def write_manifest(folder: Path) -> dict[str, Any]:
    """Write the manifest of a folder that nobody writes in, in place of an earlier one; returns it.

    Afterwards it is there as a whole or not at all. Raises RecordError for damaged results, and OSError.
    """
    manifest = {
        "v": _SCHEMA,
        **_totals(folder),
        "files": {path.name: asdict(summary_of(path)) for path in _files(folder)},
    }
    replace_file(folder / MANIFEST, orjson.dumps(manifest, option=orjson.OPT_INDENT_2) + b"\n")
    return manifest


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a folder, None where there is none. Raises RecordError for one that cannot be read."""
    path = folder / MANIFEST
    try:
        manifest = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except orjson.JSONDecodeError as error:
        raise RecordError(f"{path}: not JSON: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("v") != _SCHEMA:
        raise RecordError(f"{path}: not a manifest of schema {_SCHEMA}")
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(isinstance(one, dict) for one in files.values()):
        raise RecordError(f"{path}: names no files")
    return manifest


def check_manifest(folder: Path, manifest: Mapping[str, Any], *, results_only: bool = False) -> Iterator[str]:
    """Every difference between a manifest and its folder, in words that name the file. results_only: look at
    the files of results alone, which is enough to know that no result is lost and costs little.

    Raises RecordError for a file that cannot be read. The chain within the files is not its business."""
    files = {path.name: path for path in _files(folder)}
    names = {*files, *manifest["files"]}
    for name in sorted(name for name in names if name.startswith("results-") or not results_only):
        if name not in files:
            yield f"{name}: missing; the manifest names it"
        elif name not in manifest["files"]:
            yield f"{name}: the manifest does not name it"
        else:
            for what, found in asdict(summary_of(files[name])).items():
                wanted = manifest["files"][name].get(what)
                if found != wanted:
                    yield f"{name}: {what} is {found!r}, {wanted!r} in the manifest"
    for what, found in _totals(folder).items():
        if found != manifest.get(what):
            yield f"{MANIFEST}: {what} is {manifest.get(what)!r}, the results give {found!r}"


def summary_of(path: Path) -> FileSummary:
    """Count a file of lines, plain or compressed; an incomplete last line is left out. Raises RecordError."""
    lines = size = 0
    last = b""
    for number, raw in numbered_lines(path):
        if raw.endswith(b"\n"):
            lines, size, last = number, size + len(raw), raw
    return FileSummary(lines, size, line_hash(last[:-1]) if lines else FIRST_PREV)


def _totals(folder: Path) -> dict[str, int]:
    games = deals = forfeits = 0
    for line in read_results(folder):
        games += 1
        deals += _count(line.get("deals"))
        forfeits += line.get("forfeit") is not None
    return {"games": games, "deals": deals, "forfeits": forfeits}


def _count(value: object) -> int:
    """Zero for what is no number: what the results say is not the manifest's business."""
    return value if isinstance(value, int) else 0


def _files(folder: Path) -> list[Path]:
    """The plain paths of all files of lines, by name."""
    found = {path for path in folder.glob("*.jsonl") if path.is_file()}
    found |= {path.with_suffix("") for path in folder.glob(f"*.jsonl{COMPRESSED}") if path.is_file()}
    return sorted(found)
