"""Driving a new match by the events of an old one, and finding the first that differs.

Decisions:
1. Monte declined and declarations passed are no events. They are implied as soon as a later event
   shows that nothing was declared or voided; after the last event they are unknown, and the match
   stands as before them.
2. Faults are notes about bots, not moves: they are skipped wherever they stand. What they led to, a
   deal ended by a revoke or a match by a forfeit, is an event of its own and is replayed from that.
3. Events are compared whole. Events that stop in the middle of what one answer causes are a
   difference, and so are events with blanks (what ``redact`` makes).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from tressette.rules.actions import Action, CallMonte, CallOut, Declare, Discard, PlayCard
from tressette.rules.deck import DeckSource
from tressette.rules.errors import ActionError, ReplayError
from tressette.rules.events import (
    CalledOut,
    CardDiscarded,
    CardPlayed,
    DealEnd,
    DealScored,
    DealVoided,
    DeclarationMade,
    Event,
    FaultCommitted,
    MatchEnded,
)
from tressette.rules.match import Match, Stage
from tressette.rules.ruleset import RuleSet
from tressette.rules.scoring import Revoke, score_revoke

_Answer = tuple[int, list[Action]]


def replay(rules: RuleSet, decks: DeckSource, events: Sequence[Event]) -> Match:
    """The match that these events describe, as it stands after them.

    Raises ReplayError at the first event that differs from what the rules produce.
    """
    numbered = [
        (number, event)
        for number, event in enumerate(events, start=1)
        if not isinstance(event, FaultCommitted)
    ]
    match = Match(rules, decks)
    made = match.start()
    position = 0
    while True:
        for expected in made:
            if position == len(numbered):
                raise ReplayError(len(events) + 1, None, expected, "the events stop short")
            number, found = numbered[position]
            if found != expected:
                raise ReplayError(number, found, expected, "another event")
            position += 1
        if position == len(numbered):
            return match
        number, found = numbered[position]
        try:
            following = _go_on(match, [event for _, event in numbered[position : position + 10]])
        except ActionError as error:
            raise ReplayError(number, found, None, str(error)) from error
        if following is None:
            raise ReplayError(number, found, None, "nothing that could follow")
        made = following


def _go_on(match: Match, coming: Sequence[Event]) -> list[Event] | None:
    """Do what leads to the events that come next; None if nothing does."""
    first = coming[0]
    if isinstance(first, MatchEnded):
        return None if first.seat is None else match.forfeit(first.seat)
    if isinstance(first, DealScored) and first.ended_by is DealEnd.REVOKE:
        return _revoke(match, first)
    answer = _answer(match, coming)
    return None if answer is None else match.act(*answer)


def _revoke(match: Match, scored: DealScored) -> list[Event] | None:
    """Who offended and under which policy shows in the points."""
    points = tuple(None if side is None else side.points for side in scored.sides)
    active = match.standing.active
    for policy in Revoke:
        for side in active:  # also the number of a seat on that side
            if score_revoke(match.rules, policy, side, active) == points:
                return match.revoke(side, policy)
    return None


def _answer(match: Match, coming: Sequence[Event]) -> _Answer | None:
    """Whose answer comes next, and what it was."""
    first = coming[0]
    if match.stage is Stage.OVER:
        return None
    if match.stage is Stage.MONTE:
        return (first.seat, [CallMonte()]) if isinstance(first, DealVoided) else (match.pending[0], [])
    if match.stage is Stage.DISCARD:
        if isinstance(first, CardDiscarded) and first.card is not None:
            return first.seat, [Discard(first.card)]
        return None
    seat = match.pending[0]
    declared = list(takewhile(lambda event: _declares(event, seat), coming))
    actions: list[Action] = [
        Declare(event.declaration) for event in declared if isinstance(event, DeclarationMade)
    ]
    if match.stage is Stage.DECLARE:
        return seat, actions
    last = coming[len(declared)] if len(declared) < len(coming) else None
    if isinstance(last, CardPlayed):
        return last.seat, [*actions, PlayCard(last.card, last.signal)]
    if isinstance(last, CalledOut):
        return last.seat, [*actions, CallOut()]
    return None


def _declares(event: Event, seat: int) -> bool:
    return isinstance(event, DeclarationMade) and event.seat == seat
