"""A tournament is a file: TOML text to a checked, frozen ``Tournament``, and back.

Vocabulary: a **deal set** is one deck seed played once for each seating; a **reference bot** is one that
comes with the product and is named by ``bot = "..."``. Source: the tournament design, "A tournament is a
file". The keys, with their defaults::

    [tournament]
    name = "cup"               # required, 1 to 100 printable characters
    format = "round-robin"
    presets = ["tressette-due-duplicate"]       # required; aliases are replaced by what they stand for
    deal_sets = 10             # required, for each line-up
    seatings = "cyclic"        # or "all"
    pairs = "copies"           # or "mixed": who sits opposite a bot in presets played in pairs
    copies = "none"            # or "one-against-rest", "halves": two bots fill a table of individuals
    common_deals = true        # every line-up of a preset gets the same decks
    seed = "..."               # absent: decks are secret; present: decks are public
    concurrency = 32           # games at once
    output = "cups/1"          # folder, relative to this file; default: cup.toml gives cup-run
    max_tables = 1000          # groups of bots that meet at most, for each preset
    [clock]
    move_ms = 2000             # milliseconds for each decision
    [faults]
    illegal_retries = 1
    [preset_options.tressette-due-duplicate]    # options of the rule set that replace the preset's
    deals = 4
    [[bots]]
    name = "mine"              # required, unique, 1 to 64 of letters, digits, ".", "_" and "-"
    command = ["python", "my_bot.py"]           # this, or bot = the name of a reference bot
    directory = "."            # with command; relative to this file, default: the folder of this file
    environment = { KEY = "text" }              # with command
    instances = 1              # processes; raised to the most seats that one bot has in one game
    [[bots]]
    name = "house"
    bot = "greedy"

1. Unknown keys and impossible values are refused, with the line and the nearest valid name; everything that
   can be checked is checked, and all that is wrong is reported at once.
2. An option that would change nothing (``copies`` without a table of individuals, say) is refused as well.
3. Every event is rated: presets with drawn partners are refused, and so are two presets with equal rules,
   which would be one rating pool playing every deck twice.
4. The resolved file stands elsewhere than its source, so paths in a ``Tournament`` are no longer relative.
   In the folder of the run its own ``output`` is ".", so that it can be run there wherever that is moved.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum, StrEnum
from pathlib import Path
from typing import Final, TypeVar, get_args

from tressette.rules.errors import RuleSetError, UnknownPreset
from tressette.rules.presets import canonical_name, resolve
from tressette.rules.ruleset import End, Partners, RuleSet

from tressette_tournament.commands import search_path, why_not_found
from tressette_tournament.lineups import Copies, LineUp, Pairs, Seatings, Table, line_ups

_Path = tuple[str | int, ...]
_E = TypeVar("_E", bound=StrEnum)
_T = TypeVar("_T")


class Format(StrEnum):
    """The formats that can be played."""

    ROUND_ROBIN = "round-robin"


class TournamentFileError(Exception):
    """Something in a tournament file that cannot be.

    file: as given by the caller. line: from 1, or None if unknown. key: dotted path, e.g. ``clock.move_ms``
    or ``bots[2].name`` (the third bot); empty for a syntax error. message: what is wrong. suggestion: the
    nearest valid name, or None. others: the further errors of the same file. The text names all of them,
    one a line.
    """

    def __init__(
        self,
        file: str,
        line: int | None,
        key: str,
        message: str,
        suggestion: str | None = None,
        others: tuple[TournamentFileError, ...] = (),
    ) -> None:
        self.file, self.line, self.key = file, line, key
        self.message, self.suggestion, self.others = message, suggestion, others
        place = file if line is None else f"{file}:{line}"
        where = f"{place}: {key}" if key else place
        hint = f"; did you mean {suggestion!r}?" if suggestion is not None else ""
        super().__init__("\n".join([f"{where}: {message}{hint}", *map(str, others)]))


@dataclass(frozen=True, slots=True)
class PresetChoice:
    """A preset of the event: its canonical name, the options that the file replaces, the rules they give."""

    name: str
    options: tuple[tuple[str, str | int], ...]
    rules: RuleSet


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot of the event: ``reference`` (a reference bot's name) or a non-empty ``command``, never both.

    directory: where the command runs, None for a reference bot. environment: variables to add.
    instances: processes to start, at least as many as the bot has seats in any one game.
    """

    name: str
    reference: str | None
    command: tuple[str, ...]
    directory: str | None
    environment: tuple[tuple[str, str], ...]
    instances: int


