"""Decks revealed: the files, and that a recorded game was dealt from the deck that it is said to be."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.recorded import random_answer, spec_of
from tressette.record.game import GameSpec
from tressette.record.reader import DamagedRecord
from tressette.record.replay import RecordedGame, read_games
from tressette.record.reveals import Reveal, Reveals, UnknownPage, deck_matches, read_reveals
from tressette.record.scribe import Scribe
from tressette.record.writer import Record
from tressette.rules.deck import DeckSource, seeded
from tressette.rules.match import Match
from tressette.rules.presets import PRESETS
from tressette.rules.suits import with_suits


def revealed(number: int) -> Reveal:
    return Reveal(f"g{number}", f"deck{number % 7}", "rules", number.to_bytes(32, "big"), bytes(32))


def key(reveal: Reveal) -> bytes:
    return bytes.fromhex(reveal.commitment)


Opened = Callable[[str], Reveals]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens the reveals of the test's folder for a writer; they are closed in the end."""
    with contextlib.ExitStack() as stack:

        def open_for(writer: str) -> Reveals:
            reveals = Reveals(tmp_path, writer)
            stack.callback(reveals.close)
            return reveals

        yield open_for


# -- the files ----------------------------------------------------------------------------------------


def test_what_was_added_is_found_at_once_and_by_the_next_server(tmp_path: Path, opened: Opened) -> None:
    first = opened("0001")
    assert first.find([key(revealed(1))]) == []
    first.add([revealed(1), revealed(2)])
    assert first.find([key(revealed(2)), key(revealed(3)), key(revealed(1))]) == [revealed(2), revealed(1)]
    first.close()
    second = opened("0002")
    assert second.find([key(revealed(1))]) == [revealed(1)]
    assert list(read_reveals(tmp_path)) == [revealed(1), revealed(2)]


def test_what_another_writer_adds_is_found(opened: Opened) -> None:
    one, other = opened("0001"), opened("0002")
    one.add([revealed(1)])
    assert other.find([key(revealed(1))]) == [revealed(1)]
    other.add([revealed(2)])
    one.add([revealed(3)])
    assert one.page("", 10)[0] == [revealed(1), revealed(3), revealed(2)]
    assert sorted(reveal.game for reveal in other.page("", 10)[0]) == ["g1", "g2", "g3"]


@settings(deadline=None)
@given(count=st.integers(0, 40), size=st.integers(1, 15))
def test_pages_have_every_reveal_once(
    tmp_path_factory: pytest.TempPathFactory, count: int, size: int
) -> None:
    reveals = Reveals(tmp_path_factory.mktemp("reveals"), "0001")
    reveals.add(map(revealed, range(count)))
    seen: list[Reveal] = []
    token = ""
    while True:
        page, token = reveals.page(token, size)
        seen += page
        assert len(page) <= size
        if not token:
            break
    assert seen == [revealed(number) for number in range(count)]
    reveals.close()


def test_what_is_revealed_between_two_pages_comes_last(opened: Opened) -> None:
    reveals = opened("0001")
    reveals.add(map(revealed, range(4)))
    first, token = reveals.page("", 3)
    reveals.add([revealed(9)])
    assert [one.game for one in first + reveals.page(token, 3)[0]] == ["g0", "g1", "g2", "g3", "g9"]


@pytest.mark.parametrize("token", ["x", "-1", "1.0", "5", "999999999999999", "١"])
def test_an_invented_page_is_refused(opened: Opened, token: str) -> None:
    reveals = opened("0001")
    reveals.add(map(revealed, range(4)))
    with pytest.raises(UnknownPage):
        reveals.page(token, 3)


def test_a_game_revealed_twice_is_one(opened: Opened) -> None:
    reveals = opened("0001")
    reveals.add([revealed(1), revealed(1)])
    again = opened("0002")
    again.add([revealed(1)])
    assert again.page("", 10) == ([revealed(1)], "")


def test_a_torn_last_line_is_passed_over_until_it_is_whole(tmp_path: Path, opened: Opened) -> None:
    whole = orjson.dumps(revealed(1).to_json()) + b"\n"
    other = orjson.dumps(revealed(2).to_json()) + b"\n"
    path = tmp_path / "reveals-0001.jsonl"
    path.write_bytes(whole + other[:50])
    reveals = opened("0002")
    assert reveals.page("", 10) == ([revealed(1)], "")
    assert list(read_reveals(path)) == [revealed(1)]
    path.write_bytes(whole + other)
    assert reveals.find([key(revealed(2))]) == [revealed(2)]


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"{}",
        orjson.dumps(revealed(1).to_json() | {"v": 2}),
        orjson.dumps(revealed(1).to_json() | {"seed": "00"}),
        orjson.dumps(revealed(1).to_json() | {"seed": None}),
        orjson.dumps(revealed(1).to_json() | {"salt": "zz"}),
        orjson.dumps(revealed(1).to_json() | {"seed": "11" * 32}),
    ],
)
def test_any_other_damage_is_refused_with_file_and_line(tmp_path: Path, opened: Opened, line: bytes) -> None:
    path = tmp_path / "reveals-0001.jsonl"
    path.write_bytes(orjson.dumps(revealed(1).to_json()) + b"\n" + line + b"\n")
    with pytest.raises(DamagedRecord, match=r"reveals-0001.jsonl, line 2"):
        opened("0002")


