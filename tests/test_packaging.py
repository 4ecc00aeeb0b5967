"""What pyproject.toml promises agrees with what is generated and with itself."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from tressette import v1

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
STUBS = Path(v1.__file__ or "").parent
PROTOS = sorted((ROOT / "proto" / "tressette" / "v1").glob("*.proto"))


def _requirement(name: str, requirements: list[str]) -> str:
    """What follows the name in the one requirement for this package."""
    (found,) = (line for line in requirements if re.split(r"[<>=!~\[; ]", line, maxsplit=1)[0] == name)
    return found.removeprefix(name)


def _floor(name: str) -> str:
    found = re.match(r">=([0-9.]+)", _requirement(name, PROJECT["dependencies"]))
    assert found is not None
    return found[1]


# -- generated code -----------------------------------------------------------------------------------


def test_every_proto_file_has_its_stubs() -> None:
    assert PROTOS
    wanted = {
        f"{path.stem}_pb2{kind}{end}" for path in PROTOS for kind in ("", "_grpc") for end in (".py", ".pyi")
    }
    assert {path.name for path in STUBS.glob("*_pb2*.py*")} == wanted


@pytest.mark.parametrize("path", PROTOS, ids=lambda path: path.name)
def test_the_stubs_are_those_of_the_proto_files(path: Path, tmp_path: Path) -> None:
    """Compiled again, each file gives what is installed."""
    out = tmp_path / "descriptors"
    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", "-I", str(ROOT / "proto")),
            *(f"--descriptor_set_out={out}", str(path)),
        ],
        check=True,
        timeout=60,
    )
    (compiled,) = FileDescriptorSet.FromString(out.read_bytes()).file
    installed = importlib.import_module(f"tressette.v1.{path.stem}_pb2").DESCRIPTOR.serialized_pb
    assert _without_json_names(FileDescriptorProto.FromString(installed)) == _without_json_names(compiled)


def _without_json_names(file: FileDescriptorProto) -> FileDescriptorProto:
    """protoc fills them in for one output and not for the other."""
    for message in file.message_type:
        for field in message.field:
            field.ClearField("json_name")
    return file


def test_the_floor_of_grpcio_is_what_the_stubs_need() -> None:
    needed = {
        found[1]
        for path in STUBS.glob("*_pb2_grpc.py")
        if (found := re.search(r"^GRPC_GENERATED_VERSION = '([^']+)'$", path.read_text(), re.MULTILINE))
    }
    assert needed == {_floor("grpcio")}


def test_the_floor_of_protobuf_is_what_the_stubs_need() -> None:
    needed = {
        found[1]
        for path in STUBS.glob("*_pb2.py")
        if (found := re.search(r"^# Protobuf Python Version: (\S+)$", path.read_text(), re.MULTILINE))
    }
    assert needed == {_floor("protobuf")}


def test_the_next_major_versions_are_shut_out() -> None:
    for name in ("grpcio", "protobuf"):
        major = int(_floor(name).partition(".")[0])
        assert _requirement(name, PROJECT["dependencies"]).endswith(f",<{major + 1}")


@pytest.mark.parametrize("tool", ["grpcio-tools", "mypy-protobuf"])
def test_the_tools_are_pinned_alike_for_building_and_developing(tool: str) -> None:
    build = _requirement(tool, PYPROJECT["build-system"]["requires"])
    dev = _requirement(tool, PROJECT["optional-dependencies"]["dev"])
    assert build == dev
    assert re.fullmatch(r"==[0-9.]+", build)


def test_the_stubs_are_never_committed() -> None:
    done = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "server/tressette/v1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == ""  # also where this is no git checkout


# -- the command --------------------------------------------------------------------------------------


def test_the_version_is_the_same_everywhere() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tressette", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert PROJECT["version"] in done.stdout.split()[-1]
    assert version("tressette-arena") == PROJECT["version"]


def test_the_command_is_installed() -> None:
    (command,) = entry_points(group="console_scripts", name="tressette")
    assert command.load().name == "main"
    assert PROJECT["scripts"] == {"tressette": command.value}


def test_the_three_packages_are_in_the_wheel() -> None:
    packages = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {Path(package).name for package in packages} == {
        "tressette",
        "tressette_tournament",
        "tressette_bot",
    }
    assert all((ROOT / package / "__init__.py").exists() for package in packages)
    tops = set(PYPROJECT["tool"]["hatch"]["build"]["dev-mode-dirs"])
    assert tops == {str(Path(package).parent) for package in packages}


@pytest.mark.parametrize("name", ["grpcio-health-checking", "grpcio-reflection", "grpcio-status"])
def test_the_companions_of_grpcio_have_its_floor(name: str) -> None:
    assert _floor(name) == _floor("grpcio")
