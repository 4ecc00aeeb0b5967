"""Bot tokens: the file, what a server makes of it, and what revoking does to sessions."""

from __future__ import annotations

import hmac
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
from structlog.testing import capture_logs
from support.streams import serving, true_in_time
from support.tables import game_spec
from tressette.v1 import arena_service_pb2 as pb
from tressette.wire.tokens import (
    PREFIX,
    LaunchTokens,
    TokenError,
    TokenFile,
    TokenFileDamaged,
    new_token,
    read_tokens,
    revoke_tokens,
    token_id,
)

GOOD = {"name": "mine", "created": "2026-01-31T12:00:00Z", "sha256": "0" * 64}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.jsonl"


# -- the file -----------------------------------------------------------------------------------------


def test_a_token_is_told_once_and_kept_as_its_digest(path: Path) -> None:
    text, made = new_token(path, "mine")
    assert text.startswith(PREFIX)
    assert len(text) == len(PREFIX) + 43  # 32 bytes
    assert made.id == token_id(text)
    assert read_tokens(path) == (made,)
    assert text[len(PREFIX) :].encode() not in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_name_may_have_several_and_each_can_be_revoked(path: Path) -> None:
    one, first = new_token(path, "mine")
    two, second = new_token(path, "mine")
    other, _ = new_token(path, "other")
    tokens = TokenFile(path)
    assert [tokens.name_of(text) for text in (one, two, other)] == ["mine", "mine", "other"]
    assert revoke_tokens(path, first.id) == [first]
    assert [tokens.name_of(text) for text in (one, two, other)] == [None, "mine", "other"]
    assert revoke_tokens(path, "mine") == [second]
    assert [tokens.name_of(text) for text in (one, two, other)] == [None, None, "other"]
    assert tokens.ids() == {token_id(other)}
    with pytest.raises(TokenError, match="mine"):
        revoke_tokens(path, "mine")


def test_what_is_no_token_stands_for_nobody(path: Path) -> None:
    text, made = new_token(path, "mine")
    tokens = TokenFile(path)
    for wrong in ("", PREFIX, text[:-1], text + "=", text.swapcase(), made.digest, "è" * 1000, "\0"):
        assert tokens.name_of(wrong) is None
    assert tokens.name_of(text) == "mine"


def test_a_lookup_compares_with_every_token(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [new_token(path, f"bot-{number}")[0] for number in range(5)]
    tokens = TokenFile(path)
    compared: list[str] = []
    compare = hmac.compare_digest

    def spy(known: str, given: str) -> bool:
        compared.append(known)
        return compare(known, given)

    monkeypatch.setattr(hmac, "compare_digest", spy)
    for text in (*texts, "none of them"):
        compared.clear()
        tokens.name_of(text)
        assert len(compared) == 5


@pytest.mark.parametrize("name", ["", "two words", "x" * 65, "a/b", "è", "new\nline", "0123456789ab"])
def test_names_that_none_can_have(path: Path, name: str) -> None:
    with pytest.raises(TokenError):
        new_token(path, name)
    assert not path.exists()


def test_tokens_made_at_the_same_time_are_all_kept(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: new_token(path, f"bot-{number}")[1], range(40)))
    assert set(read_tokens(path)) == set(made)


def test_a_failed_write_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_token(path, "mine")
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        new_token(path, "other")
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_link_to_the_file_stays_one(path: Path) -> None:
    folder = path.parent / "elsewhere"
    folder.mkdir()
    path.symlink_to(folder / "tokens")
    text, _ = new_token(path, "mine")
    assert path.is_symlink()
    assert TokenFile(folder / "tokens").name_of(text) == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_file_keeps_its_owner(path: Path) -> None:
    new_token(path, "mine")
    os.chown(path, 12345, 54321)
    new_token(path, "other")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not a JSON object"),
        (b"\xff\xfe", "not a JSON object"),
        (b"[]", "not an object with name, created, sha256"),
        (orjson.dumps({"name": "mine"}), "not an object with"),
        (orjson.dumps(GOOD | {"extra": 1}), "not an object with"),
        (orjson.dumps(GOOD | {"name": "two words"}), "name"),
        (orjson.dumps(GOOD | {"name": 7}), "name"),
        (orjson.dumps(GOOD | {"created": "yesterday"}), "created"),
        (orjson.dumps(GOOD | {"sha256": "0" * 63}), "sha256"),
        (orjson.dumps(GOOD | {"sha256": "0" * 64}), "the same token once more"),
    ],
)
def test_damage_is_named_with_its_line(path: Path, line: bytes, reason: str) -> None:
    path.write_bytes(orjson.dumps(GOOD) + b"\n\n" + line + b"\n")
    with pytest.raises(TokenFileDamaged, match=reason) as caught:
        TokenFile(path)
    assert caught.value.line == 3
    assert str(caught.value).startswith(f"{path}:3: ")
    before = path.read_bytes()
    with pytest.raises(TokenFileDamaged):
        new_token(path, "other")
    assert path.read_bytes() == before


