"""What ab.toml tries: the same, but where it need not take the trick it gets rid of its strongest card."""

from tressette.rules.cards import STRENGTH, SUIT_OF
from tressette_bot import Bot, Card, View, run


class Mine(Bot):
    name = "mine"
    version = "2"

    def choose(self, view: View) -> Card:
        strength = STRENGTH.__getitem__
        if view.winning is None:
            return min(view.legal, key=strength)
        best = view.winning[1]
        under = [c for c in view.legal if SUIT_OF[c] != SUIT_OF[best] or strength(c) < strength(best)]
        return max(under, key=strength) if under else min(view.legal, key=strength)


run(Mine())
