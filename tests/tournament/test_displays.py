"""What a run shows: a display that fits any terminal, lines that do not flood a log, JSON events."""

from __future__ import annotations

import io
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from support.told import Clock, game, rated
from tressette_tournament.displays import (
    REDRAWS_A_SECOND,
    JsonProgress,
    LiveProgress,
    PlainProgress,
    QuietProgress,
    display_for,
    duration_text,
    screen,
)
from tressette_tournament.progress import State, Tally

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def terminal(width: int = 80, height: int = 24) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=True,
        width=width,
        height=height,
        color_system=None,
        _environ={"TERM": "xterm"},
    )
    return console, out


def shown(out: io.StringIO) -> list[str]:
    """The lines that a terminal has got, without the codes; each redrawing begins with a new one."""
    return re.split(r"[\r\n]+", ESCAPES.sub("", out.getvalue()))


# --- words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (95, "95 s"), (720, "12 min"), (12_000, "3 h 20 min"), (187_200, "2 d 4 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def a_long_night(clock: Clock) -> Tally:
    """Much of everything, with names of every kind."""
    tally = Tally(clock)
    tally.begin(1_000_000, 5)
    bots = [f"bot-{number}-{'名' * 20}[red]" for number in range(6)]
    for number in range(200):
        tally.issued(f"p0-l0-s{number}-g0", "tressette-21", (bots[0], bots[1]))
    for number in range(60):
        tally.finished(
            game(number, bots[number % 6], bots[(number + 1) % 6], faults=((bots[number % 6], "timeout", 1),))
        )
    tally.standings(rated(*bots, presets=tuple(f"preset-{number}" for number in range(10)), games=8))
    for bot in bots[:3]:
        tally.lost(bot, f"bot {bot} ended 4 times; its output: /{'x' * 100}", ["log"])
    tally.stopping("stopping when the games under way are finished")
    clock.now += 30
    return tally


@pytest.mark.parametrize("height", [1, 2, 3, 5, 10, 24, 200])
def test_the_screen_has_the_figures_first_and_never_too_many_lines(height: int) -> None:
    lines = screen(a_long_night(Clock()).figures(), height)
    assert len(lines) <= height
    assert lines[0].startswith("games: 65 of 1000000, 2.0/s, faults: 60")
    text = "\n".join(lines)
    assert height < 10 or all(word in text for word in ("stopping", "lost: ", "faults", "running: 200"))
    assert height < 24 or text.count(" ± ") >= 10
    if height == 200:
        assert sum(line.startswith("preset-") for line in lines) == 10
        assert len([line for line in lines if re.match(r" +\d  +\S+ ± \d+  bot-", line)]) == 60


# --- on a terminal ---------------------------------------------------------------------------------


def test_live_display() -> None:
    console, out = terminal()
    clock = Clock()
    with LiveProgress(console, clock) as progress:
        progress.begin(total=8, done=3)
        for number in range(1, 4):
            progress.issued(f"g{number}", "tressette-21", ("a", "b"))
        clock.now += 0.5
        progress.finished(game(1, faults=(("a", "timeout", 2),)))
        progress.finished(game(2))
        progress.standings(rated("a", "b", games=24))
        progress.lost("c", "bot c ended 4 times")
        progress.note("a note with [brackets] in it")
    last = "\n".join(shown(out)[-12:])
    assert "games: 5 of 8, 4.0/s, 1 s left, faults: 2" in last
    assert re.search(r"tressette-21: 24 games\s+1 +\+\d+ ± \d+ +a\s+2 +-\d+ ± \d+ +b\s", last)
    assert "faults of a: timeout 2" in last
    assert "lost: c: bot c ended 4 times" in last
    assert re.search(r"running: 1, longest\s+0 s: g3 tressette-21: a, b", last)
    assert "a note with [brackets] in it" in "\n".join(shown(out))


