"""The fit alone: published results, independent oracles, symmetry, existence."""

from __future__ import annotations

import json
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.vectors import folder
from tressette_tournament.bradley_terry import (
    ELO_PER_NAT,
    NoFiniteFitError,
    Row,
    components,
    fit,
    fit_wins,
    gather,
    side_difference,
)

VECTORS = json.loads((folder() / "ratings.json").read_text(encoding="utf-8"))


def win_counts(entry: dict[str, Any]) -> dict[tuple[str, str], float]:
    pairs = {name: name.split(">") for name in entry["wins"]}
    return {(pairs[name][0], pairs[name][1]): wins for name, wins in entry["wins"].items()}


def versus(first: str, second: str, sides: int = 2) -> Row:
    terms, scale = side_difference(tuple(first), tuple(second))
    return Row(terms, scale, sides)


def simulated(decks: int) -> dict[tuple[str, Row], tuple[int, int]]:
    """Three bots, each pair four times a deck, with an effect of the deck."""
    rng = np.random.default_rng(5)
    strength = {"A": 0.4, "B": 0.1, "C": -0.3}
    tally = {}
    for deck in range(decks):
        for a, b in ("AB", "AC", "BC"):
            z = strength[a] - strength[b] + rng.normal()
            wins = int(rng.binomial(4, 1 / (1 + np.exp(-z))))
            tally[f"d{deck}", versus(a, b)] = (2 * wins - 4, 4)
    return tally


@pytest.mark.parametrize("entry", VECTORS["bradley_terry"], ids=lambda entry: entry["source"])
def test_published_fits_are_reproduced(entry: dict[str, Any]) -> None:
    elo = fit_wins(win_counts(entry))
    if "elo_zero_mean" in entry:
        assert elo == pytest.approx(entry["elo_zero_mean"], abs=entry["abs"])
    else:
        nats = {bot: rating / ELO_PER_NAT for bot, rating in elo.items()}
        assert nats == pytest.approx(entry["log_strength"], abs=entry["abs"])


def test_sixty_to_forty_has_one_answer() -> None:
    entry = VECTORS["order_dependence"]
    elo = fit_wins(win_counts(entry))
    assert elo["A"] - elo["B"] == pytest.approx(entry["elo_difference"], abs=entry["abs"])


def test_choix_finds_the_same_maximum() -> None:
    choix = pytest.importorskip("choix")
    rng = np.random.default_rng(2)
    wins = {
        (a, b): int(rng.integers(1, 9)) for a in "ABCDE" for b in "ABCDE" if a != b and rng.random() < 0.8
    }
    data = [("ABCDE".index(a), "ABCDE".index(b)) for (a, b), count in wins.items() for _ in range(count)]
    theirs = choix.opt_pairwise(5, data, tol=1e-12)
    ours = [fit_wins(wins)[bot] / ELO_PER_NAT for bot in "ABCDE"]
    assert ours == pytest.approx(list(theirs - theirs.mean()), abs=1e-5)


def test_statsmodels_finds_the_same_maximum_and_clustered_errors() -> None:
    # The ghost's games become rows of their own with y = 1/2. In statsmodels they also enter the
    # sandwich, where ours leaves them out: three clusters of next to no residual beside 150.
    glm = pytest.importorskip("statsmodels.api")
    tally, column = simulated(150), "ABC".index
    x, y, cluster = list(np.eye(3)), [0.5] * 3, [1000, 1001, 1002]
    for (deck, row), (net, count) in tally.items():
        direction = np.zeros(3)
        for bot, coefficient in row.terms:
            direction[column(bot)] = coefficient
        wins = (count + net) // 2
        x += [direction] * count
        y += [1.0] * wins + [0.0] * (count - wins)
        cluster += [int(deck[1:])] * count
    theirs = glm.GLM(np.array(y), np.array(x), family=glm.families.Binomial()).fit(
        tol=1e-12, cov_type="cluster", cov_kwds={"groups": np.array(cluster), "use_correction": False}
    )
    ours = fit(gather("ABC", tally))
    assert ours.elo / ELO_PER_NAT == pytest.approx(theirs.params - theirs.params.mean(), abs=1e-7)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        c = np.eye(3)[a] - np.eye(3)[b]
        influence = ours.contrast(c).influence / ELO_PER_NAT
        assert influence @ influence == pytest.approx(c @ theirs.cov_params() @ c, rel=2e-3)


def test_copies_are_on_the_scale_of_single_bots() -> None:
    assert (
        side_difference(("A", "A"), ("B", "B"))
        == side_difference(("A",), ("B",))
        == ((("A", 1), ("B", -1)), 1)
    )


