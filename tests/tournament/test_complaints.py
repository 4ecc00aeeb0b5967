"""What people complain of in tournament runners, and the test that each complaint has become.

The list is that of the tournament design. A test is named after its complaint, so this index cannot point at
one that tests something else.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
COMPLAINTS = {
    "resume that loses or double-counts games": "tournament/test_runner.py",
    "results and log disagreeing after a stop": "tournament/test_verify.py",
    "memory growing with scheduled games": "tournament/test_schedule.py",
    "a crash undetected when there is no clock": "wire/test_host.py",
    "one crash ending the event": "tournament/test_runner.py",
    "orphan processes": "tournament/test_processes.py",
    "a run that never ends after time losses": "tournament/test_blame.py",
    "Ctrl-C that waits a minute": "tournament/test_observe.py",
    "an extreme score giving NaN so that a test never stops": "tournament/test_sprt.py",
    "repeats without side swap playing identical games": "tournament/test_schedule.py",
    "finished games held back until earlier ones finish": "tournament/test_schedule.py",
    "a chatty bot driving the runner's CPU": "tournament/test_processes.py",
    "a misspelt format silently playing another": "tournament/test_formats.py",
    "errored games counted as losses": "tournament/test_blame.py",
    "the surviving bot never told it won": "tournament/test_blame.py",
    "a self-play check that passes a failing bot": "tournament/test_blame.py",
    "no way from a bad game to its log": "tournament/test_runner.py",
}
"""By the words of the complaint the file of its test."""


def name_of(complaint: str) -> str:
    """The name of a complaint's test."""
    return "test_" + re.sub(r"[^a-z0-9]+", "_", complaint.lower().replace("'", ""))


@pytest.mark.parametrize(("complaint", "file"), COMPLAINTS.items(), ids=map(name_of, COMPLAINTS))
def test_every_complaint_has_its_test(complaint: str, file: str) -> None:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert name_of(complaint) in [function.name for function in functions]
