"""The answer that the arena gives for a seat that does not: a documented rule, no judgement.

Decisions:
1. The card is the legal one of least strength (4 5 6 7 F C R A 2 3); among equals the first suit in
   deck order: denari, coppe, spade, bastoni. A dealer who must set a card aside sets that one aside.
2. Nothing is declared, called out or voided.
"""

from __future__ import annotations

from tressette.rules.actions import Action, Discard, Legal, PlayCard
from tressette.rules.cards import STRENGTH, cards_of


def substitute(legal: Legal) -> tuple[Action, ...]:
    """The answer played for a seat with these legal actions; always legal itself."""
    if legal.cards:
        return (PlayCard(min(cards_of(legal.cards), key=lambda card: STRENGTH[card])),)
    if legal.discards:
        return (Discard(min(cards_of(legal.discards), key=lambda card: STRENGTH[card])),)
    return ()
