"""How often a bot meets a deck, and whether suit orders can hide that.

The games of a deck are dealt under different suit orders while there are enough of them: 24 where the rules
name no suit, 6 or 2 where they name some. A bot that meets a deck more often sees a deal exactly as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import factorial

from tressette.rules.suits import free_suits

from tressette_tournament.formats import FixedRounds, History, format_of
from tressette_tournament.lineups import seatings
from tressette_tournament.tournament_file import Isolation, Tournament


def warnings(tournament: Tournament) -> Iterator[str]:
    """For each preset whose repeats suit orders cannot hide a sentence for the organiser.

    None where decks are public or processes isolated, nor for formats that take fresh decks for every round
    (Swiss, knockout, ladder): there a bot meets a deck only within one deal set.
    """
    event_format = format_of(tournament)
    is_open = tournament.seed is not None or tournament.isolation is Isolation.FRESH
    if is_open or not isinstance(event_format, FixedRounds):
        return
    met: Counter[tuple[int, int, str]] = Counter()
    for number, fixture in enumerate(event_format.next_round(History()) or ()):
        table = tournament.table(tournament.presets[fixture.preset])
        games = len(seatings(fixture.line_up, table, fixture.first_set))
        deck = 0 if tournament.common_deals else number
        for bot in set(fixture.line_up):
            met[fixture.preset, deck, bot] += games
    for index, preset in enumerate(tournament.presets):
        most = max((count for (one, _, _), count in met.items() if one == index), default=0)
        orders = factorial(len(free_suits(preset.rules)))
        if most > orders:
            yield (
                f"{preset.name}: a bot meets each deck {most} times, under {orders} suit orders; one that "
                'remembers deals would know some again. isolation = "fresh" prevents it, '
                "common_deals = false makes it rarer"
            )