@dataclass(frozen=True, slots=True)
class Tournament:
    """A tournament file, checked and with every default filled in. The module says what the fields mean.

    seed: None means secret decks. output: folder. move_ms: milliseconds for each decision.
    """

    name: str
    format: Format
    presets: tuple[PresetChoice, ...]
    deal_sets: int
    seatings: Seatings
    pairs: Pairs
    copies: Copies
    common_deals: bool
    seed: str | None
    concurrency: int
    output: str
    max_tables: int
    move_ms: int
    illegal_retries: int
    bots: tuple[Bot, ...]

    def table(self, preset: PresetChoice) -> Table:
        """What a table of this preset seats, and how it is filled."""
        rules = preset.rules
        return Table(rules.players, rules.pairs, self.seatings, self.pairs, self.copies)

    def line_ups(self, preset: PresetChoice) -> tuple[LineUp, ...]:
        """The line-ups of a preset, in the order in which they are played."""
        names = [bot.name for bot in self.bots]
        return line_ups(names, self.table(preset), self.max_tables, f"{self.name}/{preset.name}")


def load(file: Path, *, reference_bots: Collection[str], output: Path | None = None) -> Tournament:
    """Read a tournament file and look whether what it names is there. ``output`` replaces its own. Raises
    OSError, or TournamentFileError for what is wrong in it."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise TournamentFileError(str(file), line, "", "not UTF-8 text") from None
    folder = file.resolve().parent
    tournament = parse(text, file=str(file), folder=folder, reference_bots=reference_bots)
    if output is not None:
        tournament = replace(tournament, output=str(output.resolve()))
    source = _Source(str(file), _key_lines(text))
    _check_places(source, tournament)
    source.raise_problems()
    return tournament


def parse(text: str, *, file: str, folder: Path, reference_bots: Collection[str]) -> Tournament:
    """Check the text of a tournament file.

    file: its name for error messages and for the default output folder. folder: absolute, what its paths are
    relative to. reference_bots: the names that ``bot = "..."`` may have. Raises TournamentFileError.
    """
    try:
        return _parse(text, file, folder, reference_bots)
    except RecursionError:
        raise TournamentFileError(file, None, "", "nested too deeply") from None


def _parse(text: str, file: str, folder: Path, reference_bots: Collection[str]) -> Tournament:
    try:
        data = tomllib.loads(text)
    except ValueError as error:  # a TOMLDecodeError, or int() that is given thousands of digits
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(found[1]) if found else None
        raise TournamentFileError(file, line, "", f"not TOML: {error}") from None
    source = _Source(file, _key_lines(text))
    result = _tournament(_Section(source, (), data), Path(file).stem, folder, reference_bots)
    source.raise_problems()
    return result


def dump(tournament: Tournament) -> str:
    """The tournament as TOML with every default written out; ``parse`` gives an equal value back."""
    return "\n".join([*_dump_event(tournament), *_dump_presets(tournament), *_dump_bots(tournament)]) + "\n"


def differences(kept: str, text: str) -> list[tuple[str, object, object]]:
    """Where two resolved files differ, as (key, value in ``kept``, value in ``text``); None stands for a key
    that is absent. The folder of the run may differ, and so may the directory of a bot's command if the one
    in ``kept`` is gone: then things were moved. Raises ValueError if ``kept`` is not TOML."""
    before, now = dict(_leaves(tomllib.loads(kept))), dict(_leaves(tomllib.loads(text)))
    found = []
    for path in {**before, **now}:
        old, new = before.get(path), now.get(path)
        moved = path == ("tournament", "output") or (
            path[-1] == "directory" and new is not None and not os.path.isdir(str(old))
        )
        if old != new and not moved:
            found.append((_dotted(path), old, new))
    return found


# --- reading ---------------------------------------------------------------------------------------


class _Missing(Enum):
    """The default of keys that must be given."""

    REQUIRED = "required"


_REQUIRED: Final = _Missing.REQUIRED
_SEED: Final = "a text with something in it"


class _Source:
    """One file being checked: where its keys stand and what was found wrong so far."""

    def __init__(self, file: str, lines: Mapping[_Path, int]) -> None:
        self.file, self._lines = file, lines
        self._problems: list[TournamentFileError] = []

    def problem(self, path: _Path, message: str, suggestion: str | None = None) -> None:
        """Note a problem, at the line of the key or else of the nearest table around it."""
        line = next((self._lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._lines), None)
        self._problems.append(TournamentFileError(self.file, line, _dotted(path), message, suggestion))

    @property
    def sound(self) -> bool:
        """Whether nothing wrong was found so far."""
        return not self._problems

    def raise_problems(self) -> None:
        """Raise everything that was noted, as one error in order of lines."""
        if self._problems:
            first, *rest = sorted(self._problems, key=lambda problem: problem.line or 0)
            raise TournamentFileError(
                first.file, first.line, first.key, first.message, first.suggestion, tuple(rest)
            )


class _Section:
    """One table of the file. Each reader notes what is wrong and then returns a value to go on with."""

    def __init__(self, source: _Source, path: _Path, data: Mapping[str, object]) -> None:
        self.source, self.path, self.data = source, path, data
        self._known: dict[str, None] = {}  # in the order of asking

    def problem(self, key: str, message: str, suggestion: str | None = None) -> None:
        self.source.problem((*self.path, key) if key else self.path, message, suggestion)

    def close(self) -> None:
        """Refuse the keys that nobody asked for."""
        for key in self.data:
            if key not in self._known:
                near = _nearest(key, self._known)
                known = "" if near else f" (known: {', '.join(self._known)})"
                self.problem(key, f"unknown key{known}", near)

    def has(self, key: str) -> bool:
        self._known[key] = None
        return key in self.data

    def whole(self, key: str, default: int | _Missing, low: int, high: int) -> int:
        value = self._get(key, default)
        if type(value) is int and low <= value <= high:
            return value
        return self._refuse(key, value, f"a whole number from {low} to {high}", low)

    def flag(self, key: str, default: bool) -> bool:
        value = self._get(key, default)
        return value if isinstance(value, bool) else self._refuse(key, value, "true or false", default)

    def text(self, key: str, default: str | _Missing, check: Callable[[str], bool], wanted: str) -> str:
        value = self._get(key, default)
        return value if isinstance(value, str) and check(value) else self._refuse(key, value, wanted, "")

    def choice(self, key: str, default: _E) -> _E:
        value = self._get(key, str(default))
        names = [str(member) for member in type(default)]
        if isinstance(value, str) and value in names:
            return type(default)(value)
        near = _nearest(value, names) if isinstance(value, str) else None
        return self._refuse(key, value, f"one of: {', '.join(names)}", default, near)

    def texts(self, key: str) -> tuple[str, ...]:
        """A required array of texts, at least one and none with a NUL."""
        value = self._get(key, _REQUIRED)
        if isinstance(value, list):
            items = tuple(item for item in value if isinstance(item, str) and "\0" not in item)
            if items and len(items) == len(value):
                return items
        return self._refuse(key, value, "a list of one or more texts", ())

    def section(self, key: str) -> _Section:
        """A table, empty where it is absent."""
        value = self._get(key, {})
        data = value if isinstance(value, dict) else self._refuse(key, value, "a table", {})
        return _Section(self.source, (*self.path, key), data)

    def sections(self, key: str) -> list[_Section]:
        """A required array of tables."""
        value = self._get(key, _REQUIRED)
        tables = value if isinstance(value, list) else self._refuse(key, value, f"tables [[{key}]]", [])
        path = (*self.path, key)
        found = [_Section(self.source, (*path, i), t) for i, t in enumerate(tables) if isinstance(t, dict)]
        if len(found) != len(tables):
            self.problem(key, f"must be tables [[{key}]]")
        return found

    def _get(self, key: str, default: object) -> object:
        self._known[key] = None
        return self.data.get(key, default)

    def _refuse(self, key: str, value: object, wanted: str, instead: _T, near: str | None = None) -> _T:
        found = "missing, must be" if value is _REQUIRED else f"{_shown(value)} is not"
        self.problem(key, f"{found} {wanted}", near)
        return instead


def _tournament(root: _Section, stem: str, folder: Path, reference_bots: Collection[str]) -> Tournament:
    event, clock, faults = root.section("tournament"), root.section("clock"), root.section("faults")
    presets = _presets(event, root.section("preset_options"))
    result = Tournament(
        name=event.text("name", _REQUIRED, _is_title, "1 to 100 printable characters"),
        format=event.choice("format", Format.ROUND_ROBIN),
        presets=presets,
        deal_sets=event.whole("deal_sets", _REQUIRED, 1, 1_000_000_000),
        seatings=event.choice("seatings", Seatings.CYCLIC),
        pairs=event.choice("pairs", Pairs.COPIES),
        copies=event.choice("copies", Copies.NONE),
        common_deals=event.flag("common_deals", True),
        seed=event.text("seed", _REQUIRED, bool, _SEED) if event.has("seed") else None,
        concurrency=event.whole("concurrency", 32, 1, 10_000),
        output=str(folder / event.text("output", f"{stem}-run", _is_path, "the name of a folder")),
        max_tables=event.whole("max_tables", 1000, 1, 1_000_000),
        move_ms=clock.whole("move_ms", 2000, 1, 3_600_000),
        illegal_retries=faults.whole("illegal_retries", 1, 0, 10),
        bots=(),
    )
    most_seats = max((result.table(preset).most_seats for preset in presets), default=1)
    bots = tuple(_bot(section, folder, reference_bots, most_seats) for section in root.sections("bots"))
    for section in (root, event, clock, faults):
        section.close()
    if root.source.sound:
        _check_tables(event, result, len(bots))
    _check_names(root, bots)
    return replace(result, bots=bots)


def _presets(event: _Section, options: _Section) -> tuple[PresetChoice, ...]:
    """The presets that are in order; the others are noted."""
    chosen: list[PresetChoice] = []
    for name in event.texts("presets"):
        overrides = options.section(name)
        choice = _preset(event, name, overrides)
        if choice is None:
            continue
        twin = next((other.name for other in chosen if other.rules == choice.rules), None)
        if twin == choice.name:
            event.problem("presets", f"{name!r} is named twice")
        elif twin is not None:
            event.problem("presets", f"{name!r} has the same rules as {twin!r}, named before it")
        elif choice.rules.partners is Partners.DRAWN:
            event.problem("presets", f"{name!r} draws its partners, and every event is rated")
        else:
            chosen.append(choice)
    options.close()
    return tuple(chosen)


def _preset(event: _Section, name: str, overrides: _Section) -> PresetChoice | None:
    try:
        canonical = canonical_name(name)
    except UnknownPreset as error:
        event.problem("presets", f"unknown preset {name!r}", error.nearest)
        return None
    values: dict[str, str | int] = {}
    for option, value in overrides.data.items():
        if option not in _RULE_OPTIONS:
            overrides.problem(option, "no such option of a rule set", _nearest(option, _RULE_OPTIONS))
        elif isinstance(value, str | int):
            values[option] = value
        else:
            overrides.problem(option, f"{_shown(value)} is neither a text nor a whole number")
    try:
        return PresetChoice(canonical, tuple(values.items()), resolve(canonical, **values))
    except RuleSetError as error:
        overrides.problem(error.option, error.reason)
        return None


def _bot(section: _Section, folder: Path, reference_bots: Collection[str], most_seats: int) -> Bot:
    name = section.text("name", _REQUIRED, _is_bot_name, "1 to 64 of letters, digits, '.', '_' and '-'")
    has_reference, has_command = section.has("bot"), section.has("command")
    reference: str | None = None
    command: tuple[str, ...] = ()
    directory: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    if has_reference == has_command:
        section.problem("", 'needs either bot = "..." or command = [...]')
    if has_reference:
        reference = _reference(section, reference_bots)
    if has_command:
        command = section.texts("command")
        directory = str(folder / section.text("directory", ".", _is_path, "the name of a folder"))
        environment = _environment(section.section("environment"))
    else:
        for key in ("directory", "environment"):
            if section.has(key):
                section.problem(key, "only a bot with a command has one")
    instances = max(section.whole("instances", 1, 1, 10_000), most_seats)
    section.close()
    return Bot(name, reference, command, directory, environment, instances)


def _reference(section: _Section, reference_bots: Collection[str]) -> str:
    name = section.text("bot", _REQUIRED, bool, "the name of a reference bot")
    if name and name not in reference_bots:
        names = ", ".join(sorted(reference_bots))
        section.problem(
            "bot", f"unknown reference bot {name!r} (known: {names})", _nearest(name, reference_bots)
        )
    return name


def _environment(section: _Section) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for key, value in section.data.items():
        if not key or "=" in key or "\0" in key:
            section.problem(key, "not a possible name of an environment variable")
        elif not isinstance(value, str) or "\0" in value:
            section.problem(key, f"{_shown(value)} is not a text")
        else:
            found.append((key, value))
    return tuple(found)


def _check_names(root: _Section, bots: Iterable[Bot]) -> None:
    seen: set[str] = set()
    for index, bot in enumerate(bots):
        if bot.name and bot.name in seen:
            root.source.problem(("bots", index, "name"), f"{bot.name!r} is the name of an earlier bot")
        seen.add(bot.name)


def _check_places(source: _Source, tournament: Tournament) -> None:
    """Whether the folder of the run can be one, and what the bots' commands need is there."""
    output = Path(tournament.output)
    in_the_way = next((place for place in (output, *output.parents) if os.path.exists(place)), None)
    if in_the_way is not None and not os.path.isdir(in_the_way):
        source.problem(("tournament", "output"), f"{in_the_way} is not a folder")
    for index, bot in enumerate(tournament.bots):
        if bot.directory is None:
            continue
        if not os.path.isdir(bot.directory):
            source.problem(("bots", index, "directory"), f"there is no folder {bot.directory}")
            continue
        why = why_not_found(bot.command[0], bot.directory, search_path(dict(bot.environment)))
        if why is not None:
            source.problem(("bots", index, "command"), why)


