"""``isolation = "fresh"`` in real runs: no process plays a deck that it has met."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.runs import event, results, tressette
from tressette.record.reader import read_lines
from tressette.record.segments import segments


def meetings(run: Path) -> Counter[tuple[str, str]]:
    """How often each process of a bot has sat down to a deck, attempts without a result included."""
    found: Counter[tuple[str, str]] = Counter()
    for paths in segments(run).values():
        for path in paths:
            for line in read_lines(path):
                if line["kind"] == "match":
                    found.update((process, line["deck"]) for process in line["processes"])
    return found


@pytest.mark.parametrize(
    ("instances", "preset"),
    [
        pytest.param(1, "tressette-due-duplicate", marks=pytest.mark.slow),
        (3, "tressette-due-duplicate"),
        pytest.param(3, "tressette-21-duplicate", marks=pytest.mark.slow),
    ],
)
def test_no_process_meets_a_deck_twice(tmp_path: Path, instances: int, preset: str) -> None:
    """Bots meet every deck four times each; processes are replaced as it takes, and none has failed."""
    several = f"instances = {instances}"
    file = event(
        tmp_path,
        {"a": "first_legal", "b": "random", "c": "first_legal"},
        presets=(preset,),
        deal_sets=1,
        concurrency=4,
        lines='isolation = "fresh"',
        of_bots=dict.fromkeys("abc", several),
    )
    ended = tressette("tournament", "run", file)
    assert ended.exit_code == 0, ended.output
    run = tmp_path / "run"
    lines = results(run)
    assert len(lines) == 6
    assert not any(line["faults"] for line in lines)
    found = meetings(run)
    assert all(process for process, _ in found)
    assert set(found.values()) == {1}
    (deck,) = {line["deck"] for line in lines}
    seats = len(lines[0]["bots"])
    assert len([process for process, met in found if met == deck]) == 6 * seats
    assert tressette("verify", run).exit_code == 0
