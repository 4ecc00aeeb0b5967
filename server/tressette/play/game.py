"""One game in progress: asks its seats, takes their answers, and deals with what bots do wrong.

**Clocks.** A turn's time runs from the moment it is sent: ``move_ms``, then what is left of the seat's bank.
The time that messages spend on the network is measured by the arena's own pings while the bot owes no answer;
of each answer's time so much, ``allowance_ms`` at most, counts as network and not as thinking, and the
deadline is later by as much.

**Faults.** An answer that the rules refuse may be corrected ``illegal_retries`` times within its turn, the
clock running. After that, and for every other fault, the policy for its kind decides: the arena plays the
documented substitute (``tressette.rules.substitute``), the side forfeits the match, or the deal ends by
``transfer_all`` or ``penalty`` (``tressette.rules.scoring``). Every fault is an event in the log and so in
the record; too many of them (``strikes``) forfeit the match.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from tressette.play.config import PlayConfig
from tressette.play.session import Disqualified, Seat, Session, Status, UnknownTurn
from tressette.record.game import GameSpec, seat_secret
from tressette.record.scribe import Scribe
from tressette.record.writer import Recorder
from tressette.rules.actions import Action
from tressette.rules.errors import ActionError, MalformedAction
from tressette.rules.events import DealVoided, Event, FaultCommitted, FaultEffect, FaultKind
from tressette.rules.match import Match
from tressette.rules.scoring import Revoke
from tressette.rules.substitute import substitute

_NOTED: Final = 8
"""Faults of one seat within one turn that lead to nothing and are recorded all the same, where there are no
strikes. There may be any number of them, and each goes to every seat and into the record."""

Acted = tuple[int, Sequence[Action], int, int]
"""An answer as it was played: seat, actions, and the think and network time in milliseconds."""
Step = Acted | FaultCommitted
"""What a match is moved on by. A fault whose effect ends the deal (``transfer_all``, ``penalty``) does so at
once; the substitute that another leads to is a step of its own."""


class Game:
    """A game from its first deal to its result. ``log`` holds its events, number 1 first; ``wire`` is
    room for whoever sends them to keep what it made of each, so that four seats share the work; ``steps``
    is all that it takes to play it again (``play.suspend``)."""

    def __init__(
        self,
        spec: GameSpec,
        key: bytes,
        config: PlayConfig,
        sessions: Sequence[Session | None],
        recorder: Recorder,
        clock: Callable[[], float],
        watch: Callable[[Seat], None],
        finished: Callable[[Game], None],
        faulted: Callable[[FaultCommitted], None] = lambda _: None,
        handles: Sequence[str] = (),
    ) -> None:
        """``handles``: those of the players in their order, where they are not to be drawn from the key."""
        self.spec = spec
        self.config = config
        self.match = Match(spec.rules, spec.decks)
        self.log: list[Event] = []
        self.wire: list[Any] = []
        self.steps: list[Step] = []
        self.seats: list[Seat] = []
        self.started_at = clock()
        self._clock = clock
        self._watch = watch
        self._finished = finished
        self._faulted = faulted
        self._bot_seeds = [seat_secret(key, "bot_seed", spec, player) for player in range(spec.rules.players)]
        for player, session in enumerate(sessions):
            handle = handles[player] if handles else _handle(key, spec, player)
            seat = Seat(handle, self, player, session)
            if session is not None:
                session.seats[handle] = seat
                session.playing += 1
            self.seats.append(seat)
        self._asking = False
        self._stopped = False
        self.scribe = Scribe(
            recorder,
            spec,
            [session.version if session else "" for session in sessions],
            [session.process if session else "" for session in sessions],
        )

    def bot_seed(self, seat: Seat) -> bytes:
        """32 bytes for the chance that the bot on this seat draws."""
        return self._bot_seeds[seat.player]

    def start(self) -> None:
        """Deal, and ask the first seat."""
        events = self.match.start()
        self._sit()
        self.log += events
        self.scribe.write(events)
        self._ask()

    def take_up(
        self, match: Match, steps: Iterable[Step], happened: Iterable[tuple[Sequence[Event], int, int]]
    ) -> None:
        """In place of ``start``: go on with a match that is under way. steps: what has moved it so far;
        happened: the events that came of it, each lot with its think and network time. Nobody is asked:
        the caller opens the turns that the match waits for."""
        self.match = match
        self._sit()
        self.steps += steps
        for events, think_ms, network_ms in happened:
            self.log += events
            self.scribe.write(events, think_ms, network_ms)

    def _sit(self) -> None:
        """Give every player the seat that the match has for it."""
        for seat in self.seats:
            seat.number = self.match.seating[seat.player]
        self.seats.sort(key=lambda seat: seat.number)

    def answer(self, seat: Seat, turn: int, actions: Sequence[Action]) -> Status:
        """Take an answer. Raises ActionError for one that the rules refuse (a fault, dealt with before
        it is raised), UnknownTurn for a turn that was never asked, and Disqualified where either has lost
        the seat its match."""
        if turn != seat.turn or not seat.open:
            if not 1 <= turn <= seat.turn:
                if not (seat.closed or self._stopped):
                    self.fault(seat, FaultKind.NOT_YOUR_TURN, "UNKNOWN_TURN")
                raise UnknownTurn(f"turn {turn} was never asked")
            return Status.TURN_OVER if turn in seat.lapsed else Status.REPEATED
        try:
            events = self.match.act(seat.number, actions)
        except ActionError as error:
            self.refused(seat, error)
            raise
        think_ms, network_ms = self._spend(seat)
        self.steps.append((seat.number, actions, think_ms, network_ms))
        seat.settle()
        self._apply(events, think_ms, network_ms)
        self._ask()
        return Status.ACCEPTED

    def refused(self, seat: Seat, error: ActionError) -> None:
        """Deal with a refused answer to the open turn of a seat. Raises Disqualified."""
        kind = FaultKind.MALFORMED if isinstance(error, MalformedAction) else FaultKind.ILLEGAL
        seat.refusals += 1
        if seat.refusals <= self.config.illegal_retries and not self._struck_out(seat):
            self._note(FaultCommitted(seat.number, kind, FaultEffect.RETRY, error.code))
            seat.strikes += 1
            seat.queue()
        else:
            self.fault(seat, kind, error.code)

    def fault(self, seat: Seat, kind: FaultKind, reason: str) -> None:
        """Deal with a fault of a seat by the policy for its kind. Raises Disqualified for its last strike."""
        struck_out = self._struck_out(seat)
        effect = FaultEffect.FORFEIT if struck_out else self.config.policy(kind)
        if effect is FaultEffect.SUBSTITUTE and not seat.open:
            effect = FaultEffect.NONE
        if effect is FaultEffect.NONE and not self.config.strikes:
            if seat.noted == _NOTED:
                return
            seat.noted += 1
        seat.strikes += 1
        if effect is FaultEffect.SUBSTITUTE:
            self._substitute(seat, kind, reason)
        elif effect is FaultEffect.FORFEIT:
            self._note(FaultCommitted(seat.number, kind, effect, reason))
            self.withdraw()
            self._apply(self.match.forfeit(seat.number))
        elif effect in (FaultEffect.TRANSFER_ALL, FaultEffect.PENALTY):
            self._note(FaultCommitted(seat.number, kind, effect, reason))
            self.withdraw()
            self._apply(self.match.revoke(seat.number, Revoke(effect)))
        else:
            self._note(FaultCommitted(seat.number, kind, FaultEffect.NONE, reason))
        self._ask()
        if struck_out:
            raise Disqualified(f"{seat.strikes} faults in one match")

    def expired(self, seat: Seat) -> None:
        """The time of the open turn of a seat is up."""
        if seat.session is None:
            self.deserted(seat)
            return
        kind = FaultKind.TIMEOUT if seat.session.attached else FaultKind.DISCONNECT
        with suppress(Disqualified):
            self.fault(seat, kind, "MOVE_TIME_EXCEEDED")

    def deserted(self, seat: Seat) -> None:
        """The session of a seat has ended: the policy for why answers for its open turn, if it has one."""
        if seat.open:
            with suppress(Disqualified):
                self.fault(seat, seat.gone, "SESSION_ENDED")

    def withdraw(self) -> None:
        """Take back every open turn; nothing is played for those who were asked."""
        for seat in self.seats:
            if seat.open:
                seat.settle()
                seat.lapsed.add(seat.turn)

    def stop(self) -> None:
        """Nothing moves the match on any more, a fault neither; it may go on in another arena."""
        self.withdraw()
        self._stopped = True

    def deadline(self, seat: Seat) -> float | None:
        """When the open turn of a seat ends, in seconds on the arena's clock; None: never. A turn that
        could not even be sent (its bot does not read) ends with the time it would have had."""
        if not seat.open or not self.config.timed:
            return None
        start = seat.asked_at if seat.sent_at is None else seat.sent_at
        return start + self.config.move_ms / 1000 + seat.bank + self._allowance(seat)

    # -- clocks ---------------------------------------------------------------------------------

    def _allowance(self, seat: Seat) -> float:
        network = 0.0 if seat.session is None else seat.session.network
        return min(network, self.config.allowance_ms / 1000)

    def _spend(self, seat: Seat) -> tuple[int, int]:
        """Charge the seat for the answer that has just come; returns its think and network time in
        milliseconds."""
        if seat.sent_at is None:
            return 0, 0
        elapsed = self._clock() - seat.sent_at
        network = min(self._allowance(seat), elapsed)
        think = elapsed - network
        config = self.config
        if config.bank_ms or config.increment_ms:
            seat.bank -= max(0.0, think - config.move_ms / 1000)
            seat.bank = max(0.0, seat.bank) + config.increment_ms / 1000
        return round(think * 1000), round(network * 1000)

    # -- faults ---------------------------------------------------------------------------------

    def _struck_out(self, seat: Seat) -> bool:
        """Whether the next fault of a seat is its last."""
        return 0 < self.config.strikes <= seat.strikes + 1

    def _substitute(self, seat: Seat, kind: FaultKind, reason: str) -> None:
        self._note(FaultCommitted(seat.number, kind, FaultEffect.SUBSTITUTE, reason))
        seat.settle()
        seat.lapsed.add(seat.turn)
        actions = substitute(self.match.legal(seat.number))
        self.steps.append((seat.number, actions, 0, 0))
        self._apply(self.match.act(seat.number, actions))

    # -- the course of the match ----------------------------------------------------------------

    def _note(self, event: FaultCommitted) -> None:
        self.steps.append(event)
        self.log.append(event)
        self.scribe.write((event,))
        self._faulted(event)

    def _apply(self, events: list[Event], think_ms: int = 0, network_ms: int = 0) -> None:
        self.log += events
        self.scribe.write(events, think_ms, network_ms)
        # A declined offer may be all that happens, and that is no event.
        if events and type(events[0]) is DealVoided:
            # Monte may have left other seats with a question that means nothing any more.
            self.withdraw()

    def _ask(self) -> None:
        """Ask every seat that the match waits for; deal with those whose bot is gone."""
        if self._asking:
            return  # a fault of a bot that is gone, dealt with below
        self._asking = True
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
                seat.refusals = seat.noted = 0
                if seat.session is None:
                    with suppress(Disqualified):
                        self.fault(seat, seat.gone, "SESSION_ENDED")
                    break
                if not seat.timed:
                    self._watch(seat)
                seat.queue()
            else:
                self._asking = False
                return
        self._asking = False
        self._close()

    def _close(self) -> None:
        for seat in self.seats:
            seat.closed = True
            if seat.session is not None:
                seat.session.playing -= 1
                seat.queue()
        self._finished(self)


def _handle(key: bytes, spec: GameSpec, player: int) -> str:
    secret = seat_secret(key, f"handle-{spec.attempt}", spec, player)
    return base64.urlsafe_b64encode(secret[:16]).rstrip(b"=").decode()
