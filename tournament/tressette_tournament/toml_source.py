"""Checks TOML: every key has its line, all problems are told at once, each with the nearest valid name.

Vocabulary: a **path** is where a key stands, e.g. ``("bots", 2, "name")``, written ``bots[2].name``. A
**section** is one table of the file. Whoever reads a section asks for each key that there may be; ``close``
refuses what nobody asked for.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum, StrEnum
from typing import Final, TypeVar

TomlPath = tuple[str | int, ...]
_E = TypeVar("_E", bound=StrEnum)
_T = TypeVar("_T")


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


class Missing(Enum):
    """The default of keys that must be given."""

    REQUIRED = "required"


REQUIRED: Final = Missing.REQUIRED


class Source:
    """One file being checked: where its keys stand and what was found wrong so far."""

    def __init__(self, file: str, lines: Mapping[TomlPath, int]) -> None:
        self.file, self._lines = file, lines
        self._problems: list[TournamentFileError] = []

    def problem(self, path: TomlPath, message: str, suggestion: str | None = None) -> None:
        """Note a problem, at the line of the key or else of the nearest table around it."""
        line = next((self._lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._lines), None)
        self._problems.append(TournamentFileError(self.file, line, dotted(path), message, suggestion))

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


class Section:
    """One table of the file. Each reader notes what is wrong and then returns a value to go on with."""

    def __init__(self, source: Source, path: TomlPath, data: Mapping[str, object]) -> None:
        self.source, self.path, self.data = source, path, data
        self._known: dict[str, None] = {}  # in the order of asking

    def problem(self, key: str, message: str, suggestion: str | None = None) -> None:
        self.source.problem((*self.path, key) if key else self.path, message, suggestion)

    def close(self) -> None:
        """Refuse the keys that nobody asked for."""
        for key in self.data:
            if key not in self._known:
                near = nearest(key, self._known)
                known = "" if near else f" (known: {', '.join(self._known)})"
                self.problem(key, f"unknown key{known}", near)

    def has(self, key: str) -> bool:
        self._known[key] = None
        return key in self.data

    def whole(self, key: str, default: int | Missing, low: int, high: int) -> int:
        value = self._get(key, default)
        if type(value) is int and low <= value <= high:
            return value
        return self._refuse(key, value, f"a whole number from {low} to {high}", low)

    def number(self, key: str, default: float | Missing, low: float, high: float) -> float:
        value = self._get(key, default)
        if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
            return float(value)
        return self._refuse(key, value, f"a number from {low:g} to {high:g}", low)

    def flag(self, key: str, default: bool) -> bool:
        value = self._get(key, default)
        return value if isinstance(value, bool) else self._refuse(key, value, "true or false", default)

    def text(self, key: str, default: str | Missing, check: Callable[[str], bool], wanted: str) -> str:
        value = self._get(key, default)
        return value if isinstance(value, str) and check(value) else self._refuse(key, value, wanted, "")

    def choice(self, key: str, default: _E) -> _E:
        value = self._get(key, str(default))
        names = [str(member) for member in type(default)]
        if isinstance(value, str) and value in names:
            return type(default)(value)
        near = nearest(value, names) if isinstance(value, str) else None
        return self._refuse(key, value, f"one of: {', '.join(names)}", default, near)

    def texts(self, key: str) -> tuple[str, ...]:
        """A required array of texts, at least one and none with a NUL."""
        value = self._get(key, REQUIRED)
        if isinstance(value, list):
            items = tuple(item for item in value if isinstance(item, str) and "\0" not in item)
            if items and len(items) == len(value):
                return items
        return self._refuse(key, value, "a list of one or more texts", ())

    def section(self, key: str) -> Section:
        """A table, empty where it is absent."""
        value = self._get(key, {})
        data = value if isinstance(value, dict) else self._refuse(key, value, "a table", {})
        return Section(self.source, (*self.path, key), data)

    def sections(self, key: str) -> list[Section]:
        """A required array of tables."""
        value = self._get(key, REQUIRED)
        tables = value if isinstance(value, list) else self._refuse(key, value, f"tables [[{key}]]", [])
        path = (*self.path, key)
        found = [Section(self.source, (*path, i), t) for i, t in enumerate(tables) if isinstance(t, dict)]
        if len(found) != len(tables):
            self.problem(key, f"must be tables [[{key}]]")
        return found

    def _get(self, key: str, default: object) -> object:
        self._known[key] = None
        return self.data.get(key, default)

    def _refuse(self, key: str, value: object, wanted: str, instead: _T, near: str | None = None) -> _T:
        found = "missing, must be" if value is REQUIRED else f"{shown(value)} is not"
        self.problem(key, f"{found} {wanted}", near)
        return instead


def nearest(name: str, known: Collection[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, n=1)), None)


def leaves(value: object, path: TomlPath = ()) -> Iterator[tuple[TomlPath, object]]:
    """Every value of a file that is no table and no array of tables, by its path."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, (*path, key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, below in enumerate(value):
            yield from leaves(below, (*path, index))
    else:
        yield path, value


def shown(value: object) -> str:
    try:
        text = str(value).lower() if isinstance(value, bool) else repr(value)
    except ValueError:  # an int of thousands of digits, written in hex
        return "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."


def dotted(path: TomlPath) -> str:
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


def key_lines(text: str) -> dict[TomlPath, int]:
    """The line (from 1) on which each key and table of a valid TOML text first stands, also as a part of the
    dotted name of another.

    Keys inside inline tables and arrays are left out: whoever looks for one finds the key around it.
    """
    lines: dict[TomlPath, int] = {}
    arrays: Counter[TomlPath] = Counter()
    table: TomlPath = ()
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


def _enter(names: list[str], arrays: Counter[TomlPath], *, is_array: bool) -> TomlPath:
    """The path of a table header; arrays of tables on the way stand for their last element."""
    path: TomlPath = ()
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


def pair(key: str, value: str | float | Iterable[str]) -> str:
    """A line of TOML."""
    if isinstance(value, str):
        return f"{key} = {quoted(value)}"
    if isinstance(value, int | float):
        return f"{key} = {str(value).lower()}"
    return f"{key} = [{', '.join(map(quoted, value))}]"


def quoted(text: str) -> str:
    # A JSON text is a TOML basic string but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
