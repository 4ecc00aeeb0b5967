"""What happens in a match, as frozen values: the one vocabulary of engine, wire, record and replay.

Events are numbered from 1 in the order in which they happen; the number is the position in the log
and the same for every viewer. What a viewer may not know is blank in its copy (``redact``), never
left out. ``seat`` is always the seat that acted; ``points`` and ``totals`` are sixths by side.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from tressette.rules.accuse import Declaration
from tressette.rules.actions import Signal
from tressette.rules.cards import CARDS, Card
from tressette.rules.deck import Phase
from tressette.rules.standing import EndReason


class DealEnd(StrEnum):
    """Why a deal was scored."""

    PLAYED = "played"
    CALL_OUT = "call_out"
    WRONG_CALL_OUT = "wrong_call_out"
    REVOKE = "revoke"


class FaultKind(StrEnum):
    """What a bot can do wrong. The values are part of the record and of the wire contract."""

    MALFORMED = "malformed"
    ILLEGAL = "illegal"
    NOT_YOUR_TURN = "not_your_turn"
    TIMEOUT = "timeout"
    DISCONNECT = "disconnect"
    CRASH = "crash"
    REFUSED_TO_START = "refused_to_start"


class FaultEffect(StrEnum):
    """What a fault led to."""

    NONE = "none"
    RETRY = "retry"
    SUBSTITUTE = "substitute"
    FORFEIT = "forfeit"
    TRANSFER_ALL = "transfer_all"
    PENALTY = "penalty"


@dataclass(frozen=True, slots=True)
class PartnersDrawn:
    """The draw of partners (004). hands: masks by the seats as first taken, shown to all; seats:
    the seat that each of those players has from now on."""

    attempt: int
    hands: tuple[int, ...]
    seats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DealStarted:
    """A deal was dealt. hands: a mask by seat, None where the viewer may not see it, 0 for a seat
    that is out; stock: number of cards in the stock."""

    phase: Phase
    number: int
    attempt: int
    dealer: int
    leader: int
    hands: tuple[int | None, ...]
    stock: int


@dataclass(frozen=True, slots=True)
class DealVoided:
    """Monte: the deal is void and dealt again by the same dealer. The hand is not shown."""

    seat: int


@dataclass(frozen=True, slots=True)
class CardDiscarded:
    """The dealer of three set a card aside; None to all others until the deal is scored."""

    seat: int
    card: Card | None


@dataclass(frozen=True, slots=True)
class DeclarationMade:
    """A declaration; its cards are public from now on, its points already in the totals."""

    seat: int
    declaration: Declaration


@dataclass(frozen=True, slots=True)
class CalledOut:
    """A claim to have reached the target, and whether it was right."""

    seat: int
    right: bool


@dataclass(frozen=True, slots=True)
class CardPlayed:
    """A card was played to the trick."""

    seat: int
    card: Card
    signal: Signal | None = None


@dataclass(frozen=True, slots=True)
class TrickWon:
    """A trick is complete. thirds: value of its cards in thirds of a point."""

    seat: int
    thirds: int


@dataclass(frozen=True, slots=True)
class CardDrawn:
    """A card was drawn from the stock and shown (two players)."""

    seat: int
    card: Card


@dataclass(frozen=True, slots=True)
class SideScore:
    """One side's part of a scored deal. thirds, tricks: what it took (a set-aside card included);
    declared: its declarations that count, in sixths; counted: sixths by the counting rule;
    points: sixths as recorded after cappotto or fault, declarations apart."""

    thirds: int
    tricks: int
    declared: int
    counted: int
    points: int


@dataclass(frozen=True, slots=True)
class DealScored:
    """A deal was counted. sides: None for a side that is out; cappotto: the side that made it;
    last_trick: the side that won the last trick, None for a deal that was cut short; set_aside: the
    dealer's discard, now shown."""

    phase: Phase
    number: int
    ended_by: DealEnd
    sides: tuple[SideScore | None, ...]
    totals: tuple[int, ...]
    last_trick: int | None = None
    cappotto: int | None = None
    set_aside: Card | None = None


@dataclass(frozen=True, slots=True)
class SideEliminated:
    """A side reached the threshold and is out."""

    side: int


@dataclass(frozen=True, slots=True)
class FaultCommitted:
    """A bot's fault and what it led to."""

    seat: int
    kind: FaultKind
    effect: FaultEffect
    reason: str


@dataclass(frozen=True, slots=True)
class MatchEnded:
    """The match is over. ranks: by side, 1 is best, ties share; seat: who forfeited, else None."""

    reason: EndReason
    totals: tuple[int, ...]
    ranks: tuple[int, ...]
    seat: int | None = None


Event = (
    PartnersDrawn
    | DealStarted
    | DealVoided
    | CardDiscarded
    | DeclarationMade
    | CalledOut
    | CardPlayed
    | TrickWon
    | CardDrawn
    | DealScored
    | SideEliminated
    | FaultCommitted
    | MatchEnded
)

# Values can be shared, so the two events of nearly every move are made once and looked up.
CARD_PLAYED: Final = tuple(tuple(CardPlayed(seat, card) for card in CARDS) for seat in range(5))


@lru_cache(maxsize=1024)
def trick_won(seat: int, thirds: int) -> TrickWon:
    """A TrickWon, shared between all tricks that look the same."""
    return TrickWon(seat, thirds)


PRIVATE: Final = (DealStarted, CardDiscarded)
"""The only events that hold something to hide."""


def redact(event: Event, viewers: Iterable[int]) -> Event:
    """The event as the seats of ``viewers`` may see it together; none of them: the public view."""
    if isinstance(event, DealStarted):
        shown = tuple(hand if hand == 0 or seat in viewers else None for seat, hand in enumerate(event.hands))
        return dataclasses.replace(event, hands=shown)
    if isinstance(event, CardDiscarded) and event.seat not in viewers:
        return dataclasses.replace(event, card=None)
    return event
