"""Settings of ``tressette serve`` from the command line, the environment and a file: which one counts, and
what is refused."""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.certificates import Pair, self_signed
from tressette.cli import main
from tressette.commands.config_file import Setting
from tressette.commands.serve import serve
from tressette.commands.serve_options import Settings
from tressette.play.config import PlayConfig
from tressette.rules.events import FaultEffect, FaultKind
from tressette.wire.limits import Limits
from tressette.wire.tokens import new_token


def run(*options: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, ["serve", "--show-config", *options], env=env)


def shown(*options: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    """The settings that these options and variables give."""
    result = run(*options, env=env)
    assert result.exit_code == 0, result.stderr
    return tomllib.loads(result.stdout)


def refused(*options: str, env: dict[str, str] | None = None) -> str:
    """What is said of these options and variables."""
    result = run(*options, env=env)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit)
    return result.stderr


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "arena.toml"


@pytest.fixture
async def pair(tmp_path: Path) -> Pair:
    return await self_signed(tmp_path / 'odd "name" è')


# -- one precedence -----------------------------------------------------------------------------------

# name: default, then (as text, as in the file, as it is shown) from each source
VALUES: dict[str, tuple[Any, dict[str, tuple[str, str, Any]]]] = {
    "move_ms": (2000, {s: (n, n, int(n)) for s, n in (("flag", "11"), ("env", "12"), ("file", "13"))}),
    "grace_s": (30.0, {s: (n, n, float(n)) for s, n in (("flag", "1.5"), ("env", "2.5"), ("file", "3"))}),
    "log_level": (
        "info",
        {
            "flag": ("debug", '"debug"', "debug"),
            "env": ("error", '"error"', "error"),
            "file": ("warning", '"warning"', "warning"),
        },
    ),
    "preset": (
        ["tressette-21"],
        {
            "flag": ("tressette-004", "", ["tressette-004"]),
            "env": ("ciapano-five ciapano-trio", "", ["ciapano-five", "ciapano-trio"]),
            "file": ("", '["traversone-002"]', ["traversone-002"]),
        },
    ),
    "policy": (
        None,
        {
            "flag": ("timeout=forfeit", "", {"timeout": "forfeit"}),
            "env": ("crash=penalty illegal=forfeit", "", {"crash": "penalty", "illegal": "forfeit"}),
            "file": ("", '{ disconnect = "transfer_all" }', {"disconnect": "transfer_all"}),
        },
    ),
}
SOURCES = [
    chosen
    for size in range(4)
    for chosen in itertools.combinations(("flag", "env", "file"), size)  # in the order of precedence
]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("given", SOURCES, ids="+".join)
def test_flag_before_environment_before_file_before_default(
    name: str, given: tuple[str, ...], path: Path
) -> None:
    default, values = VALUES[name]
    path.write_text(f"{name} = {values['file'][1]}\n" if "file" in given else "")
    options = ["--config", str(path)]
    if "flag" in given:
        options += [f"--{name.replace('_', '-')}", values["flag"][0]]
    env = {f"TRESSETTE_SERVE_{name.upper()}": values["env"][0]} if "env" in given else {}
    expected = values[given[0]][2] if given else default
    assert shown(*options, env=env).get(name) == expected


def test_the_file_itself_may_come_from_the_environment(path: Path) -> None:
    path.write_text("strikes = 7\n")
    assert shown(env={"TRESSETTE_SERVE_CONFIG": str(path)})["strikes"] == 7
    other = path.with_name("other.toml")
    other.write_text("strikes = 8\n")
    assert shown("--config", str(other), env={"TRESSETTE_SERVE_CONFIG": str(path)})["strikes"] == 8


def test_an_empty_variable_is_none() -> None:
    assert shown(env={"TRESSETTE_SERVE_MOVE_MS": ""})["move_ms"] == 2000


def test_the_help_tells_the_precedence_and_every_option() -> None:
    result = CliRunner().invoke(main, ["serve", "--help"])
    assert result.exit_code == 0
    said = [
        result.stdout.index(text) for text in ("1. the option", "2. the env", "3. the file", "4. the def")
    ]
    assert said == sorted(said)
    for param in serve.params:
        assert param.opts[0] in result.stdout
        assert isinstance(param, Setting)


# -- what there is to set -----------------------------------------------------------------------------


def _settings_of(*options: str) -> Settings:
    with serve.make_context("serve", list(options)) as context:
        return Settings.of(context.params)


