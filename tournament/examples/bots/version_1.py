"""The bot that ab.toml starts from: it plays its weakest card, whatever is on the table."""

from tressette.rules.cards import STRENGTH
from tressette_bot import Bot, Card, View, run


class Mine(Bot):
    name = "mine"
    version = "1"

    def choose(self, view: View) -> Card:
        return min(view.legal, key=STRENGTH.__getitem__)


run(Mine())
