"""Building rule sets: what is refused and which option it names, options as data, replacing."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tressette.rules
from tressette.rules.cards import parse_card
from tressette.rules.errors import RuleSetError
from tressette.rules.presets import PRESETS, SOURCES, TEXTS, from_table, resolve
from tressette.rules.ruleset import (
    Elimination,
    FirstTo,
    FirstToLowest,
    FixedDeals,
    Objective,
    RuleSet,
)

RULES_MD = (Path(next(iter(tressette.rules.__path__))) / "RULES.md").read_text(encoding="utf-8")

MOST = {"objective": "most", "end": "first_to", "target": 21}
LEAST = {"objective": "least", "end": "first_to_lowest", "threshold": 21, "tie_break": "shared"}
OUT = {"objective": "least", "end": "elimination", "threshold": 31, "tie_break": "shared"}
FIXED = {"objective": "least", "end": "fixed_deals"}
PAIRS = {"sides": "pairs"}


def refused(options: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(RuleSetError) as error:
        RuleSet.from_options(options)
    assert str(error.value) == f"{error.value.option}: {error.value.reason}"
    return error.value.option, error.value.reason


IMPOSSIBLE: list[tuple[str, dict[str, Any], str]] = [
    # pairs with any number but four
    *[("sides", {**MOST, **PAIRS, "players": players}, "pairs need four") for players in (2, 3, 5)],
    # a threshold missing or not positive
    ("target", {"objective": "most", "end": "first_to"}, "must be given"),
    ("threshold", {"objective": "least", "end": "first_to_lowest", "tie_break": "shared"}, "must be given"),
    ("threshold", {"objective": "least", "end": "elimination", "tie_break": "shared"}, "must be given"),
    *[("target", {**MOST, "target": value}, "whole number") for value in (0, -1, "21", 21.0, True, None)],
    *[("threshold", {**LEAST, "threshold": value}, "whole number") for value in (0, -1, "21")],
    *[("threshold", {**OUT, "threshold": value}, "whole number") for value in (0, -1, "31")],
    *[("deals", {**FIXED, "deals": value}, "whole number") for value in (0, -1, "4", False)],
    # an end that does not fit the objective
    ("end", {**MOST, "objective": "least"}, "needs the objective most"),
    ("end", {**LEAST, "objective": "most"}, "needs the objective least"),
    ("end", {**OUT, "objective": "most"}, "needs the objective least"),
    # elimination
    ("end", {**OUT, **PAIRS}, "not for pairs"),
    ("survivors", {**OUT, "players": 2, "survivors": 2}, "fewer than the 2 players"),
    ("survivors", {**OUT, "players": 3, "survivors": 3}, "fewer than the 3 players"),
    *[("survivors", {**OUT, "survivors": value}, "whole number from 1 to 3") for value in (0, 4, "1")],
    # cappotto
    *[
        ("cappotto_effect", {**MOST, "cappotto": value}, "swap would punish")
        for value in ("recorded_total", "all_points", "all_tricks")
    ],
    *[("cappotto_penalty", {**LEAST, "cappotto_penalty": value}, "whole number") for value in (0, -11, "11")],
    # declarations, claims, signals, partners
    ("accuse", {**LEAST, "accuse": "optional"}, "need the objective most"),
    ("accuse", {**LEAST, "accuse": "automatic"}, "need the objective most"),
    ("call_out", {**LEAST, "call_out": "own"}, "needs the objective most"),
    ("call_out", {"objective": "most", "end": "fixed_deals", "call_out": "own"}, "must be first_to"),
    ("signals", {**MOST, "signals": "on"}, "need pairs"),
    ("partners", {**MOST, "partners": "drawn"}, "in pairs"),
    # dealing
    *[("removed_card", {**LEAST, "removed_card": f"{rank}c"}, "is worth points") for rank in "A23FCR"],
    *[("removed_card", {**LEAST, "removed_card": value}, "unknown card") for value in ("8c", "", 13)],
    *[
        ("packets", {**LEAST, "players": players, "packets": packets}, f"not of {hand}")
        for players, hand in ((3, "thirteen"), (5, "eight"))
        for packets in ("5+5", "3-4-3")
    ],
    *[("players", {**LEAST, "players": value}, "whole number from 2 to 5") for value in (1, 6, "4", 4.0)],
    # tie-breaks
    *[("tie_break", {**FIXED, "tie_break": value}, "must be none") for value in ("extra_deal", "shared")],
    ("cappotto_effect", {**FIXED, "cappotto": "all_points", "cappotto_effect": "match_win"}, "cut a match"),
    ("tie_break", {**LEAST, "tie_break": "none"}, "choose a tie-break"),
    ("tie_break", {**OUT, "tie_break": "none"}, "choose a tie-break"),
    # ends that do not take a number
    ("deals", {**MOST, "deals": 4}, "means nothing with end 'first_to'"),
    ("threshold", {**MOST, "threshold": 4}, "means nothing with end 'first_to', which takes target"),
    ("survivors", {**LEAST, "survivors": 2}, "means nothing with end 'first_to_lowest'"),
    ("target", {**FIXED, "target": 21}, "means nothing with end 'fixed_deals'"),
    # words and numbers that are no value, options that do not exist
    ("end", {"objective": "most", "end": "first"}, "none of first_to, first_to_lowest"),
    ("end", {"objective": "most", "end": 3}, "none of"),
    ("end", {"objective": "most"}, "must be given"),
    ("objective", {"end": "fixed_deals"}, "must be given"),
    *[("last_trick_bonus", {**LEAST, "last_trick_bonus": v}, "none of 1, 1/2, 0") for v in (0.5, "2", True)],
    ("monte", {**LEAST, "monte": "yes"}, "'yes' is none of off, on_request, automatic"),
    ("rounding", {**LEAST, "rounding": True}, "none of"),
    ("montee", {**LEAST, "montee": "off"}, "did you mean 'monte'?"),
    ("zzz", {**LEAST, "zzz": "off"}, "no such option"),
]


@pytest.mark.parametrize(
    ("option", "options", "reason"),
    [pytest.param(*case, id=f"{case[0]}-{i}") for i, case in enumerate(IMPOSSIBLE)],
)
def test_what_makes_no_game_is_refused_naming_the_option(
    option: str, options: dict[str, Any], reason: str
) -> None:
    named, why = refused(options)
    assert named == option
    assert reason in why


@pytest.mark.parametrize(
    "options",
    [
        {**MOST, "cappotto": "none", "cappotto_effect": "swap"},
        {**MOST, "cappotto": "all_tricks", "cappotto_effect": "match_win"},
        {**OUT, "survivors": 3},
        {**OUT, "packets": "5+5"},
        {**FIXED, "cappotto_effect": "match_win"},
        {**LEAST, **PAIRS, "signals": "on", "partners": "drawn"},
        {**LEAST, "last_trick_bonus": 0},
        {**LEAST, "players": 2, "packets": "3-4-3"},
    ],
)
def test_what_comes_close_to_it_is_accepted(options: dict[str, Any]) -> None:
    assert RuleSet.from_options(options)


@pytest.mark.parametrize(
    ("option", "change"),
    [
        ("objective", {"objective": "most"}),
        ("sides", {"sides": "pairs"}),
        ("removed_card", {"removed_card": "4c"}),
        ("removed_card", {"removed_card": 13}),
        ("last_trick_bonus", {"last_trick_bonus": 1}),
        ("end", {"end": "fixed_deals"}),
        ("cappotto_penalty", {"cappotto_penalty": 1.5}),
    ],
)
def test_values_of_another_type_are_refused(option: str, change: dict[str, Any]) -> None:
    right: dict[str, Any] = {"objective": Objective.LEAST, "end": FixedDeals()}
    assert RuleSet(**right)
    with pytest.raises(RuleSetError) as error:
        RuleSet(**right | change)
    assert error.value.option == option


# -- options as data --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_options_name_a_rule_set_completely(name: str) -> None:
    rules = PRESETS[name]
    again = RuleSet.from_options(rules.options())
    assert again == rules
    assert (again.hash(), hash(again)) == (rules.hash(), hash(rules))
    assert all(type(value) in (str, int) for value in rules.options().values())


def test_the_hash_tells_every_two_rule_sets_apart() -> None:
    variants = [
        *(PRESETS[name] for name in SOURCES),
        *(resolve("tressette-21", monte=value) for value in ("on_request", "automatic")),
        resolve("tressette-21", target=22),
        resolve("traversone-002", cappotto_penalty=12),
        resolve("traversone-trio", removed_card="5c"),
        resolve("traversone-003-21-duplicate", deals=2),
    ]
    assert len({rules.hash() for rules in variants}) == len(set(variants)) == len(variants)
    assert all(re.fullmatch("[0-9a-f]{64}", rules.hash()) for rules in variants)


def test_a_penalty_of_t_named_or_not_is_the_same_game() -> None:
    named, default = (resolve("ciapano-31", **change) for change in ({"cappotto_penalty": 11}, {}))
    assert named == default
    assert (named.hash(), hash(named)) == (default.hash(), hash(default))
    assert named.replace(ace_of_bastoni="instead") != default.replace(ace_of_bastoni="instead")


def test_rule_sets_cannot_be_changed_and_compare_only_with_rule_sets() -> None:
    rules = PRESETS["tressette-21"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        rules.players = 2  # type: ignore[misc]
    assert rules != rules.options()


# -- replacing --------------------------------------------------------------------------------------


def test_replace_changes_what_is_named_and_nothing_else() -> None:
    rules = PRESETS["ciapano-31"]
    changed = rules.replace(threshold=21, survivors=2, removed_card="7b")
    assert changed.end == Elimination(21, 2)
    assert changed.removed_card == parse_card("7b")
    different = {name for name, value in changed.options().items() if rules.options()[name] != value}
    assert different == {"threshold", "survivors", "removed_card"}
    assert rules.replace() == rules


def test_replacing_the_end_drops_the_numbers_of_the_old_one() -> None:
    rules = PRESETS["ciapano-31"]
    assert rules.replace(end="fixed_deals", tie_break="none").end == FixedDeals(1)
    assert rules.replace(end="first_to_lowest", threshold=21).end == FirstToLowest(21)
    assert rules.replace(end="elimination").end == Elimination(31)
    with pytest.raises(RuleSetError, match="threshold: must be given"):
        rules.replace(end="first_to_lowest")


def test_an_unnamed_penalty_follows_the_ace_and_a_named_one_stays() -> None:
    assert PRESETS["ciapano-31"].replace(ace_of_bastoni="extra").options()["cappotto_penalty"] == 22
    assert PRESETS["traversone-002"].replace(ace_of_bastoni="extra") == PRESETS["traversone-002-ace"]


def test_replacing_refuses_what_makes_no_game() -> None:
    with pytest.raises(RuleSetError) as error:
        PRESETS["tressette-21"].replace(players=3)
    assert error.value.option == "sides"


# -- TOML -------------------------------------------------------------------------------------------


def test_the_table_printed_in_the_document_is_a_rule_set() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", RULES_MD, re.S)
    rules = from_table(tomllib.loads(text))
    assert rules == resolve("traversone-003-21", threshold=31, monte="on_request")


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("", "preset"),
        ("preset = 3", "preset"),
        ("preset = 'ciapano-31'\nsurvivors = 4", "survivors"),
        ("preset = 'ciapano-31'\nlast_trick_bonus = 0.5", "last_trick_bonus"),
        ("preset = 'tressette-21'\nsurvivor = 4", "survivor"),
        ("preset = 'tressette-21'\nsides = ['pairs']", "sides"),
    ],
)
def test_a_table_that_makes_no_game_names_the_key(text: str, option: str) -> None:
    with pytest.raises(RuleSetError) as error:
        from_table(tomllib.loads(text))
    assert error.value.option == option


# -- derived values and the document ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("ace", "total", "thirds"), [("normal", 11, 32), ("instead", 21, 62), ("extra", 22, 65)]
)
def test_the_points_of_a_deal_follow_from_the_cards(ace: str, total: int, thirds: int) -> None:
    rules = resolve("traversone-003-21", ace_of_bastoni=ace)
    assert (rules.deal_total, rules.deck_thirds, rules.penalty) == (6 * total, thirds, 6 * total)


def test_seats_opposite_each_other_are_a_side_in_pairs() -> None:
    pairs, alone = PRESETS["tressette-21"], PRESETS["ciapano-five"]
    assert ([pairs.side_of(seat) for seat in range(4)], pairs.side_count) == ([0, 1, 0, 1], 2)
    assert ([alone.side_of(seat) for seat in range(5)], alone.side_count) == ([0, 1, 2, 3, 4], 5)


def test_the_ends_are_values() -> None:
    assert PRESETS["tressette-31"].end == FirstTo(31)
    assert PRESETS["traversone-003-21"].end == FirstToLowest(21)


def test_the_document_names_every_option_and_value() -> None:
    table = RULES_MD[RULES_MD.index("## 2. Every option") : RULES_MD.index("## 3.")]
    for option, values in TEXTS.items():
        assert f"`{option}`" in table
        words = [value for value in values if not value.isdecimal()]
        assert [value for value in words if f"`{value}`" not in table] == []


def test_the_document_names_every_preset() -> None:
    text = RULES_MD[: RULES_MD.index("## 2.")]
    for name in PRESETS:
        stem, _, last = name.removesuffix("-duplicate").rpartition("-")
        assert f"`{stem}-{last}`" in text or f"`-{last}`" in text
