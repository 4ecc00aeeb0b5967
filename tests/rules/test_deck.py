"""The deck of a deal: the vectors and the code in RULES.md, independence of its inputs, uniformity."""

from __future__ import annotations

import hashlib
import itertools
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import tressette.rules
from tressette.rules.cards import CARDS, Card, parse_card
from tressette.rules.deck import Phase, seeded, shuffled

RULES_MD = (Path(next(iter(tressette.rules.__path__))) / "RULES.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w{64})` \| (\d) \| (\d+) \| (\d+) \| (\S+) \| ([\w ]{29}) \| `(\w{64})` \|$", re.M)
VECTORS = ROW.findall(RULES_MD)


@pytest.mark.parametrize(("seed", "phase", "deal", "attempt", "removed", "first", "digest"), VECTORS)
def test_the_vectors_of_the_document_hold(
    seed: str, phase: str, deal: str, attempt: str, removed: str, first: str, digest: str
) -> None:
    cards = [card for card in CARDS if str(card) != removed]
    deck = shuffled(bytes.fromhex(seed), Phase(int(phase)), int(deal), int(attempt), cards)
    texts = [str(card) for card in deck]
    assert len(texts) == (40 if removed == "—" else 39)
    assert " ".join(texts[:10]) == first
    assert hashlib.sha256(" ".join(texts).encode("ascii")).hexdigest() == digest


def test_the_document_has_vectors_of_every_kind() -> None:
    assert len(VECTORS) == len(re.findall(r"^\| `\w{64}` \| \d", RULES_MD, re.M)) >= 10
    assert {row[1] for row in VECTORS} == {"0", "1", "2"}
    assert len({row[3] for row in VECTORS}) > 2
    assert len({row[4] for row in VECTORS}) == 3


def documented_shuffle() -> Callable[..., list[Any]]:
    """The function printed in RULES.md."""
    (code,) = re.findall(r"```python\n(def shuffle.*?)```", RULES_MD, re.S)
    names: dict[str, Any] = {"count": itertools.count, "sha256": hashlib.sha256}
    exec(code, names)
    result: Callable[..., list[Any]] = names["shuffle"]
    return result


def test_the_code_of_the_document_gives_the_same_decks() -> None:
    shuffle = documented_shuffle()
    for number in range(100):
        seed = hashlib.sha256(bytes([number])).digest()
        for phase in Phase:
            expected = shuffled(seed, phase, number + 1, 3)
            assert shuffle(seed, phase, number + 1, 3, list(CARDS)) == expected


def test_a_deck_is_the_same_every_time_and_leaves_its_cards_alone() -> None:
    cards = list(CARDS)
    once, again = (shuffled(bytes(32), Phase.MAIN, 1, 1, cards) for _ in range(2))
    assert once == again == list(seeded(bytes(32))(Phase.MAIN, 1, 1, cards))
    assert cards == list(CARDS)
    assert sorted(once) == list(CARDS)


def test_phase_deal_attempt_and_every_bit_of_the_seed_change_the_deck() -> None:
    decks = {
        tuple(shuffled(bytes(32), phase, deal, attempt))
        for phase, deal, attempt in itertools.product(Phase, (1, 2, 3, 256, 257), (1, 2, 11))
    }
    assert len(decks) == 3 * 5 * 3
    seeds = {tuple(shuffled((1 << bit).to_bytes(32, "big"), Phase.MAIN, 1, 1)) for bit in range(256)}
    assert len(seeds | decks) == 45 + 256


def agreement(pairs: Iterable[tuple[list[Card], list[Card]]]) -> float:
    """Mean number of places at which two decks have the same card: 1 for independent ones."""
    counts: list[int] = [sum(map(operator.eq, one, other)) for one, other in pairs]
    return sum(counts) / len(counts)


@pytest.mark.parametrize(
    "other",
    [(Phase.DRAW, 1, 1), (Phase.TIE_BREAK, 1, 1), (Phase.MAIN, 2, 1), (Phase.MAIN, 1, 2)],
    ids=["draw", "tie-break", "next deal", "next attempt"],
)
def test_decks_of_one_seed_are_independent(other: tuple[Phase, int, int]) -> None:
    seeds = [number.to_bytes(32, "big") for number in range(2000)]
    mean = agreement((shuffled(s, Phase.MAIN, 1, 1), shuffled(s, *other)) for s in seeds)
    assert abs(mean - 1) < 0.1  # 4.5 standard errors


def test_every_card_comes_to_every_place_equally_often() -> None:
    decks = 8000
    counts = Counter(
        (place, card)
        for number in range(decks)
        for place, card in enumerate(shuffled(number.to_bytes(32, "big"), Phase.MAIN, 1, 1))
    )
    expected = decks / 40
    chi_squared = sum(
        (counts[place, card] - expected) ** 2 / expected for place in range(40) for card in CARDS
    )
    freedom = 39 * 39
    assert abs(chi_squared - freedom) < 4 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("seed", [b"", bytes(31), bytes(33)])
def test_a_seed_has_32_bytes(seed: bytes) -> None:
    for use in (lambda: shuffled(seed, Phase.MAIN, 1, 1), lambda: seeded(seed)):
        with pytest.raises(ValueError, match="seed: 32 bytes"):
            use()


def test_a_deck_without_a_card_is_shuffled_too() -> None:
    cards = [card for card in CARDS if card != parse_card("4c")]
    assert sorted(shuffled(bytes(32), Phase.MAIN, 1, 1, cards)) == cards
