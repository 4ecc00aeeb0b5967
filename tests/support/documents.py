"""Documents that tell people what to type: their commands, run as they are written.

A command block is fenced by ```` ```sh ````, or indented by four spaces (in a comment: ``#`` and five).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def blocks(text: str, kind: str) -> list[str]:
    """The fenced blocks of a kind, in order."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def comment_blocks(text: str) -> list[str]:
    """The indented blocks of the comment that a file begins with, in order."""
    head = re.match(r"(#.*\n)+", text)
    assert head is not None, "it begins with no comment"
    found = re.findall(r"(?:^#     .*\n)+", head[0], re.MULTILINE)
    return [block.replace("\n#     ", "\n").removeprefix("#     ") for block in found]


class Desk:
    """A folder where somebody types commands; ``tressette`` is this project's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = folder / "bin" / "tressette"
        command.parent.mkdir(parents=True)
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tressette "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        self._env = os.environ | {"PATH": f"{command.parent}:{os.environ['PATH']}"}

    def start(self, commands: str, output: Path | None = None) -> subprocess.Popen[str]:
        """Begin a block; what it prints goes to ``output``, or to pipes. Its shell leads a process group."""
        where = subprocess.PIPE if output is None else output.open("w", encoding="utf-8")
        try:
            return subprocess.Popen(
                ("sh", "-ec", commands),
                cwd=self.folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=where,
                stderr=subprocess.PIPE if output is None else subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        finally:
            if output is not None:
                where.close()  # type: ignore[union-attr]

    def run(self, commands: str, status: int = 0, timeout_s: float = 110) -> str:
        """Run a block to its end; returns what it prints."""
        with self.start(commands) as process:
            try:
                output, errors = process.communicate(timeout=timeout_s)
            finally:
                process.kill()
        assert process.returncode == status, f"{commands}{output}{errors}"
        return output


@contextmanager
def running(desk: Desk, commands: str, output: Path) -> Iterator[subprocess.Popen[str]]:
    """A block under way; its process group is killed on the way out if its shell still runs."""
    process = desk.start(commands, output)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)
