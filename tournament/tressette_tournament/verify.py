"""``tressette verify``: whether the record of a run is whole, and says what happened.

What is checked, each on its own: the chain of every file, and its last line by the closing manifest; every
game played again by the rules, down to points, ranks and faults of its result; every game once, with the bots
in the seats and as many games in its deal set as the schedule of the run has, and none missing where the run
says that it is complete; the hands, where decks are revealed or the event key is at hand, by the deck seeds;
the ratings, computed again from the results. Source: the tournament design, "The record".
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import Progress
from tressette.record.decks import PublishedEvent
from tressette.record.manifest import check_manifest, read_manifest, summary_of
from tressette.record.reader import RecordError, read_lines, result_files
from tressette.record.replay import RecordedGame, ReplayDiffers, read_games, replay_game
from tressette.record.reveals import deck_matches, read_reveals
from tressette.record.segments import segments

from tressette_tournament.folder import RATINGS
from tressette_tournament.ratings import rate
from tressette_tournament.report import as_json
from tressette_tournament.results import GameResult, no_results, read
from tressette_tournament.scheduled import Scheduled

_STOPPED: Final = 3
ELO_TOLERANCE: Final = 0.01
"""By how much two ratings, errors or bounds in Elo may differ and be the same."""
_TOLERANCE: Final = 1e-6
"""The same for scores, likelihoods and points per deal."""
_IN_ELO: Final = frozenset({"rating", "error", "difference", "interval"})


@dataclass(slots=True)
class Checked:
    """How much was checked. torn: incomplete last lines, which were left out. manifest: whether there is one.
    decks: games that were dealt again from their deck seeds. scheduled: games that were compared with the
    schedule, None where there is none. numbers: of ratings.json, None where there is
    none."""

    files: int = 0
    lines: int = 0
    games: int = 0
    deals: int = 0
    forfeits: int = 0
    complete_sets: int = 0
    open_sets: int = 0
    manifest: bool = False
    decks: int = 0
    scheduled: int | None = None
    numbers: int | None = None
    torn: list[str] = field(default_factory=list)


def verify(folder: Path, checked: Checked, on_game: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Every difference found in the folder of a run, in words that name file, line and game where there are
    any. ``checked`` is filled in on the way; ``on_game`` is called after each game.

    Damage to a file is one difference; what comes after it there cannot be checked. Raises OSError.
    """
    places: dict[str, str] = {}
    schedule = None
    try:
        schedule = Scheduled.of(folder)
    except RecordError as error:
        yield str(error)
    yield from _check_results(folder, schedule, places, checked)
    decks = None
    try:
        decks = KnownDecks.of(folder)
    except RecordError as error:
        yield str(error)
    if decks is not None and schedule is not None:
        yield from (f"{folder}: {text}" for text in _check_reveals(decks, places, complete=schedule.complete))
    yield from _check_games(folder, decks, checked, on_game)
    yield from _check_files(folder, checked)
    yield from _check_ratings(folder, checked)


# --- results ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _DealSet:
    deck: str
    size: int
    games: int = 0


def _check_results(
    folder: Path, schedule: Scheduled | None, places: dict[str, str], checked: Checked
) -> Iterator[str]:
    """Each game has one result and is as scheduled; no deal set has more games than it should. ``places`` is
    filled with where the result of each game is."""
    sets: dict[str, _DealSet] = {}
    for path in result_files(folder):
        try:
            for line in read_lines(path):
                place = f"{path}, line {line['seq']}"
                try:
                    result = GameResult.from_line(line)
                except ValueError as error:
                    yield f"{place}: not the result of a game: {error}"
                    continue
                if result.game in places:
                    yield f"{place}: game {result.game}: has a result already in {places[result.game]}"
                places[result.game] = place
                if schedule is not None:
                    checked.scheduled = (checked.scheduled or 0) + 1
                    if (difference := schedule.differs(line)) is not None:
                        yield f"{place}: game {result.game}: {difference}"
                    else:
                        schedule.add(result)
                yield from _check_set(sets, result, place)
        except RecordError as error:
            yield str(error)
    if schedule is not None:
        yield from (f"{folder}: {problem}" for problem in schedule.lacks(places))
    checked.complete_sets = sum(one.games == one.size for one in sets.values())
    checked.open_sets = len(sets) - checked.complete_sets


