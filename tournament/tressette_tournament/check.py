"""A rehearsal before the night: a few games of each bot of a tournament file against the reference bots.

Every bot is a challenger against a field of reference bots, at the tables, with the clocks and the fault
policies of the file. A bot **passes** if it played all its games without a fault and its processes never
ended by themselves. Whom a bot meets in the event itself plays no part: a check between two copies of a bot
that never answers would find nothing but draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tressette_tournament.processes import logs_of
from tressette_tournament.results import GameResult
from tressette_tournament.stop_rules import Stop
from tressette_tournament.tournament_file import Bot, Format, Tournament

OPPONENTS: Final = ("greedy", "cautious", "first_legal", "random")
"""Reference bots that are met, in this order, as many as the largest table needs."""
_TABLES_EACH: Final = 2


@dataclass(slots=True)
class BotCheck:
    """What one bot did. games: with a result; faults: by kind, as recorded; failures: how often one of its
    processes ended by itself or did not connect; lost: why it was given up, None if it was not; logs: its
    output."""

    bot: str
    games: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    failures: int = 0
    lost: str | None = None
    logs: tuple[Path, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether nothing was wrong with it."""
        return self.games > 0 and not self.faults and not self.failures and self.lost is None

    @property
    def text(self) -> str:
        """What there is to say of it, in a line or two."""
        if self.passes:
            return f"{self.bot}: passes, {self.games} games"
        wrong = [f"{kind} {count}" for kind, count in sorted(self.faults.items())]
        if self.failures:
            wrong.append(f"its processes failed {self.failures} times")
        if self.lost is not None:
            wrong.append(self.lost)
        elif not self.games:
            wrong.append("it played no game")
        logs = "".join(f"\n  {log}" for log in self.logs)
        return f"{self.bot}: does not pass, {self.games} games: {'; '.join(wrong)}" + (
            f"\n  its output is in:{logs}" if logs else ""
        )


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
    return replace(
        tournament,
        name=f"check of {tournament.name}"[:100],
        format=Format.GAUNTLET,
        deal_sets=deal_sets,
        rounds=0,
        extra_sets=0,
        max_tables=_TABLES_EACH * len(challengers),
        seed="check",
        stop=Stop(),
        sprt=None,
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
    return list(found.values())


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "-"
    taken.add(name)
    return name
