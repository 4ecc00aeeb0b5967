"""Bots that do not keep to the rules, against a server in another process: the match ends, the record says
who did what, nobody else is held up, and the server plays on.

Each test holds the faulty bot's turn open until another game on the same server, played by the same
honest bots over the same streams, has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.patience import with_more_time
from support.processes import HostProcess, Lines, end, hosting, start
from support.streams import Client, connected, first_choice, has_ended
from support.tables import game_spec
from tressette.record.reader import read_lines
from tressette.v1 import arena_service_pb2 as pb
from tressette.v1 import card_pb2 as card_pb

pytestmark = pytest.mark.asyncio(loop_scope="session")

FAULTY = "faulty"
HONEST = ("a", "b", "c", "d")
TOKENS = {f"token-of-{name}": name for name in (*HONEST, FAULTY)}

BESIDE = game_spec("beside", bots=HONEST)
AFTER = game_spec("after", bots=HONEST)


def _spoilt(seat: int) -> Any:
    """A game with the faulty bot on this seat."""
    bots = list(HONEST)
    bots[seat] = FAULTY
    return game_spec("spoilt", bots=bots)


class Scene:
    """A host, honest bots that play for as long as it lasts, and a place for the faulty one."""

    def __init__(self, host: HostProcess) -> None:
        self.host = host
        self.beside: dict[str, Any] = {}

    async def others_play_on(self) -> None:
        """Wait for the game beside; it was submitted after the faulty bot's turn had begun."""
        self.host.play(BESIDE)
        self.beside = await self.host.finished("beside")

    async def spoilt(self) -> dict[str, Any]:
        """The result of the spoilt game."""
        assert self.beside["faults"] == []
        return await self.host.finished("spoilt")

    async def plays_normally(self) -> None:
        """The server is none the worse."""
        self.host.play(AFTER)
        assert (await self.host.finished("after"))["faults"] == []
        assert await self.host.stop() == 0

    def faults(self) -> list[tuple[int, str, str, str]]:
        """(seat, kind, effect, reason) of the faults in the trick lines of the spoilt game."""
        (path,) = self.host.folder.glob("tricks-*.jsonl")
        return [
            (seat, kind, effect, reason)
            for line in read_lines(path)
            if line["game"] == "spoilt"
            for seat, kind, effect, reason in line.get("faults", ())
        ]


@contextlib.asynccontextmanager
async def scene(folder: Path, **config: Any) -> AsyncIterator[Scene]:
    """A host with its honest bots connected."""
    async with contextlib.AsyncExitStack() as stack:
        host = await stack.enter_async_context(hosting(folder, TOKENS, **config))
        playing = []
        for name in HONEST:
            client = await stack.enter_async_context(connected(host.address))
            await client.greet(token=f"token-of-{name}", max_matches=2)
            playing.append(asyncio.create_task(client.play_until_told()))
        try:
            yield Scene(host)
        finally:
            for task in playing:
                task.cancel()
            await asyncio.gather(*playing, return_exceptions=True)


@contextlib.asynccontextmanager
async def faulty(at: Scene) -> AsyncIterator[tuple[Client, pb.MatchUpdate]]:
    """The faulty bot, seated and asked."""
    async with connected(at.host.address) as client:
        await client.greet(token=f"token-of-{FAULTY}")
        at.host.play(_spoilt(1))
        yield client, await client.asked()


async def _play_out(client: Client) -> list[pb.Batch]:
    """Play properly to the end of the match; returns all that came."""
    seen: list[pb.Batch] = []

    def done(batch: pb.Batch) -> bool:
        seen.append(batch)
        return any(map(has_ended, batch.updates))

    await client.play(done)
    return seen


# -- illegal ------------------------------------------------------------------------------------------


def _illegal(update: pb.MatchUpdate) -> pb.Answer:
    answer = pb.Answer(handle=update.handle, turn_id=update.turn.turn_id)
    answer.card = next(card for card in card_pb.Card.values() if card and card not in update.turn.view.hand)
    return answer


