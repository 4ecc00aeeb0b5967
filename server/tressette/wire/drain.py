"""How an open arena stops and goes on: it drains, suspends what is not over by then, and takes it up again.

The first SIGTERM, SIGINT or SIGHUP (its terminal is gone) asks for it: the health service says NOT_SERVING,
bots are told, nothing begins any more, games under way are played out. At the limit, or at a second signal,
those left are suspended into the record folder (``play.suspend``), bots get their Ending and the process
ends; a server that is started on the same folder takes them up.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Final

import structlog

from tressette.play.arena import Arena
from tressette.play.suspend import Suspension, save
from tressette.wire.server import ArenaServer

log = structlog.get_logger("tressette.drain")

RETURN_S: Final = 30.0
"""The least time that bots have to come back to a server that took their games up, in seconds."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopping:
    """What the operator wants. ``asked``: the server shall drain; ``at_once``: and wait for no game."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.at_once = asyncio.Event()

    def listen(self) -> None:
        """Hear the signals from now on; but not SIGHUP where it is ignored, as under nohup."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            loop.add_signal_handler(number, self.ask, signal.Signals(number).name)

    def deafen(self) -> None:
        """Hear no signal from now on: all is done, and one that comes while the process ends would give it
        another status."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)

    def ask(self, why: str) -> None:
        """Drain; when that was asked for before, stop at once."""
        log.info("asked to stop", by=why, at_once=self.asked.is_set())
        (self.at_once if self.asked.is_set() else self.asked).set()

    def fail(self) -> None:
        """Stop at once."""
        self.asked.set()
        self.at_once.set()


async def play_out(server: ArenaServer, stopping: Stopping, limit_s: float) -> None:
    """Drain a server until its games are over, its time is up, or it has to stop at once."""
    server.drain()
    arena = server.service.arena
    log.info("draining", games=len(arena.games), limit_s=limit_s)
    waits = [asyncio.create_task(wait) for wait in (arena.until_idle(), stopping.at_once.wait())]
    try:
        await asyncio.wait(waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


def suspend(
    arena: Arena, folder: Path | None, why_not: str = "there is no record folder to suspend them to"
) -> bool:
    """Put the games under way into the folder, and close the arena; returns whether any are there now.
    why_not: what is logged of games that cannot be, for want of a folder."""
    games, kept = len(arena.games), False
    if games and folder is None:
        log.warning("games cut off", games=games, error=why_not)
    elif games and folder is not None:
        try:
            path = save(folder, arena.suspend())
        except OSError as error:
            log.error("games cut off", games=games, error=str(error))
        else:
            log.info("games suspended", games=games, file=str(path))
            kept = True
    arena.close()
    return kept


def take_up(arena: Arena, suspension: Suspension) -> bool:
    """Have an arena go on with suspended games; returns whether all of them are taken up, so that the
    suspension may be forgotten once the server listens. Raises SuspensionError."""
    games, all_games = arena.restore(suspension.data, max(arena.grace_s, RETURN_S)), suspension.games
    log.info("games taken up", games=games, of=all_games)
    return games == all_games
