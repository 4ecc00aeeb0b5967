"""Bot processes: started with what they need, restarted within limits, gone after the end."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.runs import alive, all_end, soon
from tressette_tournament.processes import KEPT_BYTES, OUTPUT_LIMIT, BotProcess, BotProcesses
from tressette_tournament.tournament_file import Bot

RESTARTS = 3


def bot(folder: Path, text: str, *, name: str = "one", instances: int = 1, **environment: str) -> Bot:
    """A bot that runs a program in ``folder``."""
    command = ("python", "-c", f"import os, sys, time\n{text}")
    return Bot(name, None, command, str(folder), tuple(environment.items()), instances, restarts=RESTARTS)


class Run:
    """BotProcesses and what became of them: ``told`` has (what, id of the process) in order. ``pauses``:
    seconds that were to be waited for; they pass at once if they are below ``patience``, else never."""

    def __init__(self, folder: Path, *bots: Bot, patience: float = 40.0) -> None:
        self.folder = folder
        self.ended_up: list[BotProcess] = []
        self.told: list[tuple[str, str]] = []
        self.tokens: list[str] = []
        self.pauses: list[float] = []
        self._patience = patience
        self.bots = BotProcesses(bots, folder / "logs", self.environment, self, self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if seconds >= self._patience:
            await asyncio.Event().wait()

    def starting(self, one: BotProcess) -> None:
        self.tokens.append(one.token)
        self.told.append(("starting", one.id))

    def crashed(self, one: BotProcess) -> None:
        self.told.append(("crashed", one.id))

    def recycled(self, one: BotProcess) -> None:
        self.told.append(("recycled", one.id))

    def given_up(self, one: BotProcess) -> None:
        self.told.append(("given up", one.id))
        self.ended_up.append(one)

    def environment(self, one: BotProcess) -> Mapping[str, str]:
        return {
            "TRESSETTE_BOT_NAME": one.bot.name,
            "TRESSETTE_ADDRESS": "somewhere:1",
            "SHARED": "runner",
            "TOKEN": one.token,
        }

    def lines(self, name: str = "out") -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    async def until_lines(self, count: int, name: str = "out") -> list[str]:
        await soon(lambda: len(self.lines(name)) >= count, f"{count} lines in {name}")
        return self.lines(name)

    async def until_given_up(self, count: int = 1) -> None:
        await soon(lambda: len(self.ended_up) >= count, "giving up")


@asynccontextmanager
async def running(folder: Path, *bots: Bot, patience: float = 40.0) -> AsyncIterator[Run]:
    run = Run(folder, *bots, patience=patience)
    try:
        await run.bots.start()
        yield run
    finally:
        async with asyncio.timeout(60):
            await run.bots.stop()


SAY_PID = "open('out', 'a').write(f'{os.getpid()}\\n')\n"


async def test_a_bot_that_keeps_ending_is_restarted_so_often_and_then_given_up(tmp_path: Path) -> None:
    text = SAY_PID + "print('no good', file=sys.stderr)\nsys.exit(9)"
    other = bot(tmp_path, "open('other', 'a').write('x\\n')\ntime.sleep(600)", name="other")
    async with running(tmp_path, bot(tmp_path, text), other) as run:
        await run.until_given_up()
        (one,) = run.ended_up
        assert (one.bot.name, one.instance, one.starts, one.status) == ("one", 1, 1 + RESTARTS, 9)
        assert one.given_up
        assert len(run.lines()) == 1 + RESTARTS
        assert (one.id, one.log.name) == ("one-1.4", "one-1.4.log")
        logs = sorted(path for path in one.logs.iterdir() if path.name.startswith("one-"))
        assert [log.read_text() for log in logs] == ["no good\n"] * (1 + RESTARTS)
        await run.until_lines(1, "other")
        assert not run.bots.all[1].given_up
        assert run.bots.all[1].starts == 1


async def test_a_bot_that_ends_once_is_back(tmp_path: Path) -> None:
    text = SAY_PID + "if os.path.exists('again'): time.sleep(600)\nopen('again', 'w').close()"
    async with running(tmp_path, bot(tmp_path, text)) as run:
        first, second = map(int, await run.until_lines(2))
        assert first != second
        assert run.bots.all[0].starts == 2
        assert run.ended_up == []
    assert all_end([second])


async def test_instances_are_processes_with_logs_of_their_own(tmp_path: Path) -> None:
    text = "print(os.getpid())\n" + SAY_PID + "time.sleep(600)"
    async with running(tmp_path, bot(tmp_path, text, instances=3)) as run:
        pids = await run.until_lines(3)
        logs = [one.log for one in run.bots.all]
    assert [log.name for log in logs] == ["one-1.1.log", "one-2.1.log", "one-3.1.log"]
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
    assert run.ended_up == []


async def test_what_a_bot_left_behind_is_gone_when_it_is_given_up(tmp_path: Path) -> None:
    text = (
        "import subprocess\nquiet = subprocess.DEVNULL\n"
        "child = subprocess.Popen(['sleep', '600'], stdout=quiet, stderr=quiet)\n"
        "open('out', 'a').write(f'{child.pid}\\n')\nsys.exit(1)"
    )
    async with running(tmp_path, bot(tmp_path, text)) as run:
        await run.until_given_up()
        pids = [int(line) for line in run.lines()]
        assert len(pids) == 1 + RESTARTS
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
        async with asyncio.timeout(60):
            await stopping
    assert all_end([int(second)])


async def test_nothing_is_restarted_once_it_may_end(tmp_path: Path) -> None:
    async with running(tmp_path, bot(tmp_path, SAY_PID + "time.sleep(600)")) as run:
        (pid,) = await run.until_lines(1)
        run.bots.let_end()
        os.kill(int(pid), signal.SIGTERM)
        watcher = run.bots.all[0].watcher
        assert watcher is not None
        async with asyncio.timeout(60):
            await watcher
        assert run.bots.all[0].starts == 1
        assert run.ended_up == []


async def test_stop_without_start(tmp_path: Path) -> None:
    run = Run(tmp_path, bot(tmp_path, "pass"))
    await run.bots.stop()
    await run.bots.start()
    assert run.bots.all[0].starts == 0


# --- ids, tokens and what is told ------------------------------------------------------------------


async def test_each_process_has_an_id_and_a_token_of_its_own_told_before_it_starts(tmp_path: Path) -> None:
    text = "print(os.environ['TOKEN'])\n" + SAY_PID + "sys.exit(3)"
    async with running(tmp_path, bot(tmp_path, text)) as run:
        await run.until_given_up()
    ids = [f"one-1.{generation}" for generation in range(1, 2 + RESTARTS)]
    assert run.told == [
        *((what, one) for one in ids for what in ("starting", "crashed")),
        ("given up", ids[-1]),
    ]
    assert len(set(run.tokens)) == len(ids)
    assert [(tmp_path / "logs" / f"{one}.log").read_text().strip() for one in ids] == run.tokens


async def test_generations_go_on_where_an_earlier_session_left_off(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("one-1.7.log", "one-2.9.log", "one-1.12.log.old", "one-1.x.log", "stone-1.20.log"):
        (tmp_path / "logs" / name).write_text("earlier\n")
    async with running(tmp_path, bot(tmp_path, "print('now')\n" + SAY_PID + "time.sleep(600)")) as run:
        await run.until_lines(1)
        assert run.told == [("starting", "one-1.8")]
    assert run.bots.all[0].log.read_text() == "now\n", "complete, since its guard has ended"
    assert (tmp_path / "logs" / "one-1.7.log").read_text() == "earlier\n"


async def test_the_first_and_the_last_logs_of_an_instance_are_kept(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(1, 41):
        with (logs / f"one-1.{number}.log").open("wb") as log:
            log.truncate(OUTPUT_LIMIT if number % 2 else 10)
    (logs / "one-10.1.log").write_text("of another instance\n")
    async with running(tmp_path, bot(tmp_path, SAY_PID + "time.sleep(600)")) as run:
        await run.until_lines(1)
    sizes = {int(path.suffixes[-2][1:]): path.stat().st_size for path in logs.glob("one-1.*.log")}
    assert sorted(sizes) == [1, *range(min(sizes.keys() - {1}), 42)]
    assert KEPT_BYTES - 3 * OUTPUT_LIMIT < sum(sizes.values()) <= KEPT_BYTES - OUTPUT_LIMIT
    assert (logs / "one-10.1.log").exists()


async def test_a_remote_bot_has_no_process(tmp_path: Path) -> None:
    far = Bot("far", None, (), None, (), 1, remote=True)
    async with running(tmp_path, far, bot(tmp_path, SAY_PID + "time.sleep(600)")) as run:
        await run.until_lines(1)
        assert [one.bot.name for one in run.bots.all] == ["one"]


# --- restarts --------------------------------------------------------------------------------------


async def test_pauses_between_restarts_grow_to_a_limit(tmp_path: Path) -> None:
    crasher = replace(bot(tmp_path, "pass"), restarts=6)
    async with running(tmp_path, crasher) as run:
        await run.until_given_up()
    pauses = [seconds for seconds in run.pauses if seconds < 60]
    assert pauses == [0.1, 0.4, 1.6, 6.4, 25.6, 30.0]
    assert run.ended_up[0].failures == 7


async def test_a_pause_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async with running(tmp_path, bot(tmp_path, "sys.exit(1)"), patience=0.1) as run:
        await soon(lambda: 0.1 in run.pauses, "the pause")
        async with asyncio.timeout(60):
            await run.bots.stop()
    assert run.told == [("starting", "one-1.1"), ("crashed", "one-1.1")]


async def test_a_game_played_to_its_end_makes_up_for_earlier_failures(tmp_path: Path) -> None:
    text = SAY_PID + "sys.exit(1) if open('out').read().count('\\n') != 3 else time.sleep(600)"
    async with running(tmp_path, bot(tmp_path, text)) as run:
        third = (await run.until_lines(3))[2]
        one = run.bots.all[0]
        assert (one.id, one.failures) == ("one-1.3", 2)
        run.bots.proven("one-1.2")  # an earlier process: too late
        assert one.failures == 2
        run.bots.proven("one-1.3")
        os.kill(int(third), signal.SIGKILL)
        await run.until_given_up()
        assert (one.starts, one.failures, one.status) == (3 + RESTARTS, 1 + RESTARTS, 1)


async def test_no_restarts_at_all(tmp_path: Path) -> None:
    once_only = replace(bot(tmp_path, "pass"), restarts=0)
    async with running(tmp_path, once_only) as run:
        await run.until_given_up()
    assert run.told == [("starting", "one-1.1"), ("crashed", "one-1.1"), ("given up", "one-1.1")]


async def test_a_bot_that_does_not_connect_in_time_is_killed_and_has_failed(tmp_path: Path) -> None:
    slow = replace(bot(tmp_path, SAY_PID + "time.sleep(600)"), restarts=0, start_limit_s=50)
    limit_over = asyncio.Event()

    class Run50(Run):
        async def sleep(self, seconds: float) -> None:
            assert seconds == 50
            await limit_over.wait()

    run = Run50(tmp_path, slow)
    await run.bots.start()
    (pid,) = await run.until_lines(1)
    assert alive(int(pid))
    limit_over.set()
    await run.until_given_up()
    assert all_end([int(pid)])
    assert run.ended_up[0].end == "was killed, not having connected within 50 s"
    await run.bots.stop()


async def test_a_bot_that_has_connected_may_take_its_time(tmp_path: Path) -> None:
    limit_over = asyncio.Event()

    class Patient(Run):
        async def sleep(self, seconds: float) -> None:
            await limit_over.wait()

    run = Patient(tmp_path, bot(tmp_path, SAY_PID + "time.sleep(600)"))
    await run.bots.start()
    (pid,) = await run.until_lines(1)
    run.bots.connected("one-1.1")
    limit_over.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert alive(int(pid))
    assert run.told == [("starting", "one-1.1")]
    await run.bots.stop()


# --- replacing -------------------------------------------------------------------------------------


async def test_a_recycled_process_is_replaced_and_has_not_failed(tmp_path: Path) -> None:
    async with running(tmp_path, bot(tmp_path, SAY_PID + "time.sleep(600)", instances=2)) as run:
        await run.until_lines(2)
        run.bots.recycle("one-2.1")
        run.bots.recycle("one-2.1")
        third = int((await run.until_lines(3))[2])
        assert run.told[2:] == [("recycled", "one-2.1"), ("starting", "one-2.2")]
        one = run.bots.all[1]
        assert (one.failures, one.starts, run.bots.all[0].starts) == (0, 2, 1)
        assert len(set(run.tokens)) == 3
        run.bots.recycle("one-2.1")  # too late: that one is gone
        assert alive(third)
        await soon(lambda: sum(alive(int(pid)) for pid in run.lines()) == 2, "the end of the other")
        assert len(run.told) == 4


async def test_nothing_is_replaced_once_it_may_end(tmp_path: Path) -> None:
    async with running(tmp_path, bot(tmp_path, SAY_PID + "time.sleep(600)")) as run:
        await run.until_lines(1)
        run.bots.let_end()
        run.bots.recycle("one-1.1")
        assert run.told == [("starting", "one-1.1")]


# --- complaints about other runners ----------------------------------------------------------------


async def test_a_chatty_bot_driving_the_runners_cpu(tmp_path: Path) -> None:
    """What a bot prints goes to its guard: the runner has no pipe to read from, and is idle."""
    os.mkfifo(tmp_path / "fifo")
    text = "chunk = b'x' * 65536\nfor _ in range(1600): os.write(1, chunk)\nopen('fifo', 'w').close()\n"
    text += "time.sleep(600)"
    before = resource.getrusage(resource.RUSAGE_SELF)
    async with running(tmp_path, bot(tmp_path, text)) as run:
        # Without looking again and again, which takes the more the longer the bot needs.
        async with asyncio.timeout(60):
            await asyncio.to_thread((tmp_path / "fifo").read_bytes)
        after = resource.getrusage(resource.RUSAGE_SELF)
        one = run.bots.all[0]
        assert one.process is not None
        assert one.process.stdout is None
        assert one.process.stderr is None
        assert one.log.stat().st_size < OUTPUT_LIMIT + 100
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 0.5, "seconds of CPU for 100 MiB"


async def test_orphan_processes(tmp_path: Path) -> None:
    """What a bot has started is gone when the bot crashes, is replaced, or the run ends. That it is when the
    runner is killed: test_guard.py and test_runner.py."""
    child = "subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)"
    family = f"import subprocess\nchild = {child}\nopen('out', 'a').write(f'{{child.pid}}\\n')\n" + SAY_PID
    ends = "if not os.path.exists('again'):\n    open('again', 'w').close()\n    sys.exit(1)\ntime.sleep(600)"
    async with running(tmp_path, bot(tmp_path, family + ends)) as run:
        pids = [int(line) for line in await run.until_lines(4)]
        assert all_end(pids[:2]), "of the process that crashed"
        run.bots.recycle("one-1.2")
        pids = [int(line) for line in await run.until_lines(6)]
        assert all_end(pids[2:4]), "of the process that was replaced"
    assert all_end(pids)


# --- what goes wrong around them -------------------------------------------------------------------


async def test_an_error_in_the_callback_is_heard(tmp_path: Path) -> None:
    class Deaf(Run):
        def crashed(self, one: BotProcess) -> None:
            raise BrokenPipeError("nobody listens")

    bots = Deaf(tmp_path, bot(tmp_path, "pass")).bots
    await bots.start()
    async with asyncio.timeout(60):
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
        (one,) = run.ended_up
        assert one.status == 127
        assert one.starts == 1 + RESTARTS
        assert one.log.read_text().startswith("cannot start ")


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
        (one,) = run.ended_up
        assert one.status == 2  # the command was found and refused the name
        assert "no_such_reference_bot" in one.log.read_text()
