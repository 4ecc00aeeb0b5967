"""Games that wait: they start in order as far as they can, as if all were looked at each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import game_spec
from tressette.play.waiting import Block, Waiting, WaitingGame
from tressette.record.game import GameSpec


@dataclass
class Seats:
    """Sessions that games can be put on: (bot, number) -> free places and the decks they have met."""

    fresh: bool
    free: dict[tuple[str, int], int] = field(default_factory=dict)
    met: dict[tuple[str, int], set[str]] = field(default_factory=dict)

    def place(self, game: WaitingGame) -> Block | list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for bot, seats in Counter(game.spec.bots).items():
            unmet = [
                one
                for one in self.free
                if one[0] == bot and not (self.fresh and game.spec.deck in self.met[one])
            ]
            usable = [one for one in unmet if self.free[one]]
            if len(usable) < seats:
                if not self.fresh:
                    return Block(bot, seats)
                return Block(bot, seats, game.spec.deck, seen=len(unmet) < seats)
            found += usable[:seats]
        return found

    def take(self, deck: str, sessions: Iterable[tuple[str, int]]) -> None:
        for one in sessions:
            self.free[one] -= 1
            self.met[one].add(deck)


class Both:
    """The games that wait, and the plain way to do the same: look at all of them, each time."""

    def __init__(self, fresh: bool) -> None:
        self.waiting = Waiting()
        self.seats = Seats(fresh)
        self.plain: list[GameSpec] = []
        self.plain_seats = Seats(fresh)
        self.under_way: list[list[tuple[str, int]]] = []
        self.looks = 0

    def add(self, spec: GameSpec) -> None:
        self.waiting.add(spec)
        self.plain.append(spec)

    def remove(self, game: str) -> None:
        there = any(spec.game == game for spec in self.plain)
        assert self.waiting.remove(game) == there
        self.plain = [spec for spec in self.plain if spec.game != game]

    def comes(self, session: tuple[str, int], places: int) -> None:
        for seats in (self.seats, self.plain_seats):
            seats.free[session] = places
            seats.met[session] = set()
        self.waiting.sessions(session[0])

    def goes(self, session: tuple[str, int]) -> None:
        for seats in (self.seats, self.plain_seats):
            del seats.free[session]
        self.under_way = [[one for one in game if one != session] for game in self.under_way]
        self.waiting.sessions(session[0])

    def ends(self, number: int) -> None:
        for one in self.under_way.pop(number % len(self.under_way)):
            for seats in (self.seats, self.plain_seats):
                seats.free[one] += 1
            self.waiting.room(one[0])

    def _look(self, game: WaitingGame) -> Block | list[tuple[str, int]]:
        self.looks += 1
        return self.seats.place(game)

    def fill(self) -> None:
        started = []
        for spec, sessions in self.waiting.startable(self._look):
            self.seats.take(spec.deck, sessions)
            self.under_way.append(sessions)
            started.append(spec.game)
        expected = []
        for spec in list(self.plain):
            placed = self.plain_seats.place(WaitingGame(spec, 0))
            if not isinstance(placed, Block):
                self.plain_seats.take(spec.deck, placed)
                self.plain.remove(spec)
                expected.append(spec.game)
        assert started == expected
        assert [spec.game for spec in self.waiting] == [spec.game for spec in self.plain]
        assert len(self.waiting) == len(self.plain)


BOTS = "abc"
line_ups = st.lists(st.sampled_from(BOTS), min_size=1, max_size=3)
steps = st.one_of(
    st.tuples(st.just("add"), line_ups, st.integers(0, 3)),
    st.tuples(st.just("comes"), st.sampled_from(BOTS), st.integers(1, 3)),
    st.tuples(st.just("goes"), st.integers(0, 9), st.none()),
    st.tuples(st.just("ends"), st.integers(0, 9), st.none()),
    st.tuples(st.just("remove"), st.integers(0, 30), st.none()),
    st.tuples(st.just("fill"), st.none(), st.none()),
)


@settings(max_examples=300, deadline=None)
@given(st.booleans(), st.lists(steps, max_size=60))
def test_games_start_as_if_all_were_looked_at_each_time(
    fresh: bool, course: list[tuple[str, object, object]]
) -> None:
    both, games, sessions = Both(fresh), 0, 0
    for what, one, two in course:
        if what == "add":
            assert isinstance(one, list)
            both.add(replace(game_spec(f"g{games}", bots=one), deck=f"d{two}"))
            games += 1
        elif what == "comes":
            assert isinstance(two, int)
            both.comes((str(one), sessions), two)
            sessions += 1
        elif what == "remove":
            both.remove(f"g{one}")
        elif what == "fill":
            both.fill()
        else:
            assert isinstance(one, int)
            if what == "goes" and both.seats.free:
                both.goes(sorted(both.seats.free)[one % len(both.seats.free)])
            elif what == "ends" and both.under_way:
                both.ends(one)
    both.fill()


def test_a_game_that_ends_costs_a_few_looks_however_many_wait() -> None:
    both = Both(fresh=False)
    both.comes(("a", 1), 1)
    both.comes(("b", 1), 1)
    for number in range(1000):
        both.add(game_spec(f"g{number}", bots=("a", "b", "c") if number % 2 else ("a", "b")))
    both.fill()
    before = both.looks
    for _ in range(100):
        both.ends(0)
        both.fill()
    assert both.looks - before < 500


def test_games_whose_deck_has_been_seen_are_not_looked_at_for_room() -> None:
    both = Both(fresh=True)
    both.comes(("a", 1), 10)
    for number in range(500):
        both.add(replace(game_spec(f"g{number}", bots=("a",)), deck=f"d{number // 100}"))
    both.fill()
    assert len(both.under_way) == 5, "one of each deck"
    before = both.looks
    while both.under_way:
        both.ends(0)
        both.fill()
    assert both.looks == before
    assert [game.spec.game for game in both.waiting.barred()] == ["g1", "g101", "g201", "g301", "g401"]
