"""Results of an independent implementation: legal cards, declarations, scores, whole deals, matches.

Set TRESSETTE_VECTORS to a folder to run that folder's files instead of the copy in tests/vectors.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from support.decks import fixed, stacked
from support.vectors import load
from tressette.rules.accuse import declarations
from tressette.rules.actions import Discard, PlayCard
from tressette.rules.cards import CARDS, cards_of, mask_of, parse_card, parse_cards, thirds_of
from tressette.rules.deal import Deal
from tressette.rules.events import CardDrawn, DealScored, DealStarted, Event, TrickWon
from tressette.rules.layout import Layout
from tressette.rules.match import Match
from tressette.rules.presets import PRESETS
from tressette.rules.ruleset import POINT, NapoliExtension, RuleSet
from tressette.rules.scoring import Counted, score_deal
from tressette.rules.standing import Standing

Vector = dict[str, Any]


def each(name: str) -> pytest.MarkDecorator:
    """Parametrize by the vectors of a file; an empty file would silently test nothing."""
    vectors = load(name)
    assert vectors, f"{name}.jsonl holds no vectors"
    return pytest.mark.parametrize("vector", [pytest.param(v, id=v["id"]) for v in vectors])


def rules_of(vector: Vector, players: int, **more: Any) -> RuleSet:
    """The rule set that a vector's options describe, as one deal."""
    names = {"bonus": "last_trick_bonus", "ace": "ace_of_bastoni"}
    options = {names.get(name, name): value for name, value in vector["options"].items()}
    pairs = len(vector["sides"]) != players
    return RuleSet.from_options(
        {
            "players": players,
            "objective": "least",
            "sides": "pairs" if pairs else "individual",
            "end": "fixed_deals",
            **options,
            **more,
        }
    )


def points_text(points: tuple[int | None, ...]) -> list[str]:
    return [str(Fraction(value, POINT)) for value in points if value is not None]


@each("legal")
def test_legal_cards(vector: Vector) -> None:
    hand = parse_cards(vector["hand"])
    rules = PRESETS["traversone-003-21-duplicate"]
    layout = Layout((mask_of(hand), 0, 0, 0), (), discards=False)
    deal = Deal(rules, layout, (0, 1, 2, 3), leader=0)
    if vector["led"] is not None:
        led = next(card for card in CARDS if str(card)[1] == vector["led"] and card not in hand)
        deal = Deal(
            rules, Layout((mask_of(hand), 0, 0, mask_of([led])), (), discards=False), (0, 1, 2, 3), leader=3
        )
        deal.play(led, None, [])
    assert [str(card) for card in cards_of(deal.playable(0))] == vector["legal"]


@each("accuse")
def test_declarations(vector: Vector) -> None:
    hand = mask_of(parse_cards(vector["hand"]))
    found = declarations(hand, NapoliExtension(vector["napoli_extension"]))
    assert [
        {
            "kind": str(one.kind),
            "of": one.of,
            "cards": [str(c) for c in cards_of(one.cards)],
            "points": one.points,
        }
        for one in found
    ] == vector["declarations"]
    assert (thirds_of(hand) < 3) == vector["monte_allowed"]


@each("scoring")
def test_scores(vector: Vector) -> None:
    players = max(seat for side in vector["sides"] for seat in side) + 1
    rules = rules_of(vector, players)
    values = [pile_thirds(rules, mask_of(parse_cards(cards))) for cards in vector["captured"]]
    piles = [Counted(thirds, tricks) for thirds, tricks in zip(values, vector["tricks_won"], strict=True)]
    recorded = score_deal(rules, piles, vector["last_trick_side"])
    assert points_text(recorded.points) == vector["points"]
    assert recorded.cappotto == vector["cappotto_side"]


def pile_thirds(rules: RuleSet, mask: int) -> int:
    seats = range(rules.players)
    return Deal(rules, Layout((0,) * rules.players, (), discards=False), seats, 0).value(mask)


@each("deals")
def test_whole_deals(vector: Vector) -> None:
    hands = [parse_cards(hand) for hand in vector["hands"]]
    dealt = mask_of(card for hand in hands for card in hand)
    more: dict[str, Any] = {}
    if vector["players"] == 3 and vector["discard"] is None:
        (removed,) = cards_of(~dealt & ((1 << 40) - 1))
        more = {"layout_3": "remove_card", "removed_card": str(removed)}
    match = Match(
        rules_of(vector, vector["players"], **more), fixed(stacked(hands, parse_cards(vector["stock"])))
    )
    events = match.start()
    assert isinstance(events[0], DealStarted)
    assert [cards_of(hand or 0) for hand in events[0].hands] == hands
    if vector["discard"] is not None:
        events += match.act(vector["dealer"], [Discard(parse_card(vector["discard"]))])
    for seat, card in vector["plays"]:
        assert match.pending == (seat,)
        events += match.act(seat, [PlayCard(parse_card(card))])
    check_deal(vector, match, events)


def check_deal(vector: Vector, match: Match, events: list[Event]) -> None:
    assert [event.seat for event in events if isinstance(event, TrickWon)] == vector["trick_winners"]
    draws = [[event.seat, str(event.card)] for event in events if isinstance(event, CardDrawn)]
    assert draws == vector["draws"]
    assert [match.deal.value(taken) for taken in match.deal.taken] == vector["captured_thirds"]
    (scored,) = [event for event in events if isinstance(event, DealScored)]
    assert points_text(tuple(side.points if side else None for side in scored.sides)) == vector["points"]
    assert scored.cappotto == vector["cappotto_side"]
    assert match.over


@each("matches")
def test_matches(vector: Vector) -> None:
    end = dict(vector["end"])
    kind = end.pop("kind")
    if "n" in end:
        end["deals"] = end.pop("n")
    objective = end.pop("objective", "most" if kind == "first_to" else "least")
    rules = RuleSet.from_options({"players": vector["sides"], "objective": objective, "end": kind, **end})
    standing = Standing(rules)
    for points in vector["deals"]:
        assert not standing.over
        standing.record([None if value is None else value * POINT for value in points])
    for points in vector["tie_break_deals"]:
        assert not standing.over
        playing = {side for side, value in enumerate(points) if value is not None}
        assert set(standing.tied) == playing
        standing.record_extra([None if value is None else value * POINT for value in points])
    assert standing.over
    assert standing.deals == vector["over_after"]
    assert standing.out_after == vector["out_after"]
    assert [total // POINT for total in standing.totals] == vector["totals"]
    assert list(standing.ranks()) == vector["ranks"]
