"""Deck seeds and commitments: fixed vectors that any language can repeat, and refusals."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from tressette.record.decks import (
    PublishedEvent,
    deck_name,
    deck_number,
    deck_seed,
    event_commitment,
    game_parts,
    game_salt,
    public_event_key,
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


# -- what is published of an event --------------------------------------------------------------------


def test_the_parts_of_the_id_of_a_game() -> None:
    assert game_parts("p2-l31-s400-g5") == (2, 0, 31, 400, 5)
    assert game_parts("p2-r7-l31-s400-g5") == (2, 7, 31, 400, 5)
    for wrong in ("", "g1", "p0-l0-s0-g0 ", "p0-l0-s-1-g0", "20260101T000000-0001-1"):
        with pytest.raises(ValueError, match="not the id of a scheduled game"):
            game_parts(wrong)


def test_line_ups_share_their_decks_or_have_their_own() -> None:
    assert {deck_number(3, line_up, common_deals=True) for line_up in range(5)} == {3}
    own = {deck_number(n, line_up, common_deals=False) for n in range(4) for line_up in range(5)}
    assert len(own) == 20


def published(*stages: dict[str, object], **fields: object) -> dict[str, object]:
    return {"common_deals": True, "stages": list(stages)} | fields


def stage(first_set: int, key: bytes, *, told: bool = True) -> dict[str, object]:
    opened = {"key": key.hex()} if told else {}
    return {"first_set": first_set, "commitment": event_commitment(key), "bots": ["a"], **opened}


def test_each_stage_of_an_event_has_decks_of_its_own_key() -> None:
    later = bytes(32)
    event = PublishedEvent.from_json(published(stage(10, later), stage(0, KEY)))
    assert event.keys_told
    assert event.false_keys() == []
    for number, key in ((0, KEY), (9, KEY), (10, later), (11, later)):
        game = f"p0-l2-s{number}-g0"
        assert event.drawn(game, "abc") == (
            deck_name(key, "abc", number),
            deck_seed(key, "abc", number),
            game_salt(key, game),
        )


def test_without_common_deals_the_line_up_counts() -> None:
    event = PublishedEvent.from_json(published(stage(0, KEY), common_deals=False))
    first, second = (event.drawn(f"p0-l{line_up}-s1-g0", "abc") for line_up in (0, 1))
    assert first is not None
    assert second is not None
    assert first.seed != second.seed
    assert second.seed == deck_seed(KEY, "abc", deck_number(1, 1, common_deals=False))


def test_a_key_that_is_secret_tells_nothing_and_a_false_one_is_found() -> None:
    secret = PublishedEvent.from_json(published(stage(0, KEY), stage(5, bytes(32), told=False)))
    assert not secret.keys_told
    assert secret.false_keys() == []
    assert secret.drawn("p0-l0-s4-g0", "abc") is not None
    assert secret.drawn("p0-l0-s5-g0", "abc") is None
    false = PublishedEvent.from_json(published(stage(0, KEY) | {"key": bytes(32).hex()}))
    assert false.false_keys() == [event_commitment(KEY)]
    late = PublishedEvent.from_json(published(stage(5, KEY)))
    assert late.drawn("p0-l0-s4-g0", "abc") is None, "no stage has such a deal set"


@pytest.mark.parametrize(
    "data",
    [
        *(None, [], {}, "x", published(), published(stage(0, KEY), common_deals="yes"), published("x")),  # type: ignore[arg-type]
        published(stage(0, KEY) | {"key": 3}),
        published(stage(0, KEY) | {"key": "xx"}),
        published(stage(0, KEY) | {"key": "00"}),
        published(stage(0, KEY) | {"first_set": "0"}),
        published({"first_set": 0}),
        {"stages": [stage(0, KEY)]},
    ],
)
def test_what_is_not_published_of_an_event_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r"event|hexadecimal"):
        PublishedEvent.from_json(data)
