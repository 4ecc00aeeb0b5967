"""What the tests of schedules and formats share: tournaments in memory, results without a game, and a player
of whole schedules."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tressette_tournament.results import GameResult
from tressette_tournament.schedule import Game, Schedule
from tressette_tournament.tournament_file import Tournament, parse

Winner = Callable[[Game], Sequence[float]]
"""The strength shown by each seat in a game: the higher the better, equal ones draw."""

PRESETS = ("ciapano-31-duplicate", "tressette-due-duplicate", "traversone-pairs-duplicate")


def tournament(
    bots: int = 5, presets: Sequence[str] = PRESETS, deal_sets: int = 7, lines: str = "", **changes: object
) -> Tournament:
    """A tournament of ``bots`` bots named bot0, bot1, ... ``lines``: more lines of its [tournament]; the
    first bot is the challenger of a gauntlet. ``changes``: fields to replace after parsing."""
    challenger = "challenger = true\n" if '"gauntlet"' in lines else ""
    text = (
        f'[tournament]\nname = "event"\npresets = {json.dumps(presets)}\ndeal_sets = {deal_sets}\n{lines}\n'
    )
    for number in range(bots):
        text += f'[[bots]]\nname = "bot{number}"\nbot = "greedy"\n' + (challenger if number == 0 else "")
    parsed = parse(text, file="t.toml", folder=Path("/x"), reference_bots=["greedy"])
    return replace(parsed, **changes)  # type: ignore[arg-type]  # the tests name fields only


def by_number(game: Game) -> list[float]:
    """The bot with the lower number always wins."""
    return [-int(seat.removeprefix("bot")) for seat in game.seats]


def all_drawn(game: Game) -> list[float]:
    """Every game is drawn."""
    return [0] * len(game.seats)


def by_lot(seed: int) -> Winner:
    """Anybody wins, depending on the game's id only."""

    def winner(game: Game) -> list[float]:
        rng = random.Random(f"{seed}/{game.id}")
        return [rng.randrange(3) for _ in game.seats]

    return winner


def result_of(game: Game, winner: Winner = by_number) -> GameResult:
    """A result for a game; in pairs the strength of a side is that of its first seat."""
    strengths = list(winner(game))
    sides: tuple[tuple[str, ...], ...] = tuple((bot,) for bot in game.seats)
    if "pairs" in game.preset or game.preset.startswith("tressette-0"):
        sides = (game.seats[::2], game.seats[1::2])
        strengths = strengths[:2]
    return GameResult(
        game=game.id,
        deal_set=game.deal_set,
        set_size=game.set_size,
        deck=game.deck,
        pool=game.preset,
        preset=game.preset,
        objective="most",
        sides=sides,
        ranks=tuple(1 + sum(other > one for other in strengths) for one in strengths),
        points=(0,) * len(sides),
        deals=1,
    )


def play(schedule: Schedule, winner: Winner = by_number) -> Iterator[Game]:
    """Every game, each fixed before the next is issued."""
    while game := schedule.issue():
        yield game
        schedule.fix(game.id, result_of(game, winner))


class Disorder:
    """Plays a schedule as a night does: games finish in any order and some are cut. Counts as it goes.

    first: first attempts in order of issue. done: results in order of fixes. out: games under way. most_open:
    the most deal sets that were open at once.
    """

    def __init__(self, schedule: Schedule, seed: int, out_at_most: int, winner: Winner = by_number) -> None:
        self.schedule = schedule
        self.first: list[Game] = []
        self.done: list[GameResult] = []
        self.out: list[Game] = []
        self.most_open = 0
        self._left: Counter[str] = Counter()
        self._rng = random.Random(seed)
        self._out_at_most = out_at_most
        self._winner = winner

    def step(self) -> bool:
        """Issue, fix or roll back a game; False if there is nothing to do any more."""
        game = None
        if len(self.out) < self._out_at_most and (not self.out or self._rng.random() < 0.7):
            game = self.schedule.issue()
        if game is not None:
            self.out.append(game)
            if game.attempt == 1:
                self.first.append(game)
                self._left.setdefault(game.deal_set, game.set_size)
        elif self.out:
            game = self.out.pop(self._rng.randrange(len(self.out)))
            if self._rng.random() < 0.1:
                self.schedule.roll_back(game.id)
            else:
                self._fix(game)
        else:
            return False
        self.most_open = max(self.most_open, len(self._left))
        return True

    def run(self, steps: int | None = None) -> None:
        """Go on to the end, or for so many steps."""
        while steps != 0 and self.step():
            steps = None if steps is None else steps - 1

    def _fix(self, game: Game) -> None:
        result = result_of(game, self._winner)
        self.schedule.fix(game.id, result)
        self.done.append(result)
        self._left[game.deal_set] -= 1
        if self._left[game.deal_set] <= 0:
            del self._left[game.deal_set]
