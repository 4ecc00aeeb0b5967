"""Deck seeds and commitments: fixed vectors that any language can repeat, and refusals."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from tressette_tournament.decks import deck_salt, deck_seed, public_event_key

KEY = bytes(range(32))


def test_deck_seed_is_the_documented_hmac() -> None:
    expected = hmac.new(KEY, b"deck/abc123/7", hashlib.sha256).digest()
    assert deck_seed(KEY, "abc123", 7) == expected
    assert expected.hex() == "92e5138a129e1c7b7abd722041048e26d8111f23816f09e56171726c0a648480"


def test_every_input_matters() -> None:
    other_key = bytes(32)
    seeds = {deck_seed(key, rules, n) for key in (KEY, other_key) for rules in ("a", "b") for n in range(5)}
    assert len(seeds) == 20
    assert deck_seed(KEY, "a/1", 2) != deck_seed(KEY, "a", 12)


def test_public_event_key_is_sha256_of_the_text() -> None:
    assert public_event_key("nonna") == hashlib.sha256(b"nonna").digest()
    assert len(deck_seed(public_event_key("è"), "rules", 0)) == 32


def test_the_salt_is_no_function_of_the_seed_alone() -> None:
    salts = {deck_salt(key, "a", n) for key in (KEY, bytes(32)) for n in range(3)}
    assert len(salts) == 6
    assert not salts & {deck_seed(key, "a", n) for key in (KEY, bytes(32)) for n in range(3)}


@pytest.mark.parametrize("short", [b"", bytes(31), bytes(33)])
def test_wrong_lengths_are_refused(short: bytes) -> None:
    with pytest.raises(ValueError, match="event key has"):
        deck_seed(short, "a", 0)


def test_negative_set_number_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 is negative"):
        deck_seed(KEY, "a", -1)
