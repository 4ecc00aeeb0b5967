"""An arena under load: ``python arena.py FOLDER GAMES`` keeps so many games of four bots going.

It is what ``tressette.wire.host`` runs (rules, record, group sync), fed from inside so that no runner is
measured with it. Prints the port; then answers each line on standard input with one JSON line: ``count``
gives the turns played so far, ``times`` the microseconds from the write of each turn to its parsed answer
(with GAMES 1, where every turn is alone). The games are matches of ten deals, so that starting one weighs
what it weighs in play.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tressette.play.arena import Arena
from tressette.play.commit import GroupCommit
from tressette.play.config import PlayConfig
from tressette.play.session import Session
from tressette.record.game import GameSpec
from tressette.record.writer import Record
from tressette.rules.actions import Action
from tressette.rules.presets import resolve
from tressette.wire.logs import configure
from tressette.wire.server import ArenaServer

PRESET = "traversone-003-21-duplicate"


class Load:
    """Keeps ``games`` games under way."""

    def __init__(self, folder: Path, games: int) -> None:
        self._games = games
        self._rules = resolve(PRESET, deals=10)
        self._numbers = itertools.count(1)
        self._record = Record(folder, "bench")
        self.commit = GroupCommit(self._record, lambda _: None)
        self.arena = Arena(bytes(32), PlayConfig(10_000), self._record, on_finished=self._finished)

    def begin(self) -> None:
        for _ in range(self._games):
            self._submit()

    def _finished(self, _spec: GameSpec, result: dict[str, Any]) -> None:
        self.commit.add(result)
        self._submit()

    def _submit(self) -> None:
        number = next(self._numbers)
        self.arena.submit(
            GameSpec(
                game=f"g{number}",
                attempt=1,
                tournament="bench",
                preset=PRESET,
                rules=self._rules,
                bots=("b0", "b1", "b2", "b3"),
                deal_set=f"s{number}",
                set_size=1,
                deck=f"d{number}",
                seed=number.to_bytes(32, "big"),
                salt=bytes(32),
            )
        )


def _time_answers(times: list[float]) -> None:
    """Note when each answer has been parsed, against when its turn was about to be written."""
    inner = Session.answer

    def answer(self: Session, handle: str, turn: int, actions: Sequence[Action]) -> None:
        seat = self.seats.get(handle)
        if seat is not None and seat.sent_at is not None:
            times.append(round((time.monotonic() - seat.sent_at) * 1e6, 1))
        inner(self, handle, turn, actions)

    Session.answer = answer  # type: ignore[method-assign]


async def main(folder: str, games: int) -> None:
    configure("warning", "json")
    times: list[float] = []
    if games == 1:
        _time_answers(times)
    load = Load(Path(folder), games)
    server = ArenaServer(load.arena)
    print(await server.start("127.0.0.1:0"), flush=True)
    load.begin()
    committing = asyncio.create_task(load.commit.run())
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        print(json.dumps(load.arena.turns if line == "count" else times), flush=True)
        times.clear()
    committing.cancel()
    load.arena.close()
    await server.stop(0.2)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
