"""Which game next: the schedule of a round robin as a pure generator. Issue, fix, roll back.

Vocabulary: a **game** is one match played in a tournament; a **deal set** is one deck seed played once for
each seating of a line-up, and is **open** from its first issued game until its last is fixed; an **attempt**
counts how often a game was begun. Source: the tournament design, "Secret decks" and "It runs all night".

1. The order is that of sets: set number by set number, within it line-up by line-up, presets taking turns.
   So all bots and presets have been seen early, and the decks of a set number can be retired early.
2. Sets are taken in batches of nearly equal size. A batch deals the games of each of its sets out evenly
   over its whole length, so that games with one deck are far apart.
3. First attempts come in this order whatever the order of fixes; what was rolled back goes before them.
   A resumed schedule leaves out the games that are done and changes nothing else.
4. At most ``window`` sets are open. A batch is smaller than that by the other games that may be out, so that
   sets which finish late leave room for the next batch: with the default window ``issue`` never waits while
   fewer games than the tournament's concurrency are out.
5. Memory: the line-ups, the games that are out and one batch. Nothing grows with the number of sets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import itemgetter
from typing import Final

from tressette_tournament.lineups import LineUp, Seating, Table, circular_orders, seatings
from tressette_tournament.tournament_file import Tournament

DEFAULT_WINDOW: Final = 64
"""Deal sets open at once, unless many games are played at once."""


class ScheduleError(LookupError):
    """A game was fixed or rolled back that is not being played. ``game_id`` names it."""

    def __init__(self, game_id: str) -> None:
        self.game_id = game_id
        super().__init__(f"game {game_id!r} is not being played")


@dataclass(frozen=True, slots=True)
class Game:
    """One game to play.

    id: ``p<preset>-l<line-up>-s<set>-g<game in the set>``, all from 0. attempt: from 1. preset: its name.
    deal_set: the id without the game. set_size: games in the set. deck: equal exactly for games dealt from
    the same deck seed. set_number: from 0. deck_number: from 0, what ``deck_seed`` takes: the set number
    with common deals, else different for each line-up of the preset. seats: bot names by seat.
    """

    id: str
    attempt: int
    preset: str
    deal_set: str
    set_size: int
    deck: str
    set_number: int
    deck_number: int
    seats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Pool:
    """A preset with everyone who meets in it."""

    index: int
    preset: str
    table: Table
    line_ups: tuple[LineUp, ...]


@dataclass(frozen=True, slots=True)
class _DealSet:
    """A set of the current batch, and which of its games are still to play."""

    id: str
    pool: _Pool
    line_up: int
    number: int
    seatings: tuple[Seating, ...]
    to_play: frozenset[int]


class Schedule:
    """The games of a tournament, one after the other.

    done: ids of games that have a result already (resume). attempts: how often games that are not done were
    begun before. window: deal sets open at once, 1 or more; default 64, or twice the tournament's concurrency
    if that is more. The order depends on it. Raises ValueError for an impossible window.
    """

    def __init__(
        self,
        tournament: Tournament,
        *,
        done: Container[str] = frozenset(),
        attempts: Mapping[str, int] | None = None,
        window: int | None = None,
    ) -> None:
        self._window = max(DEFAULT_WINDOW, 2 * tournament.concurrency) if window is None else window
        if self._window < 1:
            raise ValueError(f"a window of {self._window} deal sets is not possible")
        half = (self._window + 1) // 2  # a window too small for the concurrency: waiting is unavoidable
        self._batch_size = max(self._window - tournament.concurrency + 1, half)
        self._done = done
        self._attempts = attempts or {}
        self._common_deals = tournament.common_deals
        self._deal_sets = tournament.deal_sets
        self._pools = [
            _Pool(index, preset.name, tournament.table(preset), tournament.line_ups(preset))
            for index, preset in enumerate(tournament.presets)
        ]
        self._round = _interleaved(self._pools)
        self._out: dict[str, Game] = {}
        self._again: deque[Game] = deque()
        self._left: dict[str, int] = {}  # games not fixed yet, of the open sets and those of the batch
        self._open: set[str] = set()
        self._plan = self._first_attempts()
        self._next = next(self._plan, None)

    @property
    def finished(self) -> bool:
        """Whether every game has been issued and fixed."""
        return self._next is None and not self._again and not self._out

    @property
    def total_games(self) -> int:
        """Games of the whole schedule, those that are done included; for the time left."""
        return sum(
            _games(line_up, pool.table, self._deal_sets) for pool in self._pools for line_up in pool.line_ups
        )

    def issue(self) -> Game | None:
        """The next game to play, or None: ``finished``, or wait until a game is fixed or rolled back."""
        if self._again:
            game = self._again.popleft()
        elif self._next is None or not self._may_open(self._next.deal_set):
            return None
        else:
            game = self._next
            self._open.add(game.deal_set)
            self._next = next(self._plan, None)
        self._out[game.id] = game
        return game

    def fix(self, game_id: str) -> None:
        """A game is finished: it has a result, or will never get one. Raises ScheduleError."""
        deal_set = self._take_back(game_id).deal_set
        self._left[deal_set] -= 1
        if self._left[deal_set] == 0:
            del self._left[deal_set]
            self._open.remove(deal_set)

    def roll_back(self, game_id: str) -> None:
        """A game was cut or void: issue it before any new one as the next attempt. Raises ScheduleError."""
        game = self._take_back(game_id)
        self._again.append(replace(game, attempt=game.attempt + 1))

    def _take_back(self, game_id: str) -> Game:
        try:
            return self._out.pop(game_id)
        except KeyError:
            raise ScheduleError(game_id) from None

    def _may_open(self, deal_set: str) -> bool:
        return deal_set in self._open or len(self._open) < self._window

    def _first_attempts(self) -> Iterator[Game]:
        sets = self._deal_sets * len(self._round)
        batches = -(-sets // self._batch_size)
        for batch in range(batches):
            # Split evenly: a last batch of one set would play its games back to back.
            members = self._batch(range(batch * sets // batches, (batch + 1) * sets // batches))
            for member, index in _spread(members):
                if index in member.to_play:
                    yield self._game(member, index)

    def _batch(self, positions: range) -> list[_DealSet]:
        """The sets at these positions. Those begun but not complete before a resume are open."""
        members = [self._deal_set(position) for position in positions]
        for member in members:
            if member.to_play:
                self._left[member.id] = len(member.to_play)
            if 0 < len(member.to_play) < len(member.seatings):
                self._open.add(member.id)
        return members

    def _deal_set(self, position: int) -> _DealSet:
        number, turn = divmod(position, len(self._round))
        pool, line_up = self._round[turn]
        set_id = f"p{pool.index}-l{line_up}-s{number}"
        seats = seatings(pool.line_ups[line_up], pool.table, number)
        to_play = frozenset(i for i in range(len(seats)) if _game_id(set_id, i) not in self._done)
        return _DealSet(set_id, pool, line_up, number, seats, to_play)

    def _game(self, member: _DealSet, index: int) -> Game:
        pool, number = member.pool, member.number
        game_id = _game_id(member.id, index)
        return Game(
            id=game_id,
            attempt=self._attempts.get(game_id, 0) + 1,
            preset=pool.preset,
            deal_set=member.id,
            set_size=len(member.seatings),
            deck=f"p{pool.index}-s{number}" if self._common_deals else member.id,
            set_number=number,
            deck_number=number if self._common_deals else number * len(pool.line_ups) + member.line_up,
            seats=member.seatings[index],
        )


def _game_id(set_id: str, index: int) -> str:
    return f"{set_id}-g{index}"


def _spread(members: list[_DealSet]) -> list[tuple[_DealSet, int]]:
    """All games of a batch, those of each set evenly over the whole."""
    games: list[tuple[float, _DealSet, int]] = []
    for position, member in enumerate(members):
        start = (position + 0.5) / len(members)  # sets of one size then take strict turns
        size = len(member.seatings)
        games += [((index + start) / size, member, index) for index in range(size)]
    games.sort(key=itemgetter(0))
    return [(member, index) for _, member, index in games]


def _interleaved(pools: list[_Pool]) -> list[tuple[_Pool, int]]:
    """One round of sets: the first line-up of each preset, then the second of each, ..."""
    columns = ([(pool, line_up) for line_up in range(len(pool.line_ups))] for pool in pools)
    return [turn for row in zip_longest(*columns) for turn in row if turn is not None]


def _games(line_up: LineUp, table: Table, deal_sets: int) -> int:
    """Games of a line-up. With copies the circular orders have different numbers of seatings."""
    period = 1 if len(set(line_up)) == len(line_up) else len(circular_orders(line_up))
    return sum(
        len(seatings(line_up, table, first)) * len(range(first, deal_sets, period)) for first in range(period)
    )
