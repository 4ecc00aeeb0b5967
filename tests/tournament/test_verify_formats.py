"""``tressette verify`` and ``tressette reveal verify`` believe what real tournaments of each format leave."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.runs import event, finish, results
from tressette.cli import main

TWO, FOUR = "tressette-due-duplicate", "tressette-21-duplicate"
INDIVIDUAL = "traversone-003-21-duplicate"

EVENTS = {
    "swiss": ((TWO,), 4, 'format = "swiss"\nrounds = 2'),
    "knockout": ((TWO,), 4, 'format = "knockout"'),
    "ladder": ((TWO,), 3, 'format = "ladder"\n[stop]\ngames = 40'),
    "gauntlet": ((TWO,), 3, 'format = "gauntlet"'),
    "sprt": ((FOUR,), 2, 'format = "sprt"\n[sprt]\nelo0 = 0\nelo1 = 5'),
    "decks of their own": ((TWO, FOUR), 3, "common_deals = false"),
    "seatings once": ((TWO, INDIVIDUAL), 4, 'seatings = "once"'),
    "mixed partners": ((FOUR,), 4, 'pairs = "mixed"'),
    "stopped": ((TWO,), 3, "[stop]\ngames = 6"),
}
SECRET, PUBLIC = None, "test"


def tournament(folder: Path, kind: str, seed: str | None) -> Path:
    presets, bots, lines = EVENTS[kind]
    names = {name: "random" if name == "b" else "first_legal" for name in "abcd"[:bots]}
    file = event(folder, dict(names), presets=presets, deal_sets=2, seed=seed)
    text = file.read_text().replace("[clock]", f"{lines}\n[clock]")
    if kind == "gauntlet":
        text = text.replace('name = "a"', 'name = "a"\nchallenger = true')
    file.write_text(text)
    return file


def verify(folder: Path) -> Result:
    return CliRunner().invoke(main, ["verify", str(folder)])


def believed(folder: Path) -> None:
    """All of it is right: every game was dealt again, by the keys, and by what anybody may know of them."""
    games = len(results(folder))
    result = verify(folder)
    assert result.exit_code == 0, result.output
    assert f"games      {games} played again" in result.stdout
    assert f"decks      {games} games dealt again" in result.stdout
    assert "last lines by the manifest" in result.stdout
    revealed = CliRunner().invoke(main, ["reveal", "verify", str(folder)])
    assert revealed.exit_code == 0, revealed.output
    for kind in ("games", "event decks"):
        assert f"{kind}: {games} right, 0 not revealed" in revealed.output
    assert ", all revealed in part at least" in revealed.output


DEFAULT = ("swiss",)
"""That of the default suite, since it has rounds."""


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in DEFAULT else pytest.mark.slow) for kind in EVENTS]
)
def test_every_format_is_verified(kind: str, tmp_path: Path) -> None:
    folder = finish(tournament(tmp_path, kind, SECRET)).folder
    believed(folder)
    (folder / "event.key").unlink()
    believed(folder)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [SECRET, PUBLIC])
def test_an_extended_event_is_verified_at_every_stage(seed: str | None, tmp_path: Path) -> None:
    bots: dict[str, str | Path] = {"a": "first_legal", "b": "random"}
    folder = finish(event(tmp_path, bots, deal_sets=1, seed=seed)).folder
    believed(folder)
    bots["c"] = "first_legal"
    finish(event(tmp_path, bots, deal_sets=2, seed=seed), "--extend")
    believed(folder)
    assert len(json.loads((folder / "event.json").read_text())["stages"]) == 2
    # The decks of each stage are drawn from its own key.
    shutil.copytree(folder, other := tmp_path / "other")
    data = json.loads((other / "event.json").read_text())
    data["stages"][1]["first_set"] += 1
    (other / "event.json").write_text(json.dumps(data))
    result = verify(other)
    assert result.exit_code == 1
    assert "it is not in the schedule" in result.stderr
    assert ("that of its deal set is" in result.stderr) == (seed is SECRET)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["swiss", "ladder", "decks of their own"])
def test_with_public_decks_as_well(kind: str, tmp_path: Path) -> None:
    believed(finish(tournament(tmp_path, kind, PUBLIC)).folder)
