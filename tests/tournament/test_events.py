"""Small events of every format, played through a real server and real bot processes, by the command.

Each is played twice; the two runs share the tests.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.runs import event, results, tressette, tricks
from tressette_tournament.journal import read_rounds

DUE, QUATTRO, TRE = "tressette-due-duplicate", "tressette-21-duplicate", "traversone-trio-duplicate"


@dataclass(frozen=True)
class Small:
    """An event: arguments of ``support.runs.event``, and how many games it has, None if that depends."""

    bots: Mapping[str, str]
    games: int | None
    lines: str = ""
    sections: str = ""
    deal_sets: int = 1
    presets: tuple[str, ...] = (DUE,)
    of_bots: Mapping[str, str] = field(default_factory=dict)


FOUR = {"chance": "random", "first": "first_legal", "greedy": "greedy", "careful": "cautious"}
THREE = {name: FOUR[name] for name in ("chance", "first", "greedy")}
TWO = {name: FOUR[name] for name in ("greedy", "chance")}
EVENTS = {
    "gauntlet": Small(
        FOUR, 8, 'format = "gauntlet"', of_bots={"chance": "challenger = true", "first": "challenger = true"}
    ),
    "swiss": Small(FOUR, 8, 'format = "swiss"\nrounds = 2'),
    "knockout": Small(THREE, None, 'format = "knockout"\nextra_sets = 2'),
    "ladder": Small(THREE, None, 'format = "ladder"', "[stop]\ngames = 12"),
    "sprt": Small(
        TWO,
        None,
        'format = "sprt"',
        "[sprt]\nelo0 = 0\nelo1 = 200\nalpha = 0.1\nbeta = 0.1",
        deal_sets=60,
    ),
    "pairs": Small(TWO, 6, deal_sets=3, presets=(QUATTRO,)),
    "individuals": Small(THREE, 4, 'seatings = "once"', deal_sets=4, presets=(TRE,)),
}


def write(folder: Path, small: Small, **changes: Any) -> Path:
    """The file of a small event, in a folder that is made."""
    folder.mkdir(parents=True, exist_ok=True)
    arguments: dict[str, Any] = {
        "deal_sets": small.deal_sets,
        "presets": small.presets,
        "lines": small.lines,
        "sections": small.sections,
        "of_bots": small.of_bots,
        **changes,
    }
    return event(folder, small.bots, **arguments)


@dataclass(frozen=True)
class Played:
    """A small event after its run. output: what the run has printed."""

    small: Small
    file: Path
    output: str

    @property
    def run(self) -> Path:
        """The folder of the run."""
        return self.file.parent / "run"

    @property
    def event(self) -> dict[str, Any]:
        """event.json."""
        return dict(json.loads((self.run / "event.json").read_text()))


def played(folder: Path, small: Small) -> Played:
    """Play a small event to its end, which must be a good one."""
    file = write(folder, small)
    result = tressette("tournament", "run", file)
    assert result.exit_code == 0, result.output
    return Played(small, file, result.stdout)


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Played]:
    """Gives the event of this name, which is played once."""
    return cache(lambda name: played(tmp_path_factory.mktemp(name), EVENTS[name]))


@pytest.fixture(params=EVENTS)
def one(request: pytest.FixtureRequest, events: Callable[[str], Played]) -> Played:
    """Each event."""
    return events(request.param)


def test_it_is_complete_and_verified(one: Played) -> None:
    lines = results(one.run)
    assert len({line["game"] for line in lines}) == len(lines)
    if one.small.games is not None:
        assert len(lines) == one.small.games
    assert all(not line["faults"] and line["attempt"] == 1 for line in lines)
    sizes = Counter(line["deal_set"] for line in lines)
    assert {line["deal_set"]: line["set_size"] for line in lines} == sizes, "no deal set is open"
    verified = tressette("verify", one.run)
    assert verified.exit_code == 0, verified.output
    assert "last lines by the manifest" in verified.stdout
    assert f"{len(lines)} games dealt again from their deck seeds" in verified.stdout


def test_its_decks_are_revealed_at_the_end(one: Played) -> None:
    (path,) = one.run.glob("reveals-*.jsonl")
    revealed = Counter(json.loads(line)["game"] for line in path.read_text().splitlines())
    assert revealed == Counter(line["game"] for line in results(one.run))
    assert all("key" in stage for stage in one.event["stages"])


def test_a_rerun_does_nothing(one: Played) -> None:
    before = contents(one.run)
    again = tressette("tournament", "run", one.file)
    assert again.exit_code == 0, again.output
    assert contents(one.run) == before
    resumed = tressette("tournament", "resume", one.run)
    assert resumed.exit_code == 0, resumed.output
    assert contents(one.run) == before


def contents(run: Path) -> dict[str, bytes]:
    """Every file of a run but those that say who looked last."""
    passing = ("status.json", "lock", "server.lock")
    files = [path for path in run.rglob("*") if path.is_file() and path.name not in passing]
    return {str(path.relative_to(run)): path.read_bytes() for path in files}


@pytest.mark.slow
def test_a_second_run_gives_the_same_games(one: Played, tmp_path: Path) -> None:
    if 'format = "ladder"' in one.small.lines:
        pytest.skip("a ladder also depends on the ratings at the moments of its choices")
    again = played(tmp_path, one.small)
    if 'format = "sprt"' in one.small.lines:
        # How many sets are open when the test is decided depends on the speed; the decision does not.
        assert (again.run / "sprt.json").read_bytes() == (one.run / "sprt.json").read_bytes()
        in_both = {line["game"] for line in results(one.run)} & {line["game"] for line in results(again.run)}
        assert len(in_both) >= 60
        for lines in (results, tricks):
            first, second = ([x for x in lines(run.run) if x["game"] in in_both] for run in (one, again))
            assert first == second
        return
    assert results(again.run) == results(one.run)
    assert tricks(again.run) == tricks(one.run)
    for name in ("ratings.json", "journal.jsonl"):
        assert (again.run / name).exists() == (one.run / name).exists()
        if (one.run / name).exists():
            assert (again.run / name).read_bytes() == (one.run / name).read_bytes()


def test_the_tables_show_every_bot(one: Played) -> None:
    pools = json.loads((one.run / "ratings.json").read_text())["pools"]
    games: Counter[str] = Counter()
    for line in results(one.run):
        games.update(set(line["bots"]))
    rated = {
        bot["bot"]: bot["games"] for pool in pools for part in pool["components"] for bot in part["bots"]
    }
    assert rated == games
    assert set(rated) == set(one.small.bots)
    assert all(bot in one.output for bot in one.small.bots)


# --- what each format is about ---------------------------------------------------------------------

Events = Callable[[str], Played]


def meetings(run: Path) -> Counter[frozenset[str]]:
    """Which bots have played each other, and in how many games."""
    return Counter(frozenset(line["bots"]) for line in results(run))


def test_challengers_of_a_gauntlet_meet_the_field_only(events: Events) -> None:
    challengers, others = ("chance", "first"), ("greedy", "careful")
    expected = {frozenset((one, other)): 2 for one in challengers for other in others}
    assert meetings(events("gauntlet").run) == expected


def test_a_swiss_pairs_its_second_round_by_the_first(events: Events) -> None:
    """Who leads meets whoever is nearest of those that it has not met."""
    run = events("swiss").run
    first, second = (
        {frozenset(fixture.line_up) for fixture in one} for one in read_rounds(run / "journal.jsonl")
    )
    assert first == {frozenset(("chance", "greedy")), frozenset(("first", "careful"))}
    assert not first & second
    score = dict.fromkeys(FOUR, 0)
    for line in results(run):
        if "-r1-" not in line["game"]:
            for bot, rank in zip(line["bots"], line["ranks"], strict=True):
                score[bot] += 2 * (rank == 1) - (line["ranks"] == [1, 1])
    leader = max(FOUR, key=score.__getitem__)
    gaps = {
        bot: score[leader] - score[bot]
        for bot in FOUR
        if bot != leader and frozenset((bot, leader)) not in first
    }
    (met,) = (bot for pair in second if leader in pair for bot in pair - {leader})
    assert gaps[met] == min(gaps.values())


def test_drawn_matches_of_a_knockout_play_further_sets(events: Events) -> None:
    """By this seed both of them are drawn after their one set."""
    knockout = events("knockout")
    fixtures = [one for (*byes, one) in ([*reversed(r)] for r in read_rounds(knockout.run / "journal.jsonl"))]
    assert [one.line_up for one in fixtures] == [("first", "greedy")] * 2 + [("chance", "first")] * 2
    assert [one.first_set for one in fixtures] == [0, 1, 2, 3], "fresh decks"
    assert "tressette-due-duplicate: 1. first, 2. chance, 3. greedy" in knockout.output


def test_a_ladder_that_is_ended_by_its_games(events: Events) -> None:
    ladder = events("ladder")
    assert "the limit of 12 games is reached" in ladder.output
    assert ladder.event["ended"] == "the limit of 12 games is reached"
    assert len(results(ladder.run)) == 12


def test_a_ladder_begins_with_everybody(events: Events) -> None:
    """Not with the two that start fastest: eight meetings are chosen at once."""
    first, second, third, *_ = read_rounds(events("ladder").run / "journal.jsonl")
    assert len({fixture.line_up for one in (first, second, third) for fixture in one}) == 3


def test_an_sprt_ends_when_it_is_decided(events: Events) -> None:
    sprt = events("sprt")
    told = json.loads((sprt.run / "sprt.json").read_text())
    lines = results(sprt.run)
    assert told["decision"] in ("H0", "H1")
    assert 60 <= len(lines) < 120
    assert sprt.event["ended"].startswith(f"the SPRT accepts {told['decision']} after ")
    assert sprt.event["ended"] in sprt.output


def test_pairs_of_copies_change_seats(events: Events) -> None:
    seats = Counter(tuple(line["bots"]) for line in results(events("pairs").run))
    assert seats == {("greedy", "chance") * 2: 3, ("chance", "greedy") * 2: 3}


def test_seatings_once_plays_a_deck_once(events: Events) -> None:
    lines = results(events("individuals").run)
    assert len({line["deck"] for line in lines}) == len(lines) == 4
    assert len({tuple(line["bots"]) for line in lines}) > 1, "seats are changed from deck to deck"
