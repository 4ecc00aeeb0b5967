"""Generic tools find out what the arena serves, where the operator lets them."""

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
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from support.processes import run
from support.streams import LIMIT_S
from support.tables import KEY
from tressette.play.arena import Arena
from tressette.wire.server import ArenaServer

OPERATING = Path(__file__).resolve().parents[2] / "server" / "OPERATING.md"
HEALTH = "grpc.health.v1.Health"
ARENA = "tressette.v1.ArenaService"
REFLECTION = "grpc.reflection.v1alpha.ServerReflection"


@contextlib.asynccontextmanager
async def reflecting(reflect: bool = True) -> AsyncIterator[tuple[ArenaServer, grpc.aio.Channel]]:
    server = ArenaServer(Arena(KEY), reflect=reflect)
    port = await server.start("127.0.0.1:0")
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield server, channel
    finally:
        await server.stop(0.1)


class Asker:
    """One reflection stream."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.call: Any = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()

    async def ask(self, **question: str) -> Any:
        """The answer to one question."""
        async with asyncio.timeout(LIMIT_S):
            await self.call.write(reflection_pb2.ServerReflectionRequest(**question))
            return await self.call.read()

    async def pool(self, symbol: str) -> DescriptorPool:
        """Everything that it takes to know a symbol, fetched file by file as a tool does it."""
        answer = await self.ask(file_containing_symbol=symbol)
        files: dict[str, FileDescriptorProto] = {}
        missing = [FileDescriptorProto.FromString(raw) for raw in _files(answer)]
        while missing:
            file = missing.pop()
            files[file.name] = file
            for name in set(file.dependency).difference(files):
                found = _files(await self.ask(file_by_filename=name))
                missing += [FileDescriptorProto.FromString(raw) for raw in found]
        pool = DescriptorPool()
        while files:
            ready = [file for file in files.values() if not set(file.dependency).intersection(files)]
            for file in ready:
                pool.Add(files.pop(file.name))
        return pool


def _files(answer: Any) -> list[bytes]:
    assert answer.HasField("file_descriptor_response"), answer
    return list(answer.file_descriptor_response.file_descriptor_proto)


async def test_the_services_are_listed() -> None:
    async with reflecting() as (_, channel):
        answer = await Asker(channel).ask(list_services="")
        assert {service.name for service in answer.list_services_response.service} == {
            ARENA,
            HEALTH,
            REFLECTION,
        }


async def test_a_tool_can_call_what_it_has_found() -> None:
    """With nothing but the descriptors that the server gives: a health check and a Hello."""
    async with reflecting() as (_, channel):
        asker = Asker(channel)
        check = (await asker.pool(HEALTH)).FindMethodByName(f"{HEALTH}.Check")
        request, response = GetMessageClass(check.input_type), GetMessageClass(check.output_type)
        call: Any = channel.unary_unary(f"/{HEALTH}/Check", request.SerializeToString, response.FromString)
        assert (await call(request(service=ARENA))).status == 1

        play = (await asker.pool(ARENA)).FindMethodByName(f"{ARENA}.Play")
        assert play.client_streaming
        assert play.server_streaming
        request, response = GetMessageClass(play.input_type), GetMessageClass(play.output_type)
        stream: Any = channel.stream_stream(
            f"/{ARENA}/Play", request.SerializeToString, response.FromString
        )()
        await stream.write(request(hello={"label": "tool", "min_protocol": 1, "max_protocol": 1}))
        async with asyncio.timeout(LIMIT_S):
            assert (await stream.read()).welcome.name == "tool"
        await stream.write(request(goodbye={}))


async def test_an_unknown_symbol_is_an_error_and_the_stream_goes_on() -> None:
    async with reflecting() as (_, channel):
        asker = Asker(channel)
        answer = await asker.ask(file_containing_symbol="tressette.v1.Nothing")
        assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
        assert (await asker.ask(list_services="")).HasField("list_services_response")


async def test_without_the_option_there_is_none() -> None:
    async with reflecting(reflect=False) as (_, channel):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await Asker(channel).ask(list_services="")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_an_open_stream_does_not_outlast_the_grace() -> None:
    async with reflecting() as (server, channel):
        asker = Asker(channel)
        await asker.ask(list_services="")
        began = time.monotonic()
        await server.stop(grace_s=0.3)
        assert time.monotonic() - began < LIMIT_S / 2


async def test_the_documented_commands_do_what_they_are_said_to() -> None:
    text = OPERATING.read_text(encoding="utf-8")
    section = text.partition("\n## Reflection\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    server = ArenaServer(Arena(KEY), reflect=True)
    port = await server.start("127.0.0.1:0")
    try:
        status, output, errors = await run("-c", code.replace("127.0.0.1:50051", f"127.0.0.1:{port}"))
    finally:
        await server.stop(0.1)
    assert (status, errors) == (0, "")
    said = output.split()
    assert sorted(said[:3]) == sorted((ARENA, HEALTH, REFLECTION))
    assert (said[3], said[-1]) == ("welcome", "ending")
