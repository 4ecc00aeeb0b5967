"""The yardstick: a bare grpc.aio echo, one message a turn, no arena in it.

``python echo.py serve`` prints the port it listens on; ``python echo.py client PORT STREAMS SECONDS`` plays
ping-pong on so many streams in one process and prints how many round trips it made. With ``--each`` it uses
one stream and prints the time of every round trip, in microseconds, as one JSON list.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import grpc

METHOD = "/echo.Echo/Play"
PAYLOAD = b"x" * 150  # about what one turn weighs on the wire


class _Handler(grpc.GenericRpcHandler):
    def service(self, details: Any) -> Any:
        return grpc.stream_stream_rpc_method_handler(_echo)


async def _echo(_requests: Any, context: Any) -> None:
    while (message := await context.read()) is not grpc.aio.EOF:
        await context.write(message)


async def serve() -> None:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((_Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever started this goes away
    await server.stop(0)


async def _ping_pong(channel: grpc.aio.Channel, seconds: float, times: list[float] | None) -> int:
    call: Any = channel.stream_stream(METHOD)()
    await call.write(PAYLOAD)
    await call.read()
    end = time.perf_counter() + seconds
    count = 0
    while (start := time.perf_counter()) < end:
        await call.write(PAYLOAD)
        await call.read()
        count += 1
        if times is not None:
            times.append(round((time.perf_counter() - start) * 1e6, 1))
    call.cancel()
    return count


async def client(port: int, streams: int, seconds: float, each: bool) -> None:
    times: list[float] | None = [] if each else None
    channels = [
        grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)])
        for _ in range(streams)
    ]
    counts = await asyncio.gather(*(_ping_pong(channel, seconds, times) for channel in channels))
    for channel in channels:
        await channel.close()
    print(json.dumps(times if each else sum(counts)), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve())
    else:
        asyncio.run(client(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), "--each" in sys.argv))
