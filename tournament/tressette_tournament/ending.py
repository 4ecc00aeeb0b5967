"""When an event ends early: its stop rules, and the sequential test of an SPRT, fed with what happens.

Games and deal sets are counted as they are opened, but those that are left out; results of earlier sessions
count like those of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from tressette_tournament.lineups import fill, seatings
from tressette_tournament.ratings import RatingFold
from tressette_tournament.results import GameResult
from tressette_tournament.schedule import Game, Schedule
from tressette_tournament.sprt import SequentialTest, SetShape, set_score
from tressette_tournament.stop_rules import StopRules
from tressette_tournament.tournament_file import Format, Tournament


class Ending:
    """Follows one run. fold: has every result of earlier sessions, and is given those of this one by its
    owner. earlier: reads the former. seconds: gives the wall time of all sessions so far."""

    def __init__(
        self,
        tournament: Tournament,
        schedule: Schedule,
        fold: RatingFold,
        earlier: Callable[[], Iterable[GameResult]],
        seconds: Callable[[], float],
    ) -> None:
        self._decks = _Decks(tournament, schedule) if tournament.sprt is not None else None
        self._rules = StopRules(tournament.stop, self.test)
        self._fold = fold
        self._seconds = seconds
        # (preset, bot) of those that are not lost: made again only when one more is, since it is asked for
        # before every game.
        self._bots = [(choice.name, bot.name) for choice in tournament.presets for bot in tournament.bots]
        self._lost = 0
        self._open = {name: _Open(played=have) for name, have in fold.open_sets.items()}
        self._opened = _Count(*fold.begun)
        # Of these the ones with a result, which cannot be left out any more.
        self._sure = _Count(*fold.begun)
        # A ladder never leaves out what it has begun: it waits for bots that come back.
        self._may_leave_out = tournament.format is not Format.LADDER
        if self._decks is not None:
            for result in earlier():
                self._decks.add(result)

    @property
    def test(self) -> SequentialTest | None:
        """The test of an SPRT."""
        return None if self._decks is None else self._decks.test

    @property
    def by_count(self) -> bool:
        """See ``StopRules``."""
        return self._rules.by_count

    @property
    def full(self) -> bool:
        """Whether no further deal set may be opened unless one that is open is left out."""
        return self._rules.full(self._opened.games, self._opened.deal_sets)

    def issued(self, game: Game) -> None:
        """A game is about to be played."""
        one = self._open.get(game.deal_set)
        if one is None:
            one = self._open[game.deal_set] = _Open()
            self._opened.add(game.set_size)
        one.out += 1

    def rolled_back(self, game: Game) -> None:
        """A game that was issued is given back."""
        self._open[game.deal_set].out -= 1

    def left_out(self, game: Game) -> None:
        """A game is not played in this session, since one of its bots is lost. A deal set of which nothing
        was played does not count: all its games have the same bots."""
        one = self._open.get(game.deal_set)
        if one is None:
            return
        one.left_out += 1
        if not one.played and not one.out:
            del self._open[game.deal_set]
            self._opened.take(game.set_size)
        elif one.played + one.left_out == game.set_size:
            del self._open[game.deal_set]

    def finished(self, result: GameResult) -> None:
        """A game has its result."""
        one = self._open[result.deal_set]
        one.out -= 1
        one.played += 1
        if one.played == 1:
            self._sure.add(result.set_size)
        if one.played + one.left_out == result.set_size:
            del self._open[result.deal_set]
        if self._decks is not None:
            self._decks.add(result)

    def reason(self, lost: Collection[str]) -> str | None:
        """Why no new deal set is to be opened, in words, or None. lost: bots that take part no more; none of
        them ever comes back."""
        if len(lost) != self._lost:
            self._lost = len(lost)
            self._bots = [one for one in self._bots if one[1] not in lost]
        counted = self._sure if self._may_leave_out else self._opened
        return self._rules.reason(
            games=counted.games,
            deal_sets=counted.deal_sets,
            seconds=self._seconds(),
            ratings=self._fold,
            bots=self._bots,
        )


@dataclass(slots=True)
class _Open:
    """An open deal set: its games with a result, those that are being played, those that were left out."""

    played: int = 0
    out: int = 0
    left_out: int = 0


@dataclass(slots=True)
class _Count:
    """Deal sets, and the games that they have when they are complete."""

    deal_sets: int
    games: int

    def add(self, set_size: int) -> None:
        self.deal_sets += 1
        self.games += set_size

    def take(self, set_size: int) -> None:
        self.deal_sets -= 1
        self.games -= set_size


class _Decks:
    """Feeds the sequential test: all games of a deck are one of its sets."""

    def __init__(self, tournament: Tournament, schedule: Schedule) -> None:
        assert tournament.sprt is not None
        (preset,) = tournament.presets
        table, rules = tournament.table(preset), preset.rules
        self._a, self._b = (bot.name for bot in tournament.bots)
        line_ups = fill(table, (self._a, self._b))
        self._line_ups = len(line_ups) if tournament.common_deals else 1
        played = [
            tuple(tuple(seats[seat] for seat in rules.seats_of(side)) for side in range(rules.side_count))
            for line_up in line_ups[: self._line_ups]
            for seats in seatings(line_up, table, 0)
        ]
        self._games = len(played)
        self._schedule = schedule
        self._waiting: dict[int, list[GameResult]] = {}
        self.test = SequentialTest(tournament.sprt, SetShape.of(played, self._a, self._b))

    def add(self, result: GameResult) -> None:
        place = self._schedule.position(result.deal_set) // self._line_ups
        games = self._waiting.setdefault(place, [])
        games.append(result)
        if len(games) == self._games:
            del self._waiting[place]
            self.test.add(place, set_score(games, self._a, self._b))
