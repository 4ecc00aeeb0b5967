"""The Go client, built here and played beside the Python ``first_legal`` against real servers.

Skipped where there is no Go, but never in CI.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.processes import end, hosting
from support.streams import serving, true_in_time
from support.tables import game_spec
from tressette.play.config import PlayConfig
from tressette.record.reader import read_lines
from tressette.rules.presets import resolve

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        shutil.which("go") is None and "CI" not in os.environ, reason="there is no go command here"
    ),
]

ROOT = Path(__file__).resolve().parent.parent.parent
GAMES = 3
PRESETS = ("tressette-21", "traversone-003-21", "ciapano-trio", "tressette-due", "tressette-004")
VARYING = {"prev", "think_ms", "net_ms", "duration_ms", "ended_unix_ms"}


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the client, built by its own Makefile."""
    root = tmp_path_factory.mktemp("go")
    shutil.copytree(ROOT / "proto", root / "proto")
    folder = root / "clients" / "go"
    shutil.copytree(ROOT / "clients" / "go", folder, ignore=shutil.ignore_patterns("tressettev1", "bin"))
    make(folder, "build")
    return folder


def make(folder: Path, target: str) -> None:
    buf = shutil.which("buf", path=str(Path(sys.executable).parent)) or shutil.which("buf")
    command = ["make", "-C", str(folder), target, *([f"BUF={buf}"] if buf else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.asynccontextmanager
async def playing(
    commands: Sequence[Sequence[str]], address: str, tokens: bool = True
) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    """Bots ``a``, ``b``, ... run by these commands; when the block is left, they end by themselves, well."""
    running = []
    try:
        for name, command in zip("abcde", commands, strict=False):
            token = {"TRESSETTE_TOKEN": f"token-of-{name}"} if tokens else {}
            env = os.environ | {"TRESSETTE_ADDRESS": address, "TRESSETTE_BOT_NAME": name} | token
            null = asyncio.subprocess.DEVNULL
            pipe = asyncio.subprocess.PIPE
            running.append(
                await asyncio.create_subprocess_exec(*command, stdin=null, stdout=null, stderr=pipe, env=env)
            )
        yield running
        for process in running:
            async with asyncio.timeout(60):
                _, said = await process.communicate()
            assert process.returncode == 0, said.decode()
    finally:
        for process in running:
            await end(process)


def python() -> list[str]:
    return [sys.executable, "-m", "tressette", "bot", "first_legal"]


async def record(folder: Path, preset: str, commands: Sequence[Sequence[str]]) -> tuple[Any, Any]:
    """Result lines and trick lines of some games, without what differs from run to run."""
    rules = resolve(preset)
    tokens = {f"token-of-{name}": name for name in "abcde"[: rules.players]}
    async with hosting(folder, tokens) as host, playing(commands[: rules.players], host.address):
        for name in tokens.values():
            await host.session(name, True)
        for number in range(GAMES):  # one after the other, for the lines to be in the same order
            game = f"g{number}"
            host.play(game_spec(game, rules, seed=(7 + number).to_bytes(32, "big")))
            await host.finished(game)
        assert await host.stop() == 0
    results = [plain(line) for line in read_lines(folder / "results-w1.jsonl")]
    tricks = [plain(line) for line in read_lines(folder / "tricks-w1-0001.jsonl")]
    assert len(results) == GAMES
    for result in results:
        assert result["faults"] == []
        assert result["termination"] in ("played_out", "call_out")
    return results, tricks


def plain(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in VARYING}


def test_it_has_no_faults_that_go_finds_and_its_own_tests_pass(go: Path) -> None:
    make(go, "check")


@pytest.mark.parametrize("preset", PRESETS)
async def test_games_are_those_of_the_python_bot(go: Path, tmp_path: Path, preset: str) -> None:
    ours = [str(go / "bin" / "first_legal")]
    all_go = await record(tmp_path / "go", preset, [ours] * 5)
    assert all_go == await record(tmp_path / "python", preset, [python()] * 5)
    assert all_go == await record(tmp_path / "both", preset, [ours, python(), python(), ours, python()])


async def test_it_takes_its_leave_when_stopped(go: Path) -> None:
    bots = [[str(go / "bin" / "first_legal")]]
    async with serving() as arena, playing(bots, arena.address, tokens=False) as (bot,):
        await arena.sessions(1)
        bot.send_signal(signal.SIGTERM)
        await arena.sessions(0)


class Cable:
    """A way to an address that can be cut."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")
        self._writers: set[asyncio.StreamWriter] = set()
        self.connections = 0

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Both ways, until either end or a cut."""
        self.connections += 1
        far_reader, far_writer = await asyncio.open_connection(self._host, int(self._port))
        ends = {writer, far_writer}
        self._writers |= ends
        await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))
        self._writers -= ends

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    def cut(self) -> None:
        """Without a word to either side."""
        for writer in self._writers:
            writer.transport.abort()


async def test_it_comes_back_when_the_connection_is_cut(go: Path) -> None:
    games = 100
    rules = resolve("tressette-21")
    async with serving(PlayConfig(move_ms=60_000), grace_s=30) as arena:
        cable = Cable(arena.address)
        server = await asyncio.start_server(cable.carry, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        bots = [[str(go / "bin" / "first_legal")]] * 4
        async with playing(bots, f"127.0.0.1:{port}", tokens=False):
            await arena.sessions(4)
            for number in range(games):
                arena.arena.submit(game_spec(f"g{number}", rules, seed=number.to_bytes(32, "big")))
            for _ in range(5):
                await asyncio.sleep(0.2)
                cable.cut()
            async with asyncio.timeout(120):
                for _ in range(games):
                    assert (await arena.finished.get())["faults"] == []
            assert cable.connections >= 8
            await true_in_time(
                lambda: sum(bot.attached for bot in itertools.chain(*arena.arena.sessions.values())) == 4
            )
            await arena.close()
        server.close()
        await server.wait_closed()