def _check_set(sets: dict[str, _DealSet], result: GameResult, place: str) -> Iterator[str]:
    one = sets.setdefault(result.deal_set, _DealSet(result.deck, result.set_size))
    one.games += 1
    where = f"{place}: game {result.game}: deal set {result.deal_set}"
    if (one.deck, one.size) != (result.deck, result.set_size):
        yield f"{where}: deck {result.deck} and size {result.set_size}, but {one.deck} and {one.size} before"
    elif one.games > one.size:
        yield f"{where}: game {one.games} of {one.size}"


# --- games -----------------------------------------------------------------------------------------


def _check_reveals(decks: KnownDecks, played: Collection[str], *, complete: bool) -> Iterator[str]:
    """A run reveals what it has played, and when it is complete all of that and its keys."""
    strange = [game for game in decks.revealed if game not in played]
    if strange:
        yield f"{len(strange)} games are revealed that have no result, the first is {strange[0]}"
    if not complete:
        return
    secret = [game for game in played if game not in decks.revealed]
    if secret:
        yield f"it is complete, but {len(secret)} of its games are not revealed, the first is {secret[0]}"
    if not decks.told:
        yield "it is complete, but event.json does not tell its keys"


def _check_games(
    folder: Path, decks: KnownDecks | None, checked: Checked, on_game: Callable[[], None]
) -> Iterator[str]:
    try:
        for game in read_games(folder, checked.torn):
            place = f"{game.files[0]}, line {game.opening['seq']}"
            try:
                secrets = None if decks is None else decks.secrets(game.opening)
                check_game(game, secrets)
                checked.decks += secrets is not None
            except ReplayDiffers as error:
                yield f"{place}: {error}"
            except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
                # A line may be well chained and still lack what every writer puts in it.
                yield f"{place}: game {game.opening['game']}: cannot be read: {error!r}"
            checked.games += 1
            checked.deals += sum(line["kind"] == "deal" for line in game.lines)
            checked.forfeits += any(line["kind"] == "cut" for line in game.lines)
            on_game()
    except RecordError as error:
        yield f"{error} (games that come after this are not checked)"


def check_game(game: RecordedGame, secrets: tuple[bytes, bytes] | None) -> None:
    """Play a game again and compare all that was recorded of it; ``secrets``: deck seed and salt that it must
    have been dealt with, if they are known. Raises ReplayDiffers."""
    opening, result = game.opening, game.result or {}
    reason = None if secrets is None else deck_matches(game, *secrets)
    if secrets is None or reason is not None:
        replay_game(game)  # a difference that is not of the deck is told as what it is
    if reason is not None:
        raise ReplayDiffers(str(opening["game"]), f"was not dealt from its deck seed: {reason}")
    for name in ("commitment", "deck", "deal_set", "tournament"):
        if result.get(name) != opening.get(name):
            raise ReplayDiffers(
                str(opening["game"]),
                f"{name} is {opening.get(name)!r} when it starts, {result.get(name)!r} in its result",
            )
    if result.get("faults") != (faults := _faults(game)):
        raise ReplayDiffers(
            str(opening["game"]),
            f"{game.files[-1].name}, line {result.get('seq')} (game): faults is {result.get('faults')!r}, "
            f"its tricks give {faults!r}",
        )


def _faults(game: RecordedGame) -> list[list[object]]:
    """The faults in the lines of a game, as its result counts them."""
    bots = (game.result or {})["bots"]
    count = Counter((bots[seat], kind) for line in game.lines for seat, kind, *_ in line.get("faults", ()))
    return [[bot, kind, times] for (bot, kind), times in sorted(count.items())]


