"""Bot tokens: whoever shows one plays under the name that it stands for.

Vocabulary: a **token** is the secret text in a bot's Hello, ``tressette_`` and 32 random bytes. Its
**digest** is its SHA-256, all that is ever stored; its **id** is the beginning of that, which may be shown
anywhere. A name may have several tokens, so that one can be replaced without a pause.

The file has one JSON object a line::

    {"name": "mine", "created": "2026-01-31T12:00:00Z", "sha256": "..."}

Decisions:
1. Plain SHA-256: a token is 256 random bits, so there is nothing for a slow hash to protect.
2. A lookup compares with every token in constant time: how long it takes tells nothing of how near it was.
3. The file is replaced as a whole, under a lock on its folder, with mode 0600 and its old owner: root can
   make tokens for a server that runs as somebody else.
4. A server does not start with a damaged file. One that is running keeps what it read last and says so in
   its log: a slip while editing must neither shut everybody out nor let anybody in.

5. Tokens of processes that the runner has launched are never stored; they stand for a process as well.

Errors::

    TokenError              what was asked cannot be done
    └── TokenFileDamaged    the file is not what it should be; names the line
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
import structlog

from tressette.record.whole import replace_file

log = structlog.get_logger("tressette.tokens")

PREFIX: Final = "tressette_"
REVOCATION_EVERY_S: Final = 2.0
"""How often it is looked whether the token of a live session has been revoked."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CREATED: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_ID_DIGITS: Final = 12
_ID: Final = re.compile(r"[0-9a-f]{12}")
_FIELDS: Final = {"name": _NAME, "created": _CREATED, "sha256": _DIGEST}


class TokenError(Exception):
    """Something that cannot be done with tokens; the text says what."""


class TokenFileDamaged(TokenError):
    """A token file with something else in it; ``line`` counts from 1."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}")
        self.path, self.line, self.reason = path, line, reason


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token: its ``name``, when it was ``created`` (UTC) and its ``digest``."""

    name: str
    created: str
    digest: str

    @property
    def id(self) -> str:
        """What it is called where it can be seen."""
        return self.digest[:_ID_DIGITS]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def token_id(token: str) -> str:
    """The id of a token, known or not."""
    return _digest(token)[:_ID_DIGITS]


# -- reading ------------------------------------------------------------------------------------------


def _token(path: Path, number: int, line: bytes) -> Token:
    try:
        fields: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise TokenFileDamaged(path, number, "not a JSON object") from None
    if not isinstance(fields, dict) or fields.keys() != _FIELDS.keys():
        raise TokenFileDamaged(path, number, f"not an object with {', '.join(_FIELDS)}")
    for key, form in _FIELDS.items():
        if not isinstance(fields[key], str) or not form.fullmatch(fields[key]):
            raise TokenFileDamaged(path, number, f"{key}: not what it should look like")
    return Token(fields["name"], fields["created"], fields["sha256"])


def _parse(path: Path, data: bytes) -> tuple[Token, ...]:
    found: dict[str, Token] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        token = _token(path, number, line)
        if token.digest in found:
            raise TokenFileDamaged(path, number, "the same token once more")
        found[token.digest] = token
    return tuple(found.values())


def read_tokens(path: Path) -> tuple[Token, ...]:
    """The tokens of a file, the oldest first. Raises TokenFileDamaged, OSError."""
    return _parse(path, path.read_bytes())


class TokenFile:
    """The tokens that a server accepts, always those that stand in the file now."""

    def __init__(self, path: Path) -> None:
        """Raises TokenFileDamaged, OSError."""
        self._path = path
        self._seen: object = _state(path)
        self._tokens = read_tokens(path)
        self._complaint = ""

    def name_of(self, token: str) -> str | None:
        """The name that a token stands for; None for one that is unknown or revoked."""
        self._refresh()
        digest, name = _digest(token), None
        for known in self._tokens:
            if hmac.compare_digest(known.digest, digest):
                name = known.name
        return name

    def ids(self) -> frozenset[str]:
        """The ids of all tokens that are good now."""
        self._refresh()
        return frozenset(token.id for token in self._tokens)

    def _refresh(self) -> None:
        try:
            state = _state(self._path)
            if state == self._seen:
                return
            self._tokens = read_tokens(self._path)
        except TokenFileDamaged as error:
            self._seen = state
            self._complain(str(error))
        except OSError as error:
            self._seen = None  # it may be readable the next time, unchanged
            self._complain(str(error))
        else:
            self._seen, self._complaint = state, ""
            log.info("tokens read", file=str(self._path), tokens=len(self._tokens))

    def _complain(self, reason: str) -> None:
        if reason != self._complaint:
            self._complaint = reason
            log.error("tokens not read, those read before stay good", reason=reason)


