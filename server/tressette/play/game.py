"""One game in progress: asks its seats, takes their answers, and deals with what bots do wrong.

An answer that the rules refuse may be corrected ``illegal_retries`` times within its turn, the clock
running; after that, and for a seat that is late or gone, the arena plays the documented substitute
(``tressette.rules.substitute``). Every such case is an event in the log and so in the record.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

from tressette.play.config import PlayConfig
from tressette.play.session import Seat, Session, Status, UnknownTurn
from tressette.record.game import GameSpec, seat_secret
from tressette.record.scribe import Scribe
from tressette.record.writer import Recorder
from tressette.rules.actions import Action
from tressette.rules.deck import seeded
from tressette.rules.errors import ActionError, MalformedAction
from tressette.rules.events import DealVoided, Event, FaultCommitted, FaultEffect, FaultKind
from tressette.rules.match import Match
from tressette.rules.substitute import substitute


class Game:
    """A game from its first deal to its result. ``log`` holds its events, number 1 first; ``wire`` is
    room for whoever sends them to keep what it made of each, so that four seats share the work."""

    def __init__(
        self,
        spec: GameSpec,
        key: bytes,
        config: PlayConfig,
        sessions: Sequence[Session],
        recorder: Recorder,
        clock: Callable[[], float],
        watch: Callable[[Seat], None],
        finished: Callable[[Game], None],
    ) -> None:
        self.spec = spec
        self.config = config
        self.match = Match(spec.rules, seeded(spec.seed))
        self.log: list[Event] = []
        self.wire: list[Any] = []
        self.seats: list[Seat] = []
        self.started_at = clock()
        self._clock = clock
        self._watch = watch
        self._finished = finished
        self._bot_seeds = [seat_secret(key, "bot_seed", spec, player) for player in range(spec.rules.players)]
        for player, session in enumerate(sessions):
            secret = seat_secret(key, f"handle-{spec.attempt}", spec, player)
            handle = base64.urlsafe_b64encode(secret[:16]).rstrip(b"=").decode()
            seat = Seat(handle, self, player, session)
            session.seats[handle] = seat
            session.playing += 1
            self.seats.append(seat)
        self.scribe = Scribe(recorder, spec, [session.version for session in sessions])

    def bot_seed(self, seat: Seat) -> bytes:
        """32 bytes for the chance that the bot on this seat draws."""
        return self._bot_seeds[seat.player]

    def start(self) -> None:
        """Deal, and ask the first seat."""
        events = self.match.start()
        for seat in self.seats:
            seat.number = self.match.seating[seat.player]
        self.seats.sort(key=lambda seat: seat.number)
        self.log += events
        self.scribe.write(events)
        self._ask()

    def answer(self, seat: Seat, turn: int, actions: Sequence[Action]) -> Status:
        """Take an answer. Raises ActionError for one that the rules refuse (a fault, dealt with before
        it is raised) and UnknownTurn for a turn that was never asked."""
        if turn != seat.turn or not seat.open:
            if not 1 <= turn <= seat.turn:
                raise UnknownTurn(f"turn {turn} was never asked")
            return Status.TURN_OVER if turn in seat.lapsed else Status.REPEATED
        try:
            events = self.match.act(seat.number, actions)
        except ActionError as error:
            self.fault(seat, error)
            raise
        sent_at = seat.sent_at
        think_ms = 0 if sent_at is None else round((self._clock() - sent_at) * 1000)
        seat.settle()
        self._happened(events, think_ms)
        return Status.ACCEPTED

    def fault(self, seat: Seat, error: ActionError) -> None:
        """Deal with a refused answer to the open turn of a seat."""
        kind = FaultKind.MALFORMED if isinstance(error, MalformedAction) else FaultKind.ILLEGAL
        seat.refusals += 1
        if seat.refusals > self.config.illegal_retries:
            self.play_substitute(seat, kind, error.code)
            return
        self._note(FaultCommitted(seat.number, kind, FaultEffect.RETRY, error.code))
        seat.queue()

    def play_substitute(self, seat: Seat, kind: FaultKind, reason: str) -> None:
        """Answer the open turn of a seat for it."""
        self._substitute(seat, kind, reason)
        self._ask()

    def left(self, seat: Seat) -> None:
        """The session of a seat has ended; the arena plays on for it."""
        seat.session = None
        if seat.open:
            self.play_substitute(seat, FaultKind.DISCONNECT, "SESSION_ENDED")

    def withdraw(self) -> None:
        """Take back every open turn; nothing is played for those who were asked."""
        for seat in self.seats:
            if seat.open:
                seat.settle()
                seat.lapsed.add(seat.turn)

    def deadline(self, seat: Seat) -> float | None:
        """When the open turn of a seat ends, in seconds on the arena's clock; None: never. A turn that
        could not even be sent (its bot does not read) ends with the time it would have had."""
        if not seat.open or not self.config.move_ms:
            return None
        start = seat.asked_at if seat.sent_at is None else seat.sent_at
        return start + self.config.move_ms / 1000

    def _substitute(self, seat: Seat, kind: FaultKind, reason: str) -> None:
        self._note(FaultCommitted(seat.number, kind, FaultEffect.SUBSTITUTE, reason))
        seat.settle()
        seat.lapsed.add(seat.turn)
        actions = substitute(self.match.legal(seat.number))
        self._apply(self.match.act(seat.number, actions), think_ms=0)

    def _note(self, event: FaultCommitted) -> None:
        self.log.append(event)
        self.scribe.write((event,))

    def _happened(self, events: list[Event], think_ms: int) -> None:
        self._apply(events, think_ms)
        self._ask()

    def _apply(self, events: list[Event], think_ms: int) -> None:
        self.log += events
        self.scribe.write(events, think_ms)
        # A declined offer may be all that happens, and that is no event.
        if events and type(events[0]) is DealVoided:
            # Monte may have left other seats with a question that means nothing any more.
            self.withdraw()

    def _ask(self) -> None:
        """Ask every seat that the match waits for; play on for those whose bot is gone."""
        match = self.match
        while match.pending:
            for number in match.pending:
                seat = self.seats[number]
                if seat.open:
                    continue
                seat.turn += 1
                seat.open = True
                seat.asked_at = self._clock()
                seat.sent_at = None
                seat.refusals = 0
                if seat.session is None:
                    self._substitute(seat, FaultKind.DISCONNECT, "SESSION_ENDED")
                    break
                if not seat.timed:
                    self._watch(seat)
                seat.queue()
            else:
                return
        self._close()

    def _close(self) -> None:
        for seat in self.seats:
            seat.closed = True
            if seat.session is not None:
                seat.session.playing -= 1
                seat.queue()
        self._finished(self)
