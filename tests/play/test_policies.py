"""What each kind of fault leads to under each policy, strikes, and bots that never come."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.tables import Player, Table, committed_faults, game_spec, settle
from tressette.play.config import POLICIES, ConfigError, PlayConfig, policies_from
from tressette.play.session import Disqualified, Seat, UnknownTurn
from tressette.record.game import GameSpec
from tressette.rules.actions import Action, PlayCard
from tressette.rules.cards import CARDS
from tressette.rules.errors import MalformedAction, Refusal
from tressette.rules.events import DealEnd, DealScored, FaultEffect, FaultKind, MatchEnded
from tressette.rules.presets import resolve

LEAST = resolve("traversone-003-21-duplicate")
MOST = resolve("tressette-21-duplicate")


def asked(table: Table) -> tuple[Player, Seat]:
    """The player whose turn it is, and the seat, the turn delivered."""
    for player in table.players:
        for seat in player.take().turns:
            return player, seat
    raise AssertionError("nobody is asked")


def foreign_card(seat: Seat) -> list[Action]:
    """A card that the seat does not hold."""
    hand = seat.game.match.deal.hands[seat.number]
    return [PlayCard(next(card for card in CARDS if not hand >> card & 1))]


def be_illegal(table: Table, player: Player, seat: Seat) -> None:
    player.answer(seat, foreign_card(seat))


def be_malformed(table: Table, player: Player, seat: Seat) -> None:
    error = MalformedAction(Refusal.UNKNOWN_CARD, "99 is no card")
    player.session.malformed(seat.handle, seat.turn, error)


def be_late(table: Table, player: Player, seat: Seat) -> None:
    table.clock.pass_ms(10_000)
    table.arena.expire()


def be_gone(table: Table, player: Player, seat: Seat) -> None:
    player.leave()


def be_crashed(table: Table, player: Player, seat: Seat) -> None:
    table.arena.ended(player.session.process, FaultKind.CRASH)


def be_out_of_turn(table: Table, player: Player, seat: Seat) -> None:
    player.session.answer(seat.handle, seat.turn + 7, foreign_card(seat))


def launched(table: Table, spec: GameSpec) -> None:
    """A game between launched bots."""
    players = [table.player(name, process=f"{name}-1.1") for name in spec.bots]
    table.arena.start(spec, [player.session for player in players])


Misdeed = Callable[[Table, Player, Seat], None]
MISDEEDS: dict[FaultKind, Misdeed] = {
    FaultKind.ILLEGAL: be_illegal,
    FaultKind.MALFORMED: be_malformed,
    FaultKind.TIMEOUT: be_late,
    FaultKind.DISCONNECT: be_gone,
    FaultKind.CRASH: be_crashed,
    FaultKind.NOT_YOUR_TURN: be_out_of_turn,
}


@pytest.mark.parametrize("effect", POLICIES)
@pytest.mark.parametrize("kind", MISDEEDS)
async def test_every_kind_with_every_policy(kind: FaultKind, effect: FaultEffect) -> None:
    if (kind, effect) == (FaultKind.NOT_YOUR_TURN, FaultEffect.SUBSTITUTE):
        effect = FaultEffect.NONE  # nothing is open that could be played for it
    table = Table(PlayConfig(2000, illegal_retries=0, policies={kind: effect}))
    launched(table, game_spec(rules=LEAST))
    player, seat = asked(table)
    MISDEEDS[kind](table, player, seat)
    (game,) = {seat.game}
    assert [(fault[0], fault[1], fault[2]) for fault in table_faults(table, seat)][:1] == [
        (seat.number, str(kind), str(effect))
    ]
    if effect is FaultEffect.FORFEIT:
        ended = game.log[-1]
        assert isinstance(ended, MatchEnded)
        assert ended.seat == seat.number
        assert ended.ranks[seat.number] == 4
        (result,) = table.results
        assert (result["termination"], result["offender"]) == ("forfeit", player.session.name)
    elif effect in (FaultEffect.TRANSFER_ALL, FaultEffect.PENALTY):
        scored = next(event for event in game.log if isinstance(event, DealScored))
        assert scored.ended_by is DealEnd.REVOKE
        points = [side.points for side in scored.sides if side is not None]
        assert points == [66 if number == seat.number else 0 for number in range(4)]
    else:
        if seat.open:
            player.answer(seat)
        table.finish()
        assert len(table.results) == 1
    assert table.arena.faults[kind, effect] >= 1


def table_faults(table: Table, seat: Seat) -> list[tuple[int, str, str, str]]:
    """Faults of the log, whether or not a line of the record has come since."""
    return [
        (event.seat, str(event.kind), str(event.effect), event.reason)
        for event in committed_faults(seat.game.log)
    ]


async def test_a_revoke_penalty_goes_to_the_others_where_points_are_wanted() -> None:
    table = Table(PlayConfig(illegal_retries=0, policies={FaultKind.ILLEGAL: FaultEffect.TRANSFER_ALL}))
    table.sit(game_spec(rules=MOST))
    player, seat = asked(table)
    be_illegal(table, player, seat)
    (result,) = table.results
    assert result["points"] == [0 if side == seat.number % 2 else 66 for side in range(2)]


async def test_the_strike_that_is_one_too_many_loses_the_match() -> None:
    table = Table(PlayConfig(illegal_retries=5, strikes=3))
    table.sit(game_spec(rules=LEAST))
    player, seat = asked(table)
    for _ in range(2):
        player.answer(seat, foreign_card(seat))
        assert [refused.may_retry for refused in player.take().refused] == [True]
    player.answer(seat, foreign_card(seat))
    (refused,) = player.take().refused
    assert isinstance(refused.error, Disqualified)
    assert not refused.may_retry
    (result,) = table.results
    assert result["offender"] == player.session.name
    assert result["faults"] == [[player.session.name, "illegal", 3]]


async def test_strikes_are_counted_for_each_seat_and_over_all_kinds() -> None:
    table = Table(PlayConfig(2000, illegal_retries=0, strikes=2))
    table.sit(game_spec(rules=LEAST))
    first, seat = asked(table)
    be_illegal(table, first, seat)
    second, other = asked(table)
    assert other is not seat
    be_late(table, second, other)
    assert not table.results
    while True:
        player, now = asked(table)
        if now is seat:
            break
        player.answer(now)
    be_late(table, first, seat)
    (result,) = table.results
    assert result["offender"] == first.session.name


async def test_an_answer_to_a_turn_that_was_never_asked_is_told_so() -> None:
    table = Table()
    table.sit(game_spec(rules=LEAST))
    player, seat = asked(table)
    be_out_of_turn(table, player, seat)
    (refused,) = player.take().refused
    assert isinstance(refused.error, UnknownTurn)
    assert seat.open, "the turn that is open is still open"
    player.answer(seat)
    table.finish()
    assert table.results[0]["faults"] == [[player.session.name, "not_your_turn", 1]]


@pytest.mark.parametrize("effect", [FaultEffect.SUBSTITUTE, FaultEffect.FORFEIT])
async def test_a_bot_that_refuses_to_start(effect: FaultEffect) -> None:
    table = Table(PlayConfig(policies={FaultKind.REFUSED_TO_START: effect}))
    for name in "abc":
        table.player(name)
    table.arena.submit(game_spec(rules=LEAST))
    assert not table.arena.refused_to_start("another", "d")
    assert table.arena.refused_to_start("g1", "d")
    await settle()
    table.finish()
    (result,) = table.results
    kinds = {(bot, kind) for bot, kind, _ in result["faults"]}
    assert kinds == {("d", "refused_to_start")}
    assert (result["offender"] == "d") == (effect is FaultEffect.FORFEIT)


async def test_a_game_with_two_bots_missing_waits_for_the_one_that_may_come() -> None:
    table = Table()
    for name in "ab":
        table.player(name)
    table.arena.submit(game_spec(rules=LEAST))
    assert table.arena.refused_to_start("g1", "d")
    await settle()
    assert [spec.game for spec in table.arena.waiting] == ["g1"]
    table.player("c")
    await settle()
    table.finish()
    assert {(bot, kind) for bot, kind, _ in table.results[0]["faults"]} == {("d", "refused_to_start")}


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"policies": {FaultKind.TIMEOUT: FaultEffect.RETRY}}, "policies.timeout"),
        ({"policies": {FaultKind.TIMEOUT: FaultEffect.NONE}}, "policies.timeout"),
        ({"move_ms": -1}, "move_ms"),
        ({"strikes": -1}, "strikes"),
        ({"move_ms": 0, "increment_ms": 100}, "increment_ms"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(settings: dict[str, object], name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        PlayConfig(**settings)  # type: ignore[arg-type]
    assert caught.value.name == name


def test_policies_by_name() -> None:
    found = policies_from({"timeout": "forfeit", "illegal": "transfer_all"})
    assert found == {FaultKind.TIMEOUT: FaultEffect.FORFEIT, FaultKind.ILLEGAL: FaultEffect.TRANSFER_ALL}
    with pytest.raises(ConfigError, match=r"policies\.tiemout"):
        policies_from({"tiemout": "forfeit"})
    with pytest.raises(ConfigError, match="lose"):
        policies_from({"timeout": "lose"})
