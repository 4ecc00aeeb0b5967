"""``tressette reveal verify`` of a tournament from the outside: every key opens its commitment, and every
deck is the one that the key gives."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.runs import event, finish
from tressette.cli import main
from tressette.record.decks import deck_name, deck_seed, event_commitment, game_salt
from tressette.record.reveals import Reveal

Data = dict[str, Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tournament with secret decks that is over, extended once."""
    folder = tmp_path_factory.mktemp("event")
    bots: dict[str, str | Path] = {"a": "first_legal", "b": "first_legal"}
    finish(event(folder, bots, deal_sets=3, seed=None))
    return finish(event(folder, bots, deal_sets=5, seed=None), "--extend").folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def verify(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["reveal", "verify", *map(str, arguments)])


def stages(folder: Path) -> list[Data]:
    found: list[Data] = json.loads((folder / "event.json").read_text())["stages"]
    return found


def change(folder: Path, what: Callable[[Data], object]) -> None:
    file = folder / "event.json"
    data = json.loads(file.read_text())
    what(data)
    file.write_text(json.dumps(data))


def forge(folder: Path, what: Callable[[Data], Reveal | None]) -> None:
    """Write the reveals anew, as somebody does who wants them to open what they say."""
    lines = [
        json.loads(line)
        for file in sorted(folder.glob("reveals-*"))
        for line in file.read_text().splitlines()
    ]
    for file in folder.glob("reveals-*"):
        file.unlink()
    kept = [made.to_json() for line in lines if (made := what(line)) is not None]
    (folder / "reveals-0001.jsonl").write_text("".join(json.dumps(one) + "\n" for one in kept))


def test_a_finished_tournament(whole: Path) -> None:
    result = verify(whole)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
        "revealed: 10",
        "event decks: 10 right, 0 not revealed",
        "event keys: 2 right, 0 not revealed",
        "games: 10 right, 0 not revealed",
        "deal sets: 0 to 4, all revealed in part at least",
    ]


def test_what_bots_have_fetched_is_checked_without_the_record(whole: Path, tmp_path: Path) -> None:
    fetched = tmp_path / "fetched.jsonl"
    fetched.write_text("".join(file.read_text() for file in sorted(whole.glob("reveals-*"))))
    noted = [option for one in stages(whole) for option in ("--commitment", one["commitment"])]
    result = verify("--event", whole / "event.json", "--reveals", fetched, *noted)
    assert result.exit_code == 0, result.output
    assert "event decks: 10 right" in result.output
    assert "commitments: 2 right" in result.output


def test_the_keys_alone(whole: Path) -> None:
    result = verify("--event", whole / "event.json")
    assert result.exit_code == 0, result.output
    assert "event keys: 2 right" in result.output


def test_another_key_with_another_commitment_is_found_by_who_has_noted_the_first(folder: Path) -> None:
    noted = stages(folder)[0]["commitment"]
    other = bytes(32)
    change(folder, lambda data: data["stages"][0].update(key=other.hex(), commitment=event_commitment(other)))
    result = verify("--event", folder / "event.json", "--commitment", noted)
    assert result.exit_code == 1
    assert f"{noted}: nothing opens it" in result.output
    assert "event decks: 4 right" in verify(folder).output, "those of the other stage"


def test_a_key_that_does_not_open_what_was_published(folder: Path) -> None:
    commitment = stages(folder)[1]["commitment"]
    change(folder, lambda data: data["stages"][1].update(key=bytes(32).hex()))
    result = verify(folder, "--commitment", commitment)
    assert result.exit_code == 1
    assert f"{commitment}: the key that is told does not open it" in result.output
    assert f"{commitment}: nothing opens it" in result.output


def test_keys_that_are_not_told_yet(folder: Path) -> None:
    change(folder, lambda data: [stage.pop("key") for stage in data["stages"]])
    result = verify(folder)
    assert result.exit_code == 0
    assert "event decks: 0 right, 10 not revealed" in result.output
    assert "event keys: 0 right, 2 not revealed" in result.output
    assert verify("--event", folder / "event.json").exit_code == 1, "nothing could be checked"


CHOSEN = "p0-l0-s1-g0"


def _other_seed(line: Data, key: bytes) -> Reveal:
    return Reveal(line["game"], line["deck"], line["rules_hash"], bytes(32), bytes.fromhex(line["salt"]))


def _other_place(line: Data, key: bytes) -> Reveal:
    """The deck of another set number: what the key gives for that, and no record to compare with."""
    game, rules = "p0-l0-s2-g0", line["rules_hash"]
    return Reveal(game, deck_name(key, rules, 1), rules, deck_seed(key, rules, 1), game_salt(key, game))


def _other_rules(line: Data, key: bytes) -> Reveal:
    return Reveal(
        line["game"], line["deck"], "f" * 64, bytes.fromhex(line["seed"]), bytes.fromhex(line["salt"])
    )


def _other_salt(line: Data, key: bytes) -> Reveal:
    return Reveal(line["game"], line["deck"], line["rules_hash"], bytes.fromhex(line["seed"]), b"salt")


def _other_name(line: Data, key: bytes) -> Reveal:
    return Reveal(
        *(line["game"], "0" * 16, line["rules_hash"]),
        *(bytes.fromhex(line["seed"]), bytes.fromhex(line["salt"])),
    )


def _no_game(line: Data, key: bytes) -> Reveal:
    return Reveal(
        *("final", line["deck"], line["rules_hash"]),
        *(bytes.fromhex(line["seed"]), bytes.fromhex(line["salt"])),
    )


@pytest.mark.parametrize(
    ("cheat", "reason"),
    [
        (_other_seed, "its deck is not the one"),
        (_other_place, "its deck is not the one"),
        (_other_rules, "its deck is not the one"),
        (_other_salt, "the salt is not the one"),
        (_other_name, "the name of its deck is not the one"),
        (_no_game, "is not the id of a scheduled game"),
    ],
)
def test_a_deck_that_was_chosen(cheat: Callable[[Data, bytes], Reveal], reason: str, folder: Path) -> None:
    """Each of these opens the commitment that it names: only the key tells."""
    key = bytes.fromhex(stages(folder)[0]["key"])

    def forged(line: Data) -> Reveal:
        return cheat(line, key) if line["game"] == CHOSEN else Reveal.from_json(line)

    forge(folder, forged)
    result = verify("--event", folder / "event.json", "--reveals", folder)
    assert result.exit_code == 1
    assert reason in result.output
    assert "event decks: 9 right" in result.output


def test_a_record_that_is_another_game_than_was_revealed(folder: Path) -> None:
    def forged(line: Data) -> Reveal:
        made = Reveal.from_json(line)
        return _other_rules(line, b"") if line["game"] == CHOSEN else made

    forge(folder, forged)
    (folder / "event.json").unlink()
    result = verify(folder)
    assert result.exit_code == 1
    assert f"{CHOSEN}: its rules_hash is " in result.output


def test_decks_that_were_left_out_are_counted(folder: Path) -> None:
    forge(folder, lambda line: None if "-s2-" in line["game"] else Reveal.from_json(line))
    assert "deal sets: 0 to 4, nothing is revealed of 1" in verify(folder).output


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"stages": []}', "\xff"])
def test_event_data_that_cannot_be_read_is_named(text: str, folder: Path) -> None:
    (folder / "event.json").write_text(text, encoding="latin-1")
    result = verify(folder)
    assert result.exit_code == 1
    assert f"Error: {folder / 'event.json'}: " in result.output
