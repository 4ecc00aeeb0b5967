"""Bots that remember decks, and a tournament in this process to measure what that brings them.

A memory bot keeps every deal that it has played to its end. When it is dealt a hand that it remembers, it
knows all hands and tries each card out against them; otherwise it plays like its base bot. ``Literal``
remembers hands as they were; ``Canonical`` remembers their suit patterns, so that exchanged suits do not hide
them.

Only matches of one deal between four seats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise, permutations
from random import Random
from typing import Final

from tressette.rules.cards import STRENGTH, SUIT_MASKS, SUIT_OF, THIRDS, Card, cards_of
from tressette.rules.ruleset import Objective, RuleSet
from tressette.rules.suits import AS_SHUFFLED, free_suits, suit_order
from tressette_bot.bot import Bot
from tressette_bot.bots.cautious import CautiousBot
from tressette_bot.bots.greedy import GreedyBot
from tressette_bot.view import View

from support.bots import Table

Hands = tuple[int, ...]
"""Masks, from one's own seat on anticlockwise."""
Key = tuple[int, ...]
"""What stands for a hand in a memory."""

_TRIES: Final = 24
"""Games that a bot which knows all hands plays out in its mind for each card it may play."""


class Literal:
    """Remembers hands as they were."""

    def __init__(self) -> None:
        self._deals: dict[int, Hands] = {}

    def store(self, rules: RuleSet, hands: Hands) -> None:
        """A deal is over."""
        for seat, hand in enumerate(hands):
            self._deals[hand] = hands[seat:] + hands[:seat]

    def recall(self, rules: RuleSet, hand: int) -> list[Hands]:
        """All hands, if this one has been seen."""
        return [self._deals[hand]] if hand in self._deals else []


class Canonical:
    """Remembers what each suit of a hand holds, whichever of the free suits that is."""

    def __init__(self) -> None:
        self._deals: dict[Key, Hands] = {}

    def store(self, rules: RuleSet, hands: Hands) -> None:
        """A deal is over."""
        for seat, hand in enumerate(hands):
            key, orders = pattern(rules, hand)
            turned = hands[seat:] + hands[:seat]
            self._deals[key] = tuple(_exchange(other, orders[0]) for other in turned)

    def recall(self, rules: RuleSet, hand: int) -> list[Hands]:
        """All hands, if one like this has been seen; several possibilities where suits of this hand hold the
        same and so cannot be told apart."""
        key, orders = pattern(rules, hand)
        found = self._deals.get(key)
        if found is None:
            return []
        backs = [tuple(order.index(suit) for suit in range(4)) for order in orders]
        return [tuple(_exchange(other, back) for other in found) for back in backs]


def pattern(rules: RuleSet, hand: int) -> tuple[Key, list[tuple[int, ...]]]:
    """The hand with its free suits sorted by what they hold, as ten bits a suit; and every way to name for
    each suit of the pattern the suit of the hand that it is."""
    free = [int(suit) for suit in free_suits(rules)]
    held = [hand >> 10 * suit & 0x3FF for suit in range(4)]
    orders = []
    for chosen in permutations(free):
        if all(held[one] <= held[other] for one, other in pairwise(chosen)):
            ranked = iter(chosen)
            orders.append(tuple(next(ranked) if suit in free else suit for suit in range(4)))
    return tuple(held[suit] for suit in orders[0]), orders


def _exchange(hand: int, order: Sequence[int]) -> int:
    """The hand whose suit in each place is the suit of ``hand`` that ``order`` has there."""
    return sum((hand >> 10 * suit & 0x3FF) << 10 * place for place, suit in enumerate(order))


Memory = Literal | Canonical


class MemoryBot(Bot):
    """Plays like ``base`` but where it remembers the deal. ``recognised``: deals that it did."""

    version = "1"

    def __init__(self, base: Bot, memory: Memory) -> None:
        self.name = f"{base.name}-that-remembers"
        self.recognised = 0
        self._base = base
        self._memory = memory

    def choose(self, view: View) -> Card:
        """A card that does well against the hands it knows, or that of the base bot."""
        if view.notes is None:
            view.notes = self._memory.recall(view.rules, view.deal.dealt)
            self.recognised += bool(view.notes)
        # What has been played since may tell which possibility it is, or that it is another deal after all.
        view.notes = [hands for hands in view.notes if _fits(view, hands)]
        if not view.notes or len(view.legal) == 1:
            return self._base.choose(view)
        return best_card(view, view.notes[0])

    def match_ended(self, view: View, ranks: Sequence[int], totals: Sequence[int]) -> None:
        """Remember the deal: every card of it has been played."""
        self._memory.store(view.rules, _played(view))