@dataclass(frozen=True, slots=True)
class KnownDecks:
    """What is known of the decks of an event. event: with its keys, None where none of them is known;
    revealed: seed and salt by game; told: whether event.json has the keys."""

    event: PublishedEvent | None
    revealed: Mapping[str, tuple[bytes, bytes]]
    told: bool

    @classmethod
    def of(cls, folder: Path) -> KnownDecks:
        """Those of a run: its keys from event.json (public, or told at the end) or event.key, its reveals.
        Raises RecordError for what is damaged, or is not what the event was committed to."""
        revealed: dict[str, tuple[bytes, bytes]] = {}
        for one in read_reveals(folder):
            opens = one.seed, one.salt
            if revealed.setdefault(one.game, opens) != opens:
                raise RecordError(f"{folder}: two different decks are revealed for game {one.game}")
        file, secret = folder / "event.json", folder / "event.key"
        if not file.exists():
            return cls(None, revealed, False)
        try:
            data = json.loads(file.read_bytes())
            event = PublishedEvent.from_json(data)
            told = event.keys_told
            if not told and secret.exists():
                keys = secret.read_text(encoding="ascii").split()
                # A run that was killed while it was extended has a key more than stages.
                stages = [stage | {"key": key} for stage, key in zip(data["stages"], keys, strict=False)]
                stages += data["stages"][len(stages) :]
                event = PublishedEvent.from_json(data | {"stages": stages})
        except ValueError as error:
            raise RecordError(f"{file} or {secret}: cannot be read: {error}") from error
        for commitment in event.false_keys():
            raise RecordError(f"{file}: commitment {commitment} is not that of the key")
        return cls(event, revealed, told)

    def secrets(self, opening: Mapping[str, Any]) -> tuple[bytes, bytes] | None:
        """Deck seed and salt of the game with this ``match`` line, None if they are not known. Raises
        ReplayDiffers if its deck is not the one of its deal set, or another one was revealed."""
        game = opening["game"]
        revealed = self.revealed.get(game)
        drawn = self.event.drawn(game, opening["rules_hash"]) if self.event is not None else None
        if drawn is None:
            return revealed
        if opening["deck"] != drawn.name:
            raise ReplayDiffers(
                game, f"its deck is {opening['deck']!r}, that of its deal set is {drawn.name!r}"
            )
        if revealed not in (None, (drawn.seed, drawn.salt)):
            raise ReplayDiffers(game, "another deck was revealed than it has")
        return drawn.seed, drawn.salt


# --- files and ratings -----------------------------------------------------------------------------


def _check_files(folder: Path, checked: Checked) -> Iterator[str]:
    """The last lines, by the manifest; the others have been by their chains."""
    try:
        for path in [*result_files(folder), *(path for paths in segments(folder).values() for path in paths)]:
            checked.files += 1
            checked.lines += summary_of(path).lines
        manifest = read_manifest(folder)
        if manifest is not None:
            checked.manifest = True
            yield from (f"{folder}: {problem}" for problem in check_manifest(folder, manifest))
    except RecordError as error:
        yield str(error)


def _check_ratings(folder: Path, checked: Checked) -> Iterator[str]:
    file = folder / RATINGS
    try:
        found = json.loads(file.read_bytes())
        wanted = json.loads(json.dumps(as_json(rate(read(folder)))))
    except FileNotFoundError:
        return
    except RecordError:
        return  # told already, by file and line
    except ValueError as error:
        yield f"{file}: {error}"
        return
    checked.numbers = 0
    for problem in _differences(found, wanted, (), checked):
        yield f"{file}: {problem}"


