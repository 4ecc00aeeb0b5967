"""``tressette reveal``: what an arena has revealed, and whether games were dealt from it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.bots import Table
from support.certificates import self_signed
from support.processes import run as run_process
from support.recorded import random_answer, spec_of
from support.streams import serving
from tressette.cli import main
from tressette.record.game import GameSpec
from tressette.record.reveals import Reveal, Reveals, hand_matches
from tressette.record.scribe import Scribe
from tressette.record.writer import Record
from tressette.rules.events import DealStarted
from tressette.rules.match import Match
from tressette.rules.presets import PRESETS
from tressette_bot import Bot, Card, Refused, View, dealt_line, fetch_reveals
from tressette_bot.bots import REFERENCE_BOTS

PRESET = "traversone-003-21-duplicate"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["reveal", *map(str, arguments)])


def play(
    folder: Path, games: int, preset: str = PRESET, dealt: Callable[[GameSpec], GameSpec] = lambda s: s
) -> list[GameSpec]:
    """Record games of random play; ``dealt`` may deal one from elsewhere than the record will say."""
    chance = random.Random(preset)
    record = Record(folder, "0001")
    specs = []
    for number in range(games):
        spec = spec_of(PRESETS[preset], f"g{number}", chance.randbytes(32), preset)
        scribe = Scribe(record, spec, ["1.0"] * spec.rules.players)
        match = Match(spec.rules, dealt(spec).decks)
        scribe.write(match.start())
        while not match.over:
            seat = chance.choice(match.pending)
            scribe.write(match.act(seat, random_answer(match.legal(seat), chance)))
        scribe.committed(1, 2)
        specs.append(spec)
    record.close()
    return specs


def reveal(path: Path, specs: list[GameSpec]) -> Path:
    path.write_text("".join(json.dumps(Reveal.of(spec).to_json()) + "\n" for spec in specs))
    return path


# -- verify -------------------------------------------------------------------------------------------


def test_games_that_were_dealt_from_their_decks(tmp_path: Path) -> None:
    specs = play(tmp_path / "run", 3)
    result = run("verify", tmp_path / "run", "--reveals", reveal(tmp_path / "reveals", specs))
    assert (result.exit_code, result.output) == (0, "revealed: 3\ngames: 3 right, 0 not revealed\n")


def test_games_that_are_not_revealed_yet_are_counted(tmp_path: Path) -> None:
    specs = play(tmp_path / "run", 3)
    result = run("verify", tmp_path / "run", "--reveals", reveal(tmp_path / "reveals", specs[:1]))
    assert (result.exit_code, result.output) == (0, "revealed: 1\ngames: 1 right, 2 not revealed\n")


def test_the_reveals_may_lie_in_the_folder(tmp_path: Path) -> None:
    reveals = Reveals(tmp_path, "0001")
    reveals.add(map(Reveal.of, play(tmp_path, 2)))
    reveals.close()
    assert run("verify", tmp_path).output == "revealed: 2\ngames: 2 right, 0 not revealed\n"


def test_a_game_dealt_from_another_deck_is_named(tmp_path: Path) -> None:
    def cheat(spec: GameSpec) -> GameSpec:
        return spec if spec.game != "g1" else spec_of(spec.rules, spec.game, bytes(32), spec.preset)

    specs = play(tmp_path / "run", 3, dealt=cheat)
    result = run("verify", tmp_path / "run", "--reveals", reveal(tmp_path / "reveals", specs))
    assert result.exit_code == 1
    assert "g1: " in result.output
    assert "games: 2 right" in result.output
    assert "Error: 1 wrong" in result.output


def test_a_reveal_that_opens_nothing_is_refused_with_its_line(tmp_path: Path) -> None:
    (spec,) = play(tmp_path / "run", 1)
    false = Reveal.of(spec).to_json() | {"seed": "00" * 32}
    (tmp_path / "reveals").write_text(json.dumps(false) + "\n")
    result = run("verify", tmp_path / "run", "--reveals", tmp_path / "reveals")
    assert result.exit_code == 1
    assert "line 1" in result.output
    assert spec.commitment in result.output


def test_one_commitment_by_hand(tmp_path: Path) -> None:
    spec = spec_of(PRESETS[PRESET], "g", bytes(range(32)))
    opening = ("--seed", spec.seed.hex(), "--salt", spec.salt.hex())
    assert run("verify", *opening, "--commitment", spec.commitment).exit_code == 0
    wrong = run("verify", *opening, "--commitment", "00" * 32)
    assert wrong.exit_code == 1
    assert "nothing opens it" in wrong.output


def test_seed_and_salt_serve_for_a_folder_too(tmp_path: Path) -> None:
    specs = play(tmp_path, 2)
    result = run("verify", tmp_path, "--seed", specs[1].seed.hex(), "--salt", specs[1].salt.hex())
    assert (result.exit_code, result.output) == (0, "revealed: 1\ngames: 1 right, 1 not revealed\n")


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ((), 2, "nothing was revealed"),
        (("--seed", "00" * 32), 2, "--salt are needed together"),
        (("--seed", "00", "--salt", "00"), 2, "1 bytes instead of 32"),
        (("--seed", "zz", "--salt", "00"), 2, "not hexadecimal"),
        (("--commitment", "00"), 2, "1 bytes instead of 32"),
        (("no-such-folder",), 2, "does not exist"),
    ],
)
def test_a_wrong_command_line(arguments: tuple[str, ...], status: int, text: str) -> None:
    result = run("verify", *arguments)
    assert (result.exit_code, text in result.output) == (status, True), result.output


def test_nothing_to_check_is_no_success(tmp_path: Path) -> None:
    play(tmp_path / "run", 1)
    other = spec_of(PRESETS[PRESET], "other", bytes(32))
    for arguments in (
        (tmp_path / "run",),
        (tmp_path / "run", "--reveals", reveal(tmp_path / "r", [other])),
        ("--reveals", reveal(tmp_path / "none", [])),
    ):
        result = run("verify", *arguments)
        assert result.exit_code == 1
        assert "nothing that was to be checked is revealed" in result.output


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    specs = play(tmp_path / "run", 1)
    path = tmp_path / "run" / "tricks-0001-0001.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"winner":1', b'"winner":2', 1))
    result = run("verify", tmp_path / "run", "--reveals", reveal(tmp_path / "r", specs))
    assert result.exit_code == 1
    assert "tricks-0001-0001.jsonl" in result.output


# -- what a bot wrote down ----------------------------------------------------------------------------


class Keeper(Bot):
    """Plays the first legal card and writes down what it was dealt."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def choose(self, view: View) -> Card:
        line = dealt_line(view)
        if line not in self.lines:
            self.lines.append(line)
        return view.legal[0]