def test_every_setting_of_matches_and_limits_is_an_option() -> None:
    options = {param.name for param in serve.params}
    assert {one.name for one in fields(PlayConfig)} - {"policies"} <= options
    # The addresses of other processes of the same arena come with those.
    assert {one.name for one in fields(Limits)} - {"addresses"} <= options


def test_without_options_everything_is_as_the_parts_have_it() -> None:
    settings = _settings_of()
    assert settings.play == PlayConfig(policies={})
    assert all(settings.play.policy(kind) == PlayConfig().policy(kind) for kind in FaultKind)
    assert settings.limits == Limits()
    assert (settings.tls, settings.tokens, settings.record) == (None, None, None)


def test_settings_reach_the_parts() -> None:
    numbers = {
        name: number
        for number, name in enumerate(
            [
                *("move_ms", "bank_ms", "increment_ms", "allowance_ms", "illegal_retries", "strikes"),
                *("max_answers", "max_matches", "max_sessions", "max_streams", "messages_per_s", "burst"),
                *("max_connection_streams", "hello_s", "grace_s"),
            ],
            1,
        )
    }
    options = [text for name, n in numbers.items() for text in (f"--{name.replace('_', '-')}", str(n))]
    settings = _settings_of(
        *options, "--max-message-bytes", "5000", "--policy", "timeout=forfeit", "--policy", "crash=penalty"
    )
    for part in (settings.play, settings.limits):
        for one in fields(part):
            if one.name in numbers:
                assert getattr(part, one.name) == numbers.pop(one.name)
    assert numbers == {"grace_s": settings.grace_s}
    assert settings.limits.max_message_bytes == 5000
    assert settings.play.policy(FaultKind.TIMEOUT) is FaultEffect.FORFEIT
    assert settings.play.policy(FaultKind.CRASH) is FaultEffect.PENALTY
    assert settings.play.policy(FaultKind.ILLEGAL) is FaultEffect.SUBSTITUTE


# -- showing ------------------------------------------------------------------------------------------


def test_what_is_shown_is_a_file_with_the_same_settings(path: Path, pair: Pair) -> None:
    tokens = path.with_name("tokens")
    secret, _ = new_token(tokens, "mine")
    options = [
        *("--address", "0.0.0.0:0", "--tls-cert", str(pair.cert), "--tls-key", str(pair.key)),
        *("--tls-client-ca", str(pair.cert), "--tokens", str(tokens), "--record", "somewhere"),
        *("--preset", "tressette-004", "--preset", "ciapano-five", "--policy", "timeout=forfeit"),
        *("--policy", "not_your_turn=none", "--grace-s", "0.25", "--log-format", "json"),
    ]
    result = run(*options)
    assert result.exit_code == 0, result.stderr
    assert secret not in result.output
    assert pair.key.read_text().splitlines()[1] not in result.output
    path.write_text(result.stdout, encoding="utf-8")
    again = run("--config", str(path))
    assert again.stdout == result.stdout
    assert tomllib.loads(result.stdout)["record"] == str(Path.cwd() / "somewhere")


def test_paths_are_relative_to_the_file(path: Path) -> None:
    new_token(path.with_name("tokens"), "mine")
    path.write_text('tokens = "tokens"\nrecord = "record/here"\n')
    settings = shown("--config", str(path))
    assert settings["tokens"] == str(path.with_name("tokens"))
    assert settings["record"] == str(path.parent / "record" / "here")