def _differences(found: object, wanted: object, path: tuple[str, ...], checked: Checked) -> Iterator[str]:
    """Where the stored ratings are not those that come from the results."""
    match found, wanted:
        case dict(), dict():
            for name in sorted({*found, *wanted}):
                if name in found and name in wanted:
                    yield from _differences(found[name], wanted[name], (*path, name), checked)
                else:
                    yield f"{'.'.join((*path, name))}: {'missing' if name in wanted else 'unknown'}"
        case list(), list() if len(found) != len(wanted):
            yield f"{'.'.join(path)}: {len(found)} entries, the results give {len(wanted)}"
        case list(), list():
            for index, pair in enumerate(zip(found, wanted, strict=True)):
                yield from _differences(*pair, (*path, str(index)), checked)
        case bool(), _:
            yield f"{'.'.join(path)}: {found!r}, the results give {wanted!r}"
        case int() | float(), int() | float():
            assert checked.numbers is not None
            checked.numbers += 1
            tolerance = ELO_TOLERANCE if _IN_ELO.intersection(path) else _TOLERANCE
            if not math.isclose(found, wanted, rel_tol=0, abs_tol=tolerance):
                yield f"{'.'.join(path)}: {found!r}, the results give {wanted!r}"
        case _ if found != wanted:
            yield f"{'.'.join(path)}: {found!r}, the results give {wanted!r}"


# --- the command -----------------------------------------------------------------------------------


@click.command("verify")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
def verify_command(folder: Path) -> None:
    """Check the record of the run in DIR: whether it is whole, and says what happened.

    Every game is played again by the rules and compared line by line; every file is checked by its chain of
    hashes and, where the run has ended, by the closing manifest; every game must have one result, with the
    seats and the deal set that the schedule gives it, and where the run has ended no game may be missing; the
    ratings are computed again and compared with ratings.json (to 0.01 Elo, other numbers to 0.000001).
    Where the decks are public or revealed, or the event key is in DIR, hands are dealt again from their
    deck seeds.

    Each difference is printed with file, line and game. Incomplete last lines, as a killed server leaves
    them, are no difference: they were never part of the record, and are named as warnings.

    \b
    Exit status:
      0  verified
      1  something differs or is damaged, or there are no results
      2  the command line was wrong
      3  it was stopped before its end
    """
    checked = Checked()
    console = Console(stderr=True)
    total = sum(summary_of(path).lines for path in result_files(folder))
    if not total:
        raise click.ClickException(no_results(folder))
    wrong = 0
    try:
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("games", total=total)
            for problem in verify(folder, checked, lambda: progress.advance(task)):
                wrong += 1
                progress.console.print(f"error: {problem}", markup=False, highlight=False, soft_wrap=True)
    except OSError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo(f"Stopped before its end: {folder} is not verified", err=True)
        raise SystemExit(_STOPPED) from None
    for warning in checked.torn:
        click.echo(f"warning: {warning}", err=True)
    for line in _summary(checked):
        click.echo(line)
    if wrong:
        raise click.ClickException(f"{wrong} differences in {folder}")
    click.echo(f"Verified: {folder}")


def _summary(checked: Checked) -> Iterator[str]:
    last = "last lines by the manifest" if checked.manifest else "no manifest: last lines are not confirmed"
    yield f"files      {checked.files} with {checked.lines} lines; {last}"
    played = f"{checked.deals} deals, {checked.forfeits} forfeits"
    yield f"games      {checked.games} played again by the rules, {played}"
    if checked.scheduled is None:
        yield "schedule   not checked: no tournament file here"
    else:
        yield f"schedule   {checked.scheduled} games compared with it"
    yield f"deal sets  {checked.complete_sets} complete, {checked.open_sets} open"
    if checked.decks:
        yield f"decks      {checked.decks} games dealt again from their deck seeds"
    else:
        yield "decks      not checked: none is revealed, and the event key is not here"
    if checked.numbers is None:
        yield "ratings    not checked: no ratings.json that can be compared"
    else:
        yield f"ratings    {checked.numbers} numbers compared with ratings.json"
