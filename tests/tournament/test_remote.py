"""Remote bots: processes that nobody launches, with tokens from ``tressette token new``, over TLS and plain.

The runner and every bot are real processes. Lines that break are ``support.links``.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.certificates import authority, self_signed, signed
from support.links import link
from support.runs import (
    CommandRun,
    Notes,
    command_run,
    event,
    hurry,
    lingering,
    loaded,
    result_lines,
    results,
    soon,
    tricks,
    turns_until,
)
from support.streams import connected
from tressette.v1 import arena_service_pb2 as pb
from tressette_tournament.results import GameResult
from tressette_tournament.runner import Outcome, Runner
from tressette_tournament.toml_source import TournamentFileError

PAIRS = "tressette-21-duplicate"
TABLE = "traversone-003-21-duplicate"
patiently = partial(soon, timeout_s=60)
ADDRESS = re.compile(r"remote bots connect to (\S+:\d+)")


def competition(
    folder: Path,
    launched: dict[str, str | Path],
    remote: Sequence[str],
    *,
    server: str = "",
    bot: str = "",
    presets: tuple[str, ...] = ("tressette-due-duplicate",),
    deal_sets: int = 4,
    concurrency: int = 8,
) -> Path:
    """A tournament file with remote bots. server, bot: further lines of these sections."""
    file = event(folder, launched, presets=presets, deal_sets=deal_sets, concurrency=concurrency)
    with file.open("a") as text:
        text.write(f'[server]\ntokens = "tokens.jsonl"\n{server}\n')
        for name in remote:
            text.write(f'[[bots]]\nname = "{name}"\nremote = true\n{bot}\n')
    return file


def tokens(folder: Path, what: str, name: str) -> str:
    """``tressette token``, as the organiser calls it; returns what it prints."""
    command = [sys.executable, "-m", "tressette", "token", what, name, "--file", str(folder / "tokens.jsonl")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def token(folder: Path, name: str) -> str:
    """A new token for a bot."""
    return tokens(folder, "new", name)


class Remote:
    """A bot process that was started by hand, somewhere else."""

    def __init__(self, folder: Path, command: Sequence[str], address: str, token: str) -> None:
        self.errors = folder / f"remote-{os.urandom(4).hex()}.txt"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env={**os.environ, "TRESSETTE_ADDRESS": address, "TRESSETTE_TOKEN": token},
            )

    async def ended(self) -> int:
        """Its exit status."""
        await patiently(lambda: self.process.poll() is not None, f"the end of {self.process.args!r}")
        assert self.process.returncode is not None
        return self.process.returncode


@contextmanager
def remote(folder: Path, command: Sequence[str], address: str, token: str) -> Iterator[Remote]:
    """A Remote that is killed on the way out, if it still runs."""
    one = Remote(folder, command, address, token)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait(60)


def reference(name: str, *options: object) -> list[str]:
    """The command of a reference bot."""
    return ["-m", "tressette", "bot", name, *map(str, options)]


async def address_of(run: CommandRun) -> str:
    """Where remote bots connect, by what the runner has printed."""
    (address, *_) = await patiently(lambda: ADDRESS.findall(run.output), "the address")
    return str(address)


async def status_of(run: CommandRun) -> int:
    """The exit status of a run, with nothing left of it."""
    await patiently(lambda: run.process.poll() is not None, "the end of the run")
    run.assert_nothing_left()
    assert run.process.returncode is not None
    return run.process.returncode


def server_log(run: CommandRun, said: str) -> list[str]:
    """Lines of the server's log in which this is said."""
    log = run.folder / "logs" / "server.log"
    return [line for line in log.read_text().splitlines() if said in line] if log.exists() else []


