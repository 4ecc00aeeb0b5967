"""A session: one bot's connection, what it plays, and what is waiting to be sent to it.

The session knows nothing of how it is transported. Whoever carries it (the **link**) gives it ``wake``, calls
``take`` when woken and sends everything that it returns as one message: turns that became ready together
travel together. ``wake_later`` is called where only receipts wait; they may be kept a moment for company.
``idle`` is called when the bot has answered all that it was sent.

A session outlives its link: while it has none it is **detached**, its clocks run on, and a new link may take
it over (``attach``), which is sent what the old one missed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, TypeVar

from tressette.rules.actions import Action
from tressette.rules.errors import ActionError
from tressette.rules.events import FaultKind

if TYPE_CHECKING:
    from tressette.play.game import Game

_T = TypeVar("_T")

_REMEMBERED: Final = 1024
"""Handles of finished games that a session still knows, so that late answers get a fitting receipt."""
_RESENT: Final = 64
"""Finished games whose last events a resuming bot can still be sent."""
MAX_WAITING: Final = 8192
"""Receipts and refusals that may wait for a bot that does not read."""


class Status(Enum):
    """What became of an answer that was taken in."""

    ACCEPTED = auto()
    REPEATED = auto()
    TURN_OVER = auto()


class UnknownHandle(Exception):
    """An answer for a seat that this session does not play."""

    def __init__(self) -> None:
        super().__init__("no match of this session")


class UnknownTurn(Exception):
    """An answer to a turn that was never asked."""


class Disqualified(Exception):
    """A seat has lost its match by its faults."""


class DoesNotRead(Exception):
    """So much waits to be sent that the bot cannot be reading."""


Refusable = ActionError | UnknownHandle | UnknownTurn | Disqualified


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer or message that was refused. ``error`` is the reason; may_retry: the turn is open still."""

    handle: str
    turn: int
    error: Refusable
    may_retry: bool


class Seat:
    """One seat of one game. ``number`` is its seat in the match, ``player`` its place before a draw of
    partners; ``turn`` is the id of the last turn asked, ``open`` whether that still waits for an answer;
    ``sent`` counts the events delivered; ``sent_at`` is when the open turn was delivered (seconds on the
    arena's clock, None: not yet), ``asked_at`` when it became ready to be; ``bank`` is the time left in
    its bank, in seconds; ``strikes`` counts its faults."""

    __slots__ = (
        "asked_at",
        "bank",
        "closed",
        "game",
        "gone",
        "handle",
        "lapsed",
        "noted",
        "number",
        "open",
        "player",
        "queued",
        "refusals",
        "sent",
        "sent_at",
        "session",
        "strikes",
        "timed",
        "turn",
        "wire",
    )

    def __init__(self, handle: str, game: Game, player: int, session: Session | None) -> None:
        self.handle = handle
        self.game = game
        self.player = self.number = player
        self.session = session
        self.turn = 0
        self.open = False
        self.sent = 0
        self.asked_at = 0.0
        self.sent_at: float | None = None
        self.bank = game.config.bank_ms / 1000
        self.gone = FaultKind.DISCONNECT  # why it has no session, where it has none
        self.refusals = 0
        self.noted = 0  # recorded faults of this turn that led to nothing
        self.strikes = 0
        self.queued = False
        self.closed = False
        self.timed = False  # whether the arena's deadline queue holds this seat
        self.wire: bytes | None = None  # room for whoever sends it to keep the encoded handle
        self.lapsed: set[int] = set()  # turns that the arena answered itself

    def settle(self) -> None:
        """The open turn has been answered, by the bot or for it, or taken back."""
        self.open = False
        if self.sent_at is not None and self.session is not None:
            self.session.settled()

    def queue(self) -> None:
        """Have this seat's news sent."""
        if not self.queued and self.session is not None:
            self.queued = True
            self.session.news.append(self)
            self.session.wake()


def _nothing() -> None:
    """What a detached session calls."""


