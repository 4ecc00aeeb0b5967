"""Which games start when, over which sessions; what a game is known by; who comes and goes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.tables import KEY, Table, game_spec, play_weakest, settle
from tressette.play.arena import Arena
from tressette.play.commit import GroupCommit
from tressette.play.matchmaker import Matchmaker
from tressette.record.reader import read_results
from tressette.record.writer import Record
from tressette.rules.cards import cards_of
from tressette.rules.events import DealStarted
from tressette.rules.presets import PRESETS, resolve

PAIRS = resolve("tressette-21-duplicate")


def _playing(table: Table) -> list[str]:
    return sorted(game.spec.game for game in table.arena.games)


# -- starting -----------------------------------------------------------------------------------------


async def test_a_game_starts_when_its_last_bot_comes() -> None:
    table = Table()
    table.arena.submit(game_spec())
    for name in "abc":
        table.player(name)
        await settle()
        assert _playing(table) == []
    table.player("d")
    await settle()
    assert _playing(table) == ["g1"]


async def test_a_game_that_cannot_start_holds_up_nobody() -> None:
    table = Table()
    table.arena.submit(game_spec("waits", bots=("a", "b", "c", "nobody")))
    table.arena.submit(game_spec("plays"))
    for name in "abcd":
        table.player(name)
    await settle()
    assert _playing(table) == ["plays"]
    table.player("nobody")
    await settle()
    assert _playing(table) == ["plays"]
    table.finish()
    await settle()
    assert _playing(table) == ["waits"]
    table.finish()
    assert [result["game"] for result in table.results] == ["plays", "waits"]


async def test_games_start_in_order_as_there_is_room() -> None:
    table = Table()
    for name in "abcd":
        table.player(name, max_matches=2)
    for number in range(5):
        table.arena.submit(game_spec(f"g{number}"))
    await settle()
    assert _playing(table) == ["g0", "g1"]
    for _ in range(5):
        table.finish()
        await settle()
    assert [line["game"] for line in table.record.of("match")] == ["g0", "g1", "g2", "g3", "g4"]
    assert len(table.results) == 5


async def test_two_seats_of_a_game_never_share_a_session() -> None:
    table = Table()
    spec = game_spec(rules=PAIRS, bots=("a", "b", "a", "b"))
    table.arena.submit(spec)
    for name in "ab":
        table.player(name, max_matches=100)
    await settle()
    assert _playing(table) == []
    for name in "ab":
        table.player(name, max_matches=100)
    await settle()
    (game,) = table.arena.games
    sessions = [seat.session for seat in game.seats]
    assert len({id(session) for session in sessions}) == 4
    assert tuple(session.name for session in sessions if session) == spec.bots


async def test_the_least_busy_session_of_a_bot_is_taken() -> None:
    table = Table()
    for name in "aabcd":
        table.player(name, max_matches=4)
    for number in range(4):
        table.arena.submit(game_spec(f"g{number}"))
    await settle()
    assert [player.session.playing for player in table.players] == [2, 2, 4, 4, 4]


async def test_a_bot_that_drains_finishes_and_starts_nothing() -> None:
    table = Table()
    players = table.sit(game_spec("last"))
    table.arena.drains(players[0].session)
    table.arena.submit(game_spec("next"))
    await settle()
    table.finish()
    await settle()
    assert [result["game"] for result in table.results] == ["last"]
    assert _playing(table) == []


async def test_a_waiting_game_can_be_cancelled() -> None:
    table = Table()
    table.arena.submit(game_spec("one"))
    table.arena.submit(game_spec("two"))
    assert table.arena.cancel("one")
    assert not table.arena.cancel("one")
    for name in "abcd":
        table.player(name)
    await settle()
    assert _playing(table) == ["two"]
    assert not table.arena.cancel("two"), "it has started"
    table.finish()
    assert [result["game"] for result in table.results] == ["two"]


# -- coming and going -----------------------------------------------------------------------------------


async def test_comings_and_goings_are_told() -> None:
    seen: list[tuple[str, bool]] = []
    table = Table()
    table.arena = Arena(KEY, on_session=lambda session, is_open: seen.append((session.name, is_open)))
    player = table.player("a")
    player.leave()
    player.leave()  # grpc may tell twice
    assert seen == [("a", True), ("a", False)]
    assert table.arena.sessions == {}


async def test_that_a_session_takes_no_more_is_told_when_it_drains_and_not_again() -> None:
    seen: list[tuple[str, bool]] = []
    table = Table()
    table.arena = Arena(KEY, on_session=lambda session, is_open: seen.append((session.name, is_open)))
    player = table.player("a")
    for _ in range(2):
        table.arena.drains(player.session)
        assert seen == [("a", True), ("a", False)]
    assert player.session in table.arena
    player.leave()
    assert seen == [("a", True), ("a", False)]


async def test_a_lost_session_is_played_for_and_others_are_not_held_up() -> None:
    table = Table()
    players = [table.player(name, max_matches=2) for name in "abcd"]
    others = [table.player(name) for name in "efgh"]
    for number in range(2):
        table.arena.start(game_spec(f"g{number}"), [player.session for player in players])
    table.arena.start(game_spec("other", bots="efgh"), [player.session for player in others])
    for _ in range(3):
        for player in players:
            table.round(player, lambda seat: None)
    players[1].leave()
    table.finish()
    results = {result["game"]: result for result in table.results}
    assert results["other"]["faults"] == []
    for number in range(2):
        ((bot, kind, count),) = results[f"g{number}"]["faults"]
        assert (bot, kind) == ("b", "disconnect")
        assert 7 <= count <= 9
    assert {fault[2:] for fault in table.faults()} == {("substitute", "SESSION_ENDED")}


async def test_a_session_that_leaves_with_news_of_a_finished_game_untaken() -> None:
    table = Table()
    players = table.sit(game_spec())
    while not table.results:
        for player in players:
            if any(seat.open for seat in player.session.news):
                table.round(player, lambda seat: None)
    assert any(player.session.news for player in players)
    for player in players:
        player.leave()
    assert len(table.results) == 1
    assert table.results[0]["faults"] == []


async def test_the_bot_may_come_back_for_the_next_game() -> None:
    table = Table()
    players = table.sit(game_spec("cut"))
    players[0].leave()
    table.finish()
    table.arena.submit(game_spec("next"))
    table.player("a")
    await settle()
    table.finish()
    assert [(result["game"], bool(result["faults"])) for result in table.results] == [
        ("cut", True),
        ("next", False),
    ]


async def test_a_closed_arena_starts_nothing_any_more() -> None:
    table = Table()
    for name in "abcd":
        table.player(name, max_matches=9)
    table.arena.submit(game_spec())
    table.arena.close()
    Matchmaker(table.arena, [("preset", PAIRS)], "run").fill()
    await settle()
    assert table.arena.games == set()
    assert table.record.lines == []


# -- what a seat is known by ----------------------------------------------------------------------------


def _identities(key: bytes = KEY, **spec: Any) -> list[tuple[str, bytes]]:
    """(handle, bot seed) by seat as first taken."""
    table = Table(key=key)
    players = table.sit(game_spec(**spec))
    return [(player.seat().handle, player.seat().game.bot_seed(player.seat())) for player in players]


async def test_handles_and_seeds_are_the_same_each_time() -> None:
    assert _identities() == _identities()


async def test_handles_and_seeds_of_two_seats_have_nothing_in_common() -> None:
    everything = [
        *_identities(),
        *_identities(game="g2"),
        *_identities(key=bytes(32)),
    ]
    handles, seeds = zip(*everything, strict=True)
    assert len(set(handles)) == len(set(seeds)) == 12
    for handle in handles:
        assert handle.isascii()
        assert len(handle) == 22
    for seed in seeds:
        assert len(seed) == 32
    # No long common part that would tell which game a handle is of.
    assert all(len({handle[start : start + 4] for handle in handles}) == 12 for start in range(0, 20, 4))


async def test_an_attempt_has_new_handles_and_the_same_chance() -> None:
    first, second = _identities(), _identities(attempt=2)
    assert [seed for _, seed in first] == [seed for _, seed in second]
    assert not {handle for handle, _ in first} & {handle for handle, _ in second}


async def test_the_deck_does_not_show_in_handles_or_seeds() -> None:
    assert _identities() == _identities(seed=bytes(range(32)))


async def test_drawn_partners_take_their_new_seats() -> None:
    moved = 0
    for number in range(12):
        table = Table()
        players = table.sit(game_spec(rules=resolve("tressette-004-drawn"), seed=number.to_bytes(32, "big")))
        (game,) = table.arena.games
        seating = game.match.seating
        moved += seating != (0, 1, 2, 3)
        assert [seat.number for seat in game.seats] == [0, 1, 2, 3]
        dealt = next(event for event in game.log if isinstance(event, DealStarted))
        assert dealt.leader in game.match.pending
        for index, player in enumerate(players):
            seat = player.seat()
            assert (seat.player, seat.number) == (index, seating[index])
            assert game.seats[seat.number] is seat
        table.finish(play_weakest)
        (result,) = table.results
        assert result["bots"] == ["abcd"[seating.index(seat)] for seat in range(4)]
        assert result["sides"] == [
            [result["bots"][0], result["bots"][2]],
            [result["bots"][1], result["bots"][3]],
        ]
        assert len(cards_of(dealt.hands[0] or 0)) == 10
    assert moved >= 4


# -- casual matches -------------------------------------------------------------------------------------


async def test_the_matchmaker_keeps_everybody_busy() -> None:
    table = Table()
    presets = [(name, PRESETS[name]) for name in ("tressette-due-duplicate", "ciapano-trio-duplicate")]
    maker = Matchmaker(table.arena, presets, "run")
    for name in "abcde":
        table.player(name)
        maker.fill()
    assert sorted(game.spec.preset for game in table.arena.games) == sorted(name for name, _ in presets)
    assert sorted(game.spec.game for game in table.arena.games) == ["run-1", "run-2"]
    assert [player.session.playing for player in table.players] == [1] * 5
    table.finish()
    maker.fill()
    assert len(table.arena.games) == 2
    seeds = {game.spec.seed for game in table.arena.games}
    assert len(seeds) == 2


async def test_a_preset_with_more_players_than_are_here_holds_nobody_up() -> None:
    table = Table()
    names = ("ciapano-five", "tressette-due-duplicate")
    maker = Matchmaker(table.arena, [(name, PRESETS[name]) for name in names], "run")
    for name in "ab":
        table.player(name)
    for _ in range(2):
        maker.fill()
        assert [game.spec.preset for game in table.arena.games] == ["tressette-due-duplicate"]
        table.finish()
    for name in "cde":
        table.player(name)
    maker.fill()
    assert [game.spec.preset for game in table.arena.games] == ["ciapano-five"]


async def test_a_preset_whose_players_are_busy_is_waited_for() -> None:
    table = Table()
    names = ("tressette-due-duplicate", "ciapano-trio-duplicate")
    maker = Matchmaker(table.arena, [(name, PRESETS[name]) for name in names], "run")
    for name in "abcd":
        table.player(name)
    maker.fill()
    maker.fill()
    assert [game.spec.preset for game in table.arena.games] == ["tressette-due-duplicate"]
    table.finish()
    maker.fill()
    assert [game.spec.preset for game in table.arena.games] == ["ciapano-trio-duplicate"]


async def test_the_matchmaker_spreads_matches_over_sessions() -> None:
    table = Table()
    for _ in range(3):
        table.player("same", max_matches=4)
    Matchmaker(table.arena, [("p", resolve("tressette-due-duplicate"))], "run").fill()
    assert sorted(player.session.playing for player in table.players) == [4, 4, 4]
    for game in table.arena.games:
        assert len({id(seat.session) for seat in game.seats}) == 2


# -- committing ---------------------------------------------------------------------------------------


async def test_results_are_committed_in_groups_after_a_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record(tmp_path, "w")
    syncs: list[int] = []

    def sync() -> None:
        syncs.append(len(list(read_results(tmp_path))))

    monkeypatch.setattr(record, "sync", sync)
    said: list[dict[str, Any]] = []
    all_said = asyncio.Event()

    def committed(result: dict[str, Any]) -> None:
        said.append(result)
        if len(said) == 3:
            all_said.set()

    commit = GroupCommit(record, committed)
    for number in range(3):
        record.result_line(game=f"g{number}")
        commit.add({"game": f"g{number}"})
    running = asyncio.create_task(commit.run())
    async with asyncio.timeout(60):
        await all_said.wait()
    assert syncs == [3], "one sync for all, when their lines had been handed over"
    assert [result["game"] for result in said] == ["g0", "g1", "g2"]
    running.cancel()
    monkeypatch.undo()
    record.close()


async def test_a_disk_that_refuses_commits_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record(tmp_path, "w")
    said: list[dict[str, Any]] = []
    commit = GroupCommit(record, said.append)

    def refuse() -> None:
        raise OSError("disk on fire")

    monkeypatch.setattr(record, "sync", refuse)
    commit.add({"game": "g"})
    with pytest.raises(OSError, match="on fire"):
        await asyncio.wait_for(commit.run(), 60)
    assert said == []
    monkeypatch.undo()
    record.close()
