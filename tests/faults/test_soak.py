"""Twenty thousand deals through one server while its bots keep losing their streams.

Every bot is cut off again and again, at moments drawn from a fixed seed, and resumes its session: with its
positions, or as one that has lost its memory. Nothing may come of it: no fault, no game lost or played twice,
every game as the rules have it, and no more memory at the end than in the first half.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.streams import Client, connected, first_choice, has_ended, hello
from support.tables import game_spec
from support.watched import Options, Watched, watching
from tressette.record.replay import read_games, replay_game
from tressette.rules.presets import resolve
from tressette.v1 import arena_service_pb2 as pb

DEALS = 10
AT_ONCE = 48
SAMPLES = 40
RULES = resolve("traversone-003-21-duplicate", deals=DEALS)


class SoakBot:
    """A bot that is cut off after every few dozen batches. ``losses``: how often that was."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.losses = 0
        self._rng = random.Random(f"soak {name}")
        self._token = ""
        self._positions: dict[str, int] = {}

    async def play(self, address: str) -> None:
        """Play over one stream after the other, for as long as the arena has something for it."""
        while True:
            async with connected(address) as client:
                if self._rng.random() < 0.3:
                    self._positions.clear()  # as a bot that was started anew, but for its token
                if not await self._is_welcome(client):
                    return
                for _ in range(self._rng.randrange(10, 120)):
                    await self._answer(client)
            self.losses += 1

    async def leave(self, address: str) -> None:
        """Come back to say goodbye: a bot that was cut off as its last match ended is waited for."""
        async with connected(address) as client:
            if await self._is_welcome(client):
                await client.send(pb.PlayRequest(goodbye=pb.Goodbye()))
                assert (await client.ending()).reason == pb.ERROR_REASON_UNSPECIFIED

    async def _is_welcome(self, client: Client) -> bool:
        """Greet and resume. False: its session is gone, as it is where it was lost with nothing to hear."""
        known = [pb.MatchPosition(handle=h, last_event=n) for h, n in self._positions.items()]
        await client.send(
            hello(self.name, max_matches=64, resume_token=self._token, positions=known),
        )
        response = await client.receive()
        if response.WhichOneof("message") == "ending":
            assert response.ending.reason == pb.ERROR_REASON_RESUME_UNKNOWN, response
            return False
        assert response.welcome.resumed == bool(self._token), response
        self._token = response.welcome.resume_token
        return True

    async def _answer(self, client: Client) -> None:
        batch = await client.batch()
        assert not batch.errors, batch.errors
        turns = []
        for update in batch.updates:
            if update.events:
                assert update.first_event <= self._positions.get(update.handle, 0) + 1, "events are missing"
                self._positions[update.handle] = update.first_event + len(update.events) - 1
            if has_ended(update):
                del self._positions[update.handle]
            if update.HasField("turn"):
                turns.append(update)
        if turns:
            await client.answer(*map(first_choice, turns))


async def run(folder: Path, games: int) -> tuple[list[SoakBot], list[int], float]:
    """Play so many games; returns the bots, the server's memory along the way, and the seconds it took."""
    bots = [SoakBot(name) for name in "abcd"]
    async with watching(folder, Options(grace_s=60.0)) as at:
        begun = time.monotonic()
        async with asyncio.TaskGroup() as group:  # what goes wrong with a bot ends all
            tasks = [group.create_task(bot.play(at.address)) for bot in bots]
            memory = await keep_busy(at, games)
            took = time.monotonic() - begun
            for task in tasks:
                task.cancel()
        await asyncio.gather(*(bot.leave(at.address) for bot in bots))
        held = ("sessions", "streams", "games", "alive_sessions", "alive_streams")
        await at.until(lambda counts: not any(counts[name] for name in held), "empty")
    return bots, memory, took


async def keep_busy(at: Watched, games: int) -> list[int]:
    """Have so many games played, a few dozen at once; returns the memory as it was every so often, in KiB."""
    specs = (game_spec(f"g{n}", RULES, seed=n.to_bytes(32, "big")) for n in range(games))
    memory: list[int] = []
    tick = asyncio.Event()

    def finished(_result: dict[str, Any]) -> None:
        if (spec := next(specs, None)) is not None:
            at.play(spec)
        if len(at.results) % (games // SAMPLES) == 0:
            tick.set()

    at.on_finished = finished
    at.play(*itertools.islice(specs, AT_ONCE))
    while len(at.results) < games:
        await tick.wait()
        tick.clear()
        memory.append((await at.counts())["rss_kib"])
    return memory


def check(folder: Path, games: int, memory: list[int]) -> None:
    """Every game once, without a fault, as the rules have it; memory flat."""
    names = Counter[str]()
    for game in read_games(folder):
        names[game.opening["game"]] += 1
        assert game.result is not None
        assert game.result["faults"] == []
        assert game.result["deals"] == DEALS
        replay_game(game)
    assert names == {f"g{number}": 1 for number in range(games)}
    half = len(memory) // 2
    assert statistics.mean(memory[half:]) <= 1.1 * statistics.mean(memory[:half]), memory


@pytest.mark.timeout(120)
@pytest.mark.slow
async def test_a_short_soak(tmp_path: Path) -> None:
    bots, memory, _ = await run(tmp_path, games=40)
    check(tmp_path, 40, [*memory, memory[-1]])
    assert sum(bot.losses for bot in bots) > 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_twenty_thousand_deals(tmp_path: Path) -> None:
    games = 20_000 // DEALS
    bots, memory, took = await run(tmp_path, games)
    check(tmp_path, games, memory)
    losses = sum(bot.losses for bot in bots)
    print(  # noqa: T201 - figures for the notes
        f"{games * DEALS / took:.0f} deals/s, {losses} streams lost and resumed, "
        f"memory {memory[0]} to {memory[-1]} KiB"
    )
    assert losses > 100
