"""A night in which everything goes wrong, in virtual time: the bots crash and freeze, the disk is full for a
while, runner and server are killed, and in the morning all is there and true."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from support.night import Character, Sessions, World, session
from support.runs import loaded, results, tricks
from support.virtual_time import VirtualLoop
from tressette.record.reader import read_lines, read_results
from tressette.record.segments import segments
from tressette_tournament.processes import log_of
from tressette_tournament.ratings import rate
from tressette_tournament.results import GameResult
from tressette_tournament.verify import Checked, verify

pytestmark = pytest.mark.slow

HOUR = 3600.0
STEADY = {"anna": Character(), "bruno": Character(by_chance=True), "carla": Character(by_chance=True)}
SHAKY = {
    "crasher": Character(by_chance=True, crash_every_s=900),
    "sleeper": Character(by_chance=True, freeze_every_s=1200, freeze_s=25),
}
AT_ONCE = Character(think_s=(0.0, 0.0), starts_s=(0.0, 0.0))


def night_file(folder: Path, *, deal_sets: int, minutes: int | None, isolation: str = "relabel") -> Path:
    lines = [
        "[tournament]",
        'name = "night"',
        'presets = ["tressette-due-duplicate", "tressette-21-duplicate"]',
        f"deal_sets = {deal_sets}",
        "concurrency = 12",
        'output = "run"',
        'seed = "night"',
        "reveal_sets = 10",
        f'isolation = "{isolation}"',
        "window = 24",
        "[clock]",
        "move_ms = 2000",
        *(["[stop]", f"minutes = {minutes}"] if minutes is not None else []),
    ]
    for name in (*STEADY, *SHAKY):
        lines += ["[[bots]]", f'name = "{name}"', 'bot = "random"', "instances = 3", "restarts = 1000"]
    file = folder / "night.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.fixture(autouse=True)
def _quiet() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


class Night:
    """A run from its first session to its end. objects: how many Python objects there were, every quarter of
    an hour, in each session; ended_at: in seconds."""

    def __init__(self, file: Path, characters: dict[str, Character], chance: random.Random) -> None:
        self.file = file
        self.folder = file.parent / "run"
        self.sessions = Sessions()
        self.objects: list[list[int]] = []
        self.ended_at = 0.0
        self.world: World
        self._characters = characters
        self._chance = chance

    def run(self, trouble: Iterator[Trouble]) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner, pytest.MonkeyPatch.context() as patch:
            runner.run(self._run(patch, trouble))

    async def _run(self, patch: pytest.MonkeyPatch, trouble: Iterator[Trouble]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.world = World(loop, self._characters, self._chance)
        self.world.install(patch)
        watching = asyncio.create_task(self._watch())
        over = False
        while not over:
            self.objects.append([])
            one = next(trouble, Trouble())
            for seconds, what in one.during:
                loop.call_later(seconds, what, self.world)
            over = await session(self.world, loaded(self.file), self.sessions, one.killed_after_s)
        self.ended_at = loop.time()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(HOUR / 4)
            gc.collect()
            self.objects[-1].append(len(gc.get_objects()))


@dataclass(frozen=True)
class Trouble:
    """What happens in one session. during: after so many seconds; killed_after_s: None for one that is left
    to end by itself."""

    killed_after_s: float | None = None
    during: tuple[tuple[float, Callable[[World], None]], ...] = ()


def disk_full_for(seconds: float) -> Callable[[World], None]:
    return lambda world: world.fill_disk(seconds)


def server_crashes(world: World) -> None:
    assert world.host is not None
    world.host.kill()


def undisturbed(folder: Path, deal_sets: int) -> Night:
    """The same event with bots that answer at once and have no faults."""
    folder.mkdir()
    characters = {name: replace(AT_ONCE, by_chance=one.by_chance) for name, one in (STEADY | SHAKY).items()}
    night = Night(night_file(folder, deal_sets=deal_sets, minutes=None), characters, random.Random(0))
    night.run(iter(()))
    assert night.sessions.outcomes == ["complete"]
    return night


def set_number(line: dict[str, Any]) -> int:
    return int(line["deal_set"].rpartition("-s")[2])


def test_a_night_in_which_everything_goes_wrong(tmp_path: Path) -> None:
    file = night_file(tmp_path, deal_sets=1_000, minutes=8 * 60)
    night = Night(file, STEADY | SHAKY, random.Random("a night"))
    began = time.monotonic()
    night.run(
        iter(
            (
                Trouble(1.0),
                Trouble(40.0),
                Trouble(0.7 * HOUR, ((0.5 * HOUR, disk_full_for(1200)),)),
                Trouble(None, ((0.6 * HOUR, server_crashes),)),
                Trouble(2 * HOUR, ((HOUR, disk_full_for(3)), (1.1 * HOUR, disk_full_for(600)))),
            )
        )
    )
    print("NIGHT", time.monotonic() - began, night.ended_at / HOUR, night.sessions)
    print(night.objects, night.world.crashes, night.world.freezes, night.world.starts, night.world.refusals)
    played = results(night.folder)
    print(len(played), Counter(str(f) for line in played for f in [[b, k] for b, k, _ in line["faults"]]))
