"""The tournament files in tournament/examples: each is run as it is, by the commands in its head.

They are copied first, so that what they leave is nobody's but the test's.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from support.documents import Desk, comment_blocks, running
from support.ports import lasting_address
from support.runs import result_lines, results, until
from tressette.rules.presets import PRESETS, canonical_name, resolve
from tressette.rules.ruleset import Partners
from tressette_bot.bots import REFERENCE_BOTS
from tressette_tournament.stop_rules import Stop
from tressette_tournament.tournament_file import Format, Tournament, dump, parse

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "tournament" / "examples").glob("*.toml"))


def head(name: str) -> list[str]:
    """The commands in the head of an example, block by block."""
    return comment_blocks((ROOT / "tournament" / "examples" / f"{name}.toml").read_text(encoding="utf-8"))


def example(name: str) -> Tournament:
    """An example, read; whether its keys and tokens are there is not looked at."""
    file = ROOT / "tournament" / "examples" / f"{name}.toml"
    text = file.read_text(encoding="utf-8")
    return parse(text, file=str(file), folder=file.parent, reference_bots=REFERENCE_BOTS)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A checkout with nothing in it but the examples and the bots that they name."""
    for folder in ("tournament/examples", "clients/python/examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return Desk(tmp_path)


# --- all of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_it_loads_and_its_resolved_form_too(file: Path) -> None:
    tournament = example(file.stem)
    again = parse(dump(tournament), file=str(file), folder=file.parent, reference_bots=REFERENCE_BOTS)
    assert again == tournament
    assert Path(tournament.output).parent in (ROOT / "out", file.parent / "../../out", file.parent)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_its_head_says_what_it_is_for_and_how_to_run_it(file: Path) -> None:
    first = file.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# ")
    assert len(first) > 20
    if file.stem == "demo":
        assert "make demo" in first
        return
    commands = "".join(head(file.stem))
    assert f"tressette tournament run tournament/examples/{file.stem}.toml" in commands


def test_they_are_those_that_are_promised() -> None:
    formats = {file.stem: example(file.stem).format for file in EXAMPLES}
    assert formats == {
        "demo": Format.ROUND_ROBIN,
        "quick": Format.ROUND_ROBIN,
        "overnight": Format.ROUND_ROBIN,
        "ab": Format.SPRT,
        "remote": Format.ROUND_ROBIN,
        "ladder": Format.LADDER,
    }


def test_the_night_is_over_every_preset_that_can_be_rated() -> None:
    played = {choice.rules for choice in example("overnight").presets}
    wanted = {
        resolve(canonical_name(f"{name}-duplicate"))
        for name, rules in PRESETS.items()
        if not name.endswith("-duplicate") and rules.partners is not Partners.DRAWN
    }
    assert played == wanted
    assert example("overnight").stop == Stop(minutes=480, error_below=15)


# --- each as it is ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_quick(desk: Desk) -> None:
    (run,) = head("quick")
    output = desk.run(run, timeout_s=100)
    assert output.count("mine") == 2
    games = results(desk.folder / "out" / "quick")
    assert Counter(line["preset"] for line in games) == {
        "tressette-21-duplicate": 6 * 2 * 40,
        "traversone-003-21-duplicate": 4 * 40,
    }
    assert not any(line["faults"] for line in games)


@pytest.mark.slow
def test_ab(desk: Desk) -> None:
    (run,) = head("ab")
    output = desk.run(run, timeout_s=100)
    assert "SPRT of version-2 against version-1: H1 accepted" in output
    assert (desk.folder / "out" / "ab" / "sprt.json").is_file()


@pytest.mark.slow
def test_ladder(desk: Desk) -> None:
    run, watch = head("ladder")
    status, stop = watch.splitlines()
    folder = desk.folder / "out" / "ladder"
    with running(desk, run, desk.folder / "output.txt") as process:
        until(lambda: folder.exists() and result_lines(folder) >= 40, "forty games")
        assert "ladder: running" in desk.run(status)
        assert "stopped, games: " in desk.run(stop)
        assert process.wait(60) == 3
    assert "go on with: " in (desk.folder / "output.txt").read_text()
    assert {bot for line in results(folder) for bot in line["bots"]} == {
        bot.name for bot in example("ladder").bots
    }


@pytest.mark.slow
def test_remote(desk: Desk) -> None:
    # Only the port is another: that of the file may be in use on the machine of the test.
    file, port = desk.folder / "tournament" / "examples" / "remote.toml", lasting_address().rpartition(":")[2]
    assert "localhost:50443" in file.read_text()
    file.write_text(file.read_text().replace("50443", port))
    prepare, run, bots = (block.replace("50443", port) for block in head("remote"))
    desk.run(prepare)
    keys = desk.folder / "out" / "keys"
    for secret in ("ca.key", "server.key", "alice.token", "tokens.jsonl"):
        assert (keys / secret).stat().st_mode & 0o077 == 0
    with running(desk, run, desk.folder / "output.txt") as process:
        until(lambda: f"localhost:{port}" in (desk.folder / "output.txt").read_text(), "the server")
        desk.run(bots, timeout_s=100)
        assert process.wait(60) == 0
    games = results(desk.folder / "out" / "remote")
    assert len(games) == 2 * 3 * 50
    assert {bot for line in games for bot in line["bots"]} == {"alice", "bob", "house"}
    assert not any(line["faults"] for line in games)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_overnight(desk: Desk) -> None:
    evening, morning = head("overnight")
    check, night = evening.splitlines()
    status, resume = morning.splitlines()
    assert "6 of 6 bots pass" in desk.run(check, timeout_s=200)
    folder = desk.folder / "out" / "overnight"
    # In the evening the terminal is closed; here its shell ends.
    desk.run(night)
    until(lambda: folder.exists() and result_lines(folder) >= 200, "two hundred games", timeout_s=60)
    assert "overnight: running" in desk.run(status)
    stop = f"tressette tournament stop {folder}"
    assert "stopped, games: " in desk.run(stop)
    before = result_lines(folder)
    assert (desk.folder / "overnight.txt").is_file()
    with running(desk, resume, desk.folder / "output.txt") as process:
        until(lambda: result_lines(folder) >= before + 50, "fifty games more", timeout_s=60)
        desk.run(stop)
        assert process.wait(60) == 3
    games = Counter(line["game"] for line in results(folder))
    assert set(games.values()) == {1}
