"""Everything that the rules refuse, as one tree::

    RulesError                  anything below
    +-- NotationError           text that names none of the 40 cards (also a ValueError)
    +-- UnknownPreset           a preset or alias that does not exist (also a ValueError)
    +-- RuleSetError            options that make no game (also a ValueError)
    +-- ReplayError             events that no match of these rules and decks produces
    +-- ActionError             an action that was refused; the state is unchanged
        +-- MalformedAction     not an action at all: no rule could allow it
        +-- IllegalAction       an action, but not one that the rules allow now
        +-- NotYourTurn         nothing is asked of that seat now

Every ActionError has a machine-readable ``code`` (a Refusal); its text is for people and no contract.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from enum import StrEnum


class Refusal(StrEnum):
    """Why an action was refused. The values are part of the wire contract."""

    MALFORMED = "MALFORMED"
    UNKNOWN_CARD = "UNKNOWN_CARD"
    NOT_YOUR_TURN = "NOT_YOUR_TURN"
    MATCH_OVER = "MATCH_OVER"
    CARD_NOT_HELD = "CARD_NOT_HELD"
    MUST_FOLLOW_SUIT = "MUST_FOLLOW_SUIT"
    CARD_MISSING = "CARD_MISSING"
    NOT_ASKED = "NOT_ASKED"
    DECLARATION_NOT_HELD = "DECLARATION_NOT_HELD"
    DECLARATION_ALREADY_MADE = "DECLARATION_ALREADY_MADE"
    DECLARATION_WINDOW_CLOSED = "DECLARATION_WINDOW_CLOSED"
    ACCUSE_OFF = "ACCUSE_OFF"
    CALL_OUT_OFF = "CALL_OUT_OFF"
    MONTE_NOT_ALLOWED = "MONTE_NOT_ALLOWED"
    SIGNALS_OFF = "SIGNALS_OFF"
    ONLY_LEADER_SIGNALS = "ONLY_LEADER_SIGNALS"
    DISCARD_NOT_ASKED = "DISCARD_NOT_ASKED"


class RulesError(Exception):
    """Base of everything the rules raise."""


class NotationError(RulesError, ValueError):
    """Text that is not a card."""

    def __init__(self, text: str) -> None:
        super().__init__(f"unknown card {text!r}: a rank of A234567FCR, then a suit of dcsb, e.g. 3c")
        self.text = text


class UnknownPreset(RulesError, ValueError):
    """A preset name that does not exist; ``nearest`` is the closest that does, or None."""

    def __init__(self, name: str, known: Collection[str]) -> None:
        matches = difflib.get_close_matches(name, known, n=1)
        self.name = name
        self.nearest = matches[0] if matches else None
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        super().__init__(f"unknown preset {name!r}{hint}")


class RuleSetError(RulesError, ValueError):
    """Options that make no game. ``option`` names the one at fault, ``reason`` says why."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"{option}: {reason}")
        self.option = option
        self.reason = reason


class ReplayError(RulesError):
    """The first event that differs from what the rules produce.

    ``number`` is its place, from 1; ``found`` is the event there, None where the events stop short;
    ``expected`` is what the rules produce there, None where they allow nothing like it.
    """

    def __init__(self, number: int, found: object, expected: object, reason: str) -> None:
        super().__init__(f"event {number}: {reason}; found {found!r}, expected {expected!r}")
        self.number = number
        self.found = found
        self.expected = expected
        self.reason = reason


class ActionError(RulesError):
    """An action that was refused. Nothing has changed."""

    def __init__(self, code: Refusal, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason


class MalformedAction(ActionError):
    """Not an action in any state of any game."""


class IllegalAction(ActionError):
    """An action that the rules do not allow in this state."""


class NotYourTurn(ActionError):
    """An action from a seat of which nothing is asked now."""
