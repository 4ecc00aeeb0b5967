"""``tressette verify`` believes a whole record and finds whatever was changed in it, also by a forger who
chains the lines anew."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import signal
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.event_folders import event_folder, spec_of, write_ratings
from support.runs import Bots, command_run, event, finish, hurry, result_lines, standing, turns_until, until
from tressette.cli import main
from tressette.record.decks import event_commitment
from tressette.record.manifest import write_manifest
from tressette.record.reader import RecordError
from tressette.record.reveals import Reveal
from tressette.record.segments import Compressor, raw_lines
from tressette.record.writer import FIRST_PREV
from tressette_tournament.verify import Checked
from tressette_tournament.verify import verify as check

Line = dict[str, Any]
RESULTS = "results-0001.jsonl"
TRICKS = "tricks-0001-0001.jsonl"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete event: pairs and three forfeits among two players."""
    return event_folder(
        tmp_path_factory.mktemp("event"),
        {"tressette-21-duplicate": 3, "tressette-due-duplicate": 4},
        forfeit=lambda number: number in (6, 9, 13),
    )


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def verify(folder: Path) -> Result:
    result = CliRunner().invoke(main, ["verify", str(folder)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def errors(folder: Path) -> list[str]:
    """What is found wrong; the status must say so too."""
    result = verify(folder)
    found = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert result.exit_code == (1 if found else 0), result.output
    return found


def forge(path: Path, change: Callable[[Line], Line | None]) -> None:
    """Change the lines of a file, or leave them out, and number and chain them anew."""
    previous = FIRST_PREV
    out: list[bytes] = []
    for raw in raw_lines(path):
        line = change(json.loads(raw))
        if line is None:
            continue
        line |= {"seq": len(out) + 1, "prev": previous}
        encoded = json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode()
        previous = hashlib.sha256(encoded).hexdigest()[:32]
        out.append(encoded + b"\n")
    path.write_bytes(b"".join(out))


def renew(folder: Path) -> None:
    """Have ratings and manifest agree with what the files say now: only the games can tell."""
    write_ratings(folder)
    write_manifest(folder)


# --- a whole record --------------------------------------------------------------------------------


def test_a_whole_record_is_verified(whole: Path) -> None:
    result = verify(whole)
    assert result.exit_code == 0, result.output
    said = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    games = [json.loads(raw) for raw in raw_lines(whole / RESULTS)]
    assert said["files"].startswith("2 with ")
    assert "last lines by the manifest" in said["files"]
    deals = sum(game["deals"] for game in games)
    assert said["games"] == f"14 played again by the rules, {deals} deals, 3 forfeits"
    assert said["deal"] == "sets  7 complete, 0 open"
    assert said["decks"] == "14 games dealt again from their deck seeds"
    assert int(said["ratings"].split()[0]) > 50
    assert said["Verified:"] == str(whole)


def test_an_interrupt_is_no_difference(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tressette_tournament.verify._check_files", interrupted)
    result = verify(whole)
    assert result.exit_code == 3
    assert result.stderr == f"Stopped before its end: {whole} is not verified\n"
    assert "Verified" not in result.stdout


def test_a_compressed_record_is_verified(folder: Path) -> None:
    assert Compressor(folder, (), pytest.fail).step() == 1
    assert errors(folder) == []


def test_a_record_in_many_segments_is_verified(tmp_path: Path) -> None:
    folder = event_folder(tmp_path, {"tressette-21-duplicate": 4}, segment_bytes=4000)
    assert Compressor(folder, ("0001",), pytest.fail).step() > 3
    assert errors(folder) == []


def test_a_torn_last_line_is_a_warning(folder: Path) -> None:
    with (folder / TRICKS).open("ab") as file:
        file.write(b'{"v":1,')
    result = verify(folder)
    assert result.exit_code == 0
    assert f"warning: {folder / TRICKS}, line" in result.stderr


def test_without_a_manifest_it_says_that_last_lines_are_unconfirmed(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    result = verify(folder)
    assert result.exit_code == 0
    assert "no manifest: last lines are not confirmed" in result.stdout


def test_a_folder_without_results_is_not_verified(tmp_path: Path) -> None:
    result = verify(tmp_path)
    assert result.exit_code == 1
    assert "holds no results" in result.stderr


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert verify(tmp_path / "no").exit_code == 2


# --- what was changed ------------------------------------------------------------------------------


def test_a_changed_byte_is_found_by_the_chain(folder: Path) -> None:
    path = folder / TRICKS
    path.write_bytes(path.read_bytes().replace(b'"winner":0', b'"winner":1', 1))
    (found, *_) = errors(folder)
    assert f"{path}, line " in found
    assert "the hash of the line before does not match" in found


def test_a_changed_last_line_is_found_by_the_manifest(folder: Path) -> None:
    path = folder / RESULTS
    *lines, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, last.replace(b'"duration_ms":', b'"duration_ms":1')]))
    assert [text.partition(" is ")[0] for text in errors(folder)] == [
        f"error: {folder}: {RESULTS}: {what}" for what in ("bytes", "head")
    ]


def other_winner(line: Line) -> Line:
    if line["kind"] == "trick" and line["game"] == "p0-l0-s1-g0" and line["trick"] == 4:
        line["winner"] = (line["winner"] + 1) % 4
    return line


def other_forfeited_hand(line: Line) -> Line:
    if line["kind"] == "cut" and line["game"] == "p1-l0-s0-g0":
        line["hands"] = line["hands"][::-1]
    return line


def test_a_forged_trick(folder: Path) -> None:
    forge(folder / TRICKS, other_winner)
    renew(folder)
    (found,) = errors(folder)
    assert f"error: {folder / TRICKS}, line " in found
    assert "game p0-l0-s1-g0: " in found
    assert f"{TRICKS}, line " in found.partition("p0-l0-s1-g0: ")[2]
    assert "winner is " in found


def test_a_forged_hand_of_a_forfeited_deal(folder: Path) -> None:
    forge(folder / TRICKS, other_forfeited_hand)
    renew(folder)
    (found,) = errors(folder)
    assert "game p1-l0-s0-g0: " in found


@pytest.mark.parametrize(
    "change",
    [
        {"points": [0, 66], "ranks": [2, 1]},
        {"faults": [["a", "timeout", 1]]},
        {"commitment": "0" * 64},
        {"termination": "target"},
        {"deals": 2},
    ],
)
def test_a_forged_result(change: Line, folder: Path) -> None:
    def forged(line: Line) -> Line:
        return line | change if line["game"] == "p0-l0-s2-g1" else line

    forge(folder / RESULTS, forged)
    renew(folder)
    found = errors(folder)
    assert len(found) == 1
    assert "game p0-l0-s2-g1: " in found[0]
    assert next(iter(change)) in found[0] or "lines recorded" in found[0]


def test_results_and_log_disagreeing_after_a_stop(folder: Path) -> None:
    """A complaint about other runners: here it is found, whichever of the two has more."""
    shutil.copytree(folder, other := folder.parent / "other")
    forge(folder / TRICKS, lambda line: None if line["game"] == "p1-l0-s3-g0" else line)
    renew(folder)
    (found,) = errors(folder)
    assert "p1-l0-s3-g0: has a result but no tricks" in found
    # A game without a result was cut off and does not count: its tricks alone are no difference ...
    forge(other / RESULTS, lambda line: None if line["game"] == "p1-l0-s3-g0" else line)
    # ... but the manifest and the ratings were made when it counted.
    wrong = errors(other)
    assert any(f"{other}: {RESULTS}: lines is 13, 14 in the manifest" in text for text in wrong)
    assert any("ratings.json: pools." in text for text in wrong)
    renew(other)
    result = verify(other)
    assert result.exit_code == 0
    assert "6 complete, 1 open" in result.stdout


@pytest.mark.slow
def test_a_run_that_was_killed_and_resumed_is_whole_at_every_moment(tmp_path: Path) -> None:
    """The same complaint with a real server, whose end is the roughest there is."""
    bots: Bots = {"a": "random", "b": standing(tmp_path, turns_until(10, games_at_once=8))}
    file = event(tmp_path, bots, deal_sets=60)
    with command_run(file) as run:
        until(lambda: result_lines(run.folder) >= 10, "ten results")
        run.process.kill()
        run.wait()
    hurry(tmp_path)
    assert errors(run.folder) == []
    before = result_lines(run.folder)
    assert finish(file).folder == run.folder
    assert before < result_lines(run.folder) == 120
    for _ in range(2):
        result = verify(run.folder)
        assert result.exit_code == 0, result.output
        assert "last lines by the manifest" in result.stdout
        assert "120 played again" in result.stdout
        finish(file)  # nothing is left to play, and so the record stays as it is


SWAPPED = {"a": "b", "b": "a"}


def swapped(line: Line) -> Line:
    """A game that one bot has won, in the record as one that the other has."""
    if line["game"] == "p0-l0-s0-g0" and line["kind"] in ("match", "game"):
        line["bots"] = [SWAPPED[bot] for bot in line["bots"]]
        if line["kind"] == "game":
            line["sides"] = [[SWAPPED[bot] for bot in side] for side in line["sides"]]
    return line


def made_complete(line: Line) -> Line | None:
    """A deal set without one of its games, as if it had been played without it."""
    if line["game"] == "p0-l0-s0-g0":
        return None
    return line | {"set_size": 1} if (line["game"], line["kind"]) == ("p0-l0-s0-g1", "game") else line


def renamed(line: Line) -> Line:
    """A game that was never to be played."""
    return line | {"game": "p0-l0-s7-g0"} if line["game"] == "p0-l0-s1-g0" else line


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (swapped, "game p0-l0-s0-g0: bots is ['b', 'a'], ['a', 'b'] in the schedule"),
        (made_complete, "game p0-l0-s0-g1: set_size is 1, 2 in the schedule"),
        (renamed, "game p0-l0-s7-g0: it is not in the schedule"),
    ],
)
def test_a_game_that_is_not_as_scheduled(
    played: Path, tmp_path: Path, change: Callable[[Line], Line | None], expected: str
) -> None:
    """Each of these is sound by the rules, chained, and confirmed by a manifest."""
    folder = Path(shutil.copytree(played, tmp_path / "run"))
    for name in (RESULTS, TRICKS):
        forge(folder / name, change)
    renew(folder)
    assert any(expected in text for text in errors(folder))


