"""``tressette rules``: what it lists and shows, and what it refuses."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result
from tressette.cli import main
from tressette.commands.rules import rules
from tressette.rules.presets import ALIASES, PRESETS, SOURCES, TEXTS, resolve


def run(*arguments: str) -> Result:
    return CliRunner().invoke(rules, arguments)


def cells(result: Result) -> dict[str, list[str]]:
    """The rows of a table by their first cell."""
    rows = [line.split(maxsplit=2) for line in result.output.splitlines() if line.strip()]
    return {row[0]: row[1:] for row in rows}


def test_the_list_has_every_preset_and_every_other_name() -> None:
    result = run("list")
    assert result.exit_code == 0
    rows = cells(result)
    assert set(SOURCES) <= set(rows)
    assert all(rows[alias] == ["->", name] for alias, name in ALIASES.items())
    assert "tressette-21-duplicate" not in rows
    assert rows["tressette-004"][0] == "4"
    assert " ".join(rows["tressette-004"][1].split()).startswith("in pairs most first_to 21 004 Pairs; ")


def test_the_full_list_has_the_duplicate_forms_too() -> None:
    rows = cells(run("list", "--all"))
    assert set(PRESETS) <= set(rows)
    assert rows["ciapano-duo-duplicate"][1].startswith("least      fixed_deals 1")


@pytest.mark.parametrize("name", PRESETS)
def test_show_has_every_option_of_every_preset(name: str) -> None:
    rows = cells(run("show", name))
    options = resolve(name).options()
    assert {option: rows[option][0] for option in options} == {k: str(v) for k, v in options.items()}
    assert all(rows[option][1] for option in options)


def test_show_says_which_text_a_value_comes_from() -> None:
    rows = cells(run("show", "traversone-002"))
    assert rows["rounding"] == ["floor", "002"]
    assert rows["first_lead"] == ["dealer_right", "decided (as in 000, 003)"]
    assert rows["tie_break"] == ["shared", "decided"]
    assert rows["signals"] == ["off", "not used"]


def unused(*arguments: str) -> set[str]:
    origins = json.loads(run("show", "--json", *arguments).output)["origins"]
    return {option for option, origin in origins.items() if origin == "not used"}


def test_show_marks_what_means_nothing_with_the_other_options() -> None:
    assert unused("tressette-002") == {
        "layout_3", "removed_card", "cappotto_effect", "cappotto_penalty", "tie_break",
    }  # fmt: skip
    declaring = {"accuse_window", "napoli_extension"}
    alone = {"partners", "signals"}
    assert unused("ciapano-trio") == {*alone, *declaring, "packets", "removed_card", "last_trick_bonus"}
    assert unused("ciapano-five") == unused("ciapano-trio")
    assert unused("ciapano-duo") == {*alone, *declaring, "layout_3", "removed_card", "last_trick_bonus"}
    assert unused("traversone-002") == {*alone, *declaring, "layout_3", "removed_card"}
    assert unused("traversone-trio") == {*alone, *declaring, "packets", "last_trick_bonus"}
    slam = ("tressette-002", "--set", "cappotto=all_tricks", "--set", "cappotto_effect=match_win")
    assert unused(*slam) == {"layout_3", "removed_card", "cappotto_penalty", "tie_break"}


def test_show_as_json_holds_the_resolved_options() -> None:
    shown = json.loads(run("show", "rovescino", "--json", "--set", "threshold=31").output)
    expected = resolve("traversone-003-21", threshold=31)
    assert shown["preset"] == "traversone-003-21"
    assert shown["text"] == "003"
    assert shown["summary"] == SOURCES["traversone-003-21"].summary
    assert (shown["options"], shown["hash"]) == (expected.options(), expected.hash())
    assert set(shown["origins"]) == set(expected.options())


def test_options_can_be_replaced() -> None:
    rows = cells(run("show", "ciapano-duo-duplicate", "--set", "deals=4", "--set", "last_trick_bonus=1/2"))
    assert rows["deals"] == ["4", "decided"]
    assert rows["last_trick_bonus"][0] == "1/2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ciapno-31",), "unknown preset 'ciapno-31'; did you mean 'ciapano-31'?"),
        (("zzz",), "unknown preset 'zzz'"),
        (("ciapano-31", "--set", "survivors=4"), "survivors: 4 is not a whole number from 1 to 3"),
        (("ciapano-31", "--set", "threshold=-5"), "threshold: '-5' is not a whole number"),
        (("ciapano-31", "--set", "treshold=5"), "did you mean 'threshold'?"),
        (("ciapano-31", "--set", "sides=pairs"), "end: elimination is for individuals"),
        (("tressette-21", "--set", "deals=4"), "deals: means nothing with end 'first_to'"),
        (("tressette-21", "--set", "monte"), "'monte' is not OPTION=VALUE"),
        (("tressette-21", "--set", "=4"), "'=4' is not OPTION=VALUE"),
        (("tressette-21", "--set", f"target={'9' * 5000}"), "target: a number of 5000 digits"),
        ((), "Missing argument 'NAME'"),
    ],
)
def test_what_makes_no_game_is_refused_by_name(arguments: tuple[str, ...], message: str) -> None:
    result = run("show", *arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("arguments", [("--help",), ("list", "--help"), ("show", "-h")])
def test_help_is_complete(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 0
    assert "Usage:" in result.output
    assert "--help" in result.output


def test_help_names_every_option_of_show() -> None:
    text = run("show", "--help").output
    assert all(word in text for word in ("NAME", "--set OPTION=VALUE", "--json", "decided", "not used"))


def test_the_command_is_part_of_tressette() -> None:
    result = CliRunner().invoke(main, ["rules", "list"])
    assert result.exit_code == 0
    assert result.output == run("list").output


def test_every_option_value_of_a_preset_has_an_entry_where_a_text_has_it() -> None:
    assert set(TEXTS) == {option for preset in PRESETS.values() for option in preset.options()}
    for texts in (text for values in TEXTS.values() for text in values.values()):
        assert set(texts.split()) <= {"000", "001", "002", "003", "004"}
