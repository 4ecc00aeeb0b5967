"""The formats: who meets whom, byes, ties and brackets, ladders that watch who is there, and what FORMATS.md
says of them."""

from __future__ import annotations

import re
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.events import Disorder, Winner, all_drawn, by_lot, by_number, play, result_of, tournament
from tressette_tournament.formats import (
    FixedRounds,
    Fixture,
    FormatError,
    History,
    Knockout,
    Ladder,
    Rated,
    Round,
    Score,
    Stage,
    Swiss,
    format_of,
)
from tressette_tournament.lineups import Copies, Pairs, Seatings, Table, circular_orders, fill, games_of
from tressette_tournament.results import GameResult
from tressette_tournament.schedule import LADDER_BATCH, Game, Schedule
from tressette_tournament.toml_source import TournamentFileError

TWO, PAIR = "tressette-due-duplicate", "traversone-pairs-duplicate"
THREE, FOUR, FIVE = "ciapano-trio-duplicate", "ciapano-31-duplicate", "ciapano-five-duplicate"


SPRT = 'format = "sprt"\n[sprt]\nelo0 = 0\nelo1 = 5'


def rounds_of(games: list[Game], preset: str = TWO) -> list[list[list[str]]]:
    """The tables of each round of a preset, in order: who sat there, by number."""
    found: dict[int, dict[str, list[str]]] = defaultdict(dict)
    for game in games:
        if game.preset == preset:
            part = re.search(r"-r(\d+)-", game.id)
            found[int(part[1]) if part else 0][game.deal_set.rpartition("-s")[0]] = sorted(set(game.seats))
    return [[bots for _, bots in sorted(found[number].items())] for number in sorted(found)]


# --- which format ----------------------------------------------------------------------------------


def test_a_misspelt_format_silently_playing_another() -> None:
    """A complaint: here it is refused, with the nearest name."""
    with pytest.raises(TournamentFileError, match="knockout"):
        tournament(4, (TWO,), lines='format = "knokout"')


def test_every_format_plays_what_it_is_called() -> None:
    kinds = {
        'format = "round-robin"': FixedRounds,
        'format = "gauntlet"': FixedRounds,
        'format = "swiss"\nrounds = 2': Swiss,
        'format = "knockout"': Knockout,
        'format = "ladder"': Ladder,
    }
    plays = set()
    for lines, kind in kinds.items():
        event = tournament(5, (TWO,), 1, lines)
        event_format = format_of(event)
        assert type(event_format) is kind
        schedule = Schedule(event, event_format)
        for bot in event.bots:
            if isinstance(event_format, Ladder):
                schedule.connected(bot.name, True)
        plays.add(tuple((game.id, game.seats) for game in islice(play(schedule), 50)))
    assert len(plays) == len(kinds)


@pytest.mark.parametrize(
    ("preset", "tables"),
    [
        (TWO, {("bot0", "bot1")}),
        (FOUR, {("bot0", "bot1", "bot1", "bot1"), ("bot0", "bot0", "bot0", "bot1")}),
    ],
)
def test_sprt_plays_two_bots_until_its_last_set(preset: str, tables: set[tuple[str, ...]]) -> None:
    event = tournament(2, (preset,), 5, SPRT)
    games = list(play(Schedule(event)))
    by_table = Counter(tuple(sorted(game.seats)) for game in games)
    assert by_table.keys() == tables
    assert len(set(by_table.values())) == 1
    assert {game.set_number for game in games} == set(range(5))