def without(deal_set: str) -> Callable[[Line], Line | None]:
    """A deal set that was never played."""
    return lambda line: None if line["game"].startswith(f"{deal_set}-") else line


@pytest.mark.parametrize(
    "secret", [pytest.param(False, id="public", marks=pytest.mark.slow), pytest.param(True, id="secret")]
)
def test_a_deal_set_that_was_taken_out_of_a_complete_run(secret: bool, tmp_path: Path) -> None:
    """Also where the manifest was taken away, once the keys of the event are published."""
    bots = {"a": "random", "b": "first_legal"}
    folder = finish(event(tmp_path, bots, deal_sets=3, seed=None if secret else "test")).folder
    for name in (RESULTS, TRICKS):
        forge(folder / name, without("p0-l0-s1"))
    for reveals in folder.glob("reveals-*.jsonl"):
        lines = reveals.read_bytes().splitlines(keepends=True)
        reveals.write_bytes(b"".join(line for line in lines if b"p0-l0-s1-" not in line))
    renew(folder)
    expected = "it is complete, but 2 games have no result: p0-l0-s1-g0, p0-l0-s1-g1"
    (found,) = errors(folder)
    assert expected in found
    (folder / "manifest.json").unlink()
    assert any(expected in text for text in errors(folder)) == secret