def faults(games: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """(bot, kind) of all faults."""
    return {(bot, kind) for line in games for bot, kind, _ in line["faults"]}


def files_with(folder: Path, secret: str) -> list[Path]:
    """Files that hold a secret."""
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


# --- tokens and certificates -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "doors", ["plain", *(pytest.param(doors, marks=pytest.mark.slow) for doors in ("tls", "mutual"))]
)
async def test_a_remote_bot_plays_with_a_launched_one(tmp_path: Path, doors: str) -> None:
    secret = token(tmp_path, "far")
    ca = await authority(tmp_path / "tls")
    server, mine = await signed(ca, "server"), await signed(ca, "mine")
    lines, options = 'listen = "localhost:0"', []
    if doors != "plain":
        lines += f'\ncertificate = "{server.cert}"\nkey = "{server.key}"'
        options += ["--tls-root", ca.cert]
    if doors == "mutual":
        lines += f'\nclient_ca = "{ca.cert}"'
        options += ["--tls-cert", mine.cert, "--tls-key", mine.key]
    file = competition(tmp_path, {"near": "first_legal", "other": "random"}, ("far",), server=lines)
    with command_run(file) as run:
        address = await address_of(run)
        assert address.startswith("localhost:")
        if doors == "mutual":
            async with connected(address, ca.cert.read_bytes()) as client:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await client.greet("far", token=secret)
                assert caught.value.code() is grpc.StatusCode.UNAVAILABLE, "it has no certificate"
        with remote(tmp_path, reference("greedy", *options), address, secret) as far:
            assert await status_of(run) == 0, run.output
            assert await far.ended() == 0, far.errors.read_text()
    games = results(run.folder)
    assert Counter(bot for line in games for bot in line["bots"]) == {"near": 8, "other": 8, "far": 8}
    assert faults(games) == set()
    matches = [line for line in tricks(run.folder) if line["kind"] == "match"]
    assert len(matches) == len(games)
    assert files_with(run.folder, secret) == []


@pytest.mark.slow
async def test_by_default_a_remote_bot_meets_each_deck_once(tmp_path: Path) -> None:
    secret = token(tmp_path, "far")
    others: dict[str, str | Path] = {"a": "random", "b": "first_legal", "c": "greedy", "d": "cautious"}
    file = competition(tmp_path, others, ("far",), presets=("tressette-due-duplicate", TABLE), deal_sets=3)
    with command_run(file) as run, remote(tmp_path, reference("greedy"), await address_of(run), secret):
        assert await status_of(run) == 0, run.output
    decks = Counter(line["deck"] for line in results(run.folder) if "far" in line["bots"])
    assert len(decks) == 3 * 4 + 3 * 4
    assert set(decks.values()) == {1}


@pytest.mark.slow
async def test_other_tokens_are_refused_and_the_log_says_so(tmp_path: Path) -> None:
    good = token(tmp_path, "far")
    # "near" has a token in the file, but the runner launches it: nobody else may play under its name.
    others = [f"{good[:-4]}AAAA", token(tmp_path, "near")]
    file = competition(tmp_path, {"near": "first_legal"}, ("far",))
    with command_run(file) as run:
        address = await address_of(run)
        with (
            remote(tmp_path, reference("greedy"), address, others[0]) as unknown,
            remote(tmp_path, reference("greedy"), address, others[1]) as launched,
        ):
            for one in (unknown, launched):
                assert await one.ended() == 1
                assert "UNAUTHENTICATED" in one.errors.read_text()
        lines = server_log(run, "refused")
        assert len(lines) == 2
        assert all("token" in line and "127.0.0.1" in line for line in lines)
        with remote(tmp_path, reference("greedy"), address, good):
            assert await status_of(run) == 0, run.output
    for secret in (good, *others):
        assert files_with(run.folder, secret) == []
        assert secret not in run.output
    assert faults(results(run.folder)) == set()


@pytest.mark.slow
async def test_programs_read_the_address_from_an_event(tmp_path: Path) -> None:
    secret = token(tmp_path, "far")
    file = competition(tmp_path, {"near": "first_legal"}, ("far",), deal_sets=1)
    with command_run(file, "--json") as run:
        address = await address_of(run)
        (told,) = (line for line in map(json.loads, run.output.splitlines()) if address in str(line))
        assert told.keys() == {"event", "unix_ms", "text"}
        assert (told["event"], told["text"]) == ("info", f"remote bots connect to {address}")
        with remote(tmp_path, reference("greedy"), address, secret):
            assert await status_of(run) == 0, run.output


@pytest.mark.parametrize("listen", ["0.0.0.0:50051", "[::]:50051", "arena.example:50051", "192.0.2.1:0"])
async def test_an_address_that_others_reach_needs_tls(tmp_path: Path, listen: str) -> None:
    token(tmp_path, "far")
    file = competition(tmp_path, {"near": "first_legal"}, ("far",), server=f'listen = "{listen}"')
    host = listen.rpartition(":")[0]
    line = file.read_text().splitlines().index(f'listen = "{listen}"') + 1
    with pytest.raises(TournamentFileError) as caught:
        loaded(file)
    assert f"{file}:{line}: server.listen: {host} can be reached from elsewhere: needs" in str(caught.value)
    pair = await self_signed(tmp_path / "tls")
    keys = f'certificate = "{pair.cert}"\nkey = "{pair.key}"\nlisten'
    file.write_text(file.read_text().replace("listen", keys))
    assert loaded(file).place.listen == listen


