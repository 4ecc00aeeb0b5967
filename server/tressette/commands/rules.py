"""``tressette rules``: which presets there are, and every option of one with the text it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import click

from tressette.rules.errors import RuleSetError, UnknownPreset
from tressette.rules.presets import ALIASES, PRESETS, SOURCES, TEXTS, canonical_name, resolve, source_of
from tressette.rules.ruleset import (
    Accuse,
    Cappotto,
    Elimination,
    FirstTo,
    FixedDeals,
    Layout3,
    Objective,
    Rounding,
    RuleSet,
    TieBreak,
)

_NOT_USED = "not used"
_DECIDED = "decided"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def rules() -> None:
    """List the presets of the rules and show every option of one.

    What the options mean is written in RULES.md beside the package tressette.rules.
    """


@rules.command("list")
@click.option("--all", "every", is_flag=True, help="List the -duplicate forms too.")
def list_presets(every: bool) -> None:
    """List the presets: name, players, objective and end of each, then the other names of the games.

    Every preset also exists as NAME-duplicate, which plays a fixed number of deals (1 unless replaced)
    without a tie-break, as duplicate tournaments do.
    """
    names = [name for name in PRESETS if every or name in SOURCES]
    rows = [
        (name, _players(PRESETS[name]), str(PRESETS[name].objective), _end(PRESETS[name]), _summary(name))
        for name in names
    ]
    _print_table(("NAME", "PLAYERS", "OBJECTIVE", "END", "TEXT AND SUMMARY"), rows)
    click.echo("\nOther names:")
    _print_table(None, [(f"  {alias}", f"-> {name}") for alias, name in ALIASES.items()])
    if not every:
        click.echo("\nEach also as NAME-duplicate, for duplicate tournaments (--all lists them).")


@rules.command()
@click.argument("name")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="OPTION=VALUE",
    help="Replace an option, e.g. --set deals=4 --set monte=automatic. May be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(name: str, overrides: Sequence[str], as_json: bool) -> None:
    """Show every option of the preset NAME: its value and which text has it.

    NAME is a preset or one of the other names that `tressette rules list` gives. The last column holds
    the number of the text (000 to 004) that the preset follows if that text has the value; `decided` if
    it is silent, with the texts that do have the value; and `not used` where the option means nothing
    together with the others. Combinations that make no game are refused.
    """
    try:
        preset = canonical_name(name)
    except UnknownPreset as error:
        raise click.BadParameter(str(error), param_hint="NAME") from None
    try:
        chosen = resolve(name, **dict(map(_override, overrides)))
    except RuleSetError as error:
        raise click.BadParameter(str(error), param_hint="--set") from None
    origins = _origins(source_of(name).text, chosen)
    if as_json:
        click.echo(json.dumps(_described(preset, chosen, origins), indent=2))
        return
    click.echo(f"{preset}: text {_summary(preset)}")
    click.echo(f"hash {chosen.hash()}\n")
    options = chosen.options()
    rows = [(option, str(value), origins[option]) for option, value in options.items()]
    _print_table(("OPTION", "VALUE", "TEXT"), rows)


def _override(text: str) -> tuple[str, str | int]:
    option, equals, value = text.partition("=")
    if not option or not equals:
        raise click.BadParameter(f"{text!r} is not OPTION=VALUE", param_hint="--set")
    try:
        return option, int(value) if value.isdecimal() else value
    except ValueError:  # more digits than Python reads
        raise click.BadParameter(f"{option}: a number of {len(value)} digits", param_hint="--set") from None


def _described(preset: str, chosen: RuleSet, origins: dict[str, str]) -> dict[str, object]:
    source = source_of(preset)
    return {
        "preset": preset,
        "text": source.text,
        "summary": source.summary,
        "hash": chosen.hash(),
        "options": chosen.options(),
        "origins": origins,
    }


def _summary(name: str) -> str:
    source = source_of(name)
    return f"{source.text}  {source.summary}"


def _players(chosen: RuleSet) -> str:
    return f"{chosen.players} in pairs" if chosen.pairs else str(chosen.players)


def _end(chosen: RuleSet) -> str:
    options = chosen.options()
    words = [str(options[name]) for name in ("end", "target", "threshold", "deals") if name in options]
    return " ".join(words)


def _origins(text: str, chosen: RuleSet) -> dict[str, str]:
    """By option, where its value comes from, for a preset that follows ``text``."""
    unused = set(_unused(chosen))
    result = {}
    for option, value in chosen.options().items():
        texts = TEXTS[option].get(str(value), "").split()
        if option in unused:
            result[option] = _NOT_USED
        elif text in texts:
            result[option] = text
        else:
            result[option] = f"{_DECIDED} (as in {', '.join(texts)})" if texts else _DECIDED
    return result


def _unused(chosen: RuleSet) -> Iterable[str]:
    """The options that mean nothing together with the others."""
    if not chosen.pairs:
        yield from ("partners", "signals")
    if chosen.players not in (2, 4):
        yield "packets"
    shrinks = isinstance(chosen.end, Elimination) or chosen.tie_break is TieBreak.EXTRA_DEAL
    if chosen.players == 2 or chosen.pairs or (chosen.players > 3 and not shrinks):
        yield from ("layout_3", "removed_card")
    elif chosen.layout_3 is Layout3.DEALER_DISCARD:
        yield "removed_card"
    if chosen.rounding is Rounding.REMAINDER_TO_LAST:
        yield "last_trick_bonus"
    if chosen.cappotto is Cappotto.NONE:
        yield from ("cappotto_effect", "cappotto_penalty")
    elif chosen.objective is Objective.MOST:
        yield "cappotto_penalty"
    if chosen.accuse is Accuse.OFF:
        yield from ("accuse_window", "napoli_extension")
    if isinstance(chosen.end, FirstTo | FixedDeals):
        yield "tie_break"


def _print_table(header: tuple[str, ...] | None, rows: Sequence[tuple[str, ...]]) -> None:
    lines = ([header] if header else []) + list(rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        click.echo("  ".join(cells).rstrip())
