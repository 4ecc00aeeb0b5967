"""From results to pools and tables: what counts, what is refused, and whether the errors are honest."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from math import log10

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student
from tressette_tournament.intervals import Kind
from tressette_tournament.ratings import (
    SET_BYTES,
    BotRating,
    ComponentRatings,
    ConflictingResultsError,
    InconsistentDealSetError,
    OpenSet,
    PairRating,
    RatingFold,
    rate,
)
from tressette_tournament.results import GameResult

_ids = count()


def game(deck: object, sides: str, ranks: Sequence[int], **fields: object) -> GameResult:
    """A game of a deal set of one: ``sides`` as "A B C" or "AA BB", a letter a bot."""
    name = f"g{next(_ids)}"
    teams = tuple(tuple(side) for side in sides.split())
    base = GameResult(
        name,
        f"set of {name}",
        1,
        f"deck {deck}",
        "hash",
        "tre",
        "most",
        teams,
        tuple(ranks),
        (60,) * len(teams),
        10,
    )
    return replace(base, **fields)  # type: ignore[arg-type]  # the fields are checked by the tests' own results


WON, LOST, DREW = (1, 2), (2, 1), (1, 1)


def component(results: Iterable[GameResult]) -> ComponentRatings:
    [pool] = rate(results)
    [only] = pool.components
    return only


def bots(results: Iterable[GameResult]) -> dict[str, BotRating]:
    return {bot.bot: bot for bot in component(results).bots}


def mixed_games(decks: int = 12) -> list[GameResult]:
    """Individuals, pairs and two-sided games of one pool, with ties and forfeits."""
    rng = np.random.default_rng(3)
    games = []
    for deck in range(decks):
        games.append(game(deck, "A B C", [int(r) for r in rng.choice([1, 1, 2, 3], 3)]))
        games.append(game(deck, "AB CD", WON if rng.random() < 0.6 else LOST))
        games.append(game(deck, "A D", [WON, LOST, DREW][int(rng.integers(3))]))
        games.append(
            game(deck, "BB CC", WON if rng.random() < 0.5 else LOST, points=(70, int(rng.integers(60))))
        )
    games.append(game(3, "D C", WON, forfeit=1, offender="C", faults=(("C", "timeout", 1),)))
    return games


# Order, duplicates, completeness


@settings(max_examples=25, deadline=None)
@given(st.permutations(mixed_games()))
def test_any_order_gives_the_same_bits(shuffled: list[GameResult]) -> None:
    assert rate(shuffled) == rate(sorted(shuffled, key=lambda result: result.game))


@settings(max_examples=25, deadline=None)
@given(st.permutations(mixed_games(6)), st.lists(st.integers(0, 24), max_size=4))
def test_ratings_on_the_way_change_no_bit(shuffled: list[GameResult], looks: list[int]) -> None:
    fold = RatingFold()
    for number, result in enumerate(shuffled):
        fold.add(result)
        if number in looks:
            assert fold.rate() == rate(shuffled[: number + 1])
    assert fold.rate() == fold.rate() == rate(shuffled)


def in_pairs(sets: int) -> list[GameResult]:
    """Deal sets of two games, each with a deck of its own, as ids and decks of a long event look."""
    return [
        game(f"{10_000 + i:032x}", "AA BB", WON if i % 3 else LOST, **fields)
        for i in range(sets)
        for fields in (
            {"deal_set": f"p0-l0-s{i}", "set_size": 2, "game": f"p0-l0-s{i}-g{g}"} for g in range(2)
        )
    ]


def test_memory_growing_with_the_games_that_are_done() -> None:
    """A complaint about other runners: a complete set leaves a stated number of bytes."""
    sets = 3_700  # just after all tables have grown, when they are emptiest
    tracemalloc.start()
    try:
        fold, before = RatingFold(), tracemalloc.get_traced_memory()[0]
        for result in in_pairs(sets):
            fold.add(result)
        del result
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held < SET_BYTES * sets
    assert fold.rate()[0].deal_sets == sets


def test_results_that_are_told_again_need_no_memory_of_the_game() -> None:
    games = in_pairs(4_000)
    fold = RatingFold()
    for result in (*games, *reversed(games)):
        fold.add(result)
    assert fold.rate() == rate(games)
    fold.add(replace(games[7], ranks=DREW))
    with pytest.raises(ConflictingResultsError, match=games[7].game):
        fold.rate()


def test_a_game_too_many_is_refused_long_after_its_set_was_complete() -> None:
    games = in_pairs(100)
    with pytest.raises(InconsistentDealSetError, match="'p0-l0-s5'"):
        rate([*games, replace(games[10], game="another")])


@given(st.permutations(range(5)))
def test_what_is_wrong_is_said_the_same_in_any_order(order: list[int]) -> None:
    games = [game(1, "A B", WON, deal_set="s", set_size=2, game=f"g{i}") for i in range(3)]
    games += [replace(games[0], ranks=LOST), replace(games[1], ranks=LOST)]
    with pytest.raises(ConflictingResultsError):
        rate([games[i] for i in order])


def test_decks_are_counted_by_bot_and_preset() -> None:
    fold = RatingFold()
    for result in (
        *(game(deck, "A B", WON) for deck in (1, 2, 2, 9)),
        *(game(deck, "A C", WON) for deck in (9, 10)),
        game(11, "A B", WON, deal_set="open", set_size=2),
        game(12, "A B", WON, pool="other", preset="asso"),
    ):
        fold.add(result)
    assert [fold.decks_of("tre", bot) for bot in "ABCD"] == [4, 3, 2, 0]
    assert (fold.decks_of("asso", "A"), fold.decks_of("none", "A")) == (1, 0)


def test_identical_duplicates_count_once() -> None:
    games = mixed_games()
    assert rate(games + games[:5]) == rate(games)


def test_differing_duplicates_are_refused_by_name() -> None:
    first = game(1, "A B", WON)
    with pytest.raises(ConflictingResultsError, match=first.game) as caught:
        rate([first, replace(first, ranks=LOST)])
    assert caught.value.game == first.game


def test_open_sets_are_listed_and_do_not_count() -> None:
    games = [game(i, "A B", WON if i % 3 else LOST) for i in range(12)]
    half = game(20, "A B", WON, deal_set="half", set_size=2, faults=(("A", "illegal", 1),))
    [pool] = rate([*games, half])
    assert pool.open_sets == (OpenSet("half", 1, 2),)
    assert (pool.games, pool.deal_sets, pool.decks) == (12, 12, 12)
    assert pool.components == rate(games)[0].components
    [whole] = rate([*games, half, replace(half, game="other half")])
    assert (whole.open_sets, whole.games, whole.deal_sets) == ((), 14, 13)


def test_a_pool_of_open_sets_has_no_ratings() -> None:
    [pool] = rate([game(1, "A B", WON, set_size=2)])
    assert (pool.components, len(pool.open_sets)) == ((), 1)


@pytest.mark.parametrize("change", [{"set_size": 3}, {"deck": "another"}, {}])
def test_deal_sets_that_contradict_themselves_are_refused(change: dict[str, object]) -> None:
    games = [game(1, "A B", WON, deal_set="s", set_size=2) for _ in range(3)]
    with pytest.raises(InconsistentDealSetError, match="'s'"):
        rate([*games[:2], replace(games[2], **change)])  # type: ignore[arg-type]


def test_pools_are_apart() -> None:
    games = [game(1, "A B", WON), game(1, "A B", LOST, pool="h2", preset="asso", objective="least")]
    assert [(p.preset, p.objective, p.games) for p in rate(games)] == [
        ("asso", "least", 1),
        ("tre", "most", 1),
    ]
    assert rate([]) == []


# Ratings


def test_equal_results_are_ordered_by_name() -> None:
    rated = component([game(i, "B A", DREW) for i in range(3)])
    assert [(bot.bot, bot.rating) for bot in rated.bots] == [("A", 0), ("B", 0)]


def test_pairs_of_copies_rate_like_single_bots() -> None:
    outcomes = [WON, WON, LOST, DREW] * 6
    single = component([game(i, "A B", won) for i, won in enumerate(outcomes)])
    pairs = component([game(i, "AA BB", won) for i, won in enumerate(outcomes)])
    assert [(b.rating, b.interval) for b in pairs.bots] == [(b.rating, b.interval) for b in single.bots]
    assert pairs.pairs == single.pairs


def test_a_tie_is_half_a_win() -> None:
    ranks = [(1, 1, 3), (3, 1, 1), (1, 3, 1)]
    table = component([game(i, "A B C", ranks[i % 3]) for i in range(9)])
    assert [bot.rating for bot in table.bots] == pytest.approx([0, 0, 0], abs=1e-9)
    assert {bot.score for bot in table.bots} == {0.5}
    assert table.pairs["A", "B"].score == pytest.approx(0.5)


def test_reversing_all_results_negates_everything() -> None:
    games = [g for g in mixed_games(20) if g.forfeit is None]
    forth = component(games)
    back = component([replace(g, ranks=tuple(-rank for rank in g.ranks)) for g in games])
    for bot in forth.bots:
        [mirrored] = [b for b in back.bots if b.bot == bot.bot]
        assert mirrored.rating == pytest.approx(-bot.rating, abs=1e-9)
        assert mirrored.error == pytest.approx(bot.error, abs=1e-9)
    for pair, forward in forth.pairs.items():
        assert back.pairs[pair].los == pytest.approx(1 - (forward.los or 0), abs=1e-9)


def test_games_without_a_comparison_rate_nobody() -> None:
    [lone] = component([game(i, "AA AA", WON) for i in range(9)]).bots
    assert (lone.rating, lone.score, lone.interval.kind, lone.games) == (0, None, Kind.NONE, 9)
    assert lone.points_per_deal == 1


def test_pools_that_games_do_not_connect_are_listed_apart() -> None:
    games = [game(i, "A B" if i % 2 else "C D", LOST if i % 3 else WON) for i in range(60)]
    games += [game(i, "C E", DREW) for i in range(10)]
    [pool] = rate(games)
    assert [sorted(bot.bot for bot in part.bots) for part in pool.components] == [["C", "D", "E"], ["A", "B"]]
    for part in pool.components:
        assert sum(bot.rating for bot in part.bots) == pytest.approx(0, abs=1e-9)
        assert {a for pair in part.pairs for a in pair} == {bot.bot for bot in part.bots}


# Tables


def test_counts_points_and_faults() -> None:
    games = [
        game(1, "A B", WON, points=(66, 30), deals=10, deal_set="s", set_size=2),
        game(1, "B A", WON, points=(40, 18), deals=4, deal_set="s", set_size=2, faults=(("A", "slow", 2),)),
        game(2, "A B", WON, points=(3, 0), deals=0, forfeit=1, offender="B", faults=(("B", "crash", 1),)),
        game(3, "A A", DREW, faults=(("A", "slow", 1), ("A", "illegal", 1)), points=(6, 6), deals=1),
    ]
    rated = bots(games)
    assert (rated["A"].games, rated["A"].deal_sets) == (4, 3)
    assert rated["A"].points_per_deal == pytest.approx((66 + 18 + 12) / 6 / 16)
    assert rated["B"].points_per_deal == pytest.approx((30 + 40) / 6 / 14)
    assert rated["A"].faults == (("illegal", 1), ("slow", 3))
    assert rated["B"].faults == (("crash", 1),)


def test_the_error_of_points_is_clustered_by_deck() -> None:
    per_deck = [60, 72, 90, 66, 84, 78, 54, 96, 60]
    games = [game(i, "A B", DREW, points=(p, 0), deals=3) for i, p in enumerate(per_deck) for _ in range(5)]
    points = np.array(per_deck) / 6 / 3
    expected = student.ppf(0.975, 8) * points.std(ddof=1) / 3
    assert bots(games)["A"].points_per_deal == pytest.approx(points.mean())
    assert bots(games)["A"].points_error == pytest.approx(expected)
    assert bots(games)["B"].points_error is None  # always 0: no spread to measure


def test_the_cross_table_counts_rows_and_clusters_by_deck() -> None:
    outcomes = [WON, LOST, WON, DREW, WON, WON, LOST, WON, WON, LOST]
    table = component([game(i, "A B C", (*won, 3)) for i, won in enumerate(outcomes) for _ in range(2)])
    pair, y = table.pairs["A", "B"], np.array([1, 0, 1, 0.5, 1, 1, 0, 1, 1, 0])
    assert pair.rows == 20
    assert pair.score == pytest.approx(y.mean())
    assert pair.score_interval is not None
    half = student.ppf(0.975, 9) * y.std(ddof=1) / 10**0.5
    assert pair.score_interval.low == pytest.approx(y.mean() - half)
    assert table.pairs["B", "A"].score == pytest.approx(1 - y.mean())
    beaten = table.pairs["C", "A"].score_interval
    assert beaten is not None
    assert beaten.low is None
    assert beaten.high == pytest.approx(1 - 0.05**0.1)


def test_los_is_the_t_probability_of_the_difference() -> None:
    games = [game(i, "A B", WON if i % 3 else LOST) for i in range(30)]
    pair = component(games).pairs["A", "B"]
    assert pair.interval.half_width is not None
    assert pair.los is not None
    error = pair.interval.half_width / student.ppf(0.975, 29)
    assert pair.los == pytest.approx(student.cdf(pair.difference / error, 29))
    assert component(games).pairs["B", "A"].los == pytest.approx(1 - pair.los)


# Errors


def difference(results: Iterable[GameResult]) -> PairRating:
    return component(results).pairs["A", "B"]


def test_t_with_the_decks_less_one() -> None:
    # Without the prior the influence of a deck on A - B is its residual over n p q.
    games = [game(i, "A B", WON if i % 5 < 3 else LOST) for i in range(400)]
    pair = difference(games)
    p = 0.6
    textbook = student.ppf(0.975, 399) * (400 / np.log(10)) / (399 * p * (1 - p)) ** 0.5
    assert pair.interval.decks == 400
    assert pair.interval.half_width == pytest.approx(textbook, rel=0.005)


def test_no_interval_under_eight_decks() -> None:
    games = [game(i % 8, "A B", WON if i % 5 in (1, 2) else LOST) for i in range(32)]
    assert difference(games).interval.kind is Kind.TWO_SIDED
    seven = [g for g in games if g.deck != "deck 7"]
    pair = difference(seven)
    assert (pair.interval.kind, pair.interval.decks, pair.los) == (Kind.NONE, 7, None)
    assert {b.error for b in component(seven).bots} == {None}


def test_the_same_deal_repeated_is_no_news() -> None:
    outcomes = [WON, WON, LOST, WON, LOST, WON, DREW, WON, WON, LOST] * 3
    once = difference([game(i, "A B", won) for i, won in enumerate(outcomes)])
    often = difference([game(i, "A B", won) for i, won in enumerate(outcomes) for _ in range(8)])
    assert once.interval.half_width is not None
    assert often.interval.half_width is not None
    assert often.interval.half_width >= once.interval.half_width  # the prior weighs less


def test_decks_are_clusters_across_pairings() -> None:
    # Where A beats B on a deck it loses to C on it. As one cluster that cancels in A's own rating.
    outcomes = [(WON, LOST), (LOST, WON)] * 10
    together = [(i, i) for i in range(20)]
    apart = [(i, i + 100) for i in range(20)]
    errors = []
    for decks in (together, apart):
        games = [game(d, "A B", ab) for (d, _), (ab, _) in zip(decks, outcomes, strict=True)]
        games += [game(d, "A C", ac) for (_, d), (_, ac) in zip(decks, outcomes, strict=True)]
        errors.append(
            bots([*games, *(game(i + 200, "B C", WON if i % 2 else LOST) for i in range(20))])["A"].error
        )
    assert errors[0] is None  # every deck gave exactly nothing: no spread to measure
    assert errors[1] is not None


def test_split_pairs_alone_claim_no_certainty() -> None:
    games = [game(i, "A B", won) for i in range(30) for won in (WON, LOST)]
    assert (difference(games).difference, difference(games).interval.kind) == (0, Kind.NONE)


def coverage(runs: int, decks: int, repeats: int, swap: bool) -> float:
    """Share of 95 % intervals that hold equality of equals, whose results hang on the deck (sd 2 nats)."""
    rng = np.random.default_rng(11)
    hits = told = 0
    for _ in range(runs):
        games = []
        for deck in range(decks):
            p = 1 / (1 + np.exp(-2 * rng.normal()))
            for _ in range(repeats):
                games.append(game(deck, "A B", WON if rng.random() < p else LOST))
                if swap:
                    games.append(game(deck, "B A", WON if rng.random() < p else LOST))
        half = difference(games).interval.half_width
        told += half is not None
        hits += half is not None and abs(difference(games).difference) <= half
    assert told > 0.98 * runs
    return hits / told


def test_intervals_of_swapped_pairs_are_honest() -> None:
    assert 0.92 <= coverage(200, decks=25, repeats=1, swap=True) <= 0.98


def test_intervals_of_repeated_deals_are_honest() -> None:
    assert 0.92 <= coverage(150, decks=20, repeats=4, swap=False) <= 0.99


def test_the_interval_of_a_bot_seen_on_few_decks_is_honest() -> None:
    rng = np.random.default_rng(4)
    hits, runs = 0, 150
    for _ in range(runs):
        games = [
            game(i, p, WON if rng.random() < 0.5 else LOST) for i in range(60) for p in ("B C", "B D", "C D")
        ]
        games += [
            game(i, p, WON if rng.random() < 0.5 else LOST)
            for i in range(8)
            for p in ("A B", "A C", "A D")
            for _ in range(2)
        ]
        rated = bots(games)["A"]
        assert rated.interval.decks == 8
        hits += rated.error is not None and abs(rated.rating) <= rated.error
    assert 0.91 <= hits / runs <= 0.99


# Bounds


def test_a_bot_that_always_wins_is_bounded_below() -> None:
    games = [game(i, "A B", WON) for i in range(20) for _ in range(4)]
    least = 400 * log10(0.05 ** (1 / 20) / (1 - 0.05 ** (1 / 20)))
    table = component(games)
    forth, back = table.pairs["A", "B"], table.pairs["B", "A"]
    assert (forth.interval.kind, back.interval.kind) == (Kind.AT_LEAST, Kind.AT_MOST)
    assert forth.interval.low == pytest.approx(least)
    assert back.interval.high == pytest.approx(-least)
    assert (forth.los, back.los) == (1 - 0.5**20, 0.5**20)
    best, worst = table.bots
    assert (best.interval.kind, worst.interval.kind) == (Kind.AT_LEAST, Kind.AT_MOST)
    assert best.interval.low == pytest.approx(least / 2)
    assert worst.interval.high == pytest.approx(-least / 2)
    assert (best.error, worst.error) == (None, None)
    assert np.isfinite([best.rating, worst.rating, forth.difference]).all()
    assert best.rating > (best.interval.low or 0)


def test_a_cut_leaves_the_intervals_inside_its_groups() -> None:
    outcomes = [WON, LOST, DREW, WON, LOST]
    games = [game(i, "A B", outcomes[i % 5]) for i in range(20)]
    games += [game(i, "C D", outcomes[i % 5]) for i in range(20)]
    games += [game(i, pair, WON) for i in range(20) for pair in ("A C", "B D")]
    table = component(games)
    kinds = {"".join(pair): rated.interval.kind for pair, rated in table.pairs.items()}
    assert kinds["AB"] is kinds["DC"] is Kind.TWO_SIDED
    assert (kinds["AC"], kinds["CA"]) == (Kind.AT_LEAST, Kind.AT_MOST)
    assert kinds["AD"] is Kind.NONE  # never met
    assert [bot.interval.kind for bot in table.bots] == [Kind.AT_LEAST] * 2 + [Kind.AT_MOST] * 2


def test_a_bot_with_few_decks_leaves_its_group_the_bounds_that_it_had() -> None:
    outcomes = [WON, LOST, DREW, WON, LOST]
    games = [game(i, "A B", outcomes[i % 5]) for i in range(20)]
    games += [game(i, pair, WON) for i in range(20) for pair in ("A L", "B L")]
    games += [game(i, "A N", outcome) for i, outcome in enumerate((WON, LOST, DREW))]
    found = {bot: (rated.interval.kind, rated.interval.decks) for bot, rated in bots(games).items()}
    assert found == {
        "A": (Kind.AT_LEAST, 20),
        "B": (Kind.AT_LEAST, 20),
        "N": (Kind.NONE, 3),
        "L": (Kind.AT_MOST, 20),
    }


def test_a_bot_between_two_cuts_has_no_interval() -> None:
    table = component([game(i, pair, WON) for i in range(20) for pair in ("A B", "B C", "A C")])
    assert [bot.interval.kind for bot in table.bots] == [Kind.AT_LEAST, Kind.NONE, Kind.AT_MOST]


def test_a_single_loss_makes_an_interval_that_leaves_the_range_a_bound() -> None:
    pair = difference([game(i, "A B", LOST if i == 4 else WON) for i in range(40)])
    assert pair.interval.kind is Kind.AT_LEAST
    assert pair.interval.low is not None
    assert 0 < pair.interval.low < pair.difference


# Forfeits


def played() -> list[GameResult]:
    return [g for g in mixed_games(20) if g.forfeit is None]


def changed(games: list[GameResult], *forfeits: GameResult) -> dict[str, float]:
    before, after = bots(games), bots([*games, *forfeits])
    return {name: after[name].rating - before[name].rating for name in before}


@pytest.mark.parametrize("sides", ["A D", "AB CD", "AA BB", "A B C D"])
def test_a_forfeit_moves_the_offender_only(sides: str) -> None:
    games = played()
    forfeits = [game(i, sides, (2, 1, 1, 1)[: len(sides.split())], forfeit=0, offender="A") for i in range(5)]
    moved = changed(games, *forfeits)
    assert moved.pop("A") < -5
    assert set(moved.values()) == {0}  # partner and opponents: to the bit


def test_a_forfeit_weighs_one_game_however_many_opponents() -> None:
    games = [
        game(i, p, d)
        for i in range(8)
        for p in ("A B", "A C", "A D", "B C", "C D", "B D")
        for d in (WON, LOST)
    ]
    one = changed(games, game(90, "A B", LOST, forfeit=0, offender="A"))
    three = changed(games, game(90, "A B C D", (4, 1, 1, 1), forfeit=0, offender="A"))
    assert three == pytest.approx(one, abs=1e-9)


def test_a_forfeit_counts_like_a_loss_to_fixed_opponents() -> None:
    # A has half of 16 games with B at 0; ten lost at rating r: 8 + 0.5 = 26 p(r) + p(r) (the ghost).
    games = [game(i, "A B", won) for i in range(8) for won in (WON, LOST)]
    rated = bots([*games, *(game(i, "B A", WON, forfeit=1, offender="A") for i in range(10))])
    assert rated["B"].rating == 0
    assert rated["A"].rating == pytest.approx(400 * log10(8.5 / (27 - 8.5)), abs=1e-6)


def test_a_forfeit_lowers_one_score_and_completes_its_set() -> None:
    games = [game(i, "A B", won) for i in range(8) for won in (WON, LOST)]
    [pool] = rate([*games, game(9, "B A", WON, forfeit=1, offender="A", faults=(("A", "timeout", 1),))])
    table = pool.components[0]
    assert (pool.open_sets, pool.deal_sets) == ((), 17)
    assert [(b.bot, b.score, b.games) for b in table.bots] == [
        ("B", 0.5, 17),
        ("A", pytest.approx(8 / 17), 17),
    ]
    assert (table.pairs["A", "B"].rows, table.pairs["B", "A"].rows) == (17, 16)


def test_a_bot_that_only_forfeits_is_bounded_above() -> None:
    games = [game(i, "A B", won) for i in range(10) for won in (WON, DREW, LOST, WON)]
    rated = bots([*games, *(game(i, "C A", (2, 1), forfeit=0, offender="C") for i in range(10))])
    assert rated["C"].interval.kind is Kind.AT_MOST
    assert rated["C"].rating < rated["B"].rating


def test_the_error_of_an_offender_is_honest_about_its_forfeits() -> None:
    games = [game(i, "A B", won) for i in range(20) for won in (WON, LOST if i % 3 else WON)]
    forfeits = [game(i, "A B", LOST, forfeit=0, offender="A") for i in range(0, 20, 2)]
    pair = difference([*games, *forfeits])
    assert pair.interval.half_width is not None
    # The same results played: the joint fit differs from the two-stage one, not the size of the error.
    joint = difference([*games, *(replace(g, forfeit=None, offender=None) for g in forfeits)])
    assert pair.interval.half_width == pytest.approx(joint.interval.half_width, rel=0.3)