def test_remote_bots_without_tokens_are_refused(tmp_path: Path) -> None:
    file = competition(tmp_path, {"near": "first_legal"}, ("far",))
    file.write_text(file.read_text().replace('tokens = "tokens.jsonl"', ""))
    with pytest.raises(TournamentFileError, match=r"server\.tokens: missing: remote bots \(far\)"):
        loaded(file)


# --- waiting for them ------------------------------------------------------------------------------


async def test_a_remote_bot_that_does_not_come_is_awaited_with_a_limit(tmp_path: Path) -> None:
    secret = token(tmp_path, "far")
    file = competition(tmp_path, {"a": "first_legal", "b": "random"}, ("far",), bot="start_limit_s = 120")
    ahead_s = 0.0

    class Impatient(Notes):
        """Has the limit over as soon as the others have played."""

        def finished(self, result: GameResult) -> None:
            nonlocal ahead_s
            super().finished(result)
            if len(self.games) == 4:
                ahead_s = 120

    notes = Impatient()
    first = Runner(loaded(file), notes, clock=lambda: time.monotonic() + ahead_s)
    async with asyncio.timeout(60):
        assert await first.run() is Outcome.INCOMPLETE
    why = "bot far has 0 of the 1 connections it needs, for 120 s; its games are left out."
    assert any(why in note for note in notes.notes)
    assert (set(first.lost), first.left_out) == ({"far"}, 8)
    played = results(first.folder)
    assert Counter(bot for line in played for bot in line["bots"]) == {"a": 4, "b": 4}
    # It comes the next time: the same command plays what was left out.
    with command_run(file) as run:
        async with connected(await address_of(run)) as far:
            await far.greet(token=secret)
            playing = asyncio.create_task(far.play_until_told())
            assert await status_of(run) == 0, run.output
            assert (await playing).reason == pb.ERROR_REASON_SHUTTING_DOWN
    assert len(results(run.folder)) == 12
    assert faults(results(run.folder)) == set()


@pytest.mark.slow
async def test_in_pairs_one_session_of_a_remote_bot_is_not_enough(tmp_path: Path) -> None:
    secret = token(tmp_path, "far")
    file = competition(tmp_path, {"near": "greedy"}, ("far",), presets=(PAIRS,), bot="start_limit_s = 3")
    with command_run(file) as run:
        async with connected(await address_of(run)) as far:
            await far.greet(token=secret)
            assert await status_of(run) == 4, run.output
    assert "bot far has 1 of the 2 connections it needs, for 3 s; its games are left out." in run.output
    assert results(run.folder) == []


@pytest.mark.slow
async def test_in_pairs_a_remote_bot_plays_from_two_sessions(tmp_path: Path) -> None:
    secret = token(tmp_path, "far")
    file = competition(tmp_path, {"near": "greedy"}, ("far",), presets=(PAIRS,))
    with command_run(file) as run:
        address = await address_of(run)
        with (
            remote(tmp_path, reference("greedy"), address, secret),
            remote(tmp_path, reference("greedy"), address, secret),
        ):
            assert await status_of(run) == 0, run.output
    games = results(run.folder)
    assert len(games) == 4
    assert all(Counter(line["bots"]) == {"near": 2, "far": 2} for line in games)
    assert faults(games) == set()


@pytest.mark.slow
async def test_all_bots_may_be_remote(tmp_path: Path) -> None:
    secrets = [token(tmp_path, name) for name in ("far", "farther")]
    file = competition(tmp_path, {}, ("far", "farther"))
    with command_run(file) as run:
        address = await address_of(run)
        with (
            remote(tmp_path, reference("greedy"), address, secrets[0]),
            remote(tmp_path, reference("random"), address, secrets[1]),
        ):
            assert await status_of(run) == 0, run.output
    assert [path.name for path in (run.folder / "logs" / "bots").iterdir()] == []
    assert len(results(run.folder)) == 4


# --- lines that break ------------------------------------------------------------------------------


def slowly(folder: Path) -> list[str]:
    """The command of a bot that leaves time to cut its line in the middle of games."""
    return [str(lingering(folder, turns_until(3, games_at_once=4), pause_s=0.3))]


def begun(run: CommandRun) -> int:
    """How many games have begun."""
    file = run.folder / "tricks-0001-0001.jsonl"
    return file.read_bytes().count(b'"kind":"match"') if file.exists() else 0