# --- gauntlet --------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", [TWO, THREE, FOUR, FIVE, PAIR])
@pytest.mark.parametrize("challengers", [1, 2, 3])
def test_every_table_of_a_gauntlet_has_one_challenger(preset: str, challengers: int) -> None:
    event = tournament(9, (preset,), 1, 'format = "gauntlet"')
    bots = tuple(replace(bot, challenger=number < challengers) for number, bot in enumerate(event.bots))
    event = replace(event, bots=bots, max_tables=30)
    names = {bot.name for bot in bots if bot.challenger}
    meetings: Counter[tuple[str, str]] = Counter()
    groups = set()
    for game in play(Schedule(event)):
        (challenger,) = names.intersection(game.seats)
        others = frozenset(game.seats) - names
        groups.add((challenger, others))
        if game.seats[0] == challenger:
            meetings.update((challenger, other) for other in others)
    assert len(groups) <= 30
    assert len(meetings) == challengers * (9 - challengers), "everybody meets every challenger"
    assert len(set(meetings.values())) == 1
    assert len({frozenset(o for c, o in groups if c == name) for name in names}) == 1, "the same tables"


def test_a_challenger_has_each_bot_of_a_mixed_table_as_its_partner() -> None:
    event = tournament(4, (PAIR,), 1, 'format = "gauntlet"\npairs = "mixed"')
    games = list(play(Schedule(event)))
    assert len(games) == 3 * 8
    partners: Counter[str] = Counter()
    for game in games:
        seat = game.seats.index("bot0")
        partners[game.seats[(seat + 2) % 4]] += 1
    assert partners == {"bot1": 8, "bot2": 8, "bot3": 8}


# --- Swiss -----------------------------------------------------------------------------------------


def swiss(bots: int, rounds: int, winner: Winner, preset: str = TWO) -> list[list[list[str]]]:
    event = tournament(bots, (preset,), 1, f'format = "swiss"\nrounds = {rounds}')
    schedule = Schedule(event)
    total = schedule.total_games
    games = list(play(schedule, winner))
    assert schedule.complete
    assert total == schedule.total_games == len(games)
    return rounds_of(games, preset)


def test_the_first_round_of_a_swiss_is_top_half_against_bottom_half() -> None:
    assert swiss(8, 1, by_number) == [
        [["bot0", "bot4"], ["bot1", "bot5"], ["bot2", "bot6"], ["bot3", "bot7"]]
    ]


def test_a_swiss_pairs_equal_scores_while_it_can() -> None:
    second, third = swiss(8, 3, by_number)[1:]
    assert second == [["bot0", "bot2"], ["bot1", "bot3"], ["bot4", "bot6"], ["bot5", "bot7"]]
    # 0 and 1 have two wins, 6 and 7 none; of the others Buchholz ranks who has met stronger bots first.
    assert third[0] == ["bot0", "bot1"]
    assert third[-1] == ["bot6", "bot7"]
    assert {frozenset(pair) for pair in third[1:3]} == {
        frozenset({"bot2", "bot4"}),
        frozenset({"bot3", "bot5"}),
    }


