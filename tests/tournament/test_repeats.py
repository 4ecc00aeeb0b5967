"""When the organiser is warned that bots may know decks again."""

from __future__ import annotations

from typing import Any

import pytest
from support.events import tournament
from tressette_tournament.lineups import Seatings
from tressette_tournament.repeats import warnings
from tressette_tournament.tournament_file import Format, Isolation


@pytest.mark.parametrize(
    ("bots", "changes", "times"),
    [
        (4, {}, None),  # 3 opponents in 2 seatings are 6 games, as many as there are suit orders
        (5, {}, 8),
        (5, {"common_deals": False}, None),
        (5, {"isolation": Isolation.FRESH}, None),
        (5, {"format": Format.LADDER}, None),
        (5, {"seed": "public"}, None),
        (7, {"seatings": Seatings.ONCE}, None),
        (8, {"seatings": Seatings.ONCE}, 7),
    ],
)
def test_two_players(bots: int, changes: dict[str, object], times: int | None) -> None:
    settings: dict[str, Any] = {"seed": None, **changes}
    event = tournament(bots, ["tressette-due-duplicate"], **settings)
    found = list(warnings(event))
    assert len(found) == (times is not None)
    assert all(f"meets each deck {times} times, under 6 suit orders" in text for text in found)


def test_each_preset_by_itself() -> None:
    """Ciapano for five with everybody at one table has 5 seatings, and no suit is named."""
    presets = ["ciapano-five-duplicate", "tressette-due-duplicate"]
    assert [text.split(":")[0] for text in warnings(tournament(5, presets, seed=None))] == presets[1:]
