"""``tressette export`` writes the same tables as CSV and Parquet, and they say what the record says."""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.event_folders import event_folder
from tressette.cli import main
from tressette.record.replay import read_games, replay_game
from tressette.record.segments import Compressor, raw_lines
from tressette.rules.events import CardPlayed, DealScored, DealStarted, DealVoided, MatchEnded
from tressette_tournament.export import TABLES, Type, export

Row = dict[str, Any]
HAS_PYARROW = importlib.util.find_spec("pyarrow") is not None
FORMATS = [
    "csv",
    pytest.param(
        "parquet",
        marks=pytest.mark.skipif(not HAS_PYARROW, reason="pyarrow (the extra export) is not installed"),
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs, two with drawn cards, three with a discard, elimination, monte, signals, and forfeits."""
    presets = (
        *("tressette-21-duplicate", "tressette-due-duplicate", "ciapano-trio"),
        *("traversone-003-21", "tressette-004-duplicate", "traversone-pairs-duplicate"),
    )
    return event_folder(
        tmp_path_factory.mktemp("event"), dict.fromkeys(presets, 2), forfeit=lambda number: number % 4 == 1
    )


def run(folder: Path, kind: str, output: Path) -> Result:
    result = CliRunner().invoke(main, ["export", str(folder), "--format", kind, "--output", str(output)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def tables(folder: Path, kind: str, output: Path) -> dict[str, list[Row]]:
    """Export and read back, every value with its type."""
    result = run(folder, kind, output)
    assert result.exit_code == 0, result.output
    read = _read_csv if kind == "csv" else _read_parquet
    found = {name: list(read(output / f"{name}.{kind}", name)) for name in TABLES}
    assert {path.name for path in output.iterdir()} == {f"{name}.{kind}" for name in TABLES}
    for name, rows in found.items():
        assert f"{output / f'{name}.{kind}'}: {len(rows)} rows" in result.stdout
    return found


def _read_csv(path: Path, table: str) -> Iterator[Row]:
    types = {column.name: column.type for column in TABLES[table]}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, strict=True):
            assert list(row) == list(types)
            yield {name: _value(text, types[name]) for name, text in row.items()}


def _value(text: str, kind: Type) -> object:
    if text == "":
        return None
    if kind is Type.FLAG:
        return {"true": True, "false": False}[text]
    return int(text) if kind is Type.WHOLE else text


def _read_parquet(path: Path, table: str) -> Iterator[Row]:
    from pyarrow import parquet

    read = parquet.read_table(path)
    assert read.column_names == [column.name for column in TABLES[table]]
    for field, column in zip(read.schema, TABLES[table], strict=True):
        assert str(field.type) == {"whole": "int64", "text": "string", "flag": "bool"}[column.type.shown]
        assert field.metadata[b"description"].decode() == column.meaning
    rows: list[Row] = read.to_pylist()
    yield from rows


@pytest.mark.parametrize("kind", FORMATS)
def test_the_tables_say_what_happened(kind: str, folder: Path, tmp_path: Path) -> None:
    """Each game is played again by the rules: what the tables hold must be what its events say."""
    found = tables(folder, kind, tmp_path / "out")
    kinds: Counter[str] = Counter()
    for game in read_games(folder):
        name, result = game.opening["game"], game.result
        assert result is not None
        events = replay_game(game)
        ended = events[-1]
        assert isinstance(ended, MatchEnded)
        rows = [row for row in found["games"] if row["game"] == name]
        assert [row["points"] for row in rows] == list(ended.totals)
        assert [row["rank"] for row in rows] == list(ended.ranks)
        assert [row["bots"].split() for row in rows] == result["sides"]
        assert [row["forfeit"] for row in rows].count(True) == (ended.seat is not None)
        assert sum(row["faults"] for row in rows) == sum(count for _, _, count in result["faults"])
        plays = [row for row in found["tricks"] if row["game"] == name]
        # A signal with a card of a trick that was not finished is not in the record.
        assert [(row["seat"], row["card"]) for row in plays] == [
            (event.seat, str(event.card)) for event in events if isinstance(event, CardPlayed)
        ]
        assert all(row["bot"] == result["bots"][row["seat"]] for row in plays)
        deals = [row for row in found["deals"] if row["game"] == name]
        scores = [
            (score.points, score.thirds, score.tricks, score.declared)
            for event in events
            if isinstance(event, DealScored)
            for score in event.sides
            if score is not None
        ]
        names = ("points", "thirds", "tricks", "declared")
        scored = [row for row in deals if row["outcome"] not in ("monte", "cut")]
        assert [tuple(row[one] for one in names) for row in scored] == scores
        dealt = {(row["phase"], row["deal"], row["dealt"]) for row in deals}
        assert len(dealt) == sum(isinstance(event, DealStarted) for event in events)
        kinds.update(row["outcome"] for row in deals)
        kinds["voided"] += sum(isinstance(event, DealVoided) for event in events)
        kinds["signals"] += sum(row["signal"] is not None for row in plays)
        kinds["unfinished"] += sum(row["won"] is None for row in plays)
    assert {"played", "cut", "monte", "signals", "unfinished"} <= set(kinds)
    assert len(found["games"]) == len({(row["game"], row["side"]) for row in found["games"]})


def test_both_formats_hold_the_same(folder: Path, tmp_path: Path) -> None:
    if not HAS_PYARROW:
        pytest.skip("pyarrow (the extra export) is not installed")
    assert tables(folder, "csv", tmp_path / "1") == tables(folder, "parquet", tmp_path / "2")


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_are_written_in_batches(
    kind: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tables(folder, kind, tmp_path / "1")
    monkeypatch.setattr("tressette_tournament.export.BATCH_ROWS", 7)
    assert tables(folder, kind, tmp_path / "2") == whole


def test_a_compressed_record_is_exported(tmp_path: Path) -> None:
    run_folder = event_folder(tmp_path / "run", {"tressette-21-duplicate": 2})
    before = tables(run_folder, "csv", tmp_path / "1")
    assert Compressor(run_folder, (), pytest.fail).step() == 1
    assert tables(run_folder, "csv", tmp_path / "2") == before


def test_games_without_a_result_are_left_out(tmp_path: Path) -> None:
    run_folder = event_folder(tmp_path / "run", {"tressette-21-duplicate": 2})
    results = run_folder / "results-0001.jsonl"
    *lines, _ = raw_lines(results)
    results.write_bytes(b"".join(lines) + b'{"v":1')
    result = run(run_folder, "csv", tmp_path / "out")
    assert result.exit_code == 0
    assert f"warning: {results}, line 4" in result.stderr
    names = {row["game"] for row in _read_csv(tmp_path / "out" / "games.csv", "games")}
    assert names == {json.loads(line)["game"] for line in lines}


def test_a_folder_without_results_makes_no_tables(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results-0001.jsonl").touch()
    result = run(tmp_path / "run", "csv", tmp_path / "tables")
    assert result.exit_code == 1
    assert result.stderr == f"Error: {tmp_path / 'run'} holds no results (in results-*.jsonl)\n"
    assert not (tmp_path / "tables").exists()


def test_nothing_is_overwritten(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "tricks.csv").write_text("mine")
    result = run(folder, "csv", tmp_path)
    assert (result.exit_code, f"{tmp_path / 'tricks.csv'} exists" in result.stderr) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["tricks.csv"]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_damaged_record_leaves_no_tables(kind: str, tmp_path: Path) -> None:
    run_folder = event_folder(tmp_path / "run", {"tressette-21-duplicate": 2})
    tricks = run_folder / "tricks-0001-0001.jsonl"
    tricks.write_bytes(tricks.read_bytes() + b"rubbish\n")
    result = run(run_folder, kind, tmp_path / "out")
    assert result.exit_code == 1
    assert f"{tricks}, line " in result.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_parquet_without_pyarrow_names_the_extra(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run(folder, "parquet", tmp_path / "out")
    assert result.exit_code == 1
    assert "'.[export]'" in result.stderr
    assert list((tmp_path / "out").iterdir()) == []
    assert sum(export(folder, "csv", tmp_path / "csv").values()) > 100


def test_the_help_says_what_every_column_is() -> None:
    result = CliRunner().invoke(main, ["export", "--help"])
    lines = [line.split(maxsplit=2) for line in result.output.splitlines()]
    for columns in TABLES.values():
        for column in columns:
            assert [column.name, column.type.shown, column.meaning] in lines