def _check_tables(event: _Section, tournament: Tournament, bots: int) -> None:
    """Whether the bots fill the tables of every preset, and the options for filling them have a use."""
    tables = [tournament.table(preset) for preset in tournament.presets]
    for preset, table in zip(tournament.presets, tables, strict=True):
        needed = table.different_bots
        if bots < needed:
            message = f"{preset.name} needs {needed} different bots at a table, the file has {bots}"
            event.source.problem(("bots",), message)
        elif bots > tournament.max_tables and math.comb(bots, needed) > tournament.max_tables:
            message = (
                f"{tournament.max_tables} tables are too few for {bots} bots: at least {bots} are needed"
            )
            event.problem("max_tables", message)
    if tournament.pairs is not Pairs.COPIES and not any(table.paired for table in tables):
        event.problem("pairs", "no effect: no preset is played in pairs")
    if tournament.copies is not Copies.NONE and all(table.paired or table.seats == 2 for table in tables):
        event.problem("copies", "no effect: no preset seats three or more individuals")


_RULE_OPTIONS: Final = tuple(field.name for kind in (RuleSet, *get_args(End)) for field in fields(kind))
"""Names that a rule set's options may have, the numbers of its end condition included."""


def _is_title(text: str) -> bool:
    return 1 <= len(text) <= 100 and text.isprintable()


