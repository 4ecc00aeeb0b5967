"""``tressette replay``: one recorded game, trick by trick, checked by the rules on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from tressette.record.reader import RecordError
from tressette.record.replay import RecordedGame, read_games, replay_game
from tressette.record.segments import compressed
from tressette.rules.accuse import Declaration
from tressette.rules.cards import BITS, cards_of
from tressette.rules.events import (
    CalledOut,
    CardDiscarded,
    CardDrawn,
    CardPlayed,
    DealScored,
    DealStarted,
    DealVoided,
    DeclarationMade,
    Event,
    MatchEnded,
    PartnersDrawn,
    SideEliminated,
    TrickWon,
)
from tressette.rules.explain import explain_deal, points_text, side_name
from tressette.rules.ruleset import RuleSet


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("game", required=False)
@click.option("--explain", is_flag=True, help="Say in words how each deal was counted.")
def replay(folder: Path, game: str | None, explain: bool) -> None:
    """Show the recorded GAME of the run in DIR, played again by the rules; without GAME list the games.

    It says where the game stands in the record (a segment that is compressed shows with zstdcat), and in
    which logs the bots' output of that time is.

    Exit status 1 if there is no such game, if the record is damaged, or if the rules do not produce it.
    """
    try:
        games = read_games(folder)
        if game is None:
            empty = True
            for one in games:
                empty = False
                click.echo(f"{one.opening['game']}  {one.opening['preset']}  {' '.join(one.opening['bots'])}")
            if empty:
                raise click.ClickException(f"{folder} holds no finished game")
            return
        for one in games:
            if one.opening["game"] == game:
                _show(folder, one, explain)
                return
    except RecordError as error:
        raise click.ClickException(str(error)) from error
    raise click.ClickException(f"{folder} has no game {game!r}; `tressette replay {folder}` lists them")


def _show(folder: Path, game: RecordedGame, explain: bool) -> None:
    opening = game.opening
    click.echo(f"Game {opening['game']}, attempt {opening['attempt']}: {opening['preset']}")
    for line in (*_places(game), *_logs(folder, opening.get("processes", ()))):
        click.echo(line)
    events = replay_game(game)
    for line in _Teller(game.rules, opening["bots"], explain).tell(events):
        click.echo(line)


def _places(game: RecordedGame) -> Iterator[str]:
    """Where the game is in the record, file by file."""
    places: dict[Path, list[int]] = {}
    for path, line in zip(game.files, [game.opening, *game.lines, game.result or {}], strict=True):
        places.setdefault(path, []).append(line["seq"])
    for path, numbers in places.items():
        yield f"Record: {_as_stored(path)}, " + (
            f"line {numbers[0]}" if len(numbers) == 1 else f"lines {numbers[0]} to {numbers[-1]}"
        )


def _as_stored(path: Path) -> Path:
    return path if path.exists() else compressed(path)


def _logs(folder: Path, processes: Sequence[str]) -> Iterator[str]:
    """Where the output of the launched processes is that played."""
    for process in sorted({process for process in processes if process}):
        log = folder / "logs" / "bots" / f"{process}.log"
        yield f"Log of {process}: {log}" + ("" if log.exists() else " (not kept)")


class _Teller:
    """Puts the events of a game into words."""

    def __init__(self, rules: RuleSet, bots: Sequence[str], explain: bool) -> None:
        self._rules = rules
        self._bots = list(bots)
        self._explain = explain
        self._trick: list[str] = []
        self._played = 0
        self._taken: list[int] = []
        self._declared: list[list[Declaration]] = []

    def tell(self, events: Sequence[Event]) -> Iterator[str]:
        if not isinstance(events[0], PartnersDrawn):
            yield self._seats()
        for event in events:
            yield from self._lines(event)

    def _seats(self) -> str:
        return "Seats: " + ", ".join(f"{seat} {bot}" for seat, bot in enumerate(self._bots))

    def _lines(self, event: Event) -> Iterator[str]:
        match event:
            case PartnersDrawn(seats=seats):
                self._bots = [self._bots[seats.index(seat)] for seat in range(len(seats))]
                yield "Partners drawn."
                yield self._seats()
            case DealStarted():
                yield from self._deal(event)
            case DealVoided(seat=seat):
                yield f"  Seat {seat} goes monte: dealt again."
            case CardDiscarded(seat=seat, card=card):
                yield f"  Seat {seat} sets {card} aside."
            case DeclarationMade(seat=seat, declaration=one):
                self._declared[self._rules.side_of(seat)].append(one)
                cards = " ".join(map(str, cards_of(one.cards)))
                yield f"  Seat {seat} declares {one.kind} of {one.of}: {cards}, {one.points} points."
            case CalledOut(seat=seat, right=right):
                yield f"  Seat {seat} calls out and is {'right' if right else 'wrong'}."
            case CardPlayed(seat=seat, card=card, signal=signal):
                self._trick.append(f"{seat}:{card}{f' ({signal})' if signal else ''}")
                self._played |= BITS[card]
            case TrickWon(seat=seat, thirds=thirds):
                self._taken[self._rules.side_of(seat)] |= self._played
                yield f"  {' '.join(self._trick)}   won by {seat}, {points_text(2 * thirds)}"
                self._trick, self._played = [], 0
            case CardDrawn(seat=seat, card=card):
                yield f"  Seat {seat} draws {card}."
            case DealScored():
                yield from self._scored(event)
            case SideEliminated(side=side):
                yield f"{side_name(self._rules, side)} is out."
            case MatchEnded():
                yield f"Match over ({event.reason}). Places by side: {' '.join(map(str, event.ranks))}"

    def _deal(self, event: DealStarted) -> Iterator[str]:
        self._taken = [0] * self._rules.side_count
        self._declared = [[] for _ in range(self._rules.side_count)]
        name = event.phase.name.lower().replace("_", "-")
        yield f"Deal {event.number} ({name}), dealer {event.dealer}, seat {event.leader} leads"
        for seat, hand in enumerate(event.hands):
            if hand:
                yield f"  Seat {seat} holds {' '.join(map(str, cards_of(hand)))}"

    def _scored(self, event: DealScored) -> Iterator[str]:
        if self._trick:
            yield f"  {' '.join(self._trick)}   not finished"
        self._trick, self._played = [], 0
        if event.set_aside is not None and event.last_trick is not None:
            self._taken[event.last_trick] |= BITS[event.set_aside]
        if self._explain:
            yield from explain_deal(self._rules, event, self._taken, self._declared)
        else:
            points = "; ".join(
                f"{side_name(self._rules, side)}: {points_text(score.points + score.declared)}"
                for side, score in enumerate(event.sides)
                if score is not None
            )
            yield f"Deal {event.number}. {points}."
