"""Runs the fuzz target of ``fuzz_stream`` for TRESSETTE_FUZZ_SECONDS (5 by default) from TRESSETTE_FUZZ_SEED
(0 by default) on. What fails is shrunk by hypothesis and shown as a script."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import pytest
import structlog
from faults.fuzz_stream import check, scripts
from hypothesis import HealthCheck, given, seed, settings

SECONDS = float(os.environ.get("TRESSETTE_FUZZ_SECONDS", "5"))
SEED = int(os.environ.get("TRESSETTE_FUZZ_SEED", "0"))
_A_ROUND = 25
_SETTINGS = settings(
    max_examples=_A_ROUND, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def _refuse(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
    raise AssertionError(f"an error was logged: {event}")


@pytest.fixture
def no_errors() -> Iterator[None]:
    """Whatever a bot does is no error of the arena; of all the refusals nothing is logged here."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR), processors=[_refuse]
    )
    yield
    structlog.reset_defaults()


@pytest.mark.timeout(SECONDS + 400)  # hypothesis may shrink for five minutes
@pytest.mark.usefixtures("no_errors")
def test_the_handler_of_play_takes_whatever_comes() -> None:
    until = time.monotonic() + SECONDS
    rounds = 0
    while time.monotonic() < until:
        one_round: Callable[[], None] = seed(SEED + rounds)(_SETTINGS(given(scripts())(check)))
        print(f"seed {SEED + rounds}")  # noqa: T201 - to repeat it
        one_round()
        rounds += 1
    assert rounds
