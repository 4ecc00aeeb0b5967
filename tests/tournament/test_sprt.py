"""The sequential test: published figures, extremes, error rates, and the order in which sets finish."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import inf, isfinite, log, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import Bounds, NonlinearConstraint, brentq, minimize
from support.vectors import folder
from tressette_tournament.results import GameResult
from tressette_tournament.sprt import (
    MIN_SETS,
    Decision,
    Model,
    SequentialTest,
    SetShape,
    Sprt,
    SprtError,
    SprtReport,
    evaluate,
    log_likelihood_ratio,
    match_statistics,
    set_score,
)

VECTORS = json.loads((folder() / "ratings.json").read_text(encoding="utf-8"))
SINGLE, PAIR, QUAD = SetShape(1, 1), SetShape(2, 2), SetShape(4, 12)
Counts = dict[Fraction, int]


def by_cell(sets: Sequence[int]) -> Counts:
    """Sets by cell, the cells evenly from 0 to 1."""
    return {Fraction(at, len(sets) - 1): count for at, count in enumerate(sets)}


def counts_of(entry: dict[str, Any]) -> tuple[Counts, SetShape]:
    """The counts of a vector: wins, losses, draws, or six cells of which the middle two are one score."""
    if "wdl" in entry:
        win, loss, draw = entry["wdl"]
        return by_cell([loss, draw, win]), SINGLE
    ll, ld, wl, dd, wd, ww = entry["LL_LD_WL_DD_WD_WW"]
    return by_cell([ll, ld, wl + dd, wd, ww]), PAIR


# Published figures


@pytest.mark.parametrize("entry", VECTORS["sprt"])
def test_published_llrs_are_reproduced(entry: dict[str, Any]) -> None:
    sprt = Sprt(entry["bounds"][0], entry["bounds"][1], model=Model(entry["model"]))
    assert log_likelihood_ratio(*counts_of(entry), sprt) == pytest.approx(entry["llr"], abs=entry["abs"])


@pytest.mark.parametrize("entry", VECTORS["match_wdl"] + VECTORS["match_pentanomial6"])
def test_published_match_figures_are_reproduced(entry: dict[str, Any]) -> None:
    match = match_statistics(*counts_of(entry))
    found = {
        "score": match.score,
        "los": match.los,
        "elo": (match.elo, match.elo_error),
        "nelo": (match.nelo, match.nelo_error),
    }
    known = found.keys() & entry.keys()
    assert "nelo" in known
    for figure in known:
        assert found[figure] == pytest.approx(entry[figure], rel=entry["tolerance"])


Floats = NDArray[np.float64]


def constrained(observed: Floats, scores: Floats, t: float) -> float:
    """The greatest mean log-likelihood with mean - 1/2 = t x deviation, by a general optimiser."""

    def slack(p: Floats) -> Floats:
        mean = p @ scores
        return np.array([mean - 0.5 - t * np.sqrt(max(float(p @ (scores - mean) ** 2), 0.0)), p.sum() - 1])

    def loss(p: Floats) -> float:
        return -float(observed @ np.log(p))

    best = minimize(
        loss,
        np.full(len(scores), 1 / len(scores), np.float64),
        method="SLSQP",
        bounds=Bounds(1e-9, 1.0),
        constraints=NonlinearConstraint(slack, 0, 0),
        tol=1e-12,
    )
    assert best.success
    return -float(best.fun)


@pytest.mark.parametrize(
    "sets", [(3, 10, 30, 20, 10), (9, 20, 31, 20, 12), (2, 3, 1, 5, 30), (20, 9, 4, 2, 7)]
)
@pytest.mark.parametrize("bounds", [(0, 5), (-30, 10), (50, 200)])
def test_the_normalized_llr_is_that_of_the_likeliest_distributions(
    sets: tuple[int, ...], bounds: tuple[float, float]
) -> None:
    observed, scores = np.array(sets) / sum(sets), np.linspace(0, 1, 5)
    h0, h1 = (constrained(observed, scores, elo / (800 / log(10)) * 2**0.5) for elo in bounds)
    sprt = Sprt(*bounds, model=Model.NORMALIZED)
    assert log_likelihood_ratio(by_cell(sets), PAIR, sprt) == pytest.approx(sum(sets) * (h1 - h0), abs=2e-3)


# Extremes

ALL = {"losses": Fraction(0), "draws": Fraction(1, 2), "wins": Fraction(1)}


@pytest.mark.parametrize("shape", [SINGLE, PAIR, QUAD], ids=["1 game", "2 games", "12 rows"])
@pytest.mark.parametrize("model", Model)
@pytest.mark.parametrize(("score", "accepted"), [("losses", "H0"), ("draws", "H0"), ("wins", "H1")])
def test_an_extreme_score_giving_nan_so_that_a_test_never_stops(
    shape: SetShape, model: Model, score: str, accepted: str
) -> None:
    """A complaint about other runners."""
    sprt = Sprt(0, 10, model=model)
    reports = [evaluate({ALL[score]: sets}, shape, sprt) for sets in (1, 30, 300, 10_000, 10**9)]
    assert all(isfinite(report.llr) for report in reports)
    decisions = [report.decision for report in reports]
    assert decisions[0] is Decision.UNDECIDED
    assert decisions[-2:] == [accepted, accepted]


@pytest.mark.parametrize("model", Model)
def test_all_wins_and_all_losses_decide_with_the_first_sets_that_may(model: Model) -> None:
    for score, accepted in ((1, Decision.H1), (0, Decision.H0)):
        assert evaluate({Fraction(score): MIN_SETS}, PAIR, Sprt(0, 100, model=model)).decision is accepted


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 2000), min_size=25, max_size=25),
    st.tuples(*[st.integers(-1000, 1000)] * 2).filter(lambda bounds: bounds[0] < bounds[1]),
    st.sampled_from(Model),
)
def test_the_llr_is_finite_and_reversed_by_changing_sides(
    sets: list[int], bounds: tuple[int, int], model: Model
) -> None:
    forth = log_likelihood_ratio(by_cell(sets), QUAD, Sprt(*bounds, model=model))
    back = log_likelihood_ratio(by_cell(sets[::-1]), QUAD, Sprt(-bounds[1], -bounds[0], model=model))
    assert isfinite(forth)
    assert back == pytest.approx(-forth, rel=1e-6, abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=5, max_size=5))
def test_a_won_set_never_speaks_for_h0(sets: list[int]) -> None:
    # Of logistic bounds only: a win may raise the deviation by more than the mean.
    sprt = Sprt(0, 10, model=Model.LOGISTIC)
    won = [*sets[:4], sets[4] + 1]
    assert evaluate(by_cell(won), PAIR, sprt).llr > evaluate(by_cell(sets), PAIR, sprt).llr


def test_even_sets_say_nothing_about_even_bounds() -> None:
    for model in Model:
        assert evaluate({Fraction(1, 2): 10**6}, PAIR, Sprt(-5, 5, model=model)).llr == pytest.approx(
            0, abs=1e-6
        )


# Decisions


def test_the_bounds_are_those_of_wald() -> None:
    report = evaluate({}, PAIR, Sprt(0, 5, alpha=0.05, beta=0.1))
    assert (report.lower, report.upper) == pytest.approx((log(0.1 / 0.95), log(0.9 / 0.05)))
    assert (report.sets, report.decision) == (0, Decision.UNDECIDED)


def test_nothing_is_decided_before_thirty_sets() -> None:
    sprt = Sprt(0, 100)
    assert evaluate({Fraction(1): 29}, PAIR, sprt).llr > sprt.upper
    assert evaluate({Fraction(1): 29}, PAIR, sprt).decision is Decision.UNDECIDED
    assert evaluate({Fraction(1): 30}, PAIR, sprt).decision is Decision.H1


def test_normalized_bounds_are_per_game() -> None:
    # Twice the games a set at the same normalized strength per game: t grows by the root of 2.
    sets = by_cell([10, 20, 40, 25, 15])
    apart = log_likelihood_ratio(sets, SetShape(1, 2), Sprt(0, 10 * 2**0.5, model=Model.NORMALIZED))
    together = log_likelihood_ratio(sets, SetShape(2, 2), Sprt(0, 10, model=Model.NORMALIZED))
    assert apart == pytest.approx(together)


@pytest.mark.slow
@pytest.mark.parametrize("model", Model)
def test_wrong_decisions_are_as_rare_as_asked_for(model: Model) -> None:
    """With the truth on a bound, where they are most frequent."""
    rng = np.random.default_rng(8)
    sprt = Sprt(-40, 40, alpha=0.1, beta=0.1, model=model)
    even, lean = np.array([0.1, 0.2, 0.4, 0.2, 0.1]), np.array([-1, -0.75, 0, 0.75, 1])

    def strength(cells: Floats) -> float:
        match = match_statistics(by_cell([round(1e6 * cell) for cell in cells]), PAIR)
        return (match.elo if model is Model.LOGISTIC else match.nelo) or 0

    shift = brentq(lambda by: strength(even + by * lean) - 40, 0, 0.1)
    for truth, sign in ((Decision.H0, -1), (Decision.H1, 1)):
        wrong = 0
        for _ in range(100):
            test = SequentialTest(sprt, PAIR)
            for position, at in enumerate(rng.choice(5, 5000, p=even + sign * shift * lean)):
                test.add(position, Fraction(int(at), 4))
                if test.report.decision is not Decision.UNDECIDED:
                    break
            assert test.report.decision is not Decision.UNDECIDED
            wrong += test.report.decision is not truth
        assert wrong <= 17  # 10 are expected


@pytest.mark.parametrize(
    ("field", "change"),
    [
        *(("elo0", {"elo0": value}) for value in (nan, -inf, -1001)),
        *(("elo1", {"elo1": value}) for value in (nan, inf, 1001, 0, -5)),
        *(("alpha", {"alpha": value}) for value in (0, 0.5, 1, nan, -0.1)),
        *(("beta", {"beta": value}) for value in (0, 0.5, 1, nan, -0.1)),
        ("model", {"model": "pentanomial"}),
    ],
)
def test_impossible_settings_are_refused_by_name(field: str, change: dict[str, Any]) -> None:
    with pytest.raises(SprtError, match=f"^{field}: ") as caught:
        Sprt(**{"elo0": 0, "elo1": 5} | change)
    assert caught.value.field == field


def test_scores_outside_the_range_are_refused() -> None:
    with pytest.raises(ValueError, match="3/2"):
        evaluate({Fraction(3, 2): 1}, PAIR, Sprt(0, 5))


# Scores of sets


def game(sides: str, ranks: Sequence[int], **more: Any) -> GameResult:
    teams = tuple(tuple(side) for side in sides.split())
    return GameResult(
        "g", "s", 1, "d", "h", "tre", "most", teams, tuple(ranks), (60,) * len(teams), 10, **more
    )


@pytest.mark.parametrize(
    ("games", "score"),
    [
        ([game("A B", (1, 2)), game("B A", (1, 2))], Fraction(1, 2)),
        ([game("AA BB", (1, 2)), game("BB AA", (1, 1))], Fraction(3, 4)),
        # Second of four: one lost, two won; B against B is dropped.
        ([game("A B B B", (2, 1, 3, 4))], Fraction(2, 3)),
        ([game("B A A A", (2, 1, 3, 3))], Fraction(1, 3)),
        ([game("A B B B", (1, 1, 3, 3)), game("B A A A", (1, 2, 2, 2))], Fraction(5, 12)),
        # A forfeit lowers the offender: against all three, or against the one.
        ([game("A B B B", (4, 1, 1, 1), forfeit=0, offender="A")], Fraction(0)),
        ([game("A B B B", (1, 4, 1, 1), forfeit=1, offender="B")], Fraction(1)),
        ([game("AA BB", (1, 2), forfeit=1, offender="B"), game("BB AA", (1, 2))], Fraction(1, 2)),
        # Of others, or of nobody but copies, there is nothing to say.
        ([game("A C", (1, 2)), game("A A", (1, 2)), game("AC BC", (1, 2), forfeit=0, offender="C")], None),
        ([game("A B C", (1, 2, 3))], Fraction(1)),
        ([], None),
    ],
)
def test_the_score_of_a_set(games: list[GameResult], score: Fraction | None) -> None:
    assert set_score(games, "A", "B") == score
    assert set_score(games, "B", "A") == (None if score is None else 1 - score)


def test_the_shape_of_a_set() -> None:
    def sides(text: str) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(side) for side in text.split())

    assert SetShape.of([sides("AA BB"), sides("BB AA")], "A", "B") == SetShape(2, 2)
    individuals = [sides(text) for text in ("A B B B", "B A B B", "B B A B", "B B B A")]
    assert SetShape.of(individuals, "A", "B") == SetShape(4, 12)
    assert len(SetShape(4, 12).cells) == 25
    with pytest.raises(ValueError, match="says nothing"):
        SetShape.of([sides("A C")], "A", "B")


def test_a_set_that_a_forfeit_cut_short_is_a_cell_of_its_own() -> None:
    even = {Fraction(1, 2): 40, Fraction(1, 4): 20, Fraction(3, 4): 20}
    off = even | {Fraction(7, 10): 2}  # five of twelve rows are there
    assert evaluate(off, QUAD, Sprt(0, 10)).llr > evaluate(even, QUAD, Sprt(0, 10)).llr


# The order in which sets finish


def run(finished: Iterable[tuple[int, Fraction | None]], sprt: Sprt) -> SequentialTest:
    test = SequentialTest(sprt, PAIR)
    for position, score in finished:
        test.add(position, score)
    return test


SCORES = st.sampled_from([None, *PAIR.cells, Fraction(1, 3)])


@settings(max_examples=25, deadline=None)
@given(st.lists(SCORES, min_size=30, max_size=80), st.data())
def test_sets_that_finish_in_any_order_decide_the_same(
    scores: list[Fraction | None], data: st.DataObject
) -> None:
    sprt = Sprt(-100, 100)
    in_order = run(enumerate(scores), sprt)
    any_order = run(data.draw(st.permutations(list(enumerate(scores)))), sprt)
    assert any_order.report == in_order.report
    assert any_order.counts == in_order.counts
    assert any_order.statistics == in_order.statistics


@settings(max_examples=25, deadline=None)
@given(st.lists(SCORES, min_size=200, max_size=600), st.sampled_from(Model), st.integers(10, 200))
def test_sets_that_are_looked_at_together_decide_as_one_by_one(
    scores: list[Fraction | None], model: Model, elo1: int
) -> None:
    sprt = Sprt(0, elo1, model=model)
    together = run(enumerate(scores), sprt)
    one_by_one = SequentialTest(sprt, PAIR)
    for position, score in enumerate(scores):
        one_by_one.add(position, score)
        assert one_by_one.report.sets <= position + 1
    assert together.report == one_by_one.report
    assert together.counts == one_by_one.counts


def test_the_report_is_that_of_the_first_sets_that_decide() -> None:
    sprt = Sprt(0, 20)
    scores = [Fraction(3, 4), Fraction(1), Fraction(1, 2)] * 40 + [Fraction(0)] * 200
    first = next(
        sets for sets in range(300) if evaluate(Counter(scores[:sets]), PAIR, sprt).decision is Decision.H1
    )
    assert run(enumerate(scores), sprt).report == evaluate(Counter(scores[:first]), PAIR, sprt)
    assert MIN_SETS <= first < 120


@pytest.mark.parametrize("model", Model)
def test_many_sets_at_once_decide_where_the_first_of_them_do(model: Model) -> None:
    # A long even stretch first, so that the decision is deep in what a resume reads.
    scores = [Fraction(at % 2) for at in range(1000)] + [Fraction(3, 4)] * 700 + [Fraction(0)] * 300
    sprt = Sprt(-30, 30, model=model)
    report = run(enumerate(scores), sprt).report
    assert report.decision is Decision.H1
    assert 1000 < report.sets < 1700
    assert report == evaluate(Counter(scores[: report.sets]), PAIR, sprt)
    assert evaluate(Counter(scores[: report.sets - 1]), PAIR, sprt).decision is Decision.UNDECIDED


def test_fast_games_do_not_bias_the_test() -> None:
    # Wins are quick here: of the first hundred finished sets all are won, yet nothing is decided.
    scores = [Fraction(at % 2) for at in range(200)]
    test = SequentialTest(Sprt(0, 100), PAIR)
    for position in range(1, 200, 2):
        test.add(position, scores[position])
    assert test.report == SprtReport(
        0, test.report.llr, test.report.lower, test.report.upper, Decision.UNDECIDED
    )
    test.add(0, scores[0])
    assert test.report.sets == 2


def test_sets_that_will_never_be_played_hold_nobody_up() -> None:
    test = run([(0, None), (1, Fraction(1)), (2, None), (3, Fraction(1, 2))], Sprt(0, 5))
    assert test.report.sets == 2


@pytest.mark.parametrize("position", [0, 3])
def test_a_set_finishes_once(position: int) -> None:
    test = run([(0, None), (3, Fraction(1))], Sprt(0, 5))
    with pytest.raises(ValueError, match=f"deal set {position} has finished before"):
        test.add(position, Fraction(1))


# The match


def test_a_match_that_tells_nothing_says_so() -> None:
    nothing = match_statistics({}, PAIR)
    assert (nothing.sets, nothing.score, nothing.elo, nothing.los) == (0, None, None, None)
    won = match_statistics({Fraction(1): 50}, PAIR)
    assert (won.score, won.elo, won.elo_error, won.nelo, won.los) == (1, None, None, None, None)
    even = match_statistics({Fraction(1, 2): 50}, PAIR)
    assert (even.score, even.elo, even.elo_error, even.los) == (0.5, 0, None, None)
    few = match_statistics({Fraction(1, 2): 4, Fraction(1): 3}, PAIR)
    assert few.elo is not None
    assert (few.elo_error, few.nelo_error, few.los) == (None, None, None)