def test_mixed_sides_are_means_and_shared_members_cancel() -> None:
    terms = (("A", 1), ("B", 1), ("C", -1), ("D", -1))
    assert side_difference(("A", "B"), ("D", "C")) == (terms, 2)
    assert side_difference(("A", "B"), ("A", "C")) == ((("B", 1), ("C", -1)), 2)
    assert side_difference(("A", "B", "B"), ("B", "A", "B"))[0] == ()
    assert side_difference(("A",), ("A", "A", "B")) == ((("A", 1), ("B", -1)), 3)


def test_the_prior_is_one_drawn_game_with_the_ghost() -> None:
    # By symmetry B = -A, and 2 b solves 3 - 3 tanh(b) = tanh(b / 2) with b in nats.
    rating = fit(gather("AB", {("d", versus("A", "B")): (3, 3)})).elo / ELO_PER_NAT
    assert 3 - 3 * np.tanh(rating[0]) == pytest.approx(np.tanh(rating[0] / 2), abs=1e-12)
    assert rating.sum() == 0
    assert fit_wins({("A", "B"): 3}, prior=1.0)["A"] / ELO_PER_NAT == pytest.approx(rating[0], abs=1e-12)


def test_rows_of_larger_games_weigh_less() -> None:
    lone = fit(gather("AB", {("d", versus("A", "B")): (5, 10)})).elo
    thirds = fit(gather("AB", {("d", versus("A", "B", sides=4)): (15, 30)})).elo
    assert thirds == pytest.approx(lone, abs=1e-9)


@pytest.mark.parametrize("wins", [{("A", "B"): 3}, {("A", "B"): 1, ("B", "A"): 1, ("A", "C"): 2}])
def test_without_a_prior_one_way_results_have_no_fit(wins: dict[tuple[str, str], float]) -> None:
    with pytest.raises(NoFiniteFitError):
        fit_wins(wins)


def test_half_wins_are_draws() -> None:
    elo = fit_wins({("A", "B"): 2.5, ("B", "A"): 0.5})
    assert elo["A"] - elo["B"] == pytest.approx(400 * log(5, 10), abs=1e-6)


@given(
    st.dictionaries(
        st.sampled_from(["AB", "AC", "BC", "CD"]), st.tuples(st.integers(0, 300), st.integers(1, 300))
    )
)
def test_reversed_results_negate_exactly(counts: dict[str, tuple[int, int]]) -> None:
    tally = {("d", versus(*pair)): (min(net, count), count) for pair, (net, count) in counts.items()}
    reverse = {key: (-net, count) for key, (net, count) in tally.items()}
    assert (fit(gather("ABCD", tally)).elo == -fit(gather("ABCD", reverse)).elo).all()


@pytest.mark.parametrize("games", [10**4, 10**7, 10**9])
def test_any_number_of_wins_has_a_finite_fit(games: int) -> None:
    tally = {("d", versus("A", "B")): (games, games), ("d", versus("B", "C")): (games // 5, games)}
    elo = fit(gather("ABC", tally)).elo
    assert np.isfinite(elo).all()
    assert elo[1] - elo[2] == pytest.approx(400 * log(1.5, 10), rel=1e-3)


def test_components_need_no_ghost() -> None:
    rows = [versus("A", "B"), versus("CD", "EF"), versus("F", "G")]
    assert components("GFEDCBAZ", rows) == [("A", "B"), ("C", "D", "E", "F", "G"), ("Z",)]


def test_partners_who_are_never_apart_are_not_told_apart() -> None:
    rng = np.random.default_rng(1)
    tally = {(f"d{i}", versus("AB", "CD")): (int(rng.choice([-1, 1])), 1) for i in range(20)}
    contrast = fit(gather("ABCD", tally)).contrast(np.array([1.0, -1, 0, 0]))
    assert contrast.estimate == pytest.approx(0, abs=1e-9)
    assert contrast.decks == 0


def test_a_contrast_counts_the_decks_of_its_least_seen_bot() -> None:
    tally = simulated(40) | {(f"d{i}", versus("C", "D")): (1 - 2 * (i % 2), 1) for i in range(9)}
    ours = fit(gather("ABCD", tally))
    assert ours.contrast(np.array([1.0, -1, 0, 0])).decks == 40
    assert ours.contrast(np.array([1.0, 0, 0, -1])).decks == 9
    assert ours.contrast(np.array([0.0, 0, 0, 1])).decks == 9
