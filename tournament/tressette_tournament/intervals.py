"""Errors of ratings, differences, scores and points: all clustered by deck.

Vocabulary. m is the number of decks that count for an estimate. A **half-width** is t(m - 1) at 95 %
times the standard error, whose square has been multiplied by m / (m - 1). A **bound** is an interval
with one end. The **groups** of a component are the sets of bots that wins and draws connect both ways;
a **cut** lies between two groups: what is above it has never failed to beat what is below.

Source: the "Elo" section of the tournament design. Decisions:

1. Under 8 decks nothing is said, bounds included. Nor is anything said where all decks gave the very
   same contribution: a standard error of 0 would be a claim, not a measurement.
2. "Leaves the range" means the range of scores. A difference d is an expected score p; if p plus its
   own error, p (1 - p) ln(10) / 400 x half-width, passes 1 then the data do not hold d from above and
   the high end goes; likewise 0 and the low end.
3. Across a cut, winning on all m decks leaves a chance of at most q = 1 - 0.05^(1/m) of not winning on
   a deck, so the difference is at least 400 log10((1 - q) / q). Two bots have this bound if they met
   across the cut with no other bot in the row. A bot has one against the mean of its component if its
   group is above, or below, everything else: the end of its interval inside the group, plus the bound
   of the group's decks against the rest times the rest's share of the component's bots. (The mean of
   the loss chances is at least the chance at the mean difference, as they are convex there, so the
   bound holds for the mean of the opponents met.) A bot in between has no interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import log10, sqrt

import numpy as np
from scipy.special import expit, stdtr, stdtrit

from tressette_tournament.bradley_terry import (
    ELO_PER_NAT,
    Bools,
    Contrast,
    Fit,
    Floats,
    Ints,
    held_against,
    reaches,
)

MIN_DECKS = 8
_SAME = 1e-9
_ROUNDING = 1e-12


class Kind(StrEnum):
    """What an interval says."""

    TWO_SIDED = "two-sided"
    AT_LEAST = "at least"
    AT_MOST = "at most"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Interval:
    """95 % bounds in the unit of the estimate (two-sided, or one-sided where an end is None).

    decks: the m behind it. With both ends None nothing can be said: for want of decks where decks is
    under MIN_DECKS, otherwise because the results bound it on neither side.
    """

    low: float | None
    high: float | None
    decks: int

    @property
    def kind(self) -> Kind:
        if self.low is None:
            return Kind.NONE if self.high is None else Kind.AT_MOST
        return Kind.AT_LEAST if self.high is None else Kind.TWO_SIDED

    @property
    def half_width(self) -> float | None:
        """The ± of a two-sided interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def standard_error(influence: Floats, decks: int) -> float | None:
    """Clustered standard error from the influence of each deck; None where decision 1 says nothing."""
    if decks < MIN_DECKS or np.ptp(influence) <= _SAME * np.abs(influence).max() + _ROUNDING:
        return None
    return sqrt(float(influence @ influence) * decks / (decks - 1))


def half_width(influence: Floats, decks: int) -> float | None:
    """Half of the 95 % interval of an estimate; None where decision 1 says nothing."""
    error = standard_error(influence, decks)
    return None if error is None else float(stdtrit(decks - 1, 0.975)) * error


def elo_interval(contrast: Contrast) -> Interval:
    """Interval of a difference in Elo, a bound where it leaves the range (decision 2)."""
    half = half_width(contrast.influence, contrast.decks)
    if half is None:
        return Interval(None, None, contrast.decks)
    d = contrast.estimate
    low = d - half if half * expit(-d / ELO_PER_NAT) < ELO_PER_NAT else None
    high = d + half if half * expit(d / ELO_PER_NAT) < ELO_PER_NAT else None
    return Interval(low, high, contrast.decks)


