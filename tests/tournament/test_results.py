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

UNUSED = {"attempt", "bots", "termination"}
"""Fields of a line that no rating needs."""


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


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"points": None}, "points", "null is not 2 whole numbers"),
        ({"points": ["a", "b"]}, "points", '["a", "b"] is not 2 whole numbers'),
        ({"points": [6]}, "points", "[6] is not 2 whole numbers"),
        ({"points": [6, 60, 6]}, "points", "[6, 60, 6] is not 2 whole numbers"),
        ({"points": [10**18, 6]}, "points", "is not 2 whole numbers, 1000000000 at most"),
        ({"points": [6.0, 60]}, "points", "[6.0, 60] is not 2 whole numbers"),
        ({"points": [True, 60]}, "points", "[true, 60] is not 2 whole numbers"),
        ({"ranks": []}, "ranks", "[] is not a ranking of 2 sides"),
        ({"ranks": [1]}, "ranks", "[1] is not a ranking of 2 sides"),
        ({"ranks": [1, 9]}, "ranks", "[1, 9] is not a ranking"),
        ({"ranks": [2, 2]}, "ranks", "[2, 2] is not a ranking"),
        ({"ranks": [0, 1]}, "ranks", "[0, 1] is not a ranking"),
        ({"ranks": [1, True]}, "ranks", "[1, true] is not a ranking"),
        ({"ranks": {"a": 1}}, "ranks", "is not a ranking"),
        ({"sides": 5}, "sides", "5 is not two or more lists of bots"),
        ({"sides": [["a"]]}, "sides", "is not two or more lists"),
        ({"sides": [["a"], []]}, "sides", "is not two or more lists"),
        ({"sides": ["a", "b"]}, "sides", "is not two or more lists"),
        ({"sides": [["a"], [3]]}, "sides", "is not two or more lists"),
        ({"preset": 5}, "preset", "5 is not a text"),
        ({"deck": ["d"]}, "deck", '["d"] is not a text'),
        ({"game": ""}, "game", '"" is not a text'),
        ({"tournament": None}, "tournament", "null is not a text"),
        ({"deals": 0}, "deals", "0 is not a whole number from 1"),
        ({"deals": "1"}, "deals", '"1" is not a whole number'),
        ({"deals": -1, "forfeit": 0, "offender": "a"}, "deals", "-1 is not a whole number from 0"),
        ({"set_size": 0}, "set_size", "0 is not a whole number from 1"),
        ({"objective": "x"}, "objective", '"x" is not one of most, least'),
        ({"forfeit": 3, "offender": "a"}, "forfeit", "3 is not null or a side from 0 to 1"),
        ({"forfeit": -1, "offender": "b"}, "forfeit", "-1 is not null or a side"),
        ({"forfeit": True, "offender": "b"}, "forfeit", "true is not null or a side"),
        ({"forfeit": 0, "offender": "b"}, "offender", '"b" is not a bot of side 0'),
        ({"forfeit": 0}, "offender", "null is not a bot of side 0"),
        ({"offender": "a"}, "offender", '"a" is not null without a forfeit'),
        ({"faults": [["a", "timeout"]]}, "faults", "is not a list of [bot of the game, kind, count]"),
        ({"faults": [["c", "timeout", 1]]}, "faults", "is not a list of"),
        ({"faults": [["a", "timeout", 0]]}, "faults", "is not a list of"),
        ({"faults": 3}, "faults", "3 is not a list of"),
    ],
)
def test_a_line_that_is_no_result_is_damage(
    tmp_path: Path, change: dict[str, Any], field: str, reason: str
) -> None:
    good = game_line(0, 0, ("a", "b"), (6, 60))
    file = write_results(tmp_path, [good, {**good, **change}])
    for reading in (read, read_games):
        with pytest.raises(DamagedRecord) as caught:
            list(reading(tmp_path))
        assert (caught.value.path, caught.value.line) == (file, 2)
        assert f"{file}, line 2: not the result of a game: {field}: " in str(caught.value)
        assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("ranks", "valid"),
    [
        ([1, 1, 1, 9], False),
        ([1, 1, 2, 4], False),
        ([1, 2, 3, 3], True),
        ([1, 2, 2, 2], True),
        ([1, 1, 1, 1], True),
        ([3, 1, 3, 1], True),
    ],
)
def test_shared_ranks(tmp_path: Path, ranks: list[int], valid: bool) -> None:
    four = {"sides": [["a"], ["b"], ["c"], ["d"]], "points": [0, 0, 0, 0], "ranks": ranks}
    write_results(tmp_path, [{**game_line(0, 0, ("a", "b"), (6, 60)), **four}])
    if valid:
        assert [list(result.ranks) for result in read(tmp_path)] == [ranks]
    else:
        with pytest.raises(DamagedRecord, match=r"ranks: .* is not a ranking of 4 sides"):
            list(read(tmp_path))


def test_games_of_an_open_server_have_no_tournament(tmp_path: Path) -> None:
    write_results(tmp_path, [game_line(0, 0, ("a", "b"), (6, 60), tournament="", set_size=1)])
    assert len(list(read(tmp_path))) == 1


def test_a_forfeit_in_the_first_deal(tmp_path: Path) -> None:
    write_results(tmp_path, [game_line(0, 0, ("a", "b"), (0, 0), deals=0, forfeit=1, offender="b")])
    assert [result.deals for result in read(tmp_path)] == [0]


@pytest.mark.parametrize("field", sorted(game_line(0, 0, ("a", "b"), (6, 60)).keys() - UNUSED))
def test_a_line_that_lacks_a_field_is_damage(tmp_path: Path, field: str) -> None:
    line = game_line(0, 0, ("a", "b"), (6, 60))
    del line[field]
    write_results(tmp_path, [line])
    with pytest.raises(DamagedRecord, match=f"line 1: not the result of a game: {field} is missing"):
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
