"""When a tournament opens no new deal sets: limits of games, sets and time, a target for ±, a decided SPRT.

A rule only says that nothing new begins: open deal sets finish and count. Source: "Elo" and "It runs all
night" of the tournament design. Decisions:

1. Games and deal sets are counted as they are opened, not as they finish: the same file opens the same sets
   however fast they are played. A set is never cut, so a limit of games may be passed by part of a set. What
   is left out because a bot was lost does not count: its games would use up the limit of the others. So at
   a limit no set is opened (``full``), but it is the end (``reason``) only when all of them have a result.
2. "± below x" is looked at when every bot has 30 decks, and then at every 10 more of the bot that has
   fewest: a ± that is looked at after every game stops at a moment when it happens to be small. It holds
   where each bot's ± exists, rests on 30 decks or more and is below x, in every pool.
3. A reason once given stays.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import inf
from typing import Final

from tressette_tournament.ratings import BotRating, PoolRatings, RatingFold
from tressette_tournament.sprt import Decision, SequentialTest

MIN_DECKS_PER_BOT: Final = 30
"""Decks of every bot before ± can end a tournament."""
DECKS_BETWEEN_LOOKS: Final = 10


class StopError(ValueError):
    """A limit that makes no sense. ``field`` is its name."""

    def __init__(self, field: str, value: object) -> None:
        super().__init__(f"{field}: {value} is not above 0")
        self.field = field


@dataclass(frozen=True, slots=True)
class Stop:
    """Limits, each above 0 or None for none. minutes: of wall time. error_below: ± at 95 %, in Elo.

    Raises StopError, which names the field.
    """

    games: int | None = None
    deal_sets: int | None = None
    minutes: float | None = None
    error_below: float | None = None

    def __post_init__(self) -> None:
        for field in ("games", "deal_sets", "minutes", "error_below"):
            value = getattr(self, field)
            if value is not None and not 0 < value < inf:
                raise StopError(field, value)


def limit_reached(what: str, limit: int) -> str:
    """What is said when a limit ends a tournament. what: of "games" or "deal sets"."""
    return f"the limit of {limit} {what} is reached"


def measured(below: float) -> str:
    """The same for a target for ±."""
    return f"the ± of every bot is below {below:g}"


def timed(minutes: float) -> str:
    """The same for the time."""
    return f"the time of {minutes:g} minutes is over"


class StopRules:
    """All rules of one tournament. test: of the SPRT, if it is one; its sets are added by its owner."""

    def __init__(self, stop: Stop, test: SequentialTest | None = None) -> None:
        self._stop = stop
        self._test = test
        self._next_look = MIN_DECKS_PER_BOT
        self._behind = ("", "")  # the bot that lacked most decks when they were counted
        self._reason: str | None = None
        self._by_count = False

    @property
    def by_count(self) -> bool:
        """Whether the reason is a limit of games or deal sets: a resumed run comes to it by itself."""
        return self._by_count

    def full(self, games: int, deal_sets: int) -> bool:
        """Whether a limit is reached by what was opened, some of which may still be left out."""
        limits = (games, self._stop.games), (deal_sets, self._stop.deal_sets)
        return any(limit is not None and count >= limit for count, limit in limits)

    def reason(
        self,
        *,
        games: int,
        deal_sets: int,
        seconds: float,
        ratings: RatingFold,
        bots: Collection[tuple[str, str]],
    ) -> str | None:
        """Why no new deal sets are to be opened, in words; None as long as they are.

        games, deal_sets: opened so far and certain to be played, open sets with all their games. seconds:
        wall time so far, by the caller's clock. bots: (preset, bot) of all whose ± matters: a bot that was
        lost would keep the others waiting. Costs a rating at a look, otherwise next to nothing.
        """
        if self._reason is None:
            found = self._decided() or self._measured(ratings, bots)
            if found is None:
                found = self._counted("deal sets", deal_sets, self._stop.deal_sets) or self._counted(
                    "games", games, self._stop.games
                )
                self._by_count = found is not None
            self._reason = found or self._timed(seconds)
        return self._reason

    def _decided(self) -> str | None:
        if self._test is None or self._test.report.decision is Decision.UNDECIDED:
            return None
        report = self._test.report
        return f"the SPRT accepts {report.decision} after {report.sets} deal sets, with LLR {report.llr:.2f}"

    def _measured(self, ratings: RatingFold, bots: Collection[tuple[str, str]]) -> str | None:
        below = self._stop.error_below
        if below is None or not bots:
            return None
        # Asked before every game: the first bot that lacks decks answers for all, and as a rule it still does
        # at the next game.
        if self._behind in bots and ratings.decks_of(*self._behind) < self._next_look:
            return None
        decks = {one: ratings.decks_of(*one) for one in bots}
        self._behind = min(decks, key=decks.__getitem__)
        fewest = decks[self._behind]
        if fewest < self._next_look:
            return None
        self._next_look = fewest - fewest % DECKS_BETWEEN_LOOKS + DECKS_BETWEEN_LOOKS
        if not all(_is_below(below, bot) for bot in _rated(ratings.rate(), bots)):
            return None
        return measured(below)

    def _counted(self, what: str, count: int, limit: int | None) -> str | None:
        return None if limit is None or count < limit else limit_reached(what, limit)

    def _timed(self, seconds: float) -> str | None:
        limit = self._stop.minutes
        return None if limit is None or seconds < 60 * limit else timed(limit)


def _rated(pools: Collection[PoolRatings], bots: Collection[tuple[str, str]]) -> list[BotRating]:
    return [
        bot
        for pool in pools
        for component in pool.components
        for bot in component.bots
        if (pool.preset, bot.bot) in bots
    ]


def _is_below(below: float, bot: BotRating) -> bool:
    return bot.interval.decks >= MIN_DECKS_PER_BOT and bot.error is not None and bot.error < below
