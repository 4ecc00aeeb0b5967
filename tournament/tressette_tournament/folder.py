"""The folder of a run: who works in it, of what tournament it is, and from which secrets its decks come.

In it::

    tournament.toml   the resolved tournament file; can itself be run
    event.json        what anybody may know of the event: its stages, each with the commitment to its key, and
                      with the key itself once the event is over; why it was ended early; below which number
                      all deal sets are revealed
    event.key         the secrets from which decks, handles and bot seeds are drawn, one a stage (mode 0600);
                      absent when the file has a public ``seed``
    lock              held by the running runner, whose process id it names
    server.lock       held by its server, which outlives a killed runner for a moment
    status.json       how the run stands (``status``)
    results-*.jsonl, tricks-*.jsonl, reveals-*.jsonl   the record; manifest.json once it is complete
    journal.jsonl     what was paired by results: Swiss, knockout and ladder (``journal``)
    ratings.json      the ratings; sprt.json the test: both only while they say what the results give
    logs/             operational log of the server, output of each bot

A **stage** is what an event has become by an extension; an event that was never extended has one. Each has a
key of its own, so that its decks are fresh even if the key of the one before has been revealed.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
import tomllib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from tressette.record.decks import KEY_BYTES, event_commitment, public_event_key
from tressette.record.whole import replace_file
from tressette.record.writer import MANIFEST

from tressette_tournament import run_lock
from tressette_tournament.tournament_file import Format, Tournament, differences, dump

RATINGS: Final = "ratings.json"
SPRT_TEST: Final = "sprt.json"
SERVER_GONE_S: Final = 15.0
"""How long a runner waits for the server of one that was killed."""
_NOT_EXTENDED: Final = {
    Format.SWISS: "its pairings depend on all results",
    Format.KNOCKOUT: "its matches depend on all results",
}


class RunError(Exception):
    """A run that cannot begin or go on; the text is for the organiser."""


@dataclass(frozen=True, slots=True)
class Stage:
    """bots: names of all that take part from then on. deal_sets: of each line-up, those of earlier stages
    included. first_set: number of its first deal set. key: 32 bytes."""

    bots: tuple[str, ...]
    deal_sets: int
    first_set: int
    key: bytes

    @property
    def commitment(self) -> str:
        """What binds the event to the decks of this stage."""
        return event_commitment(self.key)


@dataclass(frozen=True, slots=True)
class Event:
    """What a run is of. stages: at least one, in order. ended: why it was ended before all was played, None
    if it was not. revealed_sets: every deal set with a number below this has been revealed. published:
    whether its secret keys have been, which is so once it is over."""

    tournament: Tournament
    stages: tuple[Stage, ...]
    ended: str | None = None
    revealed_sets: int = 0
    published: bool = False

    @property
    def folder(self) -> Path:
        """Where it is."""
        return Path(self.tournament.output)

    @property
    def decks(self) -> str:
        """What is published of its decks before bots connect."""
        if self.tournament.seed is not None:
            return "decks public: they are drawn from the seed in the tournament file"
        return "decks secret, commitment " + ", ".join(stage.commitment for stage in self.stages)

    def key_of(self, set_number: int) -> bytes:
        """The key from which the decks with this set number are drawn."""
        return max(
            (stage for stage in self.stages if stage.first_set <= set_number), key=lambda s: s.first_set
        ).key


@asynccontextmanager
async def working(folder: Path) -> AsyncIterator[int]:
    """Be the one runner in a folder, which is made if need be. Gives the file descriptor that the server must
    hold for as long as it lives.

    Raises RunError if another runner is at work, or if the server of an earlier one does not end.
    """
    with _lock_file(folder, run_lock.NAME) as lock, _lock_file(folder, "server.lock") as server_lock:
        if not await run_lock.take(lock):
            raise RunError(f"another runner is at work in {folder}")
        await _wait_for(server_lock, folder)
        yield server_lock.fileno()


def _lock_file(folder: Path, name: str) -> IO[str]:
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / name).open("a")


async def _wait_for(server_lock: IO[str], folder: Path) -> None:
    """Wait for the server of a runner that was killed: what it still writes must be read first."""
    give_up_at = time.monotonic() + SERVER_GONE_S
    while not run_lock.locked(server_lock):
        if time.monotonic() > give_up_at:
            raise RunError(f"the server of an earlier runner is still at work in {folder}")
        await asyncio.sleep(0.05)


def open_event(tournament: Tournament, *, extend: bool = False) -> Event:
    """The event of a folder, begun if there is none yet; extended if it is asked for and there is more in the
    tournament file: further bots at its end, more deal sets, another stop rule.

    Raises RunError where the folder holds another tournament or is damaged.
    """
    folder = Path(tournament.output)
    path, text = folder / "tournament.toml", dump(replace(tournament, output="."))
    # What is given to bots in their environment may be a secret: the keys of other services, say.
    mode = 0o600 if any(bot.environment for bot in tournament.bots) else 0o644
    if not path.exists():
        if has_games(folder):
            raise RunError(
                f"{folder} has games but no tournament.toml, which says of what tournament: put it "
                "back, or choose another output"
            )
        event = _begin(tournament, folder)
        replace_file(path, text.encode(), mode)
        return event
    kept = _read_text(path, "TOML", tomllib.loads)
    different = differences(kept, text)
    grows = bool(different) and all(_is_extension(tournament, kept, *one) for one in different)
    if grows and extend and not _only_stops(different) and tournament.format in _NOT_EXTENDED:
        raise RunError(
            f"an event of format {tournament.format} cannot be extended: {_NOT_EXTENDED[tournament.format]}"
        )
    if different and not (grows and extend):
        raise RunError(_refusal(folder, path, different, grows))
    event = _kept_event(tournament, folder)
    last = event.stages[-1]
    if not grows and (last.bots, last.deal_sets) != (_names(tournament), tournament.deal_sets):
        raise RunError(
            f"{folder} was being extended when its runner was ended, to {last.deal_sets} deal sets and the "
            f"bots {', '.join(last.bots)}: run the extended tournament file again, with --extend"
        )
    if grows:
        if event.ended is not None and event.published:
            # More would be played under the same key: anybody could draw the decks.
            raise RunError(
                f"the keys of {folder} were published when it ended ({event.ended}), so what is left of it "
                "has no secret decks any more; begin another event, and rate both folders together"
            )
        # From here on there may be more to play: what was confirmed as complete is so no more.
        (folder / MANIFEST).unlink(missing_ok=True)
        event = _extended(event)
    if kept != text:  # extended, or moved
        replace_file(path, text.encode(), mode)
    return event


def has_games(folder: Path) -> bool:
    """Whether the folder holds results, or games that were begun."""
    records = [*folder.glob("results-*.jsonl"), *folder.glob("tricks-*.jsonl*")]
    return any(record.stat().st_size for record in records)


def forget_tables(folder: Path) -> None:
    """Take away what an earlier session computed from its results, as the server does with the manifest: from
    the next result on it would be untrue, and nothing would say so if this session is killed."""
    for name in (RATINGS, SPRT_TEST):
        (folder / name).unlink(missing_ok=True)


def say_ended(event: Event, reason: str) -> None:
    """Note that a stop rule has ended the event: a later session opens no deal set either."""
    _change(event.folder, {"ended": reason})


def say_revealed(event: Event, sets: int) -> None:
    """Note that every deal set with a number below ``sets`` has been revealed."""
    _change(event.folder, {"revealed_sets": sets})


def open_keys(event: Event) -> None:
    """Say the keys of an event that is over, so that anybody can draw its decks again."""
    _change(event.folder, {"stages": [_stage_data(stage, opened=True) for stage in event.stages]})


def _change(folder: Path, changes: Mapping[str, object]) -> None:
    path = folder / "event.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {**data, **changes})


# --- stages ----------------------------------------------------------------------------------------


def _begin(tournament: Tournament, folder: Path) -> Event:
    if has_games(folder) and tournament.seed is None and not (folder / "event.key").exists():
        raise RunError(_key_missing(folder))
    event = Event(
        tournament, (Stage(_names(tournament), tournament.deal_sets, 0, _key(tournament, folder, 0)),)
    )
    _write_event(event)
    return event


def _names(tournament: Tournament) -> tuple[str, ...]:
    return tuple(bot.name for bot in tournament.bots)


def _extended(event: Event) -> Event:
    """The event with what its tournament file has more than its last stage; it goes on in any case."""
    tournament, last = event.tournament, event.stages[-1]
    bots = _names(tournament)
    stages = event.stages
    if tournament.format is Format.LADDER:
        # It chooses what comes next in any case, on decks that nobody has seen.
        stages = (*stages[:-1], replace(last, bots=bots, deal_sets=tournament.deal_sets))
    # Otherwise another stop rule, or it was cut off while it was extended.
    elif (bots, tournament.deal_sets) != (last.bots, last.deal_sets):
        first_set = last.first_set + _width(stages)
        key = _key(tournament, event.folder, len(stages))
        stages = (*stages, Stage(bots, tournament.deal_sets, first_set, key))
    event = replace(event, stages=stages, ended=None)
    _write_event(event)
    return event


def _width(stages: Sequence[Stage]) -> int:
    """Set numbers that the last stage takes."""
    before = stages[-2] if len(stages) > 1 else None
    last = stages[-1]
    return last.deal_sets - before.deal_sets if before and before.bots == last.bots else last.deal_sets


def _kept_event(tournament: Tournament, folder: Path) -> Event:
    path = folder / "event.json"
    if not path.exists():
        raise RunError(f"{path} is missing, which says how the event has grown; put it back")
    data = json.loads(_read_text(path, "JSON", json.loads))
    try:
        kept = data["stages"]
        stages = tuple(
            Stage(
                tuple(one["bots"]),
                one["deal_sets"],
                one["first_set"],
                _key(tournament, folder, number, old=True),
            )
            for number, one in enumerate(kept)
        )
        published = tournament.seed is None and any("key" in one for one in kept)
        event = Event(tournament, stages, data.get("ended"), data["revealed_sets"], published)
        commitments = [one["commitment"] for one in kept]
    except (KeyError, TypeError) as error:
        raise RunError(f"{path} is damaged: {error!r}") from None
    if not stages:
        raise RunError(f"{path} is damaged: no stages")
    if [stage.commitment for stage in stages] != commitments:
        raise RunError(f"{folder / 'event.key'} is not the key that {path} was made with")
    return event


def _write_event(event: Event) -> None:
    public = event.tournament.seed is not None
    data = {
        "tournament": event.tournament.name,
        "decks": "public" if public else "secret",
        "common_deals": event.tournament.common_deals,
        "revealed_sets": event.revealed_sets,
        "stages": [_stage_data(stage, opened=public) for stage in event.stages],
    }
    write_json(event.folder / "event.json", data)


def _stage_data(stage: Stage, *, opened: bool) -> dict[str, object]:
    return {
        "bots": list(stage.bots),
        "deal_sets": stage.deal_sets,
        "first_set": stage.first_set,
        "commitment": stage.commitment,
        **({"key": stage.key.hex()} if opened else {}),
    }


# --- keys ------------------------------------------------------------------------------------------


def _key(tournament: Tournament, folder: Path, stage: int, *, old: bool = False) -> bytes:
    """The key of a stage; old: whether it must be there."""
    if tournament.seed is not None:
        return public_event_key(tournament.seed)
    path = folder / "event.key"
    kept = _read_text(path, "text", str).splitlines() if path.exists() else []
    if len(kept) <= stage and (kept or not path.exists()):
        if old or stage > len(kept):
            raise RunError(_key_missing(folder))
        kept.append(secrets.token_hex(KEY_BYTES))
        replace_file(path, ("\n".join(kept) + "\n").encode(), 0o600)
    try:
        key = bytes.fromhex(kept[stage])
    except (IndexError, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise RunError(f"{path} is damaged: each of its lines must hold {KEY_BYTES} bytes in hex")
    return key


def _key_missing(folder: Path) -> str:
    return (
        f"{folder / 'event.key'} is missing, from which the decks of this run are drawn: with a new one the "
        "games of a deal set would have different decks. Put it back, or choose another output"
    )


# --- the tournament file ---------------------------------------------------------------------------


def _is_extension(tournament: Tournament, kept: str, key: str, old: object, new: object) -> bool:
    """Whether a difference leaves all that was played as it is."""
    if key == "tournament.deal_sets":
        return isinstance(old, int) and isinstance(new, int) and new > old
    if key.startswith("bots["):
        return old is None and int(key[5 : key.index("]")]) >= len(tomllib.loads(kept)["bots"])
    return key.startswith(("stop.", "sprt.")) and tournament.format is not Format.SPRT


def _refusal(folder: Path, path: Path, different: list[tuple[str, object, object]], grows: bool) -> str:
    lines = "\n".join(f"  {key}: {_shown(old)} there, {_shown(new)} now" for key, old, new in different)
    hint = "; to have the run grow by it, add --extend" if grows else ""
    return (
        f"{folder} holds a run of another tournament file; choose another output, or undo what "
        f"differs from {path}{hint}:\n{lines}"
    )


def _only_stops(different: list[tuple[str, object, object]]) -> bool:
    return all(key.startswith(("stop.", "sprt.")) for key, _, _ in different)


def _shown(value: object) -> str:
    return "absent" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _read_text(path: Path, kind: str, check: Callable[[str], Any]) -> str:
    try:
        text = path.read_text(encoding="utf-8")
        check(text)
    except UnicodeDecodeError:
        raise RunError(f"{path} is damaged: not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged: not {kind}: {error}") from None
    return text


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Put a file with these data in place of an earlier one. Raises OSError."""
    replace_file(path, json.dumps(data, indent=2).encode() + b"\n")
