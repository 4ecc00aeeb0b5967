"""Commits results in groups: one sync of the disk for all games that ended since the last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

GROUP_S: Final = 0.05
"""How long a result waits for others to share its sync, in seconds."""


class Synced(Protocol):
    """What GroupCommit needs of a record. Each raises OSError."""

    def flush(self) -> None:
        """Hand all lines so far to the operating system."""

    def sync(self) -> None:
        """Force what was handed over to the disk. Blocks; called in another thread."""

    def close(self) -> None:
        """Flush, sync and close, once a sync under way has ended."""


class GroupCommit:
    """``add`` results whose lines have been written; ``committed`` is called with each once it is on the
    disk, while ``run`` runs, and with the last of them by ``close``."""

    def __init__(self, record: Synced, committed: Callable[[dict[str, Any]], None]) -> None:
        self._record = record
        self._committed = committed
        self._waiting: list[dict[str, Any]] = []
        self._added = asyncio.Event()

    def add(self, result: dict[str, Any]) -> None:
        """Have a result committed with the next group."""
        self._waiting.append(result)
        self._added.set()

    async def run(self) -> None:
        """Commit for ever; raises OSError when the disk refuses."""
        while True:
            await self._added.wait()
            await asyncio.sleep(GROUP_S)
            self._added.clear()
            group = len(self._waiting)
            self._record.flush()
            await asyncio.to_thread(self._record.sync)
            self._tell(group)

    def close(self) -> None:
        """Close the record, once ``run`` has been ended. Results that were waiting are in it as well, so
        they are told: otherwise the record would have more games than anybody has counted."""
        self._record.close()
        self._tell(len(self._waiting))

    def _tell(self, group: int) -> None:
        results, self._waiting = self._waiting[:group], self._waiting[group:]
        for result in results:
            self._committed(result)
