"""What the schedule of a run says of a game by its id: who sits where, and how many games its deal set has.

For whoever checks a record. A schedule follows from the files of the run alone: the tournament file, the
stages of the event and, where rounds follow from results, the journal.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from tressette.record.decks import game_parts
from tressette.record.reader import RecordError
from tressette.record.writer import MANIFEST

from tressette_tournament.formats import (
    FixedRounds,
    Fixture,
    FormatError,
    History,
    Ladder,
    Round,
    Rounds,
    Stage,
    Swiss,
    format_of,
    numbered,
)
from tressette_tournament.journal import JournalError, read_rounds
from tressette_tournament.lineups import games_of, seatings
from tressette_tournament.results import GameResult
from tressette_tournament.schedule import in_order, of_tournament
from tressette_tournament.stop_rules import limit_reached, measured, timed
from tressette_tournament.toml_source import TournamentFileError
from tressette_tournament.tournament_file import Tournament, parse

_NO_SCHEDULE: Final = (
    *(TournamentFileError, FormatError, JournalError),
    *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
)
"""What damaged files raise."""
_NAMED: Final = 4
"""Games that are named where more are missing."""


class Scheduled:
    """The line-ups of a run, and how far it says it has come."""

    def __init__(self, tournament: Tournament, event: _Event, event_format: Rounds | Ladder) -> None:
        self._tournament = tournament
        self._event = event
        self._format = event_format
        self._presets = tournament.presets
        self._tables = [tournament.table(preset) for preset in tournament.presets]
        self._history = History(list(_rounds(event, tournament, event_format)))
        self._fixtures = {
            (fixture.preset, number, line_up): fixture
            for number, fixtures in enumerate(self._history.rounds)
            for line_up, fixture in numbered(fixtures)
        }

    @classmethod
    def of(cls, folder: Path) -> Scheduled | None:
        """That of a run; None for a record of no run. Raises RecordError and OSError."""
        path, event_file = folder / "tournament.toml", folder / "event.json"
        if not path.exists() and not (event_file.exists() and b'"tournament"' in event_file.read_bytes()):
            return None
        for file in (path, event_file):
            if not file.exists():
                raise RecordError(f"{file} is missing, which every run has")
        try:
            text = path.read_bytes().decode()
            # Which reference bots there are plays no part here: those that it names are taken for granted.
            named = {str(one.get("bot")) for one in tomllib.loads(text)["bots"]}
            tournament = parse(text, file=str(path), folder=folder.absolute(), reference_bots=named)
            event = _Event.of(folder)
            return cls(tournament, event, format_of(tournament, stages=event.stages))
        except _NO_SCHEDULE as error:
            raise RecordError(f"{folder}: its schedule cannot be made again: {error}") from error

    @property
    def complete(self) -> bool:
        """Whether the run says that nothing is left to play."""
        return self._event.complete

    def differs(self, line: Mapping[str, Any]) -> str | None:
        """What a result line has otherwise than the schedule, in words; None if nothing."""
        try:
            preset, number, line_up, set_number, index = game_parts(line["game"])
        except ValueError as error:
            return str(error)
        fixture = self._fixtures.get((preset, number, line_up))
        if fixture is None or not 0 <= set_number - fixture.first_set < fixture.sets:
            return "it is not in the schedule"
        seats = seatings(fixture.line_up, self._tables[preset], set_number)
        if index >= len(seats):
            return f"its deal set has {len(seats)} games in the schedule"
        wanted = {
            "tournament": self._tournament.name,
            "preset": self._presets[preset].name,
            "rules_hash": self._presets[preset].rules.hash(),
            "deal_set": line["game"].rpartition("-")[0],
            "set_size": len(seats),
            "bots": list(seats[index]),
        }
        for name, value in wanted.items():
            if line.get(name) != value:
                return f"{name} is {line.get(name)!r}, {value!r} in the schedule"
        return None

    def add(self, result: GameResult) -> None:
        """Take a result into account that does not differ from the schedule."""
        if not isinstance(self._format, Ladder) and self._format.drawn:
            preset, number, line_up, _, _ = game_parts(result.game)
            self._history.scores[number, preset, line_up].add(result)

    def lacks(self, played: Collection[str]) -> Iterator[str]:
        """What a run lacks that says it is complete, in words. played: the games that have a result, all of
        which have been added."""
        yield from self._wrong_pairings()
        if not self.complete:
            return
        if self._event.stages[-1][:2] != (
            tuple(bot.name for bot in self._tournament.bots),
            self._tournament.deal_sets,
        ):
            yield "event.json has other bots or deal sets than tournament.toml"
        if self._event.ended is not None:
            yield from self._false_end(self._event.ended, played)
        elif isinstance(self._format, Ladder):
            yield "it is complete, but no stop rule has ended it, without which a ladder goes on"
        elif self._format.next_round(self._history) is not None:
            yield "it is complete, but its last rounds are not in the journal"
        missing = self._missing(played)
        first = list(islice(missing, _NAMED))
        if first:
            count = len(first) + sum(1 for _ in missing)
            more = ", ..." if count > len(first) else ""
            yield f"it is complete, but {count} games have no result: {', '.join(first)}{more}"

    def _wrong_pairings(self) -> Iterator[str]:
        """Swiss rounds that do not follow from the results before them. Where bots were away, which is known
        only from their missing in a round, rounds follow from more than results; in a knockout always."""
        names = {bot.name for bot in self._tournament.bots}
        rounds = self._history.rounds
        if not isinstance(self._format, Swiss) or not all(
            names == {bot for one in fixtures if one.preset == preset for bot in one.line_up}
            for fixtures in rounds
            for preset in range(len(self._presets))
        ):
            return
        for number, fixtures in enumerate(rounds):
            if self._format.next_round(History(rounds[:number], self._history.scores)) != fixtures:
                yield f"round {number} of the journal does not follow from the results before it"
                return

    def _false_end(self, ended: str, played: Collection[str]) -> Iterator[str]:
        """Whether a stop rule cannot have said this. What an SPRT said is for its test to confirm."""
        stop = self._tournament.stop
        if stop.games is not None and ended == limit_reached("games", stop.games):
            if len(played) < stop.games:
                yield f"{len(played)} games have a result, but it was ended since {ended}"
        elif stop.deal_sets is not None and ended == limit_reached("deal sets", stop.deal_sets):
            if (sets := sum(there > 0 for there, *_ in self._sets(played))) < stop.deal_sets:
                yield f"{sets} deal sets have a result, but it was ended since {ended}"
        elif not (
            (stop.error_below is not None and ended == measured(stop.error_below))
            or (stop.minutes is not None and ended == timed(stop.minutes))
            or self._tournament.sprt is not None
        ):
            yield f"event.json says why it was ended ({ended}), but tournament.toml has no such rule"

    def _missing(self, played: Collection[str]) -> Iterator[str]:
        """The games that a complete run must have and has not.

        Where no rule has ended it, these are all of its rounds. One that was ended has opened deal sets in
        their order, but those of bots that were lost at some time: such a bot has no later ones either.
        Which of the last ones were open then is not known, nor in what order a ladder went on.
        """
        ended = self._event.ended is not None
        last: dict[str, int] = {}  # place of the last deal set of each bot
        if ended and not isinstance(self._format, Ladder):
            for place, (there, _, _, fixture) in enumerate(self._sets(played)):
                if there:
                    last |= dict.fromkeys(fixture.line_up, place)
        slack = 2 * self._tournament.window
        for place, (there, size, deal_set, fixture) in enumerate(self._sets(played)):
            if there == size:
                continue
            if there or not ended or all(last.get(bot, -1) > place + slack for bot in fixture.line_up):
                games = (f"{deal_set}-g{index}" for index in range(size))
                yield from (game for game in games if game not in played)

    def _sets(self, played: Collection[str]) -> Iterator[tuple[int, int, str, Fixture]]:
        """Every deal set in its order: how many of its games were played, and how many it has; its id and
        fixture."""
        for number, fixtures in enumerate(self._history.rounds):
            for deal_set, fixture, set_number in in_order(fixtures, number):
                size = games_of(fixture.line_up, self._tables[fixture.preset], set_number, 1)
                there = sum(f"{deal_set}-g{index}" in played for index in range(size))
                yield there, size, deal_set, fixture


@dataclass(frozen=True, slots=True)
class _Event:
    """What a run says of itself in event.json. ended: why a rule has ended it.
    complete: whether it has a closing manifest, or has published its secret keys; neither is done before."""

    folder: Path
    stages: Sequence[Stage]
    ended: str | None
    complete: bool

    @classmethod
    def of(cls, folder: Path) -> _Event:
        closed = (folder / MANIFEST).exists()
        data = json.loads((folder / "event.json").read_bytes())
        stages = [Stage(tuple(one["bots"]), one["deal_sets"], one["first_set"]) for one in data["stages"]]
        opened = data.get("decks") == "secret" and all("key" in one for one in data["stages"])
        return cls(folder, stages, data.get("ended"), closed or opened)


def _rounds(event: _Event, tournament: Tournament, event_format: Rounds | Ladder) -> Iterator[Round]:
    """The rounds that have begun, and for formats that do not depend on results all others."""
    if isinstance(event_format, FixedRounds):
        history = History()
        while (fixtures := event_format.next_round(history)) is not None:
            history.rounds.append(fixtures)
            yield fixtures
        return
    for fixtures in read_rounds(event.folder / "journal.jsonl"):
        yield of_tournament(fixtures, tournament)
