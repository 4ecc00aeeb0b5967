"""The standard health service, by its standard stubs."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.processes import run
from support.streams import LIMIT_S, serving
from support.tables import game_spec
from tressette.wire import health

OPERATING = Path(__file__).resolve().parents[2] / "server" / "OPERATING.md"
ARENA = "tressette.v1.ArenaService"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


@contextlib.asynccontextmanager
async def stub_of(address: str) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield health_pb2_grpc.HealthStub(channel)


def request(service: str) -> health_pb2.HealthCheckRequest:
    return health_pb2.HealthCheckRequest(service=service)


async def statuses(watch: Any) -> list[int]:
    """All that a watch says until it ends."""
    found: list[int] = []
    async with asyncio.timeout(LIMIT_S):
        while (response := await watch.read()) is not grpc.aio.EOF:
            found.append(response.status)
    return found


async def first_status(watch: Any) -> int:
    async with asyncio.timeout(LIMIT_S):
        status: int = (await watch.read()).status
        return status


@pytest.mark.parametrize("service", ["", ARENA])
async def test_check(service: str) -> None:
    async with serving() as arena, stub_of(arena.address) as stub:
        assert (await stub.Check(request(service))).status == SERVING
        arena.server.drain()
        assert (await stub.Check(request(service))).status == NOT_SERVING


async def test_a_service_that_is_not_here_is_not_found() -> None:
    async with serving() as arena, stub_of(arena.address) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Check(request("tressette.v1.LobbyService"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        watch = stub.Watch(request("tressette.v1.LobbyService"))
        assert await first_status(watch) == UNKNOWN
        watch.cancel()


async def test_list() -> None:
    async with serving() as arena, stub_of(arena.address) as stub:
        found = (await stub.List(health_pb2.HealthListRequest())).statuses
        assert {service: found[service].status for service in found} == {"": SERVING, ARENA: SERVING}


async def test_a_watch_says_every_change_and_ends_with_the_server() -> None:
    async with serving() as arena, stub_of(arena.address) as stub:
        watches = [stub.Watch(request(service)) for service in ("", ARENA)]
        for watch in watches:
            assert await first_status(watch) == SERVING
        await arena.bots(*"abcd")
        arena.arena.submit(game_spec())
        arena.server.drain()
        for watch in watches:
            assert await first_status(watch) == NOT_SERVING
        arena.arena.close()
        began = time.monotonic()
        await arena.server.stop(grace_s=LIMIT_S)
        for watch in watches:
            assert await statuses(watch) == []
            assert await watch.code() is grpc.StatusCode.OK
        # Trap 14: an open watch, and the bots of which none closes its stream, must not take the grace.
        assert time.monotonic() - began < LIMIT_S / 2


async def test_a_server_that_stops_without_draining_says_so_too() -> None:
    async with serving() as arena, stub_of(arena.address) as stub:
        watch = stub.Watch(request(""))
        assert await first_status(watch) == SERVING
        await arena.server.stop(grace_s=LIMIT_S)
        assert await statuses(watch) == [NOT_SERVING]


async def test_before_it_listens_nothing_is_serving() -> None:
    service = health.Health([ARENA])
    assert (await service.Check(request(""), None)).status == NOT_SERVING


async def test_a_watcher_that_vanishes_is_forgotten() -> None:
    async with serving() as arena, stub_of(arena.address) as stub:
        watch = stub.Watch(request(""))
        await first_status(watch)
        watches = arena.server._health.watches
        assert len(watches) == 1
        (task,) = watches
        watch.cancel()
        async with asyncio.timeout(LIMIT_S):
            await asyncio.wait([task])
        assert not watches


async def test_watches_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_MAX_WATCHES", 2)
    async with serving() as arena, stub_of(arena.address) as stub:
        watches = [stub.Watch(request("")) for _ in range(2)]
        for watch in watches:
            await first_status(watch)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await first_status(stub.Watch(request("")))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await stub.Check(request(""))).status == SERVING
        for watch in watches:
            watch.cancel()


async def test_the_documented_check_does_what_it_is_said_to() -> None:
    text = OPERATING.read_text(encoding="utf-8")
    section = text.partition("\n## Health\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    async with serving() as arena:
        code = code.replace("127.0.0.1:50051", arena.address)
        assert await run("-c", code) == (0, "SERVING\n", "")
        arena.server.drain()
        assert await run("-c", code) == (1, "NOT_SERVING\n", "")


class Deaf:
    """A context whose other side does not read: no write ever ends."""

    async def write(self, _message: object) -> None:
        await asyncio.Event().wait()


async def test_a_watcher_that_does_not_read_holds_up_nobody() -> None:
    service = health.Health([ARENA])
    deaf = asyncio.create_task(service.Watch(request(""), Deaf()))
    await asyncio.sleep(0)
    service.set_serving(True)
    service.set_serving(False)
    service.close()
    assert (await service.Check(request(""), None)).status == NOT_SERVING
    deaf.cancel()
    await asyncio.gather(deaf, return_exceptions=True)
    assert not service.watches
