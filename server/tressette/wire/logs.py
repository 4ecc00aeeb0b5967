"""Operational logs: what the server process does, for its operator. The game record is another thing
(``tressette.record``) and is not touched by any of this."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final, Literal, TextIO, cast

import structlog

LEVELS: Final = ("debug", "info", "warning", "error")
Format = Literal["console", "json"]


def configure(level: str, format_: Format) -> None:
    """Send structlog's operational logs to standard error. ``level`` is one of LEVELS.

    It holds for every logger at once, those that were used before included: no line is written often enough
    for caching its logger to be worth more than that.
    """
    renderer: structlog.typing.Processor
    if format_ == "json":
        renderer = structlog.processors.JSONRenderer()
    else:
        # Its own way with exceptions would show local variables, and there are secrets among those.
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *([] if format_ == "json" else [_printable]),
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _AsFarAsPossible(sys.stderr))),
    )


def _printable(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Bots say some of what is logged: none of it may steer the operator's terminal or look like a line."""
    for key, value in line.items():
        if key != "exception" and isinstance(value, str) and not value.isprintable():
            line[key] = "".join(one if one.isprintable() else repr(one)[1:-1] for one in value)
    return line


class _AsFarAsPossible:
    """Writes to a file and drops what cannot be written: no game may suffer from a log on a full disk."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()
