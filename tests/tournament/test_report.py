"""What people and programs are shown of the ratings."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from rich.console import Console
from tressette_tournament.ratings import PoolRatings, rate
from tressette_tournament.report import as_json, print_sprt, print_stop, print_tables, sprt_as_json
from tressette_tournament.results import GameResult
from tressette_tournament.sprt import Model, SequentialTest, SetShape, Sprt


def pools(
    outcomes: str, pairs: tuple[str, ...] = ("AB",), objective: str = "most", **more: int
) -> list[PoolRatings]:
    """w, l or d of the first bot of each pair, a deck a letter."""
    ranks = {"w": (1, 2), "l": (2, 1), "d": (1, 1)}
    return rate(
        GameResult(
            f"{pair}{deck}",
            f"{pair}{deck}",
            1 + more.get("missing", 0),
            f"{deck}",
            "hash",
            "tre[sette]",
            objective,
            tuple((bot,) for bot in pair),
            ranks[outcome],
            (33 + deck, 11),
            2,
            faults=((pair[0], "timeout", 1),) if deck == 0 else (),
        )
        for deck, outcome in enumerate(outcomes)
        for pair in pairs
    )


def shown(rated: list[PoolRatings], width: int = 140) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    print_tables(rated, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def row_of(text: str, bot: str) -> list[str]:
    [line] = [line for line in text.splitlines() if f"  {bot} " in line and line.strip()[0].isdigit()]
    return re.split(" {2,}", line.strip())


def test_a_table_has_the_figures_of_each_bot() -> None:
    text = shown(pools("wlwwdwlwww"))
    assert "tre[sette] · points per deal: higher is better" in text
    cells = row_of(text, "A")
    assert cells[:2] == ["1", "A"]
    assert cells[2].startswith("+")
    assert cells[3].isdigit()
    assert cells[4:] == ["10", "10", "3.12 ± 0.18", "0.750", "timeout 1"]
    assert row_of(text, "B")[:3] == ["2", "B", cells[2].replace("+", "-")]


def test_lower_is_better_where_the_objective_is_least() -> None:
    assert "points per deal: lower is better" in shown(pools("wl" * 5, objective="least"))


def test_one_sided_ratings_are_shown_as_bounds() -> None:
    text = shown(pools("w" * 20))
    assert row_of(text, "A")[2:4] == ["> +158", "20"]  # nothing under ±: the games come next
    assert row_of(text, "B")[2:4] == ["< -158", "20"]
    assert "on one side only" in text


def test_nought_has_one_sign() -> None:
    rated = pools("wlwlwlwlwl")
    bots = tuple(
        replace(bot, rating=sign * 0.2, points_per_deal=sign * 0.001)
        for bot, sign in zip(rated[0].components[0].bots, (1, -1), strict=True)
    )
    text = shown([replace(rated[0], components=(replace(rated[0].components[0], bots=bots),))])
    for bot in bots:
        cells = row_of(text, bot.bot)
        assert cells[2] == "+0"
        assert cells[6].startswith("0.00 ±")


FAULTS = (("disconnect", 111), ("illegal", 3), ("refused_to_start", 1234), ("timeout", 5))


def with_faults(name: str, games: int = 20) -> list[PoolRatings]:
    """A table whose first bot has this name and many faults."""
    [pool] = pools("w" * 20)
    [part] = pool.components
    first = replace(part.bots[0], bot=name, faults=FAULTS, games=games, deal_sets=games)
    return [replace(pool, components=(replace(part, bots=(first, *part.bots[1:])),))]


def test_each_kind_of_fault_has_a_line() -> None:
    lines = shown(with_faults("A")).splitlines()
    at = next(number for number, line in enumerate(lines) if line.rstrip().endswith("  disconnect 111"))
    below = [line.strip() for line in lines[at + 1 : at + 4]]
    assert below == [f"{kind} {count}" for kind, count in FAULTS[1:]]


@pytest.mark.parametrize("name", ["A", "tre_sette", "a-bot-with-a-name", "n" * 64, "[b]x"])
@pytest.mark.parametrize("games", [20, 1_000_000])
@pytest.mark.parametrize("width", [80, 100])
def test_nothing_is_cut_off_on_a_narrow_console(name: str, games: int, width: int) -> None:
    text = shown(with_faults(name, games), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    folded = "".join(text.split())
    for kind, count in FAULTS:
        assert f"{kind}{count}" in folded
    row = next(line for line in text.splitlines() if "> +158" in line)
    assert str(games) in row
    if len(name) + len(str(games)) < 20:
        assert f" {name} " in row
    elif len(name) == 64:
        assert text.count("n") >= 2 * 64  # folded in the table, whole below it
    assert "points/deal" in text


def test_few_decks_have_a_dash_and_a_footnote() -> None:
    text = shown(pools("wlw"))
    assert row_of(text, "A")[3] == "–"
    assert "fewer than 8 decks" in text


def test_components_are_separate_tables() -> None:
    text = shown(pools("wlwlwwlwlw", ("AB", "CD")))
    assert "1 of 2" in text
    assert "2 of 2" in text
    assert "cannot be compared" in text


def test_open_sets_are_counted() -> None:
    assert "not counted: 3" in shown(pools("wlw", missing=1))


def test_faults_of_games_that_do_not_count_are_attributed_all_the_same() -> None:
    """A bot that crashed until it was given up may be in no complete deal set at all."""
    lines = [line.rstrip() for line in shown(pools("wlw", missing=1)).splitlines()]
    assert lines[-3:] == ["Faults in open deal sets:", "  A: timeout 1", ""]
    assert "open deal sets" not in shown(pools("wlw"))
    assert as_json(pools("wlw", missing=1))["pools"][0]["open_faults"] == [["A", "timeout", 1]]


def test_json_is_plain_and_repeats_the_ratings() -> None:
    rated = pools("wlwwdwlwww" * 3, ("AB", "AC"))
    data = json.loads(json.dumps(as_json(rated), allow_nan=False))
    [pool] = data["pools"]
    [part] = pool["components"]
    assert pool["preset"] == "tre[sette]"
    assert [bot["bot"] for bot in part["bots"]] == ["A", "B", "C"]
    assert part["bots"][0]["rating"] == rated[0].components[0].bots[0].rating
    assert part["bots"][0]["faults"] == {"timeout": 2}
    assert {(pair["bot"], pair["other"]) for pair in part["pairs"]} == {
        (a, b) for a in "ABC" for b in "ABC" if a != b
    }
    assert part["pairs"][0]["interval"]["kind"] == "two-sided"


def test_json_lists_open_sets() -> None:
    [pool] = as_json(pools("w", missing=1))["pools"]
    assert pool["open_sets"] == [{"deal_set": "AB0", "have": 1, "want": 2}]
    assert pool["components"] == []


def sequential(scores: list[int], elo1: float = 100) -> SequentialTest:
    """Sets with these scores, in quarters."""
    test = SequentialTest(Sprt(0, elo1, model=Model.NORMALIZED), SetShape(2, 2))
    for position, score in enumerate(scores):
        test.add(position, Fraction(score, 4))
    return test


def printed(test: SequentialTest) -> list[str]:
    console = Console(file=io.StringIO(), width=40, force_terminal=False)
    print_sprt("new[er]", "old", test, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_test_under_way_is_shown_with_its_bounds() -> None:
    lines = printed(sequential([2, 3, 2, 1, 4, 2, 3, 2, 2, 3]))
    assert lines[0] == "SPRT of new[er] against old: undecided after 10 deal sets"
    assert lines[1] == "  H0: +0, H1: +100 (normalized Elo), alpha 0.05, beta 0.05"
    assert re.fullmatch(r"  LLR -?\d\.\d\d \(H0 at -2\.94, H1 at 2\.94\)", lines[2])
    assert lines[3].startswith("  score 0.6000 · Elo +70.4 ± ")
    assert len(lines) == 4


def test_an_estimate_after_a_stop_is_said_to_be_biased() -> None:
    decided = sequential([3, 4, 2, 3] * 20)
    lines = printed(decided)
    assert re.search(r": H1 accepted after \d+ deal sets$", lines[0])
    assert "lean towards what it decided" in lines[-1]
    data = sprt_as_json("new", "old", decided)
    assert data["note"] in lines[-1]
    assert sprt_as_json("new", "old", sequential([2, 3]))["note"] is None


def test_a_test_without_spread_or_sets_has_no_figures() -> None:
    assert len(printed(sequential([]))) == 3
    assert printed(sequential([4] * 5))[3] == "  score 1.0000 · Elo – · normalized – · LOS –"


def test_the_json_of_a_test_is_plain_data() -> None:
    data = json.loads(json.dumps(sprt_as_json("new", "old", sequential([2, 3, 2, 1] * 3))))
    assert (data["a"], data["b"], data["model"], data["elo1"]) == ("new", "old", "normalized", 100)
    assert (data["sets"], data["decision"]) == (12, "undecided")
    assert data["scores"] == {"1/4": 3, "1/2": 6, "3/4": 3}
    assert data["match"]["score"] == 0.5


def test_the_reason_for_a_stop_is_a_sentence() -> None:
    console = Console(file=io.StringIO(), width=20, force_terminal=False)
    print_stop("the limit of 9 games is reached", console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "No new deal sets were opened: the limit of 9 games is reached.\n"
