"""Hatchling build hook: generate ``server/tressette/v1`` from ``proto/tressette/v1``.

Runs for wheels and for editable installs alike, so no checkout ever needs a separate code
generation step. The proto package equals the Python package, so that the imports between
generated modules resolve untouched.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_INIT = '"""Generated from proto/tressette/v1 by proto/build_hook.py. Do not edit."""\n'


def generate(root: Path) -> Path:
    """Write the stubs and their type information; returns the folder they are in.

    Raises RuntimeError with the compiler's output if a proto file does not compile.
    """
    sources = sorted((root / "proto" / "tressette" / "v1").glob("*.proto"))
    target = root / "server" / "tressette" / "v1"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(root / "proto")]
    out = str(root / "server")
    for kind in ("python", "grpc_python", "mypy", "mypy_grpc"):
        command.append(f"--{kind}_out={'quiet:' if kind.startswith('mypy') else ''}{out}")
    command += [
        f"--plugin=protoc-gen-{name}={_plugin(f'protoc-gen-{name}')}" for name in ("mypy", "mypy_grpc")
    ]
    done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"protoc failed:\n{done.stderr}")
    (target / "__init__.py").write_text(_INIT, encoding="utf-8")
    return target


def _plugin(name: str) -> str:
    """The plugin installed beside this interpreter: a build environment is not always on PATH."""
    scripts = sysconfig.get_path("scripts")
    found = shutil.which(name, path=scripts) or shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} not found in {scripts} nor on PATH; install mypy-protobuf")
    return found


class StubsHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling leaves the config type open
    """What hatchling calls before it collects files."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate before the files of the target are chosen."""
        generate(Path(self.root))


if __name__ == "__main__":
    generate(Path(__file__).resolve().parent.parent)
