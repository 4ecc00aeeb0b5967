"""What a hostile or unlucky bot could make the arena keep for ever is bounded: without a network."""

from __future__ import annotations

import pytest
from support.tables import ONE_DEAL, Table, game_spec, settle
from tressette.play import arena
from tressette.play.config import PlayConfig
from tressette.play.matchmaker import Matchmaker
from tressette.play.session import UnknownTurn
from tressette.rules.events import FaultEffect, FaultKind

_NOTHING = {FaultKind.NOT_YOUR_TURN: FaultEffect.NONE}


def _kept(effect: FaultEffect) -> PlayConfig:
    return PlayConfig(move_ms=1000, policies={FaultKind.NOT_YOUR_TURN: effect})


@pytest.mark.parametrize("effect", [FaultEffect.NONE, FaultEffect.SUBSTITUTE])
async def test_answers_to_turns_never_asked_do_not_fill_the_record(effect: FaultEffect) -> None:
    """Every one is refused, but a thousand of them are not a thousand events for everybody."""
    table = Table(_kept(effect))
    players = table.sit(game_spec())
    (game,) = table.arena.games
    (asked,) = [player for player in players if player.seat().open]
    (idle, *_) = [player for player in players if player is not asked]
    seat = idle.seat()
    for _ in range(1000):
        idle.session.answer(seat.handle, 77, [])
    refused = idle.take().refused
    assert len(refused) == 1000
    assert all(isinstance(one.error, UnknownTurn) for one in refused)
    assert len(game.log) < 20
    assert seat.strikes == 8
    for player in players:
        player.take()
        if player.seat().open:
            player.answer(player.seat())
    table.finish()
    assert table.results


async def test_strikes_count_every_answer_to_a_turn_never_asked() -> None:
    table = Table(PlayConfig(move_ms=1000, policies=_NOTHING, strikes=20))
    players = table.sit(game_spec())
    seat = players[2].seat()
    for _ in range(20):
        assert not table.results
        players[2].session.answer(seat.handle, 77, [])
    assert table.results[0]["faults"] == [["c", "not_your_turn", 20]]


async def test_a_bot_that_claims_to_know_the_end_leaves_nothing_behind() -> None:
    """It lost its stream before the last message of its match and names the number that this would have."""
    table = Table()
    players = table.sit(game_spec())
    (game,) = table.arena.games
    session = players[0].session
    while not table.results:
        for player in players:
            if player is not players[0] or player.seat().open:
                table.round(player, lambda seat: None)
            if table.results:
                break
    handle = next(iter(session.seats), None)
    assert handle is not None, "the end has not been taken"
    session.detach()
    session.attach(lambda: None, lambda: None, lambda: None, {handle: len(game.log)})
    assert session.seats == {}
    assert not session.news


async def test_finished_games_do_not_wait_for_their_deadlines() -> None:
    """With an hour in the bank a deadline is an hour away; the games of that hour must not be kept for it."""
    table = Table(PlayConfig(move_ms=1000, bank_ms=3_600_000))
    players = [table.player(name) for name in "abcd"]
    most = 0
    for number in range(300):
        table.arena.start(game_spec(f"g{number}"), [player.session for player in players])
        table.finish()
        most = max(most, len(table.arena._due))
    assert len(table.results) == 300
    assert most <= 4 * 64 + 8


async def test_a_bot_that_leaves_many_matches_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the arena plays for it, it plays with pauses, in which others have their turn."""
    monkeypatch.setattr(arena, "_SLICE_S", 0.0)
    table = Table()
    players = [table.player(name, max_matches=50) for name in "abcd"]
    for number in range(50):
        table.arena.start(game_spec(f"g{number}"), [player.session for player in players])
    for player in players:
        player.leave()
    before = len(table.results)
    assert before < 10
    await settle()
    assert before < len(table.results) < 20
    for _ in range(50):
        await settle()
    assert len(table.results) == 50
    assert {kind for result in table.results for _, kind, _ in result["faults"]} == {"disconnect"}


async def test_an_arena_that_is_closed_plays_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "_SLICE_S", 0.0)
    table = Table()
    players = [table.player(name, max_matches=50) for name in "abcd"]
    for number in range(50):
        table.arena.start(game_spec(f"g{number}"), [player.session for player in players])
    for player in players:
        player.leave()
    table.arena.close()
    before = len(table.results)
    await settle()
    assert len(table.results) == before


async def test_the_matchmaker_starts_many_matches_with_pauses() -> None:
    table = Table()
    for name in "abcd":
        table.player(name, max_matches=100)
    matchmaker = Matchmaker(table.arena, [("one-deal", ONE_DEAL)], "run")
    matchmaker.fill()
    assert 0 < len(table.arena.games) < 50
    await settle()
    await settle()
    assert len(table.arena.games) == 100
    table.arena.drain()
    matchmaker.fill()
    table.arena.close()
