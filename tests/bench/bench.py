"""``make bench``: how fast the arena is, as ratios to something measured in the same run.

One JSON object per line: name, value, unit, reference (what it is compared with, measured the same way in
the same run) and ratio = value / reference. The figures:

``turns``            turns per second through the server with rules and record on, 64 games at once over
                     four bot streams from four processes; reference: round trips per second of a bare
                     grpc.aio echo, one message a turn, over four streams from four processes. Median of five
                     interleaved runs.
``turns_one_process``  the same with the four streams of either side in one client process.
``lone_turn_p50``, ``lone_turn_p99``  microseconds from the write of a turn to its parsed answer, one game
                     alone; reference: the echo's round trip, same percentile.
``rules``            cards per second of random whole deals through the public rules API, dealing included;
                     reference: the same of pyspiel's hearts driven from Python, chance actions included.

Then those of ``tournament.py``, which takes ``--full`` from here too.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
RUNS: Final = 5
SECONDS: Final = 3.0
GAMES: Final = 64
NAMES: Final = ("b0", "b1", "b2", "b3")


@contextmanager
def process(script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A script of this folder as a child that goes when the block ends."""
    child = subprocess.Popen(
        [sys.executable, str(HERE / script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        assert child.stdin is not None
        child.stdin.close()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def read(child: subprocess.Popen[str]) -> Any:
    """The next JSON line of a child."""
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise RuntimeError(f"{child.args!r} ended early")
    return json.loads(line)


def ask(child: subprocess.Popen[str], question: str) -> Any:
    """Send a line to a child and read its answer."""
    assert child.stdin is not None
    child.stdin.write(question + "\n")
    child.stdin.flush()
    return read(child)


def groups(processes: int) -> list[tuple[str, ...]]:
    """The four names over one or four processes."""
    return [NAMES] if processes == 1 else [(name,) for name in NAMES]


@contextmanager
def arena(games: int, processes: int) -> Iterator[subprocess.Popen[str]]:
    """A loaded arena and its bots, warmed up."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(process("arena.py", folder, str(games)))
        port = str(read(server))
        bots = [stack.enter_context(process("bots.py", port, *names)) for names in groups(processes)]
        while not ask(server, "count"):
            if any(bot.poll() is not None for bot in bots):
                raise RuntimeError("a bot ended early")
            time.sleep(0.05)
        time.sleep(1.0)  # let every process reach its stride
        yield server
        server.kill()  # the bots need not play on while the block is left
        for bot in bots:
            bot.kill()


def turns_per_second(processes: int) -> float:
    with arena(GAMES, processes) as server:
        start, before = time.perf_counter(), ask(server, "count")
        time.sleep(SECONDS)
        after, end = ask(server, "count"), time.perf_counter()
    return float(after - before) / (end - start)


def echoes_per_second(processes: int) -> float:
    with ExitStack() as stack:
        server = stack.enter_context(process("echo.py", "serve"))
        port, streams = str(read(server)), str(4 // processes)
        clients = [
            stack.enter_context(process("echo.py", "client", port, streams, str(SECONDS)))
            for _ in range(processes)
        ]
        return sum(float(read(client)) for client in clients) / SECONDS


def percentiles(times: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100)
    return {"p50": cuts[49], "p99": cuts[98]}


def lone_turns() -> dict[str, float]:
    with arena(1, 4) as server:
        ask(server, "times")
        time.sleep(SECONDS)
        return percentiles(ask(server, "times"))


def lone_echoes() -> dict[str, float]:
    with process("echo.py", "serve") as server:
        port = str(read(server))
        with process("echo.py", "client", port, "1", str(SECONDS), "--each") as client:
            return percentiles(read(client))


def cards_per_second(deals: int = 3000) -> float:
    """Random whole deals of four through the public rules API."""
    from tressette.rules.actions import PlayCard
    from tressette.rules.cards import cards_of
    from tressette.rules.deck import seeded
    from tressette.rules.match import Match
    from tressette.rules.presets import PRESETS

    rules, rng = PRESETS["traversone-003-21-duplicate"], random.Random(1)
    start = time.perf_counter()
    for number in range(deals):
        match = Match(rules, seeded(number.to_bytes(32, "big")))
        match.start()
        while not match.over:
            seat = match.pending[0]
            match.act(seat, (PlayCard(rng.choice(cards_of(match.legal(seat).cards))),))
    return deals * 40 / (time.perf_counter() - start)


def hearts_per_second(deals: int = 1000) -> float | None:
    """Random whole deals of pyspiel's hearts, or None where pyspiel is not installed."""
    try:
        import pyspiel
    except ImportError:
        return None
    game, rng = pyspiel.load_game("hearts"), random.Random(1)
    cards = 0
    start = time.perf_counter()
    for _ in range(deals):
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                actions, weights = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(rng.choices(actions, weights)[0])
            else:
                state.apply_action(rng.choice(state.legal_actions()))
                cards += 1
    return cards / (time.perf_counter() - start)


def report(name: str, value: float, unit: str, reference: float) -> None:
    line = {
        "name": name,
        "value": round(value, 1),
        "unit": unit,
        "reference": round(reference, 1),
        "ratio": round(value / reference, 3),
    }
    print(json.dumps(line), flush=True)


def main() -> None:
    for name, processes in (("turns", 4), ("turns_one_process", 1)):
        runs = [(turns_per_second(processes), echoes_per_second(processes)) for _ in range(RUNS)]
        turns, echoes = (statistics.median(column) for column in zip(*runs, strict=True))
        report(name, turns, "turns/s", echoes)
    lone = [(lone_turns(), lone_echoes()) for _ in range(RUNS)]
    for percentile in ("p50", "p99"):
        turn, echo = (
            statistics.median(one[percentile] for one in column) for column in zip(*lone, strict=True)
        )
        report(f"lone_turn_{percentile}", turn, "us", echo)
    rules = [(cards_per_second(), hearts_per_second()) for _ in range(RUNS)]
    hearts = [reference for _, reference in rules if reference is not None]
    if hearts:
        report("rules", statistics.median(own for own, _ in rules), "cards/s", statistics.median(hearts))
    else:
        print("rules: skipped, pyspiel is not installed (pip install open_spiel)", file=sys.stderr)
    subprocess.run([sys.executable, str(HERE / "tournament.py"), *sys.argv[1:]], check=True)


if __name__ == "__main__":
    main()
