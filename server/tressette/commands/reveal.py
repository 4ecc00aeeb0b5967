"""``tressette reveal``: fetch the decks that an arena has revealed, and check games against them.

Neither needs access to the arena's machine: the one is a unary call, the other reads files of one's own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

import click
from tressette_bot.errors import ClientError
from tressette_bot.reveals import fetch_reveals

from tressette.record.decks import PublishedEvent, game_parts
from tressette.record.game import commitment
from tressette.record.reader import RecordError
from tressette.record.replay import RecordedGame, read_games
from tressette.record.reveals import (
    Reveal,
    deck_matches,
    draw_matches,
    game_matches,
    hand_matches,
    read_reveals,
)

_HELP: Final = {"help_option_names": ["-h", "--help"]}


def _bytes(text: str, size: int) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not hexadecimal") from None
    if not found or (size and len(found) != size):
        raise click.BadParameter(f"{len(found)} bytes instead of {size or 'some'}")
    return found


def _digest(_ctx: click.Context, _param: click.Parameter, text: str | None) -> bytes | None:
    return None if text is None else _bytes(text, 32)


def _digests(_ctx: click.Context, _param: click.Parameter, texts: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(_bytes(text, 32) for text in texts)


def _salt(_ctx: click.Context, _param: click.Parameter, text: str | None) -> bytes | None:
    return None if text is None else _bytes(text, 0)


_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(context_settings=_HELP)
def reveal() -> None:
    """Fetch revealed decks, and check that games were dealt from them.

    Before the first card of a match an arena tells its bots a commitment; when nobody plays from the deck any
    more it reveals the seed and salt that open it. A tournament draws its decks from a key: it publishes a
    commitment to that before bots connect, and the key itself when it is over.
    """


@reveal.command(
    context_settings=_HELP,
    epilog="The exit status is 0 when the arena answered, 2 for a wrong command line, 1 for anything else.",
)
@click.option(
    "--address",
    envvar="TRESSETTE_ADDRESS",
    required=True,
    metavar="HOST:PORT",
    help="The arena. Plain text on loopback addresses, TLS elsewhere.  [env: TRESSETTE_ADDRESS]",
)
@click.option(
    "--token",
    envvar="TRESSETTE_TOKEN",
    default="",
    metavar="TEXT",
    help="Bot token; not needed. Better set in the environment.  [env: TRESSETTE_TOKEN]",
)
@click.option(
    "--commitment",
    "commitments",
    callback=_digests,
    multiple=True,
    metavar="HEX",
    help="Only what opens this one; may be repeated.  [default: everything revealed so far]",
)
@click.option("--tls-root", type=_FILE, help="File with the root certificates (PEM) to trust.")
@click.option("--tls-cert", type=_FILE, help="One's own certificate (PEM). Needs --tls-key.")
@click.option("--tls-key", type=_FILE, help="Its private key (PEM), not encrypted. Needs --tls-cert.")
def fetch(
    address: str,
    token: str,
    commitments: tuple[bytes, ...],
    tls_root: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Print what an arena has revealed, one line of JSON for each game: input for `verify --reveals`."""
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key are needed together")
    tls = {"tls_root": tls_root, "tls_cert": tls_cert, "tls_key": tls_key}
    try:
        for one in fetch_reveals(address, token, commitments, **tls):
            made = Reveal(one.game, one.deck, one.rules_hash, one.seed, one.salt)
            # The arena's word stays beside it, for verify to judge.
            click.echo(json.dumps(made.to_json() | {"commitment": one.commitment.hex()}))
    except (ClientError, ValueError) as error:
        raise click.ClickException(str(error)) from error


