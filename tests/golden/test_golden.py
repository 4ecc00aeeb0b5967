"""Every preset has a golden match, and playing it again gives the same events, totals and places."""

from __future__ import annotations

from typing import get_args

import pytest
from support.golden import Line, line_of, load, replayed
from tressette.rules.deck import seeded
from tressette.rules.events import Event, FaultCommitted
from tressette.rules.presets import PRESETS
from tressette.rules.replay import replay

GOLDEN = load()


def test_every_preset_has_one_golden_match() -> None:
    assert [line["preset"] for line in GOLDEN] == list(PRESETS)


@pytest.mark.parametrize("line", [pytest.param(line, id=line["preset"]) for line in GOLDEN])
def test_a_golden_match_plays_again_as_it_was(line: Line) -> None:
    match, events = replayed(line)
    assert match.over
    assert {key: line[key] for key in ("totals", "ranks", "events", "sha256")} == line_of(match, events)
    again = replay(match.rules, seeded(bytes.fromhex(line["seed"])), events)
    assert again.state() == match.state()


def test_the_golden_matches_hold_every_kind_of_event_that_presets_can_have() -> None:
    kinds = {type(event) for line in GOLDEN for event in replayed(line)[1]}
    assert kinds == set(get_args(Event)) - {FaultCommitted}
