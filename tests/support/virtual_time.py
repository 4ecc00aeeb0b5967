"""An event loop whose time passes only while nothing is left to do: hours take seconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class VirtualLoop(asyncio.SelectorEventLoop):
    """``time`` begins at 0 and jumps to the next timer when nothing is ready. What others give to threads is
    done at once, so that no time passes meanwhile. A loop in which nothing will ever happen again raises
    RuntimeError."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Jumping(self.advance))

    def time(self) -> float:
        """Seconds since the beginning."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass in which nothing happens."""
        self._now += seconds

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Ts]], _T], *args: *_Ts
    ) -> asyncio.Future[_T]:
        """Call it now."""
        done: asyncio.Future[_T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


class _Jumping(selectors.DefaultSelector):
    """Tells how long it would have waited instead of waiting."""

    def __init__(self, advance: Callable[[float], None]) -> None:
        super().__init__()
        self._advance = advance

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("nothing will ever happen again")
            self._advance(max(0.0, timeout))
        return ready


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end on a VirtualLoop. Nothing of gRPC may have a part in it, which knows one loop in a
    process and keeps to real time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.run_until_complete(_end_all())
        loop.close()


async def _end_all() -> None:
    """Cancel whatever still runs."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
