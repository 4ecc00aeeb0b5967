"""Keeps the matches of a server that stops, and takes them up again when it is started anew.

Decisions:
1. What is kept of a match are its steps (answers and faults, ``play.game.Step``), not its state: the rules
   play them again and must come to the same events, by count and SHA-256, or the match is not taken up.
2. A match goes on as its next attempt, written from its first deal by the new server's own writer, so that
   its record is complete in one writer's files. What the old writer has of it is an attempt without a result.
3. Handles, turn ids, bot seeds, banks and strikes stay; so does the time that an open turn has used. A clock
   stands still until its bot is back; a bot that does not come back within the grace period has left.
4. Sessions without a match under way are not kept: their bots lose nothing by a new one.
5. The file holds deck seeds and the arena's key: it can be read by its owner alone. Resume tokens are
   hashed in it.
6. A folder holds one suspension. It is taken up by one server: whoever renames it first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import tempfile
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tressette.play.config import PlayConfig, policies_from
from tressette.play.session import Seat, Session
from tressette.record.game import GameSpec
from tressette.record.whole import sync_folder
from tressette.rules.accuse import Combination
from tressette.rules.actions import Action, CallMonte, CallOut, Declare, Discard, PlayCard, Signal
from tressette.rules.cards import parse_card
from tressette.rules.errors import RulesError
from tressette.rules.events import Event, FaultCommitted, FaultEffect, FaultKind
from tressette.rules.match import Match
from tressette.rules.scoring import Revoke

if TYPE_CHECKING:
    from tressette.play.game import Game, Step

SCHEMA: Final = 1
FILE: Final = "suspended.json"

Happened = tuple[list[Event], int, int]
"""The events that came of one step, and its think and network time in milliseconds."""


class SuspensionError(ValueError):
    """A file that is none of ours, or a match that the rules do not play to where it stood."""


# -- to plain data ----------------------------------------------------------------------------------------


def token_hash(resume_token: str) -> str:
    """What stands for a resume token at rest. The token is random and long, so this needs no salt."""
    return hashlib.sha256(resume_token.encode()).hexdigest()


def suspended(
    key: bytes, sessions: Mapping[Session, str], games: Sequence[Game], now: float
) -> dict[str, Any]:
    """Plain data of everything under way. sessions: those to keep, with the hashes of their tokens."""
    return {
        "v": SCHEMA,
        "key": key.hex(),
        "sessions": [_session(session, digest) for session, digest in sessions.items()],
        "games": [_game(game, now) for game in games],
    }


def _session(session: Session, digest: str) -> dict[str, Any]:
    return {
        "id": session.id,
        "name": session.name,
        "version": session.version,
        "max_matches": session.max_matches,
        "resume_token_sha256": digest,
        "draining": session.draining,
        "network_s": session.network,
    }


def _game(game: Game, now: float) -> dict[str, Any]:
    seats = sorted(game.seats, key=lambda seat: seat.player)
    return {
        "spec": game.spec.to_json(),
        "config": _config(game.config),
        "versions": game.scribe.versions,
        "played_s": now - game.started_at,
        "steps": [_step(step) for step in game.steps],
        "events": len(game.log),
        "events_sha256": _digest(game.log),
        "seats": [_seat(seat, now) for seat in seats],
    }


def _config(config: PlayConfig) -> dict[str, Any]:
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return values | {"policies": {str(kind): str(effect) for kind, effect in config.policies.items()}}


def _seat(seat: Seat, now: float) -> dict[str, Any]:
    return {
        "handle": seat.handle,
        "session": seat.session.id if seat.session is not None else None,
        "gone": str(seat.gone),
        "turn": seat.turn,
        "open": seat.open,
        "used_s": None if seat.sent_at is None else now - seat.sent_at,
        "refusals": seat.refusals,
        "strikes": seat.strikes,
        "bank_s": seat.bank,
        "lapsed": sorted(seat.lapsed),
    }


def _step(step: Step) -> list[Any]:
    if isinstance(step, FaultCommitted):
        return ["fault", step.seat, str(step.kind), str(step.effect), step.reason]
    seat, actions, think_ms, network_ms = step
    return ["act", seat, [_action(action) for action in actions], think_ms, network_ms]


def _action(action: Action) -> list[Any]:
    if isinstance(action, PlayCard):
        return ["card", str(action.card), None if action.signal is None else str(action.signal)]
    if isinstance(action, Declare):
        return ["declare", str(action.declaration.kind), action.declaration.of]
    if isinstance(action, Discard):
        return ["discard", str(action.card)]
    return ["monte"] if isinstance(action, CallMonte) else ["call_out"]


def _digest(events: Iterable[Event]) -> str:
    """Of what came of the rules; faults are kept as they were."""
    lines = (f"{event!r}\n" for event in events if not isinstance(event, FaultCommitted))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


# -- and back ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RestoredSession:
    """A session without its bot, and what its resume token hashes to."""

    session: Session
    token_hash: str


@dataclass(frozen=True, slots=True)
class SuspendedSeat:
    """One player's seat. session: the id of its session, None where that had left; used_s: how long ago the
    open turn had been sent, None if it had not; the others as in ``play.session.Seat``."""

    handle: str
    session: str | None
    gone: FaultKind
    turn: int
    open: bool
    used_s: float | None
    refusals: int
    strikes: int
    bank_s: float
    lapsed: frozenset[int]

    def restore(self, seat: Seat, now: float) -> None:
        """Put the seat back to where it stood."""
        seat.gone, seat.turn, seat.open = self.gone, self.turn, self.open
        seat.asked_at = now
        seat.sent_at = None if self.used_s is None else now - self.used_s
        seat.refusals, seat.strikes, seat.bank = self.refusals, self.strikes, self.bank_s
        seat.lapsed = set(self.lapsed)


@dataclass(frozen=True, slots=True)
class SuspendedGame:
    """A match played to where it stood. spec: of its next attempt; played_s: how long it has been played;
    seats: by player; match, steps, happened: as ``Game.take_up`` wants them."""

    spec: GameSpec
    config: PlayConfig
    versions: Sequence[str]
    played_s: float
    match: Match
    steps: Sequence[Step]
    happened: Sequence[Happened]
    seats: Sequence[SuspendedSeat]


_MOST: Final = 2**31
"""No count and no number of seconds of a suspension is as large."""


def sessions_restored(data: Mapping[str, Any]) -> dict[str | None, RestoredSession]:
    """The suspended sessions by their ids, detached. Raises SuspensionError."""
    try:
        return {one["id"]: _session_restored(one) for one in data["sessions"]}
    except (LookupError, TypeError, ValueError) as error:
        raise SuspensionError(f"the suspended sessions cannot be read: {error!r}") from error


def _session_restored(data: Mapping[str, Any]) -> RestoredSession:
    session = Session(str(data["name"]), str(data["version"]), int(data["max_matches"]), wake=lambda: None)
    session.id = str(data["id"])
    session.draining = bool(data["draining"])
    session.network = float(data["network_s"])
    if not 0 <= session.network < _MOST:
        raise ValueError(f"{session.network} s of network")
    session.detach()
    return RestoredSession(session, str(data["resume_token_sha256"]))


def game_restored(data: Mapping[str, Any], sessions: Container[str | None]) -> SuspendedGame:
    """Play a suspended match to where it stood. Raises SuspensionError."""
    try:
        spec = GameSpec.from_json(data["spec"])
        match = Match(spec.rules, spec.decks)
        steps: list[Step] = []
        happened: list[Happened] = [(match.start(), 0, 0)]
        for one in data["steps"]:
            step = _step_restored(match, one)
            steps.append(step)
            happened.append(_played(match, step))
        game = SuspendedGame(
            spec=dataclasses.replace(spec, attempt=spec.attempt + 1),
            config=PlayConfig(**{**data["config"], "policies": policies_from(data["config"]["policies"])}),
            versions=list(data["versions"]),
            played_s=float(data["played_s"]),
            match=match,
            steps=steps,
            happened=happened,
            seats=[_seat_restored(seat) for seat in data["seats"]],
        )
        log = [event for events, _, _ in happened for event in events]
        if (len(log), _digest(log)) != (data["events"], data["events_sha256"]):
            raise ValueError("the rules do not give the same events")
        _check_seats(game, sessions)
        if not (1 <= game.spec.attempt < _MOST and 0 <= game.played_s < _MOST):
            raise ValueError(f"attempt {game.spec.attempt}, {game.played_s} s played")
    except (RulesError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise SuspensionError(f"a suspended game cannot be played to where it stood: {error!r}") from error
    return game


def _seat_restored(data: Mapping[str, Any]) -> SuspendedSeat:
    seat = SuspendedSeat(**{**data, "gone": FaultKind(data["gone"]), "lapsed": frozenset(data["lapsed"])})
    counts, seconds = (seat.turn, seat.refusals, seat.strikes), (seat.bank_s, seat.used_s or 0.0)
    # What the clocks reckon with must be numbers: they would fail long after the match was taken up.
    if type(seat.handle) is not str or not all(type(one) is int and 0 <= one < _MOST for one in counts):
        raise ValueError(f"no seat: {data!r}")
    if not all(type(one) in (int, float) and 0 <= one < _MOST for one in seconds):
        raise ValueError(f"no time: {data!r}")
    return seat


def _check_seats(game: SuspendedGame, sessions: Container[str | None]) -> None:
    """The open turns must be those that the match waits for, each of a session that is there."""
    if len(game.seats) != game.spec.rules.players:
        raise ValueError("a seat is missing")
    if len({seat.handle for seat in game.seats}) < len(game.seats):
        raise ValueError("two seats have one handle")
    waiting = {game.match.seating[player] for player, seat in enumerate(game.seats) if seat.open}
    if game.match.over or waiting != set(game.match.pending):
        raise ValueError("the match waits for others than were asked")
    for seat in game.seats:
        if seat.session not in sessions and (seat.open or seat.session is not None):
            raise ValueError(f"there is no session {seat.session}")


def _step_restored(match: Match, data: Sequence[Any]) -> Step:
    if data[0] == "fault":
        _, seat, kind, effect, reason = data
        return FaultCommitted(seat, FaultKind(kind), FaultEffect(effect), reason)
    _, seat, actions, think_ms, network_ms = data
    return seat, [_action_restored(match, seat, action) for action in actions], think_ms, network_ms


def _action_restored(match: Match, seat: int, data: Sequence[Any]) -> Action:
    kind, *rest = data
    if kind == "card":
        card, signal = rest
        return PlayCard(parse_card(card), None if signal is None else Signal(signal))
    if kind == "declare":
        held = {one.key: one for one in match.declarable(seat)}
        return Declare(held[Combination(rest[0]), rest[1]])
    if kind == "discard":
        return Discard(parse_card(rest[0]))
    if kind == "monte":
        return CallMonte()
    if kind == "call_out":
        return CallOut()
    raise ValueError(f"{kind!r} is no action")


def _played(match: Match, step: Step) -> Happened:
    if not isinstance(step, FaultCommitted):
        seat, actions, think_ms, network_ms = step
        return match.act(seat, actions), think_ms, network_ms
    events: list[Event] = [step]
    if step.effect in (FaultEffect.TRANSFER_ALL, FaultEffect.PENALTY):
        events += match.revoke(step.seat, Revoke(step.effect))
    return events, 0, 0


# -- the file ---------------------------------------------------------------------------------------------


def save(folder: Path, data: Mapping[str, Any]) -> Path:
    """Put the suspension into a record folder, whole or not at all; returns the file. Raises OSError,
    FileExistsError if there is one that nobody has taken up."""
    path = folder / FILE
    # Not named by process id: in containers all servers have one, and a killed one may have left its file.
    descriptor, name = tempfile.mkstemp(prefix=f"{FILE}.", suffix=".tmp", dir=folder)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(data, file, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)  # unlike a rename this never replaces another server's
    finally:
        temporary.unlink()
    sync_folder(folder)
    return path


class Suspension:
    """A suspension that this process has claimed; ``path`` is where it is now. ``done`` forgets it,
    ``put_back`` leaves it to the next server."""

    def __init__(self, folder: Path, path: Path, data: Mapping[str, Any]) -> None:
        self.data = data
        self.path = path
        self._folder = folder

    @property
    def key(self) -> bytes:
        """The arena's key."""
        return bytes.fromhex(self.data["key"])

    @property
    def games(self) -> int:
        """How many there are in it."""
        return len(self.data["games"])

    def done(self) -> None:
        """All of it is under way again."""
        self.path.unlink()
        sync_folder(self._folder)

    def put_back(self) -> None:
        """None of it is."""
        with contextlib.suppress(FileExistsError):
            os.link(self.path, self._folder / FILE)
            self.path.unlink()


def claim(folder: Path, writer: str) -> Suspension | None:
    """Take the suspension of a record folder, if there is one, for the server with this writer; no other
    gets it then. Raises SuspensionError, leaving a file that is none of ours where it is, and OSError."""
    path = folder / f"{FILE}.{writer}"
    try:
        os.rename(folder / FILE, path)
    except FileNotFoundError:
        return None
    suspension = Suspension(folder, path, {})
    try:
        data = json.loads(path.read_bytes())
        if data["v"] != SCHEMA:
            raise SuspensionError(f"schema {data['v']}")
        suspension.data = data
        _ = suspension.key, suspension.games, data["sessions"]
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        suspension.put_back()
        raise SuspensionError(f"{folder / FILE} cannot be read: {error!r}") from error
    return suspension


def left_behind(folder: Path | None, claimed: Suspension | None) -> list[Path]:
    """Suspensions in a record folder that a server claimed and neither took up whole nor put back: it was
    killed meanwhile, or kept one for its operator."""
    if folder is None:
        return []
    mine = claimed.path if claimed is not None else None
    return sorted(path for path in folder.glob(f"{FILE}.*") if path != mine and path.suffix != ".tmp")
