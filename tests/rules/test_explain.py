"""A deal's count in plain words."""

from __future__ import annotations

import pytest
from tressette.rules.accuse import Combination, Declaration
from tressette.rules.cards import mask_of, parse_cards
from tressette.rules.deck import Phase
from tressette.rules.events import DealEnd, DealScored, SideScore
from tressette.rules.explain import breakdown, explain_deal, points_text
from tressette.rules.presets import PRESETS


@pytest.mark.parametrize(
    ("sixths", "text"),
    [(0, "0"), (6, "1"), (3, "1/2"), (4, "2/3"), (34, "5 2/3"), (-18, "-3"), (-4, "-2/3")],
)
def test_points_are_written_as_people_write_them(sixths: int, text: str) -> None:
    assert points_text(sixths) == text


def scored(*sides: SideScore, last: int, cappotto: int | None = None) -> DealScored:
    totals = tuple(side.points + side.declared for side in sides)
    return DealScored(Phase.MAIN, 1, DealEnd.PLAYED, sides, totals, last, cappotto)


def test_floor_shows_what_was_dropped_and_the_last_trick() -> None:
    rules = PRESETS["tressette-21"]
    event = scored(SideScore(17, 4, 18, 30, 30), SideScore(15, 6, 0, 36, 36), last=1)
    napoli = Declaration(Combination.NAPOLI, "s", mask_of(parse_cards("As 2s 3s")), 3)
    taken = (mask_of(parse_cards("As 2s 3s 4d")), mask_of(parse_cards("Rd")))
    lines = explain_deal(rules, event, taken, ((napoli,), ()))
    assert breakdown(rules, event, 0) == (2, 0)
    assert breakdown(rules, event, 1) == (0, 6)
    assert lines == [
        "Deal 1, played to the end.",
        "Seats 0 and 2: 4 tricks with As 2s 3s, worth 5 2/3 (17 thirds); 2/3 dropped; counts 5; "
        "declared napoli of spade (As 2s 3s), +3 at once.",
        "Seats 1 and 3: 6 tricks with Rd, worth 5 (15 thirds); last trick +1; counts 6.",
        "Match totals. Seats 0 and 2: 8; Seats 1 and 3: 6.",
    ]


def test_remainder_to_last_and_cappotto() -> None:
    rules = PRESETS["traversone-003-21"]
    sides = (SideScore(32, 10, 0, 66, 0), *(SideScore(0, 0, 0, 0, 66) for _ in range(3)))
    event = scored(*sides, last=0, cappotto=0)
    lines = explain_deal(rules, event, ((1 << 40) - 1, 0, 0, 0), ((), (), (), ()))
    assert "last trick, so it records the rest of 11: 11." in lines[1]
    assert lines[2] == "Seat 1: 0 tricks, no card worth points; counts 0."
    assert lines[5] == "Seat 0 made cappotto: it records 0, every other side 11."
