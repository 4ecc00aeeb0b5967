"""Driving matches in tests: hands that hold what a test needs, answers as text, and answers at random.

An answer as text is its actions joined by commas: ``+A`` or ``+d`` declares (a rank letter: bongioco, a
suit letter: napoli), ``out`` calls out, ``monte`` calls monte, ``x4c`` sets a card aside, ``4c`` plays
it, ``4c!volo`` with a signal; ``-`` is the empty answer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tressette.rules.accuse import Declaration, declarations
from tressette.rules.actions import (
    Action,
    CallMonte,
    CallOut,
    Declare,
    Discard,
    PlayCard,
    Signal,
)
from tressette.rules.cards import CARDS, Card, cards_of, mask_of, parse_card, parse_cards, thirds_of
from tressette.rules.events import DealScored, Event, TrickWon
from tressette.rules.match import Match, Stage
from tressette.rules.ruleset import NapoliExtension

Hands = list[tuple[Card, ...]]


def hands_with(
    *given: str, size: int | Sequence[int] = 10, stock: str = "", without: str = ""
) -> tuple[Hands, tuple[Card, ...]]:
    """Hands that begin with the given cards, filled up so that nothing else happens: no declaration and
    no hand under one point but those that the given cards make. Returns the hands and the stock, which
    begins with ``stock``. ``without``: a card that is not in the deck."""
    sizes = [size] * len(given) if isinstance(size, int) else list(size)
    starts = [parse_cards(cards) for cards in given]
    top = parse_cards(stock)
    used = mask_of([card for start in starts for card in start] + list(top) + list(parse_cards(without)))
    rest = [card for card in CARDS if not used >> card & 1]
    chance = random.Random(0)
    for _ in range(10_000):
        chance.shuffle(rest)
        hands, position = [], 0
        for start, count in zip(starts, sizes, strict=True):
            missing = count - len(start)
            hands.append(tuple(sorted(start + tuple(rest[position : position + missing]))))
            position += missing
        if all(map(_quiet, hands, starts, sizes)):
            return hands, top + tuple(rest[position:])
    raise AssertionError("no such hands")


def _quiet(hand: Sequence[Card], start: Sequence[Card], size: int) -> bool:
    extension = NapoliExtension.NUMERIC
    wanted = declarations(mask_of(start), extension)
    if declarations(mask_of(hand), extension) != wanted:
        return False
    return len(start) == size or thirds_of(mask_of(hand)) >= 3


def held(match: Match, seat: int, of: str) -> Declaration:
    """The declaration of this rank or suit that ``seat`` holds."""
    found = declarations(match.deal.hands[seat], match.rules.napoli_extension)
    return next(one for one in found if one.of == of)


def parse_answer(match: Match, seat: int, text: str) -> list[Action]:
    """The actions of an answer written as text, see above."""
    return [_action(match, seat, word) for word in text.split(",")] if text != "-" else []


def _action(match: Match, seat: int, word: str) -> Action:
    if word == "monte":
        return CallMonte()
    if word == "out":
        return CallOut()
    if word[0] == "+":
        return Declare(held(match, seat, word[1]))
    if word[0] == "x":
        return Discard(parse_card(word[1:]))
    card, _, signal = word.partition("!")
    return PlayCard(parse_card(card), Signal(signal) if signal else None)


def answer_text(actions: Sequence[Action]) -> str:
    """The inverse of ``parse_answer``."""
    return ",".join(map(_word, actions)) or "-"


def _word(action: Action) -> str:
    if isinstance(action, CallMonte):
        return "monte"
    if isinstance(action, CallOut):
        return "out"
    if isinstance(action, Declare):
        return f"+{action.declaration.of}"
    if isinstance(action, Discard):
        return f"x{action.card}"
    return f"{action.card}!{action.signal}" if action.signal else str(action.card)


def answer(match: Match, *texts: str) -> list[Event]:
    """Give these answers, each for the seat that is asked first; returns what happened."""
    events: list[Event] = []
    for text in texts:
        seat = match.pending[0]
        events += match.act(seat, parse_answer(match, seat, text))
    return events


def finish_trick(match: Match) -> list[Event]:
    """Play first legal cards until the trick under way is complete."""
    events: list[Event] = []
    while not any(isinstance(event, TrickWon) for event in events):
        events += match.act(match.pending[0], plain_answer(match, match.pending[0]))
    return events


def finish_deal(match: Match) -> list[Event]:
    """Play the first legal card (or decline, or discard) until a deal has been scored."""
    events: list[Event] = []
    while not any(isinstance(event, DealScored) for event in events):
        events += match.act(match.pending[0], plain_answer(match, match.pending[0]))
    return events


def plain_answer(match: Match, seat: int) -> list[Action]:
    """The first legal card or discard, else the empty answer."""
    legal = match.legal(seat)
    if legal.cards:
        return [PlayCard(cards_of(legal.cards)[0])]
    return [Discard(cards_of(legal.discards)[0])] if legal.discards else []


def random_answer(match: Match, seat: int, chance: random.Random) -> list[Action]:
    """A legal answer: each declaration with an even chance, now and then a call-out, monte or signal."""
    legal = match.legal(seat)
    actions: list[Action] = [Declare(one) for one in legal.declarations if chance.random() < 0.5]
    if legal.call_out and chance.random() < 0.01:
        return [*actions, CallOut()]
    if legal.monte and chance.random() < 0.5:
        return [CallMonte()]
    if legal.discards:
        return [Discard(chance.choice(cards_of(legal.discards)))]
    if legal.cards:
        signal = chance.choice(list(Signal)) if legal.signals and chance.random() < 0.3 else None
        actions.append(PlayCard(chance.choice(cards_of(legal.cards)), signal))
    return actions


def declines(match: Match) -> bool:
    """Whether the empty answer is possible now."""
    return match.stage in (Stage.MONTE, Stage.DECLARE)