def kept(spec: GameSpec) -> list[dict[str, Any]]:
    """What four keepers wrote down of a game."""
    table = Table(spec.rules, spec.seed, suits=spec.suits, commitment=bytes.fromhex(spec.commitment))
    keepers = [Keeper() for _ in table.views]
    table.play(keepers)
    hands = sum(
        (hand or 0) != 0 for event in table.log if isinstance(event, DealStarted) for hand in event.hands
    )
    lines = [line for keeper in keepers for line in keeper.lines]
    voided = sum(type(event).__name__ == "DealVoided" for event in table.log)
    assert len(lines) >= hands - voided * spec.rules.players
    return [json.loads(json.dumps(line)) for line in lines]


@pytest.mark.parametrize(
    "preset",
    [
        *("traversone-003-21", "tressette-004", "tressette-due", "ciapano-trio", "traversone-trio"),
        *("ciapano-five", "tressette-21", "ciapano-31"),
    ],
)
def test_every_hand_that_a_bot_was_dealt_is_from_the_deck(preset: str) -> None:
    spec = spec_of(PRESETS[preset], "g0", random.Random(preset).randbytes(32), preset)
    lines = kept(spec)
    assert {line["commitment"] for line in lines} == {spec.commitment}
    for line in lines:
        assert hand_matches(line, Reveal.of(spec)) is None
        other = {**line, "hand": " ".join([*line["hand"].split()[1:], "zz"])}
        with pytest.raises(ValueError, match="no dealt hand"):
            hand_matches(other, Reveal.of(spec))
        assert hand_matches({**line, "deal": line["deal"] + 1}, Reveal.of(spec)) is not None
        # An event draws a deck for its rules: whoever may name others may choose among decks.
        of_others = hand_matches(line, replace(Reveal.of(spec), rules_hash="0" * 64))
        assert "the deck was revealed for 000" in str(of_others)


