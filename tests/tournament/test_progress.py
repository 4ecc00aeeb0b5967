"""What a run shows: a live display that fits 80 columns, plain lines that do not flood a log."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console
from tressette_tournament.progress import LiveProgress, PlainProgress, progress_for
from tressette_tournament.results import GameResult

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def game(
    number: int,
    first: str = "a",
    second: str = "b",
    *,
    points: tuple[int, int] = (6, 60),
    preset: str = "tressette-21",
    objective: str = "most",
    deals: int = 1,
    faults: tuple[tuple[str, str, int], ...] = (),
) -> GameResult:
    """A finished game for two."""
    return GameResult(
        game=f"g{number}",
        deal_set=f"s{number}",
        set_size=1,
        deck=f"d{number}",
        pool=preset,
        preset=preset,
        objective=objective,
        sides=((first,), (second,)),
        ranks=(2, 1),
        points=points,
        deals=deals,
        faults=faults,
    )


def terminal(width: int = 80) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=True, width=width, height=24, color_system=None, _environ={"TERM": "xterm"}
    )
    return console, out


def shown(out: io.StringIO) -> list[str]:
    """The lines that a terminal has got, without the codes; each redrawing begins with a new one."""
    return re.split(r"[\r\n]+", ESCAPES.sub("", out.getvalue()))


# --- on a terminal ---------------------------------------------------------------------------------


def test_live_display() -> None:
    console, out = terminal()
    clock = Clock()
    with LiveProgress(console, clock) as progress:
        progress.begin(total=8, done=3)
        clock.now += 0.5
        progress.finished(game(1, faults=(("a", "timeout", 2),)))
        progress.finished(game(2, points=(66, 12)))
        progress.note("a note with [brackets] in it")
    last = "\n".join(shown(out)[-12:])
    assert "5/8" in last
    assert "4/s" in last
    assert re.search(r"tressette-21 *│ a 6\.00 {2}b 6\.00", last)
    assert "faults so far: 2" in last
    assert "a note with [brackets] in it" in "\n".join(shown(out))


def test_the_best_is_first_also_where_few_points_are_good() -> None:
    console, out = terminal()
    with LiveProgress(console) as progress:
        progress.begin(total=2, done=0)
        progress.finished(game(1))
        progress.finished(game(2, preset="traversone", objective="least"))
    text = "\n".join(shown(out))
    assert re.search(r"tressette-21 *│ b 10\.00 {2}a 1\.00", text)
    assert re.search(r"traversone *│ a 1\.00 {2}b 10\.00", text)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_many_bots_with_long_names_fit(width: int) -> None:
    console, out = terminal(width)
    with LiveProgress(console) as progress:
        progress.begin(total=1_000_000, done=0)
        for number in range(400):
            first, second = f"bot-{number % 20}-{'x' * 50}", f"bot-{(number + 1) % 20}"
            progress.finished(game(number, first, second, preset=f"preset-{number % 10}-of-a-long-name"))
        progress.note("a note: " + "word " * 100)
    lines = shown(out)
    assert max(map(cell_len, lines)) <= width
    assert width < 80 or any("400/1000000" in line for line in lines)


def test_a_game_without_a_deal_does_not_upset_the_display() -> None:
    console, out = terminal()
    with LiveProgress(console) as progress:
        progress.begin(total=1, done=0)
        progress.finished(game(1, points=(0, 0), deals=0))
    assert "1/1" in "\n".join(shown(out))


def test_nothing_to_do() -> None:
    console, out = terminal()
    with LiveProgress(console) as progress:
        progress.begin(total=4, done=4)
    assert "4/4" in "\n".join(shown(out))


# --- elsewhere -------------------------------------------------------------------------------------


def plain() -> tuple[PlainProgress, Clock, io.StringIO]:
    out, clock = io.StringIO(), Clock()
    return PlainProgress(Console(file=out, width=80), clock), clock, out


def test_plain_lines_come_every_five_seconds() -> None:
    progress, clock, out = plain()
    with progress:
        progress.begin(total=1000, done=0)
        for number in range(200):  # ten a second
            clock.now += 0.1
            progress.finished(game(number))
    assert out.getvalue().splitlines() == [
        "games: 0 of 1000 done before",
        "games: 50 of 1000, 10/s, 95 s left",
        "games: 100 of 1000, 10/s, 90 s left",
        "games: 150 of 1000, 10/s, 85 s left",
        "games: 200 of 1000, 10/s, 80 s left",
    ]


def test_the_last_game_has_its_line() -> None:
    progress, clock, out = plain()
    with progress:
        progress.begin(total=12, done=10)
        clock.now += 2
        progress.finished(game(1))
        progress.finished(game(2))
    assert out.getvalue().splitlines() == ["games: 10 of 12 done before", "games: 12 of 12, 1/s, 0 s left"]


def test_notes_are_whole_lines_as_they_are() -> None:
    progress, _, out = plain()
    text = "bot [bold]x[/bold] ended: " + "/a/long/path" * 20
    with progress:
        progress.note(text)
    assert out.getvalue() == text + "\n"


def test_the_display_suits_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    assert isinstance(progress_for(terminal()[0]), LiveProgress)
    assert isinstance(progress_for(Console(file=io.StringIO())), PlainProgress)
