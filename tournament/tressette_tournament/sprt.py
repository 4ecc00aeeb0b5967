"""A against B until decided: the generalized sequential probability ratio test on scores of deal sets.

Vocabulary. The **score** of a deal set is the mean of y over its rows between A and B, from 0 to 1 (A won
all of them). A **cell** is a score that can occur; with two games a set the five cells are the pentanomial.
H0 and H1 say that A is ``elo0`` and ``elo1`` stronger than B. The **LLR** is the log of the likelihood of
the results under the likeliest distribution over the cells that H1 allows, over the same under H0.
t is a mean score less 1/2, over the deviation of a set's score.

Source: Wald 1945; the generalized test of Van den Bergh, as chess engines are tested with; the "Elo" section
of the tournament design, whose published figures are among the tests. Decisions:

1. A row between A and B is one of ratings.py whose x holds A and B and nobody else. So a forfeit lowers the
   offender: it counts where the offender is A or B and the side that it lost to is the other's.
2. Cells lie half a row apart, where a set of the shape (``SetShape``) can end. A forfeit may leave a set
   with fewer rows than its shape and so with a score in between, which then is a cell of its own.
3. Empty cells count as 1e-3 of a set, so no likelihood is ever 0 and no variance either: an extreme score
   gives an extreme LLR and never NaN.
4. Logistic bounds are mean scores, 1/(1+10^(-elo/400)). Normalized ones are per game: t is the bound over
   800/ln(10), times the root of the games in a set.
5. All games that one deck gave are one set: the sets must be independent of each other. For individuals
   these are the games of A B B B and B A A A.
6. With bounds that lie evenly around 0, sets that are all even have an LLR of 0 for ever, since they say
   as much for H0 as for H1. Such a test needs a limit of deal sets besides.
7. ``match_statistics`` is the plain estimate that testers of engines publish, with normal quantiles.
   The rating table is the one with t and the prior.

The likeliest distribution whose mean z is 0 has p / (1 + theta z) in each cell, p being the observed one;
theta maximises the mean of log(1 + theta z), and that maximum is what the hypothesis costs per set. (Owen
2001; theta lies where no cell gets more than 1.) A bound on t becomes one on a mean by the tangent
deviation <= (s + E(score - 1/2 - t s)^2 / s) / 2, which is equal where s is the deviation: the cost is the
least over s if the observed t is too small and t > 0, the greatest if it is too large.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import combinations
from math import inf, log, log10, sqrt
from types import MappingProxyType
from typing import Final

import numpy as np
from scipy.special import ndtr, ndtri

from tressette_tournament.bradley_terry import Floats, side_difference
from tressette_tournament.intervals import MIN_DECKS
from tressette_tournament.ratings import rows_of
from tressette_tournament.results import GameResult

MIN_SETS: Final = 30
"""Deal sets before a decision."""
BIASED: Final = (
    "The test stopped because of these results, so estimates and intervals from them lean towards what it "
    "decided: the plain error is too small, and no correction is made."
)
"""What goes with every estimate after a test has decided."""

_EMPTY: Final = 1e-3
_NELO: Final = 800 / log(10)
"""Normalized Elo per unit of t."""
_MOST_ELO: Final = 1000.0
_HALF: Final = Fraction(1, 2)
_NORMAL: Final = float(ndtri(0.975))
# A theta this good leaves out less than the last digit of any LLR that is near a bound.
_GAIN: Final = 1e-17
_MAX_STEPS: Final = 200
# The cost is stationary in s: so near to it an LLR is off by a few parts in 100,000.
_CLOSE: Final = 0.05
# So many sets are looked at together, and evaluated one by one where their LLR is so near to a bound. What is
# done at once differs by less: by parts in 100,000, and by empty cells that belong to later sets.
_AT_ONCE: Final = 256
_MARGIN: Final = 0.1


class SprtError(ValueError):
    """A setting that makes no sense. ``field`` is its name."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class Model(StrEnum):
    """What the bounds are: Elo of the expected score, or of score over deviation."""

    LOGISTIC = "logistic"
    NORMALIZED = "normalized"


class Decision(StrEnum):
    """H0 is accepted, H1 is accepted, or neither yet."""

    UNDECIDED = "undecided"
    H0 = "H0"
    H1 = "H1"