def test_an_index_entry_takes_about_200_bytes(tmp_path: Path, opened: Opened) -> None:
    count = 20_000
    (tmp_path / "reveals-0001.jsonl").write_bytes(
        b"".join(orjson.dumps(revealed(number).to_json()) + b"\n" for number in range(count))
    )
    tracemalloc.start()
    try:
        reveals = opened("0002")
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(reveals) == count
    assert used / count < 260, sys.version


def test_a_full_disk_is_told_to_whoever_owns_the_record(tmp_path: Path) -> None:
    heard: list[OSError] = []
    (tmp_path / "reveals-0001.jsonl").write_bytes(b"")
    reveals = Reveals(tmp_path, "0001", heard.append)
    with pytest.raises(FileExistsError):
        reveals.add([revealed(1)])
    assert len(heard) == 1


# -- games and their decks ----------------------------------------------------------------------------


def recorded(
    folder: Path, preset: str, seed: int = 1, decks: DeckSource | None = None
) -> tuple[RecordedGame, GameSpec]:
    """A game of random play, dealt from its own deck unless another is given."""
    chance = random.Random(seed)
    spec = spec_of(PRESETS[preset], "g1", chance.randbytes(32), preset)
    record = Record(folder, "0001")
    scribe = Scribe(record, spec, ["1.0"] * spec.rules.players)
    match = Match(spec.rules, decks or spec.decks)
    scribe.write(match.start())
    while not match.over:
        seat = chance.choice(match.pending)
        scribe.write(match.act(seat, random_answer(match.legal(seat), chance)))
    scribe.committed(1, 2)
    record.close()
    (game,) = read_games(folder)
    return game, spec


@pytest.mark.parametrize(
    "preset",
    [
        *("tressette-21", "tressette-due", "tressette-004-drawn", "ciapano-trio", "ciapano-five"),
        *("traversone-trio", "traversone-003-21-duplicate", "ciapano-ace21"),
    ],
)
def test_a_game_dealt_from_its_deck_matches_it(tmp_path: Path, preset: str) -> None:
    game, spec = recorded(tmp_path, preset)
    assert deck_matches(game, spec.seed, spec.salt) is None


def test_another_seed_or_salt_does_not_open_the_commitment(tmp_path: Path) -> None:
    game, spec = recorded(tmp_path, "tressette-21-duplicate")
    for seed, salt in ((bytes(32), spec.salt), (spec.seed, b"another")):
        assert deck_matches(game, seed, salt) == "seed and salt do not open the commitment"


def test_a_deck_that_was_chosen_after_the_fact_is_found(tmp_path: Path) -> None:
    """The commitment and the suits are right, the cards come from elsewhere."""
    game, spec = recorded(tmp_path, "tressette-21-duplicate", decks=seeded(bytes(range(32))))
    reason = deck_matches(game, spec.seed, spec.salt)
    assert reason is not None
    assert "deal 1" in reason or "hands" in reason


def test_other_suits_than_those_of_the_game_are_found(tmp_path: Path) -> None:
    spec = spec_of(PRESETS["traversone-003-21-duplicate"], "g1", random.Random(1).randbytes(32))
    order = "cdsb" if spec.suits != "cdsb" else "dcsb"
    game, spec = recorded(tmp_path, "traversone-003-21-duplicate", 1, with_suits(seeded(spec.seed), order))
    assert deck_matches(game, spec.seed, spec.salt) is not None, "dealt otherwise than the record says"
    said = dataclasses.replace(game, opening={**game.opening, "suits": order})
    reason = deck_matches(said, spec.seed, spec.salt)
    assert reason == f"the suits are {order!r} instead of {spec.suits!r}"


def test_a_stock_that_was_stacked_is_found(tmp_path: Path) -> None:
    game, spec = recorded(tmp_path, "tressette-due-duplicate")
    draws = next(line for line in game.lines if "draws" in line)["draws"]
    draws[0][1], draws[1][1] = draws[1][1], draws[0][1]
    reason = deck_matches(game, spec.seed, spec.salt)
    assert reason is not None


def test_a_reveal_is_what_opens_the_commitment_of_its_game() -> None:
    spec = spec_of(PRESETS["tressette-21"], "g1", bytes(range(32)))
    reveal = Reveal.of(spec)
    assert reveal.commitment == spec.commitment
    assert Reveal.from_json(orjson.loads(orjson.dumps(reveal.to_json()))) == reveal
