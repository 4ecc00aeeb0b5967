"""A clock that can be stopped."""

from __future__ import annotations

import time
from collections.abc import Callable


class PausableClock:
    """Gives seconds, which pass as those of ``source`` do unless the clock is paused; never goes back."""

    def __init__(self, source: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._stood = 0.0  # how long, by the source
        self._paused_at: float | None = None

    def __call__(self) -> float:
        now = self._source() if self._paused_at is None else self._paused_at
        return now - self._stood

    @property
    def paused(self) -> bool:
        """Whether it stands still."""
        return self._paused_at is not None

    def pause(self) -> None:
        """Stand still until ``resume``; harmless if it does already."""
        if self._paused_at is None:
            self._paused_at = self._source()

    def resume(self) -> float:
        """Go on; returns how long the clock has stood still, in seconds."""
        if self._paused_at is None:
            return 0.0
        pause = self._source() - self._paused_at
        self._stood += pause
        self._paused_at = None
        return pause