@reveal.command(
    context_settings=_HELP,
    epilog="The exit status is 0 if something was checked and all of it is right, even if more is still to "
    "be revealed; 1 if anything is wrong or damaged, or nothing could be checked; 2 for a wrong command "
    "line.",
)
@click.argument(
    "folder",
    metavar="[DIR]",
    required=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option(
    "--reveals",
    "source",
    type=click.Path(exists=True, path_type=Path),
    help="What was revealed: the output of `fetch`, or a record folder.  [default: DIR]",
)
@click.option(
    "--event",
    "event_file",
    type=_FILE,
    help="What is published of a tournament, the event.json of its folder; has its keys once it is over.  "
    "[default: that of DIR, if any]",
)
@click.option(
    "--hands",
    type=click.File(encoding="utf-8"),
    help="What a bot wrote down of its deals, `tressette_bot.dealt_line` one a line.",
)
@click.option(
    "--commitment",
    "commitments",
    callback=_digests,
    multiple=True,
    metavar="HEX",
    help="One that a bot was told, or that was published of a tournament; must be opened. May be repeated.",
)
@click.option("--seed", callback=_digest, metavar="HEX", help="A deck seed that was revealed. Needs --salt.")
@click.option("--salt", callback=_salt, metavar="HEX", help="The salt revealed with it. Needs --seed.")
def verify(
    folder: Path | None,
    source: Path | None,
    event_file: Path | None,
    hands: TextIO | None,
    commitments: tuple[bytes, ...],
    seed: bytes | None,
    salt: bytes | None,
) -> None:
    """Check commitments, recorded games and dealt hands against revealed decks, and these against the keys of
    their tournament.

    Of each game recorded in DIR: that its commitment is opened, that its suits are those of seed and game,
    that every hand and every card drawn is what the deck deals. Of each commitment: that something opens it.
    Of each hand: that the deck deals it, by the rules that it was drawn for.

    Of a tournament (--event): that every key opens the commitment which was published to it, and that every
    deck revealed is the one that the key gives for its deal set, with the name and salt that it gives. So
    nobody has chosen a deck, or a game's place in the schedule, to anyone's liking after the commitment was
    published. Whoever has noted that commitment then gives it as --commitment: an event.json can be written
    anew, with another key. Deal sets are numbered from 0; numbers of which nothing is revealed are counted,
    since leaving out decks would be a choice too.
    """
    if (seed is None) != (salt is None):
        raise click.UsageError("--seed and --salt are needed together")
    if seed is None and source is None and folder is None and event_file is None:
        raise click.UsageError("nothing was revealed: give --reveals, --event, --seed and --salt, or DIR")
    try:
        event = _event(folder, event_file)
        found = _Findings(_revealed(seed, salt, source or folder), event)
        found.commitments(one.hex() for one in commitments)
        if event is not None:
            found.draw(event)
        if folder is not None:
            found.games(folder)
        if hands is not None:
            found.hands(hands)
    except (RecordError, ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
    found.report()


_Openings = dict[str, tuple[bytes, bytes, Reveal | None]]
"""Seed and salt by the commitment that they open (hex), and the whole reveal where there was one."""


def _revealed(seed: bytes | None, salt: bytes | None, source: Path | None) -> _Openings:
    openings: _Openings = {}
    if source is not None:
        for one in read_reveals(source):
            openings[one.commitment] = one.seed, one.salt, one
    if seed is not None and salt is not None:
        openings.setdefault(commitment(seed, salt), (seed, salt, None))
    return openings


def _event(folder: Path | None, file: Path | None) -> PublishedEvent | None:
    """What is published of the tournament. Raises ValueError naming the file, and OSError."""
    if file is None and (folder is None or not (folder / "event.json").is_file()):
        return None
    file = file or Path(folder or "", "event.json")
    try:
        return PublishedEvent.from_json(json.loads(file.read_bytes()))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: {error}") from error


class _Findings:
    """What was checked, and what came of it."""

    def __init__(self, openings: _Openings, event: PublishedEvent | None) -> None:
        self._openings = openings
        self._opened = set(openings)
        if event is not None:
            told = {stage.commitment for stage in event.stages if stage.key is not None}
            self._opened |= told.difference(event.false_keys())
        self._numbers: set[int] = set()
        self._kinds: set[str] = set()
        self._right: Counter[str] = Counter()
        self._closed: Counter[str] = Counter()
        self._wrong = 0

    def commitments(self, asked: Iterable[str]) -> None:
        """Whether these are opened; one that is not is wrong, since it was asked for by name."""
        for one in asked:
            self._judge("commitments", one, None if one in self._opened else "nothing opens it")

    def draw(self, event: PublishedEvent) -> None:
        """The keys of an event, and every deck that is revealed of it."""
        self._kinds |= {"event keys", "event decks"}
        false = event.false_keys()
        for stage in event.stages:
            if stage.key is None:
                self._closed["event keys"] += 1
            else:
                wrong = "the key that is told does not open it" if stage.commitment in false else None
                self._judge("event keys", stage.commitment, wrong)
        for _, _, reveal in self._openings.values():
            if reveal is not None:
                self._drawn(event, reveal)

    def _drawn(self, event: PublishedEvent, reveal: Reveal) -> None:
        try:
            self._numbers.add(game_parts(reveal.game)[3])
            drawn = event.drawn(reveal.game, reveal.rules_hash)
        except ValueError as error:
            self._judge("event decks", reveal.game, str(error))
            return
        if drawn is None:
            self._closed["event decks"] += 1
        else:
            self._judge("event decks", reveal.game, draw_matches(reveal, drawn))

    def games(self, folder: Path) -> None:
        """Every committed game of a record."""
        self._kinds.add("games")
        for game in read_games(folder):
            opening = self._openings.get(game.opening["commitment"])
            if opening is None:
                self._closed["games"] += 1
            else:
                self._judge("games", game.opening["game"], _why_not(game, *opening))

    def hands(self, lines: Iterable[str]) -> None:
        """Every hand that a bot wrote down."""
        self._kinds.add("hands")
        for number, line in _objects(lines):
            opening = self._openings.get(str(line.get("commitment")))
            if opening is None or opening[2] is None:  # without the game its suits are unknown
                self._closed["hands"] += 1
            else:
                self._judge("hands", f"hand in line {number}", hand_matches(line, opening[2]))

    def _judge(self, kind: str, what: str, wrong: str | None) -> None:
        self._kinds.add(kind)
        if wrong is None:
            self._right[kind] += 1
        else:
            self._wrong += 1
            click.echo(f"{what}: {wrong}")

    def report(self) -> None:
        """Print the counts; ends the program with 1 if anything is wrong."""
        click.echo(f"revealed: {len(self._openings)}")
        for kind in sorted(self._kinds):
            click.echo(f"{kind}: {self._right[kind]} right, {self._closed[kind]} not revealed")
        if self._numbers:
            last = max(self._numbers)
            missing = last + 1 - len(self._numbers)
            left = f"nothing is revealed of {missing} of them" if missing else "all revealed in part at least"
            click.echo(f"deal sets: 0 to {last}, {left}")
        if self._wrong:
            raise click.ClickException(f"{self._wrong} wrong")
        if not (self._right if self._kinds else self._openings):
            raise click.ClickException("nothing that was to be checked is revealed")


def _why_not(game: RecordedGame, seed: bytes, salt: bytes, reveal: Reveal | None) -> str | None:
    """Why a game was not dealt as it is revealed, None if it was."""
    return deck_matches(game, seed, salt) or (None if reveal is None else game_matches(game.opening, reveal))


def _objects(lines: Iterable[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, text in enumerate(lines, start=1):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number}: {error}") from error
        if not isinstance(line, dict):
            raise ValueError(f"line {number}: not an object")
        yield number, line
