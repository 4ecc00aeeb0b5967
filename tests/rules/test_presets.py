"""The presets against the table of the specification, written out here once more."""

from __future__ import annotations

from typing import Any

import pytest
from tressette.rules.errors import RuleSetError, UnknownPreset
from tressette.rules.presets import (
    ALIASES,
    PRESETS,
    SOURCES,
    canonical_name,
    duplicate,
    from_table,
    resolve,
    source_of,
)

DEFAULTS: dict[str, Any] = {
    "players": 4,
    "sides": "individual",
    "partners": "fixed",
    "first_lead": "dealer_right",
    "packets": "singly",
    "layout_3": "dealer_discard",
    "removed_card": "4c",
    "last_trick_bonus": "1",
    "ace_of_bastoni": "normal",
    "cappotto": "none",
    "cappotto_effect": "swap",
    "cappotto_penalty": 11,
    "accuse": "off",
    "napoli_extension": "none",
    "monte": "off",
    "call_out": "off",
    "signals": "off",
}
PAIRS_MOST = {
    "objective": "most",
    "sides": "pairs",
    "rounding": "floor",
    "tie_break": "none",
    "end": "first_to",
}
T001 = {
    "first_lead": "four_of_denari_every_deal",
    "accuse": "optional",
    "accuse_window": "first_three_tricks",
}
T004 = {
    **PAIRS_MOST,
    "target": 21,
    "first_lead": "four_of_denari_first_deal",
    "packets": "5+5",
    "accuse": "automatic",
    "accuse_window": "before_first_lead",
    "monte": "automatic",
    "call_out": "own",
}
C000 = {
    "objective": "least",
    "rounding": "remainder_to_last",
    "cappotto": "recorded_total",
    "end": "elimination",
    "threshold": 31,
    "survivors": 1,
    "tie_break": "extra_deal",
}
TR002 = {
    "objective": "least",
    "rounding": "floor",
    "cappotto": "recorded_total",
    "cappotto_penalty": 11,
    "end": "first_to_lowest",
    "threshold": 21,
    "tie_break": "shared",
}
TR003 = {
    "objective": "least",
    "rounding": "remainder_to_last",
    "cappotto": "all_points",
    "end": "first_to_lowest",
    "threshold": 21,
    "tie_break": "extra_deal",
}
TABLE: dict[str, dict[str, Any]] = {
    "tressette-11": {**PAIRS_MOST, **T001, "target": 11},
    "tressette-21": {**PAIRS_MOST, **T001, "target": 21},
    "tressette-31": {**PAIRS_MOST, **T001, "target": 31},
    "tressette-002": {
        **PAIRS_MOST,
        "target": 21,
        "accuse": "optional",
        "accuse_window": "before_first_lead",
        "napoli_extension": "numeric",
    },
    "tressette-004": T004,
    "tressette-004-drawn": {**T004, "partners": "drawn"},
    "tressette-due": {**PAIRS_MOST, **T001, "players": 2, "sides": "individual", "target": 21},
    "ciapano-31": C000,
    "ciapano-duo": {**C000, "players": 2},
    "ciapano-trio": {**C000, "players": 3},
    "ciapano-five": {**C000, "players": 5},
    "ciapano-ace21": {**C000, "ace_of_bastoni": "instead", "cappotto_penalty": 21},
    "traversone-002": TR002,
    "traversone-002-ace": {**TR002, "ace_of_bastoni": "extra"},
    "traversone-003-21": TR003,
    "traversone-003-31": {**TR003, "threshold": 31},
    "traversone-003-slam": {**TR003, "cappotto_effect": "match_win"},
    "traversone-003-exact": {**TR003, "rounding": "exact", "last_trick_bonus": "0"},
    "traversone-003-half": {**TR003, "rounding": "floor", "last_trick_bonus": "1/2"},
    "traversone-trio": {**TR003, "players": 3, "layout_3": "remove_card"},
    "traversone-pairs": {**TR003, "sides": "pairs", "rounding": "floor", "signals": "on"},
}


def meaningful(options: dict[str, Any]) -> dict[str, Any]:
    """Without the window of declarations that are not made: no text gives it a value."""
    return {k: v for k, v in options.items() if k != "accuse_window" or options["accuse"] != "off"}


@pytest.mark.parametrize("name", TABLE)
def test_a_preset_is_as_specified(name: str) -> None:
    assert meaningful(PRESETS[name].options()) == {**DEFAULTS, **TABLE[name]}


@pytest.mark.parametrize("name", TABLE)
def test_its_duplicate_form_plays_one_deal(name: str) -> None:
    expected = {**DEFAULTS, **TABLE[name]}
    for option in ("target", "threshold", "survivors"):
        expected.pop(option, None)
    expected |= {
        "end": "fixed_deals",
        "deals": 1,
        "tie_break": "none",
        "cappotto_effect": "swap",
        "call_out": "off",
        "partners": "fixed",
    }
    assert meaningful(PRESETS[f"{name}-duplicate"].options()) == expected


def test_there_are_no_other_presets() -> None:
    assert set(PRESETS) == set(TABLE) | {f"{name}-duplicate" for name in TABLE}


def test_the_number_of_duplicate_deals_can_be_chosen() -> None:
    assert resolve("ciapano-31-duplicate", deals=8).options()["deals"] == 8


def test_a_duplicate_of_a_game_for_most_points_has_no_cappotto_left_to_win() -> None:
    rules = resolve("tressette-21", cappotto="all_tricks", cappotto_effect="match_win")
    assert duplicate(rules).options()["cappotto"] == "none"


@pytest.mark.parametrize("alias", ALIASES)
def test_another_name_stands_for_a_preset_and_its_duplicate(alias: str) -> None:
    assert resolve(alias) is PRESETS[canonical_name(alias)]
    assert canonical_name(f"{alias}-duplicate") == f"{ALIASES[alias]}-duplicate"
    assert alias not in PRESETS


def test_the_other_names_of_the_game_are_known() -> None:
    assert {"rovescino", "ko-manje", "tressette-a-perdere"} <= set(ALIASES)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("tresette-21", "tressette-21"),
        ("rovesino", "rovescino"),
        ("ciapano-31-duplicat", "ciapano-31-duplicate"),
        ("Ciapano-31", "ciapano-31"),
        ("", None),
        ("xyz", None),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, nearest: str | None) -> None:
    for use in (lambda: resolve(name), lambda: source_of(name), lambda: from_table({"preset": name})):
        with pytest.raises(UnknownPreset) as error:
            use()
        assert (error.value.name, error.value.nearest) == (name, nearest)
        assert (f"did you mean {nearest!r}" in str(error.value)) == (nearest is not None)


def test_options_of_a_preset_are_replaced_by_name() -> None:
    assert resolve("rovescino", threshold=31) == PRESETS["traversone-003-31"]
    with pytest.raises(RuleSetError, match=r"^deals: "):
        resolve("rovescino", deals=3)


def test_every_preset_says_which_text_it_follows() -> None:
    assert set(SOURCES) == set(TABLE)
    for name, source in SOURCES.items():
        assert source_of(f"{name}-duplicate") is source_of(name) is source
        assert source.summary.endswith(".")
        digits = [part for part in name.split("-") if part in ("002", "003", "004")]
        assert digits in ([], [source.text])


def test_presets_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PRESETS["new"] = PRESETS["tressette-21"]  # type: ignore[index]
