"""The local host: one server process on this machine that plays the games it is given.

The runner knows a host by ``start``, ``play``, ``cancel``, ``stop`` and the messages that come back; what is
on the disk is read from the record. See ``tressette.wire.host`` for the other end.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tressette.record.game import GameSpec

_LINE_LIMIT: Final = 1 << 20
_STOP_TIMEOUT_S: Final = 10.0
_START_TIMEOUT_S: Final = 30.0


class HostFailed(Exception):
    """The server process could not be started or ended by itself; the text says where to look."""


class LocalHost:
    """One server process. ``on_message`` gets each of its messages but the first."""

    def __init__(self, log: Path, on_message: Callable[[dict[str, Any]], None]) -> None:
        self._log = log
        self._on_message = on_message
        self._process: asyncio.subprocess.Process
        self._reader: asyncio.Task[None]

    async def start(self, config: dict[str, Any]) -> str:
        """Start the process; ``config`` are the fields of HostConfig. Returns the address it listens on;
        raises HostFailed."""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tressette.wire.host",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=_LINE_LIMIT,
                start_new_session=True,
            )
        self._send(start=config)
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), _START_TIMEOUT_S)
        except TimeoutError:
            line = b""
        if not line:
            await self.stop()
            raise HostFailed(f"the server did not start; see {self._log}")
        self._reader = asyncio.create_task(self._read(self._process.stdout))
        return str(json.loads(line)["listening"])

    def play(self, spec: GameSpec) -> None:
        """Have a game played as soon as its bots are connected."""
        self._send(play=spec.to_json())

    def cancel(self, game: str) -> None:
        """Have a game dropped unless it has started."""
        self._send(cancel=game)

    async def failed(self) -> None:
        """Wait for the process to end by itself; raises HostFailed when it does."""
        await self._reader
        raise HostFailed(f"the server ended by itself; see {self._log}")

    async def stop(self) -> None:
        """End the process and everything in its group; returns when it is gone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_TIMEOUT_S)
        except TimeoutError:
            os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    def _send(self, **message: Any) -> None:
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            self._on_message(json.loads(line))
