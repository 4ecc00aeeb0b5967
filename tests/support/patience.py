"""Tests in which a real clock runs for those who have done nothing wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable


async def with_more_time(test: Callable[[int], Awaitable[None]], *time_ms: int) -> None:
    """Run a test with so much time; where it fails, with the next larger one. What is right passes
    with little time unless the machine stood still for that long, and with much in any case; what is wrong
    fails with all of them."""
    *tries, last = time_ms
    for one in tries:
        try:
            return await test(one)
        except (AssertionError, ExceptionGroup):
            continue
    await test(last)
