"""Settings for all tests: nothing is timed, a shared machine may be slow at any moment; nobody inherits how
another test has set up the logs."""

from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

settings.register_profile("tressette", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tressette")


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A command that runs in this process sends all logs to its own standard error, which ends with it."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