def test_buchholz_comes_before_the_order_in_the_file() -> None:
    form = Swiss(["a", "b", "c", "d"], [Table(2)], 3, 1)
    history = History()
    for number, pairs in enumerate([(("a", "c"), ("b", "d")), (("a", "d"), ("c", "b"))]):
        history.rounds.append(tuple(Fixture(0, pair, number, 1) for pair in pairs))
    won = [("c", "a"), ("b", "d"), ("d", "a"), ("c", "b")]
    for place, (winner, loser) in enumerate(won):
        score = history.scores[place // 2, 0, place % 2]
        score.points[winner], score.rows[winner], score.rows[loser] = 2, 1, 1
    # b has beaten d and lost to c (Buchholz 3); d has lost to b and beaten a (1); both have one point.
    assert [bot for bot, _, _ in form.standing(0, history)] == ["c", "b", "d", "a"]
    assert [tuple(map(int, row[1:])) for row in form.standing(0, history)] == [(2, 1), (1, 3), (1, 1), (0, 3)]


@settings(max_examples=60, deadline=None)
@given(bots=st.integers(2, 20), lot=st.integers(), data=st.data())
def test_nobody_meets_twice_in_the_first_half_of_a_swiss(bots: int, lot: int, data: st.DataObject) -> None:
    rounds = data.draw(st.integers(1, max(bots // 2, 1)))
    played = swiss(bots, rounds, by_lot(lot))
    assert len(played) == rounds
    meetings = Counter(tuple(pair) for tables in played for pair in tables)
    assert set(meetings.values()) == {1}
    byes: Counter[str] = Counter()
    for tables in played:
        there = [bot for pair in tables for bot in pair]
        assert len(there) == len(set(there)) == bots - bots % 2
        byes.update({f"bot{n}" for n in range(bots)} - set(there))
    assert all(count == 1 for count in byes.values())
    assert sum(byes.values()) == rounds * (bots % 2)


@settings(max_examples=20, deadline=None)
@given(bots=st.integers(2, 9), lot=st.integers(), rounds=st.integers(1, 20))
def test_a_long_swiss_repeats_only_what_it_must(bots: int, lot: int, rounds: int) -> None:
    meetings = Counter(tuple(pair) for tables in swiss(bots, rounds, by_lot(lot)) for pair in tables)
    byes = Counter({f"bot{n}": rounds for n in range(bots)})
    for pair in meetings.elements():
        byes.subtract(pair)
    assert max(byes.values()) - min(byes.values()) <= 1, "nobody twice before all had one"
    if rounds >= 2 * bots:
        assert len(meetings) == bots * (bots - 1) // 2


@pytest.mark.parametrize("preset", [THREE, FOUR, FIVE])
@pytest.mark.parametrize("bots", [5, 8, 13, 20])
def test_larger_tables_of_a_swiss_seat_everybody_once(preset: str, bots: int) -> None:
    size = {THREE: 3, FOUR: 4, FIVE: 5}[preset]
    byes = Counter(f"bot{n}" for n in range(bots) for _ in range(4))
    meetings: Counter[tuple[str, str]] = Counter()
    for tables in swiss(bots, 4, by_number, preset):
        there = [bot for table in tables for bot in table]
        assert len(there) == len(set(there)) == bots - bots % size
        assert {len(table) for table in tables} == {size}
        byes.subtract(there)
        meetings.update(pair for table in tables for pair in combinations(table, 2))
    assert max(byes.values()) - min(byes[f"bot{n}"] for n in range(bots)) <= 1
    if bots == 20:
        assert max(meetings.values()) <= 2


def test_presets_play_their_swiss_in_step_each_with_its_own_standing() -> None:
    def winner(game: Game) -> list[float]:
        order = by_number(game)
        return [-one for one in order] if game.preset == PAIR else order

    event = tournament(8, (TWO, PAIR), 2, 'format = "swiss"\nrounds = 3')
    schedule = Schedule(event)
    games = list(play(schedule, winner))
    assert rounds_of(games, TWO)[1][0] == ["bot0", "bot2"]
    assert rounds_of(games, PAIR)[1][0] == ["bot4", "bot6"]
    numbers = defaultdict(set)
    for game in games:
        numbers[game.preset, game.id.partition("-l")[0].partition("-r")[2]].add(game.set_number)
    assert [numbers[TWO, part] for part in ("", "1", "2")] == [{0, 1}, {2, 3}, {4, 5}], "fresh decks"
    assert [numbers[PAIR, part] for part in ("", "1", "2")] == [{0, 1}, {2, 3}, {4, 5}], "the same for all"
    order = [game.set_number // 2 for game in games]
    assert order == sorted(order), "a round begins when the one before is over"


def test_a_bot_that_is_lost_is_paired_no_more_and_its_opponents_lose_nothing() -> None:
    event = tournament(6, (TWO,), 1, 'format = "swiss"\nrounds = 3')
    written: list[Round] = []
    schedule = Schedule(event, write=lambda _, rounds: written.extend(rounds))
    done: list[GameResult] = []
    games: list[Game] = []
    while game := schedule.issue():
        games.append(game)
        if "bot0" in game.seats:
            schedule.connected("bot0", False)
            schedule.fix(game.id, None)
        else:
            done.append(result_of(game))
            schedule.fix(game.id, done[-1])
    assert schedule.finished
    assert not schedule.complete
    played = rounds_of(games)
    assert played[0][0] == ["bot0", "bot3"]
    assert not any("bot0" in pair for tables in played[1:] for pair in tables)
    assert "bot3" in played[1][0] + played[1][1], "bot3 is among those with a point"
    # The next session plays what was left out, and the pairings stay although results now say otherwise.
    again = Schedule(event, done=done, journal=iter(written))
    late = list(play(again))
    assert {game.seats for game in late} == {("bot0", "bot3"), ("bot3", "bot0")}
    assert again.complete


def test_a_swiss_without_enough_bots_ends_and_is_not_complete() -> None:
    event = tournament(2, (TWO,), 1, 'format = "swiss"\nrounds = 3')
    schedule = Schedule(event)
    for game in iter(schedule.issue, None):
        schedule.connected("bot1", False)
        schedule.fix(game.id, result_of(game))
    assert schedule.finished
    assert not schedule.complete


# --- knockout --------------------------------------------------------------------------------------


def knockout(
    bots: int, winner: Winner, extra_sets: int = 2, deal_sets: int = 1, preset: str = TWO, lines: str = ""
) -> tuple[list[list[list[str]]], list[tuple[int, str]]]:
    event = tournament(bots, (preset,), deal_sets, f'format = "knockout"\nextra_sets = {extra_sets}\n{lines}')
    form = format_of(event)
    assert isinstance(form, Knockout)
    schedule = Schedule(event, form)
    known = schedule.total_games or 0
    games = list(play(schedule, winner))
    assert schedule.complete
    assert known <= len(games) == schedule.total_games
    return rounds_of(games, preset), form.placings(0, schedule.history)


def test_a_bracket_of_eight() -> None:
    rounds, placings = knockout(8, by_number)
    assert rounds == [
        [["bot0", "bot7"], ["bot3", "bot4"], ["bot1", "bot6"], ["bot2", "bot5"]],
        [["bot0", "bot3"], ["bot1", "bot2"]],
        [["bot0", "bot1"]],
    ]
    assert placings == [
        *((1, "bot0"), (2, "bot1"), (3, "bot2"), (3, "bot3")),
        *((5, "bot4"), (5, "bot5"), (5, "bot6"), (5, "bot7")),
    ]


def test_the_best_seeds_have_byes() -> None:
    rounds, placings = knockout(5, by_number)
    assert rounds == [[["bot3", "bot4"]], [["bot0", "bot3"], ["bot1", "bot2"]], [["bot0", "bot1"]]]
    assert placings == [(1, "bot0"), (2, "bot1"), (3, "bot2"), (3, "bot3"), (5, "bot4")]


@pytest.mark.parametrize("extra_sets", [0, 1, 3])
def test_drawn_matches_play_further_sets_then_the_better_seed_goes_on(extra_sets: int) -> None:
    rounds, placings = knockout(4, all_drawn, extra_sets)
    first, final = [["bot0", "bot3"], ["bot1", "bot2"]], [["bot0", "bot1"]]
    assert rounds == [first] * (1 + extra_sets) + [final] * (1 + extra_sets)
    assert placings == [(1, "bot0"), (2, "bot1"), (3, "bot2"), (3, "bot3")]


def test_only_drawn_matches_play_further_sets() -> None:
    def winner(game: Game) -> list[float]:
        # bot3 draws its first set with bot0, then wins.
        return [0, 0] if "bot3" in game.seats and game.set_number < 2 else [int(s[3:]) for s in game.seats]

    rounds, placings = knockout(4, winner, deal_sets=2)
    assert rounds == [[["bot0", "bot3"], ["bot1", "bot2"]], [["bot0", "bot3"]], [["bot2", "bot3"]]]
    assert placings == [(1, "bot3"), (2, "bot2"), (3, "bot0"), (3, "bot1")]


@settings(max_examples=60, deadline=None)
@given(
    bots=st.integers(2, 17),
    lot=st.integers(),
    extra_sets=st.integers(0, 3),
    table=st.sampled_from([(TWO, ""), (PAIR, ""), (FOUR, 'copies = "one-against-rest"')]),
)
def test_everyone_but_the_winner_loses_one_match(
    bots: int, lot: int, extra_sets: int, table: tuple[str, str]
) -> None:
    rounds, placings = knockout(bots, by_lot(lot), extra_sets, 1, *table)
    matches = {tuple(pair) for tables in rounds for pair in tables}
    assert len(matches) == bots - 1
    played = Counter(bot for pair in matches for bot in pair)
    assert sorted(bot for _, bot in placings) == sorted(f"bot{n}" for n in range(bots))
    winner = placings[0][1]
    places = Counter(place for place, _ in placings)
    assert (places[1], places[2]) == (1, 1)
    for _, bot in placings:
        assert played[bot] <= played[winner] or bot == winner or bots & (bots - 1)


def test_a_match_that_cannot_be_finished_is_a_walkover_and_stays_one() -> None:
    event = tournament(4, (TWO,), 1, 'format = "knockout"')
    form = format_of(event)
    assert isinstance(form, Knockout)
    written: list[Round] = []
    schedule = Schedule(event, form, write=lambda _, rounds: written.extend(rounds))
    done: list[GameResult] = []
    while game := schedule.issue():
        if "bot0" in game.seats:
            schedule.connected("bot0", False)
            schedule.fix(game.id, None)
        else:
            done.append(result_of(game))
            schedule.fix(game.id, done[-1])
    assert schedule.finished
    assert not schedule.complete
    assert form.placings(0, schedule.history) == [(1, "bot1"), (2, "bot3"), (3, "bot0"), (3, "bot2")]
    again = Schedule(event, form, done=done, journal=iter(written))
    assert {game.seats for game in play(again)} == {("bot0", "bot3"), ("bot3", "bot0")}
    assert again.complete
    assert form.placings(0, again.history)[0] == (1, "bot1"), "bot0 would have beaten bot3, too late"


def test_a_score_counts_rows_of_different_bots_and_of_a_forfeit_the_offender_only() -> None:
    event = tournament(2, (FOUR,), 1, SPRT)
    game = next(one for one in play(Schedule(event)) if one.seats.count("bot0") == 1)
    score = Score()
    score.add(result_of(game))
    assert (score.games, score.points, score.rows) == (1, {"bot0": 6, "bot1": 0}, {"bot0": 3, "bot1": 3})
    forfeit = next(seat for seat, bot in enumerate(game.seats) if bot == "bot1")
    score = Score()
    score.add(replace(result_of(game), forfeit=forfeit, offender="bot1"))
    assert (score.points, score.rows) == ({"bot0": 2, "bot1": 0}, {"bot0": 1, "bot1": 1})


# --- extensions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "stages", "message"),
    [
        ('format = "swiss"\nrounds = 2', [(3, 7), (5, 7)], "swiss cannot be extended"),
        ('format = "knockout"', [(3, 7), (5, 7)], "knockout cannot be extended"),
        ('format = "ladder"', [(3, 7), (5, 7)], "new bots just join"),
        ("", [(5, 7), (4, 7)], "keeps every bot"),
        ("", [(6, 7), (5, 8)], "bot5 is gone"),
        ("", [(5, 7), (5, 6)], "7 before, 6 now"),
        ("", [(4, 9), (5, 9)], "begins with deal set 8, which was played before"),
    ],
)
def test_extensions_that_cannot_be(lines: str, stages: list[tuple[int, int]], message: str) -> None:
    event = tournament(5, (TWO,), 7, lines)
    given_stages = [
        Stage(tuple(f"bot{n}" for n in range(bots)), sets, 8 * number)
        for number, (bots, sets) in enumerate(stages)
    ]
    with pytest.raises(FormatError, match=message):
        format_of(event, stages=given_stages)


# --- ladder ----------------------------------------------------------------------------------------


class Standings:
    """Ratings that a test sets, by (preset, bot)."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, str], Rated] = {}

    def __call__(self) -> dict[tuple[int, str], Rated]:
        return self.known


def ladder(
    bots: int = 6, presets: tuple[str, ...] = (TWO,), **changes: object
) -> tuple[Callable[..., Schedule], Standings, list[Round]]:
    """How to make a ladder's schedule, its ratings, and its journal."""
    event = tournament(bots, presets, 1, 'format = "ladder"', **changes)
    standings, journal = Standings(), list[Round]()

    def make(done: list[GameResult] | None = None, connect: bool = True) -> Schedule:
        def write(first: int, rounds: object) -> None:
            assert first == len(journal)
            journal.extend(rounds)  # type: ignore[arg-type]  # a list of rounds

        form = format_of(event, ratings=standings)
        schedule = Schedule(event, form, done=done or [], journal=iter(list(journal)), write=write)
        for bot in event.bots if connect else ():
            schedule.connected(bot.name, True)
        return schedule

    return make, standings, journal


def first_games(schedule: Schedule, count: int) -> Iterator[Game]:
    """So many games, each fixed before the next is issued."""
    for _ in range(count):
        game = schedule.issue()
        assert game is not None
        schedule.fix(game.id, result_of(game))
        yield game


def test_a_ladder_goes_on_until_it_is_closed_and_completes_its_sets() -> None:
    make, _, journal = ladder()
    schedule = make()
    assert schedule.total_games is None
    games = list(first_games(schedule, 501))
    under_way = schedule.issue()
    assert under_way is not None
    schedule.close()
    still_open = not schedule.finished
    schedule.fix(under_way.id, result_of(under_way))
    games += [under_way, *play(schedule)]
    assert (still_open, schedule.finished, schedule.complete) == (True, True, True)
    sets = Counter(game.deal_set for game in games)
    sizes = {game.deal_set: game.set_size for game in games}
    assert sets == sizes
    assert len(journal) * 2 >= len(games)


def test_nobody_is_connected_to_a_ladder_at_first() -> None:
    make, _, journal = ladder()
    schedule = make(connect=False)
    assert schedule.issue() is None
    assert not schedule.finished
    schedule.connected("bot1", True)
    assert schedule.issue() is None
    schedule.connected("bot4", True)
    game = schedule.issue()
    assert game is not None
    assert set(game.seats) == {"bot1", "bot4"}
    with pytest.raises(KeyError):
        schedule.connected("stranger", True)
    assert len(journal) == LADDER_BATCH, "written before the first game is issued"


def test_without_ratings_a_ladder_gives_everybody_as_many_sets() -> None:
    make, _, journal = ladder(6, (TWO, PAIR))
    list(first_games(make(), 600))
    sets = Counter((one.preset, bot) for fixtures in journal for one in fixtures for bot in set(one.line_up))
    assert len(sets) == 12
    assert max(sets.values()) - min(sets.values()) <= 2
    meetings = Counter((one.preset, one.line_up) for fixtures in journal for one in fixtures)
    assert len(meetings) == 30
    assert max(meetings.values()) - min(meetings.values()) <= 3


def test_a_ladder_chooses_who_is_least_certain_among_those_near_in_rating() -> None:
    make, standings, journal = ladder(6)
    ratings = {"bot0": 0, "bot1": 600, "bot2": 10, "bot3": -600, "bot4": 620, "bot5": -20}
    standings.known = {(0, bot): Rated(rating, 20.0, 400) for bot, rating in ratings.items()}
    standings.known[0, "bot0"] = Rated(0, 90.0, 50)
    schedule = make()
    next(play(schedule))
    chosen = Counter(bot for (fixture,) in journal for bot in set(fixture.line_up))
    assert chosen["bot0"] == LADDER_BATCH
    assert chosen["bot2"] + chosen["bot5"] == LADDER_BATCH
    assert chosen["bot2"] == chosen["bot5"], "a pair that has met tells less"


def test_a_new_bot_of_a_ladder_is_rated_first() -> None:
    make, standings, journal = ladder(6)
    standings.known = {(0, f"bot{n}"): Rated(0, 20.0, 400) for n in range(5)}
    next(play(make()))
    assert all("bot5" in fixture.line_up for (fixture,) in journal)


def test_games_of_a_ladder_wait_for_their_bots_and_hold_up_nobody() -> None:
    make, _, _ = ladder(4, window=3)
    schedule = make()
    out = [game for _ in range(2) if (game := schedule.issue()) is not None]
    gone = out[0].seats[0]
    schedule.connected(gone, False)
    for game in out:
        schedule.roll_back(game.id)
    later = list(first_games(schedule, 200))
    assert len(later) == 200
    assert not any(gone in game.seats for game in later)
    settled = schedule.settled_sets
    assert settled == 0
    schedule.connected(gone, True)
    back = schedule.issue()
    assert back is not None
    assert gone in back.seats
    assert back.attempt == 2


def test_a_game_that_is_rolled_back_waits_for_a_bot_that_goes_then() -> None:
    make, _, _ = ladder(3, concurrency=1)
    schedule = make()
    game = schedule.issue()
    assert game is not None
    schedule.roll_back(game.id)
    schedule.connected(game.seats[0], False)
    other = schedule.issue()
    assert other is not None
    assert game.seats[0] not in other.seats
    schedule.close()
    schedule.fix(other.id, result_of(other))
    for left in play(schedule):
        assert game.seats[0] not in left.seats
    assert schedule.finished
    assert not schedule.complete, "a set lacks the games of a bot that has gone"


def test_memory_does_not_grow_with_the_games_of_a_ladder() -> None:
    def peak(games: int) -> int:
        event = tournament(6, (TWO,), 1, 'format = "ladder"')
        tracemalloc.start()
        try:
            schedule = Schedule(event)
            for bot in event.bots:
                schedule.connected(bot.name, True)
            for _ in first_games(schedule, games):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(500)  # what the interpreter and its libraries keep from a first time on does not count
    few = peak(500)
    assert peak(4_000) < few + 60_000, "17 bytes a game, less than any object takes"


@pytest.mark.parametrize("lines", ['format = "ladder"', 'format = "swiss"\nrounds = 2'])
@pytest.mark.parametrize("fixture", [Fixture(1, ("bot0", "bot1"), 0, 1), Fixture(0, ("bot0", "eve"), 0, 1)])
def test_a_journal_of_another_tournament_is_refused(lines: str, fixture: Fixture) -> None:
    with pytest.raises(ValueError, match="another tournament"):
        Schedule(tournament(4, (TWO,), 1, lines), journal=[(fixture,)])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(),
    stops=st.lists(st.integers(1, 80), min_size=1, max_size=4),
    window=st.integers(1, 70),
    out=st.integers(1, 40),
)
def test_a_ladder_resumes_by_its_journal(seed: int, stops: list[int], window: int, out: int) -> None:
    """At the end every set that was begun has each of its games once, whatever was cut and resumed."""
    make, _, journal = ladder(5, (TWO, FOUR), window=window)
    done: list[GameResult] = []
    begun: dict[str, int] = {}
    for number, steps in enumerate(stops):
        kept = list(journal)
        night = Disorder(make(done), seed + number, out)
        assert journal[: len(kept)] == kept
        night.run(steps)
        done += night.done
        begun |= {game.deal_set: game.set_size for game in night.first}
    last = make(done)
    last.close()
    rest = [result_of(game) for game in play(last)]
    assert last.finished
    played = Counter(result.game for result in done + rest)
    assert set(played.values()) <= {1}
    sets = Counter(result.deal_set for result in done + rest)
    with_results = {result.deal_set for result in done}
    assert sets == {deal_set: begun[deal_set] for deal_set in with_results}


def test_the_same_journal_gives_the_same_games_whoever_is_there() -> None:
    make, standings, journal = ladder(5)
    night = Disorder(make(), 1, 10)
    night.run(100)
    chosen = len(journal)
    expected = [(number, fixture.line_up) for number, fixtures in enumerate(journal) for fixture in fixtures]
    standings.known = {(0, "bot0"): Rated(0, 500.0, 9)}
    again = make(night.done)
    games = {result.deal_set: {bot for side in result.sides for bot in side} for result in night.done}
    for game in first_games(again, 300):
        games[game.deal_set] = set(game.seats)
    for number, line_up in expected:
        part = f"-r{number}" if number else ""
        assert games[f"p0{part}-l0-s{number}"] == set(line_up)
    assert len(journal) > chosen


def test_choices_that_cannot_be_written_are_not_played() -> None:
    event = tournament(4, (TWO,), 1, 'format = "ladder"')
    written: list[Round] = []
    full = [True]

    def write(_: int, rounds: object) -> None:
        if full[0]:
            raise OSError("no space left")
        written.extend(rounds)  # type: ignore[arg-type]  # a list of rounds

    schedule = Schedule(event, write=write)
    for bot in event.bots:
        schedule.connected(bot.name, True)
    for _ in range(3):
        with pytest.raises(OSError, match="no space left"):
            schedule.issue()
    full[0] = False
    game = schedule.issue()
    assert game is not None
    assert len(written) == LADDER_BATCH
    assert set(game.seats) == set(written[0][0].line_up)


# --- FORMATS.md ------------------------------------------------------------------------------------

DOCS = Path(__file__).resolve().parents[2] / "tournament/FORMATS.md"


def _rows() -> dict[str, list[str]]:
    lines = DOCS.read_text(encoding="utf-8").split("## Line-ups and seatings")[1].splitlines()
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines if line[:1] == "|"]
    return {row[0]: row[1:] for row in rows[2:]}


ROWS = {
    "2 players": Table(2),
    "3 individuals": Table(3),
    "4 individuals": Table(4),
    "5 individuals": Table(5),
    "pairs of copies": Table(4, paired=True),
    "mixed pairs": Table(4, paired=True, pairs=Pairs.MIXED),
    **{f"{n}, one against rest": Table(n, copies=Copies.ONE_AGAINST_REST) for n in (3, 4, 5)},
    **{f"{n}, halves": Table(n, copies=Copies.HALVES) for n in (4, 5)},
}


def test_the_table_in_the_documentation_names_every_table() -> None:
    assert _rows().keys() == ROWS.keys()


@pytest.mark.parametrize("name", ROWS)
def test_the_table_in_the_documentation_is_right(name: str) -> None:
    shown, of_group, orders, *modes = _rows()[name]
    table = ROWS[name]
    group = ["A", "B", "C", "D", "E"][: table.different_bots]
    line_ups = fill(table, group)
    line_up = min(line_ups, key=lambda one: (one.count("A"), one))
    assert " ".join(line_up) == shown.replace(" v", "")
    wanted = str(len(line_ups))
    everything = len(fill(replace(table, seatings=Seatings.ALL), group))
    assert of_group == (wanted if everything == len(line_ups) else f"{wanted}, `all`: {everything}")
    assert orders == ("" if table.paired else str(len(circular_orders(line_up))))
    for mode, cell in zip((Seatings.CYCLIC, Seatings.ALL, Seatings.ONCE), modes, strict=True):
        with_mode = replace(table, seatings=mode)
        sizes = dict.fromkeys(games_of(line_up, with_mode, number, 1) for number in range(24))
        assert cell == " or ".join(str(size) for size in sizes), mode
