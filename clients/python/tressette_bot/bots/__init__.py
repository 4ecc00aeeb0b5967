"""The reference bots, by the name that ``tressette bot`` knows them by."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tressette_bot.bot import Bot
from tressette_bot.bots.cautious import CautiousBot
from tressette_bot.bots.greedy import GreedyBot
from tressette_bot.bots.simple import FirstLegalBot, RandomBot

REFERENCE_BOTS: Final[Mapping[str, type[Bot]]] = MappingProxyType(
    {bot.name: bot for bot in (RandomBot, FirstLegalBot, GreedyBot, CautiousBot)}
)
"""Every reference bot. All of them draw their chance from the match's seed only."""