def _is_bot_name(text: str) -> bool:
    # One letter or digit at least: "." and ".." would not do as the name of a log file.
    return re.fullmatch(r"(?=.*[A-Za-z0-9])[A-Za-z0-9._-]{1,64}", text) is not None


def _is_path(text: str) -> bool:
    return text != "" and "\0" not in text


def _nearest(name: str, known: Collection[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, n=1)), None)


def _leaves(value: object, path: _Path = ()) -> Iterator[tuple[_Path, object]]:
    """Every value of a file that is no table and no array of tables, by its path."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(below, (*path, key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, below in enumerate(value):
            yield from _leaves(below, (*path, index))
    else:
        yield path, value


def _shown(value: object) -> str:
    try:
        text = str(value).lower() if isinstance(value, bool) else repr(value)
    except ValueError:  # an int of thousands of digits, written in hex
        return "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."


def _dotted(path: _Path) -> str:
    """``("bots", 2, "name")`` as ``bots[2].name``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


# --- where keys stand ------------------------------------------------------------------------------

_BLANK: Final = re.compile(r"(?:\s|#[^\n]*)+")
_KEY: Final = re.compile(r"""[ \t]*(?:([A-Za-z0-9_-]+)|("(?:\\.|[^"\\\n])*")|'([^'\n]*)')[ \t]*""")
_VALUE_PART: Final = re.compile(
    r'''"""(?:\\.|[^\\])*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:'{0,2})|"(?:\\.|[^"\\\n])*"|'[^'\n]*\''''
    r"""|\#[^\n]*|[\[{]|[\]}]|\n|[^"'\#\[\]{}\n]+""",
    re.DOTALL,
)


