"""Plays bots against each other in this process: the engine on one side, real messages to real views on
the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tressette.rules.actions import Legal
from tressette.rules.deck import seeded
from tressette.rules.events import Event, MatchEnded
from tressette.rules.match import Match
from tressette.rules.ruleset import RuleSet
from tressette.rules.suits import AS_SHUFFLED, with_suits
from tressette.v1.arena_service_pb2 import MatchStarted, MatchUpdate
from tressette.v1.view_pb2 import LegalActions
from tressette.wire.convert import actions_of, declaration_to_wire, event_to_wire, rules_to_wire, wire_cards
from tressette_bot.answers import decide
from tressette_bot.bot import Bot
from tressette_bot.view import View


class Table:
    """One match under way and the view of each seat. ``log`` holds all events so far. ``suits``: the suit
    order that it is dealt under."""

    def __init__(
        self,
        rules: RuleSet,
        seed: bytes,
        bot_seed: bytes = bytes(32),
        suits: str = AS_SHUFFLED,
        commitment: bytes = b"",
    ) -> None:
        self.match = Match(rules, with_suits(seeded(seed), suits))
        self.views = [
            View(
                f"seat-{seat}",
                MatchStarted(
                    rules=rules_to_wire(rules),
                    seat=seat,
                    attempt=1,
                    bot_seed=bot_seed + bytes((seat,)),
                    deck_commitment=commitment,
                ),
            )
            for seat in range(rules.players)
        ]
        self.log: list[Event] = self.match.start()
        self._sent = [0] * rules.players

    def update(self, seat: int) -> MatchUpdate:
        """What the arena would send to this seat now; counts as sent."""
        sent = self._sent[seat]
        self._sent[seat] = len(self.log)
        message = MatchUpdate(handle=f"seat-{seat}", first_event=sent + 1)
        message.events.extend(event_to_wire(event, (seat,)) for event in self.log[sent:])
        if seat in self.match.pending:
            deal, turn = self.match.deal, message.turn
            turn.turn_id = self.views[seat].turn_id + 1
            turn.view.hand.extend(wire_cards(deal.hands[seat]))
            turn.view.table.extend([card + 1 for card in deal.table])  # type: ignore[misc]  # enum values
            turn.view.leader = deal.leader
            turn.view.legal.CopyFrom(_legal(self.match.legal(seat)))
        return message

    def ask(self, seat: int, bot: Bot, before: Callable[[], None] | None = None) -> None:
        """Bring the view of ``seat`` up to date and play what the bot answers; ``before`` is called in
        between. Raises ActionError for an answer that the rules refuse."""
        view = self.views[seat]
        assert view.take(self.update(seat))
        if before is not None:
            before()
        actions = actions_of(decide(bot, view), self.match.declarable(seat))
        self.log += self.match.act(seat, actions)

    def play(self, bots: Sequence[Bot]) -> MatchEnded:
        """Play to the end; ``bots`` by seat, one may have several."""
        while not self.match.over:
            seat = self.match.pending[0]
            self.ask(seat, bots[seat])
        ended = self.log[-1]
        assert isinstance(ended, MatchEnded)
        return ended


def _legal(legal: Legal) -> LegalActions:
    return LegalActions(
        cards=wire_cards(legal.cards),
        declarations=[declaration_to_wire(one) for one in legal.declarations],
        discards=wire_cards(legal.discards),
        call_out=legal.call_out,
        monte=legal.monte,
        signals=legal.signals,
    )
