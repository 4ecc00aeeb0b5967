"""Suit orders: the vectors and the code in RULES.md, and that the free suits really are free."""

from __future__ import annotations

import dataclasses
import hmac
import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import tressette.rules
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.matches import random_answer
from support.rulesets import rule_sets
from tressette.rules.accuse import Combination, Declaration
from tressette.rules.actions import Action, Declare, Discard, PlayCard
from tressette.rules.cards import CARDS, SUIT_LETTERS, cards_of, mask_of, parse_card
from tressette.rules.deck import Phase, seeded
from tressette.rules.events import DealStarted, DeclarationMade, Event
from tressette.rules.match import Match
from tressette.rules.presets import PRESETS, resolve
from tressette.rules.ruleset import RuleSet
from tressette.rules.suits import exchanged, free_suits, suit_order, with_suits

RULES_MD = (Path(next(iter(tressette.rules.__path__))) / "RULES.md").read_text(encoding="utf-8")
VECTORS = re.findall(r"^\| `(\w{64})` \| `([^`]+)` \| `([dcsb]+)` \| `([dcsb]{4})` \|$", RULES_MD, re.M)
GAMES = st.text(min_size=1, max_size=20)
SEEDS = st.binary(min_size=32, max_size=32)


def letters(rules: RuleSet) -> str:
    return "".join(SUIT_LETTERS[suit] for suit in free_suits(rules))


# -- which suits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "options", "free"),
    [
        ("traversone-003-21", {}, "dcsb"),
        ("tressette-21", {}, "csb"),
        ("tressette-004", {}, "csb"),
        ("tressette-002", {"partners": "drawn"}, "csb"),
        ("ciapano-ace21", {}, "dcs"),
        ("traversone-002-ace", {}, "dcs"),
        ("traversone-trio", {}, "dsb"),
        ("traversone-trio", {"removed_card": "7b", "first_lead": "four_of_denari_every_deal"}, "cs"),
        ("ciapano-trio", {}, "dcsb"),
    ],
)
def test_the_suits_that_the_rules_name_are_not_free(preset: str, options: dict[str, str], free: str) -> None:
    assert letters(resolve(preset, **options)) == free


def documented() -> Callable[[bytes, str, str], str]:
    """The function printed in RULES.md."""
    (code,) = re.findall(r"```python\n(def suit_order.*?)```", RULES_MD, re.S)
    names: dict[str, Any] = {"permutations": itertools.permutations, "hmac": hmac}
    exec(code, names)
    result: Callable[[bytes, str, str], str] = names["suit_order"]
    return result


RULES_BY_FREE = {letters(rules): rules for rules in PRESETS.values()}


@pytest.mark.parametrize(("seed", "game", "free", "order"), VECTORS)
def test_the_vectors_of_the_document_hold(seed: str, game: str, free: str, order: str) -> None:
    assert suit_order(bytes.fromhex(seed), game, RULES_BY_FREE[free]) == order
    assert documented()(bytes.fromhex(seed), game, free) == order


def test_the_document_has_vectors_of_every_kind() -> None:
    assert {free for _, _, free, _ in VECTORS} == set(RULES_BY_FREE)
    assert len(VECTORS) >= 10


@given(seed=SEEDS, game=GAMES, rules=rule_sets())
def test_the_code_of_the_document_gives_the_same_orders(seed: bytes, game: str, rules: RuleSet) -> None:
    order = suit_order(seed, game, rules)
    assert order == documented()(seed, game, letters(rules))
    assert all(a == b for a, b in zip(SUIT_LETTERS, order, strict=True) if a not in letters(rules))


@pytest.mark.parametrize("preset", ["traversone-003-21", "tressette-21"])
def test_every_order_comes_equally_often(preset: str) -> None:
    rules, games = resolve(preset), 4800
    count = Counter(suit_order(bytes(32), f"s{number}-g0", rules) for number in range(games))
    expected = games / {"dcsb": 24, "csb": 6}[letters(rules)]
    assert len(count) == games / expected
    chi_squared = sum((found - expected) ** 2 / expected for found in count.values())
    assert chi_squared < len(count) + 4 * (2 * len(count)) ** 0.5


# -- what an order does -------------------------------------------------------------------------------


def test_a_letter_says_what_stands_for_the_suit_in_its_place() -> None:
    dealt_as = exchanged("dsbc")
    for card, shown in [("3c", "3s"), ("3s", "3b"), ("Rb", "Rc"), ("Ad", "Ad")]:
        assert str(dealt_as[parse_card(card)]) == shown


@pytest.mark.parametrize("text", ["", "dcs", "dcsbb", "dcss", "DCSB"])
def test_a_text_that_is_no_order_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no order of the suits"):
        with_suits(seeded(bytes(32)), text)


def test_a_seed_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="seed: 32 bytes"):
        suit_order(bytes(31), "g", resolve("tressette-21"))


