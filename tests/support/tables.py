"""Games without a network: an arena under a clock that stands still, and players that take and answer by
hand what a transport would carry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tressette.play.arena import Arena
from tressette.play.config import PlayConfig
from tressette.play.session import Refused, Seat, Session, Status
from tressette.record.game import GameSpec
from tressette.record.writer import Recorder
from tressette.rules.actions import Action
from tressette.rules.events import Event, FaultCommitted
from tressette.rules.presets import resolve
from tressette.rules.ruleset import RuleSet
from tressette.rules.substitute import substitute

from support.matches import plain_answer

KEY = bytes(range(32))
ONE_DEAL = resolve("traversone-003-21-duplicate")

MONTE = resolve("ciapano-five", monte="on_request", end="fixed_deals", deals=1, tie_break="none")
TWO_POOR_HANDS = (891).to_bytes(32, "big")
"""The deck with this seed gives two seats of MONTE a hand worth under one point."""


def game_spec(
    game: str = "g1",
    rules: RuleSet = ONE_DEAL,
    bots: Sequence[str] = (),
    seed: bytes = bytes(32),
    attempt: int = 1,
) -> GameSpec:
    """A game of bots ``a``, ``b``, ... unless others are named."""
    return GameSpec(
        game=game,
        attempt=attempt,
        tournament="test",
        preset="preset",
        rules=rules,
        bots=tuple(bots) or tuple("abcde"[: rules.players]),
        deal_set=f"set-of-{game}",
        set_size=1,
        deck=f"deck-of-{game}",
        seed=seed,
        salt=bytes(16),
    )


@dataclass
class FakeClock:
    """Seconds that pass only when told to."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_ms(self, milliseconds: float) -> None:
        """Let time pass."""
        self.now += milliseconds / 1000


@dataclass
class Memory:
    """A recorder that keeps (kind, fields) of every line."""

    lines: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def trick_line(self, kind: str, **fields: Any) -> None:
        """Kept."""
        self.lines.append((kind, fields))

    def result_line(self, **fields: Any) -> None:
        """Kept."""
        self.lines.append(("game", fields))

    def flush(self) -> None:
        """Nothing to do."""

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The lines of one kind."""
        return [fields for name, fields in self.lines if name == kind]


@dataclass
class Delivery:
    """What one take brought: seats with an open turn, the events by handle, receipts and refusals."""

    turns: list[Seat]
    events: dict[str, list[Event]]
    receipts: list[tuple[str, int, Status]]
    refused: list[Refused]


class Player:
    """One session. ``woken`` counts how often the arena asked for its news to be sent."""

    def __init__(self, table: Table, name: str, max_matches: int = 1, process: str = "") -> None:
        self.table = table
        self.woken = 0
        self.session = Session(name, f"{name} 1.0", max_matches, self._wake, process=process)
        table.arena.join(self.session)

    def _wake(self) -> None:
        self.woken += 1

    def take(self) -> Delivery:
        """What a transport would send now."""
        news, receipts, refused = self.session.take(self.table.clock())
        events = {seat.handle: seat.game.log[seat.sent :] for seat in news}
        turns = [seat for seat in news if seat.open]
        for seat in news:
            self.session.delivered(seat)
        return Delivery(turns, events, list(receipts), list(refused))

    def answer(self, seat: Seat, actions: Sequence[Action] | None = None) -> None:
        """Answer the last turn of a seat, by the first legal card unless told otherwise."""
        if actions is None:
            actions = plain_answer(seat.game.match, seat.number)
        self.session.answer(seat.handle, seat.turn, actions)

    def seat(self) -> Seat:
        """The seat in the only game of this session."""
        (seat,) = self.session.seats.values()
        return seat

    def leave(self) -> None:
        """The connection is gone."""
        self.table.arena.leave(self.session)


class Table:
    """An arena with a clock, a record and players. ``results``: the games that have ended; ``stale``,
    ``proven``: ids of processes that have to be replaced, and that have played a game to its end."""

    def __init__(
        self,
        config: PlayConfig | None = None,
        recorder: Recorder | None = None,
        key: bytes = KEY,
        fresh: bool = False,
    ) -> None:
        self.clock = FakeClock()
        self.record = Memory()
        self.results: list[dict[str, Any]] = []
        self.launched: set[str] = set()
        self.stale: list[str] = []
        self.proven: list[str] = []
        self.arena = Arena(
            key,
            config,
            recorder or self.record,
            self.clock,
            on_finished=lambda spec, result: self.results.append(result),
            on_proven=lambda session: self.proven.append(session.process),
            on_stale=lambda bot, process: self.stale.append(process),
            fresh=fresh,
        )
        self.players: list[Player] = []

    def player(self, name: str, max_matches: int = 1, process: str = "") -> Player:
        """One more bot connects, from a process that is launched for it where there is an id."""
        if process and process not in self.launched:
            self.launched.add(process)
            self.arena.launched(name, process)
        player = Player(self, name, max_matches, process)
        self.players.append(player)
        return player

    def sit(self, spec: GameSpec) -> list[Player]:
        """Start a game between bots of its names that connect for it."""
        players = [self.player(name) for name in spec.bots]
        self.arena.start(spec, [player.session for player in players])
        return players

    def faults(self) -> list[tuple[int, str, str, str]]:
        """(seat, kind, effect, reason) of every fault in the record."""
        return [
            (seat, kind, effect, reason)
            for name, fields in self.record.lines
            if name != "game"
            for seat, kind, effect, reason in fields.get("faults", ())
        ]

    def finish(self, choose: Callable[[Seat], Sequence[Action] | None] = lambda seat: None) -> None:
        """Play on until nobody is asked anything any more."""
        while sum(self.round(player, choose) for player in self.players):
            pass

    @staticmethod
    def round(player: Player, choose: Callable[[Seat], Sequence[Action] | None]) -> int:
        """Have a player answer all it is asked; returns how many turns that were."""
        turns = player.take().turns
        for seat in turns:
            player.answer(seat, choose(seat))
        return len(turns)


async def settle() -> None:
    """Let what was put off to the next pass of the loop happen."""
    for _ in range(3):
        await asyncio.sleep(0)


def play_weakest(seat: Seat) -> Sequence[Action]:
    """The answer that the arena itself would give."""
    return substitute(seat.game.match.legal(seat.number))


def committed_faults(events: Sequence[Event]) -> Iterator[FaultCommitted]:
    """The faults among the events."""
    return (event for event in events if isinstance(event, FaultCommitted))