@dataclass(frozen=True, slots=True)
class Sprt:
    """A test of H0 (A is elo0 stronger than B) against H1 (elo1), from -1000 to 1000 with elo0 < elo1.

    alpha: the chance to accept H1 where H0 holds; beta: the reverse; each above 0 and under 0.5. Raises
    SprtError, which names the field.
    """

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05
    model: Model = Model.LOGISTIC

    def __post_init__(self) -> None:
        for name in ("elo0", "elo1"):
            if not abs(getattr(self, name)) <= _MOST_ELO:  # NaN as well
                raise SprtError(
                    name, f"{getattr(self, name)} is not from -{_MOST_ELO:.0f} to {_MOST_ELO:.0f}"
                )
        if not self.elo0 < self.elo1:
            raise SprtError("elo1", f"{self.elo1} is not more than elo0, {self.elo0}")
        for name in ("alpha", "beta"):
            if not 0 < getattr(self, name) < 0.5:
                raise SprtError(name, f"{getattr(self, name)} is not above 0 and under 0.5")
        if self.model not in tuple(Model):
            raise SprtError("model", f"{self.model!r} is not one of {', '.join(Model)}")

    @property
    def lower(self) -> float:
        """The LLR at or under which H0 is accepted."""
        return log(self.beta / (1 - self.alpha))

    @property
    def upper(self) -> float:
        """The LLR at or above which H1 is accepted."""
        return log((1 - self.beta) / self.alpha)


@dataclass(frozen=True, slots=True)
class SetShape:
    """How many games a deal set has, and how many rows between A and B they make; each 1 or more.

    Raises ValueError otherwise.
    """

    games: int
    rows: int

    def __post_init__(self) -> None:
        if self.games < 1 or self.rows < 1:
            raise ValueError(f"a deal set of {self.games} games and {self.rows} rows says nothing")

    @classmethod
    def of(cls, games: Iterable[tuple[tuple[str, ...], ...]], a: str, b: str) -> SetShape:
        """From the sides of each game of a set, without forfeits. Raises ValueError where A never meets B."""
        shape = [
            sum(_is_between(side_difference(*pair)[0], a, b) for pair in combinations(sides, 2))
            for sides in games
        ]
        return cls(len(shape), sum(shape))

    @property
    def cells(self) -> tuple[Fraction, ...]:
        """The scores that a set without forfeits can have, ascending."""
        return tuple(Fraction(halves, 2 * self.rows) for halves in range(2 * self.rows + 1))


def set_score(games: Iterable[GameResult], a: str, b: str) -> Fraction | None:
    """A's mean y, 0 to 1, over the rows between A and B of a set's games; None if there are none."""
    halves = rows = 0
    for game in games:
        for row, won in rows_of(game):
            if _is_between(row.terms, a, b):
                halves += 1 + (won if dict(row.terms)[a] > 0 else -won)
                rows += 1
    return Fraction(halves, 2 * rows) if rows else None


def _is_between(terms: tuple[tuple[str, int], ...], a: str, b: str) -> bool:
    return {bot for bot, _ in terms} == {a, b}


# --- the test --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SprtReport:
    """sets: deal sets behind it. llr is to be held against lower (H0) and upper (H1)."""

    sets: int
    llr: float
    lower: float
    upper: float
    decision: Decision


def evaluate(counts: Mapping[Fraction, int], shape: SetShape, sprt: Sprt) -> SprtReport:
    """The test after sets with these scores. counts: score (0 to 1) -> how many sets had it.

    Takes about 1 ms with logistic bounds and 2 to 4 ms with normalized ones, up to 50 cells. Raises
    ValueError for a score that is outside 0..1.
    """
    sets = sum(counts.values())
    llr = log_likelihood_ratio(counts, shape, sprt)
    decision = Decision.UNDECIDED
    if sets >= MIN_SETS:
        decision = Decision.H1 if llr >= sprt.upper else Decision.H0 if llr <= sprt.lower else decision
    return SprtReport(sets, llr, sprt.lower, sprt.upper, decision)


def log_likelihood_ratio(counts: Mapping[Fraction, int], shape: SetShape, sprt: Sprt) -> float:
    """The LLR, always finite; above 0 where H1 is likelier. Arguments and errors as for ``evaluate``."""
    if any(not 0 <= score <= 1 for score in counts):
        raise ValueError(f"scores of deal sets are from 0 to 1, not {', '.join(map(str, counts))}")
    cells = sorted({*shape.cells, *counts})
    sets = np.array([[counts.get(cell, 0) for cell in cells]], np.float64)
    return float(_ratios(sets, cells, shape, sprt)[0])


