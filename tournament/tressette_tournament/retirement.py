"""Reveals decks when nobody can play from them any more.

Decks retire in batches of ``reveal_sets`` set numbers: once every game of them has its result, what opens the
commitment of each game is written to ``reveals-*.jsonl``, from where the server answers whoever asks. How far
that has gone is kept in the folder; a batch whose end was cut off is written again, which harms nothing.

Memory: 11 bytes for each game that is not revealed, about 100 for each set number.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from tressette.record.decks import deck_name, deck_number, deck_seed, game_parts, game_salt
from tressette.record.reveals import Reveal, RevealFile
from tressette.record.writer import NO_ROOM, free_writer
from tressette.rules.ruleset import RuleSet

from tressette_tournament.folder import Event, say_revealed

_PACKED: Final = struct.Struct(">HIIB")
"""Preset, round, line-up and game; the set number is that under which it is kept."""
_AT_ONCE: Final = 500
"""Games that are revealed before others get their turn."""
_RETRY_S: Final = 5.0


class Retirement:
    """Reveals the decks of one event. rules: by name of preset. settled: gives the number below which every
    deal set has all its results. Raises OSError."""

    def __init__(self, event: Event, rules: Mapping[str, RuleSet], settled: Callable[[], int]) -> None:
        self._event = event
        self._presets = list(rules)
        self._hashes = [one.hash() for one in rules.values()]
        self._settled = settled
        self._revealed = event.revealed_sets
        self._batch = event.tournament.reveal_sets
        self._played: dict[int, bytearray] = {}
        self._reveals = RevealFile(event.folder, free_writer(event.folder))
        self._due = asyncio.Event()

    def played(self, game: str) -> None:
        """A game has its result, in this session or in one before."""
        preset, round_, line_up, number, index = game_parts(game)
        if number >= self._revealed:
            packed = _PACKED.pack(preset, round_, line_up, index)
            self._played.setdefault(number, bytearray()).extend(packed)

    def look(self) -> None:
        """Whether a batch has become due; costs next to nothing."""
        if self._settled() >= self._revealed + self._batch:
            self._due.set()

    async def work(self, retired: Callable[[Collection[str]], None]) -> None:
        """Reveal batches as they become due; never returns. retired: is told the names of their decks. Where
        there is no room for them it is tried again: a full disk is no reason to end a run."""
        self.look()
        while True:
            await self._due.wait()
            self._due.clear()
            end = self._settled()
            try:
                await self._reveal(end - end % self._batch, retired)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                self._due.set()
                await asyncio.sleep(_RETRY_S)

    async def reveal_all(self) -> None:
        """Reveal every game that was played: nothing is left to play."""
        await self._reveal(max(self._played, default=-1) + 1, lambda decks: None)

    def close(self) -> None:
        """Close the file."""
        self._reveals.close()

    async def _reveal(self, end: int, retired: Callable[[Collection[str]], None]) -> None:
        """Reveal the games of all set numbers below ``end``."""
        for number in sorted(number for number in self._played if number < end):
            packed = self._played[number]
            step = _AT_ONCE * _PACKED.size
            for start in range(0, len(packed), step):
                reveals = list(self._opened(number, packed[start : start + step]))
                self._reveals.add(reveals)
                retired({reveal.deck for reveal in reveals})
                await asyncio.sleep(0)
            # Not before: the end of the games may cut this off, and the rest is still to be revealed then.
            del self._played[number]
        if end > self._revealed:
            self._reveals.sync()
            say_revealed(self._event, end)
            self._revealed = end

    def _opened(self, number: int, packed: bytearray) -> Iterator[Reveal]:
        key = self._event.key_of(number)
        for preset, round_, line_up, index in _PACKED.iter_unpack(packed):
            later = f"-r{round_}" if round_ else ""
            game = f"p{preset}{later}-l{line_up}-s{number}-g{index}"
            deck = deck_number(number, line_up, common_deals=self._event.tournament.common_deals)
            rules_hash = self._hashes[preset]
            yield Reveal(
                game,
                deck_name(key, rules_hash, deck),
                rules_hash,
                deck_seed(key, rules_hash, deck),
                game_salt(key, game),
            )