async def test_an_illegal_card_may_be_corrected_once(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        async with faulty(at) as (client, update):
            await at.others_play_on()
            await client.answer(_illegal(update))
            batch = await client.batch()
            assert (batch.errors[0].reason, batch.errors[0].may_retry) == (
                pb.ERROR_REASON_CARD_NOT_HELD,
                True,
            )
            assert batch.updates[0].turn.turn_id == update.turn.turn_id
            await client.answer(first_choice(update))
            await _play_out(client)
        assert (await at.spoilt())["faults"] == [[FAULTY, "illegal", 1]]
        await at.plays_normally()
    assert at.faults() == [(1, "illegal", "retry", "CARD_NOT_HELD")]


async def test_a_bot_that_insists_on_illegal_cards_is_played_for(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        async with faulty(at) as (client, update):
            await at.others_play_on()
            while True:
                await client.answer(_illegal(update))
                update = await _next_turn(client)
                if has_ended(update):
                    break
        assert (await at.spoilt())["faults"] == [[FAULTY, "illegal", 20]]
        await at.plays_normally()
    assert [fault[:3] for fault in at.faults()] == [
        (1, "illegal", "retry"),
        (1, "illegal", "substitute"),
    ] * 10


async def _next_turn(client: Client) -> pb.MatchUpdate:
    """The next update that asks something, or the last one of the match."""
    while True:
        for update in (await client.batch()).updates:
            if update.HasField("turn") or has_ended(update):
                return update


# -- late ---------------------------------------------------------------------------------------------


async def test_a_late_answer_harms_nobody(tmp_path: Path) -> None:
    await with_more_time(lambda move_ms: _late(tmp_path / f"{move_ms}", move_ms), 1500, 15_000)


async def _late(folder: Path, move_ms: int) -> None:
    async with scene(folder, move_ms=move_ms) as at:
        async with faulty(at) as (client, update):
            await at.others_play_on()
            second = await client.asked()  # the time is up: the arena has played the first turn
            late = first_choice(update)
            late.turn_id = update.turn.turn_id
            await client.answer(late, first_choice(second))
            batches = await _play_out(client)
            receipts = {r.turn_id: r.status for batch in batches for r in batch.receipts}
            assert receipts[1] == pb.RECEIPT_STATUS_TURN_OVER
            assert receipts[2] == pb.RECEIPT_STATUS_ACCEPTED
        assert (await at.spoilt())["faults"] == [[FAULTY, "timeout", 1]]
        await at.plays_normally()
    assert at.faults() == [(1, "timeout", "substitute", "MOVE_TIME_EXCEEDED")]


async def test_a_bot_that_never_answers(tmp_path: Path) -> None:
    await with_more_time(lambda move_ms: _never(tmp_path / f"{move_ms}", move_ms), 150, 1000, 5000)


async def _never(folder: Path, move_ms: int) -> None:
    async with scene(folder, move_ms=move_ms) as at:
        async with faulty(at) as (client, _):
            await at.others_play_on()
            assert (await at.spoilt())["faults"] == [[FAULTY, "timeout", 10]]
            assert client
        await at.plays_normally()
    assert at.faults() == [(1, "timeout", "substitute", "MOVE_TIME_EXCEEDED")] * 10


# -- garbage ------------------------------------------------------------------------------------------


async def test_nonsense_in_the_fields(tmp_path: Path) -> None:
    async with scene(tmp_path, illegal_retries=0) as at:
        async with faulty(at) as (client, update):
            await at.others_play_on()
            nonsense = [pb.Answer(handle=update.handle, turn_id=1, **fields) for fields in _nonsense()]
            await client.answer(*nonsense)
            batch = await client.batch()
            assert len(batch.errors) + len(batch.receipts) == len(nonsense)
            second = batch.updates[0] if batch.updates else await client.asked()
            if not second.HasField("turn"):
                second = await client.asked()
            await client.answer(first_choice(second))
            await _play_out(client)
        assert (await at.spoilt())["faults"] == [[FAULTY, "malformed", 1]]
        await at.plays_normally()
    assert at.faults() == [(1, "malformed", "substitute", "UNKNOWN_CARD")]


def _nonsense() -> list[dict[str, Any]]:
    return [
        {"card": 2**31 - 1},
        {"card": -(2**31)},
        {"discard": 41},
        {"card": 1, "signal": -5},
        {"signal": 2},
        {"declarations": [{}] * 100},
        {"declarations": [{"bongioco": 44, "points": 2**32 - 1, "cards": [0, -1, 99]}]},
        {"call_out": True, "monte": True, "discard": 3, "card": 3},
    ]


async def test_random_bytes(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        async with faulty(at) as (client, _):
            await at.others_play_on()
            await client.send(os.urandom(100) + b"\xff")
            ending = await client.ending()
            assert ending.reason == pb.ERROR_REASON_MALFORMED
            assert (await at.spoilt())["faults"] == [[FAULTY, "disconnect", 10]]
        await at.plays_normally()
    assert at.faults() == [(1, "disconnect", "substitute", "SESSION_ENDED")] * 10


# -- gone ---------------------------------------------------------------------------------------------


async def _goodbye(client: Client) -> None:
    await client.send(pb.PlayRequest(goodbye=pb.Goodbye()))


async def _half_close(client: Client) -> None:
    await client.call.done_writing()


async def _cancel(client: Client) -> None:
    client.cancel()


@pytest.mark.parametrize("leave", [_goodbye, _half_close, _cancel])
async def test_a_bot_that_leaves(tmp_path: Path, leave: Callable[[Client], Awaitable[None]]) -> None:
    async with scene(tmp_path) as at:
        async with faulty(at) as (client, update):
            await client.answer(first_choice(update))
            await client.asked()
            await at.others_play_on()
            await leave(client)
            assert (await at.spoilt())["faults"] == [[FAULTY, "disconnect", 9]]
        await at.plays_normally()
    assert at.faults() == [(1, "disconnect", "substitute", "SESSION_ENDED")] * 9


async def test_a_bot_whose_connection_is_closed(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        async with faulty(at):
            await at.others_play_on()
        assert (await at.spoilt())["faults"] == [[FAULTY, "disconnect", 10]]
        await at.plays_normally()


async def test_a_bot_that_is_killed(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        bot = await start("-m", "support.vanishing", at.host.address, f"token-of-{FAULTY}")
        try:
            await at.host.session(FAULTY, True)
            at.host.play(_spoilt(3))
            await Lines(bot.stdout).until("asked", 1)
            await at.others_play_on()
            bot.send_signal(signal.SIGKILL)
            assert (await at.spoilt())["faults"] == [[FAULTY, "disconnect", 10]]
        finally:
            await end(bot)
        await at.host.session(FAULTY, False)
        await at.plays_normally()
    assert at.faults() == [(3, "disconnect", "substitute", "SESSION_ENDED")] * 10


async def test_all_bots_of_a_game_are_gone(tmp_path: Path) -> None:
    async with hosting(tmp_path, TOKENS) as host:
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(connected(host.address)) for _ in HONEST]
            for client, name in zip(clients, HONEST, strict=True):
                await client.greet(token=f"token-of-{name}")
            host.play(BESIDE)
            await asyncio.wait(
                [asyncio.create_task(client.asked()) for client in clients],
                return_when=asyncio.FIRST_COMPLETED,
                timeout=60,
            )
        result = await host.finished("beside")
        assert {(name, kind) for name, kind, _ in result["faults"]} == {
            (name, "disconnect") for name in HONEST
        }
        assert await host.stop() == 0
