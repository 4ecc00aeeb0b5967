"""Tournament files: what is filled in, what is refused and how that reads, and the way back to TOML."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tressette.rules.events import FaultEffect, FaultKind
from tressette.rules.presets import PRESETS, resolve
from tressette.rules.ruleset import FixedDeals
from tressette_tournament import tournament_file
from tressette_tournament.lineups import Copies, Pairs, Seatings
from tressette_tournament.sprt import Model, Sprt
from tressette_tournament.stop_rules import Stop
from tressette_tournament.toml_source import TournamentFileError
from tressette_tournament.tournament_file import (
    SPRT_SETS,
    Bot,
    Clock,
    Faults,
    Format,
    Isolation,
    Place,
    PresetChoice,
    Tournament,
    dump,
    load,
    parse,
)

REFERENCE = ("greedy", "random", "cautious")
FOLDER = Path("/events")

EVENT = """\
[tournament]
name = "cup"
presets = ["tressette-due-duplicate"]
deal_sets = 10
"""
BOTS = """\
[[bots]]
name = "ada"
bot = "greedy"
[[bots]]
name = "bob"
command = ["python", "bob.py"]
"""


def read(text: str) -> Tournament:
    return parse(text, file="cup.toml", folder=FOLDER, reference_bots=REFERENCE)


def refused(text: str) -> TournamentFileError:
    with pytest.raises(TournamentFileError) as caught:
        read(text)
    return caught.value


def only_problem(text: str) -> TournamentFileError:
    error = refused(text)
    assert error.others == (), str(error)
    return error


def event_with(*lines: str, bots: str = BOTS) -> str:
    """A sound file but for these lines at the end of [tournament], from line 5."""
    return "\n".join([EVENT.rstrip("\n"), *lines, bots])


# --- what is read ----------------------------------------------------------------------------------


def test_defaults_are_filled_in() -> None:
    assert read(EVENT + BOTS) == Tournament(
        name="cup",
        format=Format.ROUND_ROBIN,
        presets=(PresetChoice("tressette-due-duplicate", (), PRESETS["tressette-due-duplicate"]),),
        deal_sets=10,
        rounds=0,
        extra_sets=0,
        seatings=Seatings.CYCLIC,
        pairs=Pairs.COPIES,
        copies=Copies.NONE,
        common_deals=True,
        seed=None,
        isolation=Isolation.RELABEL,
        reveal_sets=100,
        window=64,
        concurrency=32,
        output="/events/cup-run",
        max_tables=1000,
        stop=Stop(),
        sprt=None,
        clock=Clock(2000, 0, 0, 100),
        faults=Faults(1, 0, ()),
        place=Place("127.0.0.1:0", None, None, None, None, 60, 300),
        bots=(
            Bot("ada", "greedy", (), None, (), 1),
            Bot("bob", None, ("python", "bob.py"), "/events", (), 1),
        ),
    )


def test_the_example_of_the_module_is_a_tournament() -> None:
    example = str(tournament_file.__doc__).split("::\n\n")[1].split("\n\n1.")[0]
    found = read(textwrap.dedent(example))
    assert found.presets[0].options == (("deals", 4),)
    assert [bot.name for bot in found.bots] == ["mine", "house", "guest"]
    plain = read(EVENT + BOTS)
    for default in ("format", "seatings", "pairs", "copies", "common_deals", "concurrency", "max_tables"):
        assert getattr(found, default) == getattr(plain, default)


def test_everything_can_be_given() -> None:
    text = """
    [tournament]
    name = "The cup"
    format = "round-robin"
    presets = ["ciapano", "traversone-pairs-duplicate"]
    deal_sets = 3
    seatings = "all"
    pairs = "mixed"
    copies = "halves"
    common_deals = false
    seed = "nonna"
    concurrency = 4
    output = "out/1"
    max_tables = 99
    isolation = "fresh"
    reveal_sets = 7
    window = 9
    [clock]
    move_ms = 1
    bank_ms = 2
    increment_ms = 3
    allowance_ms = 4
    [faults]
    illegal_retries = 0
    strikes = 5
    timeout = "forfeit"
    not_your_turn = "none"
    [server]
    listen = "[::1]:50051"
    away_s = 6
    [preset_options.ciapano]
    threshold = 41
    [preset_options."traversone-pairs-duplicate"]
    deals = 4
    signals = "off"
    [[bots]]
    name = "a"
    command = ["./a"]
    directory = "bots/a"
    environment = { LANG = "C", "odd key" = "" }
    instances = 7
    restarts = 0
    start_limit_s = 8
    nice = 19
    cpus = [1, 0, 1]
    [[bots]]
    name = "b"
    bot = "random"
    [[bots]]
    name = "c"
    bot = "random"
    [[bots]]
    name = "d"
    bot = "random"
    """
    found = read(textwrap.dedent(text))
    assert [preset.name for preset in found.presets] == ["ciapano-31", "traversone-pairs-duplicate"]
    assert found.presets[0].rules == resolve("ciapano-31", threshold=41)
    assert found.presets[1].rules.end == FixedDeals(4)
    assert found.presets[1].options == (("deals", 4), ("signals", "off"))
    assert (found.seatings, found.pairs, found.copies) == (Seatings.ALL, Pairs.MIXED, Copies.HALVES)
    assert (found.common_deals, found.seed, found.concurrency) == (False, "nonna", 4)
    assert (found.output, found.max_tables) == ("/events/out/1", 99)
    assert (found.isolation, found.reveal_sets, found.window) == (Isolation.FRESH, 7, 9)
    assert found.clock == Clock(1, 2, 3, 4)
    policies = ((FaultKind.NOT_YOUR_TURN, FaultEffect.NONE), (FaultKind.TIMEOUT, FaultEffect.FORFEIT))
    assert found.faults == Faults(0, 5, policies)
    assert (found.place.listen, found.place.away_s) == ("[::1]:50051", 6)
    assert found.bots[0] == Bot(
        "a",
        None,
        ("./a",),
        "/events/bots/a",
        (("LANG", "C"), ("odd key", "")),
        instances=7,
        restarts=0,
        start_limit_s=8,
        nice=19,
        cpus=(0, 1),
    )


REMOTE = """\
[server]
tokens = "tokens.json"
[[bots]]
name = "guest"
remote = true
"""


def test_a_remote_bot_meets_a_deck_once_unless_the_file_says_otherwise() -> None:
    found = read(EVENT + BOTS + REMOTE)
    assert (found.seatings, found.common_deals) == (Seatings.ONCE, False)
    assert found.bots[2] == Bot("guest", None, (), None, (), 0, remote=True, restarts=0, start_limit_s=300)
    asked = read(event_with('seatings = "all"', "common_deals = true") + REMOTE)
    assert (asked.seatings, asked.common_deals) == (Seatings.ALL, True)


SPRT = """\
[sprt]
elo0 = -2.5
elo1 = 3
beta = 0.1
model = "normalized"
"""


def test_an_sprt_fills_tables_of_individuals_with_copies() -> None:
    text = (EVENT + BOTS + SPRT).replace("deal_sets = 10", 'format = "sprt"')
    assert read(text).copies is Copies.NONE
    found = read(text.replace("tressette-due-duplicate", "ciapano"))
    assert (found.copies, found.deal_sets) == (Copies.ONE_AGAINST_REST, SPRT_SETS)
    assert found.sprt == Sprt(-2.5, 3.0, 0.05, 0.1, Model.NORMALIZED)
    assert parse(dump(found), file="x", folder=FOLDER, reference_bots=REFERENCE) == found


@pytest.mark.parametrize("format_", [Format.GAUNTLET, Format.SWISS, Format.KNOCKOUT, Format.LADDER])
def test_every_format_round_trips(format_: Format) -> None:
    text = event_with(f'format = "{format_}"')
    if format_ is Format.SWISS:
        text = text.replace("deal_sets", "rounds = 5\ndeal_sets")
    if format_ is Format.GAUNTLET:
        text += "challenger = true\n"
    found = read(text)
    assert found.format is format_
    assert parse(dump(found), file="x", folder=FOLDER, reference_bots=REFERENCE) == found


@pytest.mark.parametrize(
    ("lines", "key", "message"),
    [
        (['format = "swiss"'], "tournament.rounds", "missing, must be a whole number from 1 to 1000"),
        (["rounds = 3"], "tournament.rounds", "no effect: only for swiss"),
        (["extra_sets = 3"], "tournament.extra_sets", "no effect: only for knockout"),
        (
            ['format = "ladder"', "max_tables = 3"],
            "tournament.max_tables",
            "only for round-robin and gauntlet",
        ),
        (['format = "gauntlet"'], "bots", "gauntlet needs a bot with challenger = true"),
        (
            ['format = "sprt"', *SPRT.splitlines(), "[[bots]]", 'name = "c"', 'bot = "greedy"'],
            "bots",
            "the file has 3",
        ),
        (['format = "sprt"'], "sprt.elo0", "missing, must be a number from -1000 to 1000"),
        (['format = "sprt"', "[sprt]", "elo0 = 1", "elo1 = 1"], "sprt.elo1", "is not more than elo0"),
        (['format = "sprt"', "[sprt]", "elo0 = 1", "elo1 = nan"], "sprt.elo1", "nan is not a number"),
        (['format = "sprt"', "[sprt]", "elo0 = 0", "elo1 = 1", "alpha = 0"], "sprt.alpha", "not above 0"),
        (['format = "sprt"', "[sprt]", 'model = "logistik"'], "sprt.model", "is not one of"),
        (["[sprt]", "elo0 = 1"], "sprt", 'no effect: only for format = "sprt"'),
        (['format = "sprt"', 'copies = "halves"', *SPRT.splitlines()], "tournament.copies", "of one shape"),
        (["[stop]", "games = 0"], "stop.games", "0 is not a whole number"),
        (["[stop]", "minutes = true"], "stop.minutes", "true is not a number from 0.01"),
        (["[stop]", "minute = 3"], "stop.minute", "unknown key"),
        (["[server]", 'certificate = "c"'], "server.certificate", "certificate and key belong together"),
        (["[server]", 'client_ca = "c"'], "server.client_ca", "no effect without certificate and key"),
        (["[server]", 'listen = "here"'], "server.listen", "'here' is not HOST:PORT"),
        (["[server]", "grace_s = 3"], "server.grace_s", "no effect without a remote bot"),
        (["[faults]", 'timeout = "none"'], "faults.timeout", "'none' is not one of: substitute, forfeit"),
        (["[faults]", "crash = 3"], "faults.crash", "3 is not one of"),
        (["[faults]", 'timeuot = "forfeit"'], "faults.timeuot", "unknown key"),
        (["[clock]", "move_ms = 0", "increment_ms = 3"], "clock.increment_ms", "no effect without"),
    ],
)
def test_what_formats_and_places_refuse(lines: list[str], key: str, message: str) -> None:
    error = refused(event_with(*lines))
    problems = (error, *error.others)
    assert (key, True) in [(problem.key, message in problem.message) for problem in problems]


@pytest.mark.parametrize(
    ("change", "key", "message"),
    [
        (('tokens = "tokens.json"\n', ""), "server.tokens", "missing: remote bots (guest)"),
        (("[server]", '[server]\nlisten = "0.0.0.0:1"'), "server.listen", "needs certificate and key"),
        (("remote = true", "remote = true\ninstances = 2"), "bots[2].instances", "is not started here"),
        (("remote = true", 'remote = true\nbot = "greedy"'), "bots[2]", "needs one of bot"),
        (("remote = true", "remote = true\nchallenger = true"), "bots[2].challenger", "only for gauntlet"),
    ],
)
def test_what_remote_bots_need(change: tuple[str, str], key: str, message: str) -> None:
    problem = only_problem(EVENT + BOTS + REMOTE.replace(*change))
    assert problem.key == key
    assert message in problem.message


@pytest.mark.parametrize(
    ("presets", "options", "needed"),
    [
        (["tressette-due"], [], 1),
        (["tressette-due", "tressette-11"], [], 2),
        (["ciapano-31"], ['copies = "halves"'], 2),
        (["ciapano-five"], ['copies = "halves"'], 3),
        (["ciapano-five"], ['copies = "one-against-rest"'], 4),
    ],
)
def test_instances_are_raised_to_the_seats_of_one_game(
    presets: list[str], options: list[str], needed: int
) -> None:
    text = event_with(*options).replace('["tressette-due-duplicate"]', str(presets))
    assert {bot.instances for bot in read(text).bots} == {needed}
    assert {bot.instances for bot in read(text + "instances = 9\n").bots} == {needed, 9}


def test_load_reads_paths_relative_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "night.toml"
    file.write_text(EVENT + BOTS)
    found = load(file, reference_bots=REFERENCE)
    assert found.output == str(tmp_path.resolve() / "night-run")
    assert found.bots[1].directory == str(tmp_path.resolve())


def test_line_ups_follow_the_presets() -> None:
    found = read(event_with().replace('["tr', '["tressette-21", "tr'))
    pairs, two = found.presets
    assert found.line_ups(pairs) == (("ada", "ada", "bob", "bob"),)
    assert found.line_ups(two) == (("ada", "bob"),)


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "key", "message", "suggestion"),
    [
        (["deal_set = 3"], "deal_set", "unknown key", "deal_sets"),
        (["zzz = 3"], "zzz", "unknown key (known: presets, format, concurrency", None),
        (['format = "round-robbin"'], "format", "'round-robbin' is not one of: round-robin", "round-robin"),
        (['format = "league"'], "format", "'league' is not one of: round-robin, gauntlet", None),
        (['seatings = "cylic"'], "seatings", "'cylic' is not one of: cyclic, all, once", "cyclic"),
        (["seatings = true"], "seatings", "true is not one of: cyclic, all, once", None),
        (['pairs = "mixt"'], "pairs", "'mixt' is not one of: copies, mixed", "mixed"),
        (['pairs = "mixed"'], "pairs", "no effect: no preset is played in pairs", None),
        (['copies = "halves"'], "copies", "no effect: no preset seats three or more individuals", None),
        (["common_deals = 1"], "common_deals", "1 is not true or false", None),
        (['seed = ""'], "seed", "'' is not a text with something in it", None),
        (["concurrency = 0"], "concurrency", "0 is not a whole number from 1 to 10000", None),
        (["concurrency = true"], "concurrency", "true is not a whole number from 1 to 10000", None),
        (["concurrency = 1.5"], "concurrency", "1.5 is not a whole number", None),
        (['output = ""'], "output", "'' is not the name of a folder", None),
        (['output = "a\\u0000b"'], "output", "is not the name of a folder", None),
    ],
)
def test_tournament_keys(lines: list[str], key: str, message: str, suggestion: str | None) -> None:
    error = only_problem(event_with(*lines))
    assert (error.file, error.line, error.key) == ("cup.toml", 5, f"tournament.{key}")
    assert message in error.message
    assert error.suggestion == suggestion
    hint = f"; did you mean {suggestion!r}?" if suggestion else ""
    assert str(error) == f"cup.toml:5: tournament.{key}: {error.message}{hint}"


@pytest.mark.parametrize(
    ("lines", "line", "key", "message", "suggestion"),
    [
        ("[clok]\nmove_ms = 3", 5, "clok", "unknown key", "clock"),
        ("[clock]\n\nmove_mss = 3", 7, "clock.move_mss", "unknown key", "move_ms"),
        ("[clock]\nmove_ms = -1", 6, "clock.move_ms", "-1 is not a whole number from 0 to 3600000", None),
        ("[clock]\nmove_ms = 3_600_001", 6, "clock.move_ms", "3600001 is not a whole number", None),
        ("[faults]\nillegal_retries = 11", 6, "faults.illegal_retries", "11 is not a whole number", None),
        (
            "[preset_options.tressette-due-duplicat]",
            5,
            "preset_options.tressette-due-duplicat",
            "unknown key",
            "tressette-due-duplicate",
        ),
        (
            "[preset_options.tressette-due-duplicate]\ndeal = 4",
            6,
            "preset_options.tressette-due-duplicate.deal",
            "no such option of a rule set",
            "deals",
        ),
        (
            "[preset_options.tressette-due-duplicate]\ndeals = 0",
            6,
            "preset_options.tressette-due-duplicate.deals",
            "0 is not a whole number",
            None,
        ),
        (
            "[preset_options.tressette-due-duplicate]\ndeals = [4]",
            6,
            "preset_options.tressette-due-duplicate.deals",
            "[4] is neither a text nor a whole number",
            None,
        ),
        (
            "preset_options.tressette-due-duplicate = 4",
            5,
            "tournament.preset_options",
            "unknown key",
            "presets",
        ),
    ],
)
def test_other_tables(lines: str, line: int, key: str, message: str, suggestion: str | None) -> None:
    error = only_problem(event_with(lines))
    assert (error.line, error.key, error.suggestion) == (line, key, suggestion)
    assert message in error.message


@pytest.mark.parametrize(
    ("presets", "message", "suggestion"),
    [
        ('["tresette-due"]', "unknown preset 'tresette-due'", "tressette-due"),
        ("[]", "[] is not a list of one or more texts", None),
        ('"tressette-due"', "'tressette-due' is not a list of one or more texts", None),
        ('["tressette-due", 3]', "['tressette-due', 3] is not a list", None),
        ('["tressette-due", "tressette-due"]', "'tressette-due' is named twice", None),
        ('["tressette", "tressette-21"]', "'tressette-21' is named twice", None),
        (
            '["tressette-11-duplicate", "tressette-21-duplicate"]',
            "'tressette-21-duplicate' has the same rules as 'tressette-11-duplicate'",
            None,
        ),
        ('["tressette-004-drawn"]', "draws its partners, and every event is rated", None),
    ],
)
def test_presets(presets: str, message: str, suggestion: str | None) -> None:
    error = only_problem(event_with().replace('["tressette-due-duplicate"]', presets))
    assert (error.line, error.key, error.suggestion) == (3, "tournament.presets", suggestion)
    assert message in error.message


@pytest.mark.parametrize(
    ("bot", "line", "key", "message", "suggestion"),
    [
        ('name = "c"', 10, "bots[2]", "needs one of bot", None),
        ('name = "c"\nbot = "greedy"\ncommand = ["c"]', 10, "bots[2]", "needs one of bot", None),
        ('name = "c"\nbot = "gredy"', 12, "bots[2].bot", "unknown reference bot 'gredy'", "greedy"),
        ('name = "c"\nbot = 3', 12, "bots[2].bot", "3 is not the name of a reference bot", None),
        ('name = "ada"\nbot = "greedy"', 11, "bots[2].name", "the name of an earlier bot", None),
        ('bot = "greedy"', 10, "bots[2].name", "missing, must be 1 to 64 of letters", None),
        ('name = ""\nbot = "greedy"', 11, "bots[2].name", "'' is not 1 to 64 of letters", None),
        ('name = ".."\nbot = "greedy"', 11, "bots[2].name", "'..' is not 1 to 64 of letters", None),
        ('name = "c\\n"\nbot = "greedy"', 11, "bots[2].name", "is not 1 to 64 of letters", None),
        (f'name = "{"x" * 65}"\nbot = "greedy"', 11, "bots[2].name", "is not 1 to 64 of letters", None),
        ('name = "c"\ncommand = []', 12, "bots[2].command", "[] is not a list of one or more texts", None),
        ('name = "c"\ncommand = "c"', 12, "bots[2].command", "'c' is not a list", None),
        ('name = "c"\ncommand = ["\\u0000"]', 12, "bots[2].command", "is not a list", None),
        ('name = "c"\ncomand = ["c"]\nbot = "greedy"', 12, "bots[2].comand", "unknown key", "command"),
        ('name = "c"\nbot = "greedy"\ninstances = 0', 13, "bots[2].instances", "0 is not a whole", None),
        (
            'name = "c"\nbot = "greedy"\ndirectory = "."',
            13,
            "bots[2].directory",
            "only a bot with a command has one",
            None,
        ),
        (
            'name = "c"\ncommand = ["c"]\nenvironment = 3',
            13,
            "bots[2].environment",
            "3 is not a table",
            None,
        ),
        (
            'name = "c"\ncommand = ["c"]\nenvironment = { A = 3 }',
            13,
            "bots[2].environment.A",
            "3 is not a text",
            None,
        ),
        (
            'name = "c"\ncommand = ["c"]\n[bots.environment]\n\n"A=B" = "3"',
            15,
            "bots[2].environment.A=B",
            "not a possible name",
            None,
        ),
    ],
)
def test_bots(bot: str, line: int, key: str, message: str, suggestion: str | None) -> None:
    error = only_problem(event_with(bots=f"{BOTS.rstrip()}\n[[bots]]\n{bot}").replace("\n\n[[", "\n[["))
    assert (error.line, error.key, error.suggestion) == (line + 1, key, suggestion)
    assert message in error.message


def test_missing_keys_are_placed_at_their_table() -> None:
    error = refused("# nothing\n[tournament]\n" + BOTS)
    found = [(problem.line, problem.key) for problem in (error, *error.others)]
    assert found == [(2, "tournament.presets"), (2, "tournament.name"), (2, "tournament.deal_sets")]
    assert "missing, must be a whole number from 1" in str(error)


def test_an_empty_file_lacks_everything_and_has_no_lines() -> None:
    error = refused("")
    problems = (error, *error.others)
    assert {problem.key.split(".")[0] for problem in problems} == {"tournament", "bots"}
    assert {problem.line for problem in problems} == {None}
    assert str(error).startswith("cup.toml: tournament.")


@pytest.mark.parametrize("bots", ["bots = []\n" + EVENT, "bots = 3\n" + EVENT, "bots = [3]\n" + EVENT])
def test_bots_that_are_no_tables(bots: str) -> None:
    error = only_problem(bots)
    assert (error.line, error.key) == (1, "bots")


@pytest.mark.parametrize(
    ("preset", "options", "needed"),
    [
        ("ciapano-trio", [], 3),
        ("ciapano-31", [], 4),
        ("ciapano-five", [], 5),
        ("tressette-21", ['pairs = "mixed"'], 4),
    ],
)
def test_too_few_bots_for_a_table(preset: str, options: list[str], needed: int) -> None:
    error = only_problem(event_with(*options).replace("tressette-due-duplicate", preset))
    assert error.key == "bots"
    assert error.message == f"{preset} needs {needed} different bots at a table, the file has 2"


def test_max_tables_must_leave_each_bot_a_table() -> None:
    more = "".join(f'[[bots]]\nname = "b{n}"\nbot = "greedy"\n' for n in range(4))
    error = only_problem(event_with("max_tables = 5", bots=BOTS + more))
    assert (error.line, error.key) == (5, "tournament.max_tables")
    assert error.message == "5 tables are too few for 6 bots: at least 6 are needed"
    assert read(event_with("max_tables = 6", bots=BOTS + more)).max_tables == 6
    assert read(event_with("max_tables = 1")).max_tables == 1


def test_everything_wrong_is_told_at_once_in_order_of_lines() -> None:
    text = event_with("sed = 1", "concurrency = 0", "[clock]", "move = 3").replace("10", "0")
    error = refused(text)
    assert str(error).split("\n") == [
        "cup.toml:4: tournament.deal_sets: 0 is not a whole number from 1 to 1000000000",
        "cup.toml:5: tournament.sed: unknown key; did you mean 'seed'?",
        "cup.toml:6: tournament.concurrency: 0 is not a whole number from 1 to 10000",
        "cup.toml:8: clock.move: unknown key; did you mean 'move_ms'?",
    ]


def test_syntax_errors_have_a_line() -> None:
    error = only_problem(EVENT + "seed = nonna\n" + BOTS)
    assert (error.file, error.line, error.key) == ("cup.toml", 5, "")
    assert str(error).startswith("cup.toml:5: not TOML: ")
    assert only_problem("[tournament").line is None


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cup.toml"
    file.write_bytes(b"# a\n# \xff\n")
    with pytest.raises(TournamentFileError, match=r"cup\.toml:2: not UTF-8 text"):
        load(file, reference_bots=REFERENCE)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "cup.toml"
    file.write_text(EVENT + BOTS, encoding="utf-8-sig")
    assert load(file, reference_bots=REFERENCE).name == "cup"


@pytest.mark.parametrize(
    "line",
    [
        f"zzz = {'[' * 5000}{']' * 5000}",
        f"zzz = {'{a=' * 5000}1{'}' * 5000}",
        f"name{'.a' * 5000} = 1",
    ],
)
def test_deep_nesting_is_refused(line: str) -> None:
    assert only_problem("[tournament]\n" + line).message == "nested too deeply"


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 5000])
def test_endless_numbers_are_refused(number: str) -> None:
    text = EVENT.replace("10", number) + BOTS
    assert "digits" in only_problem(text).message


def test_a_misspelt_table_is_placed_at_its_dotted_header() -> None:
    error = only_problem(event_with("[preset_option.tressette-due-duplicate]", "deals = 4"))
    assert (error.line, error.key, error.suggestion) == (5, "preset_option", "preset_options")


def test_lines_are_found_in_any_toml_dress() -> None:
    text = '''\
# [tournament] in a comment = "no"
"tournament" . 'name' = """
[clock]
zzz = \\"""
"""
tournament.presets = [ # ]
  "tressette-due", # "
  'ciapano-31',
]
tournament.deal_sets = 1
tournament.\
"zz\\u007a" = { a = "}", b = [1, 2] }
clock = { mov_ms = 3 }
faults.'illegal retries' = \'\'\'
x = 1\'\'\'
'''.replace("\\\n", "")
    bots = "[[bots]]\nname = 'a'\nbot = 'greedy'\n[[ bots ]] # two\n\tnam = 'b'\n bot = 'greedy'\n"
    error = refused(text + bots)
    places = {problem.key: problem.line for problem in (error, *error.others)}
    assert places == {
        "tournament.name": 2,
        "tournament.zzz": 11,
        "clock.mov_ms": 12,
        "faults.illegal retries": 13,
        "bots[1].name": 18,
        "bots[1].nam": 19,
    }


def test_windows_line_ends() -> None:
    assert only_problem(event_with("zzz = 1").replace("\n", "\r\n")).line == 5


# --- and back --------------------------------------------------------------------------------------


def test_dump_writes_every_default() -> None:
    assert dump(read(EVENT + BOTS)) == textwrap.dedent(
        """\
        [tournament]
        name = "cup"
        format = "round-robin"
        presets = ["tressette-due-duplicate"]
        deal_sets = 10
        seatings = "cyclic"
        pairs = "copies"
        copies = "none"
        common_deals = true
        isolation = "relabel"
        reveal_sets = 100
        window = 64
        concurrency = 32
        output = "/events/cup-run"
        max_tables = 1000

        [stop]

        [clock]
        move_ms = 2000
        bank_ms = 0
        increment_ms = 0
        allowance_ms = 100

        [faults]
        illegal_retries = 1
        strikes = 0

        [server]
        listen = "127.0.0.1:0"
        away_s = 300

        [[bots]]
        name = "ada"
        bot = "greedy"
        instances = 1
        restarts = 3
        nice = 0
        start_limit_s = 60

        [[bots]]
        name = "bob"
        command = ["python", "bob.py"]
        directory = "/events"
        environment = {  }
        instances = 1
        restarts = 3
        nice = 0
        start_limit_s = 60
        """
    )


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
PATHS = TEXTS.map(lambda text: str(FOLDER / text))


@st.composite
def bots(draw: st.DrawFn, name: str) -> Bot:
    instances = draw(st.integers(4, 10_000))
    if draw(st.booleans()):
        return Bot(name, draw(st.sampled_from(REFERENCE)), (), None, (), instances)
    keys = TEXTS.filter(lambda key: "=" not in key)
    environment = draw(st.dictionaries(keys, st.one_of(st.just(""), TEXTS), max_size=3))
    command = tuple(draw(st.lists(TEXTS, min_size=1, max_size=3)))
    return Bot(name, None, command, draw(PATHS), tuple(environment.items()), instances)


@st.composite
def presets(draw: st.DrawFn) -> tuple[PresetChoice, ...]:
    """A pairs preset, a table of four and a duplicate for two, so that every line-up option has an effect."""
    deals = draw(st.integers(1, 10_000))
    options = draw(
        st.sampled_from([(), (("deals", deals),), (("deals", deals), ("first_lead", "dealer_right"))])
    )
    chosen = [
        PresetChoice("tressette-21", (), resolve("tressette-21")),
        PresetChoice("ciapano-31", (("threshold", 21),), resolve("ciapano-31", threshold=21)),
        PresetChoice("tressette-due-duplicate", options, resolve("tressette-due-duplicate", **dict(options))),
    ]
    return tuple(draw(st.permutations(chosen)))


@st.composite
def policies(draw: st.DrawFn) -> tuple[tuple[FaultKind, FaultEffect], ...]:
    kinds = draw(st.sets(st.sampled_from(FaultKind)))
    effects = st.sampled_from([FaultEffect.FORFEIT, FaultEffect.SUBSTITUTE])
    return tuple((kind, draw(effects)) for kind in FaultKind if kind in kinds)


@st.composite
def tournaments(draw: st.DrawFn) -> Tournament:
    names = draw(
        st.lists(
            st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,9}", fullmatch=True),
            min_size=4,
            max_size=7,
            unique=True,
        )
    )
    return Tournament(
        name=draw(st.text(min_size=1, max_size=100).filter(str.isprintable)),
        format=Format.ROUND_ROBIN,
        presets=draw(presets()),
        deal_sets=draw(st.integers(1, 1_000_000_000)),
        rounds=0,
        extra_sets=0,
        seatings=draw(st.sampled_from(Seatings)),
        pairs=draw(st.sampled_from(Pairs)),
        copies=draw(st.sampled_from(Copies)),
        common_deals=draw(st.booleans()),
        seed=draw(st.none() | TEXTS),
        isolation=draw(st.sampled_from(Isolation)),
        reveal_sets=draw(st.integers(1, 1_000_000_000)),
        window=draw(st.integers(1, 1_000_000)),
        concurrency=draw(st.integers(1, 10_000)),
        output=draw(PATHS),
        max_tables=draw(st.integers(7, 1_000_000)),
        stop=Stop(*(draw(st.none() | st.integers(1, 1000)) for _ in range(4))),
        sprt=None,
        clock=Clock(draw(st.integers(1, 3_600_000)), *(draw(st.integers(0, 60_000)) for _ in range(3))),
        faults=Faults(draw(st.integers(0, 10)), draw(st.integers(0, 1_000_000)), draw(policies())),
        place=Place("127.0.0.1:0", None, None, None, None, 60, draw(st.integers(1, 604_800))),
        bots=tuple(draw(bots(name)) for name in names),
    )


@settings(max_examples=60, deadline=None)
@given(tournaments())
def test_dump_round_trips(tournament: Tournament) -> None:
    text = dump(tournament)
    assert (
        parse(text, file="resolved.toml", folder=Path("/elsewhere"), reference_bots=REFERENCE) == tournament
    )


def test_awkward_characters_round_trip() -> None:
    odd = 'quote " back \\ tab \t line \n del \x7f è 🂡'
    sound = read(EVENT + BOTS)
    tournament = replace(sound, seed=odd)
    assert read(dump(tournament)) == tournament
