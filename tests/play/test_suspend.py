"""Suspending an arena and taking its games up in another: nothing may be lost, moved on or told."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import structlog
from support.matches import random_answer
from support.tables import MONTE, TWO_POOR_HANDS, Player, Table, game_spec, settle
from tressette.play import suspend
from tressette.play.config import PlayConfig
from tressette.play.game import Game
from tressette.play.session import Seat
from tressette.play.suspend import SuspensionError
from tressette.record.writer import Record
from tressette.rules.actions import Action, PlayCard
from tressette.rules.cards import CARDS
from tressette.rules.events import FaultEffect, FaultKind
from tressette.rules.presets import PRESETS, resolve

GRACE_S = 30.0
HARSH = PlayConfig(
    move_ms=1000,
    bank_ms=5000,
    increment_ms=100,
    illegal_retries=1,
    policies={
        FaultKind.TIMEOUT: FaultEffect.SUBSTITUTE,
        FaultKind.ILLEGAL: FaultEffect.PENALTY,
        FaultKind.MALFORMED: FaultEffect.TRANSFER_ALL,
    },
    strikes=50,
)
DECLARING = resolve("tressette-21", accuse="optional", signals="on", partners="drawn", call_out="own")


class Returned(Player):
    """The bot of a restored session, back with its resume token."""

    def __init__(self, table: Table, name: str, token: str, positions: Mapping[str, int]) -> None:
        session = table.arena.resumable(token, name)
        assert session is not None
        self.table, self.session, self.woken = table, session, 0
        session.attach(self._wake, self._wake, lambda: None, positions)
        table.arena.resumed(session)
        table.players.append(self)


def player_called(table: Table, name: str) -> Player:
    return next(player for player in table.players if player.session.name == name)


def game_of(table: Table) -> Game:
    (game,) = table.arena.games
    return game


def suspended(table: Table) -> dict[str, Any]:
    """What comes out of the file."""
    data = table.arena.suspend()
    table.arena.close()
    found: dict[str, Any] = json.loads(json.dumps(data))
    return found


def restored(data: Mapping[str, Any], config: PlayConfig | None = None) -> Table:
    """An arena with the same key, of other settings, that has taken the games up."""
    table = Table(config or PlayConfig(move_ms=1), key=bytes.fromhex(data["key"]))
    table.clock.pass_ms(86_400_000)
    assert table.arena.restore(data, GRACE_S) == len(data["games"])
    return table


def all_back(table: Table, before: Table) -> list[Player]:
    """Every bot of a former table comes back, with all that it had been sent."""
    return [
        Returned(
            table,
            player.session.name,
            player.session.resume_token,
            {handle: seat.sent for handle, seat in player.session.seats.items()},
        )
        for player in before.players
        if player.session.seats
    ]


def state_of(seat: Seat) -> dict[str, Any]:
    names = ("handle", "player", "number", "turn", "open", "refusals", "strikes", "bank", "gone")
    return {name: getattr(seat, name) for name in names} | {"lapsed": set(seat.lapsed)}


def told(lines: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """The lines of a record without the attempt and the times of its end."""
    apart = ("attempt", "duration_ms", "ended_unix_ms")
    return [(kind, {k: v for k, v in fields.items() if k not in apart}) for kind, fields in lines]


class Chance:
    """Answers at random, some of them late and some of them wrong."""

    def __init__(self, seed: int, mischief: float) -> None:
        self.random = random.Random(seed)
        self.mischief = mischief

    def move(self, table: Table) -> bool:
        """One answer, or a fault; False when nobody is asked anything."""
        for player in table.players:
            player.take()
        asked = [
            (player, seat) for player in table.players for seat in player.session.seats.values() if seat.open
        ]
        if not asked:
            return False
        player, seat = self.random.choice(asked)
        table.clock.pass_ms(self.random.randrange(300))
        player.answer(seat, self._actions(table, seat))
        return True

    def _actions(self, table: Table, seat: Seat) -> list[Action]:
        if self.random.random() >= self.mischief:
            return random_answer(seat.game.match, seat.number, self.random)
        if self.random.random() < 0.3:
            table.clock.pass_ms(100_000)
            table.arena.expire()
        card = PlayCard(self.random.choice(CARDS))
        return [card] if self.random.random() < 0.7 else [card, card]


# -- the game -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rules", [*PRESETS.values(), DECLARING, MONTE], ids=[*PRESETS, "declaring", "monte on request"]
)
async def test_a_game_goes_on_where_it_stood(rules: Any) -> None:
    for seed, mischief in enumerate((0.0, 0.15)):
        chance = Chance(seed, mischief)
        one = Table(HARSH)
        one.sit(game_spec(rules=rules, seed=TWO_POOR_HANDS))
        for _ in range(chance.random.choice((0, 1, 3, 17, 60, 200))):
            if not chance.move(one):
                break
        if not one.arena.games:
            continue
        for player in one.players:
            player.take()
        game = game_of(one)
        seats = [state_of(seat) for seat in game.seats]
        written = told(one.record.lines)

        other = restored(suspended(one))
        again = game_of(other)
        assert again.log == game.log
        assert again.match.state() == game.match.state()
        assert [state_of(seat) for seat in again.seats] == seats
        assert again.spec.attempt == game.spec.attempt + 1
        assert again.config == HARSH
        assert [again.bot_seed(seat) for seat in again.seats] == [game.bot_seed(seat) for seat in game.seats]
        assert told(other.record.lines) == written

        all_back(other, one)
        while chance.move(other):
            pass
        assert not other.arena.games
        (result,) = other.results
        assert result["attempt"] == 2


async def test_what_follows_is_what_would_have_followed() -> None:
    played = []
    for cut in (False, True):
        table = Table(HARSH)
        table.sit(game_spec(rules=DECLARING))
        chance = Chance(7, 0.1)
        for _ in range(40):
            chance.move(table)
        if cut:
            before = table
            table = restored(suspended(before))
            all_back(table, before)
        while chance.move(table):
            pass
        played.append(told(table.record.lines))
    assert played[0] == played[1]
    assert played[0][-1][0] == "game"


async def test_every_kind_of_action_is_kept() -> None:
    kinds: set[str] = set()
    for rules in (DECLARING, MONTE, resolve("traversone-003-21"), resolve("tressette-21")):
        for seed in range(4):
            table = Table(HARSH)
            table.sit(game_spec(rules=rules, seed=TWO_POOR_HANDS))
            chance = Chance(seed, 0.05)
            while table.arena.games:
                data = table.arena.suspend()
                kinds |= {
                    action[0] for step in data["games"][0]["steps"] if step[0] == "act" for action in step[2]
                }
                kinds |= {step[0] for step in data["games"][0]["steps"]}
                if not all(chance.move(table) for _ in range(25)):
                    break
            restored(data)
    assert kinds >= {"act", "fault", "card", "declare", "monte"}


async def test_a_seat_whose_bot_had_left_stays_empty() -> None:
    table = Table(HARSH)
    players = table.sit(game_spec())
    players[2].leave()
    other = restored(suspended(table))
    seat = next(seat for seat in game_of(other).seats if seat.player == 2)
    assert (seat.session, seat.gone) == (None, FaultKind.DISCONNECT)
    all_back(other, table)
    other.finish()
    assert other.results
    assert other.record.of("match")[0]["versions"] == [f"{name} 1.0" for name in "abcd"]


async def test_suspending_twice_counts_the_attempts_and_no_time() -> None:
    table = Table(HARSH)
    table.sit(game_spec())
    for player in table.players:
        player.take()
    table.clock.pass_ms(400)
    first = suspended(table)
    second = restored(deepcopy(first))
    second.clock.pass_ms(20_000)
    data = suspended(second)
    assert data["games"][0]["spec"]["attempt"] == 2
    was, now = (
        [seat.pop("used_s") or 0 for seat in one["games"][0]["seats"]] for one in (first, deepcopy(data))
    )
    assert now == pytest.approx(was)
    assert sum(was) == pytest.approx(0.4)
    third = restored(data)
    all_back(third, table)
    third.finish()
    assert third.results[0]["attempt"] == 3
    assert third.arena.faults == {}


# -- clocks and grace ---------------------------------------------------------------------------------


async def test_a_clock_stands_still_until_the_bot_is_back() -> None:
    table = Table(PlayConfig(move_ms=1000))
    table.sit(game_spec())
    for player in table.players:
        player.take()
    table.clock.pass_ms(700)
    other = restored(suspended(table))
    other.clock.pass_ms(GRACE_S * 900)
    other.arena.expire()
    assert other.arena.faults == {}
    all_back(other, table)
    other.clock.pass_ms(299)
    other.arena.expire()
    assert other.arena.faults == {}
    other.clock.pass_ms(2)
    other.arena.expire()
    assert other.arena.faults == {(FaultKind.TIMEOUT, FaultEffect.SUBSTITUTE): 1}


async def test_a_turn_that_had_not_been_sent_has_all_its_time() -> None:
    table = Table(PlayConfig(move_ms=1000))
    table.sit(game_spec())
    table.clock.pass_ms(700)
    other = restored(suspended(table))
    for player in all_back(other, table):
        player.take()
    other.clock.pass_ms(999)
    other.arena.expire()
    assert other.arena.faults == {}
    other.clock.pass_ms(2)
    other.arena.expire()
    assert other.arena.faults == {(FaultKind.TIMEOUT, FaultEffect.SUBSTITUTE): 1}


async def test_a_turn_that_is_asked_of_a_bot_still_away_waits_for_it_too() -> None:
    table = Table(PlayConfig(move_ms=1000))
    table.sit(game_spec())
    for player in table.players:
        player.take()
    other = restored(suspended(table))
    asked = next(seat for seat in game_of(other).seats if seat.open)
    assert asked.session is not None
    first = player_called(table, asked.session.name)
    player = Returned(other, first.session.name, first.session.resume_token, {})
    player.take()
    player.answer(asked)
    (waiting,) = (seat for seat in game_of(other).seats if seat.open)
    assert waiting is not asked
    other.clock.pass_ms(GRACE_S * 900)
    other.arena.expire()
    assert other.arena.faults == {}
    assert waiting.session is not None
    late = player_called(table, waiting.session.name)
    assert Returned(other, late.session.name, late.session.resume_token, {}).take().turns == [waiting]
    other.clock.pass_ms(1001)
    other.arena.expire()
    assert list(other.arena.faults) == [(FaultKind.TIMEOUT, FaultEffect.SUBSTITUTE)]


async def test_a_bot_that_does_not_come_back_leaves_after_the_grace() -> None:
    table = Table()
    table.sit(game_spec())
    data = suspended(table)
    other = Table(key=bytes.fromhex(data["key"]))
    other.arena.restore(data, 0.01)
    other.clock.pass_ms(11)
    async with asyncio.timeout(60):
        await other.arena.until_idle()
    assert not other.arena.sessions
    assert other.arena.resumable(table.players[0].session.resume_token, "a") is None
    assert set(other.arena.faults) == {(FaultKind.DISCONNECT, FaultEffect.SUBSTITUTE)}
    assert len(other.results) == 1


async def test_a_bot_gets_what_it_missed_and_its_open_turn() -> None:
    table = Table(HARSH)
    table.sit(game_spec())
    chance = Chance(3, 0.0)
    for _ in range(5):
        chance.move(table)
    asked = [(seat.handle, seat.turn) for seat in game_of(table).seats if seat.open]
    other = restored(suspended(table))
    log = game_of(other).log
    turns = []
    for before in table.players:
        ((handle, seat),) = before.session.seats.items()
        known = seat.sent - 2
        player = Returned(other, before.session.name, before.session.resume_token, {handle: known})
        delivery = player.take()
        assert delivery.events[handle] == log[known:]
        turns += [(seat.handle, seat.turn) for seat in delivery.turns]
    assert turns == asked


# -- sessions -----------------------------------------------------------------------------------------


async def test_a_session_comes_back_as_it_was_and_its_token_is_hashed() -> None:
    table = Table()
    bots = [table.player(name, max_matches=3) for name in "abcd"]
    table.player("idle")
    table.arena.start(game_spec(), [bot.session for bot in bots])
    bots[0].session.draining = True
    bots[0].session.network = 0.025
    data = suspended(table)
    token = bots[0].session.resume_token
    assert token not in json.dumps(data)
    assert [one["name"] for one in data["sessions"]] == ["a", "b", "c", "d"]
    other = restored(data)
    assert other.arena.resumable(token, "b") is None
    assert other.arena.resumable(suspend.token_hash(token), "a") is None
    session = Returned(other, "a", token, {}).session
    was = bots[0].session
    for name in ("id", "name", "version", "max_matches", "draining", "network", "resume_token", "playing"):
        assert getattr(session, name) == getattr(was, name)
    assert session.attached
    assert session.owed == 0
    assert not other.arena.sessions["b"][0].attached


async def test_turns_that_were_sent_are_owed() -> None:
    table = Table()
    table.sit(game_spec())
    for player in table.players:
        player.take()
    other = restored(suspended(table))
    assert sum(player.session.owed for player in all_back(other, table)) == 1
    other.finish()
    assert [player.session.owed for player in other.players] == [0] * 4


# -- data that are none of ours -----------------------------------------------------------------------


def two_games() -> tuple[Table, dict[str, Any]]:
    table = Table()
    for game in ("g1", "g2"):
        table.sit(game_spec(game, bots=[f"{game}-{seat}" for seat in "abcd"]))
    for _ in range(3):
        for player in table.players:
            Table.round(player, lambda seat: None)
    return table, suspended(table)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda game: game["spec"].update(seed=bytes(31).hex() + "01"),
        lambda game: game["spec"].update(rules={"players": 9}),
        lambda game: game.update(events_sha256="0" * 64),
        lambda game: game.update(events=1),
        lambda game: game["steps"].append(["act", 0, [["card", "4d", None]], 0, 0]),
        lambda game: game["steps"].append(["act", 0, [["dance"]], 0, 0]),
        lambda game: game["steps"].append([]),
        lambda game: game["steps"].pop(),
        lambda game: game["seats"].pop(),
        lambda game: [seat.update(open=not seat["open"]) for seat in game["seats"]],
        lambda game: [seat.update(session="nobody") for seat in game["seats"]],
        lambda game: [seat.update(gone="fishing") for seat in game["seats"]],
        lambda game: [seat.pop("turn") for seat in game["seats"]],
        lambda game: [seat.update(bank_s="xxx") for seat in game["seats"]],
        lambda game: [seat.update(bank_s=float("nan")) for seat in game["seats"]],
        lambda game: [seat.update(used_s=float("inf")) for seat in game["seats"]],
        lambda game: [seat.update(strikes="q") for seat in game["seats"]],
        lambda game: [seat.update(handle="h") for seat in game["seats"]],
        lambda game: game["spec"].update(attempt=2**66),
        lambda game: game.update(played_s=float("nan")),
        lambda game: game["config"].update(move_ms=-1),
        lambda game: game["config"].update(moves=1),
        lambda game: game.pop("versions"),
    ],
)
async def test_a_game_that_cannot_be_played_to_where_it_stood_is_left_out(spoil: Any) -> None:
    table, data = two_games()
    games = {game["spec"]["game"]: game for game in data["games"]}
    spoil(games["g1"])
    other = Table(key=bytes.fromhex(data["key"]))
    with structlog.testing.capture_logs() as logs:
        assert other.arena.restore(data, GRACE_S) == 1
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["game not taken up"]
    assert game_of(other).spec.game == "g2"
    assert set(other.arena.sessions) == {f"g2-{seat}" for seat in "abcd"}
    assert {fields["game"] for _, fields in other.record.lines} == {"g2"}
    del table
    other.arena.close()


@pytest.mark.parametrize("spoil", [{"sessions": [{}]}, {"sessions": [[]]}, {"sessions": [{"id": "1"}]}])
async def test_sessions_that_cannot_be_read_are_refused_before_anything_happens(spoil: Any) -> None:
    _, data = two_games()
    other = Table()
    with pytest.raises(SuspensionError):
        other.arena.restore({**data, **spoil}, GRACE_S)
    assert not other.arena.games
    assert not other.arena.sessions
    assert not other.record.lines


async def test_a_network_that_is_no_time_is_refused() -> None:
    _, data = two_games()
    data["sessions"][0]["network_s"] = float("nan")
    with pytest.raises(SuspensionError):
        Table().arena.restore(data, GRACE_S)


# -- the file -----------------------------------------------------------------------------------------

DATA = {"v": suspend.SCHEMA, "key": "00ff", "sessions": [], "games": [{}, {}]}


def test_a_file_is_private_whole_and_taken_once(tmp_path: Path) -> None:
    data = DATA
    path = suspend.save(tmp_path, data)
    assert path.name == suspend.FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
    claimed = suspend.claim(tmp_path, "0007")
    assert claimed is not None
    assert claimed.data == data
    assert (claimed.key.hex(), claimed.games) == (data["key"], 2)
    assert suspend.claim(tmp_path, "0008") is None
    claimed.put_back()
    assert list(tmp_path.iterdir()) == [path]
    again = suspend.claim(tmp_path, "0008")
    assert again is not None
    again.done()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_server_was_writing_is_in_nobodys_way(tmp_path: Path) -> None:
    left = tmp_path / f"{suspend.FILE}.{os.getpid()}.tmp"
    left.touch()
    assert json.loads(suspend.save(tmp_path, DATA).read_text()) == DATA


def test_a_suspension_never_replaces_another(tmp_path: Path) -> None:
    data = DATA
    path = suspend.save(tmp_path, data)
    with pytest.raises(FileExistsError):
        suspend.save(tmp_path, {**data, "games": []})
    assert json.loads(path.read_text()) == data
    assert list(tmp_path.iterdir()) == [path]
    claimed = suspend.claim(tmp_path, "0001")
    assert claimed is not None
    suspend.save(tmp_path, {**data, "games": []})
    claimed.put_back()
    assert json.loads(claimed.path.read_text()) == data
    assert json.loads(path.read_text())["games"] == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"v": 2}', '{"v": 1}', '{"v": 1, "key": 7}', '{"v": 1, "key": "xy"}', "\ufffd"]
)
def test_a_file_that_is_none_of_ours_stays_where_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / suspend.FILE
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SuspensionError, match=suspend.FILE):
        suspend.claim(tmp_path, "0001")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("effect", [FaultEffect.FORFEIT, FaultEffect.TRANSFER_ALL, FaultEffect.NONE])
async def test_faults_move_no_match_on_that_is_suspended(effect: FaultEffect) -> None:
    table = Table(PlayConfig(policies={FaultKind.NOT_YOUR_TURN: effect}))
    players = table.sit(game_spec())
    (game,) = table.arena.games
    table.arena.suspend()
    table.arena.close()
    before = (len(game.log), len(table.record.lines))
    for player in players:
        player.session.answer(player.seat().handle, 9, [])
    await settle()
    assert (len(game.log), len(table.record.lines)) == before
    assert table.results == []
    assert not any(seat.open for seat in game.seats)


# -- draining -----------------------------------------------------------------------------------------


async def test_a_draining_arena_begins_nothing_and_says_so() -> None:
    table = Table()
    players = table.sit(game_spec())
    table.arena.submit(game_spec("g2"))
    table.arena.drain()
    woken = [player.woken for player in players]
    late = table.player("e")
    assert [player.session.drain_notice for player in [*players, late]] == [True] * 5
    assert all(woken)
    assert late.woken
    table.finish()
    await settle()
    assert [spec.game for spec in table.arena.waiting] == ["g2"]
    assert len(table.results) == 1


async def test_idle_is_when_the_last_game_is_over() -> None:
    table = Table()
    for game in ("g1", "g2"):
        table.sit(game_spec(game))
    idle = asyncio.create_task(table.arena.until_idle())
    await settle()
    assert not idle.done()
    table.finish()
    async with asyncio.timeout(60):
        await idle
    await table.arena.until_idle()


# -- the record's size --------------------------------------------------------------------------------


def test_the_bytes_of_all_segments_are_counted(tmp_path: Path) -> None:
    record = Record(tmp_path, "0001", segment_bytes=300)
    for number in range(20):
        record.trick_line("trick", number=number)
        record.flush()
    record.result_line(game="g")
    record.close()
    assert len(list(tmp_path.glob("tricks-*"))) > 2
    assert record.bytes_written == sum(path.stat().st_size for path in tmp_path.iterdir())
