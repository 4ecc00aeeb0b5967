"""The local host: one server process on this machine that plays the games it is given.

The runner knows a host by the methods of this class and the messages that come back; what is on the disk is
read from the record. See ``tressette.wire.host`` for the other end, and for what the messages mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, Final

from tressette.record.game import GameSpec

_LINE_LIMIT: Final = 1 << 20
_STOP_TIMEOUT_S: Final = 10.0
_START_TIMEOUT_S: Final = 30.0


class HostFailed(Exception):
    """The server process could not be started or ended by itself; the text says why and where to look."""


class LocalHost:
    """One server process. ``on_message`` gets each of its messages but the first and the last words of a
    failing one. ``keep_open`` are file descriptors that the process holds for as long as it lives.

    local_address, remote_address: where launched and remote bots connect, "" until it has started or where
    there are none."""

    def __init__(
        self, log: Path, on_message: Callable[[dict[str, Any]], None], keep_open: Collection[int] = ()
    ) -> None:
        self._log = log
        self._on_message = on_message
        self._keep_open = tuple(keep_open)
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._reason = ""
        self.local_address = self.remote_address = ""

    async def start(self, config: dict[str, Any]) -> None:
        """Start the process; ``config`` are the fields of HostConfig. Raises HostFailed, and OSError if there
        can be no such process. After either ``stop`` is still due."""
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
                pass_fds=self._keep_open,
            )
        self._send(start=config)
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), _START_TIMEOUT_S)
        except TimeoutError:
            line = b""
        first = json.loads(line if line.endswith(b"\n") else b"{}")
        self._reason = first.get("failed", "")
        if "listening" not in first:
            raise self._failure("the server did not start")
        self._reader = asyncio.create_task(self._read(self._process.stdout))
        self.local_address = str(first["listening"]["local"])
        self.remote_address = str(first["listening"].get("remote", ""))

    def token(self, token: str, bot: str, process: str) -> None:
        """Have a process let in that is about to be started. Its id is never used again."""
        self._send(token={"token": token, "name": bot, "process": process})

    def revoke(self, token: str) -> None:
        """Have a process shut out that is about to be ended, and that has no game under way."""
        self._send(revoke=token)

    def crashed(self, process: str) -> None:
        """A process has ended by itself: the policy for crashes answers for its seats from now on."""
        self._send(crashed={"process": process})

    def play(self, spec: GameSpec) -> None:
        """Have a game played as soon as its bots are connected."""
        self._send(play=spec.to_json())

    def cancel(self, game: str) -> None:
        """Have a game dropped unless it has started."""
        self._send(cancel=game)

    def refused(self, game: str, bot: str) -> None:
        """Have a game begin without a bot that will not come, unless it has started."""
        self._send(refused={"game": game, "bot": bot})

    def retired(self, decks: Iterable[str]) -> None:
        """There will be no further games of these decks."""
        self._send(retired=list(decks))

    async def failed(self) -> None:
        """Wait for the process to end by itself; raises HostFailed when it does, or what ``on_message``
        has raised."""
        assert self._reader is not None
        # Not awaited itself: when this is cancelled it is to hand on what comes until the process is gone.
        await asyncio.wait((self._reader,))
        self._reader.result()
        raise self._failure("the server ended by itself")

    async def stop(self) -> None:
        """End the process and everything in its group; returns when it is gone and its last messages have
        been handed on. Harmless if it was never started."""
        process, reader = self._process, self._reader
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        # Somebody must read what it still says: it could not end with its output blocked.
        rest = reader if reader is not None and not reader.done() else process.stdout.read()
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await asyncio.gather(rest, process.wait(), return_exceptions=True)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    def _failure(self, what: str) -> HostFailed:
        why = f": {self._reason}" if self._reason else ""
        return HostFailed(f"{what}{why}; see {self._log}")

    def _send(self, **message: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while (line := await lines.readline()).endswith(b"\n"):
            message = json.loads(line)
            if "failed" in message:
                self._reason = str(message["failed"])
            else:
                self._on_message(message)
