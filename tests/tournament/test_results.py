"""Reading results: every field, damage named by file and line, and ids when folders are read together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.records import game_line, write_results
from tressette.record.reader import DamagedRecord
from tressette_tournament.ratings import ConflictingResultsError, rate
from tressette_tournament.results import GameResult, read, read_games


def test_a_line_becomes_a_result() -> None:
    line = game_line(0, 1, ("b", "a"), (12, 54), faults=[["a", "timeout", 2]], forfeit=0, offender="a")
    assert GameResult.from_line(line) == GameResult(
        game="p0-l0-s0-g1",
        deal_set="p0-l0-s0",
        set_size=2,
        deck="deck0",
        pool="rules",
        preset="tressette-due-duplicate",
        objective="most",
        sides=(("a",), ("b",)),
        ranks=(2, 1),
        points=(12, 54),
        deals=1,
        forfeit=0,
        offender="a",
        faults=(("a", "timeout", 2),),
    )


def test_results_of_all_writers(tmp_path: Path) -> None:
    lines = [game_line(number, game, ("a", "b"), (6, 60)) for number in range(3) for game in range(2)]
    write_results(tmp_path, lines[:1], "0001")
    write_results(tmp_path, [], "0002")
    write_results(tmp_path, lines[1:], "0010")
    assert [result.game for result in read_games(tmp_path)] == [line["game"] for line in lines]


def test_an_empty_folder_has_no_results(tmp_path: Path) -> None:
    assert list(read_games(tmp_path)) == list(read(tmp_path)) == []


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    file = write_results(tmp_path, [game_line(0, game, ("a", "b"), (6, 60)) for game in range(2)])
    file.write_bytes(file.read_bytes()[:-10])
    torn: list[str] = []
    assert [result.game for result in read_games(tmp_path, torn)] == ["p0-l0-s0-g0"]
    assert torn == [f"{file}, line 2: dropped an incomplete last line"]
    assert len(list(read(tmp_path))) == 1


@pytest.mark.parametrize("change", [{"points": None}, {"sides": 5}, {"faults": [["a", "timeout"]]}])
def test_a_line_that_is_no_result_is_damage(tmp_path: Path, change: dict[str, Any]) -> None:
    good = game_line(0, 0, ("a", "b"), (6, 60))
    file = write_results(tmp_path, [good, {**good, **change}])
    for reading in (read, read_games):
        with pytest.raises(DamagedRecord, match="not the result of a game") as caught:
            list(reading(tmp_path))
        assert (caught.value.path, caught.value.line) == (file, 2)


@pytest.mark.parametrize("field", ["game", "deck", "ranks", "tournament"])
def test_a_line_that_lacks_a_field_is_damage(tmp_path: Path, field: str) -> None:
    line = game_line(0, 0, ("a", "b"), (6, 60))
    del line[field]
    write_results(tmp_path, [line])
    with pytest.raises(DamagedRecord, match=f"line 1: not the result of a game: KeyError.*{field}"):
        list(read(tmp_path))


def test_a_changed_line_is_damage(tmp_path: Path) -> None:
    lines = [game_line(0, game, ("a", "b"), (6, 60)) for game in range(2)]
    file = write_results(tmp_path, lines)
    file.write_text(file.read_text().replace('"points":[6,60]', '"points":[60,6]', 1))
    with pytest.raises(DamagedRecord) as caught:
        list(read(tmp_path))
    assert caught.value.line == 2


# --- folders rated together ------------------------------------------------------------------------


def folder_of(path: Path, lines: list[dict[str, Any]]) -> Path:
    write_results(path, lines)
    return path


def test_one_run_in_two_folders_is_one_run(tmp_path: Path) -> None:
    lines = [game_line(number, game, ("a", "b"), (6, 60)) for number in range(2) for game in range(2)]
    whole = folder_of(tmp_path / "whole", lines)
    odd, even = folder_of(tmp_path / "odd", lines[1::2]), folder_of(tmp_path / "even", lines[::2])
    parts = [*read(odd), *read(even)]
    assert rate(parts) == rate(read(whole))
    # ... and a copy of a folder adds nothing.
    assert rate([*parts, *read(whole)]) == rate(read(whole))


@pytest.mark.parametrize(
    "other", [{"tournament": "second"}, {"deck": "another"}, {"rules_hash": "others"}, {"bots": ("a", "c")}]
)
def test_two_events_are_not_mixed_up(tmp_path: Path, other: dict[str, Any]) -> None:
    bots = other.pop("bots", ("a", "b"))
    first = folder_of(tmp_path / "1", [game_line(0, game, ("a", "b"), (6, 60)) for game in range(2)])
    second = folder_of(tmp_path / "2", [game_line(0, game, bots, (60, 6), **other) for game in range(2)])
    pools = rate([*read(first), *read(second)])
    assert sum(pool.games for pool in pools) == 4
    assert sum(pool.deal_sets for pool in pools) == 2


def test_two_different_results_of_one_game_are_refused(tmp_path: Path) -> None:
    first = folder_of(tmp_path / "1", [game_line(0, 0, ("a", "b"), (6, 60))])
    second = folder_of(tmp_path / "2", [game_line(0, 0, ("a", "b"), (60, 6))])
    with pytest.raises(ConflictingResultsError, match="p0-l0-s0-g0@"):
        rate([*read(first), *read(second)])


def test_the_ids_of_the_schedule_stay_when_one_folder_is_resumed(tmp_path: Path) -> None:
    write_results(tmp_path, [game_line(7, 1, ("a", "b"), (6, 60))])
    (plain,), (marked,) = read_games(tmp_path), read(tmp_path)
    assert (plain.game, plain.deal_set) == ("p0-l0-s7-g1", "p0-l0-s7")
    assert marked.game.startswith("p0-l0-s7-g1@")
    assert replace(marked, game=plain.game, deal_set=plain.deal_set) == plain
