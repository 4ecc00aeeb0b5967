"""A recorded game can be played again from its lines, and only as it was."""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from support.recorded import random_answer, random_record, spec_of
from tressette.cli import main
from tressette.record.reader import DamagedRecord, read_lines
from tressette.record.replay import ReplayDiffers, read_games, replay_game
from tressette.record.scribe import Scribe
from tressette.record.segments import compress_segment
from tressette.record.writer import FIRST_PREV, Record
from tressette.rules.events import FaultCommitted, FaultEffect, FaultKind, MatchEnded
from tressette.rules.match import Match
from tressette.rules.presets import PRESETS, resolve
from tressette.rules.ruleset import RuleSet

Line = dict[str, Any]


def rewrite(path: Path, change: Callable[[Line], None]) -> None:
    """Change the lines of a file and chain them anew, as a forger would."""
    previous, out = FIRST_PREV, []
    for text in path.read_text().splitlines():
        line = json.loads(text)
        change(line)
        line["prev"] = previous
        encoded = json.dumps(line, separators=(",", ":"))
        previous = hashlib.sha256(encoded.encode()).hexdigest()[:32]
        out.append(encoded + "\n")
    path.write_text("".join(out))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_replays_to_the_same_events(preset: str, tmp_path: Path) -> None:
    events = random_record(tmp_path, {f"{preset}-{number}": PRESETS[preset] for number in range(3)})
    games = list(read_games(tmp_path))
    assert [game.opening["game"] for game in games] == list(events)
    for game in games:
        assert replay_game(game) == events[game.opening["game"]]


def other_card(line: Line) -> None:
    if line["kind"] == "trick" and line["trick"] == 2:
        first, *rest = line["cards"].split()
        line["cards"] = " ".join([rest[0], first, *rest[1:]])


def other_winner(line: Line) -> None:
    if line["kind"] == "trick" and line["trick"] == 3:
        line["winner"] = (line["winner"] + 1) % 4


def one_point_more(line: Line) -> None:
    if line["kind"] == "deal":
        line["sides"][0]["points"] += 6


def other_totals(line: Line) -> None:
    if line["kind"] == "deal":
        line["totals"][1] += 6


def swapped_hands(line: Line) -> None:
    if line["kind"] == "deal":
        line["hands"][0], line["hands"][1] = line["hands"][1], line["hands"][0]


def stolen_card(line: Line) -> None:
    if line["kind"] == "deal":
        line["hands"][0] = line["hands"][1]


def other_rules(line: Line) -> None:
    if line["kind"] == "match":
        line["rules"]["last_trick_bonus"] = "0"


@pytest.mark.parametrize(
    "change",
    [other_card, other_winner, one_point_more, other_totals, swapped_hands, stolen_card, other_rules],
)
def test_a_forged_game_differs(change: Callable[[Line], None], tmp_path: Path) -> None:
    random_record(tmp_path, {"g": PRESETS["tressette-21-duplicate"]})
    rewrite(tmp_path / "tricks-0001-0001.jsonl", change)
    (game,) = read_games(tmp_path)
    with pytest.raises(ReplayDiffers, match="game g: "):
        replay_game(game)


def test_a_forged_result_differs(tmp_path: Path) -> None:
    random_record(tmp_path, {"g": PRESETS["traversone-003-21-duplicate"]})

    def first_place(line: Line) -> None:
        line["ranks"] = [1, 2, 3, 4]
        line["points"] = [0, 6, 12, 18]

    rewrite(tmp_path / "results-0001.jsonl", first_place)
    (game,) = read_games(tmp_path)
    with pytest.raises(ReplayDiffers, match=r"ranks|points"):
        replay_game(game)


def test_a_result_without_tricks_is_refused(tmp_path: Path) -> None:
    random_record(tmp_path, {"g": PRESETS["traversone-003-21-duplicate"]})
    (tmp_path / "tricks-0001-0001.jsonl").write_bytes(b"")
    with pytest.raises(ReplayDiffers, match="no tricks"):
        list(read_games(tmp_path))


