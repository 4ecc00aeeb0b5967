"""Ratings for people (rich tables) and for programs (plain data): formats what ratings.py found.

A rating that the results bound on one side only is shown as that bound, "> +350", in place of the
estimate; one about which nothing can be said has "–" for its ±.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tressette_tournament.intervals import MIN_DECKS, Interval, Kind
from tressette_tournament.ratings import BotRating, ComponentRatings, PairRating, PoolRatings
from tressette_tournament.sprt import BIASED, Decision, SequentialTest

_COLUMNS = ("#", "bot", "Elo", "± 95 %", "games", "sets", "points/deal", "score", "faults")
_UNLIMITED = 10_000
"""A width at which every table is as wide as it would like to be."""
_OBJECTIVES = {"most": "points per deal: higher is better", "least": "points per deal: lower is better"}
_FEW = f"–: no error or bound from fewer than {MIN_DECKS} decks"
_UNBOUNDED = "–: these results tell no error and no bound"
_BOUND = ">, <: the results bound it on one side only (95 %)"


def print_tables(pools: Iterable[PoolRatings], console: Console) -> None:
    """Print a table for each component of each pool, and the number of open deal sets. Where the console is
    too narrow for the faults they come after the table, and long names are folded: nothing is cut off."""
    unlimited = console.options.update(width=_UNLIMITED)
    for pool in pools:
        for number, component in enumerate(pool.components, 1):
            table = _table(pool, component, number, _COLUMNS)
            if Measurement.get(console, unlimited, table).maximum <= console.width:
                console.print(table)
            else:
                console.print(_table(pool, component, number, _COLUMNS[:-1]))
                faults = [(bot.bot, *fault) for bot in component.bots for fault in bot.faults]
                if faults:
                    _print_faults("Faults:", faults, console)
        if len(pool.components) > 1:
            console.print("No game connects these tables: their ratings cannot be compared.")
        if pool.open_sets:
            console.print(f"{escape(pool.preset)} · open deal sets, not counted: {len(pool.open_sets)}")
        if pool.open_faults:
            _print_faults("Faults in open deal sets:", pool.open_faults, console)


def _table(pool: PoolRatings, component: ComponentRatings, number: int, columns: tuple[str, ...]) -> Table:
    title = f"{escape(pool.preset)} · {_OBJECTIVES[pool.objective]}"
    if len(pool.components) > 1:
        title += f" · {number} of {len(pool.components)}"
    notes = "\n".join(_footnotes(component)) or None
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, caption=notes)
    rows = [(str(rank), *_cells(bot))[: len(columns)] for rank, bot in enumerate(component.bots, 1)]
    for name, cells in zip(columns, zip(*rows, strict=True), strict=True):
        # A number that is cut off says nothing; only a name can be folded.
        widest = max(len(line) for cell in (name, *cells) for line in cell.split("\n"))
        table.add_column(
            name,
            justify="left" if name in ("bot", "faults") else "right",
            no_wrap=name != "bot",
            overflow="fold",
            min_width=len(name) if name == "bot" else widest,
        )
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _print_faults(title: str, faults: Iterable[tuple[str, str, int]], console: Console) -> None:
    """faults: (bot, kind, count), those of a bot together."""
    console.print(title)
    for bot, of_bot in groupby(faults, key=itemgetter(0)):
        text = Text(f"{bot}: {', '.join(f'{kind} {count}' for _, kind, count in of_bot)}", overflow="fold")
        console.print(Padding(text, (0, 0, 0, 2)), highlight=False)
    console.print()


def _cells(bot: BotRating) -> list[str]:
    error = "" if bot.interval.kind in (Kind.AT_LEAST, Kind.AT_MOST) else "–"
    return [
        bot.bot,
        _elo(bot),
        error if bot.error is None else f"{bot.error:.0f}",
        str(bot.games),
        str(bot.deal_sets),
        _points(bot),
        "–" if bot.score is None else f"{bot.score:.3f}",
        "\n".join(f"{kind} {count}" for kind, count in bot.faults) or "0",
    ]


def _elo(bot: BotRating) -> str:
    match bot.interval.kind, bot.interval:
        case Kind.AT_LEAST, Interval(low=float(low)):
            return f"> {low:+z.0f}"
        case Kind.AT_MOST, Interval(high=float(high)):
            return f"< {high:+z.0f}"
    return f"{bot.rating:+z.0f}"


def _points(bot: BotRating) -> str:
    if bot.points_per_deal is None:
        return "–"
    error = "–" if bot.points_error is None else f"{bot.points_error:.2f}"
    return f"{bot.points_per_deal:z.2f} ± {error}"


def _footnotes(component: ComponentRatings) -> list[str]:
    """The notes that this table needs."""
    intervals = [bot.interval for bot in component.bots]
    silent = [interval for interval in intervals if interval.kind is Kind.NONE]
    needed = {
        _FEW: any(interval.decks < MIN_DECKS for interval in silent),
        _UNBOUNDED: any(interval.decks >= MIN_DECKS for interval in silent),
        _BOUND: any(interval.kind in (Kind.AT_LEAST, Kind.AT_MOST) for interval in intervals),
    }
    return [note for note, shown in needed.items() if shown]


def print_stop(reason: str, console: Console) -> None:
    """Say why the tournament opened no more deal sets (the words of stop_rules.py)."""
    _line(console, f"No new deal sets were opened: {reason}.")


def print_sprt(a: str, b: str, test: SequentialTest, console: Console) -> None:
    """Print the test of a against b as it stands, and the match behind it."""
    sprt, report, match = test.sprt, test.report, test.statistics
    state = f"undecided after {report.sets} deal sets"
    if report.decision is not Decision.UNDECIDED:
        state = f"{report.decision} accepted after {report.sets} deal sets"
    _line(console, f"SPRT of {a} against {b}: {state}")
    bounds = f"H0: {sprt.elo0:+g}, H1: {sprt.elo1:+g} ({sprt.model} Elo)"
    _line(console, f"  {bounds}, alpha {sprt.alpha:g}, beta {sprt.beta:g}")
    _line(console, f"  LLR {report.llr:.2f} (H0 at {report.lower:.2f}, H1 at {report.upper:.2f})")
    if match.score is not None:
        los = "–" if match.los is None else f"{match.los:.1%}"
        elo, nelo = _estimate(match.elo, match.elo_error), _estimate(match.nelo, match.nelo_error)
        _line(console, f"  score {match.score:.4f} · Elo {elo} · normalized {nelo} · LOS {los}")
    if report.decision is not Decision.UNDECIDED:
        _line(console, f"  {BIASED}")


def _estimate(value: float | None, error: float | None) -> str:
    return "–" if value is None else f"{value:+z.1f} ± {'–' if error is None else f'{error:.1f}'}"


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def sprt_as_json(a: str, b: str, test: SequentialTest) -> dict[str, Any]:
    """Plain data of the test of a against b: its settings, report, scores of sets (as "1/4") and match.

    ``note`` is null until a decision makes the estimates biased.
    """
    decided = test.report.decision is not Decision.UNDECIDED
    return {
        "a": a,
        "b": b,
        **asdict(test.sprt),
        **asdict(test.report),
        "scores": {str(score): sets for score, sets in sorted(test.counts.items())},
        "match": asdict(test.statistics),
        "note": BIASED if decided else None,
    }


def as_json(pools: Iterable[PoolRatings]) -> dict[str, Any]:
    """Plain data for ratings.json: the fields of the rating dataclasses under their own names.

    Elo, points and scores are numbers, what is not known is null, pairs are a list.
    """
    return {"pools": [_pool(pool) for pool in pools]}


def _pool(pool: PoolRatings) -> dict[str, Any]:
    return {
        "pool": pool.pool,
        "preset": pool.preset,
        "objective": pool.objective,
        "games": pool.games,
        "deal_sets": pool.deal_sets,
        "decks": pool.decks,
        "open_sets": [{"deal_set": s.deal_set, "have": s.have, "want": s.want} for s in pool.open_sets],
        "open_faults": [list(fault) for fault in pool.open_faults],
        "components": [
            {
                "bots": [_bot(bot) for bot in component.bots],
                "pairs": [_pair(bot, other, pair) for (bot, other), pair in component.pairs.items()],
            }
            for component in pool.components
        ],
    }


def _bot(bot: BotRating) -> dict[str, Any]:
    return {
        "bot": bot.bot,
        "rating": bot.rating,
        "error": bot.error,
        "interval": _interval(bot.interval),
        "games": bot.games,
        "deal_sets": bot.deal_sets,
        "score": bot.score,
        "points_per_deal": bot.points_per_deal,
        "points_error": bot.points_error,
        "faults": dict(bot.faults),
    }


def _pair(bot: str, other: str, pair: PairRating) -> dict[str, Any]:
    return {
        "bot": bot,
        "other": other,
        "difference": pair.difference,
        "interval": _interval(pair.interval),
        "los": pair.los,
        "rows": pair.rows,
        "score": pair.score,
        "score_interval": None if pair.score_interval is None else _interval(pair.score_interval),
    }


def _interval(interval: Interval) -> dict[str, Any]:
    return {
        "kind": str(interval.kind),
        "low": interval.low,
        "high": interval.high,
        "decks": interval.decks,
    }
