"""Who meets whom, round by round: round robin, gauntlet, Swiss, knockout, ladder and SPRT as pure functions.

Vocabulary: a **fixture** is a line-up of a preset with the deal sets that it plays; a **round** is the
fixtures that are known at once, and begins when every game of the round before has been fixed; a **bye** is
a round without a game; a **walkover** is a match that goes on without one of its bots. ``FORMATS.md`` states
the rules of each format for organisers. Source: the tournament design, and the usual rules of Swiss systems
and of brackets.

1. Every round takes set numbers above those of all rounds before. So no deck comes again in a later round,
   and decks can be retired round by round.
2. Round robin, gauntlet and SPRT have one round for each **stage**: the event itself, then each extension of
   it. A stage plays what its line-ups lack, with fresh decks.
3. Swiss and knockout rounds follow from the results alone, but for bots that are away: those are not paired,
   or lose by walkover. So that a resumed run pairs alike, the rounds of these formats and the choices of a
   ladder are journalled (see ``schedule``), and what the journal says has happened.
4. All presets play their rounds together, each for itself.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, count
from typing import Final, NamedTuple, Protocol

from tressette_tournament.lineups import LineUp, Table, fill, games_of, gauntlet_line_ups
from tressette_tournament.results import GameResult
from tressette_tournament.tournament_file import Format, Tournament


class FormatError(ValueError):
    """Stages that the format of an event does not allow; the text is for the organiser."""


@dataclass(frozen=True, slots=True)
class Fixture:
    """A line-up and the deal sets it plays.

    preset: its index in the tournament. first_set: the first set number, 0 or more. sets: how many; 0 with a
    line-up of one bot is a bye.
    """

    preset: int
    line_up: LineUp
    first_set: int
    sets: int


Round = tuple[Fixture, ...]


class Stage(NamedTuple):
    """An event, or an extension of it: its bots, those of the stages before included; the deal sets that each
    line-up has played at its end, 1 or more; the number of its first set, above all those of earlier stages.
    """

    bots: tuple[str, ...]
    deal_sets: int
    first_set: int


@dataclass(slots=True)
class Score:
    """What one line-up did. games: with a result. points, rows: by bot, 2 points for each opposing side that
    it finished before and 1 for each it drew with, out of as many rows."""

    games: int = 0
    points: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)

    def add(self, result: GameResult) -> None:
        """Count a game. Sides made of the same bots make no row; a forfeit makes rows of its side only."""
        self.games += 1
        for i, j in combinations(range(len(result.sides)), 2):
            one, other = result.sides[i], result.sides[j]
            if sorted(one) == sorted(other) or result.forfeit not in (None, i, j):
                continue
            ranks = result.ranks
            won = (ranks[i] < ranks[j]) - (ranks[i] > ranks[j])
            if result.forfeit is not None:
                won = -1 if result.forfeit == i else 1
            for side, points in ((one, 1 + won), (other, 1 - won)):
                for bot in set(side):
                    self.points[bot] += points
                    self.rows[bot] += 1


@dataclass(slots=True)
class History:
    """What has happened. scores: by round, preset and number of the line-up in both (see ``numbered``), where
    there is a result. away: bots that have given up, or were given up, in this session."""

    rounds: list[Round] = field(default_factory=list)
    scores: defaultdict[tuple[int, int, int], Score] = field(default_factory=lambda: defaultdict(Score))
    away: set[str] = field(default_factory=set)

    @property
    def next_set(self) -> int:
        """The lowest set number above all that were used."""
        return max((one.first_set + one.sets for fixtures in self.rounds for one in fixtures), default=0)


def numbered(fixtures: Iterable[Fixture]) -> Iterator[tuple[int, Fixture]]:
    """The fixtures of a round, each with its number among those of its preset, from 0."""
    seen: Counter[int] = Counter()
    for fixture in fixtures:
        yield seen[fixture.preset], fixture
        seen[fixture.preset] += 1


class Rounds(Protocol):
    """A format that plays rounds. ``drawn``: whether they depend on results; only then are scores needed."""

    @property
    def drawn(self) -> bool: ...

    def next_round(self, history: History) -> Round | None:
        """The round after those of ``history``, all of whose games are fixed; None: there is none."""

    def to_come(self, history: History) -> Iterator[Fixture]:
        """Fixtures that later rounds will have at least, with bots that may be others: for counting games."""


class FixedRounds:
    """Rounds that are known from the start: round robin, gauntlet, SPRT, and their extensions."""

    drawn: Final = False

    def __init__(self, rounds: Sequence[Round]) -> None:
        self._rounds = rounds

    def next_round(self, history: History) -> Round | None:
        """See ``Rounds``."""
        number = len(history.rounds)
        return self._rounds[number] if number < len(self._rounds) else None

    def to_come(self, history: History) -> Iterator[Fixture]:
        """See ``Rounds``."""
        for fixtures in self._rounds[len(history.rounds) :]:
            yield from fixtures


def format_of(
    tournament: Tournament,
    *,
    stages: Sequence[Stage] | None = None,
    ratings: Callable[[], Ratings] | None = None,
) -> Rounds | Ladder:
    """The format that a tournament file names.

    stages: the event and its extensions, the last with what the file says now; None: it was never extended.
    ratings: what a ladder goes by; None: nothing is known. Raises FormatError for stages that cannot be.
    """
    names = tuple(bot.name for bot in tournament.bots)
    stages = stages or [Stage(names, tournament.deal_sets, 0)]
    _check_stages(tournament, stages)
    tables = tuple(tournament.table(preset) for preset in tournament.presets)
    match tournament.format:
        case Format.ROUND_ROBIN | Format.SPRT | Format.GAUNTLET:
            return FixedRounds(_stage_rounds(tournament, stages))
        case Format.SWISS:
            return Swiss(names, tables, tournament.rounds, tournament.deal_sets)
        case Format.KNOCKOUT:
            return Knockout(names, tables, tournament.deal_sets, tournament.extra_sets)
        case Format.LADDER:
            return Ladder(names, tables, tournament.deal_sets, tournament.name, ratings or dict)


# --- round robin, gauntlet, SPRT -------------------------------------------------------------------


def _check_stages(tournament: Tournament, stages: Sequence[Stage]) -> None:
    names = {bot.name for bot in tournament.bots}
    if len(stages) > 1 and tournament.format in (Format.SWISS, Format.KNOCKOUT):
        raise FormatError(
            f"{tournament.format} cannot be extended: its pairings follow from the bots that it began with"
        )
    if len(stages) > 1 and tournament.format is Format.LADDER:
        raise FormatError("ladder has no extensions: it goes on by itself, and new bots just join")
    for number, stage in enumerate(stages):
        if not names.issuperset(stage.bots):
            gone = ", ".join(bot for bot in stage.bots if bot not in names)
            raise FormatError(f"an extension keeps every bot: {gone} is gone")
        if number and not set(stages[number - 1].bots) <= set(stage.bots):
            raise FormatError("an extension keeps every bot")
        if number and stage.deal_sets < stages[number - 1].deal_sets:
            raise FormatError(
                f"an extension cannot have fewer deal sets: {stages[number - 1].deal_sets} before, "
                f"{stage.deal_sets} now"
            )


def _stage_rounds(tournament: Tournament, stages: Sequence[Stage]) -> list[Round]:
    """For each stage what its line-ups lack."""
    rounds: list[Round] = []
    played: Counter[tuple[int, LineUp]] = Counter()
    order: dict[str, int] = {}
    unused = 0
    for stage in stages:
        if stage.first_set < unused:
            raise FormatError(f"an extension begins with deal set {stage.first_set}, which was played before")
        for bot in stage.bots:  # those of earlier stages first, so that their line-ups are named alike
            order.setdefault(bot, len(order))
        bots = tuple(bot for bot in tournament.bots if bot.name in stage.bots)
        of_stage = replace(tournament, bots=tuple(sorted(bots, key=lambda bot: order[bot.name])))
        fixtures: list[Fixture] = []
        for preset in range(len(tournament.presets)):
            for line_up in _line_ups(of_stage, preset):
                lacking = stage.deal_sets - played[preset, line_up]
                if lacking > 0:
                    fixtures.append(Fixture(preset, line_up, stage.first_set, lacking))
                    unused = max(unused, stage.first_set + lacking)
                    played[preset, line_up] += lacking
        rounds.append(tuple(fixtures))
    return rounds


def _line_ups(tournament: Tournament, preset: int) -> tuple[LineUp, ...]:
    choice = tournament.presets[preset]
    table = tournament.table(choice)
    if tournament.format is Format.SPRT:
        return fill(table, [bot.name for bot in tournament.bots])
    if tournament.format is Format.GAUNTLET:
        challengers = [bot.name for bot in tournament.bots if bot.challenger]
        others = [bot.name for bot in tournament.bots if not bot.challenger]
        seed = f"{tournament.name}/{choice.name}"
        return gauntlet_line_ups(challengers, others, table, tournament.max_tables, seed)
    return tournament.line_ups(choice)


# --- Swiss -----------------------------------------------------------------------------------------

_PAIRING_STEPS: Final = 5_000
"""Steps of the search for a pairing without a repeat: far more than a round needs while bots have many
opponents left, and a fraction of a second."""


class Swiss:
    """``rounds`` rounds of ``deal_sets`` sets, in which bots with near-equal scores meet that have not met.

    names: in order of seed. tables: by preset.
    """

    drawn: Final = True

    def __init__(self, names: Sequence[str], tables: Sequence[Table], rounds: int, deal_sets: int) -> None:
        self._names = names
        self._tables = tables
        self._rounds = rounds
        self._deal_sets = deal_sets

    def next_round(self, history: History) -> Round | None:
        """See ``Rounds``. None as well where too few bots are left to fill a table."""
        if len(history.rounds) >= self._rounds:
            return None
        first_set = history.next_set
        fixtures: list[Fixture] = []
        for preset, table in enumerate(self._tables):
            groups, byes = self._groups(preset, table.different_bots, history)
            fixtures += [
                Fixture(preset, line_up, first_set, self._deal_sets)
                for group in groups
                for line_up in fill(table, group)
            ]
            fixtures += [Fixture(preset, (bot,), first_set, 0) for bot in byes]
        return tuple(fixtures) if any(fixture.sets for fixture in fixtures) else None

    def to_come(self, history: History) -> Iterator[Fixture]:
        """See ``Rounds``."""
        first_set = history.next_set
        for later in range(self._rounds - len(history.rounds)):
            for preset, table in enumerate(self._tables):
                for _ in range(len(self._names) // table.different_bots):
                    for line_up in fill(table, self._names[: table.different_bots]):
                        yield Fixture(preset, line_up, first_set + later * self._deal_sets, self._deal_sets)

    def standing(self, preset: int, history: History) -> list[tuple[str, Fraction, Fraction]]:
        """The bots of a preset, best first, with score and Buchholz as they count for pairing."""
        past = _Past(preset, history)
        scores = {
            bot: sum((past.score(bot, n) for n in range(past.rounds)), Fraction()) for bot in self._names
        }
        buchholz = {
            bot: sum((scores[other] for met in past.tables[bot] for other in met), Fraction())
            for bot in self._names
        }
        order = sorted(self._names, key=lambda bot: (-scores[bot], -buchholz[bot]))  # stable: then by seed
        return [(bot, scores[bot], buchholz[bot]) for bot in order]

    def _groups(self, preset: int, size: int, history: History) -> tuple[list[list[str]], list[str]]:
        """The tables of the next round, and who has a bye."""
        past = _Past(preset, history)
        standing = [row for row in self.standing(preset, history) if row[0] not in history.away]
        scores = {bot: score for bot, score, _ in standing}
        there = [bot for bot, _, _ in standing]
        place = {bot: number for number, bot in enumerate(there)}
        byes = sorted(there, key=lambda bot: (past.byes[bot], -place[bot]))[: len(there) % size]
        playing = [bot for bot in there if bot not in byes]
        if size == 2:
            return _pairs(playing, scores, past.meetings), byes
        tables = len(playing) // size
        if past.rounds == 0:
            return [playing[table::tables] for table in range(tables)], byes
        return _tables(playing, size, past.meetings), byes


class _Past:
    """The rounds of one preset, looked up. tables: by bot and round who else was at its tables. byes: by bot.
    meetings: by pair of bots, counted once for a round."""

    def __init__(self, preset: int, history: History) -> None:
        self.rounds = len(history.rounds)
        self.tables: defaultdict[str, list[set[str]]] = defaultdict(list)
        self.byes: Counter[str] = Counter()
        self.meetings: Counter[frozenset[str]] = Counter()
        self._away = history.away
        self._points: Counter[tuple[str, int]] = Counter()
        self._rows: Counter[tuple[str, int]] = Counter()
        self._paired: set[tuple[str, int]] = set()
        self._without: set[tuple[str, int]] = set()
        for number, fixtures in enumerate(history.rounds):
            at_table: defaultdict[str, set[str]] = defaultdict(set)
            for line_up, fixture in numbered(one for one in fixtures if one.preset == preset):
                if fixture.sets == 0:
                    self.byes[fixture.line_up[0]] += 1
                    self._without.add((fixture.line_up[0], number))
                    continue
                score = history.scores.get((number, preset, line_up))
                for bot in set(fixture.line_up):
                    at_table[bot].update(fixture.line_up)
                    self._paired.add((bot, number))
                    if score is not None:
                        self._points[bot, number] += score.points[bot]
                        self._rows[bot, number] += score.rows[bot]
            for bot, everyone in at_table.items():
                self.tables[bot].append(everyone - {bot})
            self.meetings.update(
                {frozenset((bot, other)) for bot, everyone in at_table.items() for other in everyone - {bot}}
            )

    def score(self, bot: str, number: int) -> Fraction:
        """Of a round, 0 to 1: the mean over the games; 1 for a bye or walkover; 0 for who was away."""
        rows = self._rows[bot, number]
        if rows:
            return Fraction(self._points[bot, number], 2 * rows)
        walkover = (bot, number) in self._paired and bot not in self._away
        return Fraction(int(walkover or (bot, number) in self._without))


def _pairs(
    playing: Sequence[str], scores: Mapping[str, Fraction], meetings: Mapping[frozenset[str], int]
) -> list[list[str]]:
    """Pair bots, given in order of standing: no repeat where the search finds a way, then near scores, then
    the top half of those with one score against the bottom half."""
    for allowed in count():
        steps = iter(range(_PAIRING_STEPS))
        found = _search_pairs(list(playing), scores, meetings, allowed, steps)
        if found is not None:
            return found
    raise AssertionError("unreachable: some number of repeats allows every pair")


def _search_pairs(
    left: list[str],
    scores: Mapping[str, Fraction],
    meetings: Mapping[frozenset[str], int],
    allowed: int,
    steps: Iterator[int],
) -> list[list[str]] | None:
    """Pair the first of ``left``, then the others; None: not possible, or not within ``steps``."""
    if not left:
        return []
    if next(steps, None) is None:
        return None
    first, others = left[0], left[1:]
    half = (sum(scores[bot] == scores[first] for bot in left) + 1) // 2 - 1  # of the bottom half the first

    def nearest(place: int) -> tuple[int, Fraction, int, int]:
        bot = others[place]
        met, gap = meetings.get(frozenset((first, bot)), 0), scores[first] - scores[bot]
        return (met, gap, abs(place - half), -place) if not gap else (met, gap, place, 0)

    for place in sorted(range(len(others)), key=nearest):
        second = others[place]
        if meetings.get(frozenset((first, second)), 0) > allowed:
            return None
        rest = _search_pairs(others[:place] + others[place + 1 :], scores, meetings, allowed, steps)
        if rest is not None:
            return [[first, second], *rest]
    return None


def _tables(playing: Sequence[str], size: int, meetings: Mapping[frozenset[str], int]) -> list[list[str]]:
    """Seat bots, given in order of standing: each table has the best one left and those next to it that have
    met its bots least often."""
    left = list(playing)
    groups: list[list[str]] = []
    while left:
        group = [left.pop(0)]
        while len(group) < size:
            met = [sum(meetings.get(frozenset((bot, one)), 0) for one in group) for bot in left]
            group.append(left.pop(met.index(min(met))))
        groups.append(group)
    return groups


# --- knockout --------------------------------------------------------------------------------------


class Knockout:
    """A bracket for each preset, seeded by the order of ``names``: ``deal_sets`` sets for each match, and up
    to ``extra_sets`` more while it is drawn. tables: by preset, each of two different bots."""

    drawn: Final = True

    def __init__(
        self, names: Sequence[str], tables: Sequence[Table], deal_sets: int, extra_sets: int
    ) -> None:
        self._names = names
        self._tables = tables
        self._deal_sets = deal_sets
        self._extra_sets = extra_sets

    def next_round(self, history: History) -> Round | None:
        """See ``Rounds``. First the further sets of drawn matches, then the next round of the brackets."""
        brackets = [self._bracket(preset, history) for preset in range(len(self._tables))]
        again = [(preset, pair) for preset, bracket in enumerate(brackets) for pair in bracket.drawn]
        ready = [(preset, pair) for preset, bracket in enumerate(brackets) for pair in bracket.ready]
        if not again and not ready:
            return None
        first_set, sets = history.next_set, 1 if again else self._deal_sets
        fixtures = [
            fixture
            for preset, pair in again or ready
            for fixture in self._match(preset, pair, first_set, sets)
        ]
        if not history.rounds:
            for preset, bracket in enumerate(brackets):
                fixtures += [Fixture(preset, (bot,), first_set, 0) for bot in bracket.byes]
        return tuple(fixtures)

    def to_come(self, history: History) -> Iterator[Fixture]:
        """See ``Rounds``. Matches that have not begun; nobody knows which will be drawn."""
        for preset in range(len(self._tables)):
            for _ in range(len(self._names) - 1 - len(_matches(preset, history))):
                yield from self._match(
                    preset, (self._names[0], self._names[1]), history.next_set, self._deal_sets
                )

    def placings(self, preset: int, history: History) -> list[tuple[int, str]]:
        """(place, bot) of the winner and of those who are out, best first. Who lose in one round share a
        place: 1, 2, 3, 3, 5, ..."""
        placed = self._bracket(preset, history).placed
        return sorted(placed, key=lambda one: (one[0], self._names.index(one[1])))

    def _match(self, preset: int, pair: tuple[str, str], first_set: int, sets: int) -> Round:
        line_ups = fill(self._tables[preset], pair)
        return tuple(Fixture(preset, line_up, first_set, sets) for line_up in line_ups)

    def _bracket(self, preset: int, history: History) -> _Bracket:
        bracket = _Bracket()
        matches = _matches(preset, history)
        last_seen = {bot: match.last_round for match in matches.values() for bot in match.bots}
        level: list[str | None] = [
            self._names[seed] if seed < len(self._names) else None for seed in _seeds(len(self._names))
        ]
        while len(level) > 1:
            after: list[str | None] = []
            for one, other in zip(level[::2], level[1::2], strict=True):
                if one is None or other is None:
                    bye = one or other or ""
                    bracket.byes.append(bye)
                    after.append(bye)
                    continue
                pair = (one, other) if self._names.index(one) < self._names.index(other) else (other, one)
                match = matches.get(frozenset(pair))
                if match is None:
                    bracket.ready.append(pair)
                    continue
                winner = self._winner(preset, pair, match, last_seen, history.away)
                if winner is not None:
                    after.append(winner)
                    bracket.placed.append((len(level) // 2 + 1, other if winner == one else one))
                elif match.games >= self._games(preset, match):
                    bracket.drawn.append(pair)
            if 2 * len(after) < len(level):
                return bracket
            level = after
        bracket.placed.append((1, level[0] or ""))
        return bracket

    def _games(self, preset: int, match: _Match) -> int:
        table = self._tables[preset]
        return sum(games_of(one.line_up, table, one.first_set, one.sets) for one in match.fixtures)

    def _winner(
        self, preset: int, pair: tuple[str, str], match: _Match, last_seen: Mapping[str, int], away: set[str]
    ) -> str | None:
        """Who goes on, ``pair`` being in order of seed; None: nobody yet."""
        # Whoever was paired again has gone on, also where a game that came late would now say otherwise.
        gone_on = [bot for bot in pair if last_seen[bot] > match.last_round]
        if gone_on:
            return gone_on[0]
        if match.games < self._games(preset, match):
            there = [bot for bot in pair if bot not in away]
            return None if len(there) == 2 else (there or pair)[0]
        better, worse = pair
        if match.points[better] != match.points[worse]:
            return max(pair, key=match.points.__getitem__)
        return better if match.last_round - match.first_round >= self._extra_sets else None


@dataclass(slots=True)
class _Bracket:
    """ready: pairs whose match can begin. drawn: that play a further set. byes: of the first round. placed:
    (place, bot) of who is out, and of the winner."""

    ready: list[tuple[str, str]] = field(default_factory=list)
    drawn: list[tuple[str, str]] = field(default_factory=list)
    byes: list[str] = field(default_factory=list)
    placed: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Match:
    """All that two bots have played. A match takes consecutive rounds: nobody goes on while one is drawn."""

    bots: frozenset[str]
    first_round: int
    last_round: int
    fixtures: list[Fixture] = field(default_factory=list)
    games: int = 0
    points: Counter[str] = field(default_factory=Counter)


def _matches(preset: int, history: History) -> dict[frozenset[str], _Match]:
    """The matches of a preset that have begun, by their bots."""
    found: dict[frozenset[str], _Match] = {}
    for number, fixtures in enumerate(history.rounds):
        for line_up, fixture in numbered(one for one in fixtures if one.preset == preset):
            if fixture.sets == 0:
                continue
            bots = frozenset(fixture.line_up)
            match = found.setdefault(bots, _Match(bots, number, number))
            match.last_round = number
            match.fixtures.append(fixture)
            score = history.scores.get((number, preset, line_up))
            if score is not None:
                match.games += score.games
                match.points.update(score.points)
    return found


def _seeds(bots: int) -> list[int]:
    """The slots of a bracket by seed, from 0: the best two can meet only in the final, and so on down."""
    order = [0]
    while len(order) < bots:
        order = [seed for one in order for seed in (one, 2 * len(order) - 1 - one)]
    return order


# --- ladder ----------------------------------------------------------------------------------------


class Rated(NamedTuple):
    """What is known of a bot in a preset. rating: Elo. error: its ±, None where none can be given yet. sets:
    deal sets that went into it."""

    rating: float
    error: float | None
    sets: int


Ratings = Mapping[tuple[int, str], Rated]
"""By preset and bot; a bot that is missing has not been rated at all."""

_UNRATED: Final = Rated(0.0, None, 0)


class Ladder:
    """Chooses fixtures without end: the connected bot whose rating is least certain, among those who tell
    most about it. Nobody is connected at first.

    names: any order. tables: by preset. deal_sets: for each meeting. seed: decides ties. ratings: asked at
    each choice.
    """

    def __init__(
        self,
        names: Sequence[str],
        tables: Sequence[Table],
        deal_sets: int,
        seed: str,
        ratings: Callable[[], Ratings],
    ) -> None:
        self._names = names
        self._tables = tables
        self._deal_sets = deal_sets
        self._seed = seed
        self._ratings = ratings
        self._there: set[str] = set()
        self._sets: Counter[tuple[int, str]] = Counter()
        self._meetings: Counter[tuple[int, frozenset[str]]] = Counter()

    def connected(self, bot: str, there: bool) -> None:
        """A bot has come or gone. Raises KeyError for one that the event does not have."""
        if bot not in self._names:
            raise KeyError(bot)
        (self._there.add if there else self._there.discard)(bot)

    def can_play(self, line_up: LineUp) -> bool:
        """Whether all bots of a line-up are connected."""
        return self._there.issuperset(line_up)

    def choose(self, number: int, first_set: int) -> Round | None:
        """Choice ``number`` (from 0), with sets from ``first_set`` on: the line-ups of one group of bots.
        None while too few are connected. It counts as played at once (see ``replay``)."""
        ratings = self._ratings()
        there = [bot for bot in self._names if bot in self._there]
        possible = [
            (preset, bot)
            for preset, table in enumerate(self._tables)
            if table.different_bots <= len(there)
            for bot in there
        ]
        if not possible:
            return None

        def known(preset: int, bot: str) -> tuple[float, ...]:
            rated, sets = ratings.get((preset, bot), _UNRATED), self._sets[preset, bot]
            if rated.error is None:
                return (0, sets, self._tie(number, preset, bot))
            # Errors go with the root of the number of sets; those under way will lessen it.
            expected = rated.error * (rated.sets / max(sets, rated.sets, 1)) ** 0.5
            return (1, -expected, self._tie(number, preset, bot))

        preset, bot = min(possible, key=lambda one: known(*one))
        table, group = self._tables[preset], [bot]

        def told(other: str) -> tuple[float, float]:
            about = sum(self._information(ratings, preset, one, other) for one in group)
            return (about, self._tie(number, preset, other))

        while len(group) < table.different_bots:
            group.append(max((other for other in there if other not in group), key=told))
        group.sort(key=self._names.index)
        fixtures = tuple(Fixture(preset, one, first_set, self._deal_sets) for one in fill(table, group))
        self.replay(fixtures)
        return fixtures

    def replay(self, fixtures: Round) -> None:
        """Count a choice: bots that meet often, or have much under way, are chosen less."""
        pairs: set[tuple[int, frozenset[str]]] = set()
        for fixture in fixtures:
            bots = set(fixture.line_up)
            for bot in bots:
                self._sets[fixture.preset, bot] += fixture.sets
            pairs |= {(fixture.preset, frozenset(pair)) for pair in combinations(bots, 2)}
        self._meetings.update(pairs)

    def _information(self, ratings: Ratings, preset: int, one: str, other: str) -> float:
        """What a meeting tells of the difference of two bots, against what earlier ones have told."""
        difference = (
            ratings.get((preset, one), _UNRATED).rating - ratings.get((preset, other), _UNRATED).rating
        )
        expected = 1 / (1 + 10 ** (-max(-4000.0, min(4000.0, difference)) / 400))
        return expected * (1 - expected) / (1 + self._meetings[preset, frozenset((one, other))])

    def _tie(self, number: int, preset: int, bot: str) -> float:
        digest = hashlib.sha256(f"{self._seed}/{number}/{preset}/{bot}".encode()).digest()
        return int.from_bytes(digest[:6], "big")
