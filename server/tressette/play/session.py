"""A session: one bot's connection, and what is waiting to be sent on it.

The session knows nothing of how it is transported. Whoever carries it gives it ``wake``, calls ``take``
when woken and sends everything that it returns as one message: turns that became ready together travel
together. ``wake_later`` is called where only receipts wait; they may be kept a moment for company. ``idle``
is called when the bot has answered all that it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from tressette.rules.actions import Action
from tressette.rules.errors import ActionError

if TYPE_CHECKING:
    from tressette.play.game import Game

_REMEMBERED: Final = 1024
"""Handles of finished games that a session still knows, so that late answers get a fitting receipt."""


class Status(Enum):
    """What became of an answer that was taken in."""

    ACCEPTED = auto()
    REPEATED = auto()
    TURN_OVER = auto()


class UnknownHandle(Exception):
    """An answer for a seat that this session does not play."""


class UnknownTurn(Exception):
    """An answer to a turn that was never asked."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer or message that was refused. ``error`` is the reason; may_retry: the turn is open still."""

    handle: str
    turn: int
    error: ActionError | UnknownHandle | UnknownTurn
    may_retry: bool


class Seat:
    """One seat of one game. ``number`` is its seat in the match, ``player`` its place before a draw of
    partners; ``turn`` is the id of the last turn asked, ``open`` whether that still waits for an answer;
    ``sent`` counts the events delivered; ``sent_at`` is when the open turn was delivered (seconds on the
    arena's clock, None: not yet), ``asked_at`` when it became ready to be."""

    __slots__ = (
        "asked_at",
        "closed",
        "game",
        "handle",
        "lapsed",
        "number",
        "open",
        "player",
        "queued",
        "refusals",
        "sent",
        "sent_at",
        "session",
        "timed",
        "turn",
        "wire",
    )

    def __init__(self, handle: str, game: Game, player: int, session: Session) -> None:
        self.handle = handle
        self.game = game
        self.player = self.number = player
        self.session: Session | None = session
        self.turn = 0
        self.open = False
        self.sent = 0
        self.asked_at = 0.0
        self.sent_at: float | None = None
        self.refusals = 0
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


class Session:
    """One connection of a bot called ``name``. playing: games under way; max_matches: at most so many;
    owed: turns that the bot has been sent and not answered.

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
    ) -> None:
        self.name = name
        self.version = version
        self.max_matches = max_matches
        self.wake = wake
        self._wake_later = wake_later or wake
        self._idle = idle
        self.owed = 0
        self.seats: dict[str, Seat] = {}
        self.playing = 0
        self.draining = False
        self.news: list[Seat] = []
        self.receipts: list[tuple[str, int, Status]] = []
        self.refused: list[Refused] = []
        self._finished: dict[str, tuple[int, frozenset[int]]] = {}  # last turn, lapsed turns

    @property
    def has_room(self) -> bool:
        """Whether one more match may start on this session."""
        return self.playing < self.max_matches and not self.draining

    def answer(self, handle: str, turn: int, actions: Sequence[Action]) -> None:
        """Take an answer in; a receipt or a refusal will be sent. Raises nothing."""
        seat = self.seats.get(handle)
        if seat is None:
            self._answer_to_finished(handle, turn)
            return
        try:
            status = seat.game.answer(seat, turn, actions)
        except ActionError as error:
            self.refuse(handle, turn, error, may_retry=seat.open and seat.turn == turn)
        except UnknownTurn as error:
            self.refuse(handle, turn, error)
        else:
            self.receipts.append((handle, turn, status))
            self._wake_later()

    def malformed(self, handle: str, turn: int, error: ActionError) -> None:
        """Take in an answer that could not be understood, as a fault of the seat if its turn is open."""
        seat = self.seats.get(handle)
        if seat is None or seat.turn != turn or not seat.open:
            self.refuse(handle, turn, error)
            return
        seat.game.fault(seat, error)
        self.refuse(handle, turn, error, may_retry=seat.open and seat.turn == turn)

    def refuse(
        self,
        handle: str,
        turn: int,
        error: ActionError | UnknownHandle | UnknownTurn,
        may_retry: bool = False,
    ) -> None:
        """Have a refusal sent."""
        self.refused.append(Refused(handle, turn, error, may_retry))
        self.wake()

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
        return news, receipts, refused

    def settled(self) -> None:
        """One of the turns that were sent is no longer open."""
        self.owed -= 1
        if not self.owed and self._idle is not None:
            self._idle()

    def delivered(self, seat: Seat) -> None:
        """Note that all events of the seat so far are on their way."""
        seat.sent = len(seat.game.log)
        if seat.closed:
            self._forget(seat)

    def _forget(self, seat: Seat) -> None:
        del self.seats[seat.handle]
        self._finished[seat.handle] = seat.turn, frozenset(seat.lapsed)
        if len(self._finished) > _REMEMBERED:
            del self._finished[next(iter(self._finished))]

    def _answer_to_finished(self, handle: str, turn: int) -> None:
        if handle not in self._finished:
            self.refuse(handle, turn, UnknownHandle(handle))
            return
        last, lapsed = self._finished[handle]
        if 1 <= turn <= last:
            self.receipts.append((handle, turn, Status.TURN_OVER if turn in lapsed else Status.REPEATED))
            self.wake()
        else:
            self.refuse(handle, turn, UnknownTurn(f"turn {turn} was never asked"))
