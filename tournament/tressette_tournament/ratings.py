"""Ratings: a pure fold from finished games to tables.

Vocabulary. A **pool** is all games with the same resolved rules. A **deal set** is the statistical
unit: it counts when all its games are there, otherwise it is **open** and only listed. A **component**
is a set of bots that the games of a pool connect; ratings of two components have nothing to do with
each other. y is 1, 1/2 or 0 as one side of a game ranked above, with or below another.

Source: the "Elo" section of the tournament design; the fit is bradley_terry.py, the errors are
intervals.py. Decisions:

1. Every two sides of a game make a row. A forfeited game makes only rows of the offender's bot, alone,
   against each side that it did not sit on, all lost. Rows with x = 0 are dropped, and the others do
   not weigh more for it.
2. Components are connected by rows: a bot that only ever met its own copies is one by itself.
3. Score and cross table use the rows that the rating uses, each oriented by the sign of the bot's
   coefficient. So a forfeit lowers the offender's score and raises nobody's, and the cross table's n
   may differ between (A, B) and (B, A).
4. Points per deal are all points over all deals, of played games only: a forfeited game ends with
   points that say nothing about play.
5. Every figure, faults and games too, is of complete deal sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations

import numpy as np

from tressette_tournament.bradley_terry import Evidence, Row, Tally, components, fit, gather, side_difference
from tressette_tournament.intervals import Comparisons, Interval, clustered_ratio, clustered_score
from tressette_tournament.results import GameResult

SIXTHS = 6


class ConflictingResultsError(ValueError):
    """Two results of one game differ. ``game`` is its id."""

    def __init__(self, game: str) -> None:
        super().__init__(f"game {game!r} has two different results")
        self.game = game


class InconsistentDealSetError(ValueError):
    """The games of a deal set disagree on its deck or size, or are too many. ``deal_set`` is its id."""

    def __init__(self, deal_set: str) -> None:
        super().__init__(f"the games of deal set {deal_set!r} disagree on its deck or size, or are too many")
        self.deal_set = deal_set


@dataclass(frozen=True, slots=True)
class OpenSet:
    """A deal set that waits for games: ``have`` of ``want`` are there."""

    deal_set: str
    have: int
    want: int


@dataclass(frozen=True, slots=True)
class BotRating:
    """One bot in one component.

    rating: Elo relative to the component's mean (before forfeits); an estimate that leans on the prior
    where ``interval`` is not two-sided. score: mean y, None if all rows had x = 0. points_per_deal: of
    the bot's side, in points, None if it played no deal; points_error: its ±. faults: (kind, count).
    """

    bot: str
    rating: float
    interval: Interval
    games: int
    deal_sets: int
    score: float | None
    points_per_deal: float | None
    points_error: float | None
    faults: tuple[tuple[str, int], ...]

    @property
    def error(self) -> float | None:
        """Half of the 95 % interval of the rating, in Elo, if it is two-sided."""
        return self.interval.half_width


@dataclass(frozen=True, slots=True)
class PairRating:
    """An ordered pair of bots: difference in Elo, LOS (0 to 1), and how the first did in ``rows``
    against the second (mean y, None if they never met)."""

    difference: float
    interval: Interval
    los: float | None
    rows: int
    score: float | None
    score_interval: Interval | None


@dataclass(frozen=True, slots=True)
class ComponentRatings:
    """bots: by rating, best first, then by name. pairs: every ordered pair, in the same order."""

    bots: tuple[BotRating, ...]
    pairs: Mapping[tuple[str, str], PairRating]


@dataclass(frozen=True, slots=True)
class PoolRatings:
    """components: largest first, then by first name. games, deal_sets, decks: those that count."""

    pool: str
    preset: str
    objective: str
    games: int
    deal_sets: int
    decks: int
    open_sets: tuple[OpenSet, ...]
    components: tuple[ComponentRatings, ...]


def rate(results: Iterable[GameResult]) -> list[PoolRatings]:
    """Rate every pool, sorted by preset name and pool. The order of ``results`` changes no bit.

    Raises ConflictingResultsError where a game appears twice and differs (identical ones count once), and
    InconsistentDealSetError.
    """
    games: dict[str, GameResult] = {}
    for result in results:
        if games.setdefault(result.game, result) != result:
            raise ConflictingResultsError(result.game)
    pools: dict[str, list[GameResult]] = {}
    for result in games.values():
        pools.setdefault(result.pool, []).append(result)
    rated = [_rate_pool(pool, played) for pool, played in pools.items()]
    return sorted(rated, key=lambda pool: (pool.preset, pool.pool))


def _rate_pool(pool: str, games: Sequence[GameResult]) -> PoolRatings:
    complete, waiting = _by_completeness(games)
    tally = tally_rows(complete)
    ledgers = _ledgers(complete)
    rated = []
    for bots in components(ledgers, {row for _, row in tally}):
        own = {key: counts for key, counts in tally.items() if key[1].terms[0][0] in bots}
        rated.append(_rate_component(gather(bots, own), ledgers))
    rated.sort(key=lambda component: (-len(component.bots), component.bots[0].bot))
    return PoolRatings(
        pool,
        min(game.preset for game in games),
        min(game.objective for game in games),
        len(complete),
        len({game.deal_set for game in complete}),
        len({game.deck for game in complete}),
        waiting,
        tuple(rated),
    )


def _by_completeness(games: Iterable[GameResult]) -> tuple[list[GameResult], tuple[OpenSet, ...]]:
    """The games of complete deal sets, and the open sets by id."""
    sets: dict[str, list[GameResult]] = {}
    for game in games:
        sets.setdefault(game.deal_set, []).append(game)
    complete: list[GameResult] = []
    waiting = []
    for name, members in sorted(sets.items()):
        want = members[0].set_size
        if len({(game.deck, game.set_size) for game in members}) > 1 or len(members) > want:
            raise InconsistentDealSetError(name)
        if len(members) == want:
            complete += members
        else:
            waiting.append(OpenSet(name, len(members), want))
    return complete, tuple(waiting)


def tally_rows(games: Iterable[GameResult]) -> Tally:
    """Count the rows of games by deck and x."""
    net: Counter[tuple[str, Row]] = Counter()
    count: Counter[tuple[str, Row]] = Counter()
    for game in games:
        for row, won in rows_of(game):
            net[game.deck, row] += won
            count[game.deck, row] += 1
    return {key: (net[key], rows) for key, rows in count.items()}


def rows_of(game: GameResult) -> Iterator[tuple[Row, int]]:
    """The rows of one game, each with +1, 0 or -1 for won, drawn or lost by its positive side."""
    size = len(game.sides)
    if game.forfeit is not None and game.offender is not None:
        for side in game.sides[: game.forfeit] + game.sides[game.forfeit + 1 :]:
            terms, scale = side_difference((game.offender,), side)
            if terms:
                yield Row(terms, scale, size, game.offender), -1
        return
    for i, j in combinations(range(size), 2):
        terms, scale = side_difference(game.sides[i], game.sides[j])
        won = (game.ranks[i] < game.ranks[j]) - (game.ranks[i] > game.ranks[j])
        if terms and terms[0][1] < 0:
            terms, won = tuple((bot, -coefficient) for bot, coefficient in terms), -won
        if terms:
            yield Row(terms, scale, size), won


@dataclass(slots=True)
class _Ledger:
    """What one bot did, in integers. points, deals: by deck; points in sixths."""

    games: int = 0
    deal_sets: set[str] = field(default_factory=set)
    points: Counter[str] = field(default_factory=Counter)
    deals: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def points_per_deal(self) -> tuple[float, Interval] | None:
        decks = sorted(self.deals)
        points = np.array([self.points[deck] for deck in decks], np.int64)
        return clustered_ratio(points, SIXTHS * np.array([self.deals[deck] for deck in decks], np.int64))


def _ledgers(games: Iterable[GameResult]) -> dict[str, _Ledger]:
    ledgers: dict[str, _Ledger] = {}
    for game in games:
        for bot in {bot for side in game.sides for bot in side}:
            ledger = ledgers.setdefault(bot, _Ledger())
            ledger.games += 1
            ledger.deal_sets.add(game.deal_set)
        for bot, kind, count in game.faults:
            ledgers[bot].faults[kind] += count
        if game.forfeit is None:
            for side, points in zip(game.sides, game.points, strict=True):
                for bot in set(side):
                    ledgers[bot].points[game.deck] += points
                    ledgers[bot].deals[game.deck] += game.deals
    return ledgers


def _rate_component(evidence: Evidence, ledgers: Mapping[str, _Ledger]) -> ComponentRatings:
    comparisons = Comparisons.of(fit(evidence))
    elo = comparisons.fit.elo.tolist()
    # Equals may differ in the last bits: rounded, so that they are ordered by name.
    order = sorted(range(len(elo)), key=lambda bot: (-round(elo[bot], 6), evidence.bots[bot]))
    bots = tuple(_rate_bot(comparisons, bot, ledgers[evidence.bots[bot]]) for bot in order)
    pairs = {
        (evidence.bots[bot], evidence.bots[other]): _rate_pair(comparisons, bot, other)
        for bot, other in permutations(order, 2)
    }
    return ComponentRatings(bots, pairs)


def _rate_bot(comparisons: Comparisons, bot: int, ledger: _Ledger) -> BotRating:
    evidence = comparisons.fit.evidence
    _, score = _score(evidence, bot, None)
    points = ledger.points_per_deal()
    return BotRating(
        evidence.bots[bot],
        float(comparisons.fit.elo[bot]),
        comparisons.against_mean(bot),
        ledger.games,
        len(ledger.deal_sets),
        score[0] if score else None,
        points[0] if points else None,
        points[1].half_width if points else None,
        tuple(sorted(ledger.faults.items())),
    )


def _rate_pair(comparisons: Comparisons, bot: int, other: int) -> PairRating:
    elo = comparisons.fit.elo
    interval, los = comparisons.difference(bot, other)
    rows, score = _score(comparisons.fit.evidence, bot, other)
    mean, error = score or (None, None)
    return PairRating(float(elo[bot] - elo[other]), interval, los, rows, mean, error)


def _score(evidence: Evidence, bot: int, other: int | None) -> tuple[int, tuple[float, Interval] | None]:
    """Rows of a bot (against another on the opposing side), and its clustered mean y in them."""
    rows = evidence.bears_on(bot)
    if other is not None:
        rows &= evidence.x[:, bot] * evidence.x[:, other] < 0
    sign = (np.sign(evidence.x[:, bot]) * rows).astype(np.int64)[evidence.row]
    count = evidence.per_deck(np.abs(sign) * evidence.count)
    return int(count.sum()), clustered_score(evidence.per_deck(sign * evidence.net), count)
