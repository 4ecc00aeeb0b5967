"""What a seat can answer when it is asked: plain frozen values.

One answer is a sequence of actions in this order: any declarations, then one of: a call-out, monte,
a discard, a card with an optional signal. An empty answer declines where declining is possible
(monte, declarations before the first lead).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tressette.rules.accuse import Declaration
from tressette.rules.cards import Card


class Signal(StrEnum):
    """The three signals of 003, made by the leader of a trick with the card."""

    BUSSO = "busso"
    VOLO = "volo"
    STRISCIO = "striscio"


@dataclass(frozen=True, slots=True)
class PlayCard:
    """Play a card to the trick, with a signal if the seat leads it and signals are on."""

    card: Card
    signal: Signal | None = None


@dataclass(frozen=True, slots=True)
class Declare:
    """Declare one combination held (accuse). ``kind`` and ``of`` identify it."""

    declaration: Declaration


@dataclass(frozen=True, slots=True)
class Discard:
    """Set one card aside: the dealer of three, before the first lead."""

    card: Card


@dataclass(frozen=True, slots=True)
class CallMonte:
    """Void the deal: a hand worth under one point, before anything else."""


@dataclass(frozen=True, slots=True)
class CallOut:
    """Claim that the own side's match total has reached the target."""


Action = PlayCard | Declare | Discard | CallMonte | CallOut


class Legal(NamedTuple):
    """Everything one seat may answer now.

    cards: mask of playable cards; discards: mask of cards that may be set aside; declarations: those
    that may be made; call_out, monte, signals: whether those may be used. A seat of which nothing is
    asked has ``NOTHING``. Where neither cards nor discards are offered, the empty answer declines.
    """

    cards: int = 0
    discards: int = 0
    declarations: tuple[Declaration, ...] = ()
    call_out: bool = False
    monte: bool = False
    signals: bool = False


NOTHING = Legal()
