"""Who meets whom, and who sits where: line-ups and seatings. Pure and deterministic.

Vocabulary: a **line-up** is the bots of one table, one name for each seat; in pairs the first two names are
partners against the last two. A **seating** is the same names in seat order (pairs: seats 0 and 2 are one
side, 1 and 3 the other). A **deal set** plays one deck once in each seating of its line-up. A **group** is
the set of different bots that a line-up is made of. Source: the tournament design, "Line-ups and seatings".

1. Seatings that are identical by bot are played once, in order of first appearance.
2. Cyclic individuals: deal set s takes the s-th circular order, counted round, in its rotations. The design
   asks for this with 4 players (6 orders); 3 (2 orders) and 5 (24) do the same, so that over a run nobody
   always plays after the same neighbour. With copies only the orders that differ by bot count.
3. Mixed partners: ``cyclic`` keeps the partners, so that a group gives three line-ups of 8 seatings; ``all``
   gives one line-up of all 24. ``once`` plays one seating in a set, of those that keep the partners.
4. More groups than allowed: see ``balanced_groups`` for what is guaranteed.
5. What a deal set plays depends on a line-up's **pattern** only, which bots are the same (A B B is 0 1 1),
   so that seatings are worked out once for each pattern, however many line-ups there are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import combinations, permutations
from typing import Final, NamedTuple, TypeVar

LineUp = tuple[str, ...]
Seating = tuple[str, ...]
Group = tuple[int, ...]

_T = TypeVar("_T")
_Who = TypeVar("_Who", str, int)
_Pattern = tuple[int, ...]


class Seatings(StrEnum):
    """How many of the possible seatings a deal set plays. ONCE: a single one, the next at each set."""

    CYCLIC = "cyclic"
    ALL = "all"
    ONCE = "once"


class Pairs(StrEnum):
    """Who sits opposite a bot in pairs: its own copy (AA v BB), or another bot."""

    COPIES = "copies"
    MIXED = "mixed"


class Copies(StrEnum):
    """Whether two bots may fill a table of individuals: 1 v the rest both ways, or half and half."""

    NONE = "none"
    ONE_AGAINST_REST = "one-against-rest"
    HALVES = "halves"


@dataclass(frozen=True, slots=True)
class Table:
    """What a preset seats and how the tournament wants it filled. ``seats``: 2 to 5, 4 if ``paired``."""

    seats: int
    paired: bool = False
    seatings: Seatings = Seatings.CYCLIC
    pairs: Pairs = Pairs.COPIES
    copies: Copies = Copies.NONE

    @property
    def different_bots(self) -> int:
        """How many different bots one table needs."""
        two = self.pairs is Pairs.COPIES if self.paired else self.copies is not Copies.NONE
        return 2 if two else self.seats

    @property
    def most_seats(self) -> int:
        """The most seats that one bot occupies in a game."""
        if self.different_bots == self.seats:
            return 1
        if self.paired:
            return 2
        return self.seats - 1 if self.copies is Copies.ONE_AGAINST_REST else (self.seats + 1) // 2


def line_ups(bots: Sequence[str], table: Table, max_groups: int, seed: str) -> tuple[LineUp, ...]:
    """Every line-up of the bots at a table, in an order shuffled by ``seed``.

    At most ``max_groups`` groups of bots meet (see ``balanced_groups``); a group gives one line-up, or three
    with mixed fixed partners, or two where copies split a table unevenly. Raises ValueError for bots named
    twice, for fewer bots than a table needs, and for a ``max_groups`` that ``balanced_groups`` refuses.
    """
    if len(set(bots)) != len(bots):
        raise ValueError("a bot is named twice")
    rng = random.Random(f"line-ups/{seed}")
    groups = list(balanced_groups(len(bots), table.different_bots, max_groups, seed))
    # Otherwise the first bot would play all its games first, and early standings would say little.
    _shuffle(groups, rng)
    return tuple(line_up for group in groups for line_up in fill(table, [bots[i] for i in group]))


def gauntlet_line_ups(
    challengers: Sequence[str], field: Sequence[str], table: Table, max_groups: int, seed: str
) -> tuple[LineUp, ...]:
    """Every line-up of one challenger among bots of the field, in an order shuffled by ``seed``.

    All challengers meet the same groups of the field, at most ``max_groups`` tables in all; two-bot tables
    are never limited. Raises ValueError as ``line_ups`` does, ``max_groups`` being shared by the challengers.
    """
    if len({*challengers, *field}) != len(challengers) + len(field):
        raise ValueError("a bot is named twice")
    others = table.different_bots - 1
    if others == 1:
        groups: list[Group] = [(bot,) for bot in range(len(field))]
    else:
        groups = list(balanced_groups(len(field), others, max_groups // max(len(challengers), 1), seed))
    _shuffle(groups, random.Random(f"line-ups/{seed}"))
    return tuple(
        line_up
        for group in groups
        for challenger in challengers
        for line_up in fill(table, [challenger, *(field[i] for i in group)])
    )


def seatings(line_up: LineUp, table: Table, set_number: int) -> tuple[Seating, ...]:
    """The different seatings that deal set ``set_number`` (0 or more) plays, one game each, in order."""
    names = tuple(dict.fromkeys(line_up))
    cycle = _cycle(tuple(map(names.index, line_up)), table)
    return tuple(tuple(names[bot] for bot in seating) for seating in cycle[set_number % len(cycle)])


def games_of(line_up: LineUp, table: Table, first_set: int, sets: int) -> int:
    """How many games a line-up plays in ``sets`` deal sets from ``first_set`` on."""
    names = tuple(dict.fromkeys(line_up))
    sizes = [len(found) for found in _cycle(tuple(map(names.index, line_up)), table)]
    whole, more = divmod(sets, len(sizes))
    return whole * sum(sizes) + sum(sizes[(first_set + i) % len(sizes)] for i in range(more))


@lru_cache(maxsize=1024)
def _cycle(pattern: _Pattern, table: Table) -> tuple[tuple[_Pattern, ...], ...]:
    """What deal sets 0, 1, ... play, until it begins again. ``Seatings.ONCE`` takes all seatings of pairs, of
    individuals all rotations of each circular order in turn: every bot sits everywhere equally often."""
    if table.seatings is Seatings.ONCE:
        orders = circular_orders(pattern)
        once = _beside(pattern) if table.paired else (turn for order in orders for turn in _rotations(order))
        return tuple((seating,) for seating in _unique(once))
    if table.paired and not (table.pairs is Pairs.MIXED and table.seatings is Seatings.ALL):
        return (_unique(_beside(pattern)),)
    if table.seatings is Seatings.ALL:
        return (_unique(permutations(pattern)),)
    return tuple(_unique(_rotations(order)) for order in circular_orders(pattern))


def circular_orders(line_up: tuple[_Who, ...]) -> tuple[tuple[_Who, ...], ...]:
    """The ways round the table that differ by bot: (k-1)! for k different bots, fewer with copies."""
    orders: dict[tuple[_Who, ...], tuple[_Who, ...]] = {}
    for order in permutations(line_up):
        orders.setdefault(min(_rotations(order)), order)
    return tuple(orders.values())


def balanced_groups(bots: int, size: int, limit: int, seed: str) -> tuple[Group, ...]:
    """Groups of ``size`` different bots out of ``bots``, as sorted tuples of bot indices.

    All of them if they are at most ``limit``. Else a cyclic design under a seeded renaming of the bots,
    found by seeded local search, as large as the search finds below the limit. Guaranteed, whatever the
    search does: no group twice, numbers of meetings of any two pairs of bots differ by at most one, every
    bot is in equally many groups, and the meetings connect all bots. The number of groups is then a multiple
    of the number of bots and at most ``limit``; only where no design below the limit was found (5 seats, 20
    or 22 bots, one group for each bot) is it the next above the limit.
    Raises ValueError for fewer bots than ``size``, or a limit under both the number of all groups and the
    number of bots.
    """
    if not 2 <= size <= bots:
        raise ValueError(f"a table of {size} different bots cannot be filled from {bots}")
    everything = math.comb(bots, size)
    if everything <= limit:
        return tuple(combinations(range(bots), size))
    if limit < bots:
        raise ValueError(f"a balanced choice among {everything} tables of {bots} bots needs at least {bots}")
    wished, most = limit // bots, everything // bots
    for cycles in (*range(wished, 0, -1), *range(wished + 1, most + 1)):
        rng = random.Random(f"groups/{bots}/{size}/{cycles}/{seed}")
        base = _search(bots, size, cycles, rng)
        if base is not None:
            return _develop(bots, base, rng)
    return tuple(combinations(range(bots), size))


def fill(table: Table, group: Sequence[str]) -> tuple[LineUp, ...]:
    """The line-ups that one group of ``table.different_bots`` bots gives: one, two or three (see
    ``line_ups``)."""
    if table.different_bots == 2:
        return _two_bots(table, *group)
    if table.paired and table.seatings is not Seatings.ALL:
        a, b, c, d = group
        return ((a, b, c, d), (a, c, b, d), (a, d, b, c))
    return (tuple(group),)


def _two_bots(table: Table, a: str, b: str) -> tuple[LineUp, ...]:
    if table.paired:
        return ((a, a, b, b),)
    few = table.seats - table.most_seats
    filled = [(one,) * few + (other,) * (table.seats - few) for one, other in ((a, b), (b, a))]
    return _unique(tuple(sorted(line_up)) for line_up in filled)


def _beside(line_up: tuple[_T, ...]) -> Iterator[tuple[_T, ...]]:
    """The 8 seatings that keep the partners: which side sits first, and each pair's two ways round."""
    a, b, c, d = line_up
    for first, second in (((a, b), (c, d)), ((c, d), (a, b))):
        for p, q in (first, first[::-1]):
            for r, s in (second, second[::-1]):
                yield (p, r, q, s)