@pytest.mark.parametrize(("width", "height"), [(1, 1), (10, 3), (40, 10), (80, 24), (200, 60)])
def test_it_fits_every_terminal(width: int, height: int) -> None:
    console, out = terminal(width, height)
    night = a_long_night(Clock())
    progress = LiveProgress(console)
    progress.figures = night.figures  # type: ignore[method-assign]
    with progress:
        pass
    lines = shown(out)
    assert max(map(cell_len, lines)) <= width
    last_drawing = lines[-height - 1 :]
    assert len([line for line in last_drawing if line]) <= height
    if width >= 40:
        words = ("games: 65 of 1000000", "stopping when", "preset-", "lost: ", "faults", "running: 200")
        assert all(word in "\n".join(last_drawing) for word in words)


def test_a_million_games_cost_a_few_redraws_a_second() -> None:
    console, out = terminal()
    began = time.monotonic()
    with LiveProgress(console) as progress:
        progress.begin(total=None, done=0)
        for number in range(20_000):
            progress.issued(f"g{number}", "tressette-21", ("a", "b"))
            progress.finished(game(number))
    redraws = out.getvalue().count("games: ")
    assert redraws <= 3 + REDRAWS_A_SECOND * (time.monotonic() - began)


def test_the_end_is_shown() -> None:
    console, out = terminal()
    with LiveProgress(console) as progress:
        progress.begin(total=4, done=4)
        progress.ended(State.COMPLETE, "")
    assert "games: 4 of 4" in "\n".join(shown(out))
    assert "complete" in "\n".join(shown(out))


# --- elsewhere -------------------------------------------------------------------------------------


def plain() -> tuple[PlainProgress, Clock, io.StringIO]:
    out, clock = io.StringIO(), Clock()
    return PlainProgress(Console(file=out, width=80), clock), clock, out


def test_plain_lines_come_every_five_seconds() -> None:
    progress, clock, out = plain()
    with progress:
        progress.begin(total=1000, done=0)
        for number in range(160):  # eight a second
            clock.now += 0.125
            progress.finished(game(number))
        progress.ended(State.STOPPED, "")
    assert out.getvalue().splitlines() == [
        "games: 0 of 1000 done before",
        "games: 40 of 1000, 8.0/s, 2 min left",
        "games: 80 of 1000, 8.0/s, 115 s left",
        "games: 120 of 1000, 8.0/s, 110 s left",
        "games: 160 of 1000, 8.0/s, 105 s left",
    ]


def test_a_night_does_not_flood_a_log() -> None:
    progress, clock, out = plain()
    with progress:
        progress.begin(total=None, done=0)
        pools = rated("a", "b", presets=("tressette-21", "traversone"), games=24)
        for number in range(8 * 3600):
            clock.now += 1
            progress.finished(game(number))
            if number % 10 == 0:
                progress.standings(pools)
    lines = out.getvalue().splitlines()
    games = [line for line in lines if line.startswith("games: ")]
    assert 8 * 60 <= len(games) <= 8 * 60 + 30
    standings = [line for line in lines if line.startswith("standings of ")]
    assert 2 * (8 * 12 - 2) <= len(standings) <= 2 * 8 * 12
    assert len(games) + len(standings) == len(lines)
    assert re.fullmatch(r"standings of tressette-21: a \+\d+ ± \d+, b -\d+ ± \d+", standings[1])


def test_the_last_game_has_its_line() -> None:
    progress, clock, out = plain()
    with progress:
        progress.begin(total=12, done=10)
        clock.now += 2
        progress.finished(game(1, faults=(("a", "timeout", 3),)))
        progress.finished(game(2))
        progress.ended(State.COMPLETE, "")
    assert out.getvalue().splitlines() == [
        "games: 10 of 12 done before",
        "games: 12 of 12, 1.0/s, faults: 3",
    ]


def test_the_games_of_a_ladder_have_no_end() -> None:
    progress, clock, out = plain()
    with progress:
        progress.begin(total=None, done=3)
        clock.now += 10
        progress.finished(game(1))
    assert out.getvalue().splitlines() == ["games: 3 done before", "games: 4, 6.0/min"]


def test_notes_are_whole_lines_as_they_are() -> None:
    text = "bot [bold]x[/bold] ended: " + "/a/long/path" * 20
    progress, _, out = plain()
    with progress:
        progress.note(text)
        progress.lost("x", text)
        progress.stopping(text)
    assert out.getvalue() == 3 * (text + "\n")