def changed_event(folder: Path, **fields: object) -> None:
    data = json.loads((folder / "event.json").read_text())
    (folder / "event.json").write_text(json.dumps(data | fields))


def test_an_end_that_no_stop_rule_can_have_made(played: Path, tmp_path: Path) -> None:
    """It would explain why deal sets are missing."""
    folder = Path(shutil.copytree(played, tmp_path / "run"))
    for name in (RESULTS, TRICKS):
        forge(folder / name, without("p0-l0-s1"))
    renew(folder)
    changed_event(folder, ended="the limit of 2 games is reached")
    found = errors(folder)
    assert any("tournament.toml has no such rule" in text for text in found)


@pytest.mark.parametrize(
    ("rule", "name"), [("games", "games"), pytest.param("deal_sets", "deal sets", marks=pytest.mark.slow)]
)
def test_a_run_that_was_ended_by_a_limit_that_it_does_not_reach(rule: str, name: str, tmp_path: Path) -> None:
    bots = {"a": "random", "b": "first_legal"}
    folder = finish(event(tmp_path, bots, deal_sets=9, sections=f"[stop]\n{rule} = 4")).folder
    assert errors(folder) == []
    for file in (RESULTS, TRICKS):
        forge(folder / file, without("p0-l0-s0"))
    renew(folder)
    found = errors(folder)
    assert any(f"ended since the limit of 4 {name} is reached" in text for text in found)


