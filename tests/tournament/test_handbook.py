"""tournament/README.md: what it tells an organiser to type is run here as it is written."""

from __future__ import annotations

import re
import shlex
import shutil
from fnmatch import fnmatch
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from support.documents import Desk, blocks, running
from support.runs import result_lines, results, until
from tressette.cli import main

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "tournament" / "README.md").read_text(encoding="utf-8")
INLINE = [" ".join(code.split()) for code in re.findall(r"`(tressette [^`]+)`", TEXT)]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_event_from_the_first_command_to_the_last(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    shutil.copytree(ROOT / "tournament" / "examples", tmp_path / "tournament" / "examples")
    file, folder = tmp_path / "cup.toml", tmp_path / "cup-run"
    (config,) = blocks(TEXT, "toml")
    file.write_text(config)
    check, run, watch, stop, resume, extend, after = blocks(TEXT, "sh")

    assert "4 of 4 bots pass" in desk.run(check)

    # Its own bot hesitates, so that the run is still at work when it is stopped, however slow the machine is.
    hold = tmp_path / "hold"
    bot = tmp_path / "tournament" / "examples" / "bots" / "version_2.py"
    choose = "def choose(self, view: View) -> Card:\n"
    text = bot.read_text()
    assert choose in text
    wait = f"        while os.path.exists({str(hold)!r}): time.sleep(0.02)\n"
    bot.write_text("import os, time\n" + text.replace(choose, choose + wait))
    hold.touch()
    with running(desk, run, tmp_path / "output.txt") as process:
        until(lambda: folder.exists() and result_lines(folder) >= 1, "a game")
        assert "cup: running" in desk.run(watch)
        with running(desk, stop, tmp_path / "stop.txt") as stopping:
            until(lambda: "again to stop now" in (tmp_path / "output.txt").read_text(), "the answer")
            hold.unlink()
            assert stopping.wait(60) == 0
        assert "stopped, games: " in (tmp_path / "stop.txt").read_text()
        assert process.wait(60) == 3
    begun = len(results(folder))
    assert begun < (total := 6 * 2 * 20 + 4 * 20)

    assert "Record, logs and ratings.json" in desk.run(resume)
    assert len(results(folder)) == total

    assert "write `deal_sets = 25` in place of 20" in TEXT
    file.write_text(config.replace("deal_sets = 20", "deal_sets = 25"))
    desk.run(run, status=1)
    desk.run(extend)
    assert len(results(folder)) == total * 25 // 20

    said = desk.run(after)
    assert "Verified: cup-run" in said
    assert (tmp_path / "cup-tables" / "games.csv").is_file()
    in_table = re.findall(r"`([^`]+)`", TEXT.partition("| in `cup-run` | |")[2].partition("```")[0])
    for path in folder.iterdir():
        name = f"{path.name}/" if path.is_dir() else path.name
        assert any(fnmatch(name, pattern) for pattern in in_table), f"{name} is not in the table"


@pytest.mark.parametrize("command", INLINE)
def test_commands_within_the_text_exist(command: str) -> None:
    words = shlex.split(command)[1:]
    here: click.Command = main
    while isinstance(here, click.Group):
        found = here.get_command(click.Context(here), words.pop(0))
        assert found is not None, command
        here = found
    options = {option for param in here.params for option in param.opts}
    assert {word for word in words if word.startswith("--")} <= options


def test_statuses_are_those_of_the_help() -> None:
    table = re.findall(r"^\| (\d) \| (.+) \|$", TEXT, re.MULTILINE)
    text = CliRunner().invoke(main, ["tournament", "run", "--help"]).output.partition("Exit status:\n")[2]
    assert table == re.findall(r"^ +(\d)  (.+)$", text, re.MULTILINE)


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert links
    for link in links:
        assert (ROOT / "tournament" / link).exists(), link


def test_every_example_is_listed() -> None:
    listed = set(re.findall(r"\(examples/(\w+\.toml)\)", TEXT))
    assert listed == {file.name for file in (ROOT / "tournament" / "examples").glob("*.toml")}
