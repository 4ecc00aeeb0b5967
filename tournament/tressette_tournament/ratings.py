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
5. Every figure, faults and games too, is of complete deal sets; the faults in open ones are listed apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations

import numpy as np

from tressette_tournament.bradley_terry import Evidence, Row, arrange, components, fit, side_difference
from tressette_tournament.compact import Digests, Sums
from tressette_tournament.intervals import Comparisons, Interval, clustered_ratio, clustered_score
from tressette_tournament.results import GameResult

SIXTHS = 6
SET_BYTES = 400
"""What a complete set of two games with a deck of its own costs a RatingFold, at most."""


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
    """components: largest first, then by first name. games, deal_sets, decks: those that count.
    open_faults: (bot, kind, count) in the games of open sets."""

    pool: str
    preset: str
    objective: str
    games: int
    deal_sets: int
    decks: int
    open_sets: tuple[OpenSet, ...]
    open_faults: tuple[tuple[str, str, int], ...]
    components: tuple[ComponentRatings, ...]


def rate(results: Iterable[GameResult]) -> list[PoolRatings]:
    """Rate every pool, sorted by preset name and pool. The order of ``results`` changes no bit.

    Raises ConflictingResultsError where a game appears twice and differs (identical ones count once), and
    InconsistentDealSetError.
    """
    fold = RatingFold()
    for result in results:
        fold.add(result)
    return fold.rate()


class RatingFold:
    """Results one by one, in any order, and the ratings of those so far.

    Memory: the games of open deal sets; 24 to 48 bytes for each game and each complete set, to know it
    again; 24 bytes for each row of a deck and for each bot of a deck, shared by all sets on the deck; the
    name of each deck. That is under SET_BYTES for a set of two games with a deck of its own, and half as
    much again for the moment in which a table grows. With common deals a set of two games takes about 125.
    """

    def __init__(self) -> None:
        self._seen = Digests()
        self._pools: dict[str, _Pool] = {}
        self._conflict: str | None = None
        self._contradiction: str | None = None

    def add(self, result: GameResult) -> None:
        """Count one game. What is wrong with it is said by ``rate``, so that the order does not matter."""
        try:
            new = self._seen.put(result.game, result)
        except KeyError:
            self._conflict = min(self._conflict or result.game, result.game)
            return
        if not new:
            return
        pool = self._pools.get(result.pool)
        if pool is None:
            pool = self._pools[result.pool] = _Pool(result.pool, result.preset, result.objective)
        name = (result.pool, result.deal_set)
        if name in self._seen or not pool.add(result):
            self._contradiction = min(self._contradiction or result.deal_set, result.deal_set)
        elif result.deal_set not in pool.open:
            self._seen.put(name, None)

    def rate(self) -> list[PoolRatings]:
        """The ratings of everything added, as ``rate`` gives them, with its errors.

        A pool in which no set was completed since the last call costs nothing. Others are fitted anew: 20
        bots that all met on 1,000 decks (190,000 sets) in about half a second.
        """
        return sorted(self.rate_each(), key=lambda pool: (pool.preset, pool.pool))

    def rate_each(self) -> Iterator[PoolRatings]:
        """The same pool by pool in any order, for those who have other things to do in between."""
        if self._conflict is not None:
            raise ConflictingResultsError(self._conflict)
        if self._contradiction is not None:
            raise InconsistentDealSetError(self._contradiction)
        for pool in list(self._pools.values()):
            yield pool.rate()

    @property
    def begun(self) -> tuple[int, int]:
        """How many deal sets have a result, and how many games these sets have when they are complete."""
        pools = self._pools.values()
        waiting = [members[0].set_size for pool in pools for members in pool.open.values()]
        return sum(pool.deal_sets for pool in pools) + len(waiting), sum(pool.games for pool in pools) + sum(
            waiting
        )

    @property
    def open_sets(self) -> dict[str, int]:
        """The deal sets that have some of their results, and how many."""
        return {name: len(members) for pool in self._pools.values() for name, members in pool.open.items()}

    def decks_of(self, preset: str, bot: str) -> int:
        """On how many decks the bot has complete sets in the pool with this preset; costs next to nothing."""
        return max((p.decks_of(bot) for p in self._pools.values() if p.preset == preset), default=0)