def _key_lines(text: str) -> dict[_Path, int]:
    """The line (from 1) on which each key and table of a valid TOML text first stands, also as a part of the
    dotted name of another.

    Keys inside inline tables and arrays are left out: whoever looks for one finds the key around it.
    """
    lines: dict[_Path, int] = {}
    arrays: Counter[_Path] = Counter()
    table: _Path = ()
    position = 0
    while position < len(text):
        if blank := _BLANK.match(text, position):
            position = blank.end()
            continue
        line = text.count("\n", 0, position) + 1
        if text[position] == "[":
            brackets = 2 if text.startswith("[[", position) else 1
            names, position = _read_key(text, position + brackets)
            position += brackets
            table = _enter(names, arrays, is_array=brackets == 2)
            for length in range(1, len(table) + 1):
                lines.setdefault(table[:length], line)
        else:
            names, position = _read_key(text, position)
            for length in range(1, len(names) + 1):
                lines.setdefault((*table, *names[:length]), line)
            position = _skip_value(text, position + 1)
    return lines


def _read_key(text: str, position: int) -> tuple[list[str], int]:
    """The parts of a dotted key, and where it ends."""
    names: list[str] = []
    while found := _KEY.match(text, position):
        bare, basic, literal = found.groups()
        names.append(tomllib.loads(f"key = {basic}")["key"] if basic else bare or literal)
        position = found.end()
        if text[position] != ".":
            break
        position += 1
    return names, position


