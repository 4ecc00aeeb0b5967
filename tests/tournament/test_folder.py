"""The folder of a run: whose it is, how an event grows in it, and its secrets."""

from __future__ import annotations

import json
import os
import socket
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from tressette.record.decks import event_commitment, public_event_key
from tressette_tournament.folder import (
    Event,
    RunError,
    Stage,
    open_event,
    open_keys,
    say_ended,
    say_revealed,
    working,
)
from tressette_tournament.run_lock import Holder, holder
from tressette_tournament.tournament_file import Format, Tournament, parse

BOTS = "".join(f'[[bots]]\nname = "{name}"\nbot = "greedy"\n' for name in "abcd")
FILE = """\
[tournament]
name = "cup"
presets = ["tressette-due-duplicate"]
deal_sets = 10
output = "run"
"""


def cup(folder: Path, *, bots: int = 2, **changes: object) -> Tournament:
    found = parse(FILE + BOTS, file="cup.toml", folder=folder, reference_bots=("greedy",))
    return replace(found, bots=found.bots[:bots], **changes)  # type: ignore[arg-type]


def begun(tournament: Tournament, **options: bool) -> Event:
    Path(tournament.output).mkdir(exist_ok=True)
    return open_event(tournament, **options)


def kept(event: Event) -> dict[str, object]:
    data = json.loads(Path(event.tournament.output, "event.json").read_text())
    assert isinstance(data, dict)
    return data


# --- one runner ------------------------------------------------------------------------------------


async def test_two_runners_in_one_folder(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    async with working(folder):
        assert holder(folder) == Holder(os.getpid(), socket.gethostname())
        with pytest.raises(RunError, match="another runner is at work"):
            async with working(folder):
                pass
    async with working(folder):
        pass


# --- the event and its key -------------------------------------------------------------------------


def test_a_new_event_has_one_stage_and_publishes_its_commitment_only(tmp_path: Path) -> None:
    event = begun(cup(tmp_path))
    (stage,) = event.stages
    assert (stage.bots, stage.deal_sets, stage.first_set) == (("a", "b"), 10, 0)
    folder = Path(event.tournament.output)
    assert stage.key.hex() == (folder / "event.key").read_text().strip()
    assert (folder / "event.key").stat().st_mode & 0o777 == 0o600
    assert stage.commitment == event_commitment(stage.key)
    assert kept(event) == {
        "tournament": "cup",
        "decks": "secret",
        "common_deals": True,
        "revealed_sets": 0,
        "stages": [
            {"bots": ["a", "b"], "deal_sets": 10, "first_set": 0, "commitment": event_commitment(stage.key)}
        ],
    }
    assert event.decks == f"decks secret, commitment {stage.commitment}"
    open_keys(event)
    assert kept(event)["stages"] == [
        {
            "bots": ["a", "b"],
            "deal_sets": 10,
            "first_set": 0,
            "commitment": event_commitment(stage.key),
            "key": stage.key.hex(),
        }
    ]
    assert open_event(cup(tmp_path)).stages == event.stages


@pytest.mark.parametrize(
    ("environment", "mode"), [("", 0o644), ('environment = { API_KEY = "secret" }', 0o600)]
)
def test_what_bots_are_given_in_their_environment_is_for_nobody_else(
    tmp_path: Path, environment: str, mode: int
) -> None:
    text = f'{FILE}{BOTS}[[bots]]\nname = "e"\ncommand = ["true"]\n{environment}\n'
    event = begun(parse(text, file="cup.toml", folder=tmp_path, reference_bots=("greedy",)))
    kept = event.folder / "tournament.toml"
    assert stat.S_IMODE(kept.stat().st_mode) == mode & ~umask()
    assert ("secret" in kept.read_text()) == bool(environment)


def umask() -> int:
    """That of this process."""
    os.umask(before := os.umask(0))
    return before


def test_public_decks_have_no_secret(tmp_path: Path) -> None:
    event = begun(cup(tmp_path, seed="nonna"))
    assert event.stages[0].key == public_event_key("nonna")
    assert kept(event)["decks"] == "public"
    assert not Path(event.tournament.output, "event.key").exists()
    assert open_event(cup(tmp_path, seed="nonna")) == event


def test_what_a_session_leaves_behind_is_found_by_the_next(tmp_path: Path) -> None:
    event = begun(cup(tmp_path))
    say_revealed(event, 7)
    say_ended(event, "the time is over")
    again = begun(cup(tmp_path))
    assert (again.ended, again.revealed_sets, again.stages) == ("the time is over", 7, event.stages)
    grown = begun(cup(tmp_path, deal_sets=11), extend=True)
    assert (grown.ended, grown.revealed_sets) == (None, 7)
    assert begun(cup(tmp_path, deal_sets=11)) == grown


# --- growing ---------------------------------------------------------------------------------------


def test_more_deal_sets_are_a_stage_with_fresh_decks(tmp_path: Path) -> None:
    first = begun(cup(tmp_path))
    with pytest.raises(RunError, match=r"deal_sets: 10 there, 25 now") as caught:
        begun(cup(tmp_path, deal_sets=25))
    assert "add --extend" in str(caught.value)
    event = begun(cup(tmp_path, deal_sets=25), extend=True)
    assert event.stages[0] == first.stages[0]
    assert (event.stages[1].deal_sets, event.stages[1].first_set) == (25, 10)
    assert event.stages[1].key != event.stages[0].key
    assert [event.key_of(number) for number in (0, 9, 10, 24)] == [
        *[event.stages[0].key] * 2,
        *[event.stages[1].key] * 2,
    ]
    assert begun(cup(tmp_path, deal_sets=25)) == event


def test_more_bots_play_all_sets_on_fresh_decks(tmp_path: Path) -> None:
    begun(cup(tmp_path))
    event = begun(cup(tmp_path, bots=3), extend=True)
    event = begun(cup(tmp_path, bots=3, deal_sets=12), extend=True)
    event = begun(cup(tmp_path, bots=4, deal_sets=13), extend=True)
    assert [(len(stage.bots), stage.deal_sets, stage.first_set) for stage in event.stages] == [
        (2, 10, 0),
        (3, 10, 10),
        (3, 12, 20),
        (4, 13, 22),
    ]


def test_what_is_extended_is_confirmed_as_complete_no_more(tmp_path: Path) -> None:
    """From the first moment: a runner that is killed right then leaves more to play."""
    manifest = begun(cup(tmp_path)).folder / "manifest.json"
    manifest.write_text("{}")
    begun(cup(tmp_path))
    assert manifest.exists()
    begun(cup(tmp_path, bots=3), extend=True)
    assert not manifest.exists()


def test_extending_twice_by_the_same_is_extending_once(tmp_path: Path) -> None:
    begun(cup(tmp_path))
    event = begun(cup(tmp_path, bots=3), extend=True)
    folder = Path(event.tournament.output)
    again = begun(cup(tmp_path, bots=3), extend=True)
    assert again == event
    # As if cut off before the tournament file was written.
    other = tmp_path / "other"
    first = begun(replace(cup(tmp_path), output=str(other)))
    (other / "event.json").write_text((folder / "event.json").read_text())
    (other / "event.key").write_text((folder / "event.key").read_text())
    del first
    with pytest.raises(
        RunError, match=r"was being extended .* the bots a, b, c: run the extended tournament"
    ):
        begun(replace(cup(tmp_path), output=str(other)))
    assert begun(replace(cup(tmp_path, bots=3), output=str(other)), extend=True).stages == event.stages


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"deal_sets": 9}, "tournament.deal_sets: 10 there, 9 now"),
        ({"concurrency": 3}, "tournament.concurrency"),
        ({"bots": 1}, r"bots\[1\].name"),
        ({"seed": "now public"}, "tournament.seed"),
    ],
)
def test_what_is_no_extension_is_refused(tmp_path: Path, changes: dict[str, object], named: str) -> None:
    begun(cup(tmp_path))
    for extend in (False, True):
        with pytest.raises(RunError, match=named) as caught:
            begun(cup(tmp_path, **changes), extend=extend)  # type: ignore[arg-type]
        assert "--extend" not in str(caught.value)