@pytest.mark.slow
def test_a_deal_set_that_an_ended_run_has_passed_over(tmp_path: Path) -> None:
    """Where no bot can have been lost: both have played long after it."""
    bots = {"a": "random", "b": "first_legal"}
    file = event(
        tmp_path, bots, deal_sets=30, concurrency=1, lines="window = 2", sections="[stop]\ngames = 40"
    )
    folder = finish(file).folder
    assert errors(folder) == []
    toml = folder / "tournament.toml"
    toml.write_text(toml.read_text().replace("games = 40", "games = 38"))
    changed_event(folder, ended="the limit of 38 games is reached")
    for name in (RESULTS, TRICKS):
        forge(folder / name, without("p0-l0-s3"))
    renew(folder)
    found = errors(folder)
    assert any("2 games have no result: p0-l0-s3-g0, p0-l0-s3-g1" in text for text in found)


def test_a_result_of_a_run_that_has_another_name(played: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(played, tmp_path / "run"))
    for name in (RESULTS, TRICKS):
        forge(folder / name, lambda line: line | ({"tournament": "x"} if "tournament" in line else {}))
    renew(folder)
    assert any("tournament is 'x', 'test' in the schedule" in text for text in errors(folder))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tournament.toml", "tournament.toml is missing, which every run has"),
        ("event.json", "event.json is missing, which every run has"),
        ("reveals-0001.jsonl", "4 of its games are not revealed, the first is p0-l0-s"),
    ],
)
def test_what_every_complete_run_has(played: Path, tmp_path: Path, name: str, expected: str) -> None:
    """Without it less could be checked."""
    folder = Path(shutil.copytree(played, tmp_path / "run"))
    (folder / name).unlink()
    renew(folder)
    assert any(expected in text for text in errors(folder))


def test_a_reveal_of_a_game_without_a_result(played: Path, tmp_path: Path) -> None:
    """Also where there is no manifest, as of a run that was killed: what is revealed was played."""
    folder = Path(shutil.copytree(played, tmp_path / "run"))
    for name in (RESULTS, TRICKS):
        forge(folder / name, without("p0-l0-s1"))
    for name in ("manifest.json", "ratings.json"):
        (folder / name).unlink()
    (found,) = errors(folder)
    assert "2 games are revealed that have no result, the first is p0-l0-s1-g" in found


def test_keys_that_a_complete_run_does_not_tell(played: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(played, tmp_path / "run"))
    (stage,) = json.loads((folder / "event.json").read_text())["stages"]
    changed_event(folder, stages=[{name: value for name, value in stage.items() if name != "key"}])
    assert any("event.json does not tell its keys" in text for text in errors(folder))


