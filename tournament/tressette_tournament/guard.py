"""Runs one command and never outlives whoever started it: ``python guard.py LOG LIMIT -- COMMAND...``.

The starter holds the other end of this process's standard input. When that closes, because the starter
stopped or was killed, the command gets SIGTERM and, two seconds later, its whole process group SIGKILL.
Everything the command prints goes to LOG, LIMIT bytes at most; the rest is read and dropped, so that a
chatty command neither fills the disk nor blocks. Exits with the command's own status.

Uses only the standard library and is run by its path: a guard should start in an instant.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

_PATIENCE_S = 2.0


def _copy(source: IO[bytes], log: Path, limit: int) -> None:
    left = limit
    with log.open("ab", buffering=0) as out:
        while chunk := os.read(source.fileno(), 65536):
            if left > 0:
                out.write(chunk[:left])
                left -= len(chunk)
                if left <= 0:
                    out.write(b"\n[more output was dropped]\n")


def _end_with_starter(child: subprocess.Popen[bytes]) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass  # nothing is expected; only the end of it matters
    child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_PATIENCE_S)
    # The group holds this guard, the command, and whatever the command left behind.
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status, 127 if it cannot be started."""
    log, limit, _, *command = arguments
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        Path(log).write_text(f"cannot start {command[0]!r}: {error}\n", encoding="utf-8")
        return 127
    assert child.stdout is not None
    threading.Thread(target=_end_with_starter, args=(child,), daemon=True).start()
    copier = threading.Thread(target=_copy, args=(child.stdout, Path(log), int(limit)), daemon=True)
    copier.start()
    status = child.wait()
    copier.join(_PATIENCE_S)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
