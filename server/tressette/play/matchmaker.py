"""Casual matches on an open arena: whoever is free plays, the least busy first.

Each free session is one player; matches of all offered presets take turns. Sessions of one bot may meet:
an open arena rates nobody.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import deque
from collections.abc import Sequence
from typing import Final

from tressette.play.arena import Arena
from tressette.play.session import Session
from tressette.record.game import GameSpec
from tressette.rules.ruleset import RuleSet

_AT_ONCE: Final = 32


class Matchmaker:
    """Keeps an arena busy with games of ``presets``, given as (name, rules); ``run`` begins their ids."""

    def __init__(self, arena: Arena, presets: Sequence[tuple[str, RuleSet]], run: str) -> None:
        self._arena = arena
        self._presets = deque(presets)  # whose turn it is first
        self._count = itertools.count(1)
        self._run = run

    def fill(self) -> None:
        """Start as many games as there are free players for; where those are many, some now and more in the
        next pass of the loop, so that nobody is held up."""
        for _ in range(_AT_ONCE):
            if self._arena.draining:
                return
            here = [
                session
                for sessions in self._arena.sessions.values()
                for session in sessions
                if session.attached and not session.draining
            ]
            preset, rules = chosen = self._choose(len(here))
            free = [session for session in here if session.has_room]
            if len(free) < rules.players:
                return
            free.sort(key=lambda session: session.playing)
            self._arena.start(self._spec(preset, rules, free[: rules.players]), free[: rules.players])
            self._presets.remove(chosen)
            self._presets.append(chosen)
        asyncio.get_running_loop().call_soon(self.fill)

    def _choose(self, here: int) -> tuple[str, RuleSet]:
        """The preset whose turn it is. One that needs more players than are here holds nobody up; one whose
        players are merely busy is waited for, or small games would leave it none."""
        return next((one for one in self._presets if one[1].players <= here), self._presets[0])

    def _spec(self, preset: str, rules: RuleSet, players: Sequence[Session]) -> GameSpec:
        game = f"{self._run}-{next(self._count)}"
        return GameSpec(
            game=game,
            attempt=1,
            tournament="",
            preset=preset,
            rules=rules,
            bots=tuple(session.name for session in players),
            deal_set=game,
            set_size=1,
            deck=game,
            seed=secrets.token_bytes(32),
            salt=secrets.token_bytes(32),
        )
