"""``tressette export``: a record as tables, for spreadsheets and data frames.

Three tables, each row with the ids that join them. The columns are in ``TABLES``, the one place that says
what they are called, which type they have and what they mean. Only games with a result are exported, as they
become complete: a batch of rows is all that is in memory, besides what reading a record takes.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, Protocol

import click
from tressette.record.reader import RecordError, result_files
from tressette.record.replay import RecordedGame, read_games
from tressette.rules.layout import turn_order
from tressette.rules.ruleset import RuleSet

from tressette_tournament.results import no_results

BATCH_ROWS: Final = 20_000
"""Rows of a table that are held until they are written together."""


class Type(Enum):
    """Of a column: as people and as pyarrow call it. In CSV a flag is ``true`` or ``false``, and what is not
    there is empty."""

    TEXT = "text", "string"
    WHOLE = "whole", "int64"
    FLAG = "flag", "bool_"

    def __init__(self, shown: str, arrow: str) -> None:
        self.shown, self.arrow = shown, arrow


@dataclass(frozen=True, slots=True)
class Column:
    """name, type, and what it means, with its unit."""

    name: str
    type: Type
    meaning: str


_GAME = (
    Column("game", Type.TEXT, "id of the game"),
    Column("attempt", Type.WHOLE, "from 1; more if it was begun before and cut off"),
)
_DEAL = (
    *_GAME,
    Column("phase", Type.TEXT, "main or tie_break"),
    Column("deal", Type.WHOLE, "number of the deal in its phase, from 1"),
    Column("dealt", Type.WHOLE, "from 1; more if the deal went monte before"),
)
TABLES: Final[Mapping[str, tuple[Column, ...]]] = {
    "games": (
        *_GAME,
        Column("tournament", Type.TEXT, "name of the event"),
        Column("preset", Type.TEXT, "name of the preset"),
        Column("rules_hash", Type.TEXT, "hash of the resolved rules: the rating pool"),
        Column("deal_set", Type.TEXT, "id of the deal set"),
        Column("set_size", Type.WHOLE, "games in the deal set"),
        Column("deck", Type.TEXT, "name of the deck seed; equal for games dealt alike"),
        Column("side", Type.WHOLE, "number of the side, from 0"),
        Column("bots", Type.TEXT, "bots of the side in seat order, separated by blanks"),
        Column("rank", Type.WHOLE, "place of the side, from 1; ties share the best"),
        Column("points", Type.WHOLE, "total of the side, in sixths of a point"),
        Column("objective", Type.TEXT, "most or least: what wins"),
        Column("deals", Type.WHOLE, "deals that were played"),
        Column("termination", Type.TEXT, "how the match ended"),
        Column("forfeit", Type.FLAG, "whether this side lost it by a forfeit"),
        Column("faults", Type.WHOLE, "faults of the side"),
        Column("duration_ms", Type.WHOLE, "milliseconds from start to end"),
        Column("ended_unix_ms", Type.WHOLE, "end, in milliseconds since 1970-01-01 UTC"),
    ),
    "tricks": (
        *_DEAL,
        Column("trick", Type.WHOLE, "number of the trick in the deal, from 1"),
        Column("position", Type.WHOLE, "of the play in the trick, from 1"),
        Column("seat", Type.WHOLE, "who played it, from 0"),
        Column("bot", Type.TEXT, "the bot in that seat"),
        Column("card", Type.TEXT, "rank and suit, e.g. 3d"),
        Column("signal", Type.TEXT, "what was said with it, if anything"),
        Column("won", Type.FLAG, "whether it took the trick; empty if that was not finished"),
        Column("thirds", Type.WHOLE, "worth of the whole trick in thirds of a point; empty likewise"),
        Column("think_ms", Type.WHOLE, "thinking time in milliseconds; empty likewise"),
        Column("net_ms", Type.WHOLE, "time on the network in milliseconds; empty likewise"),
    ),
    "deals": (
        *_DEAL,
        Column("dealer", Type.WHOLE, "seat"),
        Column("leader", Type.WHOLE, "seat that led the first trick"),
        Column("outcome", Type.TEXT, "how it ended; monte: dealt again, cut: the match ended in it"),
        Column("side", Type.WHOLE, "number of the side, from 0"),
        Column("hands", Type.TEXT, "cards dealt to the side's seats in order, separated by ' / '"),
        Column("tricks", Type.WHOLE, "tricks taken; this and what follows is empty for monte and cut"),
        Column("thirds", Type.WHOLE, "worth of the cards taken, in thirds of a point"),
        Column("points", Type.WHOLE, "recorded for cards and last trick, in sixths of a point"),
        Column("declared", Type.WHOLE, "recorded for declarations, in sixths of a point"),
        Column("total", Type.WHOLE, "of the match after this deal, in sixths of a point"),
    ),
}

Row = Sequence[object]
"""The values of a row in the order of its table's columns."""


