"""Which game next: the schedule of a tournament as a pure generator. Issue, fix, roll back.

Vocabulary: a **game** is one match played in a tournament; a **deal set** is one deck seed played once for
each seating of a line-up, and is **open** from its first issued game until its last is fixed; an **attempt**
counts how often a game was begun; ``formats`` says what a **fixture** and a **round** are. Source: the
tournament design, "Secret decks" and "It runs all night".

1. The order within a round is that of sets: set number by set number, within it line-up by line-up, presets
   taking turns. So all bots and presets have been seen early, and the decks of a set number can be retired
   early. A round begins when every game of the round before is fixed.
2. Sets are taken in batches of nearly equal size. A batch deals the games of each of its sets out evenly
   over its whole length, so that games with one deck are far apart. A ladder chooses a batch of
   ``LADDER_BATCH`` meetings when the one before has been issued, and waits for no round.
3. First attempts come in this order whatever the order of fixes; what was rolled back goes before them.
   A resumed schedule leaves out the games that are done and changes nothing else.
4. At most ``window`` sets are open. A batch is smaller than that by the other games that may be out, so that
   sets which finish late leave room for the next batch: with the default window ``issue`` never waits within
   a round while fewer games than the tournament's concurrency are out.
5. A ladder sets games aside while one of their bots is away; their sets do not count in the window, or bots
   that went would stop the others.
6. Memory: the line-ups, the games that are out, one batch, 8 bytes for each game that was done before a
   resume, and for Swiss and knockout the rounds with their scores. Nothing else grows with games or sets.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, zip_longest
from operator import itemgetter
from typing import Final

import numpy as np
from tressette.record.decks import LINE_UPS, deck_number, game_parts

from tressette_tournament.formats import Fixture, History, Ladder, Round, Rounds, format_of, numbered
from tressette_tournament.lineups import Seating, games_of, seatings
from tressette_tournament.results import GameResult
from tressette_tournament.tournament_file import Tournament

LADDER_BATCH: Final = 8
"""Meetings that a ladder chooses at once: its choices then know all but the newest results, and games with
one deck still have others between them."""
_GAMES: Final = 128
"""More games than a deal set has: all seatings of five are 120."""


class ScheduleError(LookupError):
    """A game was fixed or rolled back that is not being played. ``game_id`` names it."""

    def __init__(self, game_id: str) -> None:
        self.game_id = game_id
        super().__init__(f"game {game_id!r} is not being played")


@dataclass(frozen=True, slots=True)
class Game:
    """One game to play.

    id: ``p<preset>-l<line-up>-s<set>-g<game in the set>``, all from 0; ``p<preset>-r<round>-l...`` in rounds
    after the first. attempt: from 1. preset: its name. deal_set: the id without the game. set_size: games in
    the set. deck: equal exactly for games dealt from the same deck seed. set_number: from 0. deck_number:
    from 0, what ``deck_seed`` takes: the set number with common deals, else different for each set of the
    preset. seats: bot names by seat.
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
class _Turn:
    """A fixture in its round. round: from 0. line_up: its number among those of its preset there."""

    fixture: Fixture
    round: int
    line_up: int

    @property
    def numbers(self) -> range:
        """The set numbers that it plays."""
        return range(self.fixture.first_set, self.fixture.first_set + self.fixture.sets)

    def set_id(self, number: int) -> str:
        later = f"-r{self.round}" if self.round else ""
        return f"p{self.fixture.preset}{later}-l{self.line_up}-s{number}"


@dataclass(frozen=True, slots=True)
class _DealSet:
    """A set of the current batch. size: its games. to_play: those without a result. seatings: of all its
    games, empty if none is to play."""

    id: str
    turn: _Turn
    number: int
    size: int
    to_play: frozenset[int]
    seatings: tuple[Seating, ...]


@dataclass(slots=True)
class _Unfixed:
    """What is left of a set of this or an earlier batch: its set number, games that are not fixed, and
    whether it is open."""

    number: int
    games: int
    open: bool


