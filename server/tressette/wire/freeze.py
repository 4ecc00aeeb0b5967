"""What a host does while the disk is full: nothing at all.

The event loop itself waits for room, so that no game moves and no timer fires, and the arena's clock stands
still: the time of turns, banks and grace periods does not pass. gRPC's own threads keep the connections of
bots alive meanwhile; what they send is taken in afterwards.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Final

from tressette.play.clock import PausableClock

RETRY_S: Final = 1.0
"""How often it is seen whether there is room."""


def hung_up(file: int) -> Callable[[float], bool]:
    """Waits so many seconds at most for the other end of a pipe or socket to be closed, and says whether it
    is. Nothing is read."""
    poll = select.poll()
    poll.register(file, 0)  # errors and hang-ups are always told
    return lambda seconds: bool(poll.poll(seconds * 1000))


class Freeze:
    """``record.writer.Patience``: waits for room by blocking, with the clock paused.

    ``ended`` waits so many seconds for the end of the host's input, and says whether that has come: there
    is nothing to wait for then. ``say`` gets ``frozen=TEXT`` at the beginning and ``thawed=SECONDS`` when
    there was room."""

    def __init__(
        self, clock: PausableClock, ended: Callable[[float], bool], say: Callable[..., None]
    ) -> None:
        self._clock = clock
        self._ended = ended
        self._say = say

    def wait(self, error: OSError) -> bool:
        """See ``Patience``."""
        if self._clock.paused:
            return not self._ended(RETRY_S)
        if self._ended(0):
            return False
        self._clock.pause()
        self._say(frozen=str(error))
        return not self._ended(RETRY_S)

    def over(self) -> None:
        """See ``Patience``."""
        self._say(thawed=round(self._clock.resume(), 3))
