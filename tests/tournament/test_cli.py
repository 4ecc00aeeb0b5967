"""The commands: what they refuse and how that reads, ratings from logs alone, and the help of everything."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from support.records import game_line, write_results
from support.runs import event, loaded
from tressette.cli import main, tournament
from tressette_tournament.cli import ratings
from tressette_tournament.folder import open_event
from tressette_tournament.invocation import called
from tressette_tournament.runner import Outcome, Runner


def tressette(*arguments: object) -> Result:
    """Run the command in this process; an error that it does not report itself fails the test."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


# --- tournament run: what is refused ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong", "line", "key", "nearest"),
    [
        ("deal_sets = 2", "deal_set = 2", 4, "tournament.deal_set", "deal_sets"),
        ("[clock]", "[clok]", 8, "clok", "clock"),
        ('"tressette-21"', '"tresette-21"', 3, "tournament.presets", "tressette-21"),
        ('bot = "random"', 'bot = "ramdom"', 12, "bots[0].bot", "random"),
        ("move_ms = 30000", "moves_ms = 30000", 9, "clock.moves_ms", "move_ms"),
        ("concurrency = 8", "concurrency = 0", 5, "tournament.concurrency", None),
        ('name = "b"', 'name = "a"', 14, "bots[1].name", None),
    ],
)
def test_a_bad_file_is_refused_before_anything_starts(
    tmp_path: Path, right: str, wrong: str, line: int, key: str, nearest: str | None
) -> None:
    file = event(tmp_path, {"a": "random", "b": "first_legal"}, presets=("tressette-21",), move_ms=30_000)
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong))
    result = tressette("tournament", "run", file)
    assert result.exit_code == 1
    problem = next(text for text in result.stderr.splitlines() if f"{file}:{line}: {key}: " in text)
    assert (f"did you mean {nearest!r}?" in problem) == (nearest is not None)
    assert [path.name for path in tmp_path.iterdir()] == ["event.toml"]
    assert result.stdout == ""


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    file = event(tmp_path, {"a": "ramdom", "b": "fist_legal"}, deal_sets=0)
    problems = tressette("tournament", "run", file).stderr.splitlines()
    assert [problem.rpartition(f"{file}:")[2].split(":")[0] for problem in problems] == ["4", "12", "15"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = tressette("tournament", "run", tmp_path / "no.toml")
    assert result.exit_code == 2
    assert "no.toml" in result.stderr


def test_a_file_that_is_no_toml(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("[tournament]\nname = \n")
    result = tressette("tournament", "run", file)
    assert result.exit_code == 1
    assert f"Error: {file}:2: not TOML" in result.stderr


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"})
    (tmp_path / "run").write_text("in the way")
    for path in ("run", "run/below/it"):
        file.write_text(file.read_text().replace('"run"', f'"{path}"'))
        result = tressette("tournament", "run", file)
        assert result.exit_code == 1
        in_the_way = tmp_path / "run"
        assert result.stderr == f"Error: {file}:6: tournament.output: {in_the_way} is not a folder\n"


def test_commands_that_cannot_be_started(tmp_path: Path) -> None:
    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"})
    (tmp_path / "data").touch(mode=0o644)
    bots = {
        'command = ["pyhton", "x.py"]': "command: program 'pyhton' not found on the bot's PATH",
        'command = ["./no"]': f"command: program './no' not found in {tmp_path}",
        'command = ["./data"]': f"command: program './data' is not executable ({tmp_path}/./data)",
        'command = ["python"]\ndirectory = "no"': f"directory: there is no folder {tmp_path}/no",
        'command = ["python"]\nenvironment = { PATH = "/no" }': "command: program 'python' not found on",
    }
    text = file.read_text()
    for number, bot in enumerate(bots):
        text += f'[[bots]]\nname = "c{number}"\n{bot}\n'
    file.write_text(text)
    result = tressette("tournament", "run", file)
    assert result.exit_code == 1
    found = result.stderr.splitlines()
    assert len(found) == len(bots)
    for index, (problem, reason) in enumerate(zip(found, bots.values(), strict=True), start=2):
        assert f": bots[{index}].{reason}".replace("/./", "/") in problem
    assert not (tmp_path / "run").exists()


def test_programs_are_looked_for_where_the_bot_is_started(tmp_path: Path) -> None:
    (tmp_path / "own" / "bin").mkdir(parents=True)
    (tmp_path / "own" / "bin" / "mine").touch(mode=0o755)
    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"})
    bot = '[[bots]]\nname = "{}"\ncommand = ["{}"]\ndirectory = "own"\nenvironment = {{ PATH = "{}" }}\n'
    file.write_text(file.read_text() + bot.format("c", "bin/mine", "") + bot.format("d", "mine", "/no:bin"))
    assert [bot.command for bot in loaded(file).bots[2:]] == [("bin/mine",), ("mine",)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"})
    (tmp_path / "run").mkdir(mode=0o500)
    result = tressette("tournament", "run", file)
    assert result.exit_code == 1
    assert "Permission denied" in result.stderr
    assert str(tmp_path / "run") in result.stderr


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    file = event(tmp_path, {"a": "first_legal", "b": "first_legal"})
    results = write_results(tmp_path / "run", some_games(4))
    (tmp_path / "event").mkdir()
    open_event(replace(loaded(file), output=str(tmp_path / "event")))
    for name in ("tournament.toml", "event.json"):
        shutil.copy(tmp_path / "event" / name, tmp_path / "run")
    results.write_text(results.read_text().replace("first", "other", 1))
    result = tressette("tournament", "run", file)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {results}, line 2: the hash of the line before does not match\n"
    assert not (tmp_path / "run" / "logs").exists()


# --- tournament run: how it ends -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "status"), [(Outcome.COMPLETE, 0), (Outcome.STOPPED, 3), (Outcome.INCOMPLETE, 4)]
)
def test_the_status_tells_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, status: int
) -> None:
    async def run(self: Runner) -> Outcome:
        write_results(self.folder, some_games(4))
        self.lost, self.left_out = {"slow": "asleep", "bad": "broken"}, 7
        return outcome

    monkeypatch.setattr(Runner, "run", run)
    monkeypatch.setattr("sys.argv", ["/else where/tressette"])
    file = event(tmp_path, {"a": "random", "b": "random"})
    elsewhere = tmp_path / "an other folder"
    result = tressette("tournament", "run", file, "--output", elsewhere)
    assert result.exit_code == status
    rated = json.loads((elsewhere / "ratings.json").read_text())
    assert rated["pools"][0]["games"] == 4
    assert f"Record, logs and ratings.json: {elsewhere}\n" in result.stdout
    again = f"'/else where/tressette' tournament run {file} --output '{elsewhere}'\n"
    ends = {
        0: "",
        3: f"Stopped before its end; go on with: {again}",
        4: f"Left out, because of bad, slow: 7 games; play them with: {again}",
    }
    assert result.stdout.endswith(ends[status])
    assert ("tournament run" in result.stdout) == (status != 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("where", ["load", "run", "rate"])
def test_an_interrupt_before_or_after_the_games_is_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, where: str
) -> None:
    async def run(self: Runner) -> Outcome:
        if where == "run":
            signal.raise_signal(number)
            await asyncio.sleep(20)
        return Outcome.COMPLETE

    def interrupt(*_: object, **__: object) -> None:
        signal.raise_signal(number)

    monkeypatch.setattr(Runner, "run", run)
    if where != "run":
        monkeypatch.setattr(f"tressette_tournament.cli.{where}", interrupt)
    monkeypatch.setattr("sys.argv", ["/there/tressette"])
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    file = event(tmp_path, {"a": "random", "b": "random"})
    result = tressette("tournament", "run", file)
    assert (result.exit_code, result.stderr) == (3, "")
    end = f"Stopped before its end; go on with: /there/tressette tournament run {file}\n"
    assert result.stdout.endswith(end)
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before


def test_the_command_is_named_as_it_was_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("on_path", "elsewhere"):
        (tmp_path / name).mkdir()
        for program in ("tressette", "python"):
            (tmp_path / name / program).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "on_path"))
    monkeypatch.chdir(tmp_path)
    for argument, command in {
        str(tmp_path / "on_path" / "tressette"): ["tressette"],
        str(tmp_path / "elsewhere" / "tressette"): [str(tmp_path / "elsewhere" / "tressette")],
        "elsewhere/tressette": ["elsewhere/tressette"],
    }.items():
        monkeypatch.setattr("sys.argv", [argument])
        assert called() == command
    monkeypatch.setattr("sys.argv", ["/lib/tressette/__main__.py"])
    for name, python in {"on_path": "python", "elsewhere": str(tmp_path / "elsewhere" / "python")}.items():
        monkeypatch.setattr("sys.executable", str(tmp_path / name / "python"))
        assert called() == [python, "-m", "tressette"]