class Schedule:
    """The games of a tournament, one after the other.

    event_format: of ``format_of``, which is also the default. done: the games that have a result already
    (resume), each once, read once. attempts: how often games that are not done were begun before. journal:
    the rounds or choices written before, read once. write: is given what follows them, as (number of the
    first, rounds), before their games are issued; both only for Swiss, knockout and ladder. What ``write``
    raises comes out of the constructor, or of ``issue``, which may then be called again.

    Raises ValueError for the id of a done game, or a round of the journal, that cannot be of this tournament.
    """

    def __init__(
        self,
        tournament: Tournament,
        event_format: Rounds | Ladder | None = None,
        *,
        done: Iterable[GameResult] = (),
        attempts: Mapping[str, int] | None = None,
        journal: Iterable[Round] = (),
        write: Callable[[int, Sequence[Round]], None] | None = None,
    ) -> None:
        self._format = format_of(tournament) if event_format is None else event_format
        self._window = tournament.window
        half = (self._window + 1) // 2  # a window too small for the concurrency: waiting is unavoidable
        self._batch_size = max(self._window - tournament.concurrency + 1, half)
        self._attempts = attempts or {}
        self._begun_before = {game.rpartition("-")[0] for game in self._attempts}
        self._common_deals = tournament.common_deals
        self._presets = [preset.name for preset in tournament.presets]
        self._tables = [tournament.table(preset) for preset in tournament.presets]
        self._write = write

        self._out: dict[str, Game] = {}
        self._again: deque[Game] = deque()
        self._aside: list[Game] = []
        self._unfixed: dict[str, _Unfixed] = {}
        self._open_sets = 0
        self._closed = False
        self._held = False
        self._some_left_out = False
        self._settled_below: int | None = None  # the lowest set number with a game that was left out
        self._planned_below = 0  # every set number below this has been in a batch
        self._next_set = 0  # of a ladder: above all that were chosen
        self._begun_rounds = 0
        self._drawn: list[Round] = []  # not written yet
        self._history = History()
        self._layouts: list[_Layout] = []
        self._total = 0
        self._plan: Iterator[tuple[_DealSet, int]] = iter(())
        self._next: tuple[_DealSet, int] | None = None

        self._done = _Done(len(self._presets))
        for result in done:
            self._done.add(result.game)
            self._score(result)
        self._done.sort()
        self._journal: deque[Round] = deque()
        if isinstance(self._format, Ladder):
            self._replay(self._format, (of_tournament(one, tournament) for one in journal))
        else:
            self._journal.extend(of_tournament(one, tournament) for one in journal)
            self._begin_rounds(self._format)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to issue or to fix. After ``close`` as soon as the open sets are fixed, but
        for games that a ladder has set aside; a ladder that was not closed never is."""
        if self._out or self._next is not None:
            return False
        if isinstance(self._format, Ladder):
            return self._closed and all(map(self._is_away, (*self._again, *self._aside)))
        if self._again:
            return False
        return not self._unfixed and (self._closed or not self._upcoming())

    @property
    def set_aside(self) -> Sequence[Game]:
        """Games of a ladder that wait for bots which are away."""
        return [game for game in (*self._again, *self._aside) if self._is_away(game)]

    @property
    def complete(self) -> bool:
        """Whether the event is at its end and every game has a result. A ladder is at its end when it has
        been closed; another format that has been closed is cut short."""
        if not self.finished or self._some_left_out:
            return False
        if isinstance(self._format, Ladder):
            return not self._unfixed
        return not self._closed and next(self._format.to_come(self._history), None) is None

    @property
    def total_games(self) -> int | None:
        """Games of the whole schedule, those that are done included; for the time left. Of a knockout those
        that are known, without further sets of matches to come; None for a ladder."""
        if isinstance(self._format, Ladder):
            return None
        return self._total + sum(map(self._games, self._format.to_come(self._history)))

    @property
    def done_games(self) -> int:
        """Games that were done when the schedule was made."""
        return len(self._done)

    @property
    def history(self) -> History:
        """The rounds of a Swiss or a knockout and their scores up to now. Not to be changed."""
        return self._history

    @property
    def settled_sets(self) -> int:
        """Every deal set with a set number below this has a result for each of its games, so that its deck is
        not needed any more. Games that were left out keep it down."""
        lowest = min((left.number for left in self._unfixed.values()), default=self._planned_below)
        lowest = min(lowest, self._planned_below)
        return lowest if self._settled_below is None else min(lowest, self._settled_below)

    def position(self, deal_set: str) -> int:
        """Where a set stands in the order of sets, from 0; whatever was played when. Raises ValueError for an
        id of no set of the rounds that have begun; a ladder has no such order."""
        preset, number, line_up, set_number, _ = game_parts(f"{deal_set}-g0")
        layouts = self._layouts[: number + 1]
        within = layouts[number].position(preset, line_up, set_number) if number < len(layouts) else None
        if within is None:
            raise ValueError(f"{deal_set!r} is no deal set of a round that has begun")
        return sum(map(len, layouts[:number])) + within

    def issue(self) -> Game | None:
        """The next game to play, or None: ``finished``, or wait until a game is fixed or rolled back, or a
        bot of a ladder connects."""
        game = self._rolled_back() or self._from_aside() or self._first_attempt()
        if game is not None:
            self._out[game.id] = game
        return game

    def fix(self, game_id: str, result: GameResult | None) -> None:
        """A game is finished with its result, or is left out in this session: None. Raises ScheduleError."""
        game = self._take_back(game_id)
        if result is None:
            self._some_left_out = True
            lowest = self._settled_below
            self._settled_below = game.set_number if lowest is None else min(lowest, game.set_number)
        else:
            self._score(result)
        left = self._unfixed[game.deal_set]
        left.games -= 1
        if left.games == 0:
            del self._unfixed[game.deal_set]
            self._open_sets -= 1

    def roll_back(self, game_id: str) -> None:
        """A game was cut or void: issue it before any new one as the next attempt. Raises ScheduleError."""
        game = self._take_back(game_id)
        self._again.append(replace(game, attempt=game.attempt + 1))

    def close(self) -> None:
        """Open no set any more. What the open ones lack is still issued, also where they were begun in an
        earlier session."""
        if self._closed:
            return
        self._closed = True
        for deal_set, left in list(self._unfixed.items()):
            if not left.open:
                del self._unfixed[deal_set]
                self._planned_below = min(self._planned_below, left.number)
        self._aside = [game for game in self._aside if game.deal_set in self._unfixed]
        if self._next is not None and self._next[0].id not in self._unfixed:
            self._advance()

    def hold(self, held: bool) -> None:
        """Open no set for now, or do so again: what the open ones lack is issued as it comes."""
        self._held = held

    def connected(self, bot: str, there: bool) -> None:
        """A bot takes part from now on, or does so no more.

        In a ladder nobody does at first, and bots come and go: games wait for theirs. Elsewhere everybody
        does, and this is for bots that are given up: no Swiss round pairs them, and knockout matches that
        cannot be finished are lost by walkover. Their games are issued all the same, to be left out by
        ``fix``. Raises KeyError for a ladder's unknown bot.
        """
        if isinstance(self._format, Ladder):
            self._format.connected(bot, there)
            return
        (self._history.away.discard if there else self._history.away.add)(bot)
        self._drawn = []  # it did not know

    # -- first attempts -------------------------------------------------------------------------

    def _first_attempt(self) -> Game | None:
        """The next first attempt whose bots are there, if its set may open."""
        while True:
            if self._next is None and not self._closed and not self._held:
                if isinstance(self._format, Ladder):
                    self._choose(self._format)
                else:
                    self._begin_rounds(self._format)
            if self._next is None:
                return None
            game = self._game(*self._next)
            if self._is_away(game):
                self._aside.append(game)
            elif not self._opened(game.deal_set):
                return None
            self._advance()
            if not self._is_away(game):
                return game

    def _advance(self) -> None:
        self._next = next(self._plan, None)
        while self._closed and self._next is not None and self._next[0].id not in self._unfixed:
            self._next = next(self._plan, None)

    def _opened(self, deal_set: str) -> bool:
        """Whether a set is open, now if not before."""
        left = self._unfixed[deal_set]
        if left.open:
            return True
        stuck = sum(self._unfixed[one].open for one in {game.deal_set for game in self._aside})
        if self._closed or self._held or self._open_sets - stuck >= self._window:
            return False
        left.open = True
        self._open_sets += 1
        return True

    def _is_away(self, game: Game) -> bool:
        return isinstance(self._format, Ladder) and not self._format.can_play(game.seats)

    def _rolled_back(self) -> Game | None:
        while self._again:
            game = self._again.popleft()
            if not self._is_away(game):
                return game
            self._aside.append(game)
        return None

    def _from_aside(self) -> Game | None:
        for place, game in enumerate(self._aside):
            if not self._is_away(game) and self._opened(game.deal_set):
                return self._aside.pop(place)
        return None

    def _take_back(self, game_id: str) -> Game:
        try:
            return self._out.pop(game_id)
        except KeyError:
            raise ScheduleError(game_id) from None

    def _score(self, result: GameResult) -> None:
        if not isinstance(self._format, Ladder) and self._format.drawn:
            preset, number, line_up, _, _ = game_parts(result.game)
            self._history.scores[number, preset, line_up].add(result)

    # -- rounds ---------------------------------------------------------------------------------

    def _upcoming(self) -> Sequence[Round]:
        """The next round, or nothing; drawn once."""
        if not self._drawn and not isinstance(self._format, Ladder):
            fixtures = self._format.next_round(self._history)
            self._drawn = [] if fixtures is None else [fixtures]
        return self._drawn

    def _begin_rounds(self, event_format: Rounds) -> None:
        """Go on to the next round that has games to play, if the one before is over."""
        while self._next is None and not self._unfixed and not self._closed:
            if self._journal:
                fixtures = self._journal.popleft()
            elif self._upcoming():
                fixtures = self._upcoming()[0]
                if event_format.drawn:
                    self._written([fixtures])
            else:
                return
            self._drawn = []
            self._history.rounds.append(fixtures)
            self._total += sum(map(self._games, fixtures))
            layout = _Layout(_turns(fixtures, self._begun_rounds))
            self._begun_rounds += 1
            self._layouts.append(layout)
            self._begin(layout)

    def _written(self, rounds: Sequence[Round]) -> None:
        if self._write is not None:
            self._write(self._begun_rounds, rounds)

    def _replay(self, ladder: Ladder, journal: Iterable[Round]) -> None:
        """Take the choices of the journal as made, and plan what they lack."""
        lacking: list[_Turn] = []
        for fixtures in journal:
            ladder.replay(fixtures)
            lacking += [
                turn
                for turn in self._chosen(fixtures)
                if any(self._deal_set(turn, number).to_play for number in turn.numbers)
            ]
        self._planned_below = self._next_set
        self._begin(_Layout(lacking))

    def _choose(self, ladder: Ladder) -> None:
        """Choose what is played next, as far as bots are there."""
        first_set = self._next_set
        while len(self._drawn) < LADDER_BATCH:
            fixtures = ladder.choose(self._begun_rounds + len(self._drawn), first_set)
            if fixtures is None:
                break
            self._drawn.append(fixtures)
            first_set = _end(fixtures)
        if self._drawn:
            self._written(self._drawn)
            chosen, self._drawn = self._drawn, []
            self._begin(_Layout([turn for fixtures in chosen for turn in self._chosen(fixtures)]))

    def _chosen(self, fixtures: Round) -> list[_Turn]:
        """Count a choice of a ladder."""
        turns = _turns(fixtures, self._begun_rounds)
        self._begun_rounds += 1
        self._next_set = _end(fixtures)
        return turns

    # -- batches --------------------------------------------------------------------------------

    def _begin(self, layout: _Layout) -> None:
        self._plan = self._first_attempts(layout)
        self._advance()

    def _first_attempts(self, layout: _Layout) -> Iterator[tuple[_DealSet, int]]:
        sets = len(layout)
        batches = -(-sets // self._batch_size)
        for batch in range(batches):
            # Split evenly: a last batch of one set would play its games back to back.
            begin, end = batch * sets // batches, (batch + 1) * sets // batches
            if self._closed and layout[begin][1] > self._last_begun:
                return  # nothing was ever begun from here on
            members = self._batch(layout, range(begin, end))
            if not self._closed:
                self._planned_below = layout[end][1] if end < sets else max(layout.end, self._planned_below)
            if any(member.to_play for member in members):
                for member, index in _spread(members):
                    if index in member.to_play:
                        yield member, index

    @property
    def _last_begun(self) -> int:
        """The highest number of a set of which a game was begun in an earlier session, -1 without one."""
        return max([self._done.last_set, *(game_parts(game)[3] for game in self._attempts)])

    def _batch(self, layout: _Layout, positions: range) -> list[_DealSet]:
        """The sets at these positions. Those begun but not complete before a resume are open."""
        members = [self._deal_set(*layout[position]) for position in positions]
        for member in members:
            begun = len(member.to_play) < member.size or member.id in self._begun_before
            if member.to_play and (begun or not self._closed):
                self._unfixed[member.id] = _Unfixed(member.number, len(member.to_play), begun)
                self._open_sets += begun
        return members

    def _deal_set(self, turn: _Turn, number: int) -> _DealSet:
        line_up, table = turn.fixture.line_up, self._tables[turn.fixture.preset]
        size = games_of(line_up, table, number, 1)
        done = self._done.games(turn.fixture.preset, turn.line_up, number)
        to_play = frozenset(range(size)).difference(done)
        seats = seatings(line_up, table, number) if to_play else ()
        return _DealSet(turn.set_id(number), turn, number, size, to_play, seats)

    def _game(self, member: _DealSet, index: int) -> Game:
        preset, number = member.turn.fixture.preset, member.number
        game_id = f"{member.id}-g{index}"
        return Game(
            id=game_id,
            attempt=self._attempts.get(game_id, 0) + 1,
            preset=self._presets[preset],
            deal_set=member.id,
            set_size=member.size,
            deck=f"p{preset}-s{number}" if self._common_deals else member.id,
            set_number=number,
            deck_number=deck_number(number, member.turn.line_up, common_deals=self._common_deals),
            seats=member.seatings[index],
        )

    def _games(self, fixture: Fixture) -> int:
        if fixture.sets == 0:
            return 0
        table = self._tables[fixture.preset]
        return games_of(fixture.line_up, table, fixture.first_set, fixture.sets)


def of_tournament(fixtures: Round, tournament: Tournament) -> Round:
    """A round of a journal. Raises ValueError where it cannot be one of this tournament."""
    names = {bot.name for bot in tournament.bots}
    for one in fixtures:
        if one.preset >= len(tournament.presets) or not names.issuperset(one.line_up):
            raise ValueError(f"the journal is of another tournament: {one}")
    return fixtures


def in_order(fixtures: Round, number: int) -> Iterator[tuple[str, Fixture, int]]:
    """The deal sets of round ``number`` in their order: each with its id, its fixture and its set number."""
    for turn, set_number in _Layout(_turns(fixtures, number)):
        yield turn.set_id(set_number), turn.fixture, set_number


class _Layout:
    """The deal sets of some turns in order of issue, as (turn, set number); ``turns`` says who goes first.
    end: above all set numbers, 0 if there are none."""

    def __init__(self, turns: Sequence[_Turn]) -> None:
        self._turns = turns
        bounds = sorted({bound for turn in turns for bound in (turn.numbers.start, turn.numbers.stop)})
        self.end = bounds[-1] if bounds else 0
        # From one bound to the next the same turns have a set of each number.
        self._lows = bounds[:-1]
        self._active = [[i for i, turn in enumerate(turns) if low in turn.numbers] for low in self._lows]
        sets = [
            (high - low) * len(at) for (low, high), at in zip(pairwise(bounds), self._active, strict=True)
        ]
        self._starts = list(accumulate(sets, initial=0))
        self._index: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[tuple[_Turn, int]]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, position: int) -> tuple[_Turn, int]:
        part = bisect_right(self._starts, position) - 1
        number, place = divmod(position - self._starts[part], len(self._active[part]))
        return self._turns[self._active[part][place]], self._lows[part] + number

    def position(self, preset: int, line_up: int, number: int) -> int | None:
        """Where a set stands, None if there is no such set."""
        if not self._index:
            self._index = {(turn.fixture.preset, turn.line_up): i for i, turn in enumerate(self._turns)}
        index = self._index.get((preset, line_up))
        if index is None or number not in self._turns[index].numbers:
            return None
        part = bisect_right(self._lows, number) - 1
        active = self._active[part]
        return self._starts[part] + (number - self._lows[part]) * len(active) + bisect_left(active, index)


class _Done:
    """Which games are done, in 8 bytes each: one number for preset, line-up, set and game, sorted."""

    def __init__(self, presets: int) -> None:
        self._presets = presets
        self._keys = array("Q")

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def last_set(self) -> int:
        """The highest set number with a done game, -1 without one."""
        return self._keys[-1] // self._key(0, 0, 1) if self._keys else -1

    def add(self, game_id: str) -> None:
        """Note a game; ``sort`` comes before the first question. Raises ValueError for what is no game."""
        preset, _, line_up, number, game = game_parts(game_id)
        try:
            if preset >= self._presets or line_up >= LINE_UPS or game >= _GAMES:
                raise OverflowError
            self._keys.append(self._key(preset, line_up, number) + game)
        except OverflowError:
            raise ValueError(f"{game_id!r} is no game of this tournament") from None

    def sort(self) -> None:
        """In place: there may be millions."""
        if self._keys:
            np.frombuffer(self._keys, np.uint64).sort()

    def games(self, preset: int, line_up: int, number: int) -> list[int]:
        """Which games of a deal set are done."""
        first = self._key(preset, line_up, number)
        begin = bisect_left(self._keys, first)
        return [key - first for key in self._keys[begin : bisect_left(self._keys, first + _GAMES, begin)]]

    def _key(self, preset: int, line_up: int, number: int) -> int:
        return ((number * self._presets + preset) * LINE_UPS + line_up) * _GAMES


def _spread(members: list[_DealSet]) -> list[tuple[_DealSet, int]]:
    """All games of a batch, those of each set evenly over the whole."""
    games: list[tuple[float, _DealSet, int]] = []
    for position, member in enumerate(members):
        start = (position + 0.5) / len(members)  # sets of one size then take strict turns
        games += [((index + start) / member.size, member, index) for index in range(member.size)]
    games.sort(key=itemgetter(0))
    return [(member, index) for _, member, index in games]


def _turns(fixtures: Round, number: int) -> list[_Turn]:
    """Who plays in a round and in what order: the first line-up of each preset, the second of each, ..."""
    columns: dict[int, list[_Turn]] = {}
    for line_up, fixture in numbered(fixtures):
        columns.setdefault(fixture.preset, []).append(_Turn(fixture, number, line_up))
    rows = zip_longest(*(columns[preset] for preset in sorted(columns)))
    return [turn for row in rows for turn in row if turn is not None and turn.fixture.sets]


def _end(fixtures: Round) -> int:
    """Above all set numbers of a round."""
    return max(fixture.first_set + fixture.sets for fixture in fixtures)
