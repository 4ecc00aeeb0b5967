"""The schedule: everything once, spread over few open sets, the same whatever happens, in little memory."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tressette_tournament.lineups import Copies, Pairs, Seatings, seatings
from tressette_tournament.schedule import Game, Schedule, ScheduleError
from tressette_tournament.tournament_file import Tournament, parse

TEXT = """
[tournament]
name = "schedule test"
presets = ["ciapano-31-duplicate", "tressette-due-duplicate", "traversone-pairs-duplicate"]
deal_sets = 7
"""


def tournament(bots: int = 5, **changes: object) -> Tournament:
    entries = [f'[[bots]]\nname = "bot{n}"\nbot = "greedy"\n' for n in range(bots)]
    parsed = parse("\n".join([TEXT, *entries]), file="t.toml", folder=Path("/x"), reference_bots=["greedy"])
    return replace(parsed, **changes)  # type: ignore[arg-type]  # the tests name fields only


def play(schedule: Schedule) -> Iterator[Game]:
    """Every game, each fixed before the next is issued."""
    while game := schedule.issue():
        yield game
        schedule.fix(game.id)


def test_every_line_up_plays_every_deck_in_every_seating_once() -> None:
    event = tournament()
    schedule = Schedule(event)
    games = list(play(schedule))
    assert schedule.finished
    assert (
        len({game.id for game in games})
        == len(games)
        == schedule.total_games
        == 7 * (5 * 4 + 10 * 2 + 10 * 2)
    )
    sets: dict[str, list[Game]] = defaultdict(list)
    for game in games:
        sets[game.deal_set].append(game)
    for index, preset in enumerate(event.presets):
        for number, line_up in enumerate(event.line_ups(preset)):
            for set_number in range(7):
                found = sets.pop(f"p{index}-l{number}-s{set_number}")
                assert tuple(game.seats for game in found) == seatings(
                    line_up, event.table(preset), set_number
                )
                assert {game.set_size for game in found} == {len(found)}
                assert {(game.preset, game.set_number) for game in found} == {(preset.name, set_number)}
                assert [game.id for game in found] == [f"{found[0].deal_set}-g{i}" for i in range(len(found))]
    assert not sets


@pytest.mark.parametrize("copies", list(Copies))
@pytest.mark.parametrize("mode", list(Seatings))
@pytest.mark.parametrize("pairs", list(Pairs))
def test_total_games_counts_what_is_issued(mode: Seatings, pairs: Pairs, copies: Copies) -> None:
    for deal_sets in (1, 2, 5):
        schedule = Schedule(tournament(deal_sets=deal_sets, seatings=mode, pairs=pairs, copies=copies))
        assert schedule.total_games == sum(1 for _ in play(schedule))


def test_common_deals_share_decks_between_pairings_only() -> None:
    by_deck: dict[str, set[tuple[str, int, int]]] = defaultdict(set)
    for game in play(Schedule(tournament())):
        by_deck[game.deck].add((game.preset, game.set_number, game.deck_number))
    assert len(by_deck) == 3 * 7
    for found in by_deck.values():
        ((_, set_number, deck_number),) = found
        assert set_number == deck_number


def test_own_deals_give_every_set_its_deck() -> None:
    decks: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for game in play(Schedule(tournament(common_deals=False))):
        decks[game.deal_set].add((game.preset, game.deck_number))
        assert game.deck == game.deal_set
    assert all(len(found) == 1 for found in decks.values())
    assert len({pair for found in decks.values() for pair in found}) == len(decks) == 7 * 25


def test_every_bot_and_preset_is_seen_before_the_second_decks() -> None:
    games = list(play(Schedule(tournament(), window=8)))
    early = games[: next(i for i, game in enumerate(games) if game.set_number == 1)]
    seen = {(game.preset, bot) for game in early for bot in game.seats}
    assert len(seen) == 3 * 5
    assert {game.preset for game in games[:16]} == {game.preset for game in games}


def test_games_of_a_set_are_spread_and_open_sets_bounded() -> None:
    schedule = Schedule(tournament(), window=10)
    left: Counter[str] = Counter()
    turns: dict[str, list[int]] = defaultdict(list)
    for turn, game in enumerate(play(schedule)):
        left.setdefault(game.deal_set, game.set_size)
        assert len(left) <= 10
        turns[game.deal_set].append(turn)
        left[game.deal_set] -= 1
        if not left[game.deal_set]:
            del left[game.deal_set]
    assert not left
    assert min(b - a for found in turns.values() for a, b in pairwise(found)) >= 3


def run_in_disorder(schedule: Schedule, rng: random.Random, out_at_most: int) -> tuple[list[Game], int]:
    """Issue and fix at random with rollbacks; first attempts in order, and the most sets open at once."""
    out: list[Game] = []
    first: list[Game] = []
    left: dict[str, int] = {}
    most_open = 0
    while not schedule.finished:
        game = schedule.issue() if len(out) < out_at_most and rng.random() < 0.7 else None
        if game is not None:
            out.append(game)
            if game.attempt == 1:
                first.append(game)
                left.setdefault(game.deal_set, game.set_size)
        elif out:
            game = out.pop(rng.randrange(len(out)))
            if rng.random() < 0.1:
                schedule.roll_back(game.id)
            else:
                schedule.fix(game.id)
                left[game.deal_set] -= 1
                if not left[game.deal_set]:
                    del left[game.deal_set]
        most_open = max(most_open, len(left))
    return first, most_open


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(), window=st.integers(1, 70), out_at_most=st.integers(1, 80))
def test_order_does_not_depend_on_fixes_and_window_holds(seed: int, window: int, out_at_most: int) -> None:
    event = tournament(deal_sets=3)
    first, most_open = run_in_disorder(Schedule(event, window=window), random.Random(seed), out_at_most)
    assert first == list(play(Schedule(event, window=window)))
    assert most_open <= window


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("concurrency", [1, 20, 80])
def test_a_free_place_never_waits_with_the_default_window(concurrency: int, seed: int) -> None:
    schedule = Schedule(tournament(concurrency=concurrency))
    out: list[Game] = []
    rng = random.Random(seed)
    issued = 0
    while issued < schedule.total_games:
        while len(out) < concurrency and issued < schedule.total_games:
            game = schedule.issue()
            assert game is not None
            out.append(game)
            issued += 1
        # Mostly the newest: the worst case, old sets that stay open.
        schedule.fix(out.pop(-1 if rng.random() < 0.9 else rng.randrange(len(out))).id)


def test_rolled_back_games_come_again_first_as_the_next_attempt() -> None:
    schedule = Schedule(tournament())
    first, second = schedule.issue(), schedule.issue()
    assert first is not None
    assert second is not None
    schedule.roll_back(second.id)
    schedule.roll_back(first.id)
    assert schedule.issue() == replace(second, attempt=2)
    assert schedule.issue() == replace(first, attempt=2)
    schedule.roll_back(first.id)
    assert schedule.issue() == replace(first, attempt=3)


def test_last_game_rolled_back_keeps_the_schedule_unfinished() -> None:
    schedule = Schedule(tournament(bots=5, deal_sets=1))
    *_, last = (game for game in iter(schedule.issue, None))
    assert not schedule.finished
    schedule.roll_back(last.id)
    assert not schedule.finished
    assert schedule.issue() == replace(last, attempt=2)


def test_only_games_that_are_out_are_fixed_or_rolled_back() -> None:
    schedule = Schedule(tournament())
    game = schedule.issue()
    assert game is not None
    schedule.fix(game.id)
    for action in (schedule.fix, schedule.roll_back):
        with pytest.raises(ScheduleError, match="'p0-l0-s0-g0' is not being played") as caught:
            action("p0-l0-s0-g0")
        assert caught.value.game_id == "p0-l0-s0-g0"


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(), stop=st.integers(0, 180), window=st.integers(1, 70))
def test_resume_equals_an_uninterrupted_run(seed: int, stop: int, window: int) -> None:
    event = tournament(deal_sets=3)
    whole = list(play(Schedule(event, window=window)))
    before, rng = Schedule(event, window=window), random.Random(seed)
    out: list[str] = []
    done: set[str] = set()
    while len(done) < min(stop, len(whole)):
        game = before.issue() if len(out) < 8 else None
        if game is not None:
            out.append(game.id)
        else:
            finished = out.pop(rng.randrange(len(out)))
            before.fix(finished)
            done.add(finished)
    after = Schedule(event, done=done, attempts=dict.fromkeys(out, 1), window=window)
    cut = set(out)
    expected = [replace(g, attempt=2) if g.id in cut else g for g in whole if g.id not in done]
    assert list(play(after)) == expected
    assert after.total_games == len(whole)


def test_resume_of_a_finished_run_is_finished() -> None:
    event = tournament()
    schedule = Schedule(event, done={game.id for game in play(Schedule(event))})
    assert schedule.finished
    assert schedule.issue() is None


def test_impossible_window_is_refused() -> None:
    with pytest.raises(ValueError, match="window of 0"):
        Schedule(tournament(), window=0)


def peak_bytes(deal_sets: int, games: int) -> int:
    schedule = Schedule(tournament(deal_sets=deal_sets))
    tracemalloc.start()
    try:
        for _ in range(games):
            game = schedule.issue()
            assert game is not None
            schedule.fix(game.id)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_schedule() -> None:
    small = peak_bytes(deal_sets=50, games=2_000)
    large = peak_bytes(deal_sets=1_000_000, games=50_000)  # 60 million games in all
    assert large < small + 50_000
    assert large < 500_000
