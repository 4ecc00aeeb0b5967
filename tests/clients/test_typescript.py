"""The TypeScript client, built as its README says, at a tournament host beside the Python client."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from support.processes import LIMIT_S, HostProcess, end, hosting
from support.tables import MONTE, TWO_POOR_HANDS, game_spec
from tressette.record.game import GameSpec
from tressette.record.reader import read_lines, read_results
from tressette.rules.presets import resolve

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not (shutil.which("node") and shutil.which("npm")) and "CI" not in os.environ,
        reason="there is no node or npm here",
    ),
]

ROOT: Final = Path(__file__).resolve().parents[2]
BOTS: Final = ("a", "b", "c", "d", "e")
TOKENS: Final = {f"token-of-{name}": name for name in BOTS}
PRESETS: Final = (
    "tressette-21",
    "traversone-003-21",
    "ciapano-trio",
    "tressette-due",
    "tressette-004-drawn",  # partners drawn, calling out
    "traversone-pairs",  # signals
)
GAMES: Final[Sequence[GameSpec]] = (
    *(
        game_spec(f"{preset}-{seed}", resolve(preset), seed=bytes(31) + bytes([seed]))
        for preset in PRESETS
        for seed in range(3)
    ),
    game_spec("monte", MONTE, seed=TWO_POOR_HANDS),
)
# What tells one run of the same games from another: places in the files, and times.
RUN_FIELDS: Final = frozenset(("seq", "prev", "duration_ms", "ended_unix_ms", "think_ms", "net_ms"))


def npm(folder: Path, *arguments: str) -> None:
    """Run npm in a folder; what it says is shown where it fails."""
    done = subprocess.run(["npm", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the client, built from a copy of what is committed."""
    folder = tmp_path_factory.mktemp("typescript")
    shutil.copytree(ROOT / "proto", folder / "proto")
    built = folder / "clients" / "typescript"
    shutil.copytree(
        ROOT / "clients" / "typescript", built, ignore=shutil.ignore_patterns("node_modules", "dist", "gen")
    )
    npm(built, "ci", "--no-audit", "--no-fund")
    npm(built, "run", "build")
    return built


class Bots:
    """Bot processes of one host."""

    def __init__(self, host: HostProcess, client: Path) -> None:
        self._host = host
        self._client = client
        self.running: dict[str, asyncio.subprocess.Process] = {}

    async def start(self, name: str, language: str, address: str = "") -> None:
        """Start the bot that plays the first legal card, told by its environment where to connect."""
        command = {
            "typescript": ("node", str(self._client / "dist" / "first-legal.js")),
            "python": (sys.executable, "-m", "tressette", "bot", "first_legal"),
        }[language]
        self.running[name] = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=os.environ
            | {"TRESSETTE_ADDRESS": address or self._host.address, "TRESSETTE_TOKEN": f"token-of-{name}"},
        )
        await self._host.session(name, True)

    async def ended(self, name: str, statuses: Sequence[int] = (0,)) -> str:
        """Wait until a bot has ended with one of these statuses; what it said."""
        process = self.running[name]
        async with asyncio.timeout(LIMIT_S):
            output, errors = await process.communicate()
        assert process.returncode in statuses, errors.decode()
        assert output == b""
        return errors.decode()


@contextlib.asynccontextmanager
async def bots_of(host: HostProcess, client: Path) -> AsyncIterator[Bots]:
    """Bots, none of which is left over."""
    bots = Bots(host, client)
    try:
        yield bots
    finally:
        for process in bots.running.values():
            await end(process)


def play_of(folder: Path) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """What was played, by game: the result, and every line of the match, deals and tricks."""

    def kept(line: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in line.items() if key not in RUN_FIELDS}

    tricks: dict[str, list[Any]] = {}
    for line in read_lines(folder / "tricks-w1-0001.jsonl"):
        tricks.setdefault(line["game"], []).append(kept(line))
    return {line["game"]: kept(line) for line in read_results(folder)}, tricks


async def played(folder: Path, client: Path, languages: Sequence[str]) -> tuple[Any, Any]:
    """All the games, played by bots in these languages."""
    async with hosting(folder, TOKENS) as host, bots_of(host, client) as bots:
        for name, language in zip(BOTS, languages, strict=True):
            await bots.start(name, language)
        host.play(*GAMES)
        for spec in GAMES:
            await host.finished(spec.game)
        assert await host.stop() == 0
        assert [await bots.ended(name) for name in BOTS] == [""] * len(BOTS)
    return play_of(folder)


@pytest.fixture(scope="module")
def reference(client: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The games as the Python bot plays them."""
    return asyncio.run(played(tmp_path_factory.mktemp("python"), client, ["python"] * len(BOTS)))


def test_its_own_tests_pass(client: Path) -> None:
    npm(client, "test")


@pytest.mark.parametrize("languages", [["typescript"] * 5, ["typescript", "python"] * 2 + ["typescript"]])
async def test_it_plays_as_the_python_bot_does(
    languages: list[str], client: Path, reference: tuple[Any, Any], tmp_path: Path
) -> None:
    results, tricks = await played(tmp_path, client, languages)
    assert results.keys() == {spec.game for spec in GAMES}
    assert [game for game, result in results.items() if result["faults"]] == []
    assert results == reference[0]
    assert tricks == reference[1]


class Relay:
    """Passes bytes on to the arena, and drops the connection whenever it has passed so many of them back:
    whatever the speed of a machine, that is in the middle of matches."""

    def __init__(self, target: str, most: int = 10_000) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self._most = most

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            there, back = await asyncio.open_connection(self._host, self._port)
        except OSError:  # the arena has ended, and the bot does not know yet
            writer.close()
            return
        forth = asyncio.create_task(self._pass(reader, back))
        if await self._pass(there, writer, self._most):
            for one in (writer, back):
                one.transport.abort()
        await forth

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int = 0) -> bool:
        """Whether it has come to ``most`` bytes."""
        passed = 0
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 12):
                writer.write(data)
                passed += len(data)
                if most and passed >= most:
                    return True
        writer.close()
        return False


async def test_games_go_on_where_a_connection_broke(
    client: Path, reference: tuple[Any, Any], tmp_path: Path
) -> None:
    async with hosting(tmp_path, TOKENS, grace_s=20) as host, bots_of(host, client) as bots:
        relay = Relay(host.address)
        async with await asyncio.start_server(relay.serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            for name in BOTS:
                await bots.start(name, "typescript", f"127.0.0.1:{port}" if name == "a" else "")
            host.play(*GAMES)
            for spec in GAMES:
                await host.finished(spec.game)
            assert await host.stop() == 0
            # Cut off once more after its last match, it may find no arena any more.
            said = [await bots.ended(name, (0, 1) if name == "a" else (0,)) for name in BOTS]
    assert said[0].count("connection lost") >= 2, said
    assert said[1:] == [""] * 4
    assert play_of(tmp_path) == reference


async def test_it_takes_its_leave_when_terminated(client: Path, tmp_path: Path) -> None:
    async with hosting(tmp_path, TOKENS) as host, bots_of(host, client) as bots:
        await bots.start("a", "typescript")
        bots.running["a"].terminate()
        await host.session("a", False)
        assert await bots.ended("a") == ""
        assert await host.stop() == 0
