"""Who may import whom, and the code rules that keep grpc-python's traps shut (design: protocol.md).

Imports go one way: ``rules <- record <- play <- wire <- commands``; the client uses ``v1`` and ``rules``; the
tournament uses ``rules`` and ``record`` and starts ``tressette.wire.host`` as a process.
"""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

import grpc
import pytest
from tressette.play.arena import Arena
from tressette.wire.service import ArenaService

ROOT = Path(__file__).resolve().parent.parent
TOP = {
    "tressette": ROOT / "server",
    "tressette_tournament": ROOT / "tournament",
    "tressette_bot": ROOT / "clients/python",
}


@dataclass(frozen=True)
class Layer:
    """What the modules of a package may import. ours: packages of this project, itself apart; others: from
    elsewhere; standard: what they may use of the standard library, None for anything."""

    ours: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    standard: tuple[str, ...] | None = None


_PURE = (
    *("__future__", "collections", "dataclasses", "difflib", "enum", "fractions", "functools", "hashlib"),
    *("hmac", "itertools", "json", "string", "types", "typing"),
)
_NO_LOOP = (*_PURE, "errno", "os", "pathlib", "re", "threading")

LAYERS = {
    "tressette.rules": Layer(standard=_PURE),
    "tressette.record": Layer(("tressette.rules",), ("orjson", "structlog", "zstandard"), _NO_LOOP),
    "tressette.play": Layer(("tressette.rules", "tressette.record"), ("structlog",)),
    "tressette.wire": Layer(
        ("tressette.rules", "tressette.record", "tressette.play", "tressette.v1"),
        (
            *("google", "grpc", "grpc_health", "grpc_reflection", "grpc_status"),
            *("opentelemetry", "orjson", "prometheus_client", "structlog"),
        ),
    ),
    # What anybody may ask of an arena it asks as a client.
    "tressette.commands.reveal": Layer(("tressette.record", "tressette_bot"), ("click",)),
    "tressette.commands": Layer(
        ("tressette.rules", "tressette.record", "tressette.play", "tressette.wire"),
        ("click", "grpc", "structlog"),
    ),
    "tressette.cli": Layer(others=("click",)),
    "tressette.__main__": Layer(("tressette.cli",), standard=()),
    "tressette_bot": Layer(("tressette.rules", "tressette.v1"), ("click", "grpc")),
    # The command line alone knows the reference bots, by name.
    "tressette_tournament.cli": Layer(
        ("tressette.rules", "tressette.record", "tressette_tournament", "tressette_bot.bots"),
        ("click", "numpy", "rich", "scipy"),
    ),
    "tressette_tournament": Layer(
        ("tressette.rules", "tressette.record"), ("click", "numpy", "pyarrow", "rich", "scipy")
    ),
}
"""The first entry that a module's name begins with counts."""


# -- the sources --------------------------------------------------------------------------------------


def _sources() -> Iterator[tuple[str, Path]]:
    """(module name, file) of everything hand-written in the three packages."""
    for package, top in TOP.items():
        for path in sorted((top / package).rglob("*.py")):
            name = ".".join(path.relative_to(top).with_suffix("").parts).removesuffix(".__init__")
            if not name.startswith("tressette.v1"):
                yield name, path


