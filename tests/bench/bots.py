"""``python bots.py PORT NAME...``: one process in which each NAME plays the first legal card."""

from __future__ import annotations

import asyncio
import sys

from tressette_bot import play
from tressette_bot.bots import REFERENCE_BOTS


async def main(port: str, names: list[str]) -> None:
    bots = []
    for name in names:
        bot = REFERENCE_BOTS["first_legal"]()
        bot.name = name
        bots.append(bot)
    await asyncio.gather(*(play(bot, f"127.0.0.1:{port}") for bot in bots))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