class _Pool:
    """The games of one pool: those of open sets as they are, the others as sums."""

    def __init__(self, pool: str, preset: str, objective: str) -> None:
        self.pool = pool
        self.preset = preset
        self.open: dict[str, list[GameResult]] = {}
        self._objective = objective
        self.games = 0
        self.deal_sets = 0
        self._decks: dict[str, int] = {}
        self._rows: dict[Row, int] = {}
        self._ledgers: dict[str, _Ledger] = {}
        self._tally = Sums()
        """(deck, row) -> net, count."""
        self._points = Sums()
        """(deck, ledger) -> points in sixths, deals; of played games."""
        self._rated: tuple[ComponentRatings, ...] | None = None

    def add(self, game: GameResult) -> bool:
        """Whether the game agrees with the others of its set; if it completes it the set is open no more."""
        self.preset = min(self.preset, game.preset)
        self._objective = min(self._objective, game.objective)
        members = self.open.setdefault(game.deal_set, [])
        members.append(game)
        if (game.deck, game.set_size) != (members[0].deck, members[0].set_size):
            return False
        if len(members) == game.set_size:
            self._complete(self.open.pop(game.deal_set))
        return True

    def decks_of(self, bot: str) -> int:
        return self._ledgers[bot].decks if bot in self._ledgers else 0

    def rate(self) -> PoolRatings:
        if self._rated is None:
            self._rated = tuple(self._rate())
        waiting = (
            OpenSet(name, len(members), members[0].set_size) for name, members in sorted(self.open.items())
        )
        return PoolRatings(
            self.pool,
            self.preset,
            self._objective,
            self.games,
            self.deal_sets,
            len(self._decks),
            tuple(waiting),
            self._open_faults(),
            self._rated,
        )

    def _open_faults(self) -> tuple[tuple[str, str, int], ...]:
        count: Counter[tuple[str, str]] = Counter()
        for members in self.open.values():
            for game in members:
                for bot, kind, number in game.faults:
                    count[bot, kind] += number
        return tuple((bot, kind, number) for (bot, kind), number in sorted(count.items()))

    def _complete(self, games: Sequence[GameResult]) -> None:
        self._rated = None
        self.games += len(games)
        self.deal_sets += 1
        deck = self._decks.setdefault(games[0].deck, len(self._decks))
        net: Counter[Row] = Counter()
        count: Counter[Row] = Counter()
        for game in games:
            for row, won in rows_of(game):
                net[row] += won
                count[row] += 1
        for row, rows in count.items():
            self._tally.add(deck, self._rows.setdefault(row, len(self._rows)), net[row], rows)
        for bot in {bot for game in games for side in game.sides for bot in side}:
            ledger = self._ledgers.setdefault(bot, _Ledger(len(self._ledgers)))
            self._enter(
                bot, ledger, deck, [game for game in games if any(bot in side for side in game.sides)]
            )

    def _enter(self, bot: str, ledger: _Ledger, deck: int, games: Sequence[GameResult]) -> None:
        """Enter a complete set into the ledger of one of its bots."""
        ledger.games += len(games)
        ledger.deal_sets += 1
        ledger.sees(deck)
        for game in games:
            for name, kind, number in game.faults:
                if name == bot:
                    ledger.faults[kind] += number
        played = [game for game in games if game.forfeit is None]
        own = [(game, at) for game in played for at, side in enumerate(game.sides) if bot in side]
        if own:
            points, deals = sum(game.points[at] for game, at in own), sum(game.deals for game, _ in own)
            self._points.add(deck, ledger.number, points, deals)

    def _rate(self) -> list[ComponentRatings]:
        rows, decks = tuple(self._rows), tuple(self._decks)
        entries = np.array(self._tally.table())
        ledgers = self._with_points(decks)
        rated = []
        for bots in components(self._ledgers, rows):
            own = np.array([row.terms[0][0] in bots for row in rows], np.bool_)
            evidence = arrange(bots, rows, decks, entries[:, own[entries[1]]])
            rated.append(_rate_component(evidence, ledgers))
        return sorted(rated, key=lambda component: (-len(component.bots), component.bots[0].bot))

    def _with_points(self, decks: Sequence[str]) -> dict[str, tuple[_Ledger, tuple[float, Interval] | None]]:
        """Every ledger with its points per deal, summed in the order of the decks' names."""
        deck, ledger, points, deals = self._points.table()
        rank = np.zeros(len(decks), np.int64)
        rank[sorted(range(len(decks)), key=decks.__getitem__)] = np.arange(len(decks))
        order = np.lexsort((rank[deck], ledger))
        parts = np.split(order, np.searchsorted(ledger[order], np.arange(1, len(self._ledgers))))
        return {
            bot: (one, clustered_ratio(points[parts[one.number]], SIXTHS * deals[parts[one.number]]))
            for bot, one in self._ledgers.items()
        }


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
    """What one bot did in complete sets. number: of the bot in its pool. decks: how many it met."""

    number: int
    games: int = 0
    deal_sets: int = 0
    decks: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    _met: bytearray = field(default_factory=bytearray)
    """A bit for each deck of the pool."""

    def sees(self, deck: int) -> None:
        at, bit = deck >> 3, 1 << (deck & 7)
        self._met.extend(bytes(max(0, at + 1 - len(self._met))))
        self.decks += not self._met[at] & bit
        self._met[at] |= bit


def _rate_component(
    evidence: Evidence, ledgers: Mapping[str, tuple[_Ledger, tuple[float, Interval] | None]]
) -> ComponentRatings:
    comparisons = Comparisons.of(fit(evidence))
    elo = comparisons.fit.elo.tolist()
    # Equals may differ in the last bits: rounded, so that they are ordered by name.
    order = sorted(range(len(elo)), key=lambda bot: (-round(elo[bot], 6), evidence.bots[bot]))
    bots = tuple(_rate_bot(comparisons, bot, *ledgers[evidence.bots[bot]]) for bot in order)
    pairs = {
        (evidence.bots[bot], evidence.bots[other]): _rate_pair(comparisons, bot, other)
        for bot, other in permutations(order, 2)
    }
    return ComponentRatings(bots, pairs)


def _rate_bot(
    comparisons: Comparisons, bot: int, ledger: _Ledger, points: tuple[float, Interval] | None
) -> BotRating:
    evidence = comparisons.fit.evidence
    _, score = _score(evidence, bot, None)
    return BotRating(
        evidence.bots[bot],
        float(comparisons.fit.elo[bot]),
        comparisons.against_mean(bot),
        ledger.games,
        ledger.deal_sets,
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
    at = np.flatnonzero(rows[evidence.row])
    sign = np.sign(evidence.x[:, bot]).astype(np.int64)[evidence.row[at]]
    count = evidence.per_deck(evidence.count[at], at)
    return int(count.sum()), clustered_score(evidence.per_deck(sign * evidence.net[at], at), count)
