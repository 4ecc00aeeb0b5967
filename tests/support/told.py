"""What the tests of progress tell: finished games, ratings, and a clock that is moved by hand."""

from __future__ import annotations

from tressette_tournament.ratings import PoolRatings, rate
from tressette_tournament.results import GameResult


class Clock:
    """Seconds that pass when told."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def game(
    number: int,
    first: str = "a",
    second: str = "b",
    *,
    preset: str = "tressette-21",
    ranks: tuple[int, int] = (2, 1),
    faults: tuple[tuple[str, str, int], ...] = (),
) -> GameResult:
    """A finished game for two, a deal set by itself."""
    return GameResult(
        game=f"g{number}",
        deal_set=f"s{number}",
        set_size=1,
        deck=f"d{number}",
        pool=preset,
        preset=preset,
        objective="most",
        sides=((first,), (second,)),
        ranks=ranks,
        points=(6, 60),
        deals=1,
        faults=faults,
    )


def rated(*bots: str, presets: tuple[str, ...] = ("tressette-21",), games: int = 12) -> list[PoolRatings]:
    """Ratings of a round robin; each bot wins two of three games against those that come after it."""
    return rate(
        game(
            (index * 100 + i) * 100 + j + 1_000_000 * n,
            first,
            second,
            preset=preset,
            ranks=(1, 2) if n % 3 else (2, 1),
        )
        for index, preset in enumerate(presets)
        for i, first in enumerate(bots)
        for j, second in enumerate(bots)
        for n in range(games)
        if i < j
    )
