"""Pairwise Bradley-Terry on the Elo scale: rows, the fit, and what each deck did to it.

Vocabulary. A **row** says how one side did against another in one game: y = 1, 1/2 or 0. Its **x** is
the mean of the first side's members minus the mean of the second's, as coefficients over bots; the
model is P(y = 1) = 1 / (1 + 10^(-x.R / 400)). Rows of equal x are counted together: ``count`` games and
``net`` = wins - losses, so that y - 1/2 sums to net / 2. A **deck** is one cluster of the errors. The
**ghost** is an imaginary bot at 0. The **influence** of a deck on an estimate is how far the deck's
residuals moved it: H^-1 times its score, the half of the sandwich that is squared.

Source: Bradley and Terry 1952; Huber-White sandwich by clusters (Liang and Zeger 1986); the "Elo" section
of the tournament design. Decisions:

1. Counts are integers and everything is sorted before the first floating point sum: any order of games
   gives the same bits. x and -x are one row, and wins and losses are summed in mirrored
   terms: reversing all results negates the ratings exactly. (Wins times the chance of a loss, not net
   minus an expectation: that would drown the prior in rounding for a bot that won a million games.)
2. Prior: every bot drew once (half a win, half a loss) with the ghost. Then the mean is taken off.
3. A forfeit must move the offender only, and a joint fit cannot do that: the opponents would follow the
   offender down through their own games. So the fit has two stages. First, all bots from played rows.
   Then each offender alone, from its played rows, its forfeits and its prior, everybody else (other
   offenders too) fixed at the first stage. The zero stays the mean of the first stage, so nobody's
   number moves because somebody else's bot crashed. Its errors carry those of the first stage along.
4. A deck counts for a contrast if one of its rows has leverage on it (more than 1e-9 of the row's
   largest leverage on any bot), whether or not its residual happened to be zero: in an even match a
   split swapped pair is evidence too. The ghost and indirect paths give every deck of a connected pool
   some leverage, so the count is also capped by the decks that met the least seen bot of the contrast:
   a bot that met 8 of 200 decks is measured with 8 decks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, lcm, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.special import expit, log_expit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ELO_PER_NAT = 400 / log(10)
"""Elo points per unit of log-odds."""

_PRIOR = 1.0
_NO_LEVERAGE = 1e-9
_MAX_STEPS = 200
# Newton squares the distance: what is left after so small a step is rounding.
_CLOSE = 1e-7


class NoFiniteFitError(ValueError):
    """Without a prior the maximum is at infinity: wins do not connect all bots in both directions."""


class Row(NamedTuple):
    """x = sum of coefficient / scale over ``terms`` (sorted by bot, in lowest terms, never empty).

    sides: how many sides the game had; the row weighs 1 / (sides - 1). offender: the bot that
    forfeited, on the positive side of x, or "" for a played row, whose first coefficient is positive.
    """

    terms: tuple[tuple[str, int], ...]
    scale: int
    sides: int
    offender: str = ""


Tally = Mapping[tuple[str, Row], tuple[int, int]]
"""(deck, row) -> (net, count)."""


@lru_cache(maxsize=4096)
def side_difference(
    first: tuple[str, ...], second: tuple[str, ...]
) -> tuple[tuple[tuple[str, int], ...], int]:
    """Terms and scale of x for two sides; no terms where x = 0 (A A v A A)."""
    scale = lcm(len(first), len(second))
    coefficients = dict.fromkeys(sorted({*first, *second}), 0)
    for bot in first:
        coefficients[bot] += scale // len(first)
    for bot in second:
        coefficients[bot] -= scale // len(second)
    divisor = gcd(scale, *coefficients.values())
    return tuple((bot, c // divisor) for bot, c in coefficients.items() if c), scale // divisor


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The tally of one component as arrays. R rows, B bots, K decks, N entries (deck, row).

    x: R x B. weight, offender (column of the bot that forfeited, -1 in played rows): R.
    deck, row, net, count: N, sorted by deck and row.
    """

    bots: tuple[str, ...]
    decks: int
    x: Floats
    weight: Floats
    offender: Ints
    deck: Ints
    row: Ints
    net: Ints
    count: Ints

    def per_row(self, values: Ints) -> Ints:
        """Exact sums over the decks of an entry array: R."""
        return _sums(self.row, values, len(self.weight))

    def per_deck(self, values: Ints, at: Ints) -> Ints:
        """Exact sums over the rows of an array for the entries ``at``: K."""
        return _sums(self.deck[at], values, self.decks)

    def bears_on(self, bot: int) -> Bools:
        """Rows that are evidence about this bot: x is not 0 there, and nobody else forfeited. R."""
        concerned = (self.offender < 0) | (self.offender == bot)
        return np.asarray(concerned & (self.x[:, bot] != 0))


