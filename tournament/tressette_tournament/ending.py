"""When an event ends early: its stop rules, and the sequential test of an SPRT, fed with what happens.

Games and deal sets are counted as they are opened; results of earlier sessions count like those of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from tressette_tournament.lineups import fill, seatings
from tressette_tournament.ratings import RatingFold
from tressette_tournament.results import GameResult
from tressette_tournament.schedule import Game, Schedule
from tressette_tournament.sprt import SequentialTest, SetShape, set_score
from tressette_tournament.stop_rules import StopRules
from tressette_tournament.tournament_file import Tournament


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
        self._open = set(fold.open_sets)
        self._deal_sets, self._games = fold.begun
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

    def issued(self, game: Game) -> None:
        """A game is about to be played."""
        if game.deal_set not in self._open:
            self._open.add(game.deal_set)
            self._deal_sets += 1
            self._games += game.set_size

    def finished(self, result: GameResult, *, set_over: bool) -> None:
        """A game has its result. set_over: whether it was the last of its deal set."""
        if set_over:
            self._open.discard(result.deal_set)
        if self._decks is not None:
            self._decks.add(result)

    def reason(self, lost: Collection[str]) -> str | None:
        """Why no new deal set is to be opened, in words, or None. lost: bots that take part no more; none of
        them ever comes back."""
        if len(lost) != self._lost:
            self._lost = len(lost)
            self._bots = [one for one in self._bots if one[1] not in lost]
        return self._rules.reason(
            games=self._games,
            deal_sets=self._deal_sets,
            seconds=self._seconds(),
            ratings=self._fold,
            bots=self._bots,
        )


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