def clustered_ratio(amounts: Ints, units: Ints) -> tuple[float, Interval] | None:
    """sum(amounts) / sum(units) over decks (K integers each), with its interval; None without units.

    Decks without units do not count.
    """
    amounts, units = amounts[units != 0], units[units != 0]
    if not len(units):
        return None
    total = int(units.sum())
    mean = int(amounts.sum()) / total
    half = half_width((amounts - mean * units) / total, len(units))
    if half is None:
        return mean, Interval(None, None, len(units))
    return mean, Interval(mean - half, mean + half, len(units))


def clustered_score(net: Ints, count: Ints) -> tuple[float, Interval] | None:
    """Mean of y over the decks' rows (K each: wins - losses, rows), 0 to 1; None without rows.

    Ends outside 0..1 are dropped; all won or all lost is bounded by the number of decks.
    """
    ratio = clustered_ratio(count + net, 2 * count)
    if ratio is None:
        return None
    mean, interval = ratio
    low, high, decks = interval.low, interval.high, interval.decks
    if mean in (0, 1) and decks >= MIN_DECKS:
        surely = 0.05 ** (1 / decks)
        return mean, Interval(surely, None, decks) if mean == 1 else Interval(None, 1 - surely, decks)
    low = None if low is None or low <= 0 else low
    return mean, Interval(low, None if high is None or high >= 1 else high, decks)


def bound_across_cut(decks: int) -> float:
    """Elo that a difference exceeds with 95 % confidence after that many decks (>= 1) all won."""
    surely = 0.05 ** (1 / decks)
    return 400 * log10(surely / (1 - surely))


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """The fit of one component with its order of wins: what may be said about whom.

    above: B x B, the first bot reaches the second by wins and draws (both ways inside a group).
    """

    fit: Fit
    above: Bools

    @classmethod
    def of(cls, fit: Fit) -> Comparisons:
        return cls(fit, reaches(held_against(fit.evidence)))

    def against_mean(self, bot: int) -> Interval:
        """Interval of the bot's rating."""
        group = self.above[bot] & self.above[:, bot]
        own = _unit(len(group), bot)
        if group.all():
            return elo_interval(self.fit.contrast(own))
        x = self.fit.evidence.x != 0
        decks = self._decks(x[:, group].any(axis=1) & x[:, ~group].any(axis=1))
        top, bottom = bool(self.above[bot].all()), bool(self.above[:, bot].all())
        if decks < MIN_DECKS or not (top or bottom):
            return Interval(None, None, decks)
        inside = Interval(0.0, 0.0, decks)
        if group.sum() > 1:
            # The others are no more than a mean here: one with few decks must not leave all without a bound.
            inside = elo_interval(self.fit.contrast(own - group / group.sum(), measured=own != 0))
        bound = float((~group).mean()) * bound_across_cut(decks)
        if top and inside.low is not None:
            return Interval(inside.low + bound, None, decks)
        if bottom and inside.high is not None:
            return Interval(None, inside.high - bound, decks)
        return Interval(None, None, min(decks, inside.decks))

    def difference(self, bot: int, other: int) -> tuple[Interval, float | None]:
        """Interval of bot's rating minus other's, and LOS: the probability, 0 to 1, that it is positive.

        Across a cut LOS is 1 minus the probability that equal bots give so many decks all one way.
        """
        if self.above[bot, other] and self.above[other, bot]:
            size = len(self.above)
            contrast = self.fit.contrast(_unit(size, bot) - _unit(size, other))
            error = standard_error(contrast.influence, contrast.decks)
            los = None if error is None else float(stdtr(contrast.decks - 1, contrast.estimate / error))
            return elo_interval(contrast), los
        x = self.fit.evidence.x != 0
        decks = self._decks(x[:, bot] & x[:, other] & (x.sum(axis=1) == 2))
        if decks < MIN_DECKS:
            return Interval(None, None, decks), None
        bound = bound_across_cut(decks)
        if self.above[bot, other]:
            return Interval(bound, None, decks), 1 - 0.5**decks
        return Interval(None, -bound, decks), 0.5**decks

    def _decks(self, rows: Bools) -> int:
        return len(np.unique(self.fit.evidence.deck[rows[self.fit.evidence.row]]))


def _unit(size: int, at: int) -> Floats:
    return np.asarray(np.arange(size) == at, np.float64)