# -- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nmove_msec = 5\n", ":2: move_msec: no such setting; did you mean 'move_ms'?"),
        ("[limits]\nburst = 5\n", ":1: limits: no such setting"),
        ("zzz = 1", ":1: zzz: no such setting"),
        ("burst = 5\nconfig = 'other.toml'\n", ":2: config: no such setting"),
        ("show_config = true", ":1: show_config: no such setting"),
        ('# move_ms\n"move_ms" = "5"\n', ":2: move_ms: a whole number is needed"),
        ("move_ms = 5.5", ":1: move_ms: a whole number is needed"),
        ("move_ms = true", ":1: move_ms: a whole number is needed"),
        ("move_ms = -1", ":1: move_ms: -1 is not in the range"),
        ("grace_s = '1'", ":1: grace_s: a number is needed"),
        ("grace_s = nan", ":1: grace_s: nan is not a number of seconds"),
        ("grace_s = inf", ":1: grace_s: inf is not in the range"),
        ("address = 50051", ":1: address: a text is needed"),
        ("log_level = 'loud'", ":1: log_level: 'loud' is not one of"),
        ("preset = 'tressette-21'", ":1: preset: a list is needed"),
        ("preset = [1]", ":1: preset: a text is needed"),
        ("preset = ['tresette-21']", ":1: preset: "),
        ("policy = ['timeout=forfeit']", ":1: policy: a table of texts is needed"),
        ("burst = 9\n[policy]\ntimeout = 1\n", ":2: policy: a table of texts is needed"),
        ("policy.timeout = 'forget'", ":1: policy: "),
        ("tokens = 'none'", ":1: tokens: "),
        ('record = "a\\u0000b"', ":1: record: a path is needed"),
        ("record = ''", ":1: record: a path is needed"),
        ("preset = []", ":1: preset: at least one is needed"),
        ("move_ms = 5\nmove_ms = 6\n", "line 2"),
        ("move_ms = \n", "line 1"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_with_its_place(path: Path, text: str, said: str) -> None:
    path.write_text(text)
    errors = " ".join(refused("--config", str(path)).split())
    assert f"{path}{said}" in errors if said.startswith(":") else said in errors


def test_what_is_no_text_is_no_file(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    assert str(path) in refused("--config", str(path))
    assert "--config" in refused("--config", str(path.with_name("none")))


def test_variables_that_stand_for_nothing() -> None:
    errors = refused(env={"TRESSETTE_SERVE_MOVEMS": "5"})
    assert "TRESSETTE_SERVE_MOVEMS: no such setting; did you mean 'TRESSETTE_SERVE_MOVE_MS'?" in errors
    assert "TRESSETTE_SERVE_SHOW_CONFIG" in refused(env={"TRESSETTE_SERVE_SHOW_CONFIG": "1"})
    assert shown(env={"TRESSETTE_ADDRESS": "of the bots"})


def test_a_wrong_variable_is_named() -> None:
    errors = refused(env={"TRESSETTE_SERVE_MOVE_MS": "soon"})
    assert "--move-ms" in errors
    assert "TRESSETTE_SERVE_MOVE_MS" in errors


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--policy", "timeout"], "KIND=EFFECT"),
        (["--policy", "tiemout=forfeit"], "no such kind of fault"),
        (["--policy", "timeout=none"], "--policy"),
        (["--policy", "timeout=forget"], "--policy"),
        (["--policy", "timeout=forfeit", "--policy", "timeout=penalty"], "given twice"),
        (["--move-ms", "0"], "--bank-ms"),
        (["--grace-s", "nan"], "--grace-s"),
        (["--max-message-bytes", "10"], "--max-message-bytes"),
        (["--max-streams", "0"], "--max-streams"),
        (["--burst", "0"], "--burst"),
        (["--tls-client-ca", __file__], "--tls-cert"),
        (["--tokens", __file__], f"{__file__}:1:"),
    ],
)
def test_options_that_cannot_be(options: list[str], named: str) -> None:
    assert named in refused(*options)


def test_a_clock_may_have_a_bank_only() -> None:
    assert shown("--move-ms", "0", "--bank-ms", "60000")["move_ms"] == 0


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "arena.example:0"])
def test_other_machines_are_let_in_with_tls_and_tokens_only(address: str, pair: Pair, tmp_path: Path) -> None:
    tls = ("--tls-cert", str(pair.cert), "--tls-key", str(pair.key))
    new_token(tmp_path / "tokens", "mine")
    tokens = ("--tokens", str(tmp_path / "tokens"))
    said = refused("--address", address)
    assert all(option in said for option in (address, "--tls-cert", "--tls-key", "--tokens"))
    said = refused("--address", address, *tls)
    assert "give --tokens" in said
    assert "--tls-cert" not in said
    assert "give --tls-cert, --tls-key" in refused("--address", address, *tokens)
    assert shown("--address", address, *tls, *tokens)["address"] == address


def test_client_authorities_that_are_none(pair: Pair) -> None:
    options = ("--tls-cert", str(pair.cert), "--tls-key", str(pair.key), "--tls-client-ca", __file__)
    assert "--tls-client-ca" in refused(*options)


def test_defaults_of_a_program_around_it_are_kept(path: Path) -> None:
    path.write_text("strikes = 3\n")
    with serve.make_context("serve", ["--config", str(path)], default_map={"burst": 5}) as context:
        assert (context.params["strikes"], context.params["burst"]) == (3, 5)
