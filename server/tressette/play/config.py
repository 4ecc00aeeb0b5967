"""What a match is played with besides its rules: time, patience, and what becomes of faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from tressette.rules.events import FaultEffect, FaultKind

POLICIES: Final = (
    FaultEffect.SUBSTITUTE,
    FaultEffect.FORFEIT,
    FaultEffect.TRANSFER_ALL,
    FaultEffect.PENALTY,
)
"""What a kind of fault may lead to. ``not_your_turn`` may also lead to nothing."""

_DEFAULTS: Final = MappingProxyType(
    {
        kind: FaultEffect.NONE if kind is FaultKind.NOT_YOUR_TURN else FaultEffect.SUBSTITUTE
        for kind in FaultKind
    }
)


class ConfigError(ValueError):
    """A value that cannot be; ``name`` is the setting, ``reason`` says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason = name, reason


@dataclass(frozen=True, slots=True)
class PlayConfig:
    """How matches are timed and faults dealt with. Times are milliseconds.

    move_ms: for one answer, from the moment it is sent; 0: no limit of its own. bank_ms: drawn on when
    move_ms is used up; increment_ms: added to it after each answer. With move_ms and bank_ms both 0 there
    is no clock. allowance_ms: most that is taken for the network, see ``play.game``. illegal_retries: how
    often a refused answer may be corrected within one turn, the clock running on. policies: what each
    kind of fault leads to. strikes: faults of one seat that lose it the match, 0: none. Raises
    ConfigError.
    """

    move_ms: int = 2000
    illegal_retries: int = 1
    bank_ms: int = 0
    increment_ms: int = 0
    allowance_ms: int = 100
    policies: Mapping[FaultKind, FaultEffect] = field(default_factory=lambda: _DEFAULTS)
    strikes: int = 0

    def __post_init__(self) -> None:
        for name in ("move_ms", "bank_ms", "increment_ms", "allowance_ms", "illegal_retries", "strikes"):
            if getattr(self, name) < 0:
                raise ConfigError(name, f"{getattr(self, name)} is negative")
        if not self.timed and self.increment_ms:
            raise ConfigError("increment_ms", "means nothing without move_ms or bank_ms")
        for kind, effect in self.policies.items():
            if effect not in POLICIES and (kind, effect) != (FaultKind.NOT_YOUR_TURN, FaultEffect.NONE):
                raise ConfigError(f"policies.{kind}", f"{effect} is none of {', '.join(POLICIES)}")

    @property
    def timed(self) -> bool:
        """Whether there is a clock at all."""
        return bool(self.move_ms or self.bank_ms)

    def policy(self, kind: FaultKind) -> FaultEffect:
        """What a fault of this kind leads to, once it may not be corrected."""
        return self.policies.get(kind, _DEFAULTS[kind])


def policies_from(settings: Mapping[str, str]) -> dict[FaultKind, FaultEffect]:
    """Policies from names, e.g. ``{"timeout": "forfeit"}``; raises ConfigError naming the setting."""
    found = {}
    for name, value in settings.items():
        if name not in tuple(FaultKind):
            raise ConfigError(f"policies.{name}", f"no such kind of fault; there are {', '.join(FaultKind)}")
        if value not in tuple(FaultEffect):
            raise ConfigError(f"policies.{name}", f"{value!r} is none of {', '.join(POLICIES)}")
        found[FaultKind(name)] = FaultEffect(value)
    return found
