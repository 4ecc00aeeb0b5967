"""GetReveals over real gRPC: what anybody gets, and what is refused and how."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from support.processes import hosting
from support.streams import LIMIT_S, all_of, connected, serving
from support.tables import game_spec
from tressette.record.reveals import Reveal, Reveals
from tressette.v1 import arena_service_pb2 as pb
from tressette.v1.arena_service_pb2_grpc import ArenaServiceStub
from tressette.wire.limits import Limits
from tressette.wire.reveals import PAGE

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def reveals(tmp_path: Path) -> Iterator[Reveals]:
    made = Reveals(tmp_path, "0001")
    yield made
    made.close()


def revealed(number: int) -> Reveal:
    return Reveal(f"g{number}", "deck", "rules", number.to_bytes(32, "big"), bytes(32))


@contextlib.asynccontextmanager
async def asking(address: str) -> AsyncIterator[Any]:
    """The unary call, on a connection of its own."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub = ArenaServiceStub(channel)

        async def ask(token: str = "", scheme: str = "Bearer ", **fields: Any) -> pb.GetRevealsResponse:
            metadata = (("authorization", scheme + token),) if token else ()
            response = await stub.GetReveals(
                pb.GetRevealsRequest(**fields), timeout=LIMIT_S, metadata=metadata
            )
            assert isinstance(response, pb.GetRevealsResponse)
            return response

        yield ask


async def refused(asked: Any) -> tuple[grpc.StatusCode, error_details_pb2.ErrorInfo]:
    """The status of a call, and its details."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await asked
    status = rpc_status.from_call(caught.value)  # type: ignore[arg-type]  # an error is a call too
    assert status is not None
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.domain == "tressette.v1"
    return caught.value.code(), info


async def test_a_commitment_is_opened_for_a_bot_that_is_gone_and_for_anybody_else(reveals: Reveals) -> None:
    spec = game_spec("g1", seed=bytes(range(32)))
    async with serving(reveals=reveals) as running, asking(running.address) as ask:
        clients = await running.bots("a", "b", "c", "d")
        running.arena.submit(spec)
        ended = await all_of(*(client.play_games() for client in clients))
        assert len(ended) == 4
        wanted = bytes.fromhex(spec.commitment)
        assert not (await ask(commitments=[wanted])).reveals, "the deck is not retired yet"
        running.arena.reveal([Reveal.of(spec)])
        for client in clients:
            client.cancel()
        await running.sessions(0)
        (found,) = (await ask(commitments=[wanted, bytes(32)])).reveals
        assert found == pb.Reveal(
            commitment=wanted,
            seed=spec.seed,
            salt=spec.salt,
            game="g1",
            deck=spec.deck,
            rules_hash=spec.rules.hash(),
        )


async def test_all_reveals_come_in_pages(reveals: Reveals) -> None:
    reveals.add(map(revealed, range(25)))
    async with serving(reveals=reveals) as running, asking(running.address) as ask:
        seen, token = [], ""
        while True:
            page = await ask(page_size=10, page_token=token)
            assert len(page.reveals) <= 10
            seen += [one.game for one in page.reveals]
            token = page.next_page_token
            if not token:
                break
        assert seen == [f"g{number}" for number in range(25)]


async def test_a_page_is_bounded(reveals: Reveals) -> None:
    reveals.add(map(revealed, range(PAGE + 1)))
    async with serving(reveals=reveals) as running, asking(running.address) as ask:
        for size in (0, PAGE + 1, 1 << 31):
            page = await ask(page_size=size)
            assert len(page.reveals) == PAGE
            assert page.next_page_token


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"commitments": [bytes(31)]}, "commitments"),
        ({"commitments": [bytes(32)] * (PAGE + 1)}, "commitments"),
        ({"commitments": [bytes(32)], "page_token": "1"}, "page_token"),
        ({"page_token": "7"}, "page_token"),
        ({"page_token": "the-next"}, "page_token"),
        ({"page_token": "x" * 100_000}, "page_token"),  # what is said fits a header
    ],
)
async def test_what_means_nothing_is_refused(reveals: Reveals, fields: dict[str, Any], field: str) -> None:
    async with serving(reveals=reveals) as running, asking(running.address) as ask:
        code, info = await refused(ask(**fields))
        assert (code, info.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED")
        assert dict(info.metadata) == {"field": field}


async def test_bytes_that_are_no_request_are_malformed(reveals: Reveals) -> None:
    async with (
        serving(reveals=reveals) as running,
        grpc.aio.insecure_channel(running.address) as channel,
    ):
        call: Any = channel.unary_unary("/tressette.v1.ArenaService/GetReveals")
        code, info = await refused(call(b"\xff"))
        assert (code, info.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED")


async def test_an_arena_without_a_record_says_so() -> None:
    async with serving() as running, asking(running.address) as ask:
        code, info = await refused(ask())
        assert (code, info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NO_RECORD")


async def test_no_token_is_needed_but_one_that_is_sent_must_be_good(reveals: Reveals) -> None:
    async with serving(reveals=reveals, tokens={"secret": "mine"}) as running, asking(running.address) as ask:
        assert not (await ask()).reveals
        assert not (await ask(token="secret")).reveals
        for token, scheme in (("wrong", "Bearer "), ("secret", ""), ("secret", "Basic ")):
            code, info = await refused(ask(token=token, scheme=scheme))
            assert (code, info.reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")


async def test_who_asks_too_much_waits_and_nobody_else_does(reveals: Reveals) -> None:
    limits = Limits(messages_per_s=0, burst=30)  # none a second, or a slow test would be given more
    tokens = {"secret": "mine", "other": "yours"}
    async with (
        serving(reveals=reveals, tokens=tokens, limits=limits) as running,
        asking(running.address) as ask,
    ):
        await ask(token="secret", page_size=20)
        code, info = await refused(ask(token="secret", page_size=20))
        assert (code, info.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED")
        await ask(token="secret", page_size=5)
        await ask(token="other", page_size=20)
        await ask(page_size=20)
        await refused(ask(page_size=20))


async def test_a_full_page_can_be_had_under_any_limit(reveals: Reveals) -> None:
    async with serving(reveals=reveals, limits=Limits(burst=3)) as running, asking(running.address) as ask:
        await ask()


async def test_a_damaged_file_is_the_arenas_fault_and_tells_nothing(tmp_path: Path, reveals: Reveals) -> None:
    reveals.add([revealed(1)])
    async with serving(reveals=reveals) as running, asking(running.address) as ask:
        (tmp_path / "reveals-0002.jsonl").write_bytes(b"secret\n")
        code, info = await refused(ask())
        assert (code, info.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await ask()
        assert caught.value.details() == "the arena failed"


async def test_the_host_tells_what_the_runner_has_revealed(tmp_path: Path) -> None:
    async with hosting(tmp_path, {}) as host, asking(host.address) as ask:
        assert not (await ask()).reveals
        reveals = Reveals(tmp_path, "runner")
        reveals.add([Reveal.of(game_spec("g1"))])
        assert [one.game for one in (await ask()).reveals] == ["g1"]
        reveals.close()


async def test_streams_and_calls_share_a_port(reveals: Reveals) -> None:
    async with (
        serving(reveals=reveals) as running,
        asking(running.address) as ask,
        connected(running.address) as client,
    ):
        await client.greet("bot")
        assert not (await ask()).reveals