def test_ratings_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(self: Runner) -> Outcome:
        write_results(self.folder, some_games(4))
        (self.folder / "ratings.json").mkdir()
        return Outcome.COMPLETE

    monkeypatch.setattr(Runner, "run", run)
    result = tressette("tournament", "run", event(tmp_path, {"a": "random", "b": "random"}))
    assert result.exit_code == 1
    assert "ratings.json" in result.stderr


# --- ratings ---------------------------------------------------------------------------------------


def some_games(count: int) -> list[dict[str, Any]]:
    """Result lines of three bots that play each other, two games a deal set."""
    chance = random.Random(1)
    pairs = (("first", "second"), ("second", "third"), ("third", "first"))
    lines = []
    for number in range(count):
        points = chance.randrange(6, 61, 6)
        bots = pairs[number // 2 % 3]
        lines.append(game_line(number // 2, number % 2, bots, (points, 66 - points)))
    return lines


def as_data(*folders: Path) -> Any:
    result = tressette("ratings", *folders, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_the_same_results_in_any_order_give_the_same_ratings(tmp_path: Path) -> None:
    lines = some_games(120)
    write_results(tmp_path / "whole", lines)
    expected = as_data(tmp_path / "whole")
    assert expected["pools"][0]["games"] == 120
    chance = random.Random(2)
    for turn in range(3):
        chance.shuffle(lines)
        folders = [tmp_path / f"{turn}-{part}" for part in "abc"]
        write_results(folders[0], lines[:50], "0001")
        write_results(folders[0], lines[50:51], "0002")
        write_results(folders[1], lines[51:])
        write_results(folders[2], lines[:1])
        chance.shuffle(folders)
        assert as_data(*folders) == expected


def test_ratings_as_tables(tmp_path: Path) -> None:
    write_results(tmp_path, some_games(120))
    result = tressette("ratings", tmp_path)
    assert result.exit_code == 0
    assert "tressette-due-duplicate" in result.stdout
    assert all(bot in result.stdout for bot in ("first", "second", "third"))
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_only_the_results_are_needed(tmp_path: Path) -> None:
    write_results(tmp_path, some_games(4))
    (tmp_path / "tricks-0001-0001.jsonl").write_text("nothing that can be read")
    assert as_data(tmp_path)["pools"][0]["games"] == 4


def test_open_deal_sets_are_listed_and_do_not_count(tmp_path: Path) -> None:
    write_results(tmp_path, some_games(5))
    (pool,) = as_data(tmp_path)["pools"]
    assert pool["games"] == 4
    (waiting,) = pool["open_sets"]
    assert waiting["deal_set"].startswith("p0-l0-s2@")
    assert (waiting["have"], waiting["want"]) == (1, 2)


def test_a_torn_last_line_is_a_warning(tmp_path: Path) -> None:
    file = write_results(tmp_path, some_games(5))
    file.write_bytes(file.read_bytes()[:-3])
    result = tressette("ratings", tmp_path, "--json")
    assert result.exit_code == 0
    assert result.stderr == f"warning: {file}, line 5: dropped an incomplete last line\n"
    assert json.loads(result.stdout)["pools"][0]["games"] == 4


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('"seq":3', '"seq":4', 3),
        ('"points":[', '"points":[1', 2),
        ('{"v":1,"seq":2', '{"v":2,"seq":2', 2),
        ('{"v":1,"seq":4', "", 4),
    ],
)
def test_any_other_damage_is_refused_with_file_and_line(
    tmp_path: Path, old: str, new: str, line: int
) -> None:
    write_results(tmp_path / "good", some_games(4))
    file = write_results(tmp_path / "bad", some_games(6))
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    result = tressette("ratings", tmp_path / "good", tmp_path / "bad")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {file}, line {line}: ")
    assert result.stdout == ""


def test_results_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    write_results(tmp_path / "1", [game_line(0, 0, ("a", "b"), (6, 60))])
    write_results(tmp_path / "2", [game_line(0, 0, ("a", "b"), (60, 6))])
    result = tressette("ratings", tmp_path / "1", tmp_path / "2")
    assert result.exit_code == 1
    assert "p0-l0-s0-g0" in result.stderr
    assert "two different results" in result.stderr


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    result = tressette("ratings", tmp_path)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {tmp_path} holds no results (in results-*.jsonl)\n"
    (tmp_path / "results-0001.jsonl").touch()
    write_results(tmp_path / "good", some_games(4))
    again = tressette("ratings", tmp_path / "good", tmp_path, "--json")
    assert (again.exit_code, again.stdout, again.stderr) == (1, "", result.stderr)
    assert tressette("ratings", tmp_path / "missing").exit_code == 2
    assert tressette("ratings").exit_code == 2


# --- help ------------------------------------------------------------------------------------------


def walk(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and everything below it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walk(below, *path, name)


COMMANDS = dict([*walk(tournament, "tournament"), *walk(ratings, "ratings")])
LEAVES = {path: one for path, one in COMMANDS.items() if not isinstance(one, click.Group)}


def test_the_commands_are_these() -> None:
    assert set(LEAVES) == {
        ("tournament", "check"),
        ("tournament", "resume"),
        ("tournament", "run"),
        ("tournament", "status"),
        ("tournament", "stop"),
        ("ratings",),
    }


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_of_every_command(path: tuple[str, ...]) -> None:
    for flag in ("--help", "-h"):
        result = tressette(*path, flag)
        assert result.exit_code == 0
        assert result.stdout.startswith(f"Usage: main {' '.join(path)} ")
        assert max(map(len, result.stdout.splitlines())) <= 80
    command = COMMANDS[path]
    assert command.help
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{option.name} is not explained"
            assert option.help.endswith(".")


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_exit_statuses_are_stated(path: tuple[str, ...]) -> None:
    text = tressette(*path, "--help").stdout
    _, stated, table = text.partition("Exit status:\n")
    assert stated
    numbers = [line.split()[0] for line in table.split("\n\n")[0].splitlines()]
    most = {"run": 4, "resume": 4, "stop": 3, "check": 3}.get(path[-1], 2)
    assert numbers == [str(number) for number in range(most + 1)]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (["tressette", "t"], ["token", "tournament"]),
        (["tressette", "ve"], ["verify"]),
        (["tressette", "tournament", ""], ["check", "run", "resume", "status", "stop"]),
        (["tressette", "tournament", "run", "--"], []),
    ],
)
def test_a_shell_completes_commands_that_cannot_be_run(line: list[str], names: list[str]) -> None:
    """Because their extra is not installed: it is told when they are called, not in the middle of a line."""
    without = "import sys; sys.modules['numpy'] = None; from tressette.cli import main; main([], 'tressette')"
    words = {
        "_TRESSETTE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(line),
        "COMP_CWORD": str(len(line) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", without],
        env=os.environ | words,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    found = [one.partition(",")[2] for one in done.stdout.splitlines()]
    assert [name for name in found if not name.startswith("--")] == names
