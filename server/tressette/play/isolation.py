"""Keeps processes from meeting a deck twice (``isolation = "fresh"``).

A process that the runner has launched and that has sat at a table of a deck, whatever became of that game,
gets no other game of this deck. Where no others are left it is **retired** once it has no game under way:
it gets no game any more, and whoever launched it is asked to replace it. Remote bots cannot be isolated:
nobody knows what runs behind their sessions.

What is kept is bounded by the decks that are not retired times the processes that live.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class Isolation:
    """Which launched processes have met which decks, and which replacements are on their way."""

    def __init__(self) -> None:
        self._met: dict[str, set[str]] = {}  # processes by deck
        self._retired: set[str] = set()
        self._starting: dict[str, str] = {}  # bots by process
        self._owed: Counter[str] = Counter()  # replacements of retired processes, by bot

    def launched(self, bot: str, process: str) -> None:
        """A process has been started, in place of a retired one if the bot has any."""
        self._starting[process] = bot
        if self._owed[bot]:
            self._owed[bot] -= 1

    def joined(self, process: str) -> None:
        """A process has connected."""
        self._starting.pop(process, None)

    def ended(self, process: str) -> None:
        """A process is gone."""
        self._starting.pop(process, None)
        self._retired.discard(process)
        for processes in self._met.values():
            processes.discard(process)

    def sits_down(self, process: str, deck: str) -> None:
        """A process meets a deck."""
        self._met.setdefault(deck, set()).add(process)

    def barred(self, process: str, deck: str) -> bool:
        """Whether a process is kept from the games of a deck."""
        return process in self._retired or process in self._met.get(deck, ())

    def retire(self, bot: str, process: str) -> None:
        """Have a process get no game any more; a replacement is expected."""
        self._retired.add(process)
        self._owed[bot] += 1

    def retired(self, process: str) -> bool:
        """Whether a process gets no game any more."""
        return process in self._retired

    def coming(self, bot: str) -> int:
        """How many processes of a bot are expected to connect, none of which has met any deck."""
        return self._owed[bot] + sum(name == bot for name in self._starting.values())

    def forget(self, decks: Iterable[str]) -> None:
        """There will be no further games of these decks."""
        for deck in decks:
            self._met.pop(deck, None)
