"""``tressette tournament check``: good bots pass, each kind of bad one is named with what was wrong and where
to look. Bots are real processes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from support.runs import event, loaded, player, results, script, tressette, until
from tressette_tournament.check import NO_CLOCK_MS, OPPONENTS, rehearsal
from tressette_tournament.schedule import Schedule

ILLEGAL = player(before="from tressette.rules.cards import CARDS").replace(
    "view.legal[-1]", "next(card for card in CARDS if card not in view.legal)"
)
CRASH = "raise RuntimeError('out of luck')"
BAD = {
    "starting": CRASH,
    "midgame": player(each_turn=f"if self.turns > 30: {CRASH}"),
    "illegal": ILLEGAL,
    "asleep": "import time; time.sleep(600)",
    # It is alone with its game, so that it leaves between two games.
    "leaving": player(before="Scripted.max_matches = 1; Scripted.match_ended = lambda *_: os._exit(0)"),
}


class Checked:
    """A check that has been made. lines: of its output by bot, the first one as the key tells it."""

    def __init__(self, file: Path, *arguments: object) -> None:
        done = tressette("tournament", "check", file, *arguments)
        self.status, self.output, self.errors = done.exit_code, done.stdout, done.stderr
        self.lines: dict[str, list[str]] = {}
        for line in self.output.splitlines():
            if found := re.match(r"(\S+): (passes|DOES NOT PASS), \d+ games", line):
                self.lines[found[1]] = [line]
            elif line.startswith("  ") and self.lines:
                self.lines[list(self.lines)[-1]].append(line.strip())


def told(lines: list[str], what: str) -> str:
    """The line that begins with this."""
    (line,) = (line for line in lines if line.startswith(what))
    return line.removeprefix(what)


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """One check of a good bot and all the bad ones."""
    folder = tmp_path_factory.mktemp("bad")
    bots: dict[str, str | Path] = {"good": script(folder, "good", player())}
    bots |= {name: script(folder, name, text) for name, text in BAD.items()}
    file = event(folder, bots)
    text = file.read_text().replace('name = "asleep"', 'name = "asleep"\nstart_limit_s = 2\nrestarts = 0')
    file.write_text(text)
    return Checked(file, "--quiet", "--sets", 1, "--output", folder / "check")


@pytest.mark.parametrize(
    ("bot", "wrong"),
    [
        (
            "starting",
            "bot starting (instance 1) failed 4 times in a row, the last time it ended with status 1",
        ),
        ("midgame", "crash, "),
        ("illegal", "illegal, "),
        (
            "asleep",
            "bot asleep (instance 1) failed 1 times in a row, the last time it was killed, not having",
        ),
        ("leaving", "its processes ended by themselves, or did not connect, "),
    ],
)
def test_a_bad_bot_is_named_with_what_was_wrong(bad: Checked, bot: str, wrong: str) -> None:
    first, *lines = bad.lines[bot]
    assert first.startswith(f"{bot}: DOES NOT PASS, ")
    told(lines, wrong)
    folder, _, logs = told(lines, "its output: in ").rpartition(": ")
    for log in logs.split(", "):
        assert log.startswith(f"{bot}-1.")
        assert Path(folder, log).is_file()


def test_a_bot_that_is_too_slow_once_does_not_pass(tmp_path: Path) -> None:
    """By itself: a clock that strikes it soon would not wait for a good one on a busy machine."""
    slow = script(tmp_path, "slow", player(each_turn="if self.turns == 25: time.sleep(1.5)"))
    file = event(tmp_path, {"slow": slow, "other": "random"}, move_ms=1000)
    done = Checked(file, "--quiet", "--sets", 1)
    assert done.status == 1
    first, *lines = done.lines["slow"]
    assert first.startswith("slow: DOES NOT PASS, ")
    told(lines, "timeout, ")
    assert told(lines, "its output: in ").endswith(": slow-1.1.log")


def test_a_good_bot_passes_beside_bad_ones(bad: Checked) -> None:
    assert bad.lines["good"] == ["good: passes, 4 games without a fault"]
    assert bad.lines.keys() == {"good", *BAD}


def test_it_says_in_the_end_who_passes_and_where_to_look(bad: Checked) -> None:
    assert bad.status == 1
    summary, replay = bad.output.splitlines()[-2:]
    assert summary.startswith("1 of 6 bots pass. Games and logs: /")
    folder = Path(summary.partition("logs: ")[2])
    command = replay.partition(": ")[2].removesuffix(" GAME").split()
    game = told(bad.lines["illegal"][1:], "the first game with a fault: ")
    assert command[-1] == str(folder)
    shown = tressette(*command[command.index("replay") :], game)  # however the program was called
    assert shown.stdout.startswith(f"Game {game}, attempt 1: "), shown.stderr
    assert str(folder / "logs" / "bots" / "illegal-1.1.log") in shown.stdout


def test_the_error_of_a_crash_is_shown(bad: Checked) -> None:
    for bot in ("starting", "midgame"):
        assert told(bad.lines[bot][1:], "the last that it printed: ") == "RuntimeError: out of luck"


def test_bots_are_lost_while_it_goes_on(bad: Checked) -> None:
    assert {line.split()[1] for line in bad.errors.splitlines()} == {"starting", "asleep"}
    games = results(Path(bad.output.rpartition("logs: ")[2].split("\n")[0]))
    played = Counter(bot for line in games for bot in line["bots"])
    assert {bot: count for bot, count in played.items() if not bot.startswith("reference-")} == dict.fromkeys(
        ("good", "midgame", "illegal", "leaving"), 4
    )


def test_good_bots_pass(tmp_path: Path) -> None:
    presets = ("tressette-due-duplicate", "tressette-21-duplicate", "traversone-003-21-duplicate")
    mine = script(tmp_path, "mine", player())
    file = event(tmp_path, {"mine": mine, "house": "greedy"}, presets=presets[:2])
    file.write_text(file.read_text().replace("deal_sets", 'copies = "halves"\ndeal_sets'))
    file.write_text(file.read_text().replace(json.dumps(presets[:2]), json.dumps(presets)))
    before = set(tmp_path.iterdir())
    done = Checked(file, "--sets", "1")
    assert done.status == 0, done.output
    assert all(": passes, " in lines[0] and len(lines) == 1 for lines in done.lines.values())
    assert done.lines.keys() == {"mine", "house"}
    (folder,) = set(tmp_path.iterdir()) - before
    assert re.fullmatch(r"run-check-\d{8}-\d{6}", folder.name), "beside the folder of the run, never in it"
    assert done.output.endswith(f"2 of 2 bots pass. Games and logs: {folder}\n")
    games = results(folder)
    assert {line["preset"] for line in games} == set(presets)
    for line in games:
        assert {"mine", "house"} & set(line["bots"])
        assert any(bot.startswith("reference-") for bot in line["bots"])


@pytest.mark.slow
def test_two_copies_of_a_failing_bot_do_not_pass(tmp_path: Path) -> None:
    """A self-play check that passes a failing bot."""
    silent = script(tmp_path, "silent", player(each_turn="time.sleep(0.15)"))
    file = event(tmp_path, {"one": silent, "two": silent}, move_ms=50)
    file.write_text(file.read_text().replace("[clock]", "[clock]\nallowance_ms = 0"))
    done = Checked(file, "--quiet", "--sets", "1")
    assert done.status == 1
    for bot in ("one", "two"):
        assert done.lines[bot][0].startswith(f"{bot}: DOES NOT PASS")
        told(done.lines[bot][1:], "timeout, ")


@pytest.mark.parametrize("command", ["check", "run"])
def test_an_output_that_is_no_place_is_refused(tmp_path: Path, command: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    file = event(tmp_path, {"one": "random", "two": "greedy"})
    for output in ("loop", "loop/below"):
        result = tressette("tournament", command, file, "--output", tmp_path / output)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: [Errno ")
        assert "loop" in result.stderr


def test_bots_are_checked_against_others_without_a_clock_too(tmp_path: Path) -> None:
    file = event(tmp_path, {"one": "random", "two": "greedy"}, move_ms=0)
    clock = rehearsal(loaded(file), tmp_path / "check", 1).clock
    assert clock.move_ms == NO_CLOCK_MS
    banked = event(tmp_path, {"one": "random", "two": "greedy"}, move_ms=0)
    banked.write_text(banked.read_text().replace("[clock]", "[clock]\nbank_ms = 9000"))
    assert rehearsal(loaded(banked), tmp_path / "check", 1).clock == loaded(banked).clock


def test_a_bot_may_have_the_name_of_one_of_the_field(tmp_path: Path) -> None:
    file = event(tmp_path, {"reference-greedy": "random", "two": "greedy"})
    bots = rehearsal(loaded(file), tmp_path / "check", 1).bots
    assert len({bot.name for bot in bots}) == len(bots) == 4
    assert [bot.name for bot in bots if bot.challenger] == ["reference-greedy", "two"]


@pytest.mark.parametrize(
    "presets",
    [
        ("ciapano-five-duplicate", "tressette-due-duplicate"),
        ("ciapano-five-duplicate", "traversone-trio-duplicate", "tressette-21-duplicate"),
        ("traversone-003-21-duplicate", "traversone-trio-duplicate"),
    ],
)
@pytest.mark.parametrize("bots", [5, 9])
def test_any_mixture_of_tables_can_be_checked(tmp_path: Path, presets: tuple[str, ...], bots: int) -> None:
    names = [f"bot-{number}" for number in range(bots)]
    file = event(tmp_path, dict.fromkeys(names, "random"), presets=presets)
    schedule = Schedule(rehearsal(loaded(file), tmp_path / "check", 1))
    met: dict[str, set[tuple[str, str]]] = defaultdict(set)
    while (game := schedule.issue()) is not None:
        schedule.fix(game.id, None)
        (challenger,) = set(game.seats) & set(names)
        met[challenger] |= {(game.preset, other) for other in set(game.seats) - {challenger}}
    field = {f"reference-{name}" for name in OPPONENTS[: 4 if presets[0].startswith("ciapano") else 3]}
    assert met == {name: {(preset, other) for preset in presets for other in field} for name in names}


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["sprt", "ladder"])
def test_any_format_can_be_checked(tmp_path: Path, format_: str) -> None:
    preset = "traversone-003-21-duplicate" if format_ == "sprt" else "tressette-due-duplicate"
    file = event(tmp_path, {"one": "random", "two": "greedy"}, presets=(preset,))
    text = file.read_text().replace("[clock]", "[sprt]\nelo0 = 0\nelo1 = 5\n[clock]" * (format_ == "sprt"))
    text = text if format_ == "sprt" else file.read_text()
    file.write_text(text.replace("deal_sets", f'format = "{format_}"\ndeal_sets'))
    done = Checked(file, "--quiet", "--sets", "1")
    assert done.status == 0, done.output + done.errors


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    file = event(tmp_path, {"one": "random", "two": "greedy"})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").touch()
    done = Checked(file, "--output", tmp_path / "full")
    assert (done.status, done.output) == (1, "")
    assert done.errors == f"Error: {tmp_path / 'full'} is not empty: a check begins anew\n"
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["note"]


def test_a_bad_file_is_refused(tmp_path: Path) -> None:
    file = event(tmp_path, {"one": "ramdom", "two": "greedy"})
    done = Checked(file)
    assert (done.status, done.output) == (1, "")
    assert "did you mean 'random'?" in done.errors
    assert Checked(file, "--sets", "0").status == 2


def test_remote_bots_are_waited_for(tmp_path: Path) -> None:
    (tmp_path / "tokens.jsonl").touch()
    file = event(tmp_path, {"one": "random"})
    with file.open("a") as text:
        text.write('[server]\ntokens = "tokens.jsonl"\n')
        text.write('[[bots]]\nname = "far"\nremote = true\nstart_limit_s = 1\n')
    done = Checked(file, "--sets", "1")
    assert done.status == 1
    assert "remote bots connect to 127.0.0.1:" in done.output
    assert done.lines["one"][0].startswith("one: passes")
    assert "bot far has 0 of the 1 connections it needs, for 1 s" in done.lines["far"][1]


def test_a_check_that_is_stopped_says_nothing_of_the_bots(tmp_path: Path) -> None:
    asleep = script(tmp_path, "asleep", "open('started', 'w').close(); import time; time.sleep(600)")
    file = event(tmp_path, {"one": asleep, "two": "greedy"})
    command = [sys.executable, "-m", "tressette", "tournament", "check", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            until((tmp_path / "started").exists, "the bot")
            process.terminate()
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 3
    assert output.endswith("Stopped before its end: nothing was found out.\n")
    assert "PASS" not in output
