"""Decks that are due to be revealed when there is no room for them."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import virtual_time
from support.runs import event, loaded
from tressette.record.reveals import RevealFile, read_reveals
from tressette_tournament.folder import open_event, say_revealed
from tressette_tournament.retirement import Retirement

GAMES = [f"p0-l0-s{number}-g{game}" for number in range(120) for game in range(2)]


def refusing(real: Callable[..., Any], number: int, times: int) -> Callable[..., Any]:
    """A function that the system refuses the first few times it is called."""
    left = iter(range(times))

    def refused(*arguments: Any) -> Any:
        if next(left, None) is not None:
            raise OSError(number, "refused")
        return real(*arguments)

    return refused


async def reveal_for(seconds: float, folder: Path) -> float:
    """Have the decks of 100 set numbers revealed; returns when the last was, by virtual time."""
    tournament = loaded(event(folder, {"a": "first_legal", "b": "first_legal"}, deal_sets=120))
    (folder / "run").mkdir()
    rules = {choice.name: choice.rules for choice in tournament.presets}
    told: dict[str, float] = {}

    def retired(decks: Any) -> None:
        told.update(dict.fromkeys(decks, asyncio.get_running_loop().time()))

    one = Retirement(open_event(tournament), rules, lambda: 120)
    try:
        for game in GAMES:
            one.played(game)
        async with asyncio.timeout(seconds):
            await one.work(retired)
    except TimeoutError:
        pass
    finally:
        one.close()
    return max(told.values(), default=0.0)


def revealed(folder: Path, seconds: float) -> float:
    return virtual_time.run(reveal_for(seconds, folder))


def test_they_are_revealed_when_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RevealFile, "add", refusing(RevealFile.add, errno.ENOSPC, 30))
    monkeypatch.setattr(
        "tressette_tournament.retirement.say_revealed", refusing(say_revealed, errno.EDQUOT, 3)
    )
    assert revealed(tmp_path, 3600) > 60
    assert {one.game for one in read_reveals(tmp_path / "run")} == set(GAMES[:200])
    assert json.loads((tmp_path / "run" / "event.json").read_text())["revealed_sets"] == 100


def test_other_errors_are_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RevealFile, "add", refusing(RevealFile.add, errno.EIO, 1))
    with pytest.raises(OSError, match="refused"):
        revealed(tmp_path, 3600)
