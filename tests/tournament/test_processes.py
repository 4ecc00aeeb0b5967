"""Bot processes: started with what they need, restarted within limits, gone after the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.runs import alive, all_end, soon
from tressette_tournament.processes import MAX_RESTARTS, BotProcess, BotProcesses
from tressette_tournament.tournament_file import Bot


def bot(folder: Path, text: str, *, name: str = "one", instances: int = 1, **environment: str) -> Bot:
    """A bot that runs a program in ``folder``."""
    command = ("python", "-c", f"import os, sys, time\n{text}")
    return Bot(name, None, command, str(folder), tuple(environment.items()), instances)


class Run:
    """BotProcesses and what became of them."""

    def __init__(self, folder: Path, *bots: Bot) -> None:
        self.folder = folder
        self.given_up: list[BotProcess] = []
        self.bots = BotProcesses(bots, folder / "logs", self.environment, self.given_up.append)

    def environment(self, one: Bot) -> Mapping[str, str]:
        return {"TRESSETTE_BOT_NAME": one.name, "TRESSETTE_ADDRESS": "somewhere:1", "SHARED": "runner"}

    def lines(self, name: str = "out") -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    async def until_lines(self, count: int, name: str = "out") -> list[str]:
        await soon(lambda: len(self.lines(name)) >= count, f"{count} lines in {name}")
        return self.lines(name)

    async def until_given_up(self, count: int = 1) -> None:
        await soon(lambda: len(self.given_up) >= count, "giving up")


@asynccontextmanager
async def running(folder: Path, *bots: Bot) -> AsyncIterator[Run]:
    run = Run(folder, *bots)
    try:
        await run.bots.start()
        yield run
    finally:
        async with asyncio.timeout(15):
            await run.bots.stop()


SAY_PID = "open('out', 'a').write(f'{os.getpid()}\\n')\n"


async def test_a_bot_that_keeps_ending_is_restarted_so_often_and_then_given_up(tmp_path: Path) -> None:
    text = SAY_PID + "print('no good', file=sys.stderr)\nsys.exit(9)"
    other = bot(tmp_path, "open('other', 'a').write('x\\n')\ntime.sleep(600)", name="other")
    async with running(tmp_path, bot(tmp_path, text), other) as run:
        await run.until_given_up()
        (one,) = run.given_up
        assert (one.bot.name, one.instance, one.starts, one.status) == ("one", 1, 1 + MAX_RESTARTS, 9)
        assert one.given_up
        assert len(run.lines()) == 1 + MAX_RESTARTS
        assert one.log.read_text() == "no good\n" * (1 + MAX_RESTARTS)
        await run.until_lines(1, "other")
        assert not run.bots.all[1].given_up
        assert run.bots.all[1].starts == 1


async def test_a_bot_that_ends_once_is_back(tmp_path: Path) -> None:
    text = SAY_PID + "if os.path.exists('again'): time.sleep(600)\nopen('again', 'w').close()"
    async with running(tmp_path, bot(tmp_path, text)) as run:
        first, second = map(int, await run.until_lines(2))
        assert first != second
        assert run.bots.all[0].starts == 2
        assert run.given_up == []
    assert all_end([second])


async def test_instances_are_processes_with_logs_of_their_own(tmp_path: Path) -> None:
    text = "print(os.getpid())\n" + SAY_PID + "time.sleep(600)"
    async with running(tmp_path, bot(tmp_path, text, instances=3)) as run:
        pids = await run.until_lines(3)
        logs = [one.log for one in run.bots.all]
    assert [log.name for log in logs] == ["one-1.log", "one-2.log", "one-3.log"]
    assert sorted(log.read_text().strip() for log in logs) == sorted(pids)
    assert len(set(pids)) == 3
    assert all_end(map(int, pids))


async def test_nothing_is_left_after_stop(tmp_path: Path) -> None:
    text = (
        "import subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open('out', 'a').write(f'{os.getpid()}\\n{child.pid}\\n')\ntime.sleep(600)"
    )
    async with running(tmp_path, bot(tmp_path, text)) as run:
        pids = [int(line) for line in await run.until_lines(2)]
    assert all_end(pids)
    assert run.given_up == []


async def test_what_a_bot_left_behind_is_gone_when_it_is_given_up(tmp_path: Path) -> None:
    text = (
        "import subprocess\nquiet = subprocess.DEVNULL\n"
        "child = subprocess.Popen(['sleep', '600'], stdout=quiet, stderr=quiet)\n"
        "open('out', 'a').write(f'{child.pid}\\n')\nsys.exit(1)"
    )
    async with running(tmp_path, bot(tmp_path, text)) as run:
        await run.until_given_up()
        pids = [int(line) for line in run.lines()]
        assert len(pids) == 1 + MAX_RESTARTS
        assert all_end(pids)


async def test_a_guard_that_is_killed_takes_its_bot_along(tmp_path: Path) -> None:
    async with running(tmp_path, bot(tmp_path, SAY_PID + "time.sleep(600)")) as run:
        (first,) = await run.until_lines(1)
        guard = run.bots.all[0].process
        assert guard is not None
        guard.kill()
        _, second = await run.until_lines(2)
        assert all_end([int(first)])
        assert alive(int(second))


async def test_a_stop_during_a_restart_ends_what_was_being_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = asyncio.create_subprocess_exec
    starting, go = asyncio.Event(), asyncio.Event()
    starts = 0

    async def slow(*arguments: object, **options: object) -> asyncio.subprocess.Process:
        nonlocal starts
        starts += 1
        process = await real(*arguments, **options)  # type: ignore[arg-type]  # passed on as they are
        if starts == 2:
            starting.set()
            await go.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slow)
    text = SAY_PID + "if os.path.exists('again'): time.sleep(600)\nopen('again', 'w').close()"
    async with running(tmp_path, bot(tmp_path, text)) as run:
        await starting.wait()
        _, second = await run.until_lines(2)
        stopping = asyncio.create_task(run.bots.stop())
        await asyncio.sleep(0)
        go.set()
        async with asyncio.timeout(10):
            await stopping
    assert all_end([int(second)])


async def test_nothing_is_restarted_once_it_may_end(tmp_path: Path) -> None:
    async with running(tmp_path, bot(tmp_path, SAY_PID + "time.sleep(600)")) as run:
        (pid,) = await run.until_lines(1)
        run.bots.let_end()
        os.kill(int(pid), signal.SIGTERM)
        watcher = run.bots.all[0].watcher
        assert watcher is not None
        async with asyncio.timeout(10):
            await watcher
        assert run.bots.all[0].starts == 1
        assert run.given_up == []


async def test_stop_without_start(tmp_path: Path) -> None:
    run = Run(tmp_path, bot(tmp_path, "pass"))
    await run.bots.stop()
    await run.bots.start()
    assert run.bots.all[0].starts == 0


# --- what goes wrong around them -------------------------------------------------------------------


async def test_an_error_in_the_callback_is_heard(tmp_path: Path) -> None:
    def fail(_: BotProcess) -> None:
        raise BrokenPipeError("nobody listens")

    bots = BotProcesses((bot(tmp_path, "pass"),), tmp_path / "logs", lambda _: {}, fail)
    await bots.start()
    async with asyncio.timeout(20):
        with pytest.raises(BrokenPipeError, match="nobody listens"):
            await bots.failed()
    await bots.stop()


async def test_bots_that_are_given_up_are_no_failure(tmp_path: Path) -> None:
    async with running(tmp_path, bot(tmp_path, "pass")) as run:
        failed = asyncio.create_task(run.bots.failed())
        await run.until_given_up()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(failed, 0.1)


@pytest.mark.parametrize("what", ["command", "folder"])
async def test_a_bot_that_cannot_be_started_is_given_up_like_others(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "missing" if what == "folder" else tmp_path
    command = ("no-such-command",) if what == "command" else ("python", "-c", "pass")
    lost = Bot("lost", None, command, str(folder), (), 1)
    async with running(tmp_path, lost) as run:
        await run.until_given_up()
        (one,) = run.given_up
        assert one.status == 127
        assert one.log.read_text().count("cannot start") == 1 + MAX_RESTARTS


# --- what they run in ------------------------------------------------------------------------------


async def test_environment_and_folder(tmp_path: Path) -> None:
    home = tmp_path / "home of it"
    home.mkdir()
    text = (
        "import json\n"
        "keys = ('TRESSETTE_BOT_NAME', 'TRESSETTE_ADDRESS', 'SHARED', 'MINE', 'PYTHONUNBUFFERED')\n"
        "found = {key: os.environ.get(key) for key in keys}\n"
        "found |= {'cwd': os.getcwd(), 'prefix': sys.prefix, 'inherited': 'PATH' in os.environ}\n"
        "print(json.dumps(found))\nopen('out', 'w').write('done\\n')\ntime.sleep(600)"
    )
    one = bot(home, text, MINE="text with = in it", SHARED="bot's", TRESSETTE_BOT_NAME="a lie")
    async with running(tmp_path, one) as run:
        await run.until_lines(1, "home of it/out")
        found = json.loads(run.bots.all[0].log.read_text())
    assert found == {
        "TRESSETTE_BOT_NAME": "one",
        "TRESSETTE_ADDRESS": "somewhere:1",
        "SHARED": "runner",
        "MINE": "text with = in it",
        "PYTHONUNBUFFERED": "1",
        "cwd": str(home.resolve()),
        "prefix": sys.prefix,  # `python` is the one that runs the tournament
        "inherited": True,
    }


async def test_a_reference_bot_runs_whatever_python_is_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    house = Bot("house", "no_such_reference_bot", (), None, (), 1)
    async with running(tmp_path, house) as run:
        await run.until_given_up()
        (one,) = run.given_up
        assert one.status == 2  # the command was found and refused the name
        assert "no_such_reference_bot" in one.log.read_text()