class Session:
    """One bot's session under the name that counts. process: the id of the launched process behind it, ""
    where that is not known; label: what the bot calls itself; playing: games under way; max_matches: at most
    so many; proven: whether it has played a game to its end; asked: turns that the bot has been sent; owed:
    those that it has not answered; turns: answers that came from it; attached: whether it has a link;
    draining: whether it gets no new matches; drain_notice: whether it has to be told that the arena drains;
    network: seconds that a message and its answer spend on the way, as last measured.

    news, receipts, refused: what waits to be sent; empty after ``take``.
    """

    def __init__(
        self,
        name: str,
        version: str,
        max_matches: int,
        wake: Callable[[], None],
        wake_later: Callable[[], None] | None = None,
        idle: Callable[[], None] | None = None,
        process: str = "",
        label: str = "",
    ) -> None:
        self.name = name
        self.version = version
        self.process = process
        self.label = label
        self.max_matches = max_matches
        self.id = secrets.token_hex(8)
        self.resume_token = secrets.token_urlsafe(24)
        self.attached = True
        self.wake = wake
        self._wake_later = wake_later or wake
        self._idle = idle or _nothing
        self.owed = 0
        self.asked = 0
        self.network = 0.0
        self.turns = 0
        self.seats: dict[str, Seat] = {}
        self.playing = 0
        self.proven = False
        self.draining = False
        self.drain_notice = False
        self.news: list[Seat] = []
        self.receipts: list[tuple[str, int, Status]] = []
        self.refused: list[Refused] = []
        self._finished: dict[str, tuple[int, frozenset[int]]] = {}
        self._resendable: dict[str, Seat] = {}

    @property
    def has_room(self) -> bool:
        """Whether one more match may start on this session."""
        return self.playing < self.max_matches and not self.draining and self.attached

    # -- links ----------------------------------------------------------------------------------

    def detach(self) -> None:
        """The link is gone. What waited to be sent is dropped; ``attach`` finds it again."""
        self.attached = False
        self.wake = self._wake_later = self._idle = _nothing
        self.receipts, self.refused = [], []

    def attach(
        self,
        wake: Callable[[], None],
        wake_later: Callable[[], None],
        idle: Callable[[], None],
        positions: Mapping[str, int],
    ) -> None:
        """Take over a new link. ``positions`` gives the number of the last event that the bot has of each
        match; all later ones, and open turns, are sent again. A match that is not in it, or stands at a
        number that does not exist, is sent from its start."""
        self.attached = True
        self.wake, self._wake_later, self._idle = wake, wake_later, idle
        self.receipts, self.refused = [], []
        self.owed = sum(seat.open and seat.sent_at is not None for seat in self.seats.values())
        self.news = []
        for handle, seat in self._resendable.items():
            if positions.get(handle, len(seat.game.log)) < len(seat.game.log):
                self.seats[handle] = seat
        for handle, seat in list(self.seats.items()):
            seat.queued = False
            known = positions.get(handle, 0)
            seat.sent = known if known <= len(seat.game.log) else 0
            if seat.open or seat.sent < len(seat.game.log):
                seat.queue()
            elif seat.closed:
                self.delivered(seat)  # the bot says that it knows the end

    # -- what the bot sends ---------------------------------------------------------------------

    def answer(self, handle: str, turn: int, actions: Sequence[Action]) -> None:
        """Take an answer in; a receipt or a refusal will be sent. Raises DoesNotRead."""
        seat = self.seats.get(handle)
        if seat is None:
            self._answer_to_finished(handle, turn)
            return
        try:
            status = seat.game.answer(seat, turn, actions)
        except (ActionError, Disqualified) as error:
            self.refuse(handle, turn, error, may_retry=seat.open and seat.turn == turn)
        except UnknownTurn as error:
            self.refuse(handle, turn, error)
        else:
            self._receipt(handle, turn, status)

    def malformed(self, handle: str, turn: int, error: ActionError) -> None:
        """Take in an answer that could not be understood, as a fault of the seat if its turn is open."""
        seat = self.seats.get(handle)
        if seat is None or seat.turn != turn or not seat.open:
            self.refuse(handle, turn, error)
            return
        try:
            seat.game.refused(seat, error)
        except Disqualified as disqualified:
            self.refuse(handle, turn, disqualified)
        else:
            self.refuse(handle, turn, error, may_retry=seat.open and seat.turn == turn)

    def refuse(self, handle: str, turn: int, error: Refusable, may_retry: bool = False) -> None:
        """Have a refusal sent. Raises DoesNotRead."""
        self.refused.append(Refused(handle, turn, error, may_retry))
        self.wake()
        self._check_waiting()

    # -- what is sent to it ---------------------------------------------------------------------

    def take(self, now: float) -> tuple[list[Seat], list[tuple[str, int, Status]], list[Refused]]:
        """Everything that waits to be sent, as (news, receipts, refused). The open turns among the news
        count as sent at ``now``; the caller must deliver ``seat.game.log[seat.sent:]`` and then call
        ``delivered`` for each seat."""
        news, receipts, refused = self.news, self.receipts, self.refused
        self.news, self.receipts, self.refused = [], [], []
        for seat in news:
            seat.queued = False
            if seat.open and seat.sent_at is None:
                seat.sent_at = now
                self.owed += 1
                self.asked += 1
        return news, receipts, refused

    def settled(self) -> None:
        """One of the turns that were sent is no longer open."""
        self.owed -= 1
        if not self.owed:
            self._idle()

    def delivered(self, seat: Seat) -> None:
        """Note that all events of the seat so far are on their way."""
        seat.sent = len(seat.game.log)
        if seat.closed:
            del self.seats[seat.handle]
            _remember(self._finished, seat.handle, (seat.turn, frozenset(seat.lapsed)), _REMEMBERED)
            _remember(self._resendable, seat.handle, seat, _RESENT)

    def _receipt(self, handle: str, turn: int, status: Status) -> None:
        self.receipts.append((handle, turn, status))
        self._wake_later()
        self._check_waiting()

    def _check_waiting(self) -> None:
        if len(self.receipts) + len(self.refused) > MAX_WAITING:
            raise DoesNotRead

    def _answer_to_finished(self, handle: str, turn: int) -> None:
        if handle not in self._finished:
            self.refuse(handle, turn, UnknownHandle())
            return
        last, lapsed = self._finished[handle]
        if 1 <= turn <= last:
            self._receipt(handle, turn, Status.TURN_OVER if turn in lapsed else Status.REPEATED)
        else:
            self.refuse(handle, turn, UnknownTurn(f"turn {turn} was never asked"))


def _remember(memory: dict[str, _T], key: str, value: _T, limit: int) -> None:
    memory.pop(key, None)
    memory[key] = value
    if len(memory) > limit:
        del memory[next(iter(memory))]
