"""Matches of random legal play, written down by a scribe as a running game would be."""

from __future__ import annotations

import random
from pathlib import Path

from tressette.record.game import GameSpec
from tressette.record.scribe import Scribe
from tressette.record.writer import Record
from tressette.rules.actions import Action, CallMonte, CallOut, Declare, Discard, Legal, PlayCard, Signal
from tressette.rules.cards import cards_of
from tressette.rules.deck import seeded
from tressette.rules.events import Event
from tressette.rules.match import Match
from tressette.rules.ruleset import RuleSet


def random_answer(legal: Legal, rng: random.Random) -> list[Action]:
    """Any legal answer; every kind of decision is taken now and then."""
    if legal.monte:
        return [CallMonte()] if rng.random() < 0.7 else []
    if legal.discards:
        return [Discard(rng.choice(cards_of(legal.discards)))]
    answer: list[Action] = [Declare(one) for one in legal.declarations if rng.random() < 0.7]
    if legal.call_out and rng.random() < 0.01:
        answer.append(CallOut())
    elif legal.cards:
        signal = rng.choice([None, *Signal]) if legal.signals else None
        answer.append(PlayCard(rng.choice(cards_of(legal.cards)), signal))
    return answer


def spec_of(rules: RuleSet, game: str, seed: bytes = bytes(32), preset: str = "test") -> GameSpec:
    """A game of bots b0, b1, ..."""
    return GameSpec(
        game=game,
        attempt=1,
        tournament="t",
        preset=preset,
        rules=rules,
        bots=tuple(f"b{seat}" for seat in range(rules.players)),
        deal_set=f"{game}-set",
        set_size=1,
        deck="d",
        seed=seed,
        salt=bytes(32),
    )


def record_random_game(record: Record, rules: RuleSet, game: str, rng: random.Random) -> list[Event]:
    """Play and record a game; returns its events."""
    spec = spec_of(rules, game, rng.randbytes(32))
    scribe = Scribe(record, spec, ["1.0"] * rules.players)
    match = Match(rules, seeded(spec.seed))
    log = match.start()
    scribe.write(log)
    while not match.over:
        seat = rng.choice(match.pending)
        events = match.act(seat, random_answer(match.legal(seat), rng))
        scribe.write(events, think_ms=rng.randrange(50))
        log += events
    scribe.committed(duration_ms=1, ended_unix_ms=2)
    return log


def random_record(folder: Path, games: dict[str, RuleSet], seed: int = 1) -> dict[str, list[Event]]:
    """A record of one game for each entry, by one writer; returns the events by game."""
    rng = random.Random(seed)
    record = Record(folder, "0001")
    events = {game: record_random_game(record, rules, game, rng) for game, rules in games.items()}
    record.close()
    return events