def _ratios(sets: Floats, cells: Sequence[Fraction], shape: SetShape, sprt: Sprt) -> Floats:
    """The LLR of each of N collections of sets. sets: N x C, how many there are of each cell (ascending)."""
    sets = np.where(sets > 0, sets, _EMPTY)
    observed = sets / sets.sum(axis=-1, keepdims=True)
    # Exact differences, so that the even cell is 0 and reversed results give the negated LLR.
    above = np.array([float(cell - _HALF) for cell in cells])
    if sprt.model is Model.LOGISTIC:
        h0, h1 = (
            _cost_of_mean(observed, above - _expected_above_half(elo)) for elo in (sprt.elo0, sprt.elo1)
        )
    else:
        h0, h1 = (
            _cost_of_t(observed, above, elo / _NELO * sqrt(shape.games)) for elo in (sprt.elo0, sprt.elo1)
        )
    ratios: Floats = sets.sum(axis=-1) * (h0 - h1)
    return ratios


def _expected_above_half(elo: float) -> float:
    return 1 / (1 + 10 ** (-elo / 400)) - 0.5


def _cost_of_mean(observed: Floats, z: Floats) -> Floats:
    """What it costs in log-likelihood per set that z has the mean 0; infinite where it cannot have it.

    observed: positive probabilities of cells, z: of each cell; ... x C both. Newton within a bracket, all at
    once.
    """
    with np.errstate(divide="ignore"):
        ends = (observed - 1) / z
    low = np.where(z > 0, ends, -inf).max(axis=-1)
    high = np.where(z < 0, ends, inf).min(axis=-1)
    possible = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(possible, low, 0), np.where(possible, high, 0)
    theta = np.zeros_like(low)
    for _ in range(_MAX_STEPS):
        tilted = z / (1 + theta[..., None] * z)
        slope = np.vecdot(tilted, observed)
        low, high = np.where(slope > 0, theta, low), np.where(slope > 0, high, theta)
        step = theta + slope / np.vecdot(tilted**2, observed)
        step = np.where((low <= step) & (step <= high), step, (low + high) / 2)
        gain = np.abs(slope * (step - theta)).max()
        theta = step
        if gain < _GAIN:
            break
    return np.where(possible, np.vecdot(np.log1p(theta[..., None] * z), observed), inf)


def _cost_of_t(observed: Floats, above: Floats, t: float) -> Floats:
    """The same for mean = t x deviation, of the cells' scores ``above`` 1/2 (ascending). observed: N x C."""
    if t < 0:
        return _cost_of_t(observed[:, ::-1], -above[::-1], -t)
    if t == 0:
        return _cost_of_mean(observed, above)
    mean = observed @ above
    too_large = mean > t * np.sqrt(np.vecdot((above - mean[:, None]) ** 2, observed))
    # A deviation is least on the two cells next to the mean, greatest on the outermost two.
    step = float(above[above > 0].min())
    low = np.full(len(observed), log(t * step / (1 + t * t)))
    high, points = np.full(len(observed), log(0.5 / sqrt(1 + t * t))), 17
    observed = observed[:, None]
    while True:
        s = np.exp(np.linspace(low, high, points, axis=-1))[..., None]
        z = above - t / 2 * (s + (above - t * s) ** 2 / s)
        costs = _cost_of_mean(observed, z)
        costs = np.where(too_large[:, None] & (np.vecdot(z, observed) <= 0), 0, costs)
        best = np.where(too_large, costs.argmax(axis=-1), costs.argmin(axis=-1))
        if (high - low).max() < _CLOSE:
            found: Floats = costs[np.arange(len(best)), best]
            return found
        width = (high - low) / (points - 1)
        low, high = np.maximum(low, low + (best - 1) * width), np.minimum(high, low + (best + 1) * width)
        points = 9


