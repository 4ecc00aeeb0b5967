"""The TLS options of the client that are refused before it connects; handshakes are in tests/wire."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from support.certificates import Pair, self_signed
from tressette_bot import NotConfigured, play
from tressette_bot.bots import REFERENCE_BOTS
from tressette_bot.cli import bot as command

NOBODY = "127.0.0.1:1"


@pytest.fixture
async def pair(tmp_path: Path) -> Pair:
    return await self_signed(tmp_path / "tls")


@pytest.fixture
async def other(tmp_path: Path) -> Pair:
    return await self_signed(tmp_path / "other")


async def test_files_that_cannot_be(pair: Pair, other: Pair) -> None:
    script, missing = Path(__file__), Path(__file__).with_name("missing.pem")
    for root, cert, key, named in (
        (None, pair.cert, None, "tls_key"),
        (None, None, pair.key, "tls_cert"),
        (script, None, None, script.name),
        (missing, None, None, missing.name),
        (None, script, pair.key, script.name),
        (None, pair.cert, other.key, str(pair.cert)),
        (pair.cert, pair.cert, missing, missing.name),
    ):
        with pytest.raises(NotConfigured, match=named):
            await play(REFERENCE_BOTS["first_legal"](), NOBODY, tls_root=root, tls_cert=cert, tls_key=key)


def test_the_command_refuses_them_in_a_line(pair: Pair) -> None:
    for options, status, named in (
        (("--tls-cert", str(pair.cert)), 2, "--tls-key"),
        (("--tls-key", str(pair.key)), 2, "--tls-cert"),
        (("--tls-root", __file__), 1, Path(__file__).name),
    ):
        result = CliRunner().invoke(command, ["first_legal", "--address", NOBODY, *options])
        assert result.exit_code == status, result.output
        assert named in result.output
        assert isinstance(result.exception, SystemExit)
