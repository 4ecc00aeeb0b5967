"""The closing manifest confirms every file down to its last line, and stands only while it is true."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.recorded import random_record
from tressette.record.manifest import check_manifest, read_manifest, write_manifest
from tressette.record.reader import RecordError
from tressette.record.segments import Compressor
from tressette.record.writer import Record
from tressette.rules.presets import PRESETS

RESULTS = "results-0001.jsonl"
TRICKS = "tricks-0001-0001.jsonl"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three recorded games and their manifest."""
    random_record(tmp_path, {f"g{number}": PRESETS["traversone-003-21-duplicate"] for number in range(3)})
    write_manifest(tmp_path)
    return tmp_path


def differences(folder: Path) -> list[str]:
    manifest = read_manifest(folder)
    assert manifest is not None
    return list(check_manifest(folder, manifest))


def test_what_it_says(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["games"], manifest["deals"], manifest["forfeits"]) == (3, 3, 0)
    assert sorted(manifest["files"]) == [RESULTS, TRICKS]
    for name, said in manifest["files"].items():
        data = (folder / name).read_bytes()
        assert (said["lines"], said["bytes"]) == (data.count(b"\n"), len(data))
        assert len(said["head"]) == 32
    assert differences(folder) == []


def changed_end(folder: Path) -> None:
    """No line follows that would tell."""
    path = folder / RESULTS
    data = path.read_bytes()
    path.write_bytes(data[:-2] + b" }\n")


def no_last_line(folder: Path) -> None:
    path = folder / TRICKS
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def torn_last_line(folder: Path) -> None:
    path = folder / TRICKS
    path.write_bytes(path.read_bytes()[:-1])


def file_gone(folder: Path) -> None:
    (folder / TRICKS).unlink()


def file_added(folder: Path) -> None:
    (folder / "tricks-0002-0001.jsonl").write_bytes(b"{}\n")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (changed_end, RESULTS),
        (no_last_line, TRICKS),
        (torn_last_line, TRICKS),
        (file_gone, TRICKS),
        (file_added, "tricks-0002-0001.jsonl"),
    ],
)
def test_what_no_chain_tells_is_found_by_the_manifest(
    change: Callable[[Path], None], named: str, folder: Path
) -> None:
    change(folder)
    found = differences(folder)
    assert found
    assert all(text.startswith(f"{named}: ") for text in found)


def test_totals_that_are_not_those_of_the_results(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"games": 3', '"games": 4'))
    assert differences(folder) == ["manifest.json: games is 4, the results give 3"]


def test_compression_changes_nothing(folder: Path) -> None:
    assert Compressor(folder, (), pytest.fail).step() == 1
    assert differences(folder) == []
    before = read_manifest(folder)
    assert write_manifest(folder) == before


def test_a_torn_line_of_a_killed_writer_is_no_part_of_it(folder: Path) -> None:
    with (folder / TRICKS).open("ab") as file:
        file.write(b'{"v":1,"seq"')
    assert differences(folder) == []
    before = read_manifest(folder)
    assert write_manifest(folder) == before


def test_a_run_that_goes_on_takes_it_away(folder: Path) -> None:
    record = Record(folder, "0002")
    assert read_manifest(folder) is None
    record.close()
    assert set(write_manifest(folder)["files"]) == {
        *(RESULTS, TRICKS),
        *("results-0002.jsonl", "tricks-0002-0001.jsonl"),
    }


def test_a_writer_whose_name_is_taken_leaves_it(folder: Path) -> None:
    with pytest.raises(FileExistsError):
        Record(folder, "0001")
    assert read_manifest(folder) is not None


def test_results_can_be_looked_at_alone(folder: Path) -> None:
    no_last_line(folder)
    manifest = read_manifest(folder)
    assert manifest is not None
    assert list(check_manifest(folder, manifest, results_only=True)) == []
    (folder / RESULTS).unlink()
    found = list(check_manifest(folder, manifest, results_only=True))
    assert f"{RESULTS}: missing; the manifest names it" in found
    assert not any(TRICKS in one for one in found)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"v":9,"files":{}}', '{"v":1}', '{"v":1,"files":[]}', '{"v":1,"files":{"a":[]}}']
)
def test_one_that_cannot_be_read_is_refused(text: str, folder: Path) -> None:
    (folder / "manifest.json").write_text(text)
    with pytest.raises(RecordError, match=r"manifest\.json: "):
        read_manifest(folder)


def test_damaged_results_get_none(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    (folder / RESULTS).write_bytes(b"rubbish\n")
    with pytest.raises(RecordError):
        write_manifest(folder)
    assert not (folder / "manifest.json").exists()
