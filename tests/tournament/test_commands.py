"""What is told of a bot's command before a run begins."""

from __future__ import annotations

import os

import pytest
from tressette_tournament.commands import why_no_cpus


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system has no CPU sets")
def test_processors_that_are_there_and_one_that_is_not() -> None:
    usable = os.sched_getaffinity(0)
    assert why_no_cpus(usable) is None
    why = why_no_cpus((min(usable), 65000))
    assert why is not None
    assert why.startswith("there is no processor 65000; there are ")


def test_a_system_without_cpu_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert why_no_cpus((0,)) == "this system cannot keep a process to some processors"
