"""What a match is played with besides its rules: time and patience."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlayConfig:
    """move_ms: time for one answer from the moment it is sent, 0 for none; illegal_retries: how often a
    refused answer may be corrected within one turn, the clock running on."""

    move_ms: int = 2000
    illegal_retries: int = 1