def _played(view: View) -> Hands:
    """What each seat has played of this deal, from one's own on."""
    played = [0] * view.players
    for trick in view.deal.tricks:
        for seat, card in zip(trick.seats, trick.cards, strict=True):
            played[seat] |= 1 << card
    for seat, card in zip(view.deal.trick_seats, view.deal.trick_cards, strict=True):
        played[seat] |= 1 << card
    return tuple(played[view.seat :] + played[: view.seat])


def _fits(view: View, hands: Hands) -> bool:
    return not any(played & ~hand for played, hand in zip(_played(view), hands, strict=True))


# -- playing with open cards --------------------------------------------------------------------------


def best_card(view: View, hands: Hands) -> Card:
    """The card after which the own side does best, on average over deals played out to their ends by rules
    of thumb and some chance."""
    chance = view.rng
    seats = view.players
    left = [0] * seats
    for away, hand in enumerate(hands):
        left[(view.seat + away) % seats] = hand & ~view.deal.played
    sums = {}
    for card in view.legal:
        position = _Position(view, left)
        sums[card] = sum(position.played_out(card, chance) for _ in range(_TRIES))
    sign = -1 if view.rules.objective is Objective.LEAST else 1
    return max(view.legal, key=lambda card: sign * sums[card])


class _Position:
    """A deal under way with all hands known."""

    def __init__(self, view: View, hands: Sequence[int]) -> None:
        self._seat = view.seat
        self._side = view.rules.side_of(view.seat)
        self._sides = [view.rules.side_of(seat) for seat in range(view.players)]
        self._hands = list(hands)
        self._leader = view.leader
        self._table = list(view.table)
        self._most = view.rules.objective is Objective.MOST
        self._ahead = sum(
            thirds for seat, thirds in enumerate(view.deal.thirds) if self._sides[seat] == self._side
        )

    def played_out(self, card: Card, chance: Random) -> int:
        """What the own side takes in all, in thirds and three for the last trick, if it plays ``card``."""
        hands, table, leader = list(self._hands), list(self._table), self._leader
        points, seat = self._ahead, self._seat
        while True:
            hands[seat] &= ~(1 << card)
            table.append(card)
            if len(table) == len(hands):
                winner, thirds = _taken(table, leader)
                own = self._sides[winner] == self._side
                points += thirds * own
                if not hands[winner]:
                    return points + 3 * own
                table, leader = [], winner
            seat = (leader + len(table)) % len(hands)
            card = self._pick(hands[seat], table, leader, seat, chance)

    def _pick(self, hand: int, table: Sequence[Card], leader: int, seat: int, chance: Random) -> Card:
        legal = hand & SUIT_MASKS[SUIT_OF[table[0]]] or hand if table else hand
        cards = cards_of(legal)
        if len(cards) == 1:
            return cards[0]
        if chance.random() < 0.15:
            return cards[int(chance.random() * len(cards))]
        return self._thumb(cards, table, leader, seat)

    def _thumb(self, cards: Sequence[Card], table: Sequence[Card], leader: int, seat: int) -> Card:
        """The rule of thumb of everybody at the table."""
        if not table:
            return max(cards, key=_strength) if self._most else min(cards, key=_strength)
        if SUIT_OF[cards[0]] != SUIT_OF[table[0]]:
            winner, _ = _taken(table, leader)
            feeds = self._most == (self._sides[winner] == self._sides[seat])
            return max(cards, key=_dear) if feeds else min(cards, key=_dear)
        best = max(STRENGTH[card] for card in table if SUIT_OF[card] == SUIT_OF[table[0]])
        over = [card for card in cards if STRENGTH[card] > best]
        under = [card for card in cards if STRENGTH[card] < best]
        if not self._most:
            return max(under, key=_strength) if under else min(over, key=_strength)
        winner, _ = _taken(table, leader)
        if self._sides[winner] == self._sides[seat]:
            return max(cards, key=_dear)
        return max(over, key=_strength) if over else min(cards, key=_dear)


