"""What the schedule of a run says of a game by its id: who sits where, and how many games its deal set has.

For whoever checks a record. A schedule follows from the files of the run alone: the tournament file, the
stages of the event and, where rounds follow from results, the journal.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tressette.record.decks import game_parts
from tressette.record.reader import RecordError

from tressette_tournament.formats import FixedRounds, FormatError, History, Round, Stage, format_of, numbered
from tressette_tournament.journal import JournalError, read_rounds
from tressette_tournament.lineups import seatings
from tressette_tournament.toml_source import TournamentFileError
from tressette_tournament.tournament_file import Tournament, parse

_NO_SCHEDULE: Final = (
    *(TournamentFileError, FormatError, JournalError),
    *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
)
"""What damaged files raise."""


class Scheduled:
    """The line-ups of a run."""

    def __init__(self, tournament: Tournament, rounds: Iterable[Round]) -> None:
        self._presets = tournament.presets
        self._tables = [tournament.table(preset) for preset in tournament.presets]
        self._fixtures = {
            (fixture.preset, number, line_up): fixture
            for number, fixtures in enumerate(rounds)
            for line_up, fixture in numbered(fixtures)
        }

    @classmethod
    def of(cls, folder: Path) -> Scheduled | None:
        """That of a run; None for a record without a tournament file. Raises RecordError and OSError."""
        path = folder / "tournament.toml"
        if not path.exists():
            return None
        try:
            text = path.read_bytes().decode()
            # Which reference bots there are plays no part here: those that it names are taken for granted.
            named = {str(one.get("bot")) for one in tomllib.loads(text)["bots"]}
            tournament = parse(text, file=str(path), folder=folder.absolute(), reference_bots=named)
            return cls(tournament, _rounds(folder, tournament))
        except _NO_SCHEDULE as error:
            raise RecordError(f"{folder}: its schedule cannot be made again: {error}") from error

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


def _rounds(folder: Path, tournament: Tournament) -> Iterator[Round]:
    """The rounds that have begun, and for formats that do not depend on results all others."""
    stages = None
    event = folder / "event.json"
    if event.exists():
        kept = json.loads(event.read_bytes())["stages"]
        stages = [Stage(tuple(one["bots"]), one["deal_sets"], one["first_set"]) for one in kept]
    event_format = format_of(tournament, stages=stages)
    if isinstance(event_format, FixedRounds):
        history = History()
        while (fixtures := event_format.next_round(history)) is not None:
            history.rounds.append(fixtures)
            yield fixtures
        return
    names = {bot.name for bot in tournament.bots}
    for fixtures in read_rounds(folder / "journal.jsonl"):
        for one in fixtures:
            if one.preset >= len(tournament.presets) or not names.issuperset(one.line_up):
                raise ValueError(f"the journal is of another tournament: {one}")
        yield fixtures
