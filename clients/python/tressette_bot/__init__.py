"""Write a bot in a dozen lines::

from tressette_bot import Bot, Card, View, run

class Mine(Bot):
    name = "mine"

    def choose(self, view: View) -> Card:
        return view.rng.choice(view.legal)

run(Mine(), "127.0.0.1:50051")
"""

from tressette.rules.cards import Card

from tressette_bot.bot import Bot
from tressette_bot.client import Reconnect, play, run
from tressette_bot.errors import (
    ClientError,
    ConnectionLost,
    NotConfigured,
    ProtocolViolated,
    Refused,
    UnknownRules,
)
from tressette_bot.reveals import dealt_line, fetch_reveals
from tressette_bot.view import Deal, Trick, View

__all__ = [
    "Bot",
    "Card",
    "ClientError",
    "ConnectionLost",
    "Deal",
    "NotConfigured",
    "ProtocolViolated",
    "Reconnect",
    "Refused",
    "Trick",
    "UnknownRules",
    "View",
    "dealt_line",
    "fetch_reveals",
    "play",
    "run",
]
