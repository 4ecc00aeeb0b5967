"""The schedule: everything once, spread over few open sets, the same whatever happens, in little memory."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import count, islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.events import Disorder, by_lot, play, result_of, tournament
from tressette_tournament.formats import Stage, format_of
from tressette_tournament.lineups import Copies, Pairs, Seatings, seatings
from tressette_tournament.results import GameResult
from tressette_tournament.schedule import Game, Schedule, ScheduleError

# --- what is played --------------------------------------------------------------------------------


def test_every_line_up_plays_every_deck_in_every_seating_once() -> None:
    event = tournament()
    schedule = Schedule(event)
    games = list(play(schedule))
    assert schedule.finished
    assert schedule.complete
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


HANDS = [
    # preset, settings, games of a deal set, how often each bot of a table has each hand of a set
    ("tressette-due-duplicate", {}, 2, 1),
    ("ciapano-trio-duplicate", {}, 3, 1),
    ("ciapano-trio-duplicate", {"seatings": Seatings.ALL}, 6, 2),
    ("ciapano-31-duplicate", {}, 4, 1),
    ("ciapano-31-duplicate", {"seatings": Seatings.ALL}, 24, 6),
    ("ciapano-five-duplicate", {}, 5, 1),
    ("ciapano-five-duplicate", {"seatings": Seatings.ALL}, 120, 24),
    ("traversone-pairs-duplicate", {}, 2, 1),
    ("traversone-pairs-duplicate", {"pairs": Pairs.MIXED}, 8, 2),
    ("traversone-pairs-duplicate", {"pairs": Pairs.MIXED, "seatings": Seatings.ALL}, 24, 6),
]


@pytest.mark.parametrize(("preset", "changes", "size", "times"), HANDS)
def test_every_bot_plays_every_hand_of_a_deal_set_from_every_seat_it_should_once(
    preset: str, changes: dict[str, object], size: int, times: int
) -> None:
    """A hand is what a deck gives to a seat. No seating comes twice, and all have all hands equally often."""
    event = tournament(6, (preset,), 3, "", **changes)
    held: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
    seated: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for game in play(Schedule(event)):
        assert game.set_size == size
        assert game.seats not in seated[game.deal_set]
        seated[game.deal_set].add(game.seats)
        held[game.deal_set].update((bot, seat) for seat, bot in enumerate(game.seats))
    seats = event.presets[0].rules.players
    for deal_set, hands in held.items():
        bots = {bot for bot, _ in hands}
        assert hands == {(bot, seat): times for bot in bots for seat in range(seats)}, deal_set
        assert len(seated[deal_set]) == size


@pytest.mark.parametrize(
    ("preset", "copies", "sizes"),
    [
        ("ciapano-trio-duplicate", Copies.ONE_AGAINST_REST, {("A", "B", "B"): 3}),
        ("ciapano-31-duplicate", Copies.ONE_AGAINST_REST, {("A", "B", "B", "B"): 4}),
        ("ciapano-31-duplicate", Copies.HALVES, {("A", "A", "B", "B"): 6}),
        ("ciapano-five-duplicate", Copies.HALVES, {("A", "A", "B", "B", "B"): 10}),
    ],
)
def test_copies_take_every_arrangement_once_in_a_run_through_the_circular_orders(
    preset: str, copies: Copies, sizes: dict[tuple[str, ...], int]
) -> None:
    ((pattern, arrangements),) = sizes.items()
    event = tournament(2, (preset,), deal_sets=12, lines=f'copies = "{copies}"')
    by_line_up: dict[frozenset[tuple[str, int]], Counter[tuple[str, ...]]] = defaultdict(Counter)
    for game in play(Schedule(event)):
        by_line_up[frozenset(Counter(game.seats).items())][game.seats] += 1
    counts = sorted(Counter(pattern).values())
    assert all(sorted(n for _, n in line_up) == counts for line_up in by_line_up)
    assert len(by_line_up) == (1 if counts[0] == counts[1] else 2)
    for seen in by_line_up.values():
        assert len(seen) == arrangements
        assert len(set(seen.values())) == 1


def test_circular_orders_are_balanced() -> None:
    """Four individuals: in 6 deal sets every bot follows every other equally often."""
    follows: Counter[tuple[str, str]] = Counter()
    for game in play(Schedule(tournament(4, ("ciapano-31-duplicate",), deal_sets=6))):
        follows.update(pairwise((*game.seats, game.seats[0])))
    assert len(follows) == 12
    assert len(set(follows.values())) == 1


@pytest.mark.parametrize("preset", ["tressette-due-duplicate", "traversone-pairs-duplicate"])
def test_repeats_without_side_swap_playing_identical_games(preset: str) -> None:
    """A complaint: repeats that change neither the deck nor who sits where tell nothing new."""
    games = list(play(Schedule(tournament(3, (preset,), deal_sets=20))))
    assert len({(game.deck, game.seats) for game in games}) == len(games)
    swaps: dict[str, set[str]] = defaultdict(set)
    for game in games:
        swaps[game.deal_set].add(game.seats[0])
    assert all(len(first) == 2 for first in swaps.values()), "each side sits first once on every deck"


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


ROUNDS = ['format = "swiss"\nrounds = 3', 'format = "knockout"', 'format = "gauntlet"', ""]


@pytest.mark.parametrize("lines", ROUNDS)
def test_own_deals_give_every_set_its_deck(lines: str) -> None:
    presets = ("tressette-due-duplicate", "traversone-pairs-duplicate")
    event = tournament(6, presets, deal_sets=3, lines=lines, common_deals=False)
    decks: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for game in play(Schedule(event)):
        decks[game.deal_set].add((game.preset, game.deck_number))
        assert game.deck == game.deal_set
    assert all(len(found) == 1 for found in decks.values())
    assert len({pair for found in decks.values() for pair in found}) == len(decks)


# --- the order -------------------------------------------------------------------------------------


def test_every_bot_and_preset_is_seen_before_the_second_decks() -> None:
    games = list(play(Schedule(tournament(window=8, concurrency=1))))
    early = games[: next(i for i, game in enumerate(games) if game.set_number == 1)]
    seen = {(game.preset, bot) for game in early for bot in game.seats}
    assert len(seen) == 3 * 5
    assert {game.preset for game in games[:16]} == {game.preset for game in games}


def test_games_of_a_set_are_spread_and_open_sets_bounded() -> None:
    schedule = Schedule(tournament(window=10))
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


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(), window=st.integers(1, 70), out_at_most=st.integers(1, 80))
def test_order_does_not_depend_on_fixes_and_window_holds(seed: int, window: int, out_at_most: int) -> None:
    event = tournament(deal_sets=3, window=window)
    night = Disorder(Schedule(event), seed, out_at_most)
    night.run()
    assert night.schedule.complete
    assert night.first == list(play(Schedule(event)))
    assert night.most_open <= window


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("concurrency", [1, 20, 80])
def test_a_free_place_never_waits_with_the_default_window(concurrency: int, seed: int) -> None:
    schedule = Schedule(tournament(lines=f"concurrency = {concurrency}"))
    total = schedule.total_games or 0
    out: list[Game] = []
    rng = random.Random(seed)
    issued = 0
    while issued < total:
        while len(out) < concurrency and issued < total:
            game = schedule.issue()
            assert game is not None
            out.append(game)
            issued += 1
        # Mostly the newest: the worst case, old sets that stay open.
        game = out.pop(-1 if rng.random() < 0.9 else rng.randrange(len(out)))
        schedule.fix(game.id, result_of(game))


def test_finished_games_held_back_until_earlier_ones_finish() -> None:
    """A complaint: the first game hangs, and all others are issued, fixed and settled without it."""
    schedule = Schedule(tournament(deal_sets=30))
    stuck = schedule.issue()
    assert stuck is not None
    others = sum(1 for _ in play(schedule))
    waiting = not schedule.finished
    assert (others + 1, waiting) == (schedule.total_games, True)
    assert schedule.settled_sets == 0
    schedule.fix(stuck.id, result_of(stuck))
    assert schedule.finished
    assert schedule.settled_sets == 30


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
    schedule.fix(game.id, result_of(game))
    actions: list[Callable[[], None]] = [
        lambda: schedule.fix("p0-l0-s0-g0", None),
        lambda: schedule.roll_back("p0-l0-s0-g0"),
    ]
    for action in actions:
        with pytest.raises(ScheduleError, match="'p0-l0-s0-g0' is not being played") as caught:
            action()
        assert caught.value.game_id == "p0-l0-s0-g0"


@pytest.mark.parametrize("lines", ROUNDS)
def test_positions_number_the_sets_in_order_of_issue(lines: str) -> None:
    event = tournament(5, ("tressette-due-duplicate", "traversone-pairs-duplicate"), 3, lines)
    schedule = Schedule(event)
    # With one deal set open at a time, sets begin in their order.
    order = [game.deal_set for game in play(Schedule(replace(event, window=1, concurrency=1)))]
    list(play(schedule))
    for position, deal_set in enumerate(dict.fromkeys(order)):
        assert schedule.position(deal_set) == position
    for unknown in ("p0-l99-s0", "p9-l0-s0", "p0-l0-s999", "p0-r77-l0-s0", "nonsense"):
        with pytest.raises(ValueError, match=unknown):
            schedule.position(unknown)


# --- resuming --------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(), stop=st.integers(0, 400), window=st.integers(1, 70))
def test_resume_equals_an_uninterrupted_run(seed: int, stop: int, window: int) -> None:
    event = tournament(deal_sets=3, window=window)
    whole = list(play(Schedule(event)))
    night = Disorder(Schedule(event), seed, 8)
    night.run(stop)
    attempts = {game.id: game.attempt for game in night.out}
    resumed = Schedule(event, done=night.done, attempts=attempts)
    assert resumed.done_games == len(night.done)
    assert resumed.total_games == len(whole)
    done = {result.game for result in night.done}
    expected = [replace(game, attempt=1 + attempts.get(game.id, 0)) for game in whole if game.id not in done]
    assert list(play(resumed)) == expected
    assert resumed.complete


@settings(max_examples=60, deadline=None)
@given(
    lines=st.sampled_from(ROUNDS),
    seed=st.integers(),
    stops=st.lists(st.integers(1, 60), max_size=4),
    window=st.integers(1, 70),
)
def test_any_night_plays_the_same_games_once(lines: str, seed: int, stops: list[int], window: int) -> None:
    """Whatever finishes when, is cut or is resumed: the same games, none twice, none missing. The pairings
    follow from the results alone, so there is no journal here."""
    presets = ("tressette-due-duplicate", "traversone-pairs-duplicate")
    event = tournament(7, presets, deal_sets=2, lines=lines, window=window)
    expected = {game.id: game.seats for game in play(Schedule(event), by_lot(3))}
    done: list[GameResult] = []
    seats: dict[str, tuple[str, ...]] = {}
    for number, steps in enumerate([*stops, None]):
        night = Disorder(Schedule(event, done=iter(done)), seed + number, 1 + seed % 40, by_lot(3))
        night.run(steps)
        done += night.done
        seats |= {game.id: game.seats for game in night.first}
    assert night.schedule.complete
    assert seats == expected
    assert Counter(result.game for result in done) == Counter(list(expected))


def test_resume_of_a_finished_run_is_finished() -> None:
    event = tournament()
    schedule = Schedule(event, done=(result_of(game) for game in play(Schedule(event))))
    assert schedule.finished
    assert schedule.complete
    assert schedule.issue() is None
    assert schedule.settled_sets == 7


@pytest.mark.parametrize(
    "game_id", ["cup-1", "p0-l0-s0", "p3-l0-s0-g0", "p0-l0-s0-g128", "p0-l9999999-s0-g0"]
)
def test_results_of_another_schedule_are_refused(game_id: str) -> None:
    event = tournament()
    game = next(play(Schedule(event)))
    with pytest.raises(ValueError, match=game_id):
        Schedule(event, done=[result_of(replace(game, id=game_id))])


# --- stopping and leaving out ----------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(), steps=st.integers(0, 300), resumed=st.booleans(), window=st.integers(1, 70))
def test_after_close_open_sets_are_completed_and_none_is_begun(
    seed: int, steps: int, resumed: bool, window: int
) -> None:
    event = tournament(deal_sets=5, window=window)
    night = Disorder(Schedule(event), seed, 20)
    night.run(steps)
    done = night.done
    begun = {result.deal_set for result in done}
    if resumed:
        schedule = Schedule(event, done=done)
        schedule.close()
        done = done + [result_of(game) for game in play(schedule)]
    else:
        begun |= {game.deal_set for game in night.first}
        schedule = night.schedule
        schedule.close()
        schedule.close()
        night.run()
    assert schedule.finished
    assert not schedule.complete
    assert schedule.issue() is None
    played = Counter(result.deal_set for result in done)
    assert set(played) == begun
    assert all(played[result.deal_set] == result.set_size for result in done)


def test_left_out_games_are_issued_in_the_next_session() -> None:
    event = tournament(4, ("tressette-due-duplicate",), deal_sets=3)
    schedule = Schedule(event)
    done: list[GameResult] = []
    left_out: set[str] = set()
    while game := schedule.issue():
        if "bot2" in game.seats and game.set_number:
            schedule.fix(game.id, None)
            left_out.add(game.id)
        else:
            schedule.fix(game.id, result_of(game))
            done.append(result_of(game))
    assert schedule.finished
    assert not schedule.complete
    assert schedule.settled_sets == 1
    again = Schedule(event, done=done)
    assert {game.id for game in play(again)} == left_out
    assert again.complete
    assert again.settled_sets == 3


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(), lines=st.sampled_from(ROUNDS), resume_at=st.integers(0, 100))
def test_settled_sets_have_all_their_results(seed: int, lines: str, resume_at: int) -> None:
    event = tournament(5, ("tressette-due-duplicate", "traversone-pairs-duplicate"), 3, lines, window=4)
    lacking = Counter(game.set_number for game in play(Schedule(event)))
    end = max(lacking) + 1
    before = Disorder(Schedule(event), seed, 10)
    before.run(resume_at)
    night = Disorder(Schedule(event, done=before.done), seed, 10)
    lacking.subtract(int(one.deal_set.rpartition("-s")[2]) for one in before.done)
    settled = counted = 0
    while night.step():
        lacking.subtract(int(one.deal_set.rpartition("-s")[2]) for one in night.done[counted:])
        counted = len(night.done)
        assert night.schedule.settled_sets >= settled
        settled = night.schedule.settled_sets
        assert not any(lacking[number] for number in range(settled))
    assert night.schedule.settled_sets == end


# --- extending -------------------------------------------------------------------------------------


def _stages(*stages: tuple[int, int, int]) -> list[Stage]:
    return [Stage(tuple(f"bot{n}" for n in range(bots)), sets, first) for bots, sets, first in stages]


@pytest.mark.parametrize("lines", ["", 'format = "gauntlet"'])
def test_an_extension_keeps_what_was_played_and_uses_fresh_decks(lines: str) -> None:
    presets = ("tressette-due-duplicate", "traversone-pairs-duplicate")
    before = tournament(3, presets, 2, lines)
    first = list(play(Schedule(before)))
    after = tournament(5, presets, 6, lines)
    extended = Schedule(
        after, format_of(after, stages=_stages((3, 2, 0), (5, 6, 2))), done=map(result_of, first)
    )
    new = list(play(extended))
    assert extended.complete
    assert extended.total_games == len(first) + len(new)
    assert {game.id for game in first}.isdisjoint(game.id for game in new)
    assert {game.deck for game in first}.isdisjoint(game.deck for game in new)
    sets: dict[tuple[str, tuple[str, ...]], set[str]] = defaultdict(set)
    for game in first + new:
        sets[game.preset, tuple(sorted(game.seats))].add(game.deal_set)
    assert len(sets) == 2 * (10 if not lines else 4)
    assert {len(found) for found in sets.values()} == {6}


def test_an_extension_can_begin_before_the_event_is_through() -> None:
    before, after = tournament(4, deal_sets=2), tournament(5, deal_sets=3)
    night = Disorder(Schedule(before), 1, 6)
    night.run(20)
    stages = _stages((4, 2, 0), (5, 3, 2))
    whole = {game.id for game in play(Schedule(after, format_of(after, stages=stages)))}
    rest = Schedule(after, format_of(after, stages=stages), done=night.done)
    assert {game.id for game in play(rest)} == whole - {result.game for result in night.done}
    assert rest.complete


# --- memory ----------------------------------------------------------------------------------------


def _peak_bytes(deal_sets: int, games: int, done: int = 0) -> int:
    """Most memory in use while so many games are issued and fixed, after a resume with ``done`` of them."""
    event = tournament(deal_sets=deal_sets)
    any_result = result_of(next(play(Schedule(event))))
    ids = (
        f"p1-l{line_up}-s{number}-g{game}" for number in count() for line_up in range(10) for game in (0, 1)
    )
    before = (replace(any_result, game=game_id) for game_id in islice(ids, done))
    tracemalloc.start()
    try:
        schedule = Schedule(event, done=before)
        for _ in range(games):
            game = schedule.issue()
            assert game is not None
            schedule.fix(game.id, any_result)  # no matter which: this format does not look at results
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_growing_with_scheduled_games() -> None:
    """A complaint: here it grows neither with the games of the schedule nor with those that are played."""
    small = _peak_bytes(deal_sets=50, games=2_000)
    large = _peak_bytes(deal_sets=1_000_000, games=30_000)  # 60 million games in all
    assert large < small + 50_000
    assert large < 500_000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_million_games_take_half_a_megabyte() -> None:
    assert _peak_bytes(deal_sets=20_000, games=1_000_000) < 500_000


def test_a_resume_takes_eight_bytes_for_each_done_game() -> None:
    none = _peak_bytes(deal_sets=50_000, games=10)
    many = _peak_bytes(deal_sets=50_000, games=10, done=40_000)
    assert many < none + 40_000 * 10 + 100_000


@pytest.mark.slow
def test_a_resume_of_200_000_games_takes_two_and_a_half_megabytes() -> None:
    assert _peak_bytes(deal_sets=50_000, games=10, done=200_000) < 2_500_000


def test_sets_that_were_begun_without_a_result_are_finished_after_the_end() -> None:
    """A run was killed when an event had just been ended: what was under way was open, and is played."""
    event = tournament(deal_sets=40)
    schedule = Schedule(event)
    out = [game for game in (schedule.issue() for _ in range(20)) if game is not None]
    begun = {game.deal_set for game in out}
    again = Schedule(event, attempts={game.id: game.attempt for game in out})
    again.close()
    played = list(iter(again.issue, None))
    assert {game.deal_set for game in played} == begun
    assert len(played) == sum({game.deal_set: game.set_size for game in out}.values())
    assert {game.id for game in out} <= {game.id for game in played if game.attempt == 2}
