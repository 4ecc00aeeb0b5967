"""Somebody who only reads a match's events and the rules' text, and objects to anything that is wrong.

Written without the engine's own tables: strengths, values and what a viewer may know are stated here
once more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from tressette.rules.cards import CARDS, Card, cards_of
from tressette.rules.deck import Phase
from tressette.rules.events import (
    CardDiscarded,
    CardDrawn,
    CardPlayed,
    DealEnd,
    DealScored,
    DealStarted,
    DeclarationMade,
    Event,
    MatchEnded,
    PartnersDrawn,
    TrickWon,
    redact,
)
from tressette.rules.ruleset import RuleSet

_STRONGEST_FIRST = "32ARCF7654"
_THIRDS = {"A": 3, "2": 1, "3": 1, "R": 1, "C": 1, "F": 1}
_ACE_OF_BASTONI = {"normal": 3, "instead": 33, "extra": 36}
_WHOLE_TOTAL = {"normal": 11, "instead": 21, "extra": 22}
_FLOOR_LOSES = {2: (0,), 3: (0, 1), 4: (0, 1, 2), 5: (0, 1, 2)}
"""By number of sides, how many points dropped fractions can take from the whole total."""
_BONUS = {"1": 6, "1/2": 3, "0": 0}


def mentioned(value: object) -> set[Card]:
    """Every card that an event names, wherever in it."""
    if isinstance(value, Card):
        return {value}
    if isinstance(value, tuple):
        return {card for item in value for card in mentioned(item)}
    if dataclasses.is_dataclass(value):
        found: set[Card] = set()
        for field in dataclasses.fields(value):
            part = getattr(value, field.name)
            if field.name in ("hands", "cards"):
                masks = part if isinstance(part, tuple) else (part,)
                found |= {card for mask in masks for card in cards_of(mask or 0)}
            else:
                found |= mentioned(part)
        return found
    return set()


class Witness:
    """hands: by seat; stock: number of cards; known: by seat, the cards of this deal that it may know;
    public: those that anybody may know; played: number of cards played in the match."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules
        self.hands: list[set[Card]] = []
        self.stock = 0
        self.known: list[set[Card]] = [set() for _ in range(rules.players)]
        self.public: set[Card] = set()
        self.table: list[tuple[int, Card]] = []
        self.piles: list[set[Card]] = []
        self.tricks: list[int] = []
        self.aside: Card | None = None
        self.deck: set[Card] = set()
        self.declared = [0] * rules.side_count
        self.totals = [0] * rules.side_count
        self.ended = False

    def see(self, events: Iterable[Event]) -> None:
        """Read on, and assert that all is as it must be."""
        for event in events:
            assert not self.ended, "an event after the end"
            self._learn(event)
            self._check_views(event)
            match event:
                case DealStarted():
                    self._dealt(event)
                case CardPlayed():
                    self._played(event.seat, event.card)
                case TrickWon():
                    self._won(event)
                case CardDrawn():
                    self._drawn(event.seat, event.card)
                case CardDiscarded(seat=seat, card=card):
                    assert card in self.hands[seat]
                    self.hands[seat].discard(card)
                    self.aside = card
                case DeclarationMade():
                    assert set(cards_of(event.declaration.cards)) <= self.hands[event.seat]
                    self.declared[self._side(event.seat)] += 6 * event.declaration.points
                case DealScored():
                    self._scored(event)
                case MatchEnded():
                    self.ended = True
                    assert list(event.totals) == self.totals
                    assert_ranks(event.ranks)

    # -- what may be known ----------------------------------------------------------------------

    def _learn(self, event: Event) -> None:
        if isinstance(event, PartnersDrawn):
            self.public = set(CARDS)
        elif isinstance(event, DealStarted):
            self.public = set()
            self.known = [set(cards_of(hand or 0)) for hand in event.hands]
        elif isinstance(event, CardPlayed | CardDrawn):
            self.public.add(event.card)
        elif isinstance(event, DeclarationMade):
            self.public |= set(cards_of(event.declaration.cards))
        elif isinstance(event, DealScored) and self.aside is not None:
            self.public.add(self.aside)

    def _check_views(self, event: Event) -> None:
        seats = range(self.rules.players)
        for viewers in [(), (0, self.rules.players - 1), *((seat,) for seat in seats)]:
            seen = redact(event, viewers)
            assert type(seen) is type(event)
            may = self.public.union(*(self.known[seat] for seat in viewers))
            assert mentioned(seen) == mentioned(event) & may, f"{viewers} of {event}"
        assert redact(event, seats) == event

    # -- what happens ---------------------------------------------------------------------------

    def _side(self, seat: int) -> int:
        return seat % 2 if self.rules.sides == "pairs" else seat

    def _dealt(self, event: DealStarted) -> None:
        hands = [set(cards_of(hand or 0)) for hand in event.hands]
        active = [hand for hand in hands if hand]
        self.deck = set(CARDS)
        if len(active) == 3 and self.rules.layout_3 == "remove_card":
            self.deck -= {self.rules.removed_card}
        sizes = sorted(map(len, active))
        discards = len(active) == 3 and len(self.deck) == 40
        assert sizes == {2: [10, 10], 3: [13, 13, 13 + discards], 4: [10] * 4, 5: [8] * 5}[len(active)]
        assert set().union(*hands) <= self.deck
        assert sum(sizes) + event.stock == len(self.deck)
        assert hands[event.dealer]
        assert hands[event.leader]
        self.hands, self.stock, self.table, self.aside = hands, event.stock, [], None
        self.piles = [set() for _ in hands]
        self.tricks = [0] * len(hands)
        self.declared = [0] * self.rules.side_count
        self.active = [seat for seat, hand in enumerate(hands) if hand]

    def _played(self, seat: int, card: Card) -> None:
        hand = self.hands[seat]
        assert card in hand
        if self.table:
            led = self.table[0][1].suit
            assert card.suit == led or not any(other.suit == led for other in hand), "suit not followed"
        hand.remove(card)
        self.table.append((seat, card))

    def _won(self, event: TrickWon) -> None:
        assert sorted(seat for seat, _ in self.table) == self.active
        led = self.table[0][1].suit
        following = [(seat, card) for seat, card in self.table if card.suit == led]
        winner, _ = min(following, key=lambda play: _STRONGEST_FIRST.index(str(play[1])[0]))
        cards = {card for _, card in self.table}
        assert (event.seat, event.thirds) == (winner, self._thirds(cards))
        self.piles[winner] |= cards
        self.tricks[winner] += 1
        self.table = []

    def _drawn(self, seat: int, card: Card) -> None:
        assert card in self.deck
        assert not any(card in cards for cards in (*self.hands, *self.piles))
        self.hands[seat].add(card)
        self.stock -= 1

    # -- what is counted ------------------------------------------------------------------------

    def _thirds(self, cards: Iterable[Card]) -> int:
        ace = _ACE_OF_BASTONI[self.rules.ace_of_bastoni]
        return sum(ace if str(card) == "Ab" else _THIRDS.get(str(card)[0], 0) for card in cards)

    def _scored(self, event: DealScored) -> None:
        sides = {self._side(seat) for seat in self.active}
        assert {side for side, score in enumerate(event.sides) if score is not None} == sides
        recorded = [0 if side is None else side.points for side in event.sides]
        if event.ended_by is DealEnd.PLAYED:
            self._played_out(event, sides)
        if event.ended_by is DealEnd.WRONG_CALL_OUT:
            caller = recorded.index(0)
            self.declared[caller] = 0
        assert [0 if side is None else side.declared for side in event.sides] == [
            points if side in sides else 0 for side, points in enumerate(self.declared)
        ]
        if event.phase is Phase.MAIN:
            for side, value in enumerate(recorded):
                self.totals[side] += value + self.declared[side]
        assert list(event.totals) == self.totals

    def _played_out(self, event: DealScored, sides: set[int]) -> None:
        assert event.last_trick is not None
        assert not any(self.hands)
        assert self.stock == 0
        piles: dict[int, set[Card]] = {side: set() for side in sides}
        for seat in self.active:
            piles[self._side(seat)] |= self.piles[seat]
        if self.aside is not None:
            piles[event.last_trick].add(self.aside)
        assert set().union(*piles.values()) == self.deck
        assert sum(map(len, piles.values())) == len(self.deck)
        for side, score in enumerate(event.sides):
            if score is not None:
                tricks = sum(n for seat, n in enumerate(self.tricks) if self._side(seat) == side)
                assert (score.thirds, score.tricks) == (self._thirds(piles[side]), tricks)
        self._check_sum(event, len(sides))
        if event.cappotto is None:
            assert all(score is None or score.points == score.counted for score in event.sides)

    def _check_sum(self, event: DealScored, sides: int) -> None:
        """The totals that rules.md states, before cappotto, declarations and faults."""
        rules = self.rules
        counted = sum(score.counted for score in event.sides if score)
        total = _WHOLE_TOTAL[rules.ace_of_bastoni]
        bonus = _BONUS[str(rules.options()["last_trick_bonus"])]
        if rules.rounding == "remainder_to_last":
            assert counted == 6 * total
        elif rules.rounding == "exact":
            assert counted == 6 * (total - 1) + 4 + bonus
        else:
            assert counted in [6 * (total - 1 - lost) + bonus for lost in _FLOOR_LOSES[sides]]


def assert_ranks(ranks: Sequence[int]) -> None:
    """Places are shared as 1, 1, 3."""
    assert sorted(ranks) == sorted(1 + sum(other < rank for other in ranks) for rank in ranks)