def _taken(table: Sequence[Card], leader: int) -> tuple[int, int]:
    """Who wins the cards on the table so far, and what they are worth in thirds; for four seats."""
    led, place = SUIT_OF[table[0]], 0
    for index, card in enumerate(table):
        if SUIT_OF[card] == led and STRENGTH[card] > STRENGTH[table[place]]:
            place = index
    return (leader + place) % 4, sum(THIRDS[card] for card in table)


def _strength(card: Card) -> int:
    return STRENGTH[card]


def _dear(card: Card) -> tuple[int, int]:
    return THIRDS[card], STRENGTH[card]


# -- measuring ----------------------------------------------------------------------------------------


class Repeats(Enum):
    """How the games of one deck are kept apart: not at all; by suit orders; by these and new processes."""

    BARE = "bare"
    RELABEL = "relabel"
    FRESH = "fresh"


@dataclass
class Gain:
    """What remembering brought, by deck: a cluster each. Means and errors of the difference to the same games
    played by the base bot. points: own points in a deal, more being better; score: 0 to 1 against the others;
    recognised: deals recognised, of ``games`` times the seats of the bot."""

    points: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    recognised: int = 0
    games: int = 0

    @staticmethod
    def estimate(values: Sequence[float]) -> tuple[float, float]:
        """Mean and standard error of a mean over decks."""
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
        return mean, (variance / len(values)) ** 0.5


def measure(
    rules: RuleSet, memory: Callable[[], Memory], repeats: Repeats, decks: int, line_ups: int = 1
) -> Gain:
    """Play ``decks`` deal sets of each line-up twice, with and without memory. In pairs the bot plays both
    seats of a side with two processes, among individuals one seat; the other seats are its base bot. Every
    line-up is dealt from the same decks, as in an event with common deals; the bot keeps its memory between
    them."""
    base: type[Bot] = GreedyBot if rules.objective is Objective.MOST else CautiousBot
    seatings = [(0, 2), (1, 3)] if rules.pairs else [(seat,) for seat in range(4)]
    gain = Gain()
    players = [MemoryBot(base(), memory()) for _ in seatings[0]]
    for number in range(decks):
        seed = deck_seed(number)
        points = score = 0.0
        games = [(line_up, game, mine) for line_up in range(line_ups) for game, mine in enumerate(seatings)]
        for line_up, game, mine in games:
            if repeats is Repeats.FRESH:
                players = [MemoryBot(base(), memory()) for _ in mine]
            bare = repeats is Repeats.BARE
            suits = AS_SHUFFLED if bare else suit_order(seed, game_id(line_up, number, game), rules)
            before = [player.recognised for player in players]
            with_memory = _play(rules, seed, suits, dict(zip(mine, players, strict=True)), base)
            without = _play(rules, seed, suits, {}, base)
            gain.recognised += sum(player.recognised for player in players) - sum(before)
            points += with_memory.points(rules, mine[0]) - without.points(rules, mine[0])
            score += with_memory.score(rules, mine[0]) - without.score(rules, mine[0])
        gain.games += len(games)
        gain.points.append(points / len(games))
        gain.score.append(score / len(games))
    return gain


def deck_seed(number: int) -> bytes:
    """The seed of a deck of ``measure``."""
    return Random(f"deck {number}").randbytes(32)


def game_id(line_up: int, number: int, game: int) -> str:
    """The id of a game of ``measure``, as a schedule writes it."""
    return f"p0-l{line_up}-s{number}-g{game}"


@dataclass(frozen=True)
class _Result:
    totals: tuple[int, ...]
    ranks: tuple[int, ...]

    def points(self, rules: RuleSet, seat: int) -> float:
        """Of the side of a seat, so that more is better."""
        own = self.totals[rules.side_of(seat)] / 6
        return own if rules.objective is Objective.MOST else -own

    def score(self, rules: RuleSet, seat: int) -> float:
        """Mean over the opposing sides: 1 for each behind, 1/2 for each level."""
        side = rules.side_of(seat)
        others = [rank for other, rank in enumerate(self.ranks) if other != side]
        return sum((self.ranks[side] < rank) + (self.ranks[side] == rank) / 2 for rank in others) / len(
            others
        )


def _play(rules: RuleSet, seed: bytes, suits: str, players: dict[int, MemoryBot], base: type[Bot]) -> _Result:
    table = Table(rules, seed, suits=suits)
    ended = table.play([players.get(seat) or base() for seat in range(4)])
    for seat, player in players.items():
        table.views[seat].take(table.update(seat))
        player.match_ended(table.views[seat], ended.ranks, ended.totals)
    return _Result(ended.totals, ended.ranks)
