"""``tressette token``: what it prints, and what it refuses."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tressette.cli import main
from tressette.wire.tokens import TokenFile, token_id


def run(*arguments: str, file: Path | None = None, env: dict[str, str] | None = None) -> Result:
    options = ("--file", str(file)) if file is not None else ()
    return CliRunner().invoke(main, ["token", *arguments, *options], env=env)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.jsonl"


def test_new_prints_the_token_alone_on_the_output(path: Path) -> None:
    result = run("new", "mine", file=path)
    assert result.exit_code == 0
    token = result.stdout.removesuffix("\n")
    assert TokenFile(path).name_of(token) == "mine"
    assert token_id(token) in result.stderr
    assert token not in result.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_list_shows_ids_and_no_secrets(path: Path) -> None:
    tokens = [run("new", name, file=path).stdout.strip() for name in ("mine", "a-longer-name", "mine")]
    result = run("list", file=path)
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["ID", "NAME", "CREATED"]
    assert [row[:2] for row in rows[1:]] == [
        [token_id(token), name] for token, name in zip(tokens, ("mine", "a-longer-name", "mine"), strict=True)
    ]
    assert not any(token in result.output for token in tokens)
    assert len({line.index(row[2]) for line, row in zip(result.stdout.splitlines(), rows, strict=True)}) == 1


def test_revoke_by_id_and_by_name(path: Path) -> None:
    one, two, three = [run("new", name, file=path).stdout.strip() for name in ("mine", "mine", "mine")]
    assert run("revoke", token_id(one), file=path).stdout == f"revoked {token_id(one)} of mine\n"
    assert run("revoke", "mine", file=path).stdout.splitlines() == [
        f"revoked {token_id(token)} of mine" for token in (two, three)
    ]
    result = run("revoke", "mine", file=path)
    assert result.exit_code == 1
    assert "'mine'" in result.stderr
    assert run("list", file=path).stdout.split() == ["ID", "NAME", "CREATED"]


def test_the_file_may_come_from_the_variable_of_serve(path: Path) -> None:
    env = {"TRESSETTE_SERVE_TOKENS": str(path)}
    assert run("new", "mine", env=env).exit_code == 0
    assert "mine" in run("list", env=env).stdout


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("new", "two words"), 1), (("new",), 2), (("list",), 2), (("revoke", "mine"), 2), (("make",), 2)],
)
def test_refusals_are_a_line_and_a_status(path: Path, arguments: tuple[str, ...], status: int) -> None:
    result = run(*arguments, file=path)
    assert result.exit_code == status
    assert result.stdout == ""
    assert "Error" in result.stderr
    assert not path.exists()


def test_a_damaged_file_is_refused_with_its_line(path: Path) -> None:
    path.write_text("\nnonsense\n")
    for arguments in (("new", "mine"), ("list",), ("revoke", "mine")):
        result = run(*arguments, file=path)
        assert result.exit_code == 1
        assert f"{path}:2:" in result.stderr
    assert path.read_text() == "\nnonsense\n"


@pytest.mark.parametrize("command", ["new", "revoke"])
def test_what_is_no_file_is_not_replaced(path: Path, command: str) -> None:
    os.mkfifo(path)
    result = run(command, "mine", file=path)
    assert (result.exit_code, result.stderr) == (1, f"Error: {path}: not a regular file\n")
    assert path.is_fifo()


def test_a_folder_that_is_missing(path: Path) -> None:
    result = run("new", "mine", file=path.parent / "none" / "tokens")
    assert result.exit_code == 1
    assert "none" in result.stderr


@pytest.mark.parametrize("command", [(), ("new",), ("list",), ("revoke",)])
def test_help(command: tuple[str, ...]) -> None:
    result = run(*command, "-h")
    assert result.exit_code == 0
    assert len(result.stdout.split()) > 20
