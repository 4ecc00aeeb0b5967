"""The reference bots play by the rules of every preset, repeatably, and better than chance."""

from __future__ import annotations

import random

import pytest
from click.testing import CliRunner
from support.bots import Table
from tressette.rules.actions import Signal
from tressette.rules.cards import Card
from tressette.rules.events import (
    CalledOut,
    CardDiscarded,
    CardPlayed,
    DealVoided,
    DeclarationMade,
    MatchEnded,
)
from tressette.rules.presets import PRESETS, resolve
from tressette_bot.bot import Bot
from tressette_bot.bots import REFERENCE_BOTS
from tressette_bot.cli import bot as command
from tressette_bot.view import View

BOTS = {name: kind() for name, kind in REFERENCE_BOTS.items()}


@pytest.mark.parametrize("name", REFERENCE_BOTS)
@pytest.mark.parametrize("preset", [name for name in PRESETS if not name.endswith("-duplicate")])
def test_plays_every_preset_to_the_end(preset: str, name: str) -> None:
    """The engine refuses anything illegal, which would fail the test."""
    rules = PRESETS[preset]
    ended = Table(rules, b"every preset to the end, please.").play([BOTS[name]] * rules.players)
    assert 1 in ended.ranks


@pytest.mark.parametrize("name", REFERENCE_BOTS)
def test_same_seed_same_play(name: str) -> None:
    def log(bot_seed: bytes) -> object:
        table = Table(PRESETS["tressette-21-duplicate"], bytes(32), bot_seed)
        table.play([REFERENCE_BOTS[name]() for _ in range(4)])
        return table.log

    assert log(b"a") == log(b"a")
    assert (log(b"a") != log(b"b")) == (name == "random")


def _pairs(us: Bot, them: Bot, decks: int) -> tuple[float, float]:
    """(share of deals won, mean margin in points) of a pair, each deck played from both sides."""
    rng, won, margin = random.Random(5), 0, 0
    for _ in range(decks):
        seed = rng.randbytes(32)
        for ours in (0, 1):
            bots = [us if seat % 2 == ours else them for seat in range(4)]
            totals = Table(PRESETS["tressette-21-duplicate"], seed).play(bots).totals
            margin += totals[ours] - totals[1 - ours]
            won += totals[ours] > totals[1 - ours]
    return won / (2 * decks), margin / 6 / (2 * decks)


def _alone(one: Bot, others: Bot, decks: int) -> tuple[float, float]:
    """(share of first places, own minus the others' mean points) of one, each deck from all seats."""
    rng, first, more = random.Random(5), 0.0, 0.0
    for _ in range(decks):
        seed = rng.randbytes(32)
        for seat in range(4):
            bots = [others] * 4
            bots[seat] = one
            ended: MatchEnded = Table(PRESETS["traversone-003-21-duplicate"], seed).play(bots)
            if ended.ranks[seat] == 1:
                first += 1 / ended.ranks.count(1)
            more += (4 * ended.totals[seat] - sum(ended.totals)) / 3 / 6
    return first / (4 * decks), more / (4 * decks)


@pytest.mark.parametrize("chance", ["random", "first_legal"])
def test_greedy_pair_beats_chance_in_tressette(chance: str) -> None:
    won, margin = _pairs(BOTS["greedy"], BOTS[chance], 100)
    assert won > 0.65
    assert margin > 3.0


@pytest.mark.parametrize("chance", ["random", "first_legal"])
def test_cautious_beats_chance_in_traversone(chance: str) -> None:
    first, more = _alone(BOTS["cautious"], BOTS[chance], 50)
    assert first > 0.4
    assert more < -1.2


class _Talkative(Bot):
    """Uses everything that the rules offer."""

    def choose(self, view: View) -> Card:
        """The last legal card."""
        return view.legal[-1]

    def signal(self, view: View, card: Card) -> Signal:
        """Always the same."""
        return Signal.BUSSO


def test_declares_whatever_is_worth_points() -> None:
    tables = [Table(resolve("tressette-21"), bytes([seed]) * 32) for seed in range(3)]
    for table in tables:
        table.play([BOTS["random"]] * 4)
    assert any(isinstance(event, DeclarationMade) for table in tables for event in table.log)


def test_calls_out_exactly_when_it_is_right() -> None:
    calls = []
    for seed in range(10):
        table = Table(resolve("tressette-004"), bytes([seed]) * 32)
        table.play([BOTS["greedy"]] * 4)
        calls += [event.right for event in table.log if isinstance(event, CalledOut)]
    assert calls
    assert all(calls)


@pytest.mark.parametrize(
    ("preset", "voids"), [("tressette-21-duplicate", True), ("traversone-003-21", False)]
)
def test_voids_a_poor_hand_only_where_points_are_wanted(preset: str, voids: bool) -> None:
    voided = asked = 0
    for number in range(400):
        table = Table(resolve(preset, monte="on_request"), number.to_bytes(32, "big"))
        if table.match.legal(table.match.pending[0]).monte:
            asked += 1
            table.ask(table.match.pending[0], BOTS["random"])
            voided += any(isinstance(event, DealVoided) for event in table.log)
    assert asked
    assert voided == (asked if voids else 0)


def test_dealer_of_three_sets_the_strongest_card_aside_where_points_are_avoided() -> None:
    table = Table(resolve("ciapano-trio"), bytes(32))
    dealt = table.match.hand(0)
    table.ask(0, BOTS["random"])
    event = table.log[-1]
    assert isinstance(event, CardDiscarded)
    assert event.card == max(dealt, key=lambda card: ((3, 4, 5, 6, 7, 8, 9, 0, 1, 2).index(card % 10), -card))


def test_leaders_signal_where_the_rules_have_signals() -> None:
    table = Table(resolve("traversone-pairs-duplicate"), bytes(32))
    table.play([_Talkative()] * 4)
    signals = [event.signal for event in table.log if isinstance(event, CardPlayed)]
    assert signals.count(Signal.BUSSO) == 10
    table.views[0].take(table.update(0))
    assert all(trick.signal is Signal.BUSSO for trick in table.views[0].deal.tricks)


def test_help_names_every_bot_and_option() -> None:
    result = CliRunner().invoke(command, ["--help"])
    assert result.exit_code == 0
    for word in (*REFERENCE_BOTS, "--address", "--token", "--label", "--max-matches", "--tls-root"):
        assert word in result.output


def test_unknown_name_is_refused_with_the_nearest() -> None:
    result = CliRunner().invoke(command, ["greedi", "--address", "127.0.0.1:1"])
    assert result.exit_code == 2
    assert "did you mean 'greedy'" in result.output
    result = CliRunner().invoke(command, ["zzz", "--address", "127.0.0.1:1"])
    assert "cautious" in result.output
