"""The games that wait for their bots, and which of them are worth another look when something changes.

A game that cannot start waits under the **block** that it met first: which bot has too few sessions for it.
Games under one block fail for the same reason, so where the first of them cannot start the others are not
looked at. A game that ends costs a look at a few blocks, however many games wait.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from tressette.record.game import GameSpec

_T = TypeVar("_T")


class Block(NamedTuple):
    """Why games wait: ``bot`` has not got ``seats`` sessions for them. Where processes must not meet a deck
    twice ``deck`` is that of the games, else empty. seen: of the sessions that have not met the deck there
    are too few whether they have room or not, so that only new ones can help."""

    bot: str
    seats: int
    deck: str = ""
    seen: bool = False


_NEW: Final = Block("", 0)
"""Where games are that nobody has tried to start."""


@dataclass(slots=True)
class WaitingGame:
    """A game that has not started. order: they start in this order as far as they can; absent: bots that
    will not come, so that it is not to wait for them."""

    spec: GameSpec
    order: int
    absent: set[str] = field(default_factory=set)
    block: Block = _NEW

    @property
    def wanted(self) -> Counter[str]:
        """How many sessions of which bots it takes."""
        return Counter(bot for bot in self.spec.bots if bot not in self.absent)


class Waiting:
    """The games that wait, in the order in which they were added; their ids are unique."""

    def __init__(self) -> None:
        self._games: dict[str, WaitingGame] = {}
        self._queues: dict[Block, list[WaitingGame]] = {}  # each in order, none empty
        self._with_room: set[str] = set()
        self._with_sessions: set[str] = set()
        self._added = 0

    def __len__(self) -> int:
        return len(self._games)

    def __iter__(self) -> Iterator[GameSpec]:
        return (game.spec for game in self._games.values())

    def add(self, spec: GameSpec) -> None:
        """One more game, tried in the next ``startable``."""
        self._added += 1
        game = self._games[spec.game] = WaitingGame(spec, self._added)
        self._enqueue(game, _NEW)

    def remove(self, game: str) -> bool:
        """Forget a game; False if none of that id waits."""
        found = self._games.pop(game, None)
        if found is None:
            return False
        self._dequeue(found)
        return True

    def without(self, game: str, bot: str) -> bool:
        """A game is not to wait for a bot; False if no such game waits."""
        found = self._games.get(game)
        if found is None:
            return False
        found.absent.add(bot)
        self._dequeue(found)
        self._enqueue(found, _NEW)
        return True

    def clear(self) -> None:
        """Forget all."""
        self._games.clear()
        self._queues.clear()

    def room(self, bot: str) -> None:
        """A session of a bot may have room that it had not."""
        self._with_room.add(bot)

    def sessions(self, bot: str) -> None:
        """A bot has other sessions than before."""
        self._with_sessions.add(bot)

    def barred(self) -> list[WaitingGame]:
        """The first game under each of the blocks that only new sessions can lift."""
        return [queue[0] for block, queue in self._queues.items() if block.seen]

    def startable(self, place: Callable[[WaitingGame], Block | _T]) -> Iterator[tuple[GameSpec, _T]]:
        """Take out the games that can start after what has changed since the last time, each with what
        ``place`` gives for it: that, or the block that the game meets. Start each before asking for the
        next."""
        heads = [(queue[0].order, block) for block, queue in self._queues.items() if self._woken(block)]
        heapq.heapify(heads)
        self._with_room.clear()
        self._with_sessions.clear()
        while heads:
            order, block = heapq.heappop(heads)
            queue = self._queues.get(block)
            if queue is None:
                continue  # emptied meanwhile
            game = queue[0]
            if game.order != order:  # another has come in before it
                heapq.heappush(heads, (game.order, block))
                continue
            placed = place(game)
            if placed == block:
                continue
            self._dequeue(game)
            if block in self._queues:
                heapq.heappush(heads, (queue[0].order, block))
            if isinstance(placed, Block):
                self._enqueue(game, placed)
            else:
                del self._games[game.spec.game]
                yield game.spec, placed

    def _woken(self, block: Block) -> bool:
        if block == _NEW or block.bot in self._with_sessions:
            return True
        return block.bot in self._with_room and not block.seen

    def _enqueue(self, game: WaitingGame, block: Block) -> None:
        game.block = block
        insort(self._queues.setdefault(block, []), game, key=lambda one: one.order)

    def _dequeue(self, game: WaitingGame) -> None:
        queue = self._queues[game.block]
        queue.remove(game)
        if not queue:
            del self._queues[game.block]
