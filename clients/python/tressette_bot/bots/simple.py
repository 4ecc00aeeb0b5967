"""Two bots without a thought: the measure of all others, and the fastest there is."""

from __future__ import annotations

from tressette.rules.cards import Card

from tressette_bot.bot import Bot
from tressette_bot.view import View


class RandomBot(Bot):
    """Plays any legal card, all equally likely."""

    name = "random"
    version = "1"

    def choose(self, view: View) -> Card:
        """A legal card by ``view.rng``."""
        return view.rng.choice(view.legal)


class FirstLegalBot(Bot):
    """Plays the first legal card in deck order; needs neither chance nor history."""

    name = "first_legal"
    version = "1"

    def choose(self, view: View) -> Card:
        """The first legal card."""
        return view.legal[0]
