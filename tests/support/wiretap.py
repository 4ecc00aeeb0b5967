"""What the arena would send, without sending it: each player's next message, as the bytes that go out."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from google.protobuf.message import Message
from tressette.play.session import Seat
from tressette.rules.cards import CARDS, Card, cards_of
from tressette.rules.events import (
    CardDrawn,
    CardPlayed,
    DealScored,
    DealStarted,
    DeclarationMade,
    Event,
    PartnersDrawn,
)
from tressette.rules.ruleset import RuleSet
from tressette.v1 import arena_service_pb2 as pb
from tressette.wire.updates import next_response

from support.matches import random_answer
from support.tables import Player, Table, game_spec

UNIX_MS = 1_800_000_000_000


def sent_to(player: Player) -> tuple[list[Seat], pb.Batch]:
    """The seats with something to be told, and the batch that tells them."""
    seats = list(player.session.news)
    response = next_response(player.session, player.table.clock(), UNIX_MS)
    if response is None:
        return seats, pb.Batch()
    return seats, pb.PlayResponse.FromString(response).batch


def playing(rules: RuleSet, seed: int, table: Table | None = None) -> Iterator[tuple[Seat, pb.MatchUpdate]]:
    """Play one match at random, with a refused answer now and then; every update and its seat."""
    chance = Random(seed)
    table = table or Table()
    players = table.sit(game_spec(rules=rules, seed=seed.to_bytes(32, "big")))
    (game,) = table.arena.games
    while True:
        told = False
        for player in players:
            seats, batch = sent_to(player)
            for seat, update in zip(seats, batch.updates, strict=True):
                told = True
                yield seat, update
            for seat in seats:
                if seat.open:
                    fine = chance.random() < 0.97
                    answer = random_answer(game.match, seat.number, chance) if fine else [None]
                    player.session.answer(seat.handle, seat.turn, answer)  # type: ignore[arg-type]
        if not told:
            assert len(table.results) == 1
            table.arena.close()
            return


def cards_in(message: Message) -> set[Card]:
    """Every card that a message names, wherever in it."""
    found: set[Card] = set()
    for field, value in message.ListFields():
        values: Any = value if field.is_repeated else [value]
        if field.message_type is not None:
            for one in values:
                found |= cards_in(one)
        elif field.enum_type is not None and field.enum_type.name == "Card":
            found |= {CARDS[one - 1] for one in values if one}
    return found


class Knowledge:
    """The cards of the deal under way that one seat may know, by the true events of the match."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.cards: set[Card] = set()

    def learn(self, event: Event) -> None:
        """Take in the next event of the log."""
        if isinstance(event, PartnersDrawn):
            self.cards = set(CARDS)
        elif isinstance(event, DealStarted):
            self.cards = set(cards_of(event.hands[self.number] or 0))
        elif isinstance(event, CardPlayed | CardDrawn):
            self.cards.add(event.card)
        elif isinstance(event, DeclarationMade):
            self.cards |= set(cards_of(event.declaration.cards))
        elif isinstance(event, DealScored) and event.set_aside is not None:
            self.cards.add(event.set_aside)