def _enter(names: list[str], arrays: Counter[_Path], *, is_array: bool) -> _Path:
    """The path of a table header; arrays of tables on the way stand for their last element."""
    path: _Path = ()
    for depth, name in enumerate(names, 1):
        path = (*path, name)
        if is_array and depth == len(names):
            arrays[path] += 1
        if path in arrays:
            path = (*path, arrays[path] - 1)
    return path


def _skip_value(text: str, position: int) -> int:
    """Where the value that starts here ends: the first line end outside brackets and texts."""
    depth = 0
    while found := _VALUE_PART.match(text, position):
        part = found[0]
        if part == "\n" and depth == 0:
            break
        depth += (part in "[{") - (part in "]}")
        position = found.end()
    return position


# --- writing ---------------------------------------------------------------------------------------


def _dump_event(tournament: Tournament) -> Iterator[str]:
    yield "[tournament]"
    yield _pair("name", tournament.name)
    yield _pair("format", tournament.format)
    yield _pair("presets", [preset.name for preset in tournament.presets])
    yield _pair("deal_sets", tournament.deal_sets)
    yield _pair("seatings", tournament.seatings)
    yield _pair("pairs", tournament.pairs)
    yield _pair("copies", tournament.copies)
    yield _pair("common_deals", tournament.common_deals)
    if tournament.seed is not None:
        yield _pair("seed", tournament.seed)
    yield _pair("concurrency", tournament.concurrency)
    yield _pair("output", tournament.output)
    yield _pair("max_tables", tournament.max_tables)
    yield from ("", "[clock]", _pair("move_ms", tournament.move_ms))
    yield from ("", "[faults]", _pair("illegal_retries", tournament.illegal_retries))


def _dump_presets(tournament: Tournament) -> Iterator[str]:
    for preset in tournament.presets:
        if preset.options:
            yield from ("", f"[preset_options.{_quoted(preset.name)}]")
            yield from (_pair(option, value) for option, value in preset.options)


def _dump_bots(tournament: Tournament) -> Iterator[str]:
    for bot in tournament.bots:
        yield from ("", "[[bots]]", _pair("name", bot.name))
        if bot.reference is not None:
            yield _pair("bot", bot.reference)
        if bot.directory is not None:
            yield _pair("command", bot.command)
            yield _pair("directory", bot.directory)
            variables = ", ".join(f"{_quoted(key)} = {_quoted(value)}" for key, value in bot.environment)
            yield f"environment = {{ {variables} }}"
        yield _pair("instances", bot.instances)


def _pair(key: str, value: str | int | Iterable[str]) -> str:
    if isinstance(value, str):
        return f"{key} = {_quoted(value)}"
    if isinstance(value, int):
        return f"{key} = {str(value).lower()}"
    return f"{key} = [{', '.join(map(_quoted, value))}]"


def _quoted(text: str) -> str:
    # A JSON text is a TOML basic string but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