def test_a_file_that_breaks_changes_nothing_for_a_running_server(path: Path) -> None:
    text, _ = new_token(path, "mine")
    tokens = TokenFile(path)
    good = path.read_bytes()
    with capture_logs() as logs:
        path.write_bytes(good + b"{\n")
        assert [tokens.name_of(text) for _ in range(3)] == ["mine"] * 3
        path.unlink()
        assert [tokens.name_of(text) for _ in range(3)] == ["mine"] * 3
        path.write_bytes(b"")
        assert tokens.name_of(text) is None
        path.write_bytes(good)
        assert tokens.name_of(text) == "mine"
    said = [(line["log_level"], line.get("reason", "")) for line in logs]
    assert [level for level, _ in said] == ["error", "error", "info", "info"]
    assert f"{path}:2:" in said[0][1]
    assert str(path) in said[1][1]


# -- launched processes -------------------------------------------------------------------------------


def test_tokens_of_launched_processes() -> None:
    tokens = LaunchTokens()
    tokens.add("one", "mine", "mine-1.1")
    tokens.add("two", "mine", "mine-2.1")
    tokens.add("three", "other", "")
    assert [tokens.name_of(text) for text in ("one", "two", "three", "")] == ["mine", "mine", "other", None]
    assert [tokens.process_of(text) for text in ("one", "two", "three", "")] == [
        "mine-1.1",
        "mine-2.1",
        "",
        "",
    ]
    assert tokens.ids() == {token_id(text) for text in ("one", "two", "three")}
    assert tokens.remove("one") == "mine-1.1"
    assert tokens.remove("one") == ""
    tokens.remove_process("mine-2.1")
    assert tokens.ids() == {token_id("three")}
    assert [tokens.name_of(text) for text in ("one", "two")] == [None, None]
    assert "three" not in repr(vars(tokens)), "they are kept as digests"


# -- revoking -----------------------------------------------------------------------------------------


@pytest.mark.asyncio(loop_scope="session")
async def test_sessions_of_a_revoked_token_end_and_others_go_on() -> None:
    tokens = {"old": "mine", "new": "mine", "else": "other"}
    async with serving(tokens=tokens) as arena:
        old, new, other = [await arena.connect() for _ in range(3)]
        for client, token in ((old, "old"), (new, "new"), (other, "else")):
            await client.greet(token=token)
        await arena.sessions(3)
        arena.server.keep_only({token_id("new"), token_id("else")})
        ending = await old.ending()
        assert (ending.reason, ending.message) == (pb.ERROR_REASON_UNAUTHENTICATED, "token: revoked")
        await arena.sessions(2)
        assert set(arena.arena.sessions) == {"mine", "other"}
        for client in (new, other):
            await client.send(pb.PlayRequest(goodbye=pb.Goodbye()))
            assert (await client.ending()).reason == pb.ERROR_REASON_UNSPECIFIED


@pytest.mark.asyncio(loop_scope="session")
async def test_its_game_goes_on_without_it() -> None:
    tokens = {f"token-{name}": name for name in "abcd"}
    async with serving(tokens=tokens) as arena:
        clients = []
        for token in tokens:
            clients.append(await arena.connect())
            await clients[-1].greet(token=token)
        arena.arena.submit(game_spec())
        await true_in_time(lambda: bool(arena.arena.games))
        arena.server.keep_only([])
        for client in clients:
            assert (await client.ending()).reason == pb.ERROR_REASON_UNAUTHENTICATED
        result = await arena.result()
        assert {kind for _, kind, _ in result["faults"]} == {"disconnect"}


@pytest.mark.asyncio(loop_scope="session")
async def test_a_session_without_a_stream_leaves_too() -> None:
    tokens = {f"token-{name}": name for name in "abcd"}
    async with serving(tokens=tokens, grace_s=600) as arena:
        clients = []
        for token in tokens:
            clients.append(await arena.connect())
            await clients[-1].greet(token=token)
        arena.arena.submit(game_spec())
        await true_in_time(lambda: bool(arena.arena.games))
        clients[0].cancel()
        (session,) = arena.arena.sessions["a"]
        await true_in_time(lambda: not session.attached)
        arena.server.keep_only([token_id(token) for token in tokens if token != "token-a"])
        assert set(arena.arena.sessions) == {"b", "c", "d"}


@pytest.mark.asyncio(loop_scope="session")
async def test_the_token_that_counts_is_that_of_the_last_hello() -> None:
    tokens = {"old": "mine", "new": "mine"}
    async with serving(tokens=tokens, grace_s=600) as arena:
        before, after = await arena.connect(), await arena.connect()
        welcome = await before.greet(token="old")
        await arena.sessions(1)
        assert (await after.greet(token="new", resume_token=welcome.resume_token)).resumed
        assert (await before.ending()).reason == pb.ERROR_REASON_REPLACED
        arena.server.keep_only({token_id("new")})
        await after.send(pb.PlayRequest(goodbye=pb.Goodbye()))
        assert (await after.ending()).reason == pb.ERROR_REASON_UNSPECIFIED
