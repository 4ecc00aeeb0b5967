"""Bots that remember decks: what it brings them, and that nothing of it is left where it is claimed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.memory_bots import Canonical, Gain, Literal, Memory, Repeats, deck_seed, game_id, measure
from tressette.rules.cards import CARDS, cards_of, mask_of
from tressette.rules.deck import Phase, shuffled
from tressette.rules.layout import lay_out
from tressette.rules.presets import resolve
from tressette.rules.ruleset import RuleSet
from tressette.rules.suits import exchanged, suit_order

SEEDS = st.binary(min_size=32, max_size=32)
PRESETS = ["traversone-003-21-duplicate", "tressette-21-duplicate"]


def dealt(rules: RuleSet, seed: bytes) -> tuple[int, ...]:
    return lay_out(shuffled(seed, Phase.MAIN, 1, 1, CARDS), rules, range(4), 0).hands


def exchange(hands: tuple[int, ...], order: str) -> tuple[int, ...]:
    return tuple(mask_of(exchanged(order)[card] for card in cards_of(hand)) for hand in hands)


# -- the memories themselves --------------------------------------------------------------------------


@settings(deadline=None)
@given(seed=SEEDS, other=SEEDS, preset=st.sampled_from(PRESETS), seat=st.integers(0, 3))
def test_suit_patterns_see_through_any_suit_order(seed: bytes, other: bytes, preset: str, seat: int) -> None:
    rules = resolve(preset)
    memory = Canonical()
    memory.store(rules, dealt(rules, seed))
    again = exchange(dealt(rules, seed), suit_order(other, "another game", rules))
    recalled = memory.recall(rules, again[seat])
    assert again[seat:] + again[:seat] in recalled
    assert {hands[0] for hands in recalled} == {again[seat]}
    # Only suits that hold the same cannot be told apart by the hand.
    held = [again[seat] >> 10 * suit & 0x3FF for suit in range(4)]
    assert len(recalled) == 1 or len(set(held)) < 4


@settings(deadline=None)
@given(seed=SEEDS, preset=st.sampled_from(PRESETS), first=st.integers(0, 23), second=st.integers(0, 23))
def test_a_literal_memory_does_not(seed: bytes, preset: str, first: int, second: int) -> None:
    rules = resolve(preset)
    orders = [suit_order(seed, f"s0-g{game}", rules) for game in (first, second)]
    memory = Literal()
    memory.store(rules, exchange(dealt(rules, seed), orders[0]))
    for hand in exchange(dealt(rules, seed), orders[1]):
        distinct = len({hand >> 10 * suit & 0x3FF for suit in range(4)}) == 4
        if orders[0] == orders[1]:
            assert memory.recall(rules, hand)
        elif distinct:
            assert not memory.recall(rules, hand)


# -- what they bring ----------------------------------------------------------------------------------


def zero(gain: Gain) -> bool:
    """Not a deal recognised, not a card played otherwise."""
    return gain.recognised == 0 and not any(gain.points) and not any(gain.score)


def nothing(gain: Gain) -> bool:
    """No gain beyond its error. Now and then two suits of a hand hold the same; then the hand looks the same
    with these exchanged, and what is remembered of the others is wrong."""
    mean, error = Gain.estimate(gain.points)
    return gain.recognised <= gain.games / 100 and abs(mean) <= 2 * error


def positive(values: list[float]) -> bool:
    mean, error = Gain.estimate(values)
    return mean > 3 * error


@pytest.mark.parametrize("preset", PRESETS)
def test_a_deal_set_has_nothing_for_a_literal_memory(preset: str) -> None:
    assert zero(measure(resolve(preset), Literal, Repeats.RELABEL, decks=10))


@pytest.mark.parametrize("memory", [Literal, Canonical])
@pytest.mark.parametrize("preset", PRESETS)
def test_fresh_processes_remember_nothing(preset: str, memory: type[Memory]) -> None:
    assert zero(measure(resolve(preset), memory, Repeats.FRESH, decks=3))


def test_the_later_games_of_every_deck_are_recognised_by_their_suit_patterns() -> None:
    gain = measure(resolve(PRESETS[0]), Canonical, Repeats.RELABEL, decks=5)
    assert gain.recognised == 5 * 3
    assert any(gain.points)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("preset", PRESETS)
def test_what_each_memory_gains(preset: str) -> None:
    """Without suit orders the literal memory gains: the fixture can play. With them it gains nothing, while
    the suit patterns gain as before. Figures: ``python -m bench.memory``."""
    rules, decks = resolve(preset), 120
    bare = measure(rules, Literal, Repeats.BARE, decks)
    assert positive(bare.points)
    assert positive(bare.score)
    assert nothing(measure(rules, Literal, Repeats.RELABEL, decks))
    canonical = measure(rules, Canonical, Repeats.RELABEL, decks)
    assert positive(canonical.points)
    assert canonical.recognised == bare.recognised
    assert zero(measure(rules, Canonical, Repeats.FRESH, decks // 4))


def test_common_decks_repeat_their_suit_orders() -> None:
    """What is left for a literal memory: over many line-ups with common decks some games of a deck have the
    same order. It recognises those and no others."""
    rules = resolve("traversone-003-21-duplicate")
    decks, line_ups = 2, 8
    gain = measure(rules, Literal, Repeats.RELABEL, decks, line_ups)
    again = 0
    for number in range(decks):
        games = [game_id(line_up, number, game) for line_up in range(line_ups) for game in range(4)]
        again += len(games) - len({suit_order(deck_seed(number), game, rules) for game in games})
    assert gain.recognised == again > 0
