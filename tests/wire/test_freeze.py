"""Waiting for room on the disk."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

import pytest
from support.tables import FakeClock
from tressette.play.clock import PausableClock
from tressette.wire.freeze import RETRY_S, Freeze, hung_up

FULL = OSError(errno.ENOSPC, "No space left on device")


class Frozen:
    """A Freeze under a clock that moves by what is waited, and an input that ends after so many seconds."""

    def __init__(self, ends_at: float = 1e9) -> None:
        self.said: list[dict[str, Any]] = []
        self.source = FakeClock(0.0)
        self.ends_at = ends_at
        self.clock = PausableClock(self.source)
        self.freeze = Freeze(self.clock, self._ended, lambda **message: self.said.append(message))

    def _ended(self, seconds: float) -> bool:
        self.source.now = min(self.source.now + seconds, max(self.ends_at, self.source.now))
        return self.source.now >= self.ends_at


def test_it_says_once_that_it_waits_and_how_long_it_has() -> None:
    one = Frozen()
    for freeze in (1, 2):
        for _ in range(5):
            assert one.freeze.wait(FULL)
        assert one.clock() == 0
        one.freeze.over()
        assert one.said == [{"frozen": str(FULL)}, {"thawed": 5 * RETRY_S}] * freeze


def test_it_gives_up_when_the_input_ends() -> None:
    one = Frozen(ends_at=2.5)
    assert [one.freeze.wait(FULL) for _ in range(3)] == [True, True, False]
    assert one.said == [{"frozen": str(FULL)}]


def test_where_the_input_has_ended_nothing_is_waited_for() -> None:
    one = Frozen(ends_at=0)
    assert not one.freeze.wait(FULL)
    assert one.said == []


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_the_end_of_the_input_is_seen_behind_what_was_not_read(kind: str) -> None:
    if kind == "pipe":
        read, write = os.pipe()
    else:
        read, write = (one.detach() for one in socket.socketpair())
    try:
        ended = hung_up(read)
        assert not ended(0)
        os.write(write, b"lines that nobody reads\n")
        assert not ended(0.01)
        os.close(write)
        assert ended(10)
        assert os.read(read, 100) == b"lines that nobody reads\n"
    finally:
        os.close(read)
