"""The options of ``tressette serve`` that are refused before anything starts."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from tressette.cli import main


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--address", "0.0.0.0:0"], "--tls-cert"),
        (["--address", "[::]:0"], "--tls-cert"),
        (["--address", "192.0.2.1:0"], "--tls-cert"),
        (["--address", "arena.example:0"], "--tls-cert"),
        (["--address", "localhost.example:0"], "--tls-cert"),
        (["--address", "127.0.0.1"], "--address"),
        (["--address", "127.0.0.1:99999"], "--address"),
        (["--address", "127.0.0.1:٥٠"], "--address"),
        (["--address", "::1:50051"], "[::1]:50051"),
        (["--address", "[::1:50051"], "[::1]:50051"),
        (["--preset", "tresette-21"], "tressette-21"),
        (["--move-ms", "0"], "--move-ms"),
        (["--move-ms", "soon"], "--move-ms"),
        (["--illegal-retries", "-1"], "--illegal-retries"),
        (["--log-level", "loud"], "--log-level"),
        (["--log-format", "xml"], "--log-format"),
        (["--tls-cert", "no-such-file"], "--tls-cert"),
        (["--tls-key", __file__], "--tls-cert"),
        (["--record", __file__], "--record"),
        (["--record", __file__ + "/below"], "--record"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: list[str], named: str) -> None:
    result = CliRunner().invoke(main, ["serve", "--address", "127.0.0.1:0", *options])
    assert result.exit_code == 2, result.output
    assert named in result.stderr
    assert result.stdout == ""
