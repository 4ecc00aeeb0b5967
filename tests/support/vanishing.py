"""A bot that says what it is asked and never answers, so that somebody can kill it:
``python -m support.vanishing ADDRESS TOKEN``."""

from __future__ import annotations

import asyncio
import sys

from support.streams import connected


async def _main(address: str, token: str) -> None:
    async with connected(address) as client:
        await client.greet("vanishing", token=token)
        update = await client.asked()
        sys.stdout.write(f'{{"asked":{update.turn.turn_id}}}\n')
        sys.stdout.flush()
        await client.call.read()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
