"""Who is kept from which game: processes that have met the deck, and two seats of one process."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import Player, Table, game_spec, settle
from tressette.record.game import GameSpec
from tressette.rules.events import FaultKind
from tressette.rules.presets import resolve

PAIRS = resolve("tressette-21-duplicate")
TWO = resolve("tressette-due-duplicate")


def game(name: str, deck: str = "d", bots: tuple[str, ...] = ("a", "b")) -> GameSpec:
    return replace(game_spec(name, rules=TWO if len(bots) == 2 else PAIRS, bots=bots), deck=deck)


def playing(table: Table) -> dict[str, list[str]]:
    """The processes of each game under way."""
    return {
        one.spec.game: [seat.session.process for seat in one.seats if seat.session is not None]
        for one in table.arena.games
    }


async def end_games(table: Table) -> None:
    table.finish()
    await settle()


# -- processes ----------------------------------------------------------------------------------------


async def test_two_seats_of_a_game_never_share_a_process() -> None:
    table = Table()
    for _ in range(2):  # two sessions each
        table.player("a", 9, process="a-1.1")
        table.player("b", 9, process="b-1.1")
    table.player("b", 9, process="b-2.1")
    table.arena.submit(game("g", bots=("a", "b", "a", "b")))
    await settle()
    assert playing(table) == {}
    table.player("a", 9, process="a-2.1")
    await settle()
    assert sorted(playing(table)["g"]) == ["a-1.1", "a-2.1", "b-1.1", "b-2.1"]


async def test_the_record_names_the_processes() -> None:
    table = Table()
    table.player("a", process="a-1.3")
    table.player("b")
    table.arena.submit(game("g"))
    await settle()
    (line,) = table.record.of("match")
    assert line["processes"] == ["a-1.3", ""]
    assert line["bots"] == ["a", "b"]


async def test_what_a_crashed_process_plays_is_answered_at_once_by_the_policy_for_that() -> None:
    table = Table()
    table.player("a", process="a-1.1")
    other = table.player("a", process="a-2.1")
    table.player("b", process="b-1.1")
    table.arena.submit(game("g"))
    await settle()
    table.arena.ended("a-1.1", FaultKind.CRASH)
    table.arena.ended("a-1.1", FaultKind.CRASH)
    table.finish()
    (result,) = table.results
    assert {(bot, kind) for bot, kind, _ in result["faults"]} == {("a", "crash")}
    assert table.arena.sessions["a"] == [other.session]


async def test_a_session_of_a_process_that_has_ended_meanwhile_never_gets_in() -> None:
    table = Table()
    table.arena.launched("a", "a-1.1")
    table.arena.ended("a-1.1", FaultKind.CRASH)
    late = Player(table, "a", process="a-1.1")
    assert late.session not in table.arena
    assert table.arena.sessions == {}
    late.leave()


async def test_a_process_cannot_take_over_the_session_of_another() -> None:
    table = Table()
    session = table.player("a", process="a-1.1").session
    token = session.resume_token
    assert table.arena.resumable(token, "a", "a-2.1") is None
    assert table.arena.resumable(token, "a") is None
    assert table.arena.resumable(token, "a", "a-1.1") is session


async def test_a_process_is_proven_by_its_first_game() -> None:
    table = Table()
    for bot in "ab":
        table.player(bot, 2, process=f"{bot}-1.1")
    table.arena.submit(game("g1"))
    await settle()
    table.arena.ended("b-1.1", FaultKind.CRASH)
    assert table.proven == []
    await end_games(table)
    assert table.proven == ["a-1.1"], "the other was no longer there at the end"
    table.player("b", process="b-1.2")
    table.arena.submit(game("g2"))
    await settle()
    await end_games(table)
    assert table.proven == ["a-1.1", "b-1.2"]


# -- fresh --------------------------------------------------------------------------------------------


async def test_no_process_meets_a_deck_twice() -> None:
    table = Table(fresh=True)
    for bot in "ab":
        table.player(bot, 9, process=f"{bot}-1.1")
    table.arena.submit(game("g1"))
    table.arena.submit(game("g2"))
    table.arena.submit(game("other", deck="d2"))
    await settle()
    assert sorted(playing(table)) == ["g1", "other"], "a game that waits holds up nobody"
    assert table.stale == [], "they are still playing"
    await end_games(table)
    assert table.stale == ["a-1.1", "b-1.1"]
    for bot in "ab":
        table.arena.ended(f"{bot}-1.1", FaultKind.DISCONNECT)
        await settle()
        assert playing(table) == {}
        table.player(bot, 9, process=f"{bot}-1.2")
    await settle()
    assert playing(table) == {"g2": ["a-1.2", "b-1.2"]}
    await end_games(table)
    assert table.stale == ["a-1.1", "b-1.1"], "each is said once"
    assert not any(result["faults"] for result in table.results)


async def test_a_later_attempt_of_a_game_is_no_less_a_repeat() -> None:
    table = Table(fresh=True)
    for bot in "ab":
        table.player(bot, 9, process=f"{bot}-1.1")
    table.arena.submit(game("g"))
    await settle()
    await end_games(table)
    table.arena.submit(replace(game("g"), attempt=2))
    await settle()
    assert playing(table) == {}
    assert table.stale == ["a-1.1", "b-1.1"]


async def test_a_stale_process_gets_no_game_any_more_not_even_in_a_new_session() -> None:
    table = Table(fresh=True)
    for bot in "ab":
        table.player(bot, 9, process=f"{bot}-1.1")
    table.arena.submit(game("g1"))
    table.arena.submit(game("g2"))
    await settle()
    await end_games(table)
    assert table.stale == ["a-1.1", "b-1.1"]
    table.player("a", 9, process="a-1.1")
    table.arena.submit(game("new", deck="d9"))
    await settle()
    assert playing(table) == {}
    assert table.stale == ["a-1.1", "b-1.1"], "once"


async def test_relabel_and_remote_bots_are_not_isolated() -> None:
    table = Table()
    for bot in "ab":
        table.player(bot, 9, process=f"{bot}-1.1")
    remote = Table(fresh=True)
    for bot in "ab":
        remote.player(bot, 9)
    for one in (table, remote):
        one.arena.submit(game("g1"))
        one.arena.submit(game("g2"))
        await settle()
        assert sorted(playing(one)) == ["g1", "g2"]
        await end_games(one)
        assert one.stale == []


async def test_the_other_instances_are_used_before_any_is_replaced() -> None:
    table = Table(fresh=True)
    for bot in "ab":
        for instance in (1, 2):
            table.player(bot, 9, process=f"{bot}-{instance}.1")
    for number in range(3):
        table.arena.submit(game(f"g{number}"))
    await settle()
    assert sorted(playing(table)) == ["g0", "g1"]
    await end_games(table)
    assert table.stale == ["a-1.1", "b-1.1"], "no more than the games need"


async def test_a_game_for_two_instances_gets_two_new_ones() -> None:
    table = Table(fresh=True)
    for bot in "ab":
        for instance in (1, 2):
            table.player(bot, 9, process=f"{bot}-{instance}.1")
    table.arena.submit(game("g1", bots=("a", "b", "a", "b")))
    table.arena.submit(game("g2", bots=("b", "a", "b", "a")))
    await settle()
    await end_games(table)
    assert table.stale == ["b-1.1", "b-2.1", "a-1.1", "a-2.1"]


async def test_no_process_is_given_up_for_one_that_is_about_to_connect() -> None:
    table = Table(fresh=True)
    for bot in "ab":
        table.player(bot, 9, process=f"{bot}-1.1")
    table.arena.submit(game("g1"))
    table.arena.submit(game("g2"))
    table.arena.launched("a", "a-2.1")
    await settle()
    await end_games(table)
    assert table.stale == ["b-1.1"]
    table.arena.ended("a-2.1", FaultKind.CRASH)  # it never connected
    await settle()
    assert table.stale == ["b-1.1", "a-1.1"]


async def test_a_process_is_replaced_when_the_one_that_could_have_played_is_gone() -> None:
    table = Table(fresh=True)
    table.player("b", 9, process="b-1.1")
    table.player("b", 9, process="b-2.1")
    table.player("a", 9, process="a-1.1")
    table.arena.submit(game("g1"))
    await settle()
    await end_games(table)
    table.player("a", 1, process="a-2.1")
    table.arena.submit(game("long", deck="d2", bots=("a", "b")))
    table.arena.submit(game("long2", deck="d3", bots=("a", "b")))
    await settle()
    assert sorted(process for one in playing(table).values() for process in one if process[0] == "a") == [
        "a-1.1",
        "a-2.1",
    ]
    table.arena.submit(game("g2"))
    await settle()
    assert "g2" not in playing(table), "the process that could play it is full"
    table.arena.ended("a-2.1", FaultKind.CRASH)
    await end_games(table)
    assert table.stale == ["a-1.1"]


async def test_decks_that_are_retired_are_forgotten() -> None:
    table = Table(fresh=True)
    for bot in "ab":
        table.player(bot, 9, process=f"{bot}-1.1")
    table.arena.submit(game("g1"))
    await settle()
    await end_games(table)
    table.arena.retired(["d", "never heard of"])
    table.arena.submit(game("g2"))
    await settle()
    assert "g2" in playing(table)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 2),
    st.lists(st.tuples(st.permutations("abc"), st.integers(0, 4)), min_size=1, max_size=25),
    st.integers(1, 4),
)
def test_every_game_is_played_and_no_process_meets_a_deck_twice(
    instances: int, wanted: list[tuple[list[str], int]], max_matches: int
) -> None:
    """With a runner that replaces the processes that it is asked to replace, and nothing else."""

    async def play() -> None:
        table = Table(fresh=True)
        generations: dict[str, int] = {}
        for bot in "abc":
            for instance in range(1, instances + 1):
                generations[f"{bot}-{instance}"] = 1
                table.player(bot, max_matches, process=f"{bot}-{instance}.1")
        for number, (bots, deck) in enumerate(wanted):
            table.arena.submit(game(f"g{number}", f"d{deck}", (bots[0], bots[1])))
        met: set[tuple[str, str]] = set()
        done = 0
        while len(table.results) < len(wanted):
            before = len(table.results), len(table.stale)
            await settle()
            for one in table.arena.games:
                for seat in one.seats:
                    assert seat.session is not None
                    meeting = (seat.session.process, one.spec.deck)
                    assert meeting not in met
                    met.add(meeting)
            await end_games_of(table)
            for process in table.stale[done:]:
                done += 1
                place = process.rpartition(".")[0]
                assert process == f"{place}.{generations[place]}", "each is said once"
                generations[place] += 1
                table.arena.ended(process, FaultKind.DISCONNECT)
                table.player(process[0], max_matches, process=f"{place}.{generations[place]}")
            assert (len(table.results), len(table.stale)) != before, "nothing moves any more"
        assert not any(result["faults"] for result in table.results)
        # A process is replaced only for a deck that it has met.
        assert {process for process, _ in met} >= set(table.stale)

    async def end_games_of(table: Table) -> None:
        under_way = set(table.arena.games)
        while any(one in table.arena.games for one in under_way):
            for player in table.players:
                table.round(player, lambda seat: None)

    asyncio.run(play())