def test_hands_that_were_kept_are_checked(tmp_path: Path) -> None:
    spec = spec_of(PRESETS[PRESET], "g0", bytes(range(32)), PRESET)
    other = spec_of(PRESETS[PRESET], "g1", bytes(32), PRESET)
    file = tmp_path / "hands.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in kept(spec) + kept(other)[:1]))
    reveals = reveal(tmp_path / "reveals", [spec])
    result = run("verify", "--reveals", reveals, "--hands", file)
    assert (result.exit_code, result.output) == (0, "revealed: 1\nhands: 4 right, 1 not revealed\n")
    false = Reveal("g2", "d", "r", spec.seed, spec.salt).to_json()  # the suits of another game
    reveals.write_text(json.dumps(false) + "\n")
    result = run("verify", "--reveals", reveals, "--hands", file)
    assert result.exit_code == 1
    assert "hand in line 1" in result.output


@pytest.mark.parametrize("line", ["{", "[]", "[" * 100_000, '{"commitment": "%s"}'])
def test_lines_that_are_no_hands(tmp_path: Path, line: str) -> None:
    spec = spec_of(PRESETS[PRESET], "g0", bytes(32), PRESET)
    file = tmp_path / "hands.jsonl"
    file.write_text(line.replace("%s", spec.commitment) + "\n")
    result = run("verify", "--reveals", reveal(tmp_path / "r", [spec]), "--hands", file)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)


# -- fetch --------------------------------------------------------------------------------------------


async def fetched(address: str, *arguments: str) -> tuple[int, str, str]:
    """Status, output and error output of a process of its own."""
    return await run_process("-m", "tressette", "reveal", "fetch", "--address", address, *arguments)


async def test_what_is_fetched_can_be_verified(tmp_path: Path) -> None:
    specs = play(tmp_path / "run", 3)
    reveals = Reveals(tmp_path / "arena", "0001")
    reveals.add(map(Reveal.of, specs))
    async with serving(reveals=reveals) as running:
        everything = await fetched(running.address)
        one = await fetched(running.address, "--commitment", specs[2].commitment)
    reveals.close()
    assert (everything[0], everything[2], one[0]) == (0, "", 0)
    (tmp_path / "fetched").write_text(everything[1])
    assert run("verify", tmp_path / "run", "--reveals", tmp_path / "fetched").exit_code == 0
    assert [json.loads(line)["game"] for line in one[1].splitlines()] == ["g2"]


async def test_many_pages_are_fetched_whole(tmp_path: Path) -> None:
    reveals = Reveals(tmp_path, "0001")
    reveals.add(Reveal(f"g{n}", "d", "r", n.to_bytes(32, "big"), bytes(32)) for n in range(2500))
    async with serving(reveals=reveals) as running:
        found = await asyncio.to_thread(lambda: list(fetch_reveals(running.address)))
        named = [bytes.fromhex(one.commitment.hex()) for one in found]
        again = await asyncio.to_thread(lambda: list(fetch_reveals(running.address, commitments=named)))
    reveals.close()
    assert [one.game for one in found] == [f"g{n}" for n in range(2500)]
    assert again == found


async def test_a_proxy_is_not_asked_for_the_loopback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_grpc_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    reveals = Reveals(tmp_path, "0001")
    async with serving(reveals=reveals) as running:
        assert await asyncio.to_thread(lambda: list(fetch_reveals(running.address))) == []
    reveals.close()


async def test_refusals_are_a_line_and_a_status(tmp_path: Path) -> None:
    async with serving(tokens={"secret": "mine"}) as running:
        no_record = await fetched(running.address)
        bad_token = await fetched(running.address, "--token", "wrong")
        with pytest.raises(Refused, match="UNAUTHENTICATED"):
            await asyncio.to_thread(lambda: list(fetch_reveals(running.address, "wrong")))
    nobody = await fetched("127.0.0.1:1")
    for (status, output, errors), text in (
        (no_record, "keeps no record"),
        (bad_token, "token"),
        (nobody, "no arena at"),
    ):
        assert (status, output) == (1, "")
        assert text in errors
    pair = await self_signed(tmp_path)
    alone = await fetched("127.0.0.1:1", "--tls-cert", str(pair.cert))
    assert alone[0] == 2


def test_the_reference_bots_may_keep_their_hands_too() -> None:
    spec = spec_of(PRESETS[PRESET], "g0", bytes(range(32)), PRESET)
    table = Table(spec.rules, spec.seed, suits=spec.suits, commitment=bytes.fromhex(spec.commitment))
    table.play([REFERENCE_BOTS["cautious"]() for _ in table.views])
    for view in table.views:
        view.take(table.update(view.seat))
        assert view.suits == ""  # a table without an arena tells none
        assert hand_matches(dealt_line(view), Reveal.of(spec)) is None
