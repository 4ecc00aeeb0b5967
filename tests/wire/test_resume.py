"""Losing and resuming a session over real gRPC, and messages counted."""

from __future__ import annotations

import asyncio

from support.streams import Client, Serving, first_choice, has_ended, hello, serving, true_in_time
from support.tables import game_spec
from tressette.play.config import PlayConfig
from tressette.rules.presets import resolve
from tressette.v1 import arena_service_pb2 as pb
from tressette.wire.limits import Limits


async def seated(arena: Serving, games: int = 1) -> tuple[list[Client], list[pb.Welcome]]:
    """Four bots that have said Hello, and games between them."""
    clients = [await arena.connect() for _ in range(4)]
    welcomes = [
        await client.greet(name, max_matches=games) for client, name in zip(clients, "abcd", strict=True)
    ]
    for number in range(games):
        arena.arena.submit(game_spec(f"g{number}", seed=number.to_bytes(32, "big")))
    return clients, welcomes


async def left(arena: Serving, name: str) -> None:
    """Wait until the arena knows that a bot's link is gone."""
    await true_in_time(lambda: not any(session.attached for session in arena.arena.sessions.get(name, ())))


async def resume(arena: Serving, welcome: pb.Welcome, positions: dict[str, int]) -> tuple[Client, pb.Welcome]:
    client = await arena.connect()
    known = [pb.MatchPosition(handle=handle, last_event=last) for handle, last in positions.items()]
    again = await client.greet(welcome.name, resume_token=welcome.resume_token, positions=known)
    return client, again


async def test_a_lost_bot_goes_on_where_it_was() -> None:
    async with serving(grace_s=60) as arena:
        clients, welcomes = await seated(arena)
        others = [asyncio.create_task(client.play_games()) for client in clients[1:]]
        turn = await clients[0].asked()
        assert welcomes[0].grace_ms == 60_000
        clients[0].cancel()
        await left(arena, "a")
        known = turn.first_event + len(turn.events) - 1
        client, again = await resume(arena, welcomes[0], {turn.handle: known})
        assert (again.resumed, again.session_id) == (True, welcomes[0].session_id)
        same = await client.asked()
        assert (same.handle, same.turn.turn_id) == (turn.handle, turn.turn.turn_id)
        assert not same.events, "it has them all"
        assert not same.HasField("started")
        assert 0 < same.turn.clock.move_ms <= turn.turn.clock.move_ms
        await client.answer(first_choice(same))
        await client.play_games()
        await asyncio.gather(*others)
        assert (await arena.result())["faults"] == []


async def test_a_newer_stream_replaces_the_older_which_is_told_why() -> None:
    async with serving(grace_s=60) as arena:
        clients, welcomes = await seated(arena)
        others = [asyncio.create_task(client.play_games()) for client in clients[1:]]
        turn = await clients[0].asked()
        client, again = await resume(arena, welcomes[0], {})
        assert again.resumed
        assert (await clients[0].ending()).reason == pb.ERROR_REASON_REPLACED
        same = await client.asked()
        assert same.HasField("started")
        assert (same.turn.turn_id, same.first_event) == (turn.turn.turn_id, 1)
        await client.answer(first_choice(same))
        await client.play_games()
        await asyncio.gather(*others)
        assert (await arena.result())["faults"] == []


async def test_answers_to_old_turns_are_harmless_on_the_new_stream() -> None:
    async with serving(grace_s=60) as arena:
        clients, welcomes = await seated(arena)
        others = [asyncio.create_task(client.play_games()) for client in clients[1:]]
        turn = await clients[0].asked()
        await clients[0].answer(first_choice(turn))
        again = await clients[0].asked()
        clients[0].cancel()
        await left(arena, "a")
        client, _ = await resume(arena, welcomes[0], {turn.handle: again.first_event + len(again.events) - 1})
        await client.answer(first_choice(turn), first_choice(turn), first_choice(again))
        statuses: list[int] = []
        while len(statuses) < 3:
            batch = await client.batch()
            statuses += [receipt.status for receipt in batch.receipts]
            answers = [
                first_choice(update)
                for update in batch.updates
                if update.HasField("turn") and update.turn.turn_id > again.turn.turn_id
            ]
            if answers:
                await client.answer(*answers)
        repeated, accepted = pb.RECEIPT_STATUS_REPEATED, pb.RECEIPT_STATUS_ACCEPTED
        assert statuses[:3] == [repeated, repeated, accepted]
        await client.play(lambda batch: any(map(has_ended, batch.updates)))
        await asyncio.gather(*others)
        assert (await arena.result())["faults"] == []


async def test_unknown_and_foreign_resume_tokens_are_refused() -> None:
    async with serving(grace_s=60) as arena:
        _, welcomes = await seated(arena)
        for label, token in (("a", "nonsense"), ("b", welcomes[0].resume_token)):
            client = await arena.connect()
            await client.send(hello(label, resume_token=token))
            assert (await client.ending()).reason == pb.ERROR_REASON_RESUME_UNKNOWN