@pytest.fixture(scope="module")
def swiss(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four bots in two rounds."""
    folder = tmp_path_factory.mktemp("swiss")
    bots = {"a": "first_legal", "b": "random", "c": "first_legal", "d": "first_legal"}
    return finish(event(folder, bots, lines='format = "swiss"\nrounds = 2')).folder


def test_a_swiss_without_its_last_round(swiss: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(swiss, tmp_path / "run"))
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    for name in (RESULTS, TRICKS):
        forge(folder / name, lambda line: None if "-r1-" in line["game"] else line)
    renew(folder)
    assert any("its last rounds are not in the journal" in text for text in errors(folder))


def test_a_swiss_round_that_does_not_follow_from_the_results(swiss: Path, tmp_path: Path) -> None:
    """Two bots take the places of each other in it, in the journal and in the record."""
    folder = Path(shutil.copytree(swiss, tmp_path / "run"))
    first, second = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
    (_, one), (_, other) = (fixture["line_up"] for fixture in second["fixtures"])
    exchanged = {one: other, other: one}

    def exchange(line: Line) -> Line:
        text = json.dumps(line)
        if "-r1-" in line["game"] and line["kind"] in ("match", "game"):
            text = re.sub(r'"([a-d])"', lambda found: f'"{exchanged.get(found[1], found[1])}"', text)
        return dict(json.loads(text))

    for name in (RESULTS, TRICKS):
        forge(folder / name, exchange)
    for fixture in second["fixtures"]:
        fixture["line_up"] = [exchanged.get(bot, bot) for bot in fixture["line_up"]]
    lines = f"{json.dumps(first)}\n{json.dumps(second)}\n"
    (folder / "journal.jsonl").write_text(lines)
    renew(folder)
    (found,) = errors(folder)
    assert "round 1 of the journal does not follow from the results before it" in found


@pytest.mark.parametrize("text", ["no toml", "bots = 3", "[[bots]]\nbot = []", "bots = []"])
def test_a_schedule_that_cannot_be_made_again_is_told(played: Path, tmp_path: Path, text: str) -> None:
    folder = Path(shutil.copytree(played, tmp_path / "run"))
    (folder / "tournament.toml").write_text(text)
    (found,) = errors(folder)
    assert "its schedule cannot be made again: " in found


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two deal sets."""
    folder = tmp_path_factory.mktemp("played")
    run = finish(event(folder, {"a": "random", "b": "first_legal"}, deal_sets=2))
    assert "schedule   4 games compared with it" in verify(run.folder).stdout
    return run.folder


@pytest.mark.slow
def test_a_run_that_was_stopped_resumed_and_killed_is_whole(tmp_path: Path) -> None:
    """A stopped run leaves ratings, which are of fewer games than a later session has played."""
    file = event(tmp_path, {"a": "random", "b": "first_legal"}, deal_sets=3000, concurrency=4)
    with command_run(file) as run:
        until(lambda: result_lines(run.folder) >= 10, "ten results")
        run.signal(signal.SIGINT)
        assert run.wait() == 3, run.output
    assert errors(run.folder) == []
    assert (run.folder / "ratings.json").exists()
    before = result_lines(run.folder)
    with command_run(file) as run:
        until(lambda: result_lines(run.folder) >= before + 20, "twenty more")
        assert errors(run.folder) == []  # while it is played
        run.process.kill()
        run.wait()
    assert before < result_lines(run.folder) < 6000
    assert errors(run.folder) == []


def test_a_game_with_two_results(folder: Path) -> None:
    data = [json.loads(raw) for raw in raw_lines(folder / RESULTS)]
    again = next(line for line in data if line["game"] == "p0-l0-s0-g1")
    (folder / "results-0002.jsonl").write_text(json.dumps({**again, "seq": 1, "prev": FIRST_PREV}) + "\n")
    write_manifest(folder)
    found = errors(folder)
    place = f"{folder / RESULTS}, line {again['seq']}"
    assert f"results-0002.jsonl, line 1: game p0-l0-s0-g1: has a result already in {place}" in found[0]
    assert "deal set p0-l0-s0: game 3 of 2" in found[1]


def test_deal_sets_that_disagree(folder: Path) -> None:
    def smaller(line: Line) -> Line:
        return line | {"set_size": 1} if line["game"] == "p0-l0-s0-g1" else line

    forge(folder / RESULTS, smaller)
    write_manifest(folder)
    assert any("game p0-l0-s0-g1: deal set p0-l0-s0: deck " in text for text in errors(folder))


def test_something_that_is_no_result(folder: Path) -> None:
    forge(folder / RESULTS, lambda line: line | {"ranks": [7, 7]} if line["game"] == "p0-l0-s0-g1" else line)
    assert any(f"{folder / RESULTS}, line 2: not the result of a game: ranks" in e for e in errors(folder))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One deal set, of which one game is forfeited."""
    presets = {"tressette-due-duplicate": 1}
    return event_folder(tmp_path_factory.mktemp("small"), presets, forfeit=lambda number: number == 1)


def _fields() -> list[tuple[str, str, str]]:
    """(file, kind, field) of every line that a small event has."""
    with tempfile.TemporaryDirectory() as folder:
        event_folder(Path(folder), {"tressette-due-duplicate": 1}, forfeit=lambda number: number == 1)
        found = {
            (name, line["kind"], field)
            for name in (RESULTS, TRICKS)
            for line in map(json.loads, raw_lines(Path(folder, name)))
            for field in line
        }
    return sorted(one for one in found if one[2] not in ("seq", "prev"))  # those are made anew


_OF_NO_RULE = {"versions", "processes", "think_ms", "net_ms", "duration_ms", "ended_unix_ms"}


@pytest.mark.parametrize("value", ["gone", None, 3, "x", [], {}], ids=str)
def test_whatever_is_put_in_a_field_is_told_and_stops_nothing(
    value: object, small: Path, tmp_path: Path
) -> None:
    for name, kind, field in _fields():
        folder = Path(shutil.copytree(small, tmp_path / f"{kind}-{field}"))

        def forged(line: Line, kind: str = kind, field: str = field) -> Line:
            if line["kind"] != kind or line.get(field) == value:
                return line
            changed = dict(line)
            if value == "gone":
                changed.pop(field, None)
            elif field in line:
                changed[field] = value
            return changed

        before = (folder / name).read_bytes()
        forge(folder / name, forged)
        write_manifest_if_it_can(folder)
        found = list(check(folder, Checked()))
        same = (folder / name).read_bytes() == before
        assert found or same or field in _OF_NO_RULE, (name, kind, field, value)


def write_manifest_if_it_can(folder: Path) -> None:
    with contextlib.suppress(RecordError):
        write_manifest(folder)


# --- decks -----------------------------------------------------------------------------------------


def test_decks_of_another_key(folder: Path) -> None:
    """By the rules nothing is wrong."""
    data = json.loads((folder / "event.json").read_text())
    other = bytes(32)
    data["stages"][0] |= {"key": other.hex(), "commitment": event_commitment(other)}
    (folder / "event.json").write_text(json.dumps(data))
    found = errors(folder)
    assert len(found) == 14
    assert all("that of its deal set is" in text for text in found)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"commitment": "0" * 64}, "do not open the commitment"),
        ({"suits": "dcbs"}, "the suits are"),
    ],
)
def test_a_commitment_or_suit_order_that_is_not_that_of_the_deck(
    change: Line, reason: str, folder: Path
) -> None:
    def forged(line: Line) -> Line:
        if line["game"] != "p0-l0-s0-g0" or line["kind"] not in ("match", "game"):
            return line
        return line | {name: value for name, value in change.items() if name in line}

    for name in (TRICKS, RESULTS):
        forge(folder / name, forged)
    renew(folder)
    (found,) = errors(folder)
    assert "game p0-l0-s0-g0: " in found
    assert reason in found


def test_a_game_dealt_from_another_deck_of_the_event(folder: Path) -> None:
    lines = [json.loads(raw) for raw in raw_lines(folder / RESULTS)]
    other = next(line["deck"] for line in lines if line["game"] == "p0-l0-s2-g0")

    def forged(line: Line) -> Line:
        return line | {"deck": other} if "deck" in line and line["game"].startswith("p0-l0-s1") else line

    for name in (TRICKS, RESULTS):
        forge(folder / name, forged)
    renew(folder)
    found = errors(folder)
    assert [text.partition("game ")[2][:11] for text in found] == ["p0-l0-s1-g0", "p0-l0-s1-g1"]


def test_secret_decks_are_checked_while_the_key_is_at_hand(folder: Path) -> None:
    file = folder / "event.json"
    data = json.loads(file.read_text())
    key = data["stages"][0].pop("key")
    file.write_text(json.dumps(data))
    assert "decks      not checked" in verify(folder).stdout
    (folder / "event.key").write_text(f"{key}\n")
    assert "decks      14 games" in verify(folder).stdout
    (folder / "event.key").write_text(f"{key}\n{bytes(32).hex()}\n")  # killed while it was extended
    assert "decks      14 games" in verify(folder).stdout
    (folder / "event.key").write_text("")
    assert "decks      not checked" in verify(folder).stdout
    (folder / "event.key").write_text(f"{bytes(32).hex()}\n")
    (found,) = errors(folder)
    assert "is not that of the key" in found
    (folder / "event.key").write_text(f"{key[:-2]}\n")
    (found,) = errors(folder)
    assert "event key has 31 bytes" in found


def test_revealed_decks_are_checked(folder: Path) -> None:
    (folder / "event.json").unlink()
    (folder / "manifest.json").unlink()
    file = folder / "reveals-0001.jsonl"
    specs = [spec_of("tressette-21-duplicate", "p0-l0-s1", 1, game) for game in range(2)]
    reveals = [Reveal.of(one).to_json() for one in specs]
    file.write_text("".join(json.dumps(one) + "\n" for one in reveals))
    assert "decks      2 games" in verify(folder).stdout
    other = replace(Reveal.of(specs[0]), seed=bytes(32))
    file.write_text(json.dumps(other.to_json()) + "\n")
    (found,) = errors(folder)
    assert "game p0-l0-s1-g0: was not dealt from its deck seed" in found


@pytest.mark.parametrize("text", ["", "{}", '{"stages": [{"key": "xx", "commitment": ""}]}', "[]"])
def test_event_data_that_cannot_be_read(text: str, folder: Path) -> None:
    (folder / "event.json").write_text(text)
    (found,) = errors(folder)
    assert "event.json" in found


# --- ratings ---------------------------------------------------------------------------------------


def _first_bot(data: Line) -> Line:
    bot: Line = data["pools"][0]["components"][0]["bots"][0]
    return bot


@pytest.mark.parametrize(
    ("name", "by", "fine"),
    [
        *[("rating", 0.009, True), ("rating", -0.011, False)],
        *[("score", 1e-7, True), ("score", 0.001, False), ("games", 1, False)],
    ],
)
def test_every_number_of_the_ratings_is_compared(name: str, by: float, fine: bool, folder: Path) -> None:
    file = folder / "ratings.json"
    data = json.loads(file.read_text())
    _first_bot(data)[name] += by
    file.write_text(json.dumps(data))
    found = errors(folder)
    assert (found == []) == fine
    assert all(f"{file}: pools.0.components.0.bots.0.{name}: " in text for text in found)


def test_ratings_that_lack_something(folder: Path) -> None:
    file = folder / "ratings.json"
    data = json.loads(file.read_text())
    bot = _first_bot(data)
    del bot["rating"]
    bot["interval"]["kind"] = "certain"
    data["pools"].append({})
    file.write_text(json.dumps(data))
    assert errors(folder) == [f"error: {file}: pools: 3 entries, the results give 2"]
    data["pools"].pop()
    file.write_text(json.dumps(data))
    assert len(errors(folder)) == 2
    file.write_text("{")
    (found,) = errors(folder)
    assert f"{file}: " in found


def test_without_ratings_it_says_so(folder: Path) -> None:
    (folder / "ratings.json").unlink()
    assert "ratings    not checked" in verify(folder).stdout
