"""Turns the events of one game into lines of the record.

Lines of a game, in order: ``match`` (what is played, by whom, under which resolved rules), then for each
deal its ``trick`` lines and a ``deal`` line, or a ``void`` line where it went monte, or a ``cut`` line where
a forfeit ended the match in it; the committing ``game`` line is written by ``committed``. What happened
between two lines (declarations, draws, a discard, faults) is in the later one. ``record.replay`` plays these
lines again.
Cards are in text notation separated by blanks; scores are sixths; times are whole milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tressette.record.game import GameSpec
from tressette.record.writer import Recorder
from tressette.rules.accuse import Declaration
from tressette.rules.cards import BITS, POINT_CARDS, cards_of
from tressette.rules.deck import Phase
from tressette.rules.events import (
    CalledOut,
    CardDiscarded,
    CardDrawn,
    CardPlayed,
    DealScored,
    DealStarted,
    DealVoided,
    DeclarationMade,
    Event,
    FaultCommitted,
    MatchEnded,
    PartnersDrawn,
    SideEliminated,
    SideScore,
    TrickWon,
)
from tressette.rules.explain import breakdown


def _cards(mask: int | None) -> str:
    return " ".join(map(str, cards_of(mask or 0)))


def _declaration(seat: int, one: Declaration) -> list[object]:
    return [seat, str(one.kind), one.of, _cards(one.cards), one.points]


class Scribe:
    """Follows one game. By player: ``versions`` are what the bots said of themselves, ``processes`` the ids
    of the processes that were launched for them, empty where there are none."""

    def __init__(
        self, recorder: Recorder, spec: GameSpec, versions: Sequence[str], processes: Sequence[str] = ()
    ) -> None:
        self._recorder = recorder
        self._spec = spec
        self.versions = list(versions)
        self._processes = list(processes) or [""] * len(spec.bots)
        self._game = (spec.game, spec.attempt)
        self._deals = 0
        self._faults: Counter[tuple[str, str]] = Counter()
        self._trick: list[CardPlayed] = []
        self._times: list[tuple[int, int]] = []
        self._extra: dict[str, list[Any]] = {}
        self._deal: DealStarted | None = None
        self._tricks = 0
        self._draws: list[PartnersDrawn] = []
        self._taken: list[int] = []
        self._ended: MatchEnded | None = None
        self._seats = tuple(range(spec.rules.players))
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            PartnersDrawn: self._partners_drawn,
            DealStarted: self._deal_started,
            DealVoided: self._deal_voided,
            CardDiscarded: lambda event: self._note("discard", [event.seat, str(event.card)]),
            DeclarationMade: lambda event: self._note(
                "declarations", _declaration(event.seat, event.declaration)
            ),
            CalledOut: lambda event: self._note("call_out", [event.seat, event.right]),
            TrickWon: self._trick_won,
            CardDrawn: lambda event: self._note("draws", [event.seat, str(event.card)]),
            DealScored: self._deal_scored,
            SideEliminated: lambda event: None,
            FaultCommitted: self._fault,
            MatchEnded: self._match_ended,
        }

    def write(self, events: Iterable[Event], think_ms: int = 0, network_ms: int = 0) -> None:
        """Record what happened. The times are those of the seat whose answer caused it."""
        for event in events:
            if type(event) is CardPlayed:
                self._trick.append(event)
                self._times.append((think_ms, network_ms))
            else:
                self._handlers[type(event)](event)

    def _match_line(self) -> None:
        """The first line of the game; written at the first deal, since a draw of partners comes before."""
        spec = self._spec
        self._line(
            "match",
            tournament=spec.tournament,
            preset=spec.preset,
            rules=spec.rules.options(),
            rules_hash=spec.rules.hash(),
            commitment=spec.commitment,
            suits=spec.suits,
            deal_set=spec.deal_set,
            deck=spec.deck,
            bots=list(spec.bots),
            versions=self.versions,
            processes=self._processes,
            partners_drawn=[
                {"hands": [_cards(hand) for hand in drawn.hands], "seats": list(drawn.seats)}
                for drawn in self._draws
            ],
        )

    def committed(self, duration_ms: int, ended_unix_ms: int) -> dict[str, Any]:
        """Write the ``game`` line of a match that has ended; returns its fields."""
        spec, ended = self._spec, self._ended
        assert ended is not None
        bots = [spec.bots[self._seats.index(seat)] for seat in range(len(spec.bots))]
        sides = [[bots[seat] for seat in spec.rules.seats_of(side)] for side in range(spec.rules.side_count)]
        fields: dict[str, Any] = {
            "game": spec.game,
            "attempt": spec.attempt,
            "tournament": spec.tournament,
            "deal_set": spec.deal_set,
            "set_size": spec.set_size,
            "deck": spec.deck,
            "preset": spec.preset,
            "rules_hash": spec.rules.hash(),
            "objective": str(spec.rules.objective),
            "commitment": spec.commitment,
            "bots": bots,
            "sides": sides,
            "points": list(ended.totals),
            "ranks": list(ended.ranks),
            "deals": self._deals,
            "termination": str(ended.reason),
            "forfeit": None if ended.seat is None else spec.rules.side_of(ended.seat),
            "offender": None if ended.seat is None else bots[ended.seat],
            "faults": [[bot, kind, count] for (bot, kind), count in sorted(self._faults.items())],
            "duration_ms": duration_ms,
            "ended_unix_ms": ended_unix_ms,
        }
        self._recorder.result_line(**fields)
        return fields

    # -- one handler for each kind of event ------------------------------------------------------

    def _line(self, kind: str, **fields: object) -> None:
        game, attempt = self._game
        self._recorder.trick_line(kind, game=game, attempt=attempt, **fields)

    def _note(self, name: str, value: object) -> None:
        """Keep something for the next line of the deal."""
        self._extra.setdefault(name, []).append(value)

    def _partners_drawn(self, event: PartnersDrawn) -> None:
        self._draws.append(event)
        self._seats = event.seats

    def _deal_started(self, event: DealStarted) -> None:
        if self._deal is None:
            self._match_line()
        self._deal = event
        self._tricks = 0
        self._taken = [0] * self._spec.rules.side_count

    def _deal_voided(self, event: DealVoided) -> None:
        deal = self._deal
        assert deal is not None
        self._line(
            "void",
            deal=deal.number,
            dealt=deal.attempt,
            dealer=deal.dealer,
            leader=deal.leader,
            hands=[_cards(hand) for hand in deal.hands],
            seat=event.seat,
            **self._extra,
        )
        self._extra = {}

    def _trick_won(self, event: TrickWon) -> None:
        deal = self._deal
        assert deal is not None
        self._tricks += 1
        trick = self._trick
        game, attempt = self._game
        extra = self._extra
        side = self._spec.rules.side_of(event.seat)
        for card in trick:
            self._taken[side] |= BITS[card.card]
        if any(card.signal for card in trick):
            extra["signals"] = [card.signal for card in trick]
        self._recorder.trick_line(
            "trick",
            game=game,
            attempt=attempt,
            phase="main" if deal.phase is Phase.MAIN else "tie_break",
            deal=deal.number,
            dealt=deal.attempt,
            trick=self._tricks,
            leader=trick[0].seat,
            cards=" ".join([str(card.card) for card in trick]),
            winner=event.seat,
            thirds=event.thirds,
            think_ms=[think for think, _ in self._times],
            net_ms=[network for _, network in self._times],
            **extra,
        )
        self._trick, self._times, self._extra = [], [], {}

    def _deal_scored(self, event: DealScored) -> None:
        deal = self._deal
        assert deal is not None
        self._deals += 1
        self._line(
            "deal",
            phase="main" if event.phase is Phase.MAIN else "tie_break",
            deal=event.number,
            dealt=deal.attempt,
            dealer=deal.dealer,
            leader=deal.leader,
            hands=[_cards(hand) for hand in deal.hands],
            unfinished=" ".join(str(card.card) for card in self._trick),
            ended_by=str(event.ended_by),
            sides=[score and self._side(event, side, score) for side, score in enumerate(event.sides)],
            totals=list(event.totals),
            last_trick=event.last_trick,
            cappotto=event.cappotto,
            set_aside=None if event.set_aside is None else str(event.set_aside),
            **self._extra,
        )
        self._trick, self._times, self._extra = [], [], {}

    def _side(self, event: DealScored, side: int, score: SideScore) -> dict[str, object]:
        """How a side's count came about, down to its cards."""
        taken = self._taken[side]
        if event.set_aside is not None and side == event.last_trick:
            taken |= BITS[event.set_aside]
        dropped, bonus = breakdown(self._spec.rules, event, side)
        return {
            "cards": _cards(taken & POINT_CARDS),
            "thirds": score.thirds,
            "tricks": score.tricks,
            "dropped_thirds": dropped,
            "last_trick_bonus": bonus,
            "declared": score.declared,
            "counted": score.counted,
            "points": score.points,
        }

    def _fault(self, event: FaultCommitted) -> None:
        bot = self._spec.bots[self._seats.index(event.seat)]
        self._faults[bot, str(event.kind)] += 1
        self._note("faults", [event.seat, str(event.kind), str(event.effect), event.reason])

    def _match_ended(self, event: MatchEnded) -> None:
        self._ended = event
        if event.seat is not None:
            self._cut_short()

    def _cut_short(self) -> None:
        """What was dealt and played of a deal that a forfeit ended, without which it could not be played
        again."""
        deal = self._deal
        assert deal is not None
        self._line(
            "cut",
            phase="main" if deal.phase is Phase.MAIN else "tie_break",
            deal=deal.number,
            dealt=deal.attempt,
            dealer=deal.dealer,
            leader=deal.leader,
            hands=[_cards(hand) for hand in deal.hands],
            unfinished=" ".join(str(card.card) for card in self._trick),
            **self._extra,
        )
