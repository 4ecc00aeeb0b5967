"""Who holds what after the deal: deck order mapped to hands and stock.

Source: 000 (two to five players), 001 and 003 (two players), 003 (a card removed for three), 004
(packets).

Decisions:
1. Dealing starts at the dealer's right and goes round by rising seat numbers, over active seats only.
2. A dealer of three who is to discard gets the 14th card last.
3. Packets other than ``singly`` are for ten-card hands. Where a larger match comes down to three
   players (elimination, tie-break) those deals are dealt singly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tressette.rules.cards import CARDS, Card, mask_of
from tressette.rules.ruleset import Layout3, Packets, RuleSet

_HAND_SIZES: Final = {2: 10, 3: 13, 4: 10, 5: 8}
_PACKETS: Final[dict[Packets, tuple[int, ...]]] = {
    Packets.SINGLY: (1,) * 10,
    Packets.FIVE_FIVE: (5, 5),
    Packets.THREE_FOUR_THREE: (3, 4, 3),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """A dealt deck. hands: a mask by seat, 0 for a seat that is out; stock: top card first;
    discards: whether the dealer holds a 14th card and must set one aside."""

    hands: tuple[int, ...]
    stock: tuple[Card, ...]
    discards: bool


def cards_in_play(rules: RuleSet, active: int) -> Sequence[Card]:
    """The cards that are shuffled for a deal of that many active players, in deck order."""
    if active == 3 and rules.layout_3 is Layout3.REMOVE_CARD:
        return tuple(card for card in CARDS if card != rules.removed_card)
    return CARDS


def right_of(seat: int, active: Sequence[int], players: int) -> int:
    """The next active seat at the right of ``seat`` (which need not be active itself)."""
    return min(active, key=lambda other: (other - seat - 1) % players)


def turn_order(first: int, active: Sequence[int], players: int) -> tuple[int, ...]:
    """The active seats from ``first`` on, anticlockwise; ``first`` must be active."""
    return tuple(sorted(active, key=lambda seat: (seat - first) % players))


def lay_out(deck: Sequence[Card], rules: RuleSet, active: Sequence[int], dealer: int) -> Layout:
    """Deal ``deck`` (as ``cards_in_play`` shuffled) to the active seats."""
    count = len(active)
    size = _HAND_SIZES[count]
    order = turn_order(right_of(dealer, active, rules.players), active, rules.players)
    hands = [0] * rules.players
    position = count * size
    if size != 10 or rules.packets is Packets.SINGLY:
        for index, seat in enumerate(order):
            hands[seat] = mask_of(deck[index:position:count])
    else:
        start = 0
        for packet in _PACKETS[rules.packets]:
            for seat in order:
                hands[seat] |= mask_of(deck[start : start + packet])
                start += packet
    discards = count == 3 and rules.layout_3 is Layout3.DEALER_DISCARD
    if discards:
        hands[dealer] |= 1 << deck[position]
        position += 1
    return Layout(tuple(hands), tuple(deck[position:]), discards)
