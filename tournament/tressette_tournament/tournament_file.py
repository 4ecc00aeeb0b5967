"""A tournament is a file: TOML text to a checked, frozen ``Tournament``, and back.

Vocabulary: a **deal set** is one deck seed played once for each seating; a **reference bot** is one that
comes with the product and is named by ``bot = "..."``. Source: the tournament design, "A tournament is a
file". The keys, with their defaults::

    [tournament]
    name = "cup"               # required, 1 to 100 printable characters
    format = "round-robin"     # or "gauntlet", "swiss", "knockout", "ladder", "sprt": see formats.py
    presets = ["tressette-due-duplicate"]       # required; aliases are replaced by what they stand for
    deal_sets = 10             # for each line-up; swiss, knockout: in each round; ladder: at each
                               # meeting. Required but for ladder (1) and sprt (100000: gives up then)
    # rounds = 5               # swiss: required
    # extra_sets = 10          # knockout: further sets, one at a time, while a match is drawn
    seatings = "cyclic"        # or "all", or "once": a deck is played in one seating only
    pairs = "copies"           # or "mixed": who sits opposite a bot in presets played in pairs
    copies = "none"            # or "one-against-rest", "halves": two bots fill a table of individuals
    common_deals = true        # every line-up of a preset gets the same decks
    seed = "..."               # absent: decks are secret; present: decks are public
    isolation = "relabel"      # or "fresh": no process plays a deck that it has seen
    reveal_sets = 100          # set numbers whose decks are revealed together, once all of them are played
    window = 64                # deal sets open at once; default: 64, or twice the concurrency if that is more
    concurrency = 32           # games at once
    output = "cups/1"          # folder, relative to this file; default: cup.toml gives cup-run
    max_tables = 1000          # groups of bots that meet at most, for each preset (round-robin, gauntlet)
    [stop]                     # ends the event early; deal sets that are open are finished and count
    games = 10000              # when deal sets of so many games have been begun; those left out do not count
    deal_sets = 1000           # or so many deal sets
    minutes = 480              # or so long it has been at work, all its sessions together
    error_below = 10           # or every bot's ± is under this, in Elo; looked at every 10 decks from 30 on
    # [sprt]                   # sprt: required
    # elo0 = 0                 # H0: the first bot is so much stronger than the second, in Elo
    # elo1 = 5                 # H1: so much
    # alpha = 0.05             # chance to accept H1 where H0 holds
    # beta = 0.05              # and the reverse
    # model = "logistic"       # what Elo means: or "normalized"
    [clock]
    move_ms = 2000             # milliseconds for each decision; 0: no limit of its own, and with no bank
                               # either a bot that hangs holds its games until somebody ends it
    bank_ms = 0                # drawn on when move_ms is used up
    increment_ms = 0           # added to the bank after each decision
    allowance_ms = 100         # most that is taken for the network
    [faults]
    illegal_retries = 1        # how often a refused answer may be corrected within a turn
    strikes = 0                # faults of a seat that lose it the game, 0: none
    timeout = "substitute"     # or "forfeit", "transfer_all", "penalty"; so for malformed, illegal,
                               # not_your_turn (also "none", its default), disconnect, crash, refused_to_start
    [server]                   # where bots connect; needed for remote bots only
    listen = "127.0.0.1:0"     # HOST:PORT; elsewhere than on loopback only with TLS and tokens
    certificate = "cert.pem"   # TLS: with key; client_ca asks bots for certificates too
    key = "key.pem"
    client_ca = "ca.pem"
    tokens = "tokens.json"     # of `tressette token new NAME`; required with remote bots: NAME is the bot's
    grace_s = 60               # how long a remote bot may take to come back to its games
    away_s = 300               # how long a bot may be away before its games are left out
    [preset_options.tressette-due-duplicate]    # options of the rule set that replace the preset's
    deals = 4
    [[bots]]
    name = "mine"              # required, unique, 1 to 64 of letters, digits, ".", "_" and "-"
    command = ["python", "my_bot.py"]           # this, or bot = the name of a reference bot, or remote = true
    directory = "."            # with command; relative to this file, default: the folder of this file
    environment = { KEY = "text" }              # with command
    instances = 1              # processes; raised to the most seats that one bot has in one game
    restarts = 3               # how often a process that ends is started again
    start_limit_s = 60         # how long a process may take to connect
    nice = 0                   # added to the niceness of its processes, 0 to 19
    cpus = [0, 1]              # processors it may run on; absent: any
    # challenger = true        # gauntlet: plays the others, which are the field
    [[bots]]
    name = "house"
    bot = "greedy"
    [[bots]]
    name = "guest"
    remote = true              # connects by itself; nothing is started

1. Unknown keys and impossible values are refused, with the line and the nearest valid name; everything that
   can be checked is checked, and all that is wrong is reported at once.
2. An option that would change nothing (``copies`` without a table of individuals, say) is refused as well.
3. Every event is rated: presets with drawn partners are refused, and so are two presets with equal rules,
   which would be one rating pool playing every deck twice.
4. The resolved file stands elsewhere than its source, so paths in a ``Tournament`` are no longer relative.
   In the folder of the run its own ``output`` is ".", so that it can be run there wherever that is moved.
5. Remote bots cannot be kept from remembering decks, so with one of them ``seatings`` is "once" and
   ``common_deals`` false unless the file says otherwise: a bot then meets a deck once.
6. An SPRT over a table of individuals fills it with copies, one against the rest, unless the file says
   otherwise: it needs games between two bots.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, get_args

from tressette.rules.errors import RuleSetError, UnknownPreset
from tressette.rules.events import FaultEffect, FaultKind
from tressette.rules.presets import canonical_name, resolve
from tressette.rules.ruleset import End, Partners, RuleSet

from tressette_tournament.commands import search_path, why_no_cpus, why_not_found
from tressette_tournament.lineups import Copies, LineUp, Pairs, Seatings, Table, line_ups
from tressette_tournament.sprt import Model, Sprt, SprtError
from tressette_tournament.stop_rules import Stop
from tressette_tournament.toml_source import (
    REQUIRED,
    Missing,
    Section,
    Source,
    TournamentFileError,
    dotted,
    key_lines,
    leaves,
    nearest,
    pair,
    quoted,
    shown,
)

SPRT_SETS: Final = 100_000
"""Deal sets after which an SPRT that has not decided gives up, unless the file says otherwise."""
_SEED: Final = "a text with something in it"


class Format(StrEnum):
    """Who meets whom, and when: see ``formats``."""

    ROUND_ROBIN = "round-robin"
    GAUNTLET = "gauntlet"
    SWISS = "swiss"
    KNOCKOUT = "knockout"
    LADDER = "ladder"
    SPRT = "sprt"


class Isolation(StrEnum):
    """What keeps a bot from profiting by a deck that it meets again."""

    RELABEL = "relabel"
    FRESH = "fresh"


@dataclass(frozen=True, slots=True)
class PresetChoice:
    """A preset of the event: its canonical name, the options that the file replaces, the rules they give."""

    name: str
    options: tuple[tuple[str, str | int], ...]
    rules: RuleSet


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot of the event: ``reference`` (a reference bot's name), or a non-empty ``command``, or ``remote``.

    directory: where the command runs, else None. environment: variables to add. instances: processes to
    start, at least as many as the bot has seats in any one game. restarts: of each of them. start_limit_s:
    seconds until each has connected. nice: added to its niceness. cpus: processors, empty for any.
    challenger: see ``Format.GAUNTLET``.
    """

    name: str
    reference: str | None
    command: tuple[str, ...]
    directory: str | None
    environment: tuple[tuple[str, str], ...]
    instances: int
    remote: bool = False
    restarts: int = 3
    start_limit_s: int = 60
    nice: int = 0
    cpus: tuple[int, ...] = ()
    challenger: bool = False