def test_quiet_is_quiet_but_for_trouble() -> None:
    out = io.StringIO()
    with QuietProgress(Console(file=out, width=80)) as progress:
        progress.begin(10, 0)
        progress.issued("g1", "tressette-21", ("a", "b"))
        progress.finished(game(1))
        progress.standings(rated("a", "b"))
        progress.lost("a", "bot a is lost")
        progress.note("trouble")
        progress.ended(State.INCOMPLETE, "")
    assert out.getvalue().splitlines() == ["bot a is lost", "trouble"]


def test_the_display_suits_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    console = terminal()[0]
    assert isinstance(display_for(console), LiveProgress)
    assert isinstance(display_for(Console(file=io.StringIO())), PlainProgress)
    assert isinstance(display_for(console, quiet=True), QuietProgress)
    assert isinstance(display_for(console, as_json=True), JsonProgress)


# --- JSON ------------------------------------------------------------------------------------------


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_events_have_the_fields_that_are_documented() -> None:
    out, clock = io.StringIO(), Clock(1_700_000_000.0)
    with JsonProgress(out, pytest.fail, clock) as progress:
        progress.begin(None, 3)
        progress.issued("g1", "tressette-21", ("a", "b"))
        progress.finished(game(1, "a\u2028[è]", faults=(("b", "timeout", 1),)))
        progress.returned("g2")
        progress.standings(rated("a", "b", games=24))
        progress.lost("a", "why", ["log"])
        progress.note("text\nof two lines")
        progress.info("where")
        progress.stopping("time is up")
        progress.ended(State.INCOMPLETE, "left out")
    found = events(out.getvalue())
    assert [one["event"] for one in found] == [
        *("begin", "game", "standings", "lost", "note", "info", "stopping", "ended")
    ]
    documented = dict(
        re.findall(r"^    (\w+) {2,}(.+(?:\n {15}.+)*)", str(JsonProgress.__doc__), re.MULTILINE)
    )
    assert set(documented) == {one["event"] for one in found}
    for one in found:
        fields = set(one) - {"event", "unix_ms"}
        assert all(re.search(rf"\b{field}\b", documented[one["event"]]) for field in fields), one
        assert one["unix_ms"] == 1_700_000_000_000
    begin, played, standings, lost, note, info, stopping, ended = found
    assert (begin["total"], begin["done"]) == (None, 3)
    assert (played["sides"], played["points"], played["done"]) == ([["a\u2028[è]"], ["b"]], [6, 60], 4)
    assert played["faults"] == [["b", "timeout", 1]]
    assert set(standings["pools"][0]["components"][0][0]) == {
        "bot",
        "rating",
        "error",
        "low",
        "high",
        "games",
    }
    assert (lost["bot"], lost["why"], lost["logs"]) == ("a", "why", ["log"])
    assert info["text"] == "where"
    assert (note["text"], stopping["text"]) == ("text\nof two lines", "time is up")
    assert (ended["state"], ended["reason"], ended["done"]) == ("incomplete", "left out", 4)


def test_every_event_is_written_out_at_once(tmp_path: Path) -> None:
    path = tmp_path / "events"
    with path.open("w") as out:
        progress = JsonProgress(out, pytest.fail)
        progress.begin(10, 0)
        assert len(events(path.read_text())) == 1
        progress.finished(game(1))
        assert len(events(path.read_text())) == 2


def test_when_nobody_reads_any_more_it_says_so_once_and_goes_on() -> None:
    read_end, write_end = os.pipe()
    troubles: list[str] = []
    with open(write_end, "w") as out:
        progress = JsonProgress(out, troubles.append)
        progress.begin(10, 0)
        os.close(read_end)
        progress.finished(game(1))
        progress.finished(game(2))
        progress.ended(State.COMPLETE, "")
    # Closing the stream, as the interpreter does at its end, has raised nothing.
    [trouble] = troubles
    assert "the run goes on" in trouble