async def follow_revocations(tokens: TokenFile, keep_only: Callable[[Collection[str]], None]) -> None:
    """Have the sessions of revoked tokens ended, for ever. keep_only: ends all but those of these ids."""
    while True:
        await asyncio.sleep(REVOCATION_EVERY_S)
        try:
            keep_only(tokens.ids())
        except Exception as error:  # whatever it is, the next token must not stay good for it
            log.error("revoking failed", exc_info=error)


def _state(path: Path) -> tuple[int, int, int]:
    """What is different when a file has changed."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


# -- launched processes -------------------------------------------------------------------------------


class LaunchTokens:
    """The tokens of launched processes, in memory only. One token stands for one process of one bot."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str]] = {}  # name and process by digest

    def add(self, token: str, name: str, process: str) -> None:
        """A token is good from now on. process: its id, "" where it is not known."""
        self._known[_digest(token)] = (name, process)

    def remove(self, token: str) -> str:
        """A token is good no more; returns its process, "" for one that is not known."""
        _, process = self._known.pop(_digest(token), ("", ""))
        return process

    def remove_process(self, process: str) -> None:
        """No token of a process is good any more."""
        self._known = {digest: one for digest, one in self._known.items() if one[1] != process}

    def name_of(self, token: str) -> str | None:
        """The name that a token stands for; None for one that is unknown or removed."""
        known = self._known.get(_digest(token))
        return None if known is None else known[0]

    def process_of(self, token: str) -> str:
        """The process that a token stands for, "" if there is none."""
        return self._known.get(_digest(token), ("", ""))[1]

    def ids(self) -> frozenset[str]:
        """The ids of all tokens that are good now."""
        return frozenset(digest[:_ID_DIGITS] for digest in self._known)


# -- changing -----------------------------------------------------------------------------------------


def new_token(path: Path, name: str) -> tuple[str, Token]:
    """Make a token and add it to the file, which is made if missing; returns the secret text, which cannot be
    had again, and what is kept of it. Raises TokenError, OSError."""
    if not _NAME.fullmatch(name):
        raise TokenError(f"{name!r} is no name: 1 to 64 letters, digits, '.', '_' or '-'")
    if _ID.fullmatch(name):
        raise TokenError(f"{name!r} looks like the id of a token, which would make revoking ambiguous")
    text = PREFIX + secrets.token_urlsafe(32)
    token = Token(name, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), _digest(text))
    path = _itself(path)
    with _locked(path.parent):
        _replace(path, [*(read_tokens(path) if path.exists() else ()), token])
    return text, token


def revoke_tokens(path: Path, which: str) -> list[Token]:
    """Remove the token with this id, or all of this name; returns them. Raises TokenError, OSError."""
    path = _itself(path)
    with _locked(path.parent):
        tokens = read_tokens(path)
        gone = [token for token in tokens if which in (token.name, token.id)]
        if not gone:
            raise TokenError(f"{path}: no token with the name or id {which!r}")
        _replace(path, [token for token in tokens if token not in gone])
    return gone


def _itself(path: Path) -> Path:
    """The file that is to be replaced: a link stays a link. Raises TokenError where something else is in the
    place of a file, which replacing would do away with, be it a device."""
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise TokenError(f"{path}: not a regular file")
    return path


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep others from changing token files in this folder; the file itself is replaced, so it cannot be
    what is locked."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, tokens: Sequence[Token]) -> None:
    lines = (
        orjson.dumps({"name": token.name, "created": token.created, "sha256": token.digest}) + b"\n"
        for token in tokens
    )
    replace_file(path, b"".join(lines), 0o600, keep_owner=True)
