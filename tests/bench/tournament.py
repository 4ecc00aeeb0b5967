"""What the tournament runner costs: ``python tournament.py [--full]``, a part of ``make bench``.

One JSON object per line: name, value and unit, and where there is something to compare with reference and
ratio = value / reference; ``load`` is the load average of the machine over the last minute. All presets with
different rules are played, single deals. The figures:

An event of 20 bots with 102,300 games, through the runner and a host that answers at once (``events.py``):

``runner_start``     seconds from the tournament file to the first game.
``runner_game``      microseconds of CPU time of the runner for a game, standings and status file included;
                     reference: those of server and bots for a real game.
``runner_memory_1%``, ``_50%``, ``_100%``  MB that the runner has in use after so many of 100,000 games;
                     reference: before it reads anything.
``standings_share``  percent of the time that rating took, ``standings_pool`` milliseconds for which the event
                     loop stood still for the ratings of one preset, the longest.
``runner_resume``    seconds from the tournament file to the first game with 100,000 results in the folder;
                     reference: what the games took to run through the runner.

Five real bots and the real server, games in the same order from the runner and from a loop that does nothing
else:

``tournament``       games per second; reference: with the loop. Medians of interleaved runs; the ratio is the
                     median of those of neighbours. 1 - ratio is what the runner takes.
``tournament_cpu``   milliseconds of CPU time of the runner for a game; reference: of server, bots and loop
                     together. Says the same on a machine that does other things, if its processors are never
                     idle.
``disk_tricks``, ``disk_results``  bytes for a deal; of tricks compressed, with reference uncompressed.

With ``--full`` more runs, and

``long_runner_10%``, ``_50%``, ``_100%``, ``long_server_10%``, ...  MB in use after so many of 10,725 real
                     games; reference: after 1 %.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tressette.record.segments import compress_segment, segments
from tressette.rules.presets import PRESETS

HERE: Final = Path(__file__).parent
RUNS, FULL_RUNS = 3, 7
STUB_GAMES: Final = 100_000
DEAL_SETS, FULL_DEAL_SETS = 4, 33
GAMES_A_SET: Final = 325
"""Of five bots over all presets, one deal set each."""


def tournament_file(folder: Path, bots: int, deal_sets: int, reveal_sets: int) -> Path:
    """An event with every preset that has rules of its own, in its form with one deal."""
    presets = {rules.hash(): name for name, rules in PRESETS.items() if name.endswith("-duplicate")}
    lines = [
        "[tournament]",
        'name = "bench"',
        f"presets = {json.dumps(sorted(presets.values()))}",
        f"deal_sets = {deal_sets}",
        f"reveal_sets = {reveal_sets}",
        "max_tables = 190",
        "concurrency = 64",
        'seed = "bench"',
        'output = "run"',
        "[clock]",
        "move_ms = 60000",
    ]
    for number in range(bots):
        lines += ["[[bots]]", f'name = "{"b" * (number + 1)}"', 'bot = "first_legal"']
    file = folder / "event.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def session(mode: str, file: Path, games: int) -> dict[str, Any]:
    """See ``events.py``."""
    done = subprocess.run(
        [sys.executable, str(HERE / "events.py"), mode, str(file), str(games)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def report(
    name: str, value: float, unit: str, reference: float | None = None, ratio: float | None = None
) -> None:
    line: dict[str, Any] = {"name": name, "value": round(value, 3), "unit": unit}
    if reference is not None:
        line |= {"reference": round(reference, 3), "ratio": round(ratio or value / reference, 3)}
    print(json.dumps({**line, "load": round(os.getloadavg()[0], 1)}), flush=True)


def report_memory(name: str, marks: dict[str, int], shares: tuple[str, ...], reference: str) -> None:
    for share in shares:
        report(f"{name}_{share}", marks[share] / 1024, "MB", marks[reference] / 1024)


def scale(folder: Path, real_game_us: float) -> None:
    """The event of 20 bots."""
    file = tournament_file(folder, 20, 11, 2)
    first, again = (session("stub", file, STUB_GAMES) for _ in range(2))
    report("runner_start", first["start_s"], "s")
    report("runner_game", first["own_cpu_s"] / first["timed"] * 1e6, "us", real_game_us)
    report_memory("runner_memory", first["rss_kb"], ("1%", "50%", "100%"), "start")
    play_s = first["play_s"] / first["timed"] * first["games"]
    report("standings_share", 100 * first["standings_s"] / play_s, "%")
    report("standings_pool", first["standings_ms"], "ms")
    assert again["done"] >= STUB_GAMES - 1
    report("runner_resume", again["start_s"], "s", play_s)


def overhead(folder: Path, runs: int) -> float:
    """Games with and without the runner. Returns the CPU time of server and bots for a game, microseconds."""
    file = tournament_file(folder, 5, DEAL_SETS, 1)
    games = GAMES_A_SET * DEAL_SETS
    rates: dict[str, list[float]] = {"runner": [], "bare": []}
    own: dict[str, list[float]] = {"runner": [], "bare": []}
    others: list[float] = []
    for number in range(runs):
        # Taking turns in who is first: the load of a machine that does other things drifts.
        for mode in ("bare", "runner") if number % 2 else ("runner", "bare"):
            shutil.rmtree(folder / "run", ignore_errors=True)
            measured = session(mode, file, games)
            assert measured["games"] == games
            if mode == "runner" and number == 0:
                disk(folder / "run", games)
            rates[mode].append(measured["timed"] / measured["play_s"])
            own[mode].append(1000 * measured["own_cpu_s"] / measured["timed"])
            others.append(1000 * measured["others_cpu_s"] / measured["timed"])
    of_others = statistics.median(others)
    runner, bare = statistics.median(rates["runner"]), statistics.median(rates["bare"])
    ratio = statistics.median(one / other for one, other in zip(*rates.values(), strict=True))
    report("tournament", runner, "games/s", bare, ratio)
    report(
        "tournament_cpu", statistics.median(own["runner"]), "ms", of_others + statistics.median(own["bare"])
    )
    return 1000 * of_others


def disk(folder: Path, games: int) -> None:
    """What a run has written."""
    results = sum(path.stat().st_size for path in folder.glob("results-*.jsonl"))
    tricks = [path for paths in segments(folder).values() for path in paths]
    plain = sum(path.stat().st_size for path in tricks)
    packed = sum(compress_segment(path).stat().st_size for path in tricks)
    report("disk_tricks", packed / games, "bytes", plain / games)
    report("disk_results", results / games, "bytes")


def long_run(folder: Path) -> None:
    """Memory over many real games."""
    games = GAMES_A_SET * FULL_DEAL_SETS
    measured = session("runner", tournament_file(folder, 5, FULL_DEAL_SETS, 2), games)
    assert measured["games"] == games
    report_memory("long_runner", measured["rss_kb"], ("10%", "50%", "100%"), "1%")
    report_memory("long_server", measured["server_kb"], ("10%", "50%", "100%"), "1%")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="more runs, and a long one")
    full = parser.parse_args().full
    with tempfile.TemporaryDirectory() as folder:
        real_game_us = overhead(Path(folder), FULL_RUNS if full else RUNS)
    with tempfile.TemporaryDirectory() as folder:
        scale(Path(folder), real_game_us)
    if full:
        with tempfile.TemporaryDirectory() as folder:
            long_run(Path(folder))


if __name__ == "__main__":
    main()