@dataclass(frozen=True, slots=True)
class Clock:
    """Time for decisions, in milliseconds; 0: no such limit, bank, increment or allowance."""

    move_ms: int
    bank_ms: int
    increment_ms: int
    allowance_ms: int

    @property
    def runs(self) -> bool:
        """Whether there is any limit to the time for a decision."""
        return bool(self.move_ms or self.bank_ms)


@dataclass(frozen=True, slots=True)
class Faults:
    """What becomes of faults. policies: those that are not the default."""

    illegal_retries: int
    strikes: int
    policies: tuple[tuple[FaultKind, FaultEffect], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where bots connect. Paths are absolute, None where there is none; times are seconds."""

    listen: str
    certificate: str | None
    key: str | None
    client_ca: str | None
    tokens: str | None
    grace_s: int
    away_s: int


@dataclass(frozen=True, slots=True)
class Tournament:
    """A tournament file, checked and with every default filled in. The module says what the fields mean.

    seed: None means secret decks. output: folder. rounds: 0 but for Swiss. window: deal sets.
    """

    name: str
    format: Format
    presets: tuple[PresetChoice, ...]
    deal_sets: int
    rounds: int
    extra_sets: int
    seatings: Seatings
    pairs: Pairs
    copies: Copies
    common_deals: bool
    seed: str | None
    isolation: Isolation
    reveal_sets: int
    window: int
    concurrency: int
    output: str
    max_tables: int
    stop: Stop
    sprt: Sprt | None
    clock: Clock
    faults: Faults
    place: Place
    bots: tuple[Bot, ...]

    def table(self, preset: PresetChoice) -> Table:
        """What a table of this preset seats, and how it is filled."""
        rules = preset.rules
        return Table(rules.players, rules.pairs, self.seatings, self.pairs, self.copies)

    def line_ups(self, preset: PresetChoice) -> tuple[LineUp, ...]:
        """The line-ups of a preset where everyone meets everyone, in the order in which they are played."""
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
    folder = Path(os.path.realpath(file)).parent
    tournament = parse(text, file=str(file), folder=folder, reference_bots=reference_bots)
    if output is not None:
        tournament = replace(tournament, output=os.path.realpath(output))
    source = Source(str(file), key_lines(text))
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
    source = Source(file, key_lines(text))
    result = _tournament(Section(source, (), data), Path(file).stem, folder, reference_bots)
    source.raise_problems()
    return result


def dump(tournament: Tournament) -> str:
    """The tournament as TOML with every default written out; ``parse`` gives an equal value back."""
    return "\n".join([*_dump_event(tournament), *_dump_presets(tournament), *_dump_bots(tournament)]) + "\n"


def differences(kept: str, text: str) -> list[tuple[str, object, object]]:
    """Where two resolved files differ, as (key, value in ``kept``, value in ``text``); None stands for a key
    that is absent. The folder of the run may differ, and so may the directory of a bot's command if the one
    in ``kept`` is gone: then things were moved. Raises ValueError if ``kept`` is not TOML."""
    before, now = dict(leaves(tomllib.loads(kept))), dict(leaves(tomllib.loads(text)))
    found = []
    for path in {**before, **now}:
        old, new = before.get(path), now.get(path)
        moved = path == ("tournament", "output") or (
            path[-1] == "directory" and new is not None and not os.path.isdir(str(old))
        )
        if old != new and not moved:
            found.append((dotted(path), old, new))
    return found


def _tournament(root: Section, stem: str, folder: Path, reference_bots: Collection[str]) -> Tournament:
    event, place = root.section("tournament"), root.section("server")
    clock, faults, stop = root.section("clock"), root.section("faults"), root.section("stop")
    presets = _presets(event, root.section("preset_options"))
    format_ = event.choice("format", Format.ROUND_ROBIN)
    sections = root.sections("bots")
    remote = any(section.data.get("remote") is True for section in sections)
    concurrency = event.whole("concurrency", 32, 1, 10_000)
    result = Tournament(
        name=event.text("name", REQUIRED, _is_title, "1 to 100 printable characters"),
        format=format_,
        presets=presets,
        deal_sets=event.whole("deal_sets", _DEAL_SETS.get(format_, REQUIRED), 1, 1_000_000_000),
        rounds=_only(event, "rounds", REQUIRED, 1, 1000, format_, Format.SWISS),
        extra_sets=_only(event, "extra_sets", 10, 0, 1_000_000, format_, Format.KNOCKOUT),
        seatings=event.choice("seatings", Seatings.ONCE if remote else Seatings.CYCLIC),
        pairs=event.choice("pairs", Pairs.COPIES),
        copies=event.choice("copies", _copies(format_, presets)),
        common_deals=event.flag("common_deals", not remote),
        seed=event.text("seed", REQUIRED, bool, _SEED) if event.has("seed") else None,
        isolation=event.choice("isolation", Isolation.RELABEL),
        reveal_sets=event.whole("reveal_sets", 100, 1, 1_000_000_000),
        window=event.whole("window", max(64, 2 * concurrency), 1, 1_000_000),
        concurrency=concurrency,
        output=str(folder / event.text("output", f"{stem}-run", _is_path, "the name of a folder")),
        max_tables=_only(
            event, "max_tables", 1000, 1, 1_000_000, format_, Format.ROUND_ROBIN, Format.GAUNTLET
        ),
        stop=_stop(stop),
        sprt=_sprt(root, format_),
        clock=_clock(clock),
        faults=_faults(faults),
        place=_place(place, folder),
        bots=(),
    )
    most_seats = max((result.table(preset).most_seats for preset in presets), default=1)
    bots = tuple(_bot(section, folder, reference_bots, most_seats, format_) for section in sections)
    result = replace(result, bots=bots)
    for section in (root, event, clock, faults, stop, place):
        section.close()
    if root.source.sound:
        _check_tables(event, result)
        _check_remote(root, place, result)
    _check_names(root, bots)
    return result


_DEAL_SETS: Final = {Format.LADDER: 1, Format.SPRT: SPRT_SETS}
"""Defaults of ``deal_sets``; the other formats ask for it."""


def _only(
    section: Section, key: str, default: int | Missing, low: int, high: int, format_: Format, *formats: Format
) -> int:
    """A whole number that has a meaning in some formats; in others 0, and noted if it is there."""
    if format_ in formats:
        return section.whole(key, default, low, high)
    if section.has(key):
        section.problem(key, f"no effect: only for {' and '.join(formats)}")
    return 0


def _copies(format_: Format, presets: Iterable[PresetChoice]) -> Copies:
    """The default of ``copies``."""
    individuals = any(not choice.rules.pairs and choice.rules.players > 2 for choice in presets)
    return Copies.ONE_AGAINST_REST if format_ is Format.SPRT and individuals else Copies.NONE


def _stop(section: Section) -> Stop:
    return Stop(
        games=section.whole("games", REQUIRED, 1, 1_000_000_000) if section.has("games") else None,
        deal_sets=section.whole("deal_sets", REQUIRED, 1, 1_000_000_000)
        if section.has("deal_sets")
        else None,
        minutes=section.number("minutes", REQUIRED, 0.01, 1_000_000) if section.has("minutes") else None,
        error_below=section.number("error_below", REQUIRED, 0.1, 1000)
        if section.has("error_below")
        else None,
    )


def _sprt(root: Section, format_: Format) -> Sprt | None:
    if format_ is not Format.SPRT:
        if root.has("sprt"):
            root.problem("sprt", 'no effect: only for format = "sprt"')
        return None
    section = root.section("sprt")
    settings = {
        "elo0": section.number("elo0", REQUIRED, -1000, 1000),
        "elo1": section.number("elo1", REQUIRED, -1000, 1000),
        "alpha": section.number("alpha", 0.05, 0, 0.5),
        "beta": section.number("beta", 0.05, 0, 0.5),
    }
    model = section.choice("model", Model.LOGISTIC)
    section.close()
    if root.source.sound:
        try:
            return Sprt(**settings, model=model)
        except SprtError as error:
            section.problem(error.field, str(error).partition(": ")[2])
    return None


def _clock(section: Section) -> Clock:
    clock = Clock(
        move_ms=section.whole("move_ms", 2000, 0, 3_600_000),
        bank_ms=section.whole("bank_ms", 0, 0, 86_400_000),
        increment_ms=section.whole("increment_ms", 0, 0, 3_600_000),
        allowance_ms=section.whole("allowance_ms", 100, 0, 60_000),
    )
    if clock.increment_ms and not clock.runs:
        section.problem("increment_ms", "no effect without move_ms or bank_ms")
    return clock


def _faults(section: Section) -> Faults:
    return Faults(
        illegal_retries=section.whole("illegal_retries", 1, 0, 10),
        strikes=section.whole("strikes", 0, 0, 1_000_000),
        policies=tuple(
            (kind, effect)
            for kind in FaultKind
            if section.has(kind) and (effect := _policy(section, kind)) is not None
        ),
    )


def _policy(section: Section, kind: FaultKind) -> FaultEffect | None:
    effects = [*_POLICIES, *([FaultEffect.NONE] if kind is FaultKind.NOT_YOUR_TURN else [])]
    value = section.data[kind]
    if isinstance(value, str) and value in effects:
        return FaultEffect(value)
    near = nearest(value, effects) if isinstance(value, str) else None
    section.problem(kind, f"{shown(value)} is not one of: {', '.join(effects)}", near)
    return None


_POLICIES: Final = (
    FaultEffect.SUBSTITUTE,
    FaultEffect.FORFEIT,
    FaultEffect.TRANSFER_ALL,
    FaultEffect.PENALTY,
)


def _place(section: Section, folder: Path) -> Place:
    def path(key: str) -> str | None:
        if not section.has(key):
            return None
        return str(folder / section.text(key, REQUIRED, _is_path, "the name of a file"))

    place = Place(
        listen=section.text("listen", "127.0.0.1:0", _is_address, "HOST:PORT with a port from 0 to 65535"),
        certificate=path("certificate"),
        key=path("key"),
        client_ca=path("client_ca"),
        tokens=path("tokens"),
        grace_s=section.whole("grace_s", 60, 0, 86_400),
        away_s=section.whole("away_s", 300, 1, 604_800),
    )
    if (place.certificate is None) != (place.key is None):
        section.problem("certificate" if place.key is None else "key", "certificate and key belong together")
    if place.client_ca is not None and place.certificate is None:
        section.problem("client_ca", "no effect without certificate and key")
    return place


def _presets(event: Section, options: Section) -> tuple[PresetChoice, ...]:
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


def _preset(event: Section, name: str, overrides: Section) -> PresetChoice | None:
    try:
        canonical = canonical_name(name)
    except UnknownPreset as error:
        event.problem("presets", f"unknown preset {name!r}", error.nearest)
        return None
    values: dict[str, str | int] = {}
    for option, value in overrides.data.items():
        if option not in _RULE_OPTIONS:
            overrides.problem(option, "no such option of a rule set", nearest(option, _RULE_OPTIONS))
        elif isinstance(value, str | int):
            values[option] = value
        else:
            overrides.problem(option, f"{shown(value)} is neither a text nor a whole number")
    try:
        return PresetChoice(canonical, tuple(values.items()), resolve(canonical, **values))
    except RuleSetError as error:
        overrides.problem(error.option, error.reason)
        return None


def _bot(
    section: Section, folder: Path, reference_bots: Collection[str], most_seats: int, format_: Format
) -> Bot:
    name = section.text("name", REQUIRED, _is_bot_name, "1 to 64 of letters, digits, '.', '_' and '-'")
    has_reference, has_command = section.has("bot"), section.has("command")
    remote = section.flag("remote", False)
    reference: str | None = None
    command: tuple[str, ...] = ()
    directory: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    if has_reference + has_command + remote != 1:
        section.problem("", 'needs one of bot = "...", command = [...] and remote = true')
    if has_reference:
        reference = _reference(section, reference_bots)
    if has_command:
        command = section.texts("command")
        directory = str(folder / section.text("directory", ".", _is_path, "the name of a folder"))
        environment = _environment(section.section("environment"))
    else:
        _refuse(section, ("directory", "environment"), "only a bot with a command has one")
    if remote:
        _refuse(section, ("instances", "restarts", "nice", "cpus"), "a remote bot is not started here")
    challenger = section.flag("challenger", False)
    if challenger and format_ is not Format.GAUNTLET:
        section.problem("challenger", "no effect: only for gauntlet")
    bot = Bot(
        name=name,
        reference=reference,
        command=command,
        directory=directory,
        environment=environment,
        instances=0 if remote else max(section.whole("instances", 1, 1, 10_000), most_seats),
        remote=remote,
        restarts=0 if remote else section.whole("restarts", 3, 0, 1_000_000),
        start_limit_s=section.whole("start_limit_s", 300 if remote else 60, 1, 604_800),
        nice=0 if remote else section.whole("nice", 0, 0, 19),
        cpus=() if remote else _cpus(section),
        challenger=challenger,
    )
    section.close()
    return bot


def _refuse(section: Section, keys: Iterable[str], why: str) -> None:
    for key in keys:
        if section.has(key):
            section.problem(key, why)


def _cpus(section: Section) -> tuple[int, ...]:
    if not section.has("cpus"):
        return ()
    value = section.data["cpus"]
    if isinstance(value, list) and value and all(type(cpu) is int and cpu >= 0 for cpu in value):
        return tuple(sorted(set(value)))
    section.problem("cpus", f"{shown(value)} is not a list of one or more processor numbers")
    return ()


def _reference(section: Section, reference_bots: Collection[str]) -> str:
    name = section.text("bot", REQUIRED, bool, "the name of a reference bot")
    if name and name not in reference_bots:
        names = ", ".join(sorted(reference_bots))
        section.problem(
            "bot", f"unknown reference bot {name!r} (known: {names})", nearest(name, reference_bots)
        )
    return name


def _environment(section: Section) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for key, value in section.data.items():
        if not key or "=" in key or "\0" in key:
            section.problem(key, "not a possible name of an environment variable")
        elif not isinstance(value, str) or "\0" in value:
            section.problem(key, f"{shown(value)} is not a text")
        else:
            found.append((key, value))
    return tuple(found)


def _check_names(root: Section, bots: Iterable[Bot]) -> None:
    seen: set[str] = set()
    for index, bot in enumerate(bots):
        if bot.name and bot.name in seen:
            root.source.problem(("bots", index, "name"), f"{bot.name!r} is the name of an earlier bot")
        seen.add(bot.name)


def _check_places(source: Source, tournament: Tournament) -> None:
    """Whether the folder of the run can be one, and what the bots' commands need is there."""
    output = Path(tournament.output)
    in_the_way = next((place for place in (output, *output.parents) if os.path.exists(place)), None)
    if in_the_way is not None and not os.path.isdir(in_the_way):
        source.problem(("tournament", "output"), f"{in_the_way} is not a folder")
    for key in ("certificate", "key", "client_ca", "tokens"):
        file = getattr(tournament.place, key)
        if file is not None and not os.path.isfile(file):
            source.problem(("server", key), f"there is no file {file}")
    for index, bot in enumerate(tournament.bots):
        no_cpus = why_no_cpus(bot.cpus)
        if bot.cpus and no_cpus is not None:
            source.problem(("bots", index, "cpus"), no_cpus)
        if bot.directory is None:
            continue
        if not os.path.isdir(bot.directory):
            source.problem(("bots", index, "directory"), f"there is no folder {bot.directory}")
            continue
        why = why_not_found(bot.command[0], bot.directory, search_path(dict(bot.environment)))
        if why is not None:
            source.problem(("bots", index, "command"), why)


def _check_tables(event: Section, tournament: Tournament) -> None:
    """Whether the bots fill the tables of every preset, and the options for filling them have a use."""
    tables = [tournament.table(preset) for preset in tournament.presets]
    bots = len(tournament.bots)
    for preset, table in zip(tournament.presets, tables, strict=True):
        needed = table.different_bots
        if bots < needed:
            message = f"{preset.name} needs {needed} different bots at a table, the file has {bots}"
            event.source.problem(("bots",), message)
        elif tournament.format is Format.ROUND_ROBIN:
            _check_limit(event, tournament.max_tables, bots, needed)
        if needed != 2 and tournament.format in (Format.KNOCKOUT, Format.SPRT):
            event.problem(
                "presets",
                f"{preset.name} seats {needed} different bots, {tournament.format} needs two at a table",
            )
    if tournament.pairs is not Pairs.COPIES and not any(table.paired for table in tables):
        event.problem("pairs", "no effect: no preset is played in pairs")
    if tournament.copies is not Copies.NONE and all(table.paired or table.seats == 2 for table in tables):
        event.problem("copies", "no effect: no preset seats three or more individuals")
    _check_format(event, tournament, max((table.different_bots for table in tables), default=2))


def _check_limit(event: Section, max_tables: int, bots: int, seats: int) -> None:
    if bots > max_tables and math.comb(bots, seats) > max_tables:
        event.problem(
            "max_tables", f"{max_tables} tables are too few for {bots} bots: at least {bots} are needed"
        )


def _check_format(event: Section, tournament: Tournament, most_bots: int) -> None:
    """What the format asks of the bots and presets. most_bots: different ones at the largest table."""
    bots = event.source
    if tournament.format is Format.SPRT:
        if len(tournament.bots) != 2:
            bots.problem(("bots",), f"sprt is between two bots, the file has {len(tournament.bots)}")
        if len(tournament.presets) != 1:
            event.problem("presets", "sprt decides on one preset")
        if tournament.copies is Copies.HALVES:
            event.problem("copies", 'sprt needs "one-against-rest": sets of one shape')
    if tournament.format is Format.GAUNTLET:
        challengers = sum(bot.challenger for bot in tournament.bots)
        field = len(tournament.bots) - challengers
        if not challengers:
            bots.problem(("bots",), "gauntlet needs a bot with challenger = true")
        elif field < most_bots - 1:
            bots.problem(
                ("bots",), f"the field needs {most_bots - 1} bots that are no challengers, it has {field}"
            )
        elif most_bots > 2:
            _check_limit(event, tournament.max_tables // challengers, field, most_bots - 1)


def _check_remote(root: Section, place: Section, tournament: Tournament) -> None:
    """Whether remote bots can connect, and to nobody's harm."""
    remote = [bot.name for bot in tournament.bots if bot.remote]
    host = tournament.place.listen.rpartition(":")[0]
    if remote and tournament.place.tokens is None:
        place.problem("tokens", f"missing: remote bots ({', '.join(remote)}) show who they are by tokens")
    if not remote:
        for key in ("tokens", "certificate", "client_ca", "grace_s"):
            if place.has(key):
                place.problem(key, "no effect without a remote bot")
    elif not _is_loopback(host) and tournament.place.certificate is None:
        place.problem("listen", f"{host} can be reached from elsewhere: needs certificate and key")
    if tournament.isolation is Isolation.FRESH and len(remote) == len(tournament.bots):
        root.source.problem(("tournament", "isolation"), "no effect: remote bots cannot be isolated")


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isascii() and port.isdecimal() and int(port) <= 65535


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


_RULE_OPTIONS: Final = tuple(field.name for kind in (RuleSet, *get_args(End)) for field in fields(kind))
"""Names that a rule set's options may have, the numbers of its end condition included."""


def _is_title(text: str) -> bool:
    return 1 <= len(text) <= 100 and text.isprintable()


def _is_bot_name(text: str) -> bool:
    # One letter or digit at least: "." and ".." would not do as the name of a log file.
    return re.fullmatch(r"(?=.*[A-Za-z0-9])[A-Za-z0-9._-]{1,64}", text) is not None


def _is_path(text: str) -> bool:
    return text != "" and "\0" not in text


# --- writing ---------------------------------------------------------------------------------------


def _dump_event(tournament: Tournament) -> Iterator[str]:
    yield "[tournament]"
    yield pair("name", tournament.name)
    yield pair("format", tournament.format)
    yield pair("presets", [preset.name for preset in tournament.presets])
    yield pair("deal_sets", tournament.deal_sets)
    if tournament.format is Format.SWISS:
        yield pair("rounds", tournament.rounds)
    if tournament.format is Format.KNOCKOUT:
        yield pair("extra_sets", tournament.extra_sets)
    yield pair("seatings", tournament.seatings)
    yield pair("pairs", tournament.pairs)
    yield pair("copies", tournament.copies)
    yield pair("common_deals", tournament.common_deals)
    if tournament.seed is not None:
        yield pair("seed", tournament.seed)
    yield pair("isolation", tournament.isolation)
    yield pair("reveal_sets", tournament.reveal_sets)
    yield pair("window", tournament.window)
    yield pair("concurrency", tournament.concurrency)
    yield pair("output", tournament.output)
    if tournament.format in (Format.ROUND_ROBIN, Format.GAUNTLET):
        yield pair("max_tables", tournament.max_tables)
    yield from ("", "[stop]", *_dump_fields(tournament.stop))
    if tournament.sprt is not None:
        yield from ("", "[sprt]", *_dump_fields(tournament.sprt))
    yield from ("", "[clock]", *_dump_fields(tournament.clock))
    faults = tournament.faults
    yield from ("", "[faults]", pair("illegal_retries", faults.illegal_retries))
    yield pair("strikes", faults.strikes)
    yield from (pair(kind, effect) for kind, effect in faults.policies)
    yield from ("", "[server]", *_dump_place(tournament))


def _dump_place(tournament: Tournament) -> Iterator[str]:
    remote = any(bot.remote for bot in tournament.bots)
    for line in _dump_fields(tournament.place):
        if remote or not line.startswith("grace_s"):
            yield line


def _dump_fields(settings: Stop | Sprt | Clock | Place) -> Iterator[str]:
    """Every field that has a value."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value is not None:
            yield pair(field.name, value)


def _dump_presets(tournament: Tournament) -> Iterator[str]:
    for preset in tournament.presets:
        if preset.options:
            yield from ("", f"[preset_options.{quoted(preset.name)}]")
            yield from (pair(option, value) for option, value in preset.options)


def _dump_bots(tournament: Tournament) -> Iterator[str]:
    for bot in tournament.bots:
        yield from ("", "[[bots]]", pair("name", bot.name))
        if bot.reference is not None:
            yield pair("bot", bot.reference)
        if bot.directory is not None:
            yield pair("command", bot.command)
            yield pair("directory", bot.directory)
            variables = ", ".join(f"{quoted(key)} = {quoted(value)}" for key, value in bot.environment)
            yield f"environment = {{ {variables} }}"
        if bot.remote:
            yield pair("remote", True)
        else:
            yield pair("instances", bot.instances)
            yield pair("restarts", bot.restarts)
            yield pair("nice", bot.nice)
            if bot.cpus:
                yield f"cpus = {list(bot.cpus)}"
        yield pair("start_limit_s", bot.start_limit_s)
        if tournament.format is Format.GAUNTLET:
            yield pair("challenger", bot.challenger)
