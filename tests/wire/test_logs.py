"""The operational logs: where they go and who is heard."""

from __future__ import annotations

import errno
import io
import sys

import pytest
import structlog
from tressette.wire.logs import configure


def test_the_last_setting_holds_for_loggers_that_were_used_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = structlog.get_logger("used early")
    configure("error", "json")
    log.info("not heard")
    configure("info", "json")
    log.info("heard")
    with structlog.testing.capture_logs() as captured:
        log.info("caught")
    said = capsys.readouterr()
    assert [line["event"] for line in captured] == ["caught"]
    assert '"heard"' in said.err
    assert "not heard" not in said.err
    assert "caught" not in said.err
    assert said.out == ""


def test_a_log_that_cannot_be_written_troubles_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    configure("info", "json")
    structlog.get_logger("test").info("lost")


def test_what_a_bot_says_of_itself_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", "console")
    structlog.get_logger("test").info("session opened", version="\x1b]0;mine\x07\u202e", bot="è")
    said = capsys.readouterr().err
    assert said.removesuffix("\n").isprintable()
    assert r"\x1b]0;mine" in said
    assert "bot=è" in said


def test_a_traceback_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", "console")
    try:
        raise ValueError("wrong")
    except ValueError as error:
        structlog.get_logger("test").error("failed", exc_info=error)
    assert "\nValueError: wrong" in capsys.readouterr().err