# --- rows ------------------------------------------------------------------------------------------


def rows_of(game: RecordedGame) -> Iterator[tuple[str, Row]]:
    """The rows of a committed game, each with the name of its table. Raises RecordError for a game whose
    lines lack something."""
    try:
        rules = game.rules
        assert game.result is not None
        for row in _game_rows(game, rules, game.result):
            yield "games", row
        for row in _play_rows(game, rules, game.result["bots"]):
            yield "tricks", row
        for row in _deal_rows(game, rules):
            yield "deals", row
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        place = f"{game.files[0]}, line {game.opening['seq']}"
        raise RecordError(f"{place}: game {game.opening['game']} cannot be read: {error!r}") from error


def _game_rows(game: RecordedGame, rules: RuleSet, result: Mapping[str, Any]) -> Iterator[Row]:
    # By seat, as the lines of the deals have them: one bot may sit on several sides.
    faults = Counter(rules.side_of(fault[0]) for line in game.lines for fault in line.get("faults", ()))
    for side, bots in enumerate(result["sides"]):
        yield (
            *(result[name] for name in ("game", "attempt", "tournament", "preset", "rules_hash", "deal_set")),
            result["set_size"],
            result["deck"],
            side,
            " ".join(bots),
            result["ranks"][side],
            result["points"][side],
            result["objective"],
            result["deals"],
            result["termination"],
            result["forfeit"] == side,
            faults[side],
            result["duration_ms"],
            result["ended_unix_ms"],
        )


def _play_rows(game: RecordedGame, rules: RuleSet, bots: Sequence[str]) -> Iterator[Row]:
    tricks: list[Mapping[str, Any]] = []
    for line in game.lines:
        if line["kind"] == "trick":
            tricks.append(line)
            continue
        # The line that ends a deal says who had cards, and so whose turn followed whose in its tricks.
        active = [seat for seat, hand in enumerate(line["hands"]) if hand]
        for trick in tricks:
            order = turn_order(trick["leader"], active, rules.players)
            for position, (seat, card) in enumerate(zip(order, trick["cards"].split(), strict=True)):
                yield (
                    *_ids(trick),
                    trick["trick"],
                    position + 1,
                    seat,
                    bots[seat],
                    card,
                    trick["signals"][position] if "signals" in trick else None,
                    seat == trick["winner"],
                    trick["thirds"],
                    trick["think_ms"][position],
                    trick["net_ms"][position],
                )
        order = turn_order(tricks[-1]["winner"] if tricks else line["leader"], active, rules.players)
        for position, (seat, card) in enumerate(zip(order, line.get("unfinished", "").split(), strict=False)):
            last = len(tricks) + 1
            yield (*_ids(line), last, position + 1, seat, bots[seat], card, *[None] * 5)
        tricks = []


def _deal_rows(game: RecordedGame, rules: RuleSet) -> Iterator[Row]:
    outcomes = {"void": "monte", "cut": "cut"}
    for line in game.lines:
        if line["kind"] == "trick":
            continue
        for side in range(rules.side_count):
            hands = [line["hands"][seat] for seat in rules.seats_of(side)]
            if not any(hands):
                continue  # it is out
            scored = line["kind"] == "deal"
            score = line["sides"][side] if scored else {}
            yield (
                *_ids(line),
                line["dealer"],
                line["leader"],
                line["ended_by"] if scored else outcomes[line["kind"]],
                side,
                " / ".join(hands),
                *(score.get(name) for name in ("tricks", "thirds", "points", "declared")),
                line["totals"][side] if scored else None,
            )


def _ids(line: Mapping[str, Any]) -> Row:
    return line["game"], line["attempt"], line.get("phase", "main"), line["deal"], line["dealt"]


# --- files -----------------------------------------------------------------------------------------


class _Writer(Protocol):
    """Writes one table."""

    def write(self, rows: Sequence[Row]) -> None:
        """Add rows."""

    def close(self) -> None:
        """No more rows."""


class _CsvWriter:
    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        self._file = path.open("w", encoding="utf-8", newline="")
        self._csv = csv.writer(self._file)
        self._csv.writerow([column.name for column in columns])

    def write(self, rows: Sequence[Row]) -> None:
        flags = {False: "false", True: "true"}
        self._csv.writerows(
            [flags[value] if isinstance(value, bool) else value for value in row] for row in rows
        )

    def close(self) -> None:
        self._file.close()