def gather(bots: Iterable[str], tally: Tally) -> Evidence:
    """Sort a tally into arrays. ``bots`` must cover every bot of the rows."""
    rows = {row: i for i, row in enumerate({row: None for _, row in tally})}
    decks = {deck: i for i, deck in enumerate({deck: None for deck, _ in tally})}
    entries = [(decks[deck], rows[row], *counts) for (deck, row), counts in tally.items()]
    return arrange(bots, tuple(rows), tuple(decks), np.array(entries, np.int64).reshape(-1, 4).T)


def arrange(bots: Iterable[str], rows: Sequence[Row], decks: Sequence[str], entries: Ints) -> Evidence:
    """The same from numbered rows and decks, all different: those that no entry has are left out.

    entries: 4 x N, index of the deck, index of the row, net, count; each pair of indices once.
    """
    names = tuple(sorted(bots))
    column = {name: i for i, name in enumerate(names)}
    deck, deck_order = _ranked(entries[0], decks)
    row, row_order = _ranked(entries[1], rows)
    present = [rows[i] for i in row_order]
    x = np.zeros((len(present), len(names)))
    for i, one in enumerate(present):
        for bot, coefficient in one.terms:
            x[i, column[bot]] = coefficient / one.scale
    order = np.lexsort((row, deck))
    return Evidence(
        names,
        len(deck_order),
        x,
        np.array([1 / (one.sides - 1) for one in present], np.float64),
        np.array([column[one.offender] if one.offender else -1 for one in present], np.int64),
        deck[order],
        row[order],
        entries[2][order],
        entries[3][order],
    )