SOURCES = dict(_sources())
EXAMPLES = sorted((ROOT / "clients/python/examples").glob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
EVERYTHING = [*SOURCES.values(), *EXAMPLES, *TESTS, ROOT / "proto/build_hook.py"]


@lru_cache(maxsize=1)  # a file is looked at several times in a row
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of each import wherever it stands, those in functions too."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            assert node.module is not None
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def _begins(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _layer(module: str) -> tuple[str, Layer]:
    for package, layer in LAYERS.items():
        if _begins(module, package):
            return package, layer
    return module, Layer(standard=())


def _may(module: str, imported: str) -> bool:
    package, layer = _layer(module)
    top = imported.partition(".")[0]
    if top in TOP:
        return any(_begins(imported, allowed) for allowed in (package, *layer.ours))
    if top in sys.stdlib_module_names:
        return layer.standard is None or top in layer.standard
    return top in layer.others


def test_the_sources_are_found() -> None:
    assert {"tressette.rules.match", "tressette.wire.service", "tressette_bot.client"} <= set(SOURCES)
    assert "tressette_tournament.ratings" in SOURCES


def test_imports_go_one_way() -> None:
    wrong = [
        f"{path}:{line}: {module} imports {name}"
        for module, path in SOURCES.items()
        for line, name in _imports(path)
        if not _may(module, name)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "imported", "fine"),
    [
        ("tressette.rules.match", "tressette.record.game.GameSpec", False),
        ("tressette.rules.match", "random", False),
        ("tressette.rules.match", "tressette.rules.deal.Deal", True),
        ("tressette.record.writer", "asyncio", False),
        ("tressette.play.game", "grpc", False),
        ("tressette.play.game", "tressette.wire.convert", False),
        ("tressette.wire.host", "tressette.commands.serve", False),
        ("tressette_bot.client", "tressette.wire.convert", False),
        ("tressette_bot.client", "tressette_tournament.runner", False),
        ("tressette_tournament.runner", "tressette_bot.bots.REFERENCE_BOTS", False),
        ("tressette_tournament.runner", "tressette.wire.host.HostConfig", False),
        ("tressette_tournament.cli", "tressette_bot.bots.REFERENCE_BOTS", True),
    ],
)
def test_the_table_means_what_it_says(module: str, imported: str, fine: bool) -> None:
    assert _may(module, imported) == fine


# -- fresh interpreters -------------------------------------------------------------------------------


def _brought_along(modules: list[str]) -> set[str]:
    """Every module that a fresh interpreter has after importing these."""
    code = (
        "import sys, json, importlib\n"
        "for name in json.load(sys.stdin): importlib.import_module(name)\n"
        "json.dump(sorted(sys.modules), sys.stdout)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        input=json.dumps(modules),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def _of(*packages: str) -> list[str]:
    return [name for name in SOURCES if any(_begins(name, package) for package in packages)]


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        (_of("tressette.rules"), ["grpc", "google", "asyncio", "structlog", "orjson", "click", "numpy"]),
        # structlog itself imports asyncio, so only the sources can tell that the record does not.
        (
            _of("tressette.record"),
            ["grpc", "google", "click", "tressette.play", "tressette.wire", "tressette.v1"],
        ),
        (_of("tressette.play"), ["grpc", "google", "click", "tressette.wire", "tressette.v1"]),
        (
            _of("tressette.wire"),
            ["click", "numpy", "opentelemetry", "prometheus_client", "tressette_bot", "tressette_tournament"],
        ),
        (
            _of("tressette_bot"),
            [
                "tressette.record",
                "tressette.play",
                "tressette.wire",
                "tressette_tournament",
                "numpy",
                "structlog",
            ],
        ),
        (
            [name for name in _of("tressette_tournament") if not name.endswith(".cli")],
            ["grpc", "google", "tressette.play", "tressette.wire", "tressette.v1", "tressette_bot"],
        ),
        (["tressette.cli", "tressette.commands.rules"], ["grpc", "google", "numpy", "structlog"]),
        (["tressette.cli", "tressette_tournament.observe"], ["grpc", "google", "numpy", "scipy"]),
    ],
    ids=["rules", "record", "play", "wire", "bot", "tournament", "command", "observe"],
)
def test_a_fresh_interpreter_gets_nothing_unwanted(modules: list[str], unwanted: list[str]) -> None:
    assert modules
    found = _brought_along(modules)
    assert {name for name in found if any(_begins(name, one) for one in unwanted)} == set()


# -- code rules ---------------------------------------------------------------------------------------


