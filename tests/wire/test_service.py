"""Sessions over real gRPC: how they open, what is refused and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc.aio import EOF
from support.streams import (
    LIMIT_S,
    Client,
    all_of,
    first_choice,
    has_ended,
    hello,
    lines_of,
    serving,
    true_in_time,
)
from support.tables import game_spec, settle
from tressette.play.config import PlayConfig
from tressette.record.writer import NullRecorder, Record
from tressette.rules.presets import resolve
from tressette.v1 import arena_service_pb2 as pb
from tressette.v1 import event_pb2 as event_pb
from tressette.wire.limits import MIN_KEEPALIVE_MS, Limits
from tressette.wire.server import BadAddress
from tressette.wire.stream import within

pytestmark = pytest.mark.asyncio(loop_scope="session")

BOTS = ("a", "b", "c", "d")


# -- Hello --------------------------------------------------------------------------------------------


async def test_a_welcome_says_what_holds() -> None:
    async with serving() as arena:
        client = await arena.connect()
        welcome = await client.greet("bot", max_matches=7)
        other = await (await arena.connect()).greet("bot")
    assert (welcome.name, welcome.protocol, welcome.max_matches) == ("bot", 1, 7)
    assert (welcome.max_answers, welcome.max_message_bytes) == (
        Limits().max_answers,
        Limits().max_message_bytes,
    )
    assert welcome.min_keepalive_ms == MIN_KEEPALIVE_MS
    assert welcome.session_id != other.session_id
    assert not welcome.resumed


@pytest.mark.parametrize(
    ("asked", "granted"), [(0, 1), (1, 1), (Limits().max_matches + 1, Limits().max_matches)]
)
async def test_matches_at_once_have_a_default_and_a_limit(asked: int, granted: int) -> None:
    async with serving() as arena:
        welcome = await (await arena.connect()).greet(max_matches=asked)
    assert welcome.max_matches == granted


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (pb.PlayRequest(), pb.ERROR_REASON_HELLO_EXPECTED),
        (pb.PlayRequest(answers=pb.Answers()), pb.ERROR_REASON_HELLO_EXPECTED),
        (pb.PlayRequest(goodbye=pb.Goodbye()), pb.ERROR_REASON_HELLO_EXPECTED),
        (hello(min_protocol=2, max_protocol=3), pb.ERROR_REASON_PROTOCOL_VERSION),
        (hello(min_protocol=0, max_protocol=0), pb.ERROR_REASON_PROTOCOL_VERSION),
        (hello(min_protocol=2, max_protocol=1), pb.ERROR_REASON_PROTOCOL_VERSION),
        (hello(""), pb.ERROR_REASON_MALFORMED),
        (hello("a b"), pb.ERROR_REASON_MALFORMED),
        (hello("x" * 65), pb.ERROR_REASON_MALFORMED),
        (hello("bot\n"), pb.ERROR_REASON_MALFORMED),
        (hello("perché"), pb.ERROR_REASON_MALFORMED),
        (hello(version="1" * 65), pb.ERROR_REASON_MALFORMED),
        (hello(client="c" * 65), pb.ERROR_REASON_MALFORMED),
    ],
)
async def test_a_wrong_first_message_is_refused_by_a_message(
    first: pb.PlayRequest, reason: pb.ErrorReason.ValueType
) -> None:
    async with serving() as arena:
        client = await arena.connect()
        await client.send(first)
        ending = await client.ending()
        assert arena.arena.sessions == {}
    assert ending.reason == reason
    assert ending.message


async def test_the_longest_names_are_fine() -> None:
    async with serving() as arena:
        welcome = await (await arena.connect()).greet("x" * 64, version="v" * 64, client="ü" * 64)
    assert welcome.name == "x" * 64


async def test_a_wrong_label_names_the_field() -> None:
    async with serving() as arena:
        client = await arena.connect()
        await client.send(hello("no blanks"))
        assert "label" in (await client.ending()).message


async def test_a_second_hello_ends_the_session() -> None:
    async with serving() as arena:
        client = await arena.connect()
        await client.greet()
        await client.send(hello())
        assert (await client.ending()).reason == pb.ERROR_REASON_HELLO_REPEATED
        assert arena.arena.sessions == {}


async def test_a_token_gives_the_name() -> None:
    async with serving(tokens={"s3cret": "alice", "other": "bob"}) as arena:
        welcome = await (await arena.connect()).greet("mallory", token="other")
        assert welcome.name == "bob"
        await arena.sessions(1)
        assert list(arena.arena.sessions) == ["bob"]


@pytest.mark.parametrize("token", ["", "s3cre", "s3crets", "alice", "s3cret\0"])
async def test_an_unknown_token_is_refused(token: str) -> None:
    async with serving(tokens={"s3cret": "alice"}) as arena:
        client = await arena.connect()
        await client.send(hello("alice", token=token))
        assert (await client.ending()).reason == pb.ERROR_REASON_UNAUTHENTICATED


# -- what a bot may send ------------------------------------------------------------------------------


async def test_an_empty_message_ends_the_session() -> None:
    async with serving() as arena:
        client = await arena.connect()
        await client.greet()
        await client.send(pb.PlayRequest())
        assert (await client.ending()).reason == pb.ERROR_REASON_MALFORMED


async def test_as_many_answers_as_the_limit_and_not_one_more() -> None:
    nonsense = [pb.Answer(handle="none", turn_id=1)] * Limits().max_answers
    async with serving() as arena:
        client = await arena.connect()
        await client.greet()
        await client.answer(*nonsense)
        errors = (await client.batch()).errors
        assert {error.reason for error in errors} == {pb.ERROR_REASON_UNKNOWN_HANDLE}
        assert len(errors) == Limits().max_answers
        await client.answer(*nonsense, nonsense[0])
        assert (await client.ending()).reason == pb.ERROR_REASON_LIMIT_EXCEEDED


@pytest.mark.parametrize("garbage", [b"\xff" * 20, b"\x0a\x05ab", b"\x12\x03\x0a\x01\xff", b"\x00"])
async def test_bytes_that_are_no_message(garbage: bytes) -> None:
    async with serving() as arena:
        first = await arena.connect()
        await first.send(garbage)
        assert (await first.ending()).reason == pb.ERROR_REASON_MALFORMED
        later = await arena.connect()
        await later.send(hello())
        assert (await later.receive()).WhichOneof("message") == "welcome"
        await later.send(garbage)
        assert (await later.ending()).reason == pb.ERROR_REASON_MALFORMED
        assert arena.arena.sessions == {}


async def test_unknown_fields_are_ignored() -> None:
    future = b"\xfa\x7f\x03abc"  # field 2047, three bytes
    async with serving() as arena:
        client = await arena.connect()
        await client.send(hello().SerializeToString() + future)
        assert (await client.receive()).WhichOneof("message") == "welcome"


async def test_a_message_over_the_limit_ends_that_stream_only() -> None:
    async with serving() as arena:
        quiet, client = await arena.bots("quiet", "big")
        answers = [pb.Answer(handle="x" * 64, turn_id=1)] * (Limits().max_message_bytes // 64)
        await client.answer(*answers)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.receive()
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await quiet.answer(pb.Answer(handle="none", turn_id=1))
        assert (await quiet.batch()).errors


async def test_a_pong_that_nobody_asked_for_is_fine() -> None:
    async with serving() as arena:
        (client,) = await arena.bots("a")
        await client.send(pb.PlayRequest(pong=pb.Pong(nonce=1)))
        await client.answer(pb.Answer(handle="none", turn_id=1))
        assert (await client.batch()).errors


# -- answers ------------------------------------------------------------------------------------------


async def _seated(arena: Any, **spec: Any) -> tuple[list[Client], Client, pb.MatchUpdate]:
    """A game of four under way: all clients, the one that is asked, and what it is asked."""
    clients = await arena.bots(*BOTS)
    arena.arena.submit(game_spec(**spec))
    await settle()
    (game,) = arena.arena.games
    asked = clients[game.seats[game.match.pending[0]].player]
    return clients, asked, await asked.asked()


def _declaration(**fields: Any) -> event_pb.Declaration:
    return event_pb.Declaration(**fields)


async def test_a_turn_holds_all_that_an_answer_needs() -> None:
    async with serving(PlayConfig(move_ms=30_000, illegal_retries=2)) as arena:
        _, _, update = await _seated(arena)
    started, turn = update.started, update.turn
    assert (started.attempt, started.preset, started.illegal_retries) == (1, "preset", 2)
    assert started.clock.move_ms == turn.clock.move_ms == 30_000
    assert started.deck_commitment.hex() == game_spec().commitment
    assert len(started.bot_seed) == 32
    assert (update.first_event, turn.turn_id) == (1, 1)
    assert update.events[0].deal_started.hand.cards == turn.view.hand
    assert list(turn.view.legal.cards) == list(turn.view.hand)
    assert abs(turn.sent_unix_ms - time.time() * 1000) < 20_000
    assert 1 <= len(update.handle) <= 64


async def test_every_answer_gets_a_receipt_or_an_error() -> None:
    async with serving() as arena:
        _, asked, update = await _seated(arena)
        good = first_choice(update)
        await asked.answer(
            pb.Answer(handle="none", turn_id=1, card=good.card),
            pb.Answer(handle=update.handle, turn_id=9, card=good.card),
            pb.Answer(handle=update.handle, turn_id=0, card=good.card),
            good,
            good,
        )
        batch = await asked.batch()
    statuses = [(r.handle, r.turn_id, r.status) for r in batch.receipts]
    assert statuses == [
        (update.handle, 1, pb.RECEIPT_STATUS_ACCEPTED),
        (update.handle, 1, pb.RECEIPT_STATUS_REPEATED),
    ]
    assert [(e.handle, e.turn_id, e.reason, e.may_retry) for e in batch.errors] == [
        ("none", 1, pb.ERROR_REASON_UNKNOWN_HANDLE, False),
        (update.handle, 9, pb.ERROR_REASON_UNKNOWN_TURN, False),
        (update.handle, 0, pb.ERROR_REASON_UNKNOWN_TURN, False),
    ]


async def test_nobody_answers_for_another() -> None:
    async with serving() as arena:
        clients, asked, update = await _seated(arena)
        thief = clients[(clients.index(asked) + 1) % 4]
        await thief.answer(first_choice(update))
        while not (batch := await thief.batch()).errors:
            pass
        assert batch.errors[0].reason == pb.ERROR_REASON_UNKNOWN_HANDLE
        assert not batch.receipts
        (game,) = arena.arena.games
        assert game.match.deal.table == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, pb.ERROR_REASON_CARD_MISSING),
        ({"card": 41}, pb.ERROR_REASON_UNKNOWN_CARD),
        ({"card": -1}, pb.ERROR_REASON_UNKNOWN_CARD),
        ({"discard": 99}, pb.ERROR_REASON_UNKNOWN_CARD),
        ({"discard": 1}, pb.ERROR_REASON_DISCARD_NOT_ASKED),
        ({"monte": True}, pb.ERROR_REASON_MONTE_NOT_ALLOWED),
        ({"call_out": True}, pb.ERROR_REASON_CALL_OUT_OFF),
        ({"signal": 1}, pb.ERROR_REASON_MALFORMED),
        ({"signal": 77, "card": 1}, pb.ERROR_REASON_MALFORMED),
        ({"declarations": [_declaration()]}, pb.ERROR_REASON_MALFORMED),
        ({"declarations": [_declaration(napoli=9)]}, pb.ERROR_REASON_MALFORMED),
        ({"declarations": [_declaration(bongioco=0)]}, pb.ERROR_REASON_MALFORMED),
    ],
)
async def test_what_a_refused_answer_is_told(fields: dict[str, Any], reason: Any) -> None:
    async with serving() as arena:
        _, asked, update = await _seated(arena)
        answer = pb.Answer(handle=update.handle, turn_id=1, **fields)
        await asked.answer(answer)
        batch = await asked.batch()
        assert [(e.reason, e.handle, e.turn_id, e.may_retry) for e in batch.errors] == [
            (reason, update.handle, 1, True)
        ]
        again = next(one for one in batch.updates if one.HasField("turn"))
        assert (again.turn.turn_id, again.turn.view) == (1, update.turn.view)
        assert again.turn.clock.move_ms <= update.turn.clock.move_ms
        fault = again.events[0].fault_committed
        assert fault.reason == pb.ErrorReason.Name(reason).removeprefix("ERROR_REASON_")
        assert fault.effect == event_pb.FAULT_EFFECT_RETRY
        await asked.answer(answer)
        while not (batch := await asked.batch()).errors:
            pass
        assert (batch.errors[0].reason, batch.errors[0].may_retry) == (reason, False)


async def test_a_card_that_is_not_held_is_corrected_in_time() -> None:
    async with serving() as arena:
        _, asked, update = await _seated(arena)
        missing = next(card for card in range(1, 41) if card not in update.turn.view.hand)
        await asked.answer(pb.Answer(handle=update.handle, turn_id=1, card=missing))  # type: ignore[arg-type]
        assert (await asked.batch()).errors[0].reason == pb.ERROR_REASON_CARD_NOT_HELD
        await asked.answer(first_choice(update))
        assert (await asked.batch()).receipts[0].status == pb.RECEIPT_STATUS_ACCEPTED


async def test_many_matches_travel_on_one_stream() -> None:
    async with serving() as arena:
        clients = await arena.bots(*BOTS, max_matches=5)
        for number in range(7):
            arena.arena.submit(game_spec(f"g{number}"))
        ends = await all_of(*(client.play_games(7) for client in clients))
        results = [await arena.result() for _ in range(7)]
    assert {result["game"] for result in results} == {f"g{number}" for number in range(7)}
    assert all(result["faults"] == [] for result in results)
    assert all(len({end.handle for end in mine}) == 7 for mine in ends)
    handles = [end.handle for mine in ends for end in mine]
    assert len(set(handles)) == 28


@pytest.mark.parametrize("preset", ["tressette-004-drawn", "ciapano-trio", "tressette-due", "ciapano-five"])
async def test_events_come_complete_and_numbered(preset: str) -> None:
    """What each bot is sent, laid end to end, is the log of the match from 1 on without a gap."""
    rules = resolve(preset)
    names = tuple("abcde"[: rules.players])

    async def follow(client: Client) -> list[str]:
        kinds: list[str] = []

        def note(batch: pb.Batch) -> bool:
            for update in batch.updates:
                if update.events:
                    assert update.first_event == len(kinds) + 1
                    assert update.HasField("started") == (not kinds)
                kinds.extend(event.WhichOneof("kind") or "" for event in update.events)
            return any(map(has_ended, batch.updates))

        await client.play(note)
        return kinds

    async with serving() as arena:
        clients = await arena.bots(*names)
        arena.arena.submit(game_spec(rules=rules))
        logs = await all_of(*map(follow, clients))
    assert all(log == logs[0] for log in logs)
    assert "" not in logs[0]


# -- the end of a session -----------------------------------------------------------------------------


async def test_goodbye_is_answered_and_the_bot_is_played_for() -> None:
    async with serving() as arena:
        clients, asked, _ = await _seated(arena)
        await asked.send(pb.PlayRequest(goodbye=pb.Goodbye(message="sorry")))
        assert (await asked.ending()).reason == pb.ERROR_REASON_UNSPECIFIED
        clients.remove(asked)
        await all_of(*(client.play_games() for client in clients))
        assert [(fault[1], fault[2]) for fault in (await arena.result())["faults"]] == [("disconnect", 10)]


async def test_a_half_close_is_a_goodbye() -> None:
    async with serving() as arena:
        clients, asked, _ = await _seated(arena)
        await asked.call.done_writing()
        assert (await asked.ending()).reason == pb.ERROR_REASON_UNSPECIFIED
        clients.remove(asked)
        await all_of(*(client.play_games() for client in clients))
        assert [(fault[1], fault[2]) for fault in (await arena.result())["faults"]] == [("disconnect", 10)]


async def test_a_stream_that_says_nothing_and_closes() -> None:
    async with serving() as arena:
        client = await arena.connect()
        await client.call.done_writing()
        async with asyncio.timeout(60):
            assert await client.call.read() is EOF
            assert await client.call.code() is grpc.StatusCode.OK


async def test_a_cancelled_stream_frees_its_seat() -> None:
    async with serving() as arena:
        clients, asked, _ = await _seated(arena)
        asked.cancel()
        clients.remove(asked)
        await all_of(*(client.play_games() for client in clients))
        ((_, kind, count),) = (await arena.result())["faults"]
        assert (kind, count) == ("disconnect", 10)
        await arena.sessions(3)


async def test_all_bots_gone_at_once() -> None:
    async with serving() as arena:
        clients, _, _ = await _seated(arena)
        for client in clients:
            client.cancel()
        result = await arena.result()
        assert {kind for _, kind, _ in result["faults"]} == {"disconnect"}
        assert not arena.arena.games


async def test_a_bot_that_drains_gets_no_new_match() -> None:
    async with serving() as arena:
        clients = await arena.bots(*BOTS)
        await clients[0].send(pb.PlayRequest(drain=pb.Drain()))
        await clients[0].answer(pb.Answer(handle="none", turn_id=1))
        assert (await clients[0].batch()).errors  # so the drain has been read
        arena.arena.submit(game_spec())
        await settle()
        assert not arena.arena.games
        (spare,) = await arena.bots("a")
        await all_of(*(client.play_games() for client in (spare, *clients[1:])))


async def test_stopping_while_bots_play_tells_them_and_is_quick() -> None:
    async with serving() as arena:
        clients, _, _ = await _seated(arena)
        begun = time.monotonic()
        arena.arena.close()
        *endings, _ = await all_of(*(client.ending() for client in clients), arena.server.stop(LIMIT_S))
        took = time.monotonic() - begun
        assert {ending.reason for ending in endings} == {pb.ERROR_REASON_SHUTTING_DOWN}
        assert arena.finished.empty(), "a game that was cut off has no result"
    assert took < LIMIT_S / 2, "well before the grace is over"


@pytest.mark.parametrize("will_return", [False, True])
async def test_a_bot_that_has_not_said_hello_is_told_of_the_stop_and_not_waited_for(
    will_return: bool,
) -> None:
    async with serving() as arena:
        client = await arena.connect()
        await client.call.wait_for_connection()
        await true_in_time(lambda: len(arena.server.service.streams) == 1)
        begun = time.monotonic()
        ending, _ = await all_of(client.ending(), arena.server.stop(LIMIT_S, will_return))
        assert time.monotonic() - begun < LIMIT_S / 2, "well before the grace is over"
        assert ending.reason == pb.ERROR_REASON_SHUTTING_DOWN
        assert ending.will_return == will_return, "its Hello may be one that resumes"


async def test_a_hello_that_is_late_for_the_stop_is_not_taken_in() -> None:
    async with serving() as arena:
        client = await arena.connect()
        await client.call.wait_for_connection()
        await true_in_time(lambda: len(arena.server.service.streams) == 1)
        stopping = asyncio.create_task(arena.server.stop(LIMIT_S))
        assert (await client.receive()).ending.reason == pb.ERROR_REASON_SHUTTING_DOWN
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # closed by now, maybe
            await client.send(hello())
        await stopping
        assert arena.arena.sessions == {}
        assert arena.server.service.endings == {"SHUTTING_DOWN": 1}


@pytest.mark.parametrize("reason", [pb.ERROR_REASON_HELLO_REPEATED, pb.ERROR_REASON_SHUTTING_DOWN])
async def test_a_bot_that_writes_all_the_time_still_hears_why_it_ends(
    reason: pb.ErrorReason.ValueType,
) -> None:
    """Closing a stream under the hands of a writing client would show it INTERNAL instead."""
    async with serving() as arena:
        (client,) = await arena.bots("busy")
        writing = asyncio.create_task(_write_for_ever(client, reason == pb.ERROR_REASON_HELLO_REPEATED))
        await client.batch()
        if reason == pb.ERROR_REASON_SHUTTING_DOWN:
            stopping = asyncio.create_task(arena.server.stop(LIMIT_S))
        while (response := await client.receive()).WhichOneof("message") == "batch":
            pass
        assert response.ending.reason == reason
        assert not writing.done(), "the stream is open for writing still"
        writing.cancel()
        await asyncio.wait((writing,))
        client.cancel()
        if reason == pb.ERROR_REASON_SHUTTING_DOWN:
            await stopping


async def _write_for_ever(client: Client, hello_again: bool) -> None:
    """Answers without end; after a while with a second Hello among them."""
    for number in itertools.count():
        await client.answer(pb.Answer(handle="none", turn_id=1))
        if number == 20 and hello_again:
            await client.send(hello())


async def test_what_this_process_slept_through_is_not_held_against_the_bot() -> None:
    asyncio.get_running_loop().call_soon(time.sleep, 0.6)
    async with within(0.5):
        await asyncio.sleep(0.55)
    with pytest.raises(TimeoutError):
        async with within(0.05):
            await asyncio.Event().wait()


async def test_a_bot_that_does_not_close_is_not_waited_for_long() -> None:
    async with serving() as arena:
        client = await arena.connect()
        await client.send(pb.PlayRequest())
        assert (await client.receive()).WhichOneof("message") == "ending"
        async with asyncio.timeout(60):
            assert await client.call.read() is EOF
            assert await client.call.code() is grpc.StatusCode.OK


async def test_stopping_does_not_wait_for_a_bot_that_does_not_read() -> None:
    """Its writes are stuck, since it has filled every buffer on the way; it has been cut off before that."""
    loud = pb.Answer(handle="x" * 900, turn_id=1)
    async with serving() as arena:
        (client,) = await arena.bots("deaf")
        with contextlib.suppress(TimeoutError):
            for _ in range(24):  # about 24 MB of refusals, were they all kept
                async with asyncio.timeout(1.0):
                    await client.answer(*[loud] * 1000)
        await arena.sessions(0)
        begun = time.monotonic()
        await arena.server.stop(0.5)
        assert time.monotonic() - begun < LIMIT_S / 2


# -- the record and the stream ------------------------------------------------------------------------


async def test_tricks_are_in_the_file_before_the_turn_that_follows(tmp_path: Path) -> None:
    """Whoever is asked to lead can find the trick that it won in the file."""
    record = Record(tmp_path, "w")
    checked = 0

    def look(update: pb.MatchUpdate) -> None:
        nonlocal checked
        if update.events and update.events[-1].WhichOneof("kind") == "trick_won":
            won = sum(b'"kind":"trick"' in line for line in lines_of(tmp_path.glob("tricks-*.jsonl")))
            hand = len(update.turn.view.hand)
            assert won >= 10 - hand
            checked += 1

    def done(batch: pb.Batch) -> bool:
        for update in batch.updates:
            if update.HasField("turn"):
                look(update)
        return any(map(has_ended, batch.updates))

    async with serving(recorder=record) as arena:
        clients = await arena.bots(*BOTS)
        arena.arena.submit(game_spec())
        await all_of(*(client.play(done) for client in clients))
    assert checked == 9
    record.close()


@dataclass
class _FullDisk(NullRecorder):
    full: bool = False

    def flush(self) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")


async def test_a_record_that_cannot_be_written_ends_the_session() -> None:
    recorder = _FullDisk()
    async with serving(recorder=recorder) as arena:
        _, asked, update = await _seated(arena)
        recorder.full = True
        await asked.answer(first_choice(update))
        assert (await asked.ending()).reason == pb.ERROR_REASON_INTERNAL


@dataclass
class _BrokenDisk(NullRecorder):
    broken: bool = False

    def trick_line(self, kind: str, **fields: object) -> None:
        if self.broken:
            raise OSError(errno.EIO, "Input/output error")


async def test_a_record_that_breaks_in_the_middle_of_a_game_leaves_no_task_behind() -> None:
    """Whoever owns the record has to stop the arena then; the stream that ran into it ends by itself."""
    recorder = _BrokenDisk()
    async with serving(recorder=recorder) as arena:
        clients, asked, update = await _seated(arena)
        recorder.broken = True
        await asked.answer(first_choice(update))
        playing = [asyncio.create_task(client.play_games()) for client in clients]
        done, rest = await asyncio.wait(playing, timeout=60, return_when=asyncio.FIRST_EXCEPTION)
        assert len(done) == 1
        assert done.pop().exception() is not None
        for task in rest:
            task.cancel()
        for client in clients:
            client.cancel()
        await asyncio.wait(rest, timeout=60)
        await arena.sessions(0)
    assert not [task for task in asyncio.all_tasks() if "_Stream" in repr(task.get_coro())]


# -- the port -----------------------------------------------------------------------------------------


async def test_two_servers_cannot_share_a_port() -> None:
    async with serving() as first:
        with pytest.raises(BadAddress, match="cannot listen"):
            async with serving(address=first.address):
                pytest.fail("it listens")
        assert await first.bots("still-here")


@pytest.mark.parametrize(
    "address", ["", "127.0.0.1", "127.0.0.1:", ":5000", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1"]
)
async def test_an_address_is_host_and_port(address: str) -> None:
    with pytest.raises(BadAddress, match="HOST:PORT"):
        async with serving(address=address):
            pytest.fail("it listens")