@pytest.mark.parametrize("format_", [Format.SWISS, Format.KNOCKOUT])
def test_what_depends_on_all_results_cannot_grow(tmp_path: Path, format_: Format) -> None:
    begun(cup(tmp_path, format=format_))
    with pytest.raises(RunError, match=f"format {format_} cannot be extended"):
        begun(cup(tmp_path, format=format_, deal_sets=11), extend=True)


def test_bots_join_a_ladder_as_it_is(tmp_path: Path) -> None:
    first = begun(cup(tmp_path, format=Format.LADDER))
    with pytest.raises(RunError, match="add --extend"):
        begun(cup(tmp_path, format=Format.LADDER, bots=3))
    event = begun(cup(tmp_path, format=Format.LADDER, bots=3), extend=True)
    assert event.stages == (replace(first.stages[0], bots=("a", "b", "c")),)
    assert begun(cup(tmp_path, format=Format.LADDER, bots=3)) == event


# --- damage ----------------------------------------------------------------------------------------


def test_a_key_of_another_event_is_refused(tmp_path: Path) -> None:
    event = begun(cup(tmp_path))
    key = Path(event.tournament.output, "event.key")
    key.write_text("00" * 32)
    with pytest.raises(RunError, match="is not the key"):
        open_event(cup(tmp_path))
    key.write_text("no hex")
    with pytest.raises(RunError, match="is damaged"):
        open_event(cup(tmp_path))
    key.unlink()
    with pytest.raises(RunError, match="is missing"):
        open_event(cup(tmp_path))


@pytest.mark.parametrize("text", ["{", "{}", '{"stages": [{}]}', '{"stages": 3}', "\x00"])
def test_a_damaged_event_is_refused(tmp_path: Path, text: str) -> None:
    event = begun(cup(tmp_path))
    Path(event.tournament.output, "event.json").write_text(text)
    with pytest.raises(RunError, match=r"event\.json is damaged"):
        open_event(cup(tmp_path))


def test_the_key_of_a_set_is_that_of_its_stage() -> None:
    stages = tuple(Stage((), 0, first, bytes([first]) * 32) for first in (0, 3, 5))
    event = Event(cup(Path("/")), stages)
    assert [event.key_of(number)[0] for number in range(7)] == [0, 0, 0, 3, 3, 5, 5]
