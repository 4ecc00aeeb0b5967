"""Everything that the client raises, as one tree::

    ClientError                 anything below
    +-- NotConfigured           no address, or one that is none; TLS files that are none; a token or name
    |                           that is no text (also a ValueError)
    +-- ConnectionLost          the arena is gone, or was never there, and reconnecting was given up
    +-- Refused                 the arena will not have this bot; ``reason`` says why
    +-- ProtocolViolated        the arena sent something that the protocol does not allow
    +-- UnknownRules            a match with a rule that this client is too old to know

What the bot's own code raises is none of these: it passes through unchanged.
"""

from __future__ import annotations


class ClientError(Exception):
    """Base of everything the client raises."""


class NotConfigured(ClientError, ValueError):
    """Something that the client needs was neither passed nor set in the environment, or is unusable."""


class ConnectionLost(ClientError):
    """No arena at ``address`` within the time and the attempts that ``Reconnect`` grants."""

    def __init__(self, address: str, why: str, attempts: int) -> None:
        super().__init__(f"no arena at {address} after {attempts} attempts: {why}")
        self.address = address
        self.why = why
        self.attempts = attempts


class Refused(ClientError):
    """The arena ended the session. ``reason`` is an ErrorReason without its prefix, such as
    ``UNAUTHENTICATED``, or a gRPC status code; ``message`` is for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}" if message else reason)
        self.reason = reason
        self.message = message


class ProtocolViolated(ClientError):
    """A message of the arena makes no sense where it came."""


class UnknownRules(ClientError):
    """``option`` of a match's rules has a value that this client does not know."""

    def __init__(self, option: str, value: object) -> None:
        super().__init__(f"{option}: this client does not know the value {value}; a newer one may")
        self.option = option
        self.value = value