def _ranked(indices: Ints, things: Sequence[Any]) -> tuple[Ints, list[int]]:
    """Each index as the rank of its thing among those that occur; and their indices in ascending order."""
    order = sorted(np.unique(indices).tolist(), key=things.__getitem__)
    rank = np.zeros(len(things), np.int64)
    rank[order] = np.arange(len(order))
    return rank[indices], order


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """An estimated difference in Elo and the influences on it of the decks that have leverage.

    decks: the m of decision 4, at most the number of influences.
    """

    estimate: float
    influence: Floats
    decks: int


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Ratings in Elo, relative to the mean of the first stage, in the order of ``evidence.bots``: B.

    influence: K x B, how many Elo each deck moved each rating. leverage: R x B, the same per unit of
    residual in a row. seen: K x B, whether the deck has a row that bears on the bot.
    """

    evidence: Evidence
    elo: Floats
    influence: Floats
    leverage: Floats
    seen: Bools

    def contrast(self, coefficients: Floats, measured: Bools | None = None) -> Contrast:
        """``coefficients`` . ratings (B). A single 1 compares that bot with the mean. measured: the bots (B)
        whose decks limit those of the contrast, by default all that are in it; those of a mean need not."""
        evidence = self.evidence
        largest = np.abs(self.leverage).max(axis=1)
        bears = np.abs(self.leverage @ coefficients) > _NO_LEVERAGE * largest
        contributes = np.full(evidence.decks, bears.all())
        if not bears.all():
            contributes[evidence.deck[bears[evidence.row]]] = True
        influence = (self.influence @ coefficients)[contributes]
        rarest = self.seen[:, coefficients != 0 if measured is None else measured].sum(axis=0).min()
        return Contrast(float(self.elo @ coefficients), influence, min(int(rarest), len(influence)))


def fit(evidence: Evidence) -> Fit:
    """Maximum a posteriori ratings with the influence of every deck on them. Always finite."""
    beta, influence, leverage = _fit_played(evidence)
    mean, mean_influence, mean_leverage = beta.mean(), influence.mean(axis=1), leverage.mean(axis=1)
    stage_two = [
        _refit(evidence, int(bot), beta, influence, leverage)
        for bot in np.unique(evidence.offender)
        if bot >= 0
    ]
    for bot, rating, moved, lever in stage_two:
        beta[bot], influence[:, bot], leverage[:, bot] = rating, moved, lever
    seen = np.zeros(influence.shape, np.bool_)
    for bot in range(len(evidence.bots)):
        seen[evidence.deck[evidence.bears_on(bot)[evidence.row]], bot] = True
    return Fit(
        evidence,
        ELO_PER_NAT * (beta - mean),
        ELO_PER_NAT * (influence - mean_influence[:, None]),
        ELO_PER_NAT * (leverage - mean_leverage[:, None]),
        seen,
    )


def _fit_played(evidence: Evidence) -> tuple[Floats, Floats, Floats]:
    """First stage, in nats and not centred: ratings B, influence K x B, leverage R x B (forfeits 0)."""
    played = evidence.offender < 0
    x = evidence.x * played[:, None]
    net = evidence.per_row(evidence.net) * evidence.weight
    total = evidence.per_row(evidence.count) * evidence.weight
    beta = _maximise(x, np.zeros(len(x)), net, total, _PRIOR)
    information = _information(x, x @ beta, total) + np.diag(_curvature(_PRIOR, beta))
    inverse = np.linalg.inv(information)
    scores = np.zeros((evidence.decks, len(beta)))
    np.add.at(scores, evidence.deck, _residuals(evidence, x @ beta)[:, None] * x[evidence.row])
    return beta, scores @ inverse, x @ inverse


def _refit(
    evidence: Evidence, bot: int, beta: Floats, influence: Floats, leverage: Floats
) -> tuple[int, float, Floats, Floats]:
    """Second stage for one offender: its column, rating, influence K and leverage R, in nats, not centred.

    Arguments are the first stage; the offender's rating leans on the others' through ``pull``.
    """
    x = evidence.x * evidence.bears_on(bot)[:, None]
    own = x[:, bot]
    net = evidence.per_row(evidence.net) * evidence.weight
    total = evidence.per_row(evidence.count) * evidence.weight
    others = x @ beta - own * beta[bot]
    rating = float(_maximise(own[:, None], others, net, total, _PRIOR)[0])
    z = others + own * rating
    pull = (own * _curvature(total, z)) @ x
    information = float(pull[bot]) + float(_curvature(_PRIOR, np.array(rating)))
    pull[bot] = 0
    scores = np.zeros(evidence.decks)
    np.add.at(scores, evidence.deck, _residuals(evidence, z) * own[evidence.row])
    moved = (scores - influence @ pull) / information
    return bot, rating, moved, (own - leverage @ pull) / information


def _residuals(evidence: Evidence, z: Floats) -> Floats:
    """Weighted sum of y - p in each entry, for log-odds z of each row: N."""
    row = evidence.row
    won, lost = (evidence.count + evidence.net) / 2, (evidence.count - evidence.net) / 2
    return np.asarray(evidence.weight[row] * (won * expit(-z)[row] - lost * expit(z)[row]))


def _curvature(total: Floats | float, z: Floats) -> Floats:
    """total x p x (1 - p), an even function of z."""
    return np.asarray(total * (expit(z) * expit(-z)))


def _information(x: Floats, z: Floats, total: Floats) -> Floats:
    return np.asarray(x.T @ (_curvature(total, z)[:, None] * x))


def _maximise(x: Floats, offset: Floats, net: Floats, total: Floats, prior: float) -> Floats:
    """Newton with step halving for the log-odds per column of x (R x P) that maximise the posterior.

    offset: R, log-odds that stay. net, total: R, weighted wins - losses and games. prior: weight of the
    game drawn with the ghost; with 0 the columns must sum to zero and so will the answer.
    """

    won, lost = (total + net) / 2, (total - net) / 2

    def posterior(beta: Floats) -> float:
        z = offset + x @ beta
        ghost = (log_expit(beta) + log_expit(-beta)).sum() / 2
        return float(won @ log_expit(z) + lost @ log_expit(-z) + prior * ghost)

    beta = np.zeros(x.shape[1])
    level = np.full((len(beta), len(beta)), 1 / len(beta) if prior == 0 else 0.0)
    for _ in range(_MAX_STEPS):
        z = offset + x @ beta
        slope = x.T @ (won * expit(-z) - lost * expit(z)) + prior * (expit(-beta) - expit(beta)) / 2
        information = _information(x, z, total) + np.diag(_curvature(prior, beta)) + level
        step = solve(information, slope, assume_a="pos")
        floor = posterior(beta)
        floor -= 1e-12 * (1 + abs(floor))
        while posterior(beta + step) < floor:
            step = step / 2
        beta = beta + step
        if np.abs(step).max() < _CLOSE:
            return beta
    raise NoFiniteFitError(f"no maximum after {_MAX_STEPS} Newton steps")


def fit_wins(wins: Mapping[tuple[str, str], float], prior: float = 0.0) -> dict[str, float]:
    """Elo with mean zero from win counts {(winner, loser): wins}, a draw being half a win each way.

    prior: weight of the one drawn game with the ghost that each bot gets. Raises NoFiniteFitError if prior
    is 0 and some bots never won against the rest, or never lost.
    """
    bots = sorted({bot for pair in wins for bot in pair})
    x = np.zeros((len(wins), len(bots)))
    net = np.array([wins[pair] for pair in sorted(wins)], np.float64)
    for i, (winner, loser) in enumerate(sorted(wins)):
        x[i, bots.index(winner)], x[i, bots.index(loser)] = 1, -1
    if prior == 0 and not reaches(_links(x[net > 0] > 0, x[net > 0] < 0)).all():
        raise NoFiniteFitError("wins do not connect all bots in both directions; use a prior")
    beta = _maximise(x, np.zeros(len(x)), net, net, prior)
    return dict(zip(bots, (ELO_PER_NAT * (beta - beta.mean())).tolist(), strict=True))


def components(bots: Iterable[str], rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """Bots that rows connect, each component and the list sorted by name. The ghost connects nobody."""
    names = sorted(bots)
    column = {name: i for i, name in enumerate(names)}
    links = np.zeros((len(names), len(names)), np.bool_)
    for row in rows:
        first, *rest = (column[bot] for bot, _ in row.terms)
        links[first, rest] = True
    connected = reaches(links | links.T)
    return sorted({tuple(name for name, at in zip(names, own, strict=True) if at) for own in connected})


def held_against(evidence: Evidence) -> Bools:
    """B x B: in some row the first bot's side beat, or drew with, the side of the second."""
    net, count = evidence.per_row(evidence.net), evidence.per_row(evidence.count)
    ahead, behind = evidence.x > 0, evidence.x < 0
    forth, back = net > -count, net < count
    return _links(ahead[forth], behind[forth]) | _links(behind[back], ahead[back])


def reaches(links: Bools) -> Bools:
    """B x B: links (B x B) lead from the first bot to the second in any number of steps, or none."""
    paths = links | np.eye(len(links), dtype=np.bool_)
    for via in range(len(links)):
        paths |= paths[:, [via]] & paths[[via], :]
    return paths


def _links(winners: Bools, losers: Bools) -> Bools:
    return np.asarray(winners.T.astype(np.int64) @ losers.astype(np.int64) > 0)


def _sums(at: Ints, values: Ints, size: int) -> Ints:
    sums = np.zeros(size, np.int64)
    np.add.at(sums, at, values)
    return sums
