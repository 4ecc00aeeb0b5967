"""What becomes of a game when a bot does not do its part."""

from __future__ import annotations

import pytest
from support.tables import Table, game_spec
from tressette.rules.presets import PRESETS, resolve


@pytest.mark.parametrize("preset", sorted(PRESETS))
async def test_every_preset_ends_when_everybody_leaves_at_once(preset: str) -> None:
    table = Table()
    players = table.sit(game_spec(rules=PRESETS[preset]))
    for player in players:
        player.leave()
    (result,) = table.results
    assert {(bot, kind) for bot, kind, _ in result["faults"]} == {
        (p.session.name, "disconnect") for p in players
    }
    assert not table.arena.games


@pytest.mark.parametrize("preset", ["tressette-21", "tressette-002", "ciapano-trio", "tressette-due"])
async def test_a_whole_game_by_hand(preset: str) -> None:
    table = Table()
    players = table.sit(game_spec(rules=resolve(preset)))
    table.finish()
    (result,) = table.results
    assert result["faults"] == []
    assert [player.session.playing for player in players] == [0] * len(players)


async def test_declining_monte_is_an_answer_that_changes_nothing_yet() -> None:
    rules = resolve("tressette-004", monte="on_request")
    for number in range(200):
        table = Table()
        table.sit(game_spec(rules=rules, seed=number.to_bytes(32, "big")))
        game = next(iter(table.arena.games))
        if len(game.match.pending) == 2:
            break
    else:
        pytest.fail("no such deck")
    table.finish()
    assert len(table.results) == 1


async def test_a_closed_arena_plays_nothing_more() -> None:
    table = Table()
    players = table.sit(game_spec())
    lines = len(table.record.lines)
    table.arena.close()
    for player in players:
        player.take()
        player.leave()
    assert table.results == []
    assert len(table.record.lines) == lines
