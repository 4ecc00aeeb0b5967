"""Asks a bot what a turn wants and makes the answer of it."""

from __future__ import annotations

import logging
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from tressette.rules.cards import Card
from tressette.v1 import card_pb2
from tressette.v1.arena_service_pb2 import Answer

from tressette_bot.bot import Bot
from tressette_bot.messages import CARD_VALUES, SIGNAL_VALUES, name_declaration
from tressette_bot.view import View

_log: Final = logging.getLogger("tressette_bot")


def decide(bot: Bot, view: View) -> Answer:
    """The bot's answer to the turn of ``view``. What the bot raises passes through, the turn is logged."""
    answer = Answer(handle=view.handle, turn_id=view.turn_id)
    with _logged(view):
        if _wants_card(bot, view, answer):
            _play(bot, view, answer, bot.choose(view))
    return answer


def decide_many(bot: Bot, views: Sequence[View]) -> list[Answer]:
    """The bot's answers to several turns, all their cards chosen by one ``choose_many``. Raises
    ValueError if that gives more or fewer cards than were asked for. What the bot raises passes through,
    the turn is logged."""
    answers = [Answer(handle=view.handle, turn_id=view.turn_id) for view in views]
    waiting: list[tuple[View, Answer]] = []
    for view, answer in zip(views, answers, strict=True):
        with _logged(view):
            if _wants_card(bot, view, answer):
                waiting.append((view, answer))
    if waiting:
        asked = [view for view, _ in waiting]
        with _logged(*asked):
            chosen = list(zip(waiting, bot.choose_many(asked), strict=True))
        for (view, answer), card in chosen:
            with _logged(view):
                _play(bot, view, answer, card)
    return answers


@contextmanager
def _logged(view: View, *others: View) -> Iterator[None]:
    """Log the turn at which the bot raises: of several asked at once the first, and how many more."""
    try:
        yield
    except Exception as error:
        # The commitment finds the game in a record; the handle means something to the arena alone.
        _log.error(
            "seat %d, turn %d of the match with deck commitment %s%s: the bot raised %s",
            view.seat,
            view.turn_id,
            view.deck_commitment.hex(),
            f" and of {len(others)} more" if others else "",
            type(error).__name__,
        )
        raise


def _wants_card(bot: Bot, view: View, answer: Answer) -> bool:
    """Decide all but the card; returns whether a card is still to be chosen."""
    if view.plain and view.legal:
        return True
    if view.declarable:
        for declaration in bot.declare(view):
            name_declaration(answer.declarations.add(), declaration)
    if view.legal:
        answer.call_out = view.may_call_out and bot.call_out(view)
        return not answer.call_out
    if view.may_monte:
        answer.monte = bot.monte(view)
    elif view.discards:
        answer.discard = _value(bot.discard(view))
    return False


def _play(bot: Bot, view: View, answer: Answer, card: Card) -> None:
    answer.card = _value(card)
    if not view.plain and view.may_signal and (gesture := bot.signal(view, card)) is not None:
        answer.signal = SIGNAL_VALUES[gesture]


def _value(card: Card) -> card_pb2.Card.ValueType:
    index = operator.index(card)
    if not 0 <= index < len(CARD_VALUES):  # -1, which a bot may well come to by mistake, would be a card
        raise ValueError(f"card {index} is no card: they are 0 to 39")
    return CARD_VALUES[index]
