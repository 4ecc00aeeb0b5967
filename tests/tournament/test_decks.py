"""Deck seeds and commitments: fixed vectors that any language can repeat, and refusals."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tressette_tournament.decks import (
    deck_name,
    deck_seed,
    event_commitment,
    game_salt,
    public_event_key,
    retired,
)

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


def test_every_game_has_its_own_salt() -> None:
    salts = {game_salt(key, f"p0-l0-s{n}-g0") for key in (KEY, bytes(32)) for n in range(3)}
    assert len(salts) == 6
    assert game_salt(KEY, "nonna è") == hmac.new(KEY, "salt/nonna è".encode(), hashlib.sha256).digest()


def test_the_name_of_a_deck_is_the_same_everywhere_and_is_not_its_seed() -> None:
    names = {deck_name(key, rules, n) for key in (KEY, bytes(32)) for rules in ("a", "b") for n in range(5)}
    assert len(names) == 20
    assert {len(name) for name in names} == {16}
    assert deck_name(KEY, "a", 3) == deck_name(KEY, "a", 3)
    assert not deck_seed(KEY, "a", 3).hex().startswith(deck_name(KEY, "a", 3))


def test_the_event_commitment_is_the_documented_hash() -> None:
    assert event_commitment(KEY) == hashlib.sha256(b"tressette-event-v1" + KEY).hexdigest()
    assert event_commitment(KEY) != event_commitment(bytes(32))
    assert event_commitment(KEY) != hashlib.sha256(KEY).hexdigest()


def test_batches_retire_when_all_their_sets_are_complete() -> None:
    complete = {0, 1, 2, 3, 5, 8, 9}
    assert retired(complete, 2, 10) == [range(2), range(2, 4), range(8, 10)]
    assert retired(complete, 4, 10) == [range(4), range(8, 10)], "the last batch is shorter"
    assert retired(complete, 1, 6) == [range(n, n + 1) for n in (0, 1, 2, 3, 5)]
    assert retired((), 3, 9) == retired(complete, 3, 0) == []


@given(st.sets(st.integers(0, 60)), st.integers(1, 9), st.integers(0, 60))
def test_no_deck_retires_while_a_set_of_its_batch_is_open(complete: set[int], batch: int, sets: int) -> None:
    numbers = [number for one in retired(complete, batch, sets) for number in one]
    assert numbers == sorted(set(numbers))
    assert set(numbers) <= complete & set(range(sets))
    for number in set(range(sets)).difference(numbers):
        first = number - number % batch
        assert set(range(first, min(first + batch, sets))) - complete


def test_an_impossible_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="a batch of 0 sets"):
        retired((), 0, 10)


@pytest.mark.parametrize("short", [b"", bytes(31), bytes(33)])
def test_wrong_lengths_are_refused(short: bytes) -> None:
    for use in (
        lambda: deck_seed(short, "a", 0),
        lambda: game_salt(short, "g"),
        lambda: event_commitment(short),
    ):
        with pytest.raises(ValueError, match="event key has"):
            use()


def test_negative_set_number_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 is negative"):
        deck_seed(KEY, "a", -1)