class _ParquetWriter:
    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        import pyarrow
        from pyarrow import parquet

        self._record_batch = pyarrow.record_batch
        self._schema = pyarrow.schema(
            [
                pyarrow.field(
                    column.name,
                    getattr(pyarrow, column.type.arrow)(),
                    metadata={"description": column.meaning},
                )
                for column in columns
            ]
        )
        self._file = parquet.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, rows: Sequence[Row]) -> None:
        self._file.write_batch(self._record_batch(list(zip(*rows, strict=True)), schema=self._schema))

    def close(self) -> None:
        self._file.close()


FORMATS: Final[Mapping[str, Callable[[Path, Sequence[Column]], _Writer]]] = {
    "csv": _CsvWriter,
    "parquet": _ParquetWriter,
}


def export(folder: Path, kind: str, output: Path, torn: list[str] | None = None) -> dict[str, int]:
    """Write the tables of the record in ``folder`` as ``output``/<table>.<kind>; returns how many rows each
    has. kind: a key of FORMATS.

    The files get their names when all are complete. Raises FileExistsError where one is there already,
    RecordError for a damaged record, OSError, and ModuleNotFoundError for parquet without pyarrow.
    """
    output.mkdir(parents=True, exist_ok=True)
    paths = {table: output / f"{table}.{kind}" for table in TABLES}
    for path in paths.values():
        if path.exists():
            raise FileExistsError(f"{path} exists")
    drafts = {table: path.with_name(path.name + ".new") for table, path in paths.items()}
    count = dict.fromkeys(TABLES, 0)
    try:
        with ExitStack() as stack:
            tables = {}
            for table, columns in TABLES.items():
                writer = FORMATS[kind](drafts[table], columns)
                stack.callback(writer.close)
                tables[table] = writer
            waiting: dict[str, list[Row]] = {table: [] for table in TABLES}

            def hand_over(table: str) -> None:
                tables[table].write(waiting[table])
                count[table] += len(waiting[table])
                waiting[table] = []

            for game in read_games(folder, torn):
                for table, row in rows_of(game):
                    waiting[table].append(row)
                    if len(waiting[table]) == BATCH_ROWS:
                        hand_over(table)
            for table in TABLES:
                if waiting[table]:
                    hand_over(table)
    except BaseException:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
        raise
    for table, draft in drafts.items():
        draft.replace(paths[table])
    return count


# --- the command -----------------------------------------------------------------------------------


def _help() -> str:
    """What the tables hold, from the one place that says it."""
    lines = []
    for table, columns in TABLES.items():
        lines += ["", "\b", f"Table {table}, one row {_ROW_IS[table]}:"]
        for column in columns:
            lines.append(f"  {column.name:<14} {column.type.shown:<6} {column.meaning}")
    return "\n".join(lines)


_ROW_IS: Final = {
    "games": "a game and side",
    "tricks": "a card that was played",
    "deals": "a deal and side that played it",
}
_HELP: Final = f"""Write the games of the run in DIR as tables: games, tricks and deals.

The tables are OUTPUT/games.csv and so on, or .parquet (which needs pyarrow: the extra "export" of this
distribution). Games without a result are left out; so is a torn last line, with a warning. Existing tables
are not replaced.

\b
Exit status:
  0  exported
  1  there are no results, the record is damaged, a table exists already or cannot be written, or pyarrow
     is missing
  2  the command line was wrong

A text is UTF-8, a whole number has 64 bits, a flag is true or false; in CSV what is unknown is empty.
{_help()}
"""


@click.command("export", help=_HELP)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--format", "kind", type=click.Choice(list(FORMATS)), required=True, help="Kind of the files.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for the tables; made if it is not there.",
)
def export_command(folder: Path, kind: str, output: Path) -> None:
    """See ``_HELP``."""
    torn: list[str] = []
    if not any(path.stat().st_size for path in result_files(folder)):
        raise click.ClickException(no_results(folder))
    try:
        count = export(folder, kind, output, torn)
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"--format {kind} needs the package {error.name}: install this distribution with its extra, "
            "pip install '.[export]' in the project's folder"
        ) from error
    except (RecordError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for warning in torn:
        click.echo(f"warning: {warning}", err=True)
    for table, rows in count.items():
        click.echo(f"{output / f'{table}.{kind}'}: {rows} rows")
