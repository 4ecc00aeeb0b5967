"""Settings of a command from a TOML file and from the environment, beside its options.

For each option the first of these that has it counts: the flag, the environment variable (the command's
``auto_envvar_prefix`` and the option's name), the file, the default. An option that may be repeated is taken
from one of them as a whole. click does that by itself once the file is the context's ``default_map``; here is
the rest: the file is read and checked as strictly as a command line, what nobody knows is refused in both
places, and settings are printed the way the file has them.

In the file a key is the option's name with underscores. Values have TOML's types: numbers and booleans are
not text. An option that may be repeated is a list, one of KEY=VALUE pairs is a table. Relative paths are
relative to the file's folder.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

_APART: Final = ("config", "show_config", "help")
"""Options that say what to do rather than being settings."""


class Setting(click.Option):
    """An option that may come from the file and the environment as well. ``section`` is its place in the
    help; ``pairs``: it is repeated, each time as KEY=VALUE, and is a table in the file."""

    def __init__(self, *args: Any, section: str, pairs: bool = False, **attributes: Any) -> None:
        if pairs:
            attributes["multiple"] = True
        if isinstance(attributes.get("type"), click.IntRange):
            attributes.setdefault("metavar", "N")
        super().__init__(*args, **attributes)
        self.section = section
        self.pairs = pairs

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Name the environment variable too if it is to blame."""
        hint = super().get_error_hint(ctx)
        if ctx is not None and ctx.get_parameter_source(_name(self)) is ParameterSource.ENVIRONMENT:
            return f"{hint} (environment variable {_variable(ctx, self)})"
        return hint


class SettingsCommand(click.Command):
    """A command whose help lists its options by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections in the order of their first options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                sections.setdefault(getattr(param, "section", "Other"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def load(ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
    """Callback of an eager ``--config`` option: have the file's settings used. Refuses what is wrong with the
    file or is a variable that stands for no option."""
    _check_environment(ctx)
    if path is not None:
        ctx.default_map = {**(ctx.default_map or {}), **_read(ctx, path)}
    return path


def as_toml(ctx: click.Context) -> str:
    """All settings of a context as they are now, in the form of the file; paths are absolute."""
    lines = []
    tables = []
    for name, param in _settings(ctx).items():
        value = ctx.params[name]
        if getattr(param, "pairs", False):
            if value:
                tables += ["", f"[{name}]"]
                tables += [
                    f"{key} = {json.dumps(text)}" for key, _, text in (v.partition("=") for v in value)
                ]
        elif value is not None:
            lines.append(f"{name} = {_toml(value)}")
    return "\n".join([*lines, *tables])


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, Path):
        value = str(value.absolute())
    # JSON's numbers, booleans and texts are TOML's.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# -- what there is ------------------------------------------------------------------------------------


def _name(param: click.Parameter) -> str:
    assert param.name is not None
    return param.name


def _variable(ctx: click.Context, param: click.Parameter) -> str:
    return f"{ctx.auto_envvar_prefix}_{_name(param).upper()}"


def _settings(ctx: click.Context) -> dict[str, click.Parameter]:
    return {
        _name(param): param
        for param in ctx.command.params
        if param.param_type_name == "option" and param.name not in _APART
    }


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _check_environment(ctx: click.Context) -> None:
    known = {
        _variable(ctx, param) for param in ctx.command.params if param.name not in ("show_config", "help")
    }
    for name in sorted(os.environ):
        if name.startswith(f"{ctx.auto_envvar_prefix}_") and name not in known:
            raise click.UsageError(
                f"environment variable {name}: no such setting{_nearest(name, known)}", ctx
            )


# -- the file -----------------------------------------------------------------------------------------


def _read(ctx: click.Context, path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise click.UsageError(f"{path}: {error}", ctx) from None
    known = _settings(ctx)
    found = {}
    for key, value in data.items():
        try:
            if key not in known:
                raise click.BadParameter(f"no such setting{_nearest(key, known)}")
            found[key] = _value(ctx, path.parent, known[key], value)
        except click.BadParameter as error:
            raise click.UsageError(f"{path}:{_line_of(text, key)}: {key}: {error.message}", ctx) from None
    return found


def _line_of(text: str, key: str) -> int:
    """The line, from 1, where a key of the document is given first."""
    place = re.compile(rf"""\s*(\[\s*)?["']?{re.escape(key)}["']?\s*[]=.]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if place.match(line)), 1)


def _value(ctx: click.Context, folder: Path, param: click.Parameter, value: object) -> Any:
    """A value of the file as click wants it, once click has nothing against it. Raises BadParameter."""
    if getattr(param, "pairs", False):
        if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
            raise click.BadParameter("a table of texts is needed")
        value = [f"{key}={text}" for key, text in value.items()]
    elif getattr(param, "multiple", False):
        if not isinstance(value, list):
            raise click.BadParameter("a list is needed")
        value = [_single(folder, param, item) for item in value]
    else:
        value = _single(folder, param, value)
    param.process_value(ctx, value)
    return value


def _single(folder: Path, param: click.Parameter, value: object) -> object:
    kind: tuple[type, ...] = (str,)
    needed = "a text"
    if isinstance(param.type, click.types.BoolParamType):
        kind, needed = (bool,), "true or false"
    elif isinstance(param.type, click.types.IntParamType):
        kind, needed = (int,), "a whole number"
    elif isinstance(param.type, click.types.FloatParamType):
        kind, needed = (int, float), "a number"
    if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kind):
        raise click.BadParameter(f"{needed} is needed")
    if isinstance(param.type, click.Path) and (not value or "\0" in str(value)):
        raise click.BadParameter("a path is needed")
    return str(folder / str(value)) if isinstance(param.type, click.Path) else value
