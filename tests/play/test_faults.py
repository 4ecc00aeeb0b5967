"""What becomes of a game when a bot does not do its part."""

from __future__ import annotations

import pytest
from support.tables import MONTE, TWO_POOR_HANDS, Table, game_spec
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
    table = Table()
    table.sit(game_spec(rules=MONTE, seed=TWO_POOR_HANDS))
    (game,) = table.arena.games
    assert len(game.match.pending) == 2
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
