"""Each option driven through a match, with decks that deal what the test needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import pytest
from support.decks import fixed, stacked
from support.matches import (
    Hands,
    answer,
    finish_deal,
    finish_trick,
    hands_with,
    held,
)
from tressette.rules.actions import NOTHING, CallMonte, PlayCard, Signal
from tressette.rules.cards import CARDS, Card, cards_of, mask_of, parse_card, parse_cards
from tressette.rules.deck import Phase, seeded, shuffled
from tressette.rules.events import (
    CalledOut,
    CardDiscarded,
    CardDrawn,
    CardPlayed,
    DealEnd,
    DealScored,
    DealStarted,
    DealVoided,
    DeclarationMade,
    Event,
    MatchEnded,
    PartnersDrawn,
    SideEliminated,
    TrickWon,
    redact,
)
from tressette.rules.match import Match, Stage
from tressette.rules.presets import resolve
from tressette.rules.ruleset import POINT, RuleSet
from tressette.rules.scoring import Revoke
from tressette.rules.standing import EndReason

E = TypeVar("E", bound=Event)

SUITS = [CARDS[first : first + 10] for first in (0, 10, 20, 30)]
"""A deal in which whoever leads takes every trick."""
QUIET = hands_with("", "", "", "")[0]
POOR = "4d 5d 6d 7d 4c 5c 6c 7c Fd Cd"  # two thirds of a point
ALSO_POOR = "4s 5s 6s 7s 4b 5b 6b 7b Fs Cs"


def started(rules: RuleSet, *decks: Sequence[Card]) -> tuple[Match, list[Event]]:
    match = Match(rules, fixed(*decks) if decks else seeded(bytes(32)))
    return match, match.start()


def first_deal(name: str, *given: str, stock: str = "", **options: Any) -> tuple[Match, list[Event]]:
    """A started match whose first deal gives these cards, whatever is dealt after it."""
    rules = resolve(name, **options)
    hands, rest = hands_with(*given, size=(14, 13, 13) if rules.players == 3 else 10, stock=stock)
    return started(rules, stacked(hands, rest), *[stacked(QUIET)] * 3)


def only(kind: type[E], events: Sequence[Event]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def the(kind: type[E], events: Sequence[Event]) -> E:
    (event,) = only(kind, events)
    return event


def points(scored: DealScored) -> list[int | None]:
    """Whole points by side."""
    return [None if side is None else side.points // POINT for side in scored.sides]


def declared(events: Sequence[Event]) -> list[tuple[int, str]]:
    return [(event.seat, event.declaration.of) for event in only(DeclarationMade, events)]


# -- the draw of partners ---------------------------------------------------------------------------


def draw(*given: str, main: Hands = QUIET, more: Sequence[Sequence[Card]] = (), **options: Any) -> Any:
    rules = resolve(
        "tressette-004-drawn", **{"packets": "singly", "monte": "off", "accuse": "off", **options}
    )
    asked: list[tuple[Phase, int, int]] = []
    source = fixed(stacked(hands_with(*given)[0]), *more, *[stacked(main, dealer=3)] * 12)

    def recording(phase: Phase, deal: int, attempt: int, cards: Sequence[Card]) -> Sequence[Card]:
        asked.append((phase, deal, attempt))
        return source(phase, deal, attempt, cards)

    match = Match(rules, recording)
    return match, match.start(), asked


def test_the_five_of_denari_sits_opposite_the_four_who_leads() -> None:
    match, events, asked = draw("4d", "5d", "6d", "7d")
    drawn = the(PartnersDrawn, events)
    assert (drawn.attempt, drawn.seats, match.seating) == (1, (0, 2, 1, 3), (0, 2, 1, 3))
    assert parse_card("4d") in cards_of(drawn.hands[0])
    assert (the(DealStarted, events).leader, the(DealStarted, events).dealer) == (0, 3)
    assert match.pending == (0,)
    assert asked == [(Phase.DRAW, 1, 1), (Phase.MAIN, 1, 1)]


def test_partners_who_already_sit_opposite_keep_their_seats() -> None:
    match, events, _ = draw("7d", "4d", "6d", "5d")
    assert match.seating == (0, 1, 2, 3)
    assert the(DealStarted, events).leader == 1


def test_the_six_decides_where_one_hand_holds_the_four_and_five() -> None:
    match, events, _ = draw("6d", "", "4d 5d", "")
    assert match.seating == (0, 1, 2, 3)
    assert the(DealStarted, events).leader == 2
    match, _, _ = draw("", "", "4d 5d", "6d")
    assert match.seating == (3, 1, 2, 0)


def test_a_hand_with_all_three_makes_the_draw_repeat() -> None:
    again = stacked(hands_with("4d", "5d", "", "")[0])
    match, events, asked = draw("", "4d 5d 6d", "", "", more=[again])
    assert [event.attempt for event in only(PartnersDrawn, events)] == [1, 2]
    assert match.seating == (0, 2, 1, 3)
    assert asked == [(Phase.DRAW, 1, 1), (Phase.DRAW, 1, 2), (Phase.MAIN, 1, 1)]


def test_the_draw_is_dealt_one_card_at_a_time_whatever_the_packets() -> None:
    _, events, _ = draw("4d", "5d", "6d", "7d", packets="5+5")
    assert cards_of(the(PartnersDrawn, events).hands[0]) == hands_with("4d", "5d", "6d", "7d")[0][0]


def test_the_leader_of_the_draw_leads_even_after_a_void_deal_and_only_the_first_deal() -> None:
    poor, _ = hands_with("", POOR, "", "")
    match, events, asked = draw("", "", "4d", "5d", monte="automatic", more=[stacked(poor, dealer=1)])
    assert [deal.leader for deal in only(DealStarted, events)] == [2, 2]
    assert [deal.dealer for deal in only(DealStarted, events)] == [1, 1]
    assert asked[-1] == (Phase.MAIN, 1, 2)
    second = the(DealStarted, match.revoke(0, Revoke.PENALTY))
    assert (second.dealer, second.leader) == (2, 3)


def test_everyone_sees_the_draw() -> None:
    _, events, _ = draw("4d", "5d", "6d", "7d")
    assert redact(events[0], []) == events[0]


# -- the first lead ---------------------------------------------------------------------------------


def leads(rules: RuleSet, *deals: Hands) -> list[tuple[int, int]]:
    """(dealer, leader) of each of these deals, dealt as the rules say, ended by a fault of seat 0."""
    match, dealer = None, 0
    seen: list[tuple[int, int]] = []
    decks = []
    for hands in deals:
        decks.append(stacked(hands, dealer=dealer))
        match, events = started(rules, *decks, *[stacked(QUIET)])
        for _ in decks[1:]:
            events = match.revoke(0, Revoke.PENALTY)
        deal = the(DealStarted, events)
        seen.append((deal.dealer, deal.leader))
        dealer = (deal.dealer + 1) % 4
    return seen


def four_at(seat: int) -> Hands:
    return hands_with(*["4d" if seat == other else "" for other in range(4)])[0]


def test_the_dealers_right_leads_and_deals_next() -> None:
    rules = resolve("traversone-003-21", threshold=1000)
    assert leads(rules, QUIET, QUIET, QUIET, QUIET, QUIET) == [(0, 1), (1, 2), (2, 3), (3, 0), (0, 1)]


def test_the_four_of_denari_leads_every_deal_and_the_dealer_goes_round() -> None:
    rules = resolve("tressette-31", target=1000)
    assert leads(rules, four_at(3), four_at(0), four_at(0)) == [(0, 3), (1, 0), (2, 0)]


def test_the_four_of_denari_leads_the_first_deal_and_settles_its_dealer() -> None:
    rules = resolve("tressette-31", target=1000, first_lead="four_of_denari_first_deal")
    assert leads(rules, four_at(3), four_at(0), four_at(0)) == [(2, 3), (3, 0), (0, 1)]
    assert leads(rules, four_at(0), four_at(0)) == [(3, 0), (0, 1)]


@pytest.mark.parametrize(
    ("first_lead", "seen"),
    [
        ("dealer_right", [(0, 1), (0, 1), (1, 2)]),
        ("four_of_denari_every_deal", [(0, 2), (0, 3), (1, 2)]),
        ("four_of_denari_first_deal", [(1, 2), (2, 3), (3, 0)]),
    ],
)
def test_monte_deals_again_by_the_same_hand_and_looks_for_the_four_anew(
    first_lead: str, seen: list[tuple[int, int]]
) -> None:
    rules = resolve("tressette-31", target=1000, first_lead=first_lead, monte="automatic")
    void, _ = hands_with("", "", POOR, "")
    match, events = started(rules, stacked(void), stacked(four_at(3)), stacked(four_at(2), dealer=seen[2][0]))
    events += match.revoke(0, Revoke.PENALTY)
    deals = only(DealStarted, events)
    assert [(deal.dealer, deal.leader) for deal in deals] == seen
    assert [(deal.number, deal.attempt) for deal in deals] == [(1, 1), (1, 2), (2, 1)]


@pytest.mark.parametrize("first_lead", ["four_of_denari_every_deal", "four_of_denari_first_deal"])
def test_the_dealers_right_leads_where_nobody_holds_the_four(first_lead: str) -> None:
    _, events = first_deal("tressette-due", "", "", stock="4d", first_lead=first_lead)
    assert (the(DealStarted, events).dealer, the(DealStarted, events).leader) == (0, 1)
    rules = resolve("traversone-trio", first_lead=first_lead, removed_card="4d")
    hands, _ = hands_with("", "", "", size=13, without="4d")
    _, events = started(rules, stacked(hands))
    assert (the(DealStarted, events).dealer, the(DealStarted, events).leader) == (0, 1)


def test_a_dealer_who_sets_the_four_aside_still_leads() -> None:
    match, events = first_deal("ciapano-trio", "4d", "", "", first_lead="four_of_denari_every_deal")
    assert the(DealStarted, events).leader == 0
    answer(match, "x4d")
    assert match.pending == (0,)


def test_with_the_four_deciding_the_first_dealer_who_handed_out_discards() -> None:
    match, events = first_deal("ciapano-trio", "", "", "4d", first_lead="four_of_denari_first_deal")
    assert (the(DealStarted, events).dealer, match.pending, match.stage) == (1, (0,), Stage.DISCARD)


# -- the dealer's discard ---------------------------------------------------------------------------


def test_only_the_dealer_of_three_is_asked_and_any_card_may_go() -> None:
    match, events = first_deal("ciapano-trio", "Ad", "", "")
    assert [hand.bit_count() for hand in the(DealStarted, events).hands if hand] == [14, 13, 13]
    assert match.legal(0).discards == match.deal.hands[0]
    assert match.legal(1) == match.legal(2) == NOTHING
    (discarded,) = answer(match, "xAd")
    assert discarded == CardDiscarded(0, parse_card("Ad"))
    assert (match.stage, match.pending) == (Stage.PLAY, (1,))


def test_the_discard_is_unseen_until_the_deal_ends_and_goes_to_the_last_trick() -> None:
    match, events = first_deal("ciapano-trio", "Ad", "", "")
    events = answer(match, "xAd")
    assert redact(events[0], [0]) == events[0]
    assert redact(events[0], [1, 2]) == redact(events[0], []) == CardDiscarded(0, None)
    events += finish_deal(match)
    scored = the(DealScored, events)
    assert scored.set_aside == parse_card("Ad")
    assert sum(trick.thirds for trick in only(TrickWon, events)) == 32 - 3
    last = only(TrickWon, events)[-1].seat
    assert scored.last_trick == last
    won = [sum(t.thirds for t in only(TrickWon, events) if t.seat == seat) for seat in range(3)]
    won[last] += 3
    assert [side.thirds for side in scored.sides if side] == won
    assert len(only(TrickWon, events)) == 13


def test_a_deal_of_three_with_a_card_removed_has_thirteen_each() -> None:
    match, events = started(resolve("traversone-trio"))
    assert [hand and hand.bit_count() for hand in the(DealStarted, events).hands] == [13, 13, 13]
    assert not any(hand and hand & mask_of(parse_cards("4c")) for hand in the(DealStarted, events).hands)
    assert (match.stage, match.deal.set_aside) == (Stage.PLAY, None)


# -- two players ------------------------------------------------------------------------------------


def test_two_players_draw_after_every_trick_the_winner_first_shown_to_both() -> None:
    match, events = first_deal("ciapano-duo", "3d", "4d", stock="Ab 4b 5b 6b")
    assert the(DealStarted, events).stock == 20
    events = answer(match, "4d", "3d")
    assert events[-2:] == [CardDrawn(0, parse_card("Ab")), CardDrawn(1, parse_card("4b"))]
    assert redact(events[-1], []) == events[-1]
    assert (match.pending, len(match.deal.stock)) == ((0,), 18)
    events += finish_deal(match)
    assert (len(only(TrickWon, events)), len(only(CardDrawn, events))) == (20, 20)


def test_suit_must_be_followed_while_the_stock_lasts() -> None:
    match, _ = first_deal("ciapano-duo", "3d 5c", "4d")
    answer(match, "4d")
    assert all(card < 10 for card in cards_of(match.legal(0).cards))


# -- declarations -----------------------------------------------------------------------------------

ACES_AT_1 = ("2d", "Ad Ac As 3d", "4d 5d", "6d")


def test_before_the_first_lead_holders_are_asked_in_turn_order() -> None:
    match, events = first_deal("tressette-002", "2d 2c 2s", "4d", "Ad Ac As", "4c")
    assert (declared(events), match.stage, match.pending) == ([], Stage.DECLARE, (2,))
    assert [one.of for one in match.legal(2).declarations] == ["A"]
    assert declared(answer(match, "+A")) == [(2, "A")]
    assert match.pending == (0,)
    assert answer(match, "-") == []
    assert (match.stage, match.pending) == (Stage.PLAY, (1,))
    assert match.legal(1).declarations == ()
    assert match.standing.totals == [3 * POINT, 0]


def test_nobody_is_asked_before_the_first_lead_who_holds_nothing() -> None:
    match, _ = first_deal("tressette-002", "", "", "", "")
    assert (match.stage, match.pending) == (Stage.PLAY, (1,))


def test_a_part_of_what_is_held_may_be_declared() -> None:
    match, _ = first_deal("tressette-002", "", "Ad 2d 3d Ac As", "", "")
    assert [one.of for one in match.legal(1).declarations] == ["A", "d"]
    answer(match, "+d")
    assert (match.stage, match.standing.totals) == (Stage.PLAY, [0, 3 * POINT])


def test_automatic_before_the_first_lead_declares_all_in_turn_order() -> None:
    match, events = first_deal(
        "tressette-002", "2c 2s 2b", "", "Ad 2d 3d Ac As", "3c 3s 3b", accuse="automatic"
    )
    assert declared(events) == [(2, "A"), (2, "d"), (3, "3"), (0, "2")]
    assert (match.stage, match.standing.totals) == (Stage.PLAY, [9 * POINT, 3 * POINT])


@pytest.mark.parametrize("window", ["first_turn", "first_three_tricks"])
def test_in_play_a_declaration_comes_before_ones_own_card(window: str) -> None:
    match, events = first_deal(
        "tressette-21", "2c 2s 2b", "", "", "3c 3s 3b", accuse_window=window, first_lead="dealer_right"
    )
    assert declared(events) == []
    keep(match, "")
    keep(match, "")
    assert match.legal(0) == NOTHING
    events = answer(match, f"+3,{cards_of(match.legal(3).cards)[0]}")
    assert [type(event) for event in events] == [DeclarationMade, CardPlayed]
    assert [one.of for one in match.legal(0).declarations] == ["2"]


@pytest.mark.parametrize("window", ["first_turn", "first_three_tricks"])
def test_automatic_in_play_declares_as_each_turn_comes(window: str) -> None:
    match, events = first_deal(
        "tressette-21",
        "2c 2s 2b", "Ad Ac As", "", "3c 3s 3b",
        accuse="automatic", accuse_window=window, first_lead="dealer_right",
    )  # fmt: skip
    assert declared(events) == [(1, "A")]
    events = finish_trick(match)
    assert declared(events) == [(3, "3"), (0, "2")]
    assert declared(finish_deal(match)) == []


def keep(match: Match, cards: str) -> list[Event]:
    """Play the seat that is asked, with none of these cards if there is another."""
    seat = match.pending[0]
    legal = match.legal(seat).cards
    return match.act(seat, [PlayCard(cards_of(legal & ~mask_of(parse_cards(cards)) or legal)[0])])


@pytest.mark.parametrize(("window", "tricks"), [("first_turn", 1), ("first_three_tricks", 3)])
def test_the_window_closes_after_its_tricks(window: str, tricks: int) -> None:
    aces = "Ad Ac As"
    match, _ = first_deal(
        "tressette-21", aces + " 4d 5d 6d 4c 5c 6c 4s", "", "", "",
        accuse_window=window, first_lead="dealer_right",
    )  # fmt: skip
    seen = []
    while match.deal.trick < 5:
        if match.pending == (0,):
            seen.append([one.of for one in match.legal(0).declarations])
            assert held(match, 0, "A")
        keep(match, aces)
    assert seen == [["A"]] * tricks + [[]] * (4 - tricks)


def test_a_declaration_needs_its_cards_still_in_hand() -> None:
    match, _ = first_deal("tressette-21", *ACES_AT_1, first_lead="dealer_right")
    answer(match, "Ad")
    finish_trick(match)
    while match.pending != (1,):
        keep(match, "")
    assert match.deal.trick == 2
    assert match.legal(1).declarations == ()


@pytest.mark.parametrize(("accuse", "made"), [("optional", []), ("automatic", [(0, "A")])])
def test_drawn_cards_make_new_declarations(accuse: str, made: list[tuple[int, str]]) -> None:
    match, events = first_deal("tressette-due", "Ac As 3d", "4d", stock="Ab 4b", accuse=accuse)
    assert declared(events) == []
    events = answer(match, "4d", "3d")
    assert declared(events) == made
    assert [one.of for one in match.legal(0).declarations] == [] if made else ["A"]
    assert match.pending == (0,)


def test_a_declaration_is_never_raised_later() -> None:
    match, _ = first_deal(
        "tressette-due", "Ac As Ab 3d", "4d", stock="Ad 4b", accuse="automatic", napoli_extension="numeric"
    )
    assert declared(answer(match, "4d")) == [(0, "A")]
    answer(match, "3d")
    assert parse_card("Ad") in match.hand(0)
    assert match.declarable(0) == ()
    assert match.standing.totals == [3 * POINT, 0]


def test_four_of_a_kind_declare_four() -> None:
    match, _ = first_deal("tressette-002", "", "Ad Ac As Ab", "", "")
    answer(match, "+A")
    assert match.standing.totals == [0, 4 * POINT]


@pytest.mark.parametrize(("extension", "worth"), [("none", 3), ("numeric", 5), ("rank_order", 4)])
def test_a_napoli_grows_as_the_extension_says(extension: str, worth: int) -> None:
    hands = hands_with("", "Ad 2d 3d 4d 5d Rd", "", "")[0]
    match, _ = started(resolve("tressette-002", napoli_extension=extension), stacked(hands))
    answer(match, "+d")
    assert match.standing.totals == [0, worth * POINT]


def test_the_dealer_of_three_declares_what_is_left_after_the_discard() -> None:
    options: dict[str, Any] = {"players": 3, "sides": "individual", "accuse": "automatic"}
    match, events = first_deal("tressette-002", "Ad Ac As 2s 3s", "", "", **options)
    assert declared(events) == []
    assert declared(answer(match, "xAd")) == [(0, "s")]


def test_declared_cards_and_points_are_public_and_stand_apart_from_the_deal() -> None:
    match, _ = first_deal("tressette-002", *ACES_AT_1)
    events = answer(match, "+A")
    assert redact(events[0], []) == events[0]
    scored = the(DealScored, finish_deal(match))
    assert [side.declared for side in scored.sides if side] == [0, 3 * POINT]
    assert sum(side.points for side in scored.sides if side) == 11 * POINT
    assert sum(scored.totals) == 14 * POINT


def test_a_declaration_outlives_a_cappotto() -> None:
    rules = resolve("tressette-002", cappotto="all_tricks", cappotto_effect="match_win", accuse="automatic")
    match, events = started(rules, stacked(SUITS))
    assert declared(events) == [(1, "c"), (2, "s"), (3, "b"), (0, "d")]
    events = finish_deal(match)
    assert the(DealScored, events).cappotto == 1
    assert the(MatchEnded, events).totals == (20 * POINT, 31 * POINT)
    assert (the(MatchEnded, events).ranks, the(MatchEnded, events).reason) == ((2, 1), EndReason.CAPPOTTO)


def test_declarations_reach_the_target_only_when_the_deal_has_been_counted() -> None:
    rules = resolve("tressette-002", target=3)
    match, _ = started(rules, stacked(hands_with(*ACES_AT_1)[0]))
    answer(match, "+A")
    assert not match.over
    finish_deal(match)
    assert match.over


# -- monte ------------------------------------------------------------------------------------------


def poor_deal(*given: str, **options: Any) -> tuple[Match, list[Event]]:
    return first_deal(
        "tressette-21", *given, **{"first_lead": "dealer_right", "monte": "on_request", **options}
    )


def test_every_poor_hand_is_asked_in_turn_order_and_nobody_else() -> None:
    match, _ = poor_deal(POOR, "", ALSO_POOR, "")
    assert (match.stage, match.pending) == (Stage.MONTE, (2, 0))
    assert match.legal(0).monte
    assert match.legal(2).monte
    assert match.legal(1) == NOTHING


def test_the_deal_is_played_when_all_poor_hands_decline_and_nothing_tells_of_it() -> None:
    match, _ = poor_deal(POOR, "", ALSO_POOR, "")
    assert match.act(0, []) == []
    assert (match.stage, match.pending) == (Stage.MONTE, (2,))
    assert match.act(2, []) == []
    assert (match.stage, match.pending) == (Stage.PLAY, (1,))


@pytest.mark.parametrize("caller", [0, 2])
def test_one_poor_hand_is_enough_to_void_the_deal_whoever_answers_first(caller: int) -> None:
    match, _ = poor_deal(POOR, "", ALSO_POOR, "")
    events = match.act(caller, [CallMonte()])
    assert events[0] == DealVoided(caller)
    again = the(DealStarted, events)
    assert (again.number, again.attempt, again.dealer) == (1, 2, 0)
    assert (match.stage, match.pending) == (Stage.PLAY, (1,))


def test_a_poor_hand_may_still_call_monte_after_another_declined() -> None:
    match, _ = poor_deal(POOR, "", ALSO_POOR, "")
    match.act(2, [])
    assert the(DealVoided, match.act(0, [CallMonte()])).seat == 0


@pytest.mark.parametrize(
    ("hand", "asked"), [("4d 5d 6d 7d 4c 5c 6c 7c Fd Cd", True), ("4d 5d 6d 7d 4c 5c 6c Rd Fd Cd", False)]
)
def test_a_whole_point_is_not_poor(hand: str, asked: bool) -> None:
    match, _ = poor_deal("", hand, "", "")
    assert (match.stage is Stage.MONTE) == asked


def test_on_request_ten_void_deals_in_a_row_are_enough() -> None:
    deck = stacked(hands_with("", POOR, "", "")[0])
    match, _ = started(resolve("tressette-21", monte="on_request", first_lead="dealer_right"), *[deck] * 11)
    for attempt in range(2, 12):
        assert the(DealStarted, match.act(1, [CallMonte()])).attempt == attempt
    assert (match.stage, match.pending) == (Stage.PLAY, (1,))


def test_automatic_monte_deals_until_nobody_is_poor_but_ten_times_at_most() -> None:
    rules = resolve("tressette-21", monte="automatic", target=1000)
    poor = hands_with("", POOR, "", "")[0]
    match, events = started(rules, stacked(poor), stacked(poor), stacked(QUIET))
    assert [type(event) for event in events] == [
        DealStarted,
        DealVoided,
        DealStarted,
        DealVoided,
        DealStarted,
    ]
    match, events = started(rules, *[stacked(poor)] * 11, stacked(poor, dealer=1), stacked(QUIET, dealer=1))
    assert len(only(DealVoided, events)) == 10
    assert (match.attempt, match.stage) == (11, Stage.PLAY)
    events = match.revoke(0, Revoke.PENALTY)
    assert [(d.number, d.attempt, d.dealer) for d in only(DealStarted, events)] == [(2, 1, 1), (2, 2, 1)]


def test_two_players_look_at_the_ten_dealt() -> None:
    match, _ = first_deal("tressette-due", POOR, "", stock="Ad Ac", monte="on_request")
    assert (match.stage, match.pending) == (Stage.MONTE, (0,))


def test_the_dealer_of_three_looks_at_fourteen_before_the_discard() -> None:
    worthless = "4d 5d 6d 7d 4c 5c 6c 7c 4s 5s 6s 7s"
    match, _ = first_deal("ciapano-trio", worthless + " Rd Rc", "", "", monte="on_request")
    assert (match.stage, match.pending) == (Stage.MONTE, (0,))
    match.act(0, [])
    assert (match.stage, match.pending) == (Stage.DISCARD, (0,))
    match, _ = first_deal("ciapano-trio", worthless + " Rd Ac", "", "", monte="on_request")
    assert match.stage is Stage.DISCARD


def test_monte_comes_before_the_declarations() -> None:
    options = {"accuse_window": "before_first_lead"}
    match, _ = poor_deal(POOR, "Ad Ac As", "", "", **options)
    assert match.stage is Stage.MONTE
    match.act(0, [])
    assert (match.stage, match.pending) == (Stage.DECLARE, (1,))


# -- calling out ------------------------------------------------------------------------------------


def calling(*given: str, **options: Any) -> Match:
    rules = {"first_lead": "dealer_right", "call_out": "own", **options}
    return first_deal("tressette-21", *(given or ("", "", "", "")), **rules)[0]


def test_a_claim_counts_declarations_and_the_whole_points_taken_no_more() -> None:
    hands = hands_with("5d Rd", "3d 3c Ad Ac As", "Cd 6d", "4d Fd")[0]
    for target, reason in ((4, EndReason.CALL_OUT), (5, EndReason.PLAYED_OUT)):
        rules = resolve("tressette-21", first_lead="dealer_right", call_out="own", target=target)
        match, _ = started(rules, stacked(hands))
        answer(match, "+A,3d", "Cd", "Fd", "Rd")  # four thirds: one whole point
        assert match.standing.totals == [0, 3 * POINT]
        events = answer(match, "out")
        assert events[0] == CalledOut(1, right=reason is EndReason.CALL_OUT)
        assert the(MatchEnded, events).reason is reason


def test_unplayed_cards_count_for_nobody_when_a_claim_is_right() -> None:
    match = calling("5d Rd", "3d 3c Ad Ac As", "Cd 6d", "4d Fd", target=4)
    answer(match, "+A,3d", "Cd", "Fd", "Rd")
    events = answer(match, "out")
    scored = the(DealScored, events)
    assert (scored.ended_by, scored.last_trick, points(scored)) == (DealEnd.CALL_OUT, None, [0, 1])
    assert the(MatchEnded, events) == MatchEnded(EndReason.CALL_OUT, (0, 4 * POINT), (2, 1))


def test_a_right_claim_comes_first_even_with_fewer_points() -> None:
    match = calling(target=4)
    match.standing.totals[:] = [9 * POINT, 4 * POINT]
    assert the(MatchEnded, answer(match, "out")).ranks == (2, 1)


def test_a_wrong_claim_costs_the_deal_and_its_declarations() -> None:
    match = calling("2d 2c 2s", "Ad Ac As", "", "")
    match.standing.totals[:] = [2 * POINT, 5 * POINT]
    lead = cards_of(match.legal(1).cards)[-1]
    answer(match, f"+A,{lead}")
    while match.pending != (0,):
        keep(match, "2d 2c 2s")
    answer(match, f"+2,{cards_of(match.legal(0).cards)[0]}")
    while match.pending[0] % 2 == 0:
        keep(match, "")
    caller = match.pending[0]
    events = answer(match, "out")
    assert events[0] == CalledOut(caller, right=False)
    scored = the(DealScored, events)
    assert (scored.ended_by, points(scored)) == (DealEnd.WRONG_CALL_OUT, [11, 0])
    assert [side.declared for side in scored.sides if side] == [3 * POINT, 0]
    assert scored.totals == (16 * POINT, 5 * POINT)
    assert the(DealStarted, events).number == 2


def test_a_wrong_claim_can_win_the_match_for_the_others() -> None:
    match = calling(target=11)
    assert the(MatchEnded, answer(match, "out")) == MatchEnded(EndReason.PLAYED_OUT, (11 * POINT, 0), (1, 2))


def test_a_declaration_and_a_claim_fit_one_answer() -> None:
    match = calling(*ACES_AT_1, target=3)
    events = answer(match, "+A,out")
    assert [type(event) for event in events] == [DeclarationMade, CalledOut, DealScored, MatchEnded]
    assert the(CalledOut, events).right


# -- signals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("signal", list(Signal))
def test_the_leader_signals_with_the_card_for_all_to_see(signal: Signal) -> None:
    match, _ = first_deal("traversone-pairs", "", "4d", "", "")
    assert match.legal(1).signals
    (event,) = answer(match, f"4d!{signal}")
    assert event == CardPlayed(1, parse_card("4d"), signal)
    assert redact(event, []) == event
    assert not match.legal(2).signals


def test_nobody_has_to_signal() -> None:
    match, _ = first_deal("traversone-pairs", "", "4d", "", "")
    assert answer(match, "4d") == [CardPlayed(1, parse_card("4d"))]


# -- faults -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "policy", "recorded"),
    [
        ("traversone-003-21", {}, Revoke.TRANSFER_ALL, [0, 0, 11, 0]),
        ("traversone-003-21", {}, Revoke.PENALTY, [0, 0, 11, 0]),
        ("ciapano-ace21", {}, Revoke.TRANSFER_ALL, [0, 0, 21, 0]),
        ("ciapano-ace21", {}, Revoke.PENALTY, [0, 0, 11, 0]),
        ("traversone-002-ace", {}, Revoke.TRANSFER_ALL, [0, 0, 22, 0]),
        ("traversone-pairs", {}, Revoke.TRANSFER_ALL, [11, 0]),
        ("tressette-31", {}, Revoke.TRANSFER_ALL, [0, 11]),
        ("tressette-31", {"ace_of_bastoni": "extra"}, Revoke.TRANSFER_ALL, [0, 22]),
        ("tressette-31", {"ace_of_bastoni": "extra"}, Revoke.PENALTY, [0, 11]),
        ("tressette-31", {"sides": "individual"}, Revoke.PENALTY, [11, 11, 0, 11]),
    ],
)
def test_a_revoke_ends_the_deal_against_the_offender(
    name: str, options: dict[str, Any], policy: Revoke, recorded: list[int]
) -> None:
    match, _ = first_deal(name, "", "", "", "", **options)
    keep(match, "")
    events = match.revoke(2, policy)
    scored = the(DealScored, events)
    assert (points(scored), scored.ended_by, scored.last_trick) == (recorded, DealEnd.REVOKE, None)
    assert scored.cappotto is None
    assert scored.totals == tuple(value * POINT for value in recorded)


def test_a_revoke_shows_the_card_set_aside() -> None:
    match, _ = first_deal("ciapano-trio", "Ad", "", "", threshold=1000)
    answer(match, "xAd")
    assert the(DealScored, match.revoke(1, Revoke.PENALTY)).set_aside == parse_card("Ad")


def test_a_revoke_while_monte_is_asked_ends_that_too() -> None:
    match, _ = poor_deal(POOR, "", ALSO_POOR, "")
    events = match.revoke(0, Revoke.PENALTY)
    assert the(DealStarted, events).number == 2
    assert match.stage is Stage.PLAY


@pytest.mark.parametrize(("seat", "ranks"), [(0, (4, 3, 1, 2)), (2, (2, 3, 4, 1))])
def test_a_forfeit_puts_the_offender_last_and_the_rest_by_total(seat: int, ranks: tuple[int, ...]) -> None:
    match, _ = first_deal("traversone-003-21", "", "", "", "")
    match.standing.totals[:] = [1, 4, 2, 3] if seat == 0 else [2, 3, 1, 1]
    events = match.forfeit(seat)
    ended = the(MatchEnded, events)
    assert events == [ended]
    assert (ended.reason, ended.seat, ended.ranks) == (EndReason.FORFEIT, seat, ranks)
    assert (match.over, match.stage, match.pending) == (True, Stage.OVER, ())


def test_a_forfeit_in_pairs_is_the_sides() -> None:
    match, _ = first_deal("tressette-21", "", "", "", "")
    match.standing.totals[:] = [10, 0]
    ended = the(MatchEnded, match.forfeit(2))
    assert (ended.seat, ended.ranks) == (2, (2, 1))


# -- cappotto ---------------------------------------------------------------------------------------


def whole_deal(name: str, hands: Sequence[Sequence[Card]] = SUITS, **options: Any) -> list[Event]:
    match, _ = started(resolve(name, **options), stacked(hands), stacked(QUIET, dealer=1))
    return finish_deal(match)


@pytest.mark.parametrize(
    ("name", "penalty"),
    [
        ("ciapano-31", 11),
        ("ciapano-ace21", 21),
        ("traversone-002", 11),
        ("traversone-002-ace", 11),
        ("traversone-003-21", 11),
    ],
)
def test_swap_clears_the_capper_and_charges_the_others(name: str, penalty: int) -> None:
    scored = the(DealScored, whole_deal(name))
    assert (points(scored), scored.cappotto) == ([penalty, 0, penalty, penalty], 1)
    assert scored.sides[1] is not None
    assert scored.sides[1].counted > 0


def test_a_penalty_may_be_chosen() -> None:
    assert points(the(DealScored, whole_deal("traversone-003-21", cappotto_penalty=7))) == [7, 0, 7, 7]


def test_a_cappotto_may_win_the_match() -> None:
    match, _ = started(resolve("traversone-003-slam"), stacked(SUITS))
    match.standing.totals[:] = [0, 20 * POINT, 0, 6]
    ended = the(MatchEnded, finish_deal(match))
    assert ended.totals == (11 * POINT, 20 * POINT, 11 * POINT, 12 * POINT)
    assert (ended.reason, ended.ranks) == (EndReason.CAPPOTTO, (2, 1, 2, 4))


def test_a_cappotto_wins_a_game_for_most_points_without_the_swap() -> None:
    rules = resolve(
        "tressette-31", cappotto="all_points", cappotto_effect="match_win", first_lead="dealer_right"
    )
    match, _ = started(rules, stacked(SUITS))
    match.standing.totals[:] = [30 * POINT, 0]
    ended = the(MatchEnded, finish_deal(match))
    assert (ended.totals, ended.ranks) == ((30 * POINT, 11 * POINT), (2, 1))


def test_a_cappotto_that_is_not_played_is_an_ordinary_deal() -> None:
    scored = the(DealScored, whole_deal("traversone-003-21", cappotto="none"))
    assert (points(scored), scored.cappotto) == ([0, 11, 0, 0], None)


def test_in_an_extra_deal_a_cappotto_leaves_the_capper_lowest() -> None:
    match, _ = started(resolve("traversone-003-21"), stacked(QUIET), stacked(SUITS, dealer=1))
    match.standing.totals[:] = [21 * POINT, 21 * POINT, 10 * POINT, 21 * POINT]
    match.revoke(2, Revoke.PENALTY)
    assert (match.phase, match.active, match.pending) == (Phase.TIE_BREAK, (0, 1, 2, 3), (2,))
    events = finish_deal(match)
    assert (points(the(DealScored, events)), the(DealScored, events).cappotto) == ([11, 11, 0, 11], 2)
    ended = the(MatchEnded, events)
    assert (ended.totals, ended.ranks) == ((21 * POINT,) * 4, (2, 2, 1, 2))


# -- ends -------------------------------------------------------------------------------------------


def dealt(events: Sequence[Event]) -> list[int]:
    return [hand.bit_count() for hand in the(DealStarted, events).hands if hand is not None]


@pytest.mark.parametrize(
    ("layout_3", "three"), [("dealer_discard", [14, 0, 13, 13]), ("remove_card", [13, 0, 13, 13])]
)
def test_an_elimination_goes_on_with_fewer_players_until_one_is_left(layout_3: str, three: list[int]) -> None:
    rules = resolve("ciapano-five", threshold=11, layout_3=layout_3)
    match, events = started(rules)
    assert dealt(events) == [8] * 5
    events = match.revoke(4, Revoke.PENALTY)
    assert the(SideEliminated, events).side == 4
    assert (dealt(events), the(DealStarted, events).dealer) == ([10, 10, 10, 10, 0], 1)
    events = match.revoke(1, Revoke.PENALTY)  # the dealer goes out: the next seat at its right deals
    assert the(DealStarted, events).dealer == 2
    assert (dealt(events), the(DealStarted, events).leader) == ([13, 0, three[0], 13, 0], 3)
    events = match.revoke(3, Revoke.PENALTY)
    deal = the(DealStarted, events)
    assert (dealt(events), deal.dealer, deal.leader, deal.stock) == ([10, 0, 10, 0, 0], 0, 2, 20)
    assert redact(deal, [0]) == redact(deal, [0, 1, 3, 4])
    events = match.revoke(0, Revoke.PENALTY)
    assert the(MatchEnded, events).ranks == (2, 4, 1, 3, 5)
    assert match.over


@pytest.mark.parametrize("survivors", [1, 2, 3])
def test_an_elimination_ends_when_few_enough_are_left_who_share_the_win(survivors: int) -> None:
    match, _ = started(resolve("ciapano-five", threshold=11, survivors=survivors))
    for seat in range(5 - survivors):
        assert not match.over
        events = match.revoke(seat, Revoke.PENALTY)
    ranks = the(MatchEnded, events).ranks
    assert ranks[5 - survivors :] == (1,) * survivors
    assert ranks[: 5 - survivors] == tuple(range(5, survivors, -1))


def tie_break(name: str, totals: Sequence[int], seat: int, **options: Any) -> tuple[Match, list[Event]]:
    """A match whose first deal is ended by 11 points against ``seat``."""
    match, _ = started(resolve(name, **options))
    match.standing.totals[:] = [total * POINT for total in totals]
    return match, match.revoke(seat, Revoke.PENALTY)


def test_only_the_tied_play_the_extra_deal_with_the_layout_of_their_number() -> None:
    match, events = tie_break("traversone-003-21", [3, 15, 3, 3], 1)
    deal = the(DealStarted, events)
    assert (deal.phase, deal.number, deal.attempt) == (Phase.TIE_BREAK, 1, 1)
    assert (deal.dealer, deal.leader, match.active, match.pending) == (2, 3, (0, 2, 3), (2,))
    assert [hand and hand.bit_count() for hand in deal.hands] == [13, 0, 14, 13]
    events = match.revoke(3, Revoke.PENALTY)
    assert (the(DealScored, events).phase, the(DealScored, events).number) == (Phase.TIE_BREAK, 1)
    assert the(DealScored, events).totals == (18, 26 * POINT, 18, 18)
    deal = the(DealStarted, events)
    assert (deal.number, deal.dealer, deal.leader, deal.stock) == (2, 0, 2, 20)
    events = match.revoke(0, Revoke.PENALTY)
    assert the(MatchEnded, events).ranks == (2, 4, 1, 3)
    assert the(MatchEnded, events).totals == (18, 26 * POINT, 18, 18)


def test_an_extra_deal_is_scored_like_any_other() -> None:
    match, _ = tie_break("traversone-003-21", [3, 15, 3, 9], 1)
    events = finish_deal(match)
    scored = the(DealScored, events)
    assert [side is None for side in scored.sides] == [False, True, False, True]
    assert sum(side.points for side in scored.sides if side) == 11 * POINT


def test_in_pairs_all_four_seats_play_the_extra_deal() -> None:
    match, events = tie_break("traversone-pairs", [21, 10], 1)
    assert [hand and hand.bit_count() for hand in the(DealStarted, events).hands] == [10] * 4
    assert the(MatchEnded, match.revoke(0, Revoke.PENALTY)).ranks == (2, 1)


def test_a_tie_may_be_shared() -> None:
    _, events = tie_break("traversone-002", [3, 15, 3, 9], 1)
    assert the(MatchEnded, events).ranks == (1, 4, 1, 3)


def level_deck(rules: RuleSet) -> list[Card]:
    """A deck of two players that leaves both with the same points when first legal cards are played."""
    for seed in range(1000):
        deck = shuffled(seed.to_bytes(32, "big"), Phase.MAIN, 1, 1)
        match, _ = started(rules.replace(end="fixed_deals", tie_break="none"), deck)
        if len(set(points(the(DealScored, finish_deal(match))))) == 1:
            return deck
    raise AssertionError("no such deck")


def test_after_ten_extra_deals_the_tied_share() -> None:
    rules = resolve("ciapano-duo", threshold=11, rounding="floor", last_trick_bonus="0")
    level = level_deck(rules)
    match, _ = started(rules, *[level] * 11)
    match.standing.totals[:] = [11 * POINT, 0]
    events = match.revoke(1, Revoke.PENALTY)
    assert [one.side for one in only(SideEliminated, events)] == [0, 1]
    dealers = []
    for number in range(1, 11):
        assert (match.over, match.phase, match.number) == (False, Phase.TIE_BREAK, number)
        dealers.append(match.dealer)
        events = finish_deal(match)
    assert the(MatchEnded, events).ranks == (1, 1)
    assert dealers == [1, 0] * 5


def test_an_extra_deal_has_no_monte() -> None:
    poor = hands_with("", POOR, "", "")[0]
    rules = resolve("traversone-pairs", monte="automatic")
    match, _ = started(rules, stacked(QUIET), stacked(poor, dealer=1))
    match.standing.totals[:] = [21 * POINT, 10 * POINT]
    events = match.revoke(1, Revoke.PENALTY)
    assert only(DealVoided, events) == []
    assert (match.stage, match.phase) == (Stage.PLAY, Phase.TIE_BREAK)


def test_fixed_deals_are_all_played_and_numbered() -> None:
    match, events = started(resolve("traversone-003-21-duplicate", deals=3))
    while not match.over:
        events += finish_deal(match)
    assert [(deal.number, deal.dealer) for deal in only(DealStarted, events)] == [(1, 0), (2, 1), (3, 2)]
    assert [deal.number for deal in only(DealScored, events)] == [1, 2, 3]
    assert isinstance(events[-1], MatchEnded)


def test_two_sides_level_over_the_target_play_another_deal() -> None:
    match, _ = started(resolve("tressette-11"))
    match.standing.totals[:] = [11 * POINT, 0]
    match.revoke(0, Revoke.PENALTY)
    assert not match.over
    assert the(MatchEnded, match.revoke(0, Revoke.PENALTY)).ranks == (2, 1)


def test_a_match_says_where_it_stands() -> None:
    match, _ = started(resolve("tressette-002"))
    assert repr(match).startswith("<Match MAIN deal 1 ")
