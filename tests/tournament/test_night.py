"""A night in which everything goes wrong, in virtual time: the bots crash and freeze, the disk is full for a
while, runner and server are killed, and in the morning all is there and true."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from support import virtual_time
from support.night import Character, Sessions, World, session
from support.runs import loaded, results
from support.virtual_time import VirtualLoop
from tressette.record.reader import read_lines
from tressette.record.segments import segments
from tressette_tournament.processes import log_of
from tressette_tournament.ratings import rate
from tressette_tournament.results import GameResult
from tressette_tournament.verify import Checked, verify

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
        "concurrency = 6",
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
        with pytest.MonkeyPatch.context() as patch:
            virtual_time.run(self._run(patch, trouble))

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


def among_steady(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if set(line["bots"]) <= STEADY.keys()]


def table(lines: list[dict[str, Any]]) -> Any:
    return rate(map(GameResult.from_line, lines))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_night_in_which_everything_goes_wrong(tmp_path: Path) -> None:
    file = night_file(tmp_path, deal_sets=1_000, minutes=8 * 60)
    night = Night(file, STEADY | SHAKY, random.Random("a night"))
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
    sessions, world = night.sessions, night.world
    assert sessions.outcomes == ["killed", "killed", "killed", "server killed", "killed", "complete"]
    assert 8 * HOUR < night.ended_at < 9 * HOUR
    assert world.refusals > 1000
    assert [note.partition(":")[0] for note in sessions.notes] == [
        "games stand still until there is room",
        "there is room again after 1200 s",
        "games stand still until there is room",
        "there is room again after 3 s",
        "games stand still until there is room",
        "there is room again after 600 s",
    ]

    # Every game of the schedule once: that of an event with as many deal sets.
    played = results(night.folder, "attempt")
    assert len(played) > 3000
    calm = undisturbed(tmp_path / "calm", max(map(set_number, played)) + 1)
    by_game = {line["game"]: line for line in results(calm.folder, "attempt")}
    assert len(played) == len({line["game"] for line in played})
    begun = {line["deal_set"] for line in played}
    assert {line["game"] for line in played} == {
        game for game, line in by_game.items() if line["deal_set"] in begun
    }, "deal sets that were begun are complete"
    assert len(by_game) - len(played) < 2 * len(by_game) / (max(map(set_number, played)) + 1)

    # What had no fault is what it is in a calm night, and so is the table of those who have none.
    faulty = {line["game"] for line in played if line["faults"]}
    assert all(line == by_game[line["game"]] for line in played if line["game"] not in faulty)
    steady = among_steady(results(night.folder))
    assert faulty.isdisjoint(line["game"] for line in steady)
    assert table(steady) == table([by_game[line["game"]] | {"attempt": 1} for line in steady])

    # Everything is attributed: to who did it, and to the process that did, whose output is there.
    assert {(bot, kind) for line in played for bot, kind, _ in line["faults"]} == {
        ("crasher", "crash"),
        ("sleeper", "timeout"),
    }
    assert sessions.lost == {}
    assert sessions.failures.keys() == {"crasher"}
    kills = len(sessions.outcomes)
    assert world.crashes["crasher"] - kills <= sessions.failures["crasher"] <= world.crashes["crasher"]
    crashed = processes_of("crasher", faulty, night.folder)
    assert crashed
    logs = [log_of(night.folder / "logs" / "bots", process) for process in crashed]
    assert sum("RuntimeError" in log.read_text() for log in logs) > world.crashes["crasher"] / 2

    # The record is whole but for the lines that were cut off.
    checked = Checked()
    assert list(verify(night.folder, checked)) == []
    assert checked.games == len(played)
    assert 0 < len(checked.torn) <= 2 * kills
    assert checked.manifest

    # The longest session takes no more memory at its end than in its second hour.
    objects = max(night.objects, key=len)
    assert len(objects) > 12
    assert max(objects[-4:]) < 1.3 * max(objects[4:8])


def processes_of(bot: str, games: set[str], folder: Path) -> set[str]:
    """The processes of a bot that have played these games."""
    lines = [line for paths in segments(folder).values() for path in paths for line in read_lines(path)]
    return {
        process
        for line in lines
        if line["kind"] == "match" and line["game"] in games
        for name, process in zip(line["bots"], line["processes"], strict=True)
        if name == bot
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_night_with_fresh_processes(tmp_path: Path) -> None:
    """Every table of a deck gets processes that have not seen it, so that they are replaced all the time."""
    file = night_file(tmp_path, deal_sets=12, minutes=None, isolation="fresh")
    night = Night(file, STEADY | SHAKY, random.Random("fresh"))
    night.run(iter((Trouble(200.0), Trouble(HOUR, ((600.0, disk_full_for(900)),)))))
    assert night.sessions.outcomes[-1] == "complete"
    assert night.sessions.lost == {}
    played = results(night.folder, "attempt")
    calm = undisturbed(tmp_path / "calm", 12)
    by_game = {line["game"]: line for line in results(calm.folder, "attempt")}
    assert by_game.keys() == {line["game"] for line in played}
    assert len(by_game) == len(played)
    assert all(line == by_game[line["game"]] for line in played if not line["faults"])
    assert all(not line["faults"] for line in among_steady(played))
    assert night.world.starts["anna"] > 50
    assert list(verify(night.folder, Checked())) == []


def test_bots_are_not_blamed_for_a_server_that_stands_still(tmp_path: Path) -> None:
    """One that crashes meanwhile, or is being started, cannot get in again until it is over."""
    file = night_file(tmp_path, deal_sets=3, minutes=None)
    characters = STEADY | {"crasher": Character(crash_every_s=60), "sleeper": Character()}
    night = Night(file, characters, random.Random("held"))

    def hold(world: World) -> None:
        assert world.host is not None
        world.host.hold(2 * HOUR)

    night.run(iter((Trouble(None, ((120.0, hold),)),)))
    assert night.ended_at > 2 * HOUR
    assert night.sessions.outcomes == ["complete"]
    assert night.sessions.lost == {}
    assert night.sessions.failures == night.world.crashes
    assert night.world.crashes["crasher"] > 3