@pytest.mark.parametrize(
    "frozen", [pytest.param(False, marks=pytest.mark.slow, id="cut"), pytest.param(True, id="frozen-and-cut")]
)
async def test_a_bot_that_loses_its_line_comes_back_to_its_games(tmp_path: Path, frozen: bool) -> None:
    secret = token(tmp_path, "far")
    file = competition(
        tmp_path, {"near": "first_legal"}, ("far",), server="grace_s = 60", deal_sets=16, concurrency=4
    )
    with command_run(file) as run:
        async with link(await address_of(run)) as line:
            with remote(tmp_path, slowly(tmp_path), line.address, secret) as far:
                await patiently(lambda: begun(run) >= 6, "a game that has just begun")
                if frozen:
                    far.process.send_signal(signal.SIGSTOP)
                line.cut()
                await patiently(lambda: server_log(run, "session lost"), "the loss")
                line.mend()
                far.process.send_signal(signal.SIGCONT)
                await patiently(lambda: server_log(run, "session resumed"), "the return")
                hurry(tmp_path)
                assert await status_of(run) == 0, run.output
                assert await far.ended() == 0, far.errors.read_text()
    games = results(run.folder)
    assert len(games) == 16
    assert faults(games) == set()
    assert {line["attempt"] for line in games} == {1}
    assert len(server_log(run, "session opened")) == 2, "near, and far that kept its session"


@pytest.mark.slow
async def test_a_bot_that_comes_back_too_late_plays_later_games(tmp_path: Path) -> None:
    secret = token(tmp_path, "far")
    file = competition(
        tmp_path, {"near": "first_legal"}, ("far",), server="grace_s = 1", deal_sets=16, concurrency=2
    )
    with command_run(file) as run:
        async with link(await address_of(run)) as line:
            with remote(tmp_path, slowly(tmp_path), line.address, secret) as far:
                await patiently(lambda: begun(run) >= 5, "a game that has just begun")
                line.cut()
                await patiently(lambda: server_log(run, "session closed"), "the end of its session")
                line.mend()
                hurry(tmp_path)
                assert await status_of(run) == 0, run.output
                assert await far.ended() == 0, far.errors.read_text()
                assert "matches are lost" in far.errors.read_text()
    games = results(run.folder)
    assert len(games) == 16
    assert faults(games) == {("far", "disconnect")}
    assert 1 <= sum(bool(line["faults"]) for line in games) <= 2, "only the games under way"
    assert len(server_log(run, "session opened")) == 3


async def test_a_bot_that_stays_away_is_lost_and_the_others_play_on(tmp_path: Path) -> None:
    # All are remote: away_s is counted from when they were there, however long they take to start.
    secrets = {name: token(tmp_path, name) for name in ("far", "a", "b")}
    file = competition(
        tmp_path, {}, tuple(secrets), server="grace_s = 0\naway_s = 2", deal_sets=16, concurrency=2
    )
    with command_run(file) as run:
        address = await address_of(run)
        with (
            remote(tmp_path, slowly(tmp_path), address, secrets["far"]) as far,
            remote(tmp_path, reference("first_legal"), address, secrets["a"]),
            remote(tmp_path, reference("random"), address, secrets["b"]),
        ):
            await patiently(
                lambda: any("far" in one["bots"] for one in results(run.folder)), "its first game"
            )
            far.process.kill()
            assert await status_of(run) == 4, run.output
    assert "bot far has 0 of the 1 connections it needs, for 2 s; its games are left out." in run.output
    games = results(run.folder)
    assert sum("far" not in line["bots"] for line in games) == 16
    assert faults(games) <= {("far", "disconnect")}


@pytest.mark.slow
async def test_a_revoked_token_ends_a_session(tmp_path: Path) -> None:
    secrets = {name: token(tmp_path, name) for name in ("far", "other")}
    file = competition(tmp_path, {}, tuple(secrets), server="away_s = 1", deal_sets=100, concurrency=2)
    with command_run(file) as run:
        address = await address_of(run)
        with (
            remote(tmp_path, slowly(tmp_path), address, secrets["far"]) as far,
            remote(tmp_path, reference("random"), address, secrets["other"]),
        ):
            await patiently(lambda: result_lines(run.folder) >= 2, "two results")
            tokens(tmp_path, "revoke", "far")
            assert await far.ended() == 1
            assert "UNAUTHENTICATED" in far.errors.read_text()
            assert await status_of(run) == 4, run.output