class SequentialTest:
    """The test along sets in their order of issue, whatever the order in which they finish.

    Sets are looked at one by one, as far as all earlier ones are there: so fast games do not bias it, and
    the same results decide at the same set. Once it is decided, later sets change nothing. They are looked at
    when they are asked about, many at once after a resume. Memory: the sets that wait for an earlier one or
    have not been asked about, and a count for each cell.
    """

    def __init__(self, sprt: Sprt, shape: SetShape) -> None:
        self._sprt = sprt
        self._shape = shape
        self._next = 0
        self._waiting: dict[int, Fraction | None] = {}
        self._new: list[Fraction] = []  # not looked at
        self._counts: Counter[Fraction] = Counter()
        self._report = evaluate(self._counts, shape, sprt)

    @property
    def sprt(self) -> Sprt:
        """The settings."""
        return self._sprt

    @property
    def report(self) -> SprtReport:
        """The test as it stands, or as it stood when it decided."""
        self._look()
        return self._report

    @property
    def counts(self) -> Mapping[Fraction, int]:
        """The scores behind the report: score -> sets."""
        self._look()
        return MappingProxyType(self._counts)

    @property
    def statistics(self) -> MatchStatistics:
        """The match as the sets behind the report have it."""
        return match_statistics(self.counts, self._shape)

    def add(self, position: int, score: Fraction | None) -> None:
        """A set has finished. position: its place in the order of issue, from 0; score: from 0 to 1, None if
        it says nothing about A and B, or will never be played. Raises ValueError for a position that was
        there."""
        if position < self._next or position in self._waiting:
            raise ValueError(f"deal set {position} has finished before")
        self._waiting[position] = score
        while self._next in self._waiting:
            score = self._waiting.pop(self._next)
            self._next += 1
            if score is not None:
                self._new.append(score)

    def _look(self) -> None:
        """Count the new sets, as far as none has decided. The last is evaluated; of those before it the ones
        after which the LLR may be at a bound."""
        new, self._new = self._new, []
        for start in range(0, len(new), _AT_ONCE):
            block = new[start : start + _AT_ONCE]
            may_decide = self._may_decide(block) if len(block) > 1 else [True]
            may_decide[-1] |= start + len(block) == len(new)
            for score, evaluated in zip(block, may_decide, strict=True):
                if self._report.decision is not Decision.UNDECIDED:
                    return
                self._counts[score] += 1
                if evaluated:
                    self._report = evaluate(self._counts, self._shape, self._sprt)

    def _may_decide(self, scores: Sequence[Fraction]) -> list[bool]:
        """After which of these sets, one after the other, the LLR is not clearly between the bounds."""
        cells = sorted({*self._shape.cells, *self._counts, *scores})
        index = {cell: at for at, cell in enumerate(cells)}
        sets = np.zeros((len(scores), len(cells)))
        sets[np.arange(len(scores)), [index[score] for score in scores]] = 1
        sets[0] += [self._counts[cell] for cell in cells]
        ratios = _ratios(sets.cumsum(axis=0), cells, self._shape, self._sprt)
        low, high = self._sprt.lower + _MARGIN, self._sprt.upper - _MARGIN
        return [not low < ratio < high for ratio in ratios.tolist()]


# --- the match -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MatchStatistics:
    """A against B over whole sets. None is what the sets do not tell.

    score: A's mean, 0 to 1. elo: logistic, with the half of its 95 % interval. nelo: normalized, per game.
    los: the probability, 0 to 1, that A is stronger. Errors and los need 8 sets.
    """

    sets: int
    score: float | None
    elo: float | None
    elo_error: float | None
    nelo: float | None
    nelo_error: float | None
    los: float | None


def match_statistics(counts: Mapping[Fraction, int], shape: SetShape) -> MatchStatistics:
    """The plain estimates from scores of sets (score -> sets, as for ``evaluate``)."""
    sets = sum(counts.values())
    if not sets:
        return MatchStatistics(0, None, None, None, None, None, None)
    mean = sum((score * n for score, n in counts.items()), Fraction(0)) / sets
    variance = sum(((score - mean) ** 2 * n for score, n in counts.items()), Fraction(0)) / sets
    score, deviation = float(mean), sqrt(variance)
    elo = _elo(score)
    if not deviation:
        return MatchStatistics(sets, score, elo, None, None, None, None)
    t = float(mean - _HALF) / deviation
    nelo = _NELO * t / sqrt(shape.games)
    if sets < MIN_DECKS:
        return MatchStatistics(sets, score, elo, None, nelo, None, None)
    half = _NORMAL * deviation / sqrt(sets)
    low, high = _elo(score - half), _elo(score + half)
    return MatchStatistics(
        sets,
        score,
        elo,
        None if low is None or high is None else (high - low) / 2,
        nelo,
        _NORMAL * _NELO / sqrt(sets * shape.games),
        float(ndtr(t * sqrt(sets))),
    )


def _elo(score: float) -> float | None:
    return 400 * log10(score / (1 - score)) if 0 < score < 1 else None