def test_a_result_belongs_to_the_lines_of_its_own_writer(tmp_path: Path) -> None:
    """A server takes games up, cannot listen and puts them back: the next begins the same attempt."""
    rules = PRESETS["tressette-due-duplicate"]
    events = random_record(tmp_path, {"g": rules})["g"]
    whole = tmp_path / "tricks-0001-0001.jsonl"
    begun = b"".join(whole.read_bytes().splitlines(keepends=True)[:3])
    for kind in ("results", "tricks"):
        for path in list(tmp_path.glob(f"{kind}-0001*")):
            path.rename(path.with_name(path.name.replace("0001", "0002", 1)))
    whole.write_bytes(begun)
    (tmp_path / "results-0001.jsonl").touch()
    (game,) = read_games(tmp_path)
    assert replay_game(game) == events
    assert {path.name for path in game.files} == {"tricks-0002-0001.jsonl", "results-0002.jsonl"}


def test_the_command_lists_shows_and_explains(tmp_path: Path) -> None:
    random_record(tmp_path, {"one": PRESETS["tressette-21-duplicate"], "two": resolve("ciapano-trio")})
    run = CliRunner().invoke
    listed = run(main, ["replay", str(tmp_path)])
    assert [line.split()[0] for line in listed.output.splitlines()] == ["one", "two"]
    shown = run(main, ["replay", str(tmp_path), "two"])
    assert shown.exit_code == 0
    assert "sets" in shown.output
    assert "Match over" in shown.output
    assert "dropped" not in shown.output
    explained = run(main, ["replay", str(tmp_path), "two", "--explain"])
    assert "so it records the rest of 11" in explained.output
    assert "thirds)" in explained.output


def test_the_command_refuses_an_unknown_game_and_a_forged_one(tmp_path: Path) -> None:
    random_record(tmp_path, {"g": PRESETS["tressette-21-duplicate"]})
    run = CliRunner().invoke
    unknown = run(main, ["replay", str(tmp_path), "h"])
    assert unknown.exit_code == 1
    assert "no game 'h'" in unknown.output
    rewrite(tmp_path / "tricks-0001-0001.jsonl", other_winner)
    forged = run(main, ["replay", str(tmp_path), "g"])
    assert forged.exit_code == 1
    assert "winner" in forged.output


def no_game(line: Line) -> None:
    line.pop("game")


def strange_kind(line: Line) -> None:
    if line["kind"] == "trick":
        line["kind"] = "riddle"


def no_match_line(line: Line) -> None:
    if line["kind"] == "match":
        line["kind"] = "trick"


@pytest.mark.parametrize("change", [no_game, strange_kind, no_match_line])
def test_lines_outside_any_game_are_damage(change: Callable[[Line], None], tmp_path: Path) -> None:
    random_record(tmp_path, {"g": PRESETS["tressette-21-duplicate"]})
    rewrite(tmp_path / "tricks-0001-0001.jsonl", change)
    with pytest.raises(DamagedRecord, match=r"line \d+"):
        list(read_games(tmp_path))


def no_rules(line: Line) -> None:
    line.pop("rules", None)


def empty_rules(line: Line) -> None:
    if line["kind"] == "match":
        line["rules"] = {}


def no_bots(line: Line) -> None:
    if line["kind"] == "match":
        line["bots"] = []


def no_cards(line: Line) -> None:
    line.pop("cards", None)


def no_deal(line: Line) -> None:
    if line["kind"] == "trick":
        line.pop("deal")


@pytest.mark.parametrize("change", [no_rules, empty_rules, no_bots, no_cards, no_deal])
def test_lines_that_lack_something_are_refused_by_name(
    change: Callable[[Line], None], tmp_path: Path
) -> None:
    random_record(tmp_path, {"g": PRESETS["tressette-21-duplicate"]})
    rewrite(tmp_path / "tricks-0001-0001.jsonl", change)
    (game,) = read_games(tmp_path)
    with pytest.raises(ReplayDiffers, match="game g: "):
        replay_game(game)


def test_games_are_given_out_as_they_become_complete(tmp_path: Path) -> None:
    names = {f"g{number}": PRESETS["traversone-003-21-duplicate"] for number in range(50)}
    random_record(tmp_path, names)
    games = read_games(tmp_path)
    assert next(games).opening["game"] == "g0"
    with (tmp_path / "tricks-0001-0001.jsonl").open("ab") as file:
        file.write(b"rubbish that is read only later\n")
    with pytest.raises(DamagedRecord):
        list(games)