async def test_a_goodbye_is_no_loss() -> None:
    async with serving(grace_s=60) as arena:
        clients, welcomes = await seated(arena)
        await clients[0].send(pb.PlayRequest(goodbye=pb.Goodbye()))
        assert (await clients[0].ending()).reason == pb.ERROR_REASON_UNSPECIFIED
        client = await arena.connect()
        await client.send(hello("a", resume_token=welcomes[0].resume_token))
        assert (await client.ending()).reason == pb.ERROR_REASON_RESUME_UNKNOWN


async def test_the_grace_period_runs_out() -> None:
    async with serving(grace_s=0.05) as arena:
        clients, welcomes = await seated(arena)
        others = [asyncio.create_task(client.play_games()) for client in clients[1:]]
        await clients[0].asked()
        clients[0].cancel()
        result = await arena.result()
        assert result["faults"] == [["a", "disconnect", 10]]
        await asyncio.gather(*others)
        client = await arena.connect()
        await client.send(hello("a", resume_token=welcomes[0].resume_token))
        assert (await client.ending()).reason == pb.ERROR_REASON_RESUME_UNKNOWN


async def test_the_arena_measures_the_network_while_the_bot_is_idle() -> None:
    async with serving() as arena:
        client = await arena.connect()
        await client.greet("a")
        await arena.sessions(1)
        reading = asyncio.create_task(client.receive())
        (session,) = arena.arena.sessions["a"]
        await true_in_time(lambda: session.network > 0)
        assert client.pings
        reading.cancel()
        await asyncio.wait((reading,))


async def test_turns_that_are_ready_together_travel_together() -> None:
    """Sixteen games of the same four bots: each bot's messages are far fewer than its turns."""
    games = 16
    async with serving() as arena:
        clients, _ = await seated(arena, games)
        messages = dict.fromkeys(range(4), 0)
        turns = dict.fromkeys(range(4), 0)

        async def play(index: int, client: Client) -> None:
            ended = 0
            while ended < games:
                batch = await client.batch()
                asked = [update for update in batch.updates if update.HasField("turn")]
                messages[index] += bool(asked)
                turns[index] += len(asked)
                ended += sum(map(has_ended, batch.updates))
                if asked:
                    await client.answer(*map(first_choice, asked))

        await asyncio.gather(*(play(index, client) for index, client in enumerate(clients)))
        assert turns == dict.fromkeys(range(4), 10 * games)
        assert sum(messages.values()) * 3 < sum(turns.values())


async def test_a_lone_turn_waits_for_nothing() -> None:
    """With one game there is never a second turn to wait for: every turn is a message of its own."""
    async with serving(PlayConfig(move_ms=60_000)) as arena:
        arena.arena.submit(game_spec(rules=resolve("traversone-003-21-duplicate", deals=5)))
        clients = await arena.bots("a", "b", "c", "d")
        await asyncio.gather(*(client.play_games() for client in clients))
        (session,) = arena.arena.sessions["a"]
        assert session.turns == 50
        assert session.asked == 50


async def test_limits_on_sessions_streams_and_rate() -> None:
    # None a second: what a slow test sends in a minute is too much as well.
    limits = Limits(max_sessions=1, max_streams=3, messages_per_s=0, burst=5)
    async with serving(limits=limits) as arena:
        first = (await arena.bots("a"))[0]
        second = await arena.connect()
        await second.send(hello("a"))
        assert (await second.ending()).reason == pb.ERROR_REASON_TOO_MANY_SESSIONS
        await arena.bots("b", "c")
        fourth = await arena.connect()
        await fourth.send(hello("d"))
        assert (await fourth.ending()).reason == pb.ERROR_REASON_TOO_MANY_SESSIONS
        for _ in range(7):
            await first.send(pb.PlayRequest(pong=pb.Pong(nonce=1)))
        assert (await first.ending()).reason == pb.ERROR_REASON_LIMIT_EXCEEDED


async def test_a_stream_without_a_hello_is_closed_in_time() -> None:
    async with serving(limits=Limits(hello_s=0.05)) as arena:
        client = await arena.connect()
        assert (await client.ending()).reason == pb.ERROR_REASON_HELLO_EXPECTED


async def test_a_stream_that_is_closed_without_a_goodbye_can_be_resumed() -> None:
    async with serving(grace_s=60) as arena:
        clients, welcomes = await seated(arena)
        others = [asyncio.create_task(client.play_games()) for client in clients[1:]]
        turn = await clients[0].asked()
        await clients[0].call.done_writing()
        assert (await clients[0].ending()).reason == pb.ERROR_REASON_UNSPECIFIED
        await left(arena, "a")
        client, again = await resume(arena, welcomes[0], {})
        assert again.resumed
        same = await client.asked()
        assert same.turn.turn_id == turn.turn.turn_id
        await client.answer(first_choice(same))
        await client.play_games()
        await asyncio.gather(*others)
        assert (await arena.result())["faults"] == []