def _rotations(order: tuple[_T, ...]) -> Iterator[tuple[_T, ...]]:
    return (order[i:] + order[:i] for i in range(len(order)))


def _unique(items: Iterable[tuple[_T, ...]]) -> tuple[tuple[_T, ...], ...]:
    return tuple(dict.fromkeys(items))


# A cyclic design. Bots are the residues modulo n; a base block is a set of k of them and stands for its n
# translates. A pair of bots at distance d then meets once for each pair of members at distance d in the
# base blocks, so that balance is a matter of n // 2 counts, however many groups there are.

_STEPS: Final = 20_000
"""Moves of one local search: about a fifth of a second, more than nearly every design needs."""
_HEAT: Final = 0.3
"""How much worse a move may make the balance and still be kept now and then, to leave dead ends."""


class _Block(NamedTuple):
    members: Group
    shape: Group  # the gaps between members round the circle, in the least rotation: names the orbit
    distances: Group  # of each pair of members, less one


class _Base:
    """Base blocks with different orbits, and how often each distance occurs in them."""

    def __init__(self, bots: int, size: int, rng: random.Random) -> None:
        self.bots, self.size, self.rng = bots, size, rng
        self.blocks: list[_Block] = []
        self.shapes: set[Group] = set()
        self.counts = [0] * (bots // 2)

    def draw(self, keep: Group) -> _Block | None:
        """A random block around these members; None if its orbit is short or taken."""
        chosen = set(keep)
        while len(chosen) < self.size:
            chosen.add(_below(self.bots, self.rng))
        members = tuple(sorted(chosen))
        gaps = tuple((b - a) % self.bots for a, b in zip(members, members[1:] + members[:1], strict=True))
        turns = list(_rotations(gaps))
        shape = min(turns)
        if shape in self.shapes or turns.count(shape) > 1:
            return None
        distances = tuple(min(b - a, self.bots - b + a) - 1 for a, b in combinations(members, 2))
        return _Block(members, shape, distances)

    def put(self, block: _Block, sign: int) -> int:
        """Count a block in (+1) or out (-1); the change of the sum of squared meetings over pairs."""
        change = 0
        for distance in block.distances:
            # Half way round there are half as many pairs of bots, and the translates give each two meetings.
            step = 2 if 2 * (distance + 1) == self.bots else 1
            change += 2 * sign * self.counts[distance] + step
            self.counts[distance] += sign * step
        return change

    def swap(self, index: int, new: _Block) -> None:
        """Replace a block if that does not make the balance worse, or now and then although it does."""
        old = self.blocks[index]
        worse = self.put(old, -1) + self.put(new, +1)
        if worse > 0 and self.rng.random() >= math.exp(-worse / _HEAT):
            self.put(new, -1)
            self.put(old, +1)
            return
        self.blocks[index] = new
        self.shapes.remove(old.shape)
        self.shapes.add(new.shape)

    def balanced(self) -> bool:
        """Pair counts differ by at most one and the groups connect all bots."""
        if max(self.counts) - min(self.counts) > 1:
            return False
        return math.gcd(self.bots, *(d + 1 for d, count in enumerate(self.counts) if count)) == 1


def _search(bots: int, size: int, cycles: int, rng: random.Random) -> list[Group] | None:
    """``cycles`` base blocks of a balanced design, or None if none was found."""
    base = _Base(bots, size, rng)
    for _ in range(_STEPS):
        if len(base.blocks) < cycles:
            block = base.draw((0,))
            if block is not None:
                base.blocks.append(block)
                base.shapes.add(block.shape)
                base.put(block, +1)
        elif base.balanced():
            return [block.members for block in base.blocks]
        else:
            index = _below(cycles, rng)
            members = base.blocks[index].members
            leaving = _below(size, rng)
            block = base.draw(members[:leaving] + members[leaving + 1 :])
            if block is not None:
                base.swap(index, block)
    return None


def _develop(bots: int, base: Iterable[Group], rng: random.Random) -> tuple[Group, ...]:
    """All translates of the base blocks, with the bots renamed at random."""
    names = list(range(bots))
    _shuffle(names, rng)
    return tuple(
        tuple(sorted(names[(member + shift) % bots] for member in block))
        for block in base
        for shift in range(bots)
    )


def _below(bound: int, rng: random.Random) -> int:
    # Only random() is promised to give the same numbers in every Python version, and a run may be
    # resumed on another one.
    return int(rng.random() * bound)


def _shuffle(items: list[_T], rng: random.Random) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = _below(last + 1, rng)
        items[last], items[other] = items[other], items[last]
