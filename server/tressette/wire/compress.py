"""Compresses the segments of a record as they are closed, beside a server that writes it."""

from __future__ import annotations

import asyncio
from typing import Final

from tressette.record.segments import Compressor

EVERY_S: Final = 10.0
"""How often it is looked for segments that have been closed, in seconds."""


async def keep_compressed(compressor: Compressor) -> None:
    """Compress what is closed, now and from time to time; never returns. Works in a thread of its own, which
    finishes the segment that it is at when this is cancelled."""
    while True:
        await asyncio.to_thread(compressor.step)
        await asyncio.sleep(EVERY_S)
