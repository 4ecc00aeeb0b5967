"""Standings while a run goes on: rated now and then, cut to what a glance needs, and put into words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # `status` and `stop` are quick because they need no numpy
    from tressette_tournament.ratings import PoolRatings


RATE_EVERY_S: Final = 10.0
"""Pause between two ratings of a running run, at least."""
RATE_SHARE: Final = 0.02
"""The part of the time that rating may take, at most: a rating that takes long is followed by a long
pause."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A bot in its component. rating: Elo; error: its ± at 95 %, None where there is none; low, high: the
    ends of the interval, None where the results do not bound it. games: those that count."""

    bot: str
    rating: float
    error: float | None
    low: float | None
    high: float | None
    games: int


@dataclass(frozen=True, slots=True)
class PoolStanding:
    """A preset. games: those that count; open_sets: deal sets that wait for games. components: groups of bots
    that games connect, best bot first."""

    preset: str
    games: int
    open_sets: int
    components: tuple[tuple[Standing, ...], ...]

    @property
    def bots(self) -> int:
        """How many bots there are in all components."""
        return sum(map(len, self.components))

    @property
    def uncertainty(self) -> float:
        """The largest ±, in Elo; infinite where a bot has none."""
        errors = [bot.error for component in self.components for bot in component]
        return max((float("inf") if error is None else error for error in errors), default=float("inf"))


def standings_of(pools: Iterable[PoolRatings]) -> tuple[PoolStanding, ...]:
    """What a glance needs of the ratings, in their order."""
    return tuple(
        PoolStanding(
            pool.preset,
            pool.games,
            len(pool.open_sets),
            tuple(
                tuple(
                    Standing(bot.bot, bot.rating, bot.error, bot.interval.low, bot.interval.high, bot.games)
                    for bot in component.bots
                )
                for component in pool.components
            ),
        )
        for pool in pools
    )


def pools_data(pools: Iterable[PoolStanding]) -> list[dict[str, Any]]:
    """Standings as plain data, under the names of the dataclasses."""
    return [asdict(pool) for pool in pools]


def pools_from(data: Iterable[Mapping[str, Any]]) -> tuple[PoolStanding, ...]:
    """The inverse. Raises KeyError and TypeError for what is something else."""
    return tuple(
        PoolStanding(
            pool["preset"],
            pool["games"],
            pool["open_sets"],
            tuple(tuple(Standing(**bot) for bot in component) for component in pool["components"]),
        )
        for pool in data
    )


def rating_text(standing: Standing) -> str:
    """``+45 ± 12``, ``> +350`` where only one side is bounded, ``+45 ± –`` where nothing can be said."""
    match standing.low, standing.high:
        case float(low), None:
            return f"> {low:+z.0f}"
        case None, float(high):
            return f"< {high:+z.0f}"
    error = "–" if standing.error is None else f"{standing.error:.0f}"
    return f"{standing.rating:+z.0f} ± {error}"


def standing_lines(pools: Sequence[PoolStanding], room: int | None = None) -> list[str]:
    """The standings in at most ``room`` lines (None: as many as it takes).

    A line a bot if all fit, otherwise a line a preset; of those as many as fit, the most uncertain first,
    then the largest. A line may be too wide: what it begins with matters most.
    """
    ordered = sorted(pools, key=lambda pool: (-pool.uncertainty, -pool.games, pool.preset))
    needed = sum(pool.bots + len(pool.components) for pool in ordered)
    if room is None or needed <= room:
        return [line for pool in ordered for line in _table(pool)]
    lines = [_row(pool) for pool in ordered]
    if len(lines) > room > 0:
        lines[room - 1 :] = [f"… and {len(lines) - room + 1} presets more"]
    return lines[:room]


def _table(pool: PoolStanding) -> Iterator[str]:
    for number, component in enumerate(pool.components, 1):
        part = f" ({number} of {len(pool.components)}, not comparable)" if len(pool.components) > 1 else ""
        waiting = f", {pool.open_sets} deal sets open" if pool.open_sets else ""
        yield f"{pool.preset}{part}: {pool.games} games{waiting}"
        ratings = [rating_text(bot) for bot in component]
        width = max(map(len, ratings))
        for rank, (bot, rating) in enumerate(zip(component, ratings, strict=True), 1):
            yield f"{rank:>4}  {rating:>{width}}  {bot.bot}"


def _row(pool: PoolStanding) -> str:
    groups = (", ".join(f"{bot.bot} {rating_text(bot)}" for bot in one) for one in pool.components)
    return f"{pool.preset}: {' | '.join(groups) or '–'}"


# --- rated now and then ----------------------------------------------------------------------------


async def rate_now_and_then(
    rate: Callable[[], Iterable[PoolRatings]],
    tell: Callable[[Sequence[PoolRatings]], None],
    note: Callable[[str], None],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Rate a run again and again while games are added to it, and tell what counts more games than before;
    never returns. ``rate`` gives pool after pool, each rated in the event loop, which stands still meanwhile.

    Results that cannot be rated are a note, once: standings are not worth a run.
    """
    pause, counted, failed = RATE_EVERY_S, 0, False
    while True:
        await sleep(pause)
        began = clock()
        try:
            pools = []
            for pool in rate():
                pools.append(pool)
                await asyncio.sleep(0)
        except ValueError as error:
            if not failed:
                note(f"no standings: {error}")
            failed = True
        else:
            games = sum(pool.games for pool in pools)
            if games != counted:
                tell(pools)
            counted = games
        pause = max(RATE_EVERY_S, (clock() - began) / RATE_SHARE)
