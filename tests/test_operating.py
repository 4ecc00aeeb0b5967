"""server/OPERATING.md and the unit: what they tell an operator to run is run here as it is written."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tressette.commands.serve import serve
from tressette.wire.tokens import read_tokens

SERVER = Path(__file__).resolve().parent.parent / "server"
TEXT = (SERVER / "OPERATING.md").read_text(encoding="utf-8")
UNIT = (SERVER / "tressette-arena.service").read_text(encoding="utf-8")


def _blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def _run(arguments: Sequence[str], folder: Path) -> str:
    env = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        arguments, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder where ``tressette`` is this project's command."""
    command = tmp_path / "bin" / "tressette"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tressette "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return tmp_path


def test_the_commands_do_what_they_are_said_to(folder: Path) -> None:
    (config,) = _blocks("toml")
    (folder / "arena.toml").write_text(config, encoding="utf-8")
    commands = _blocks("sh")
    shown = [block for block in commands if "--show-config" in block]
    revoked = [block for block in commands if "token revoke" in block]
    for block in commands:
        if block not in (*shown, *revoked):
            _run(("sh", "-ec", block), folder)
    assert [token.name for token in read_tokens(folder / "tokens.jsonl")] == ["mine"]
    for cert in ("server.pem", "mine.pem"):
        _run(("openssl", "verify", "-CAfile", "ca.pem", cert), folder)
    assert (
        "arena.example"
        in _run(("openssl", "x509", "-in", "server.pem", "-noout", "-text"), folder).partition(
            "Subject Alternative Name"
        )[2]
    )
    assert stat.S_IMODE((folder / "ca.key").stat().st_mode) == 0o600
    (show,) = shown
    assert 'disconnect = "forfeit"' in _run(("sh", "-ec", show), folder)
    with (folder / "arena.toml").open("r+", encoding="utf-8") as file:
        file.write('tls_client_ca = "ca.pem"\n' + config)
    assert "ca.pem" in _run(("sh", "-ec", show), folder)
    (revoke,) = revoked
    _run(("sh", "-ec", revoke), folder)
    assert read_tokens(folder / "tokens.jsonl") == ()


def test_the_limits_in_the_table_are_settings_with_their_defaults() -> None:
    rows = re.findall(r"^\| (`.*?) \| ([\d, ]+) \|", TEXT.partition("## Limits")[2], re.MULTILINE)
    told = {
        name: float(number)
        for names, numbers in rows
        for name, number in zip(re.findall(r"`(\w+)`", names), numbers.split(","), strict=True)
    }
    in_the_help = {param.name: param for param in serve.params if getattr(param, "section", "") == "Limits"}
    assert set(told) == {*in_the_help, "grace_s"}
    assert told == {param.name: param.default for param in serve.params if param.name in told}


def _settings_of_unit() -> dict[str, str]:
    return dict(line.split("=", 1) for line in UNIT.splitlines() if re.match(r"[A-Z]\w+=", line))


def test_the_unit_leaves_time_to_drain() -> None:
    unit = _settings_of_unit()
    assert (unit["KillSignal"], unit["Restart"]) == ("SIGTERM", "on-failure")
    assert int(unit["TimeoutStopSec"]) > 60 + 2 * 1  # --drain-s, and twice the grace of the server's stop
    assert int(unit["LimitNOFILE"]) > 1024  # --max-streams


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = UNIT.replace("/opt/tressette-arena/bin/tressette", sys.executable)
    path = tmp_path / "tressette-arena.service"
    path.write_text(unit, encoding="utf-8")
    done = subprocess.run(
        ("systemd-analyze", "verify", str(path)), capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