def _dotted(node: ast.AST) -> str:
    """``a.b.c`` of an attribute or name; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def _uses(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything that a file imports or refers to."""
    yield from _imports(path)
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Attribute) and (name := _dotted(node)):
            yield node.lineno, name
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.value.lineno, f"{node.arg}="


_FORBIDDEN = {
    # name: why (the number is the trap's in protocol.md)
    "sys.path": "packages are installed; nobody edits the path",
    "asyncio.new_event_loop": "18: one event loop per process",
    "asyncio.set_event_loop": "18: one event loop per process",
    "asyncio.get_event_loop": "18: asks for trouble outside a running loop; get_running_loop does not",
    "asyncio.Runner": "18: one event loop per process",
    "asyncio.set_event_loop_policy": "18: one event loop per process",
    "contextvars": "11: a token that crosses a yield is reset in the wrong context; nothing here needs one",
    "structlog.contextvars": "11: as contextvars",
    "grpc.server": "17: the asyncio server only",
    "os.fork": "19: never fork after grpc is imported",
    "os.forkpty": "19: never fork after grpc is imported",
    "pty.fork": "19: never fork after grpc is imported",
    "multiprocessing": "19: its default start method forks; use a subprocess",
    "concurrent.futures.ProcessPoolExecutor": "19: as multiprocessing",
    "preexec_fn=": "19: runs Python between fork and exec",
}


def _violations(path: Path) -> list[str]:
    found = [
        f"{path}:{line}: {name} ({_FORBIDDEN[package]})"
        for line, name in _uses(path)
        for package in accumulate(name.split("."), "{}.{}".format)
        if package in _FORBIDDEN
    ]
    return found + [
        f"{path}:{line}: the import name is tressette"
        for line, name in _imports(path)
        if _begins(name, "server")
    ]


def test_nobody_does_what_is_forbidden() -> None:
    assert [violation for path in EVERYTHING for violation in _violations(path)] == []


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.path.insert(0, '.')",
        "from sys import path",
        "import server.tressette",
        "from server import tressette",
        "import asyncio\nloop = asyncio.new_event_loop()",
        "from asyncio import new_event_loop",
        "import os\nif os.fork():\n    pass",
        "from multiprocessing import Pool",
        "import subprocess\nsubprocess.run([], preexec_fn=print)",
        "def later():\n    import contextvars",
        "import grpc\ngrpc.server(None)",
    ],
)
def test_the_lint_sees(code: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(code, encoding="utf-8")
    assert _violations(path)


def test_every_handler_of_the_server_is_a_coroutine() -> None:
    """17: a sync handler in an aio server runs in a thread of its own."""
    handlers = ArenaService(Arena(bytes(32))).handlers()

    class Details(grpc.HandlerCallDetails):
        method = "/tressette.v1.ArenaService/Play"
        invocation_metadata = ()

    handler = handlers.service(Details())
    assert handler is not None
    functions = [handler.unary_unary, handler.unary_stream, handler.stream_unary, handler.stream_stream]
    assert [inspect.iscoroutinefunction(one) for one in functions if one is not None] == [True]


def test_handlers_in_the_sources_are_async() -> None:
    """17 once more, for every handler that is ever added: each ``grpc.…_rpc_method_handler(self.x)`` names an
    ``async def``."""
    named = 0
    for module in _of("tressette.wire"):
        tree = _tree(SOURCES[module])
        coroutines = {node.name for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _dotted(node.func).endswith("_rpc_method_handler"):
                named += 1
                assert _dotted(node.args[0]).rpartition(".")[2] in coroutines, f"{module}:{node.lineno}"
    assert named


def test_asyncio_run_stands_only_where_a_process_begins() -> None:
    """18: a library that starts a loop of its own would be the second one of somebody's process."""
    where = {
        module for module, path in SOURCES.items() if any(name == "asyncio.run" for _, name in _uses(path))
    }
    beginnings = {"tressette.wire.host", "tressette.commands.serve", "tressette_bot.client"}
    assert where - beginnings <= {name for name in where if _begins(name, "tressette_tournament")}
