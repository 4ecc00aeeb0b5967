"""Every reason for which an answer can be refused, each reached; a refused answer changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from support.decks import fixed, stacked
from support.matches import answer, finish_trick, hands_with
from tressette.rules.accuse import Combination, Declaration
from tressette.rules.actions import CallMonte, CallOut, Declare, Discard, PlayCard, Signal
from tressette.rules.cards import Card, mask_of, parse_card, parse_cards
from tressette.rules.errors import (
    ActionError,
    IllegalAction,
    MalformedAction,
    NotationError,
    NotYourTurn,
    Refusal,
    RulesError,
    RuleSetError,
    UnknownPreset,
)
from tressette.rules.match import Match
from tressette.rules.presets import resolve

POOR = "4d 5d 6d 7d 4c 5c 6c 7c 4s 5s"
THREE_ACES = Declare(Declaration(Combination.BONGIOCO, "A", mask_of(parse_cards("Ad Ac As")), 3))
OTHER_ACES = Declare(Declaration(Combination.BONGIOCO, "A", mask_of(parse_cards("Ad Ac Ab")), 3))
NAPOLI = Declare(Declaration(Combination.NAPOLI, "d", mask_of(parse_cards("Ad 2d 3d")), 3))


def play(text: str, signal: Signal | None = None) -> PlayCard:
    return PlayCard(parse_card(text), signal)


def match_of(name: str, *given: str, **options: Any) -> Match:
    """A started match whose deals give these cards; seat 1 leads the first."""
    rules = resolve(name, **options)
    hands, stock = hands_with(*given, size=(14, 13, 13) if rules.players == 3 else 10)
    match = Match(rules, fixed(stacked(hands, stock)))
    match.start()
    return match


# Where the refusals happen: matches that wait for the seat named.


def plain() -> Match:
    """Seat 1 leads; nothing can be declared, called or signalled."""
    return match_of("traversone-003-21", "6d 7d", "4d Ac", "5d 4c", "Fd")


def after_lead() -> Match:
    """Denari were led and seat 2 holds one."""
    match = plain()
    answer(match, "4d")
    return match


def declaring(**options: Any) -> Match:
    """Seat 1 leads and holds three aces, and the 3 of denari to win the trick."""
    return match_of(
        "tressette-21", "2d", "Ad Ac As 3d", "4d 5d", "6d", **{"first_lead": "dealer_right", **options}
    )


def declared() -> Match:
    """Seat 1 has declared its aces and leads the second trick."""
    match = declaring()
    answer(match, "+A,3d")
    finish_trick(match)
    return match


def second_trick() -> Match:
    """Seat 1 still holds the aces, but declared nothing in the only trick that allows it."""
    match = declaring(accuse_window="first_turn")
    answer(match, "3d")
    finish_trick(match)
    return match


def before_lead() -> Match:
    """Seat 1 is asked for declarations and holds three aces."""
    return match_of("tressette-002", "2d", "Ad Ac As 4d", "3d 5d", "6d")


def monte() -> Match:
    """Seat 1 is asked whether it goes monte."""
    return match_of("tressette-21", "Ad", POOR, "2d", "3d", monte="on_request")


def trio() -> Match:
    """Seat 0 deals and must set a card aside."""
    return match_of("ciapano-trio", "Ad 4d", "2d", "3d")


def over() -> Match:
    match = plain()
    match.forfeit(2)
    return match


def signalling() -> Match:
    """Seat 1 leads and may signal."""
    return match_of("traversone-pairs", "6d 7d", "4d Ac", "5d 4c", "Fd")


def after_signal() -> Match:
    match = signalling()
    answer(match, "4d!volo")
    return match


Case = tuple[str, Callable[[], Match], int, Sequence[Any]]

ILLEGAL: dict[Refusal, list[Case]] = {
    Refusal.CARD_NOT_HELD: [
        ("a card of another hand", plain, 1, [play("5d")]),
        ("setting aside a card of another hand", trio, 0, [Discard(parse_card("2d"))]),
    ],
    Refusal.MUST_FOLLOW_SUIT: [("another suit than the one led", after_lead, 2, [play("4c")])],
    Refusal.CARD_MISSING: [
        ("an empty answer in play", plain, 1, []),
        ("a declaration without a card", declaring, 1, [THREE_ACES]),
        ("an empty answer where a discard is asked for", trio, 0, []),
    ],
    Refusal.NOT_ASKED: [
        ("a card where a discard is asked for", trio, 0, [play("4d")]),
        ("a card where monte is asked", monte, 1, [play("4d")]),
        ("a card before the first lead", before_lead, 1, [play("4d")]),
        ("a card right after the declaration", before_lead, 1, [THREE_ACES, play("4d")]),
    ],
    Refusal.DECLARATION_NOT_HELD: [
        ("a napoli that is not held", declaring, 1, [NAPOLI, play("3d")]),
        ("aces that are not all held", declaring, 1, [OTHER_ACES, play("3d")]),
    ],
    Refusal.DECLARATION_ALREADY_MADE: [
        ("twice in one answer", declaring, 1, [THREE_ACES, THREE_ACES, play("3d")]),
        ("again in the next trick", declared, 1, [THREE_ACES, play("Ad")]),
    ],
    Refusal.DECLARATION_WINDOW_CLOSED: [
        ("after the first trick", second_trick, 1, [THREE_ACES, play("Ad")]),
        ("while monte is asked", monte, 1, [THREE_ACES]),
    ],
    Refusal.ACCUSE_OFF: [("in a game without declarations", plain, 1, [THREE_ACES, play("4d")])],
    Refusal.CALL_OUT_OFF: [("in a game without calling out", plain, 1, [CallOut()])],
    Refusal.MONTE_NOT_ALLOWED: [
        ("in the middle of play", plain, 1, [CallMonte()]),
        ("among the declarations", before_lead, 1, [CallMonte()]),
    ],
    Refusal.SIGNALS_OFF: [("in a game without signals", plain, 1, [play("4d", Signal.VOLO)])],
    Refusal.ONLY_LEADER_SIGNALS: [("by the second player", after_signal, 2, [play("5d", Signal.BUSSO)])],
    Refusal.DISCARD_NOT_ASKED: [("in the middle of play", plain, 1, [Discard(parse_card("4d"))])],
}

MALFORMED: dict[Refusal, list[Case]] = {
    Refusal.MALFORMED: [
        ("two cards", plain, 1, [play("4d"), play("Ac")]),
        ("a card after a call-out", declaring, 1, [CallOut(), play("3d")]),
        ("a declaration after the card", declaring, 1, [play("3d"), THREE_ACES]),
        ("a text for an action in play", plain, 1, ["4d"]),
        ("a text for a discard", trio, 0, ["4d"]),
        ("a text where monte is asked", monte, 1, ["monte"]),
        ("nothing for a declaration", before_lead, 1, [None]),
        ("two discards", trio, 0, [Discard(parse_card("4d")), Discard(parse_card("Ad"))]),
        ("monte twice", monte, 1, [CallMonte(), CallMonte()]),
        ("a text for a signal", signalling, 1, [PlayCard(parse_card("4d"), "volo")]),  # type: ignore[arg-type]
        ("a text for a declaration", declaring, 1, [Declare("A"), play("3d")]),  # type: ignore[arg-type]
    ],
    Refusal.UNKNOWN_CARD: [
        ("a card out of range", plain, 1, [PlayCard(Card(40))]),
        ("a number for a card", plain, 1, [PlayCard(13)]),  # type: ignore[arg-type]
        ("a text for a card", plain, 1, [PlayCard("4d")]),  # type: ignore[arg-type]
        ("setting aside a card out of range", trio, 0, [Discard(Card(-1))]),
    ],
}

OUT_OF_TURN: dict[Refusal, list[Case]] = {
    Refusal.NOT_YOUR_TURN: [
        ("another seat's turn", plain, 2, [play("5d")]),
        ("a seat that does not exist", plain, 9, [play("5d")]),
        ("monte asked of another", monte, 0, []),
    ],
    Refusal.MATCH_OVER: [("after the end", over, 1, [play("4d")])],
}

ERRORS = ((IllegalAction, ILLEGAL), (MalformedAction, MALFORMED), (NotYourTurn, OUT_OF_TURN))


@pytest.mark.parametrize(
    ("error", "code", "where", "seat", "actions"),
    [
        pytest.param(error, code, where, seat, actions, id=f"{code}: {name}")
        for error, by_code in ERRORS
        for code, cases in by_code.items()
        for name, where, seat, actions in cases
    ],
)
def test_a_refused_answer_says_why_and_changes_nothing(
    error: type[ActionError], code: Refusal, where: Callable[[], Match], seat: int, actions: Sequence[Any]
) -> None:
    match = where()
    before, legal = match.state(), [match.legal(other) for other in range(match.rules.players)]
    with pytest.raises(ActionError) as refused:
        match.act(seat, actions)
    assert (type(refused.value), refused.value.code) == (error, code)
    assert refused.value.reason
    assert str(refused.value) == f"{code}: {refused.value.reason}"
    assert not match.can(seat, actions)
    assert match.state() == before
    assert [match.legal(other) for other in range(match.rules.players)] == legal


def test_every_reason_is_reached() -> None:
    assert {code for _, by_code in ERRORS for code in by_code} == set(Refusal)


def test_the_reasons_are_their_own_names() -> None:
    assert all(code.value == code.name for code in Refusal)


def test_a_good_answer_is_accepted_after_a_refused_one() -> None:
    match = declaring()
    with pytest.raises(IllegalAction):
        match.act(1, [THREE_ACES, play("4d")])
    match.act(1, [THREE_ACES, play("3d")])
    assert match.standing.totals == [0, 18]


def test_a_match_that_is_over_takes_no_fault() -> None:
    match = over()
    with pytest.raises(NotYourTurn, match="MATCH_OVER"):
        match.forfeit(1)


@pytest.mark.parametrize("error", [NotationError, UnknownPreset, RuleSetError])
def test_bad_text_and_options_are_value_errors(error: type[RulesError]) -> None:
    assert issubclass(error, RulesError)
    assert issubclass(error, ValueError)
