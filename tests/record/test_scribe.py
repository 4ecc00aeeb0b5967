"""What a game leaves in its record, line by line; and that this is enough to have it back."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import orjson
import pytest
from support.decks import stacked
from support.matches import hands_with, random_answer
from support.tables import KEY, MONTE, Memory, game_spec
from tressette.record.game import GameSpec, seat_secret
from tressette.record.scribe import Scribe
from tressette.rules.actions import Action, CallMonte, CallOut, Declare, Discard, PlayCard, Signal
from tressette.rules.cards import CARDS, Card, mask_of, parse_card, parse_cards
from tressette.rules.deck import DeckSource, Phase, seeded
from tressette.rules.events import (
    DealStarted,
    FaultCommitted,
    FaultEffect,
    FaultKind,
    MatchEnded,
    PartnersDrawn,
)
from tressette.rules.match import Match
from tressette.rules.presets import PRESETS, resolve
from tressette.rules.ruleset import RuleSet
from tressette.rules.suits import exchanged

Line = dict[str, Any]

EVERY_LINE = {"game", "attempt"}
MATCH = EVERY_LINE | {
    *("tournament", "preset", "rules", "rules_hash", "commitment", "suits", "deal_set", "deck"),
    *("bots", "versions", "partners_drawn"),
}
TRICK = EVERY_LINE | {
    *("phase", "deal", "dealt", "trick", "leader", "cards", "winner", "thirds", "think_ms", "net_ms"),
}
DEAL = EVERY_LINE | {
    *("phase", "deal", "dealt", "dealer", "leader", "hands", "unfinished", "ended_by", "sides", "totals"),
    *("last_trick", "cappotto", "set_aside"),
}
RESULT = EVERY_LINE | {
    *("tournament", "deal_set", "set_size", "deck", "preset", "rules_hash", "objective", "commitment"),
    *("bots", "sides", "points", "ranks", "deals", "termination", "forfeit", "offender", "faults"),
    *("duration_ms", "ended_unix_ms"),
}


class Written:
    """One match and what was written of it; ``play`` gives answers, ``finish`` plays on at random."""

    def __init__(self, rules: RuleSet, decks: DeckSource | int = 0, spec: GameSpec | None = None) -> None:
        if isinstance(decks, int):
            decks = seeded(decks.to_bytes(32, "big"))
        self.memory = Memory()
        self.match = Match(rules, decks)
        self.spec = spec or game_spec(rules=rules)
        self.scribe = Scribe(self.memory, self.spec, [f"{name} 1.0" for name in self.spec.bots])
        self.log = self.match.start()
        self.scribe.write(self.log)

    def play(self, seat: int, actions: Sequence[Action], think_ms: int = 0, network_ms: int = 0) -> None:
        """One answer."""
        events = self.match.act(seat, actions)
        self.log += events
        self.scribe.write(events, think_ms, network_ms)

    def finish(self, seed: int = 0) -> list[tuple[str, Line]]:
        """Play to the end; returns all lines."""
        chance = Random(seed)
        while not self.match.over:
            seat = chance.choice(self.match.pending)
            self.play(seat, random_answer(self.match, seat, chance))
        self.scribe.committed(duration_ms=12, ended_unix_ms=34)
        return self.memory.lines


def _deal_of(*hands: str, **options: Any) -> DeckSource:
    """Decks that deal these hands first, and anything after that."""
    dealt, stock = hands_with(*hands, **options)
    first = iter([dealt])
    later = seeded(bytes(32))

    def source(phase: Phase, deal: int, attempt: int, cards: Sequence[Card]) -> Sequence[Card]:
        for given in first:
            return stacked(given, stock)
        return later(phase, deal, attempt, cards)

    return source


# -- fields -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["tressette-21", "ciapano-trio", "tressette-due", "tressette-004-drawn"])
def test_every_line_has_its_fields(preset: str) -> None:
    lines = Written(PRESETS[preset], 3).finish()
    wanted = {"match": MATCH, "trick": TRICK, "deal": DEAL, "game": RESULT, "void": EVERY_LINE}
    for kind, line in lines:
        assert wanted[kind] <= set(line), kind
        assert (line["game"], line["attempt"]) == ("g1", 1)
    kinds = [kind for kind, _ in lines]
    assert (kinds[0], kinds[-2], kinds[-1]) == ("match", "deal", "game")
    assert kinds.count("match") == kinds.count("game") == 1


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_line_is_json_of_plain_values(preset: str) -> None:
    for _, line in Written(PRESETS[preset], 5).finish(5):
        assert orjson.loads(orjson.dumps(line)) == orjson.loads(
            orjson.dumps(line, option=orjson.OPT_STRICT_INTEGER)
        )


def test_the_first_line_says_what_is_played_by_whom() -> None:
    written = Written(PRESETS["tressette-21"])
    ((kind, line),) = written.memory.lines
    spec = written.spec
    assert kind == "match"
    assert RuleSet.from_options(line["rules"]).hash() == line["rules_hash"] == spec.rules.hash()
    assert line["commitment"] == spec.commitment
    assert line["bots"] == ["a", "b", "c", "d"]
    assert line["versions"] == ["a 1.0", "b 1.0", "c 1.0", "d 1.0"]
    assert (line["deal_set"], line["deck"], line["preset"]) == (spec.deal_set, spec.deck, "preset")


def test_the_first_line_comes_first_even_if_the_first_deal_is_void() -> None:
    rules = resolve("tressette-004", packets="singly")
    written = Written(rules, _deal_of("", "4d 4c 4s 4b 5d 5c 5s 5b 6d 6c", "", ""))
    assert [kind for kind, _ in written.memory.lines] == ["match", "void"]
    assert written.memory.of("void")[0]["seat"] == 1


def test_seed_and_salt_are_not_in_the_record() -> None:
    spec = game_spec(seed=bytes(range(32)))
    written = Written(spec.rules, 0, spec)
    text = orjson.dumps(written.finish()).decode()
    assert spec.seed.hex() not in text
    assert spec.salt.hex() not in text


# -- tricks -------------------------------------------------------------------------------------------


def test_a_trick_has_its_cards_in_order_and_the_time_of_each() -> None:
    written = Written(resolve("traversone-003-21"), _deal_of("Ac", "3c", "4c", "2c"))
    # The dealer is seat 0, so seat 1 leads.
    for number, (seat, card) in enumerate([(1, "3c"), (2, "4c"), (3, "2c"), (0, "Ac")]):
        written.play(seat, [PlayCard(parse_card(card))], think_ms=10 + number, network_ms=number)
    (trick,) = written.memory.of("trick")
    assert trick == {
        "game": "g1",
        "attempt": 1,
        "phase": "main",
        "deal": 1,
        "dealt": 1,
        "trick": 1,
        "leader": 1,
        "cards": "3c 4c 2c Ac",
        "winner": 1,
        "thirds": 5,
        "think_ms": [10, 11, 12, 13],
        "net_ms": [0, 1, 2, 3],
    }


def test_signals_stand_beside_the_cards() -> None:
    written = Written(PRESETS["traversone-pairs"])
    seat = written.match.pending[0]
    written.play(seat, [PlayCard(written.match.hand(seat)[0], Signal.STRISCIO)])
    written.finish()
    first, *others = written.memory.of("trick")
    assert first["signals"] == ["striscio", None, None, None]
    assert any("signals" not in trick for trick in others)


def test_declarations_go_with_their_trick() -> None:
    written = Written(PRESETS["tressette-21"], _deal_of("4d", "Ac 2c 3c", "", ""))
    for _ in range(4):
        seat = written.match.pending[0]
        legal = written.match.legal(seat)
        written.play(seat, [*map(_declare, legal.declarations), PlayCard(_first(legal.cards))])
    (trick,) = written.memory.of("trick")
    assert trick["declarations"] == [[1, "napoli", "c", "Ac 2c 3c", 3]]


def _declare(one: Any) -> Action:
    return Declare(one)


def _first(mask: int) -> Card:
    return next(card for card in CARDS if mask >> card & 1)


def test_draws_are_noted_by_seat() -> None:
    written = Written(PRESETS["tressette-due"])
    lines = written.finish()
    draws = [draw for _, line in lines if line.get("deal") == 1 for draw in line.get("draws", ())]
    assert len(draws) == 20
    dealt = next(event for event in written.log if isinstance(event, DealStarted))
    stock = set(CARDS) - {card for hand in dealt.hands for card in CARDS if (hand or 0) >> card & 1}
    assert {parse_card(card) for _, card in draws} == stock
    assert {seat for seat, _ in draws} == {0, 1}


@pytest.mark.parametrize("card", ["4c", "Ad", "Rb"])
def test_a_discard_is_noted_and_shown_in_the_deal(card: str) -> None:
    """Also the asso di denari, which is number 0."""
    written = Written(PRESETS["ciapano-trio"], _deal_of(card, "", "", size=[14, 13, 13]))
    written.play(0, [Discard(parse_card(card))])
    written.finish()
    assert written.memory.of("trick")[0]["discard"] == [[0, card]]
    assert written.memory.of("deal")[0]["set_aside"] == card


def test_nothing_set_aside_is_null() -> None:
    written = Written(resolve("traversone-003-21-duplicate"))
    written.finish()
    assert written.memory.of("deal")[0]["set_aside"] is None


# -- faults -------------------------------------------------------------------------------------------


def test_faults_are_in_the_trick_and_counted_in_the_result() -> None:
    written = Written(resolve("traversone-003-21-duplicate"))
    written.scribe.write(
        [
            FaultCommitted(2, FaultKind.ILLEGAL, FaultEffect.RETRY, "MUST_FOLLOW_SUIT"),
            FaultCommitted(2, FaultKind.ILLEGAL, FaultEffect.SUBSTITUTE, "MUST_FOLLOW_SUIT"),
            FaultCommitted(0, FaultKind.TIMEOUT, FaultEffect.SUBSTITUTE, "MOVE_TIME_EXCEEDED"),
        ]
    )
    written.finish()
    assert written.memory.of("trick")[0]["faults"] == [
        [2, "illegal", "retry", "MUST_FOLLOW_SUIT"],
        [2, "illegal", "substitute", "MUST_FOLLOW_SUIT"],
        [0, "timeout", "substitute", "MOVE_TIME_EXCEEDED"],
    ]
    assert "faults" not in written.memory.of("trick")[1]
    (result,) = written.memory.of("game")
    assert result["faults"] == [["a", "timeout", 1], ["c", "illegal", 2]]


def test_after_a_draw_faults_are_the_bots_not_the_seats() -> None:
    for seed in range(20):
        written = Written(PRESETS["tressette-004-drawn-duplicate"].replace(partners="drawn"), seed)
        if written.match.seating != (0, 1, 2, 3):
            break
    seating = written.match.seating
    seat = next(seat for player, seat in enumerate(seating) if player != seat)
    written.scribe.write([FaultCommitted(seat, FaultKind.TIMEOUT, FaultEffect.SUBSTITUTE, "WHY")])
    written.finish()
    (result,) = written.memory.of("game")
    assert result["faults"] == [["abcd"[seating.index(seat)], "timeout", 1]]
    assert result["bots"] == ["abcd"[seating.index(number)] for number in range(4)]
    (opening,) = written.memory.of("match")
    assert opening["bots"] == ["a", "b", "c", "d"], "as first taken"
    drawn = [event for event in written.log if isinstance(event, PartnersDrawn)]
    assert opening["partners_drawn"][-1]["seats"] == list(seating)
    assert [mask_of(parse_cards(hand)) for hand in opening["partners_drawn"][-1]["hands"]] == list(
        drawn[-1].hands
    )


# -- ends ---------------------------------------------------------------------------------------------


def test_a_call_out_leaves_an_unfinished_trick() -> None:
    written = Written(PRESETS["tressette-004"], 1)
    match = written.match
    played = []
    for _ in range(2):
        seat = match.pending[0]
        played.append(_first(match.legal(seat).cards))
        written.play(seat, [PlayCard(played[-1])])
    caller = match.pending[0]
    written.play(caller, [CallOut()])
    (deal,) = written.memory.of("deal")
    assert deal["call_out"] == [[caller, False]]
    assert deal["ended_by"] == "wrong_call_out"
    assert deal["unfinished"] == " ".join(map(str, played))
    assert deal["last_trick"] is None
    assert written.memory.of("trick") == []


def test_a_void_deal_has_its_line() -> None:
    written = Written(MONTE, 891)
    seat = written.match.pending[1]
    written.play(seat, [CallMonte()])
    (void,) = written.memory.of("void")
    assert (void["deal"], void["dealt"], void["seat"]) == (1, 1, seat)
    assert sum(len(hand.split()) for hand in void["hands"]) == 40
    written.finish()
    assert written.memory.of("trick")[0]["dealt"] >= 2


def test_the_result_of_pairs_and_of_individuals() -> None:
    pairs = Written(PRESETS["tressette-21"], 2)
    pairs.finish()
    (result,) = pairs.memory.of("game")
    assert result["sides"] == [["a", "c"], ["b", "d"]]
    assert len(result["points"]) == len(result["ranks"]) == 2
    alone = Written(PRESETS["ciapano-31"], 2)
    alone.finish()
    (result,) = alone.memory.of("game")
    ended = alone.log[-1]
    assert isinstance(ended, MatchEnded)
    assert result["sides"] == [["a"], ["b"], ["c"], ["d"]]
    assert (result["points"], result["ranks"]) == (list(ended.totals), list(ended.ranks))
    assert result["deals"] == len(alone.memory.of("deal"))
    assert (result["forfeit"], result["offender"]) == (None, None)
    assert (result["duration_ms"], result["ended_unix_ms"]) == (12, 34)


def test_a_forfeit_names_side_and_bot() -> None:
    written = Written(PRESETS["tressette-21"])
    events = written.match.forfeit(3)
    written.scribe.write(events)
    result = written.scribe.committed(1, 2)
    assert (result["termination"], result["forfeit"], result["offender"]) == ("forfeit", 1, "d")


# -- enough to have it back -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "preset", ["traversone-003-21", "ciapano-31", "traversone-pairs", "ciapano-five", "ciapano-trio"]
)
def test_a_deal_can_be_played_again_from_its_lines_alone(preset: str, seed: int) -> None:
    """Hands as dealt and cards as played, counted by hand-written arithmetic, give the recorded totals."""
    written = Written(PRESETS[preset], seed)
    written.finish(seed)
    rules = written.spec.rules
    for deal in written.memory.of("deal"):
        if deal["phase"] != "main":
            continue
        tricks = [line for line in written.memory.of("trick") if _key(line) == _key(deal)]
        hands = [set(parse_cards(hand)) for hand in deal["hands"]]
        active = [seat for seat, hand in enumerate(hands) if hand]
        for seat, card in tricks[0].get("discard", ()):
            hands[seat].remove(parse_card(card))
        thirds = [0] * rules.side_count
        leader = deal["leader"]
        for trick in tricks:
            assert trick["leader"] == leader
            for seat, card in trick.get("draws", ()):
                hands[seat].add(parse_card(card))
            order = active[active.index(leader) :] + active[: active.index(leader)]
            for seat, card in zip(order, parse_cards(trick["cards"]), strict=True):
                hands[seat].remove(card)
            leader = trick["winner"]
            thirds[rules.side_of(leader)] += trick["thirds"]
        assert not any(hands)
        if deal["set_aside"]:
            thirds[rules.side_of(leader)] += _thirds(deal["set_aside"])
        assert thirds == [0 if side is None else side["thirds"] for side in deal["sides"]]
        assert deal["last_trick"] == rules.side_of(leader)


def _key(line: Line) -> tuple[Any, ...]:
    return line["phase"], line["deal"], line["dealt"]


def _thirds(card: str) -> int:
    return {"A": 3, "2": 1, "3": 1, "R": 1, "C": 1, "F": 1}.get(card[0], 0)


@pytest.mark.parametrize(
    "preset", ["tressette-21", "tressette-004-drawn", "ciapano-trio", "traversone-pairs"]
)
def test_the_recorded_cards_drive_a_new_match_to_the_recorded_result(preset: str) -> None:
    """The same decks and the answers in the lines give the same events."""
    written = Written(PRESETS[preset], 7)
    written.finish(7)
    again = Match(written.spec.rules, seeded((7).to_bytes(32, "big")))
    log = again.start()
    cards = iter(
        card
        for kind, line in written.memory.lines
        if kind in ("trick", "deal")
        for card in parse_cards(line["cards"] if kind == "trick" else line["unfinished"])
    )
    noted = [line for kind, line in written.memory.lines if kind in ("trick", "deal")]
    declared = iter([tuple(one) for line in noted for one in map(_named, line.get("declarations", ()))])
    pending = next(declared, None)
    discards = iter([one for line in noted for one in line.get("discard", ())])
    signals = iter(
        [signal for kind, line in written.memory.lines if kind == "trick" for signal in _signals(line)]
    )
    outs = [seat for line in noted for seat, _ in line.get("call_out", ())]
    while not again.over:
        seat = again.pending[0]
        legal = again.legal(seat)
        if legal.discards:
            log += again.act(seat, [Discard(parse_card(next(discards)[1]))])
            continue
        made: list[Action] = []
        for one in legal.declarations:
            if pending == (seat, one.kind, one.of):
                made.append(_declare(one))
                pending = next(declared, None)
        assert not outs, "choose a seed without a call-out"
        signal = next(signals)
        log += again.act(seat, [*made, PlayCard(next(cards), Signal(signal) if signal else None)])
    assert log == written.log


def _named(one: Sequence[Any]) -> Sequence[Any]:
    return one[:3]


def _signals(line: Line) -> list[str | None]:
    return line.get("signals") or [None] * len(line["cards"].split())


# -- the game itself --------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_game_survives_the_trip_through_json(preset: str) -> None:
    spec = game_spec(rules=PRESETS[preset], seed=bytes(range(32)))
    again = GameSpec.from_json(orjson.loads(orjson.dumps(spec.to_json())))
    assert again.rules.hash() == spec.rules.hash()
    assert again.to_json() == spec.to_json()
    assert again.commitment == spec.commitment


def test_the_commitment_binds_seed_and_salt() -> None:
    spec = game_spec()
    other_seed = game_spec(seed=bytes(31) + b"\1")
    assert spec.commitment != other_seed.commitment
    assert len(spec.commitment) == 64
    assert game_spec("another game", bots="dcba").commitment == spec.commitment


def test_a_game_is_dealt_under_its_suits() -> None:
    spec = game_spec(rules=resolve("traversone-003-21-duplicate"))
    other = game_spec("g2", rules=spec.rules)
    assert spec.suits != other.suits
    for one in (spec, other):
        deck = seeded(one.seed)(Phase.MAIN, 1, 1, CARDS)
        assert list(one.decks(Phase.MAIN, 1, 1, CARDS)) == [exchanged(one.suits)[card] for card in deck]


def test_secrets_differ_by_everything_but_the_attempt() -> None:
    secrets = {
        seat_secret(key, purpose, spec, seat)
        for key in (KEY, bytes(32))
        for purpose in ("handle-1", "bot_seed")
        for spec in (game_spec("g"), game_spec("h"))
        for seat in range(4)
    }
    assert len(secrets) == 32
    assert seat_secret(KEY, "x", game_spec(attempt=1), 0) == seat_secret(KEY, "x", game_spec(attempt=9), 0)
