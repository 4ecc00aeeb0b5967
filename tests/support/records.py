"""Result files made by hand, with the real writer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tressette.record.writer import Record


def game_line(
    number: int, game: int, bots: tuple[str, str], points: tuple[int, int], **other: Any
) -> dict[str, Any]:
    """The result line of a game for two: ``number`` of its deal set, ``game`` 0 or 1 in it, where the bots
    have swapped their seats; ``points`` (sixths) go with the seats."""
    seats = bots if game == 0 else bots[::-1]
    ahead = (points[0] < points[1], points[1] < points[0])
    return {
        "game": f"p0-l0-s{number}-g{game}",
        "attempt": 1,
        "tournament": "test",
        "deal_set": f"p0-l0-s{number}",
        "set_size": 2,
        "deck": f"deck{number}",
        "preset": "tressette-due-duplicate",
        "rules_hash": "rules",
        "objective": "most",
        "bots": list(seats),
        "sides": [[bot] for bot in seats],
        "points": list(points),
        "ranks": [1 + behind for behind in ahead],
        "deals": 1,
        "termination": "played_out",
        "forfeit": None,
        "offender": None,
        "faults": [],
        **other,
    }


def write_results(folder: Path, lines: Iterable[Mapping[str, Any]], writer: str = "0001") -> Path:
    """Write a results file; returns its path."""
    record = Record(folder, writer)
    for line in lines:
        record.result_line(**line)
    record.close()
    return folder / f"results-{writer}.jsonl"
