"""A rehearsal before the night: a few games of each bot of a tournament file against the reference bots.

Every bot is a challenger against a field of reference bots, at the tables, with the clocks and the fault
policies of the file; where that has no clock, with one of NO_CLOCK_MS for each decision. A bot **passes** if
it played all its games without a fault and its processes never ended by themselves. Whom a bot meets in the
event itself plays no part: a check between two copies of a bot that never answers would find nothing but
draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tressette.rules.events import FaultKind

from tressette_tournament.processes import logs_of
from tressette_tournament.results import GameResult
from tressette_tournament.stop_rules import Stop
from tressette_tournament.tournament_file import Bot, Format, Tournament

OPPONENTS: Final = ("greedy", "cautious", "first_legal", "random")
"""Reference bots that are met, in this order, as many as the largest table needs."""
_WORDS: Final = 200

NO_CLOCK_MS: Final = 60_000
"""Time for a decision where the event has no clock: a bot that never answers is to be found out."""

_MEANINGS: Final = {
    FaultKind.MALFORMED: "answers that could not be read",
    FaultKind.ILLEGAL: "answers that the rules forbid",
    FaultKind.NOT_YOUR_TURN: "answers to turns that were not its own",
    FaultKind.TIMEOUT: "no answer in time",
    FaultKind.DISCONNECT: "it was away when it was to play",
    FaultKind.CRASH: "its process had ended when it was to play",
    FaultKind.REFUSED_TO_START: "it did not come to its game",
}


@dataclass(slots=True)
class BotCheck:
    """What one bot did. games: with a result; faults: by kind, as recorded; faulty: the first game with one,
    "" if there is none; failures: how often one of its processes ended by itself or did not connect; lost:
    why it was given up, None if it was not; logs: its output."""

    bot: str
    games: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    faulty: str = ""
    failures: int = 0
    lost: str | None = None
    logs: tuple[Path, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether nothing was wrong with it."""
        return self.games > 0 and not self.faults and not self.failures and self.lost is None

    @property
    def lines(self) -> list[str]:
        """What there is to say of it: one line, and below it what was wrong and where to look."""
        if self.passes:
            return [f"{self.bot}: passes, {self.games} games without a fault"]
        return [f"{self.bot}: DOES NOT PASS, {self.games} games", *(f"  {line}" for line in self._wrong())]

    def _wrong(self) -> Iterator[str]:
        for kind, count in sorted(self.faults.items()):
            yield f"{kind}, {count} times: {_MEANINGS[FaultKind(kind)]}"
        if self.faulty:
            yield f"the first game with a fault: {self.faulty}"
        if self.lost is not None:
            yield self.lost
        elif self.failures:
            yield f"its processes ended by themselves, or did not connect, {self.failures} times"
        elif not self.games:
            yield "it played no game"
        if self.logs:
            names = ", ".join(log.name for log in self.logs)
            yield f"its output: in {self.logs[0].parent}: {names}"
        # Of the first process: one that was started again may have seen no more than the end of the check.
        if first := next(filter(None, map(_last_words, self.logs)), ""):
            yield f"the last that it printed: {first}"


def _last_words(log: Path) -> str:
    """The last line of a log with anything in it; of a traceback that is the error."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    words = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return words if len(words) <= _WORDS else f"{words[:_WORDS]}…"


def rehearsal(tournament: Tournament, output: Path, deal_sets: int) -> Tournament:
    """The small event that checks the bots of a tournament: a gauntlet of all of them against reference bots.

    output: its folder. deal_sets: for each line-up, 1 or more.
    """
    tables = [tournament.table(preset) for preset in tournament.presets]
    needed = max(max(table.different_bots for table in tables) - 1, 2)
    most_seats = max(table.most_seats for table in tables)
    names = {bot.name for bot in tournament.bots}
    field_ = tuple(
        Bot(_free(f"reference-{name}", names), name, (), None, (), most_seats) for name in OPPONENTS[:needed]
    )
    challengers = tuple(replace(bot, challenger=True) for bot in tournament.bots)
    clock = tournament.clock
    if not clock.runs:
        clock = replace(clock, move_ms=NO_CLOCK_MS)
    return replace(
        tournament,
        name=f"check of {tournament.name}"[:100],
        format=Format.GAUNTLET,
        deal_sets=deal_sets,
        rounds=0,
        extra_sets=0,
        max_tables=needed * len(challengers),
        seed=None,
        stop=Stop(),
        sprt=None,
        clock=clock,
        output=str(output),
        bots=challengers + field_,
    )


def checked(
    bots: Iterable[Bot],
    results: Iterable[GameResult],
    failures: Mapping[str, int],
    lost: Mapping[str, str],
    logs: Path,
) -> list[BotCheck]:
    """What each of the bots did in a rehearsal; those of the field are left out.

    failures, lost: by bot, as in BotCheck. logs: folder of the logs of all processes.
    """
    found = {
        bot.name: BotCheck(
            bot.name,
            failures=failures.get(bot.name, 0),
            lost=lost.get(bot.name),
            logs=tuple(logs_of(logs, bot.name)),
        )
        for bot in bots
        if bot.challenger
    }
    for result in results:
        for name in {name for side in result.sides for name in side}:
            if name in found:
                found[name].games += 1
        for name, kind, count in result.faults:
            if name in found:
                found[name].faults[kind] += count
                found[name].faulty = found[name].faulty or result.game
    return list(found.values())


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "-"
    taken.add(name)
    return name
