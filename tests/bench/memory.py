"""What remembering decks brings, and what suit orders and fresh processes take away from it.

From the folder ``tests``: ``python -m bench.memory [DECKS]``. One line for each preset, kind of memory and
way to keep the games of a deck apart (``support.memory_bots``): how many deals were recognised, and the gain
over the same games without memory, in points a deal, in score and in Elo (from an even score), with the
standard error over decks. ``x N``: the decks are common to N line-ups, and the bot remembers them from one to
the next. Last, how many of the suit patterns of single hands name their deck.
"""

from __future__ import annotations

import sys
from collections import Counter
from math import log10
from random import Random

from support.memory_bots import Canonical, Gain, Literal, Memory, Repeats, measure, pattern
from tressette.rules.cards import CARDS
from tressette.rules.deck import Phase, shuffled
from tressette.rules.layout import lay_out
from tressette.rules.presets import resolve

PRESETS = ("traversone-003-21-duplicate", "tressette-002-duplicate", "tressette-21-duplicate")
PATTERNED_DECKS = 20_000


def elo(score_gain: float) -> float:
    """What a score of 1/2 and so much is worth."""
    return 400 * log10((0.5 + score_gain) / (0.5 - score_gain))


def line(preset: str, memory: type[Memory], repeats: Repeats, decks: int, line_ups: int) -> str:
    """Measure once."""
    rules = resolve(preset)
    gain = measure(rules, memory, repeats, decks, line_ups)
    seats = gain.games * (2 if rules.pairs else 1)
    points, points_error = Gain.estimate(gain.points)
    score, score_error = Gain.estimate(gain.score)
    return (
        f"{preset} x {line_ups}  {memory.__name__.lower()} {repeats.value}: "
        f"{gain.recognised} of {seats} deals recognised, {points:+.3f} ± {points_error:.3f} points a deal, "
        f"score {score:+.4f} ± {score_error:.4f}, "
        f"Elo {elo(score):+.0f} ({elo(score - 2 * score_error):+.0f} to {elo(score + 2 * score_error):+.0f})"
    )


def unique_patterns(preset: str) -> tuple[int, int]:
    """How many hands have a suit pattern that no other hand has, and how many hands there are."""
    rules = resolve(preset)
    keys: Counter[tuple[int, ...]] = Counter()
    for number in range(PATTERNED_DECKS):
        deck = shuffled(Random(f"deck {number}").randbytes(32), Phase.MAIN, 1, 1, CARDS)
        keys.update(pattern(rules, hand)[0] for hand in lay_out(deck, rules, range(4), 0).hands)
    return sum(count == 1 for count in keys.values()), sum(keys.values())


def main() -> None:
    decks = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for preset in PRESETS:
        for memory in (Literal, Canonical):
            for repeats in Repeats:
                print(line(preset, memory, repeats, decks, 1), flush=True)
        print(line(preset, Literal, Repeats.RELABEL, max(2, decks // 10), 10), flush=True)
        unique, hands = unique_patterns(preset)
        print(f"{preset}: the suit pattern of {unique} of {hands} hands names the deck", flush=True)


if __name__ == "__main__":
    main()
