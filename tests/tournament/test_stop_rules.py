"""When no new deal sets are opened, and what is said then."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import inf, nan
from typing import Any

import pytest
from tressette_tournament.ratings import RatingFold
from tressette_tournament.results import GameResult
from tressette_tournament.sprt import SequentialTest, SetShape, Sprt
from tressette_tournament.stop_rules import Stop, StopError, StopRules

BOTS = [("tre", "A"), ("tre", "B")]


def games(decks: range, pair: str = "AB", preset: str = "tre") -> Iterator[GameResult]:
    """A game a deck, won by the first bot on two decks of three."""
    for deck in decks:
        ranks = (1, 2) if deck % 3 else (2, 1)
        name = f"{preset} {pair} {deck}"
        sides = (pair[0],), (pair[1],)
        yield GameResult(name, name, 1, f"deck {deck}", preset, preset, "most", sides, ranks, (60, 30), 10)


def folded(*parts: Iterator[GameResult]) -> RatingFold:
    fold = RatingFold()
    for part in parts:
        for game in part:
            fold.add(game)
    return fold


class Watched(RatingFold):
    """Counts how often it had to rate."""

    looks = 0

    def rate(self) -> Any:
        self.looks += 1
        return super().rate()


def reason(rules: StopRules, ratings: RatingFold | None = None, **now: Any) -> str | None:
    state: dict[str, Any] = {"games": 0, "deal_sets": 0, "seconds": 0.0, "bots": BOTS} | now
    return rules.reason(ratings=ratings or RatingFold(), **state)


@pytest.mark.parametrize(
    ("stop", "before", "after", "words"),
    [
        (Stop(games=100), {"games": 99}, {"games": 101}, "the limit of 100 games is reached"),
        (Stop(deal_sets=9), {"deal_sets": 8}, {"deal_sets": 9}, "the limit of 9 deal sets is reached"),
        (Stop(minutes=1.5), {"seconds": 89.9}, {"seconds": 90.0}, "the time of 1.5 minutes is over"),
    ],
    ids=["games", "deal sets", "minutes"],
)
def test_limits(stop: Stop, before: dict[str, Any], after: dict[str, Any], words: str) -> None:
    rules = StopRules(stop)
    assert reason(rules, **before) is None
    assert reason(rules, **after) == words
    assert reason(rules, **before) == words  # a reason once given stays


def test_without_rules_nothing_stops() -> None:
    ratings = folded(games(range(100)))
    assert reason(StopRules(Stop()), ratings, games=10**9, deal_sets=10**9, seconds=1e9) is None


@pytest.mark.parametrize("field", ["games", "deal_sets", "minutes", "error_below"])
@pytest.mark.parametrize("value", [0, -1, nan, inf])
def test_impossible_limits_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(StopError, match=f"^{field}: ") as caught:
        Stop(**{field: value})  # type: ignore[arg-type]  # as a file may have it
    assert caught.value.field == field


# ± below x


def test_an_error_needs_thirty_decks_of_every_bot() -> None:
    rules, ratings = StopRules(Stop(error_below=1000)), Watched()
    for deck in range(30):
        assert reason(rules, ratings) is None
        ratings.add(next(games(range(deck, deck + 1))))
    assert ratings.looks == 0
    assert reason(rules, ratings) == "the ± of every bot is below 1000"


def test_an_error_is_looked_at_every_ten_decks() -> None:
    rules, ratings = StopRules(Stop(error_below=1)), Watched()
    looked_at = []
    for deck in range(75):
        before = ratings.looks
        reason(rules, ratings)
        if ratings.looks > before:
            looked_at.append(deck)
        ratings.add(next(games(range(deck, deck + 1))))
    assert looked_at == [30, 40, 50, 60, 70]


def test_decks_that_come_many_at_once_are_looked_at_once() -> None:
    rules, ratings = StopRules(Stop(error_below=1)), Watched()
    for until in (57, 58, 59, 60):
        for game in games(range(until)):
            ratings.add(game)
        reason(rules, ratings)
    assert ratings.looks == 2  # with 57 and with 60


def test_waiting_for_decks_costs_next_to_nothing() -> None:
    # Asked before every game of a long event: not every bot's decks may be counted each time.
    class Counted(RatingFold):
        asked = 0

        def decks_of(self, preset: str, bot: str) -> int:
            self.asked += 1
            return super().decks_of(preset, bot)

    bots = [("tre", f"bot {number}") for number in range(500)]
    rules, ratings = StopRules(Stop(error_below=1)), Counted()
    for _ in range(100):
        assert reason(rules, ratings, bots=bots) is None
    assert ratings.asked <= 500 + 100


def test_a_bot_that_lacks_decks_and_is_lost_holds_nobody_up() -> None:
    ratings = folded(games(range(60)), games(range(3), "CA"))
    rules = StopRules(Stop(error_below=300))
    assert reason(rules, ratings, bots=[*BOTS, ("tre", "C")]) is None
    assert reason(rules, ratings, bots=BOTS) == "the ± of every bot is below 300"


def test_every_bot_counts_in_every_pool() -> None:
    def stopped(*parts: Iterator[GameResult], bots: list[tuple[str, str]]) -> bool:
        return reason(StopRules(Stop(error_below=300)), folded(*parts), bots=bots) is not None

    assert stopped(games(range(60)), bots=BOTS)
    # C has met 20 decks, then 40, on which it says little.
    assert not stopped(games(range(60)), games(range(20), "CA"), bots=[*BOTS, ("tre", "C")])
    assert stopped(games(range(60)), games(range(40), "CA"), bots=[*BOTS, ("tre", "C")])
    # The other preset has not begun.
    both = [*BOTS, ("asso", "A"), ("asso", "B")]
    assert not stopped(games(range(60)), bots=both)
    assert stopped(games(range(60)), games(range(60), preset="asso"), bots=both)


def test_a_bot_that_was_lost_does_not_count() -> None:
    ratings = folded(games(range(60)), games(range(3), "CA"))
    assert reason(StopRules(Stop(error_below=300)), ratings, bots=BOTS) is not None
    assert reason(StopRules(Stop(error_below=300)), ratings, bots=[]) is None


def test_a_bound_is_no_error() -> None:
    ratings = folded(games(range(1, 100, 3)), games(range(2, 100, 3)))  # A always won
    assert reason(StopRules(Stop(error_below=10_000)), ratings) is None


# SPRT


def test_a_decided_test_stops() -> None:
    test = SequentialTest(Sprt(0, 100), SetShape(2, 2))
    rules = StopRules(Stop(), test)
    for position in range(29):
        test.add(position, Fraction(1))
        assert reason(rules) is None
    test.add(29, Fraction(1))
    said = reason(rules)
    assert said is not None
    assert said.startswith("the SPRT accepts H1 after 30 deal sets, with LLR ")


def test_a_limit_ends_a_test_that_does_not() -> None:
    test = SequentialTest(Sprt(-5, 5), SetShape(2, 2))
    rules = StopRules(Stop(deal_sets=50), test)
    for position in range(50):
        assert reason(rules, deal_sets=position) is None
        test.add(position, Fraction(1, 2))
    assert reason(rules, deal_sets=50) == "the limit of 50 deal sets is reached"
