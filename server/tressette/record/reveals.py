"""Decks revealed: what opens the commitments of games, once nobody can play from them any more.

``reveals-<writer>.jsonl`` in a record folder has one line for each game that is revealed: ``v`` (schema),
``commitment``, ``game``, ``deck``, ``rules_hash``, and in hex ``seed`` and ``salt``. The lines need no hash
chain: each proves itself by its commitment. A torn last line is passed over.

Decisions:
1. A game may be revealed twice: its batch was, and whoever ordered that was killed before it knew. The first
   line counts.
2. A folder may have several writers; reveals of all of them are found, those that came after opening too.
3. In memory a line costs an entry of the index, about 200 bytes (measured by the tests); the line itself is
   read from its file when somebody asks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from tressette.record.decks import Drawn
from tressette.record.game import GameSpec, commitment
from tressette.record.reader import DamagedRecord
from tressette.record.replay import RecordedGame, ReplayDiffers, replay_game
from tressette.record.whole import sync_folder
from tressette.rules.cards import cards_of, mask_of, parse_cards
from tressette.rules.deck import SEED_BYTES, Phase, seeded
from tressette.rules.errors import RulesError
from tressette.rules.layout import cards_in_play, lay_out
from tressette.rules.ruleset import FirstLead, Partners, RuleSet
from tressette.rules.suits import suit_order, with_suits

SCHEMA: Final = 1
_NAMES: Final = "reveals-*.jsonl"
_LONGEST: Final = 1 << 48
"""More bytes than any file has."""
_PAGE: Final = re.compile("[0-9]{1,12}")


class NotKept(Exception):
    """The arena keeps no record, and so no reveals."""


class UnknownPage(ValueError):
    """A page token that ``Reveals.page`` did not give."""


@dataclass(frozen=True, slots=True)
class Reveal:
    """What opens the commitment of one game. game, deck, rules_hash: as in its record; seed: the deck seed,
    32 bytes; salt: that of the commitment, 1 byte or more."""

    game: str
    deck: str
    rules_hash: str
    seed: bytes
    salt: bytes

    def __post_init__(self) -> None:
        """Raises ValueError for a seed or salt of an impossible length."""
        if len(self.seed) != SEED_BYTES or not self.salt:
            raise ValueError(f"a seed of {len(self.seed)} bytes and a salt of {len(self.salt)}")

    @classmethod
    def of(cls, spec: GameSpec) -> Reveal:
        """What opens the commitment of this game."""
        return cls(spec.game, spec.deck, spec.rules.hash(), spec.seed, spec.salt)

    @property
    def commitment(self) -> str:
        """What is opened (hex)."""
        return commitment(self.seed, self.salt)

    def to_json(self) -> dict[str, Any]:
        """Plain data; ``from_json`` is the inverse."""
        return {
            "v": SCHEMA,
            "commitment": self.commitment,
            "game": self.game,
            "deck": self.deck,
            "rules_hash": self.rules_hash,
            "seed": self.seed.hex(),
            "salt": self.salt.hex(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reveal:
        """Raises ValueError for data that are no reveal or do not open the commitment that they name."""
        try:
            made = cls(
                game=str(data["game"]),
                deck=str(data["deck"]),
                rules_hash=str(data["rules_hash"]),
                seed=bytes.fromhex(data["seed"]),
                salt=bytes.fromhex(data["salt"]),
            )
            if data["v"] != SCHEMA:
                raise ValueError(f"schema {data['v']!r}")
            named = data["commitment"]
        except (LookupError, TypeError) as error:
            raise ValueError(f"no reveal: {error!r}") from error
        if named != made.commitment:
            raise ValueError(f"seed and salt open {made.commitment}, not {named!r}")
        return made


class RevealFile:
    """The file of one writer in a record folder, for reveals alone. It is made by the first ``add``.

    ``on_failure`` hears of every write that the system refuses, before the error is raised. Raises OSError.
    """

    def __init__(
        self, folder: Path, writer: str, on_failure: Callable[[OSError], None] = lambda error: None
    ) -> None:
        self._on_failure = on_failure
        self._path = folder / f"reveals-{writer}.jsonl"
        self._file: BinaryIO | None = None

    def add(self, reveals: Iterable[Reveal]) -> None:
        """Write reveals and hand them to the operating system; whoever reads the folder knows them then."""
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("xb")
            for reveal in reveals:
                self._file.write(orjson.dumps(reveal.to_json()) + b"\n")
            self._file.flush()
        except OSError as error:
            self._on_failure(error)
            raise

    def sync(self) -> None:
        """Force what was added to the disk. Blocks."""
        if self._file is not None:
            os.fsync(self._file.fileno())
            sync_folder(self._path.parent)

    def close(self) -> None:
        """Sync and close the file; it is closed also when the system refuses that."""
        if self._file is None:
            return
        try:
            self.sync()
        finally:
            file, self._file = self._file, None
            file.close()


class Reveals(RevealFile):
    """The reveals of a record folder, to be asked for, and the file in it that this writer adds to. Raises
    DamagedRecord for a line that is no reveal, and OSError.

    Memory: about 130 bytes for each game that is revealed.
    """

    def __init__(
        self, folder: Path, writer: str, on_failure: Callable[[OSError], None] = lambda error: None
    ) -> None:
        super().__init__(folder, writer, on_failure)
        self._folder = folder
        self._index: dict[bytes, int] = {}  # commitment -> place: number of the file, then offset in it
        self._paths: list[Path] = []
        self._read: list[int] = []  # how far each of them is in the index, in bytes
        self._catch_up()

    def __len__(self) -> int:
        """How many games are known to be revealed."""
        return len(self._index)

    def find(self, commitments: Sequence[bytes]) -> list[Reveal]:
        """The reveals of these commitments (32 bytes each), in their order; others are left out."""
        if any(one not in self._index for one in commitments):
            self._catch_up()
        return [self._at(self._index[one]) for one in commitments if one in self._index]

    def page(self, token: str, size: int) -> tuple[list[Reveal], str]:
        """At most ``size`` reveals after those that came with ``token`` (empty: the first ones), and the
        token of the page after; empty if there is none yet. What is revealed meanwhile comes last. Raises
        UnknownPage."""
        self._catch_up()
        if token and not _PAGE.fullmatch(token):
            raise UnknownPage(f"{token[:64]!r} is no page")
        first = int(token or 0)
        if first > len(self._index):
            raise UnknownPage(f"{token!r} is no page any more")
        places = list(islice(self._index.values(), first, first + size))
        after = first + len(places)
        return [self._at(place) for place in places], str(after) if after < len(self._index) else ""

    def _at(self, place: int) -> Reveal:
        file, offset = divmod(place, _LONGEST)
        with self._paths[file].open("rb") as lines:
            lines.seek(offset)
            return _parse(self._paths[file], 0, lines.readline())

    def _catch_up(self) -> None:
        """Take what has been added to the folder since the last time into the index."""
        for path in sorted(self._folder.glob(_NAMES)):
            if path not in self._paths:
                self._paths.append(path)
                self._read.append(0)
            file = self._paths.index(path)
            for offset, reveal, end in _lines(path, self._read[file]):
                self._index.setdefault(bytes.fromhex(reveal.commitment), file * _LONGEST + offset)
                self._read[file] = end


def _lines(path: Path, start: int = 0) -> Iterator[tuple[int, Reveal, int]]:
    """(offset, reveal, offset of the next line) of the complete lines from ``start`` on."""
    if path.stat().st_size <= start:
        return
    with path.open("rb") as file:
        file.seek(start)
        for number, raw in enumerate(file, start=1):
            if not raw.endswith(b"\n"):
                return
            yield start, _parse(path, number, raw), start + len(raw)
            start += len(raw)


def _parse(path: Path, number: int, raw: bytes) -> Reveal:
    try:
        data = orjson.loads(raw)
        if not isinstance(data, dict):
            raise ValueError("not an object")
        return Reveal.from_json(data)
    except ValueError as error:
        raise DamagedRecord(path, number, str(error)) from error


def read_reveals(path: Path) -> Iterator[Reveal]:
    """The reveals in one file, or in all files of a record folder. Raises DamagedRecord and OSError."""
    for one in sorted(path.glob(_NAMES)) if path.is_dir() else [path]:
        for _, reveal, _ in _lines(one):
            yield reveal


def deck_matches(game: RecordedGame, seed: bytes, salt: bytes) -> str | None:
    """Why a recorded game was not dealt from this deck, None if it was: seed and salt open its commitment,
    its suit order is that of seed and game, and playing it again with the decks of the seed gives the hands,
    draws and all else as recorded."""
    opening = game.opening
    if commitment(seed, salt) != opening.get("commitment"):
        return "seed and salt do not open the commitment"
    order = suit_order(seed, opening["game"], game.rules)
    if opening.get("suits") != order:
        return f"the suits are {opening.get('suits')!r} instead of {order!r}"
    try:
        replay_game(game, with_suits(seeded(seed), order))
    except ReplayDiffers as differs:
        return differs.reason
    return None


def game_matches(opening: Mapping[str, Any], reveal: Reveal) -> str | None:
    """Why the game with this ``match`` line is not the one that a reveal names, None if it is."""
    for name in ("game", "deck", "rules_hash"):
        if opening.get(name) != getattr(reveal, name):
            return f"its {name} is {opening.get(name)!r}, it was revealed with {getattr(reveal, name)!r}"
    return None


def draw_matches(reveal: Reveal, drawn: Drawn) -> str | None:
    """Why a reveal is not what the key of its event gives for that game, None if it is."""
    if drawn == (reveal.deck, reveal.seed, reveal.salt):
        return None
    if drawn.seed != reveal.seed:
        return "its deck is not the one that the event key gives for its deal set"
    what = "salt" if drawn.name == reveal.deck else "name of its deck"
    return f"the {what} is not the one that the event key gives for it"


def hand_matches(line: Mapping[str, Any], reveal: Reveal) -> str | None:
    """Why a hand that a bot was dealt is not from this deck, None if it is.

    ``line`` is what the bot wrote down: ``rules`` (all options by name), its ``seat``, ``phase`` (``main`` or
    ``tie_break``), ``deal`` and ``dealt`` (number and attempt of the deal), ``dealer``, ``active`` (the seats
    that play) and its ``hand`` as dealt, cards separated by blanks. Raises ValueError for any other line.
    """
    try:
        rules = RuleSet.from_options(line["rules"])
        phase = {"main": Phase.MAIN, "tie_break": Phase.TIE_BREAK}[line["phase"]]
        active = [int(seat) for seat in line["active"]]
        cards = cards_in_play(rules, len(active))
        order = suit_order(reveal.seed, reveal.game, rules)
        deck = with_suits(seeded(reveal.seed), order)(phase, line["deal"], line["dealt"], cards)
        giver = 0 if _before_the_dealer(rules, phase, line["deal"]) else line["dealer"]
        dealt = lay_out(deck, rules, active, giver).hands[line["seat"]]
        held = mask_of(parse_cards(line["hand"]))
    except (LookupError, TypeError, AttributeError, OverflowError, RulesError) as error:
        raise ValueError(f"no dealt hand: {error!r}") from error
    if rules.hash() != reveal.rules_hash:
        return f"the rules are {rules.hash()}, the deck was revealed for {reveal.rules_hash}"
    if held != dealt:
        return f"the hand is {line['hand']!r}, the deck deals {' '.join(map(str, cards_of(dealt)))!r}"
    return None


def _before_the_dealer(rules: RuleSet, phase: Phase, deal: int) -> bool:
    """Whether seat 0 hands the cards out and the dealer is named by them (``rules.match``, decision 6)."""
    return (
        (phase, deal) == (Phase.MAIN, 1)
        and rules.first_lead is FirstLead.FOUR_OF_DENARI_FIRST_DEAL
        and rules.partners is Partners.FIXED
    )