def test_a_folder_with_the_name_of_a_file_is_passed_over(tmp_path: Path) -> None:
    random_record(tmp_path, {"g": PRESETS["tressette-21-duplicate"]})
    (tmp_path / "results-0009.jsonl").mkdir()
    (tmp_path / "tricks-0009-0001.jsonl").mkdir()
    assert len(list(read_games(tmp_path))) == 1


def test_a_folder_without_games_is_an_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["replay", str(tmp_path)])
    assert result.exit_code == 1
    assert "holds no finished game" in result.output


# -- forfeits -----------------------------------------------------------------------------------------


def forfeited(folder: Path, rules: RuleSet, answers: int, seed: int, games: int = 1) -> None:
    """Record games in which a seat forfeits after so many answers."""
    rng = random.Random(seed)
    record = Record(folder, "0001")
    for number in range(games):
        spec = spec_of(rules, f"g{number}", rng.randbytes(32))
        scribe = Scribe(record, spec, ["1.0"] * rules.players)
        match = Match(rules, spec.decks)
        scribe.write(match.start())
        for _ in range(answers):
            seat = rng.choice(match.pending)
            scribe.write(match.act(seat, random_answer(match.legal(seat), rng)))
            if match.over:
                break
        else:
            seat = rng.randrange(rules.players)
            scribe.write([FaultCommitted(seat, FaultKind.TIMEOUT, FaultEffect.FORFEIT, "LATE")])
            scribe.write(match.forfeit(seat))
        scribe.committed(1, 2)
    record.close()


@settings(deadline=None)
@given(st.sampled_from(sorted(PRESETS)), st.integers(0, 60), st.integers(0, 1 << 16))
def test_a_game_that_was_forfeited_anywhere_replays(preset: str, answers: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        forfeited(Path(folder), PRESETS[preset], answers, seed)
        (game,) = read_games(Path(folder))
        events = replay_game(game)
        assert isinstance(events[-1], MatchEnded)
        assert game.result is not None
        assert (events[-1].seat is None) == (game.result["forfeit"] is None)


def test_forfeited_games_are_given_out_as_they_become_complete(tmp_path: Path) -> None:
    forfeited(tmp_path, PRESETS["tressette-21-duplicate"], 7, 1, games=2)
    with (tmp_path / "tricks-0001-0001.jsonl").open("ab") as file:
        file.write(b"rubbish that is read only later\n")
    games = read_games(tmp_path)
    assert [line["kind"] for line in next(games).lines] == ["trick", "cut"]


def test_the_hands_of_a_forfeited_deal_are_checked(tmp_path: Path) -> None:
    forfeited(tmp_path, PRESETS["tressette-21-duplicate"], 7, 1)

    def swap(line: Line) -> None:
        if line["kind"] == "cut":
            line["hands"] = line["hands"][::-1]

    rewrite(tmp_path / "tricks-0001-0001.jsonl", swap)
    (game,) = read_games(tmp_path)
    with pytest.raises(ReplayDiffers):
        replay_game(game)


# -- from a bad game to its log -------------------------------------------------------------------------


def test_no_way_from_a_bad_game_to_its_log(tmp_path: Path) -> None:
    """A complaint about other runners: here the id of a game is all that is needed."""
    names = {f"g{number}": PRESETS["tressette-21-duplicate"] for number in range(3)}
    random_record(tmp_path, names)

    def launched(line: Line) -> None:
        if line["kind"] == "match":
            line["processes"] = ["alpha-1.2", "beta-1.1", "alpha-2.1", ""]

    tricks = tmp_path / "tricks-0001-0001.jsonl"
    rewrite(tricks, launched)
    (tmp_path / "logs" / "bots").mkdir(parents=True)
    for process in ("alpha-1.2", "beta-1.1"):
        (tmp_path / "logs" / "bots" / f"{process}.log").touch()
    compress_segment(tricks)
    shown = CliRunner().invoke(main, ["replay", str(tmp_path), "g1"]).output.splitlines()
    logs = tmp_path / "logs" / "bots"
    assert shown[1:6] == [
        f"Record: {tricks}.zst, lines 13 to 24",
        f"Record: {tmp_path}/results-0001.jsonl, line 2",
        f"Log of alpha-1.2: {logs}/alpha-1.2.log",
        f"Log of alpha-2.1: {logs}/alpha-2.1.log (not kept)",
        f"Log of beta-1.1: {logs}/beta-1.1.log",
    ]
    lines = list(read_lines(tricks))
    assert {line["game"] for line in lines[12:24]} == {"g1"}