class Exchange:
    """What a suit order makes of cards, declarations, actions and events."""

    def __init__(self, order: str) -> None:
        self.order = order
        self.dealt_as = exchanged(order)

    def mask(self, mask: int) -> int:
        return mask_of(self.dealt_as[card] for card in cards_of(mask))

    def declaration(self, one: Declaration) -> Declaration:
        of = one.of if one.kind is Combination.BONGIOCO else self.order[SUIT_LETTERS.index(one.of)]
        return Declaration(one.kind, of, self.mask(one.cards), one.points)

    def action(self, action: Action) -> Action:
        if isinstance(action, PlayCard):
            return PlayCard(self.dealt_as[action.card], action.signal)
        if isinstance(action, Discard):
            return Discard(self.dealt_as[action.card])
        return Declare(self.declaration(action.declaration)) if isinstance(action, Declare) else action

    def event(self, event: Event) -> Event:
        changed: dict[str, Any] = {}
        for field in dataclasses.fields(event):
            value = getattr(event, field.name)
            if field.name in ("card", "set_aside") and value is not None:
                changed[field.name] = self.dealt_as[value]
            elif field.name == "hands":
                changed[field.name] = tuple(map(self.mask, value))
            elif field.name == "declaration":
                changed[field.name] = self.declaration(value)
        return dataclasses.replace(event, **changed)


def comparable(events: Sequence[Event]) -> list[Event]:
    """Declarations that the arena makes at one moment come in deck order: sort each seat's."""
    result: list[Event] = []
    for (kind, _), group in itertools.groupby(events, lambda e: (type(e), getattr(e, "seat", None))):
        part = list(group)
        result += sorted(part, key=repr) if kind is DeclarationMade else part
    return result


def play_both(rules: RuleSet, order: str, seed: bytes, chance: random.Random) -> None:
    """Play a match at random, and beside it the exchanged match with the exchanged answers."""
    exchange = Exchange(order)
    decks = seeded(seed)
    plain, other = Match(rules, decks), Match(rules, with_suits(decks, order))
    pairs = [(plain.start(), other.start())]
    for answers in itertools.count():
        made, expected = pairs[-1][1], [exchange.event(event) for event in pairs[-1][0]]
        assert comparable(made) == comparable(expected)
        assert plain.pending == other.pending
        if plain.over or answers == 400:
            return
        seat = chance.choice(plain.pending)
        assert other.legal(seat).cards == exchange.mask(plain.legal(seat).cards)
        actions = random_answer(plain, seat, chance)
        pairs = [(plain.act(seat, actions), other.act(seat, [exchange.action(one) for one in actions]))]


def order_of(rules: RuleSet, chance: random.Random) -> str:
    return suit_order(chance.randbytes(32), "game", rules)


CHECKS = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@CHECKS
@given(rules=rule_sets(), seed=SEEDS, chance=st.integers(0, 2**32 - 1).map(random.Random))
def test_the_free_suits_are_free_under_any_rules(rules: RuleSet, seed: bytes, chance: random.Random) -> None:
    play_both(rules, order_of(rules, chance), seed, chance)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_the_free_suits_of_every_preset_are_free(preset: str) -> None:
    chance = random.Random(preset)
    for _ in range(2):
        play_both(PRESETS[preset], order_of(PRESETS[preset], chance), chance.randbytes(32), chance)


@pytest.mark.parametrize(("preset", "order"), [("tressette-21", "cdsb"), ("ciapano-ace21", "dcbs")])
def test_a_named_suit_is_not(preset: str, order: str) -> None:
    """Else the test above would prove nothing."""
    differs = 0
    for number in range(20):
        try:
            play_both(resolve(preset), order, number.to_bytes(32, "big"), random.Random(number))
        except (AssertionError, ValueError):
            differs += 1
    assert differs


def test_the_draw_of_partners_is_dealt_under_the_order_too() -> None:
    plain = seeded(bytes(32))
    for phase in Phase:
        cards = plain(phase, 1, 1, CARDS)
        dealt = with_suits(plain, "dbcs")(phase, 1, 1, CARDS)
        assert list(dealt) == [exchanged("dbcs")[card] for card in cards]


@given(seed=SEEDS, game=GAMES, removed=st.sampled_from(["4c", "7b", "5d"]))
def test_a_removed_card_stays_away(seed: bytes, game: str, removed: str) -> None:
    rules = resolve("traversone-trio", removed_card=removed)
    (started,) = Match(rules, with_suits(seeded(seed), suit_order(seed, game, rules))).start()
    assert isinstance(started, DealStarted)
    dealt = mask_of(card for hand in started.hands for card in cards_of(hand or 0))
    assert dealt == mask_of(CARDS) ^ 1 << parse_card(removed)


@given(seed=SEEDS, family=GAMES.filter(lambda text: not text[-1].isdecimal()), first=st.integers(0, 30))
def test_the_games_of_a_deal_set_look_different(seed: bytes, family: str, first: int) -> None:
    for preset, count in (("traversone-003-21", 24), ("tressette-21", 6)):
        rules = resolve(preset)
        orders = {suit_order(seed, f"{family}{first + number}", rules) for number in range(count)}
        assert len(orders) == count
        hands = set()
        for order in orders:
            started = Match(rules, with_suits(seeded(seed), order)).start()[0]
            assert isinstance(started, DealStarted)
            hands.add(started.hands)
        assert len(hands) == count
