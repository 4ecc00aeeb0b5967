"""A fuzz target for the handler of Play: peers do what hypothesis makes up, by the calls that grpc would
make on their behalf, under a clock that jumps to whatever is due next.

``check(script)`` plays one script and asserts that

* the handler raises nothing but a CancelledError that grpc asked for, and always ends,
* no two writes of a stream overlap, nor two reads,
* what is written is a Welcome first and an Ending, at most one, last, or nothing at all,
* every answer is told by one receipt or one error, unless its session has ended or has been taken over,
* in the end no task, session, stream or game is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import grpc
from hypothesis import strategies as st
from support.hostile import mutated, random_request
from support.streams import first_choice, hello
from support.tables import KEY
from tressette.play.arena import Arena
from tressette.play.config import PlayConfig
from tressette.play.matchmaker import Matchmaker
from tressette.rules.presets import resolve
from tressette.v1 import arena_service_pb2 as pb
from tressette.wire.limits import Limits
from tressette.wire.service import ArenaService

PEERS: Final = 5
NAMES: Final = 3
_PATIENCE_S: Final = 500.0
_FAR: Final = 1 << 40

# -- time -------------------------------------------------------------------------------------------------


class _JumpingTime:
    """In place of a loop's selector: where the loop would sleep, its time passes at once."""

    def __init__(self, loop: Any) -> None:
        self._selector = loop._selector
        self._now = loop.time()
        loop._selector = self
        loop.time = lambda: self._now

    def __getattr__(self, name: str) -> Any:
        return getattr(self._selector, name)

    def select(self, timeout: float | None) -> Any:
        """Whatever is ready now."""
        ready = self._selector.select(0)
        if not ready:
            assert timeout is not None, "everybody waits for ever"
            # Added to a large number a very small one would be nothing.
            self._now += max(timeout, 1e-6) if timeout else 0.0
        return ready


# -- peers ------------------------------------------------------------------------------------------------


class Context:
    """What grpc gives to a handler. inbox: what the peer has sent, bytes or EOF; writing: whether a write is
    under way; reads: whether the peer takes it; broken: whether there is no peer any more."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        self.written: list[pb.PlayResponse] = []
        self.answers_read = 0
        self.reads = asyncio.Event()
        self.reads.set()
        self.broken = False
        self._reading = self.writing = False

    async def read(self) -> Any:
        """As grpc: a message, EOF for ever after, or DecodeError."""
        assert not self._reading, "two reads at once"
        self._reading = True
        try:
            item = await self.inbox.get()
            if item is grpc.aio.EOF:
                self.inbox.put_nowait(item)
                return item
            request = pb.PlayRequest.FromString(item)
            self.answers_read += len(request.answers.answers)
            return request
        finally:
            self._reading = False

    async def write(self, message: bytes) -> None:
        """As grpc: waits for a peer that does not read, fails for one that is gone."""
        assert not self.writing, "two writes at once"
        self.writing = True
        try:
            while not (self.reads.is_set() or self.broken):
                await self.reads.wait()
            if self.broken:
                raise grpc.aio.InternalError("the peer is gone")
            self.written.append(pb.PlayResponse.FromString(message))
            await asyncio.sleep(0)
        finally:
            self.writing = False

    def peer(self) -> str:
        """As grpc."""
        return "ipv4:127.0.0.1:1"


class Peer:
    """One stream and whoever is at its other end."""

    def __init__(self, service: ArenaService) -> None:
        self.context = Context()
        self.task = asyncio.create_task(service.play(None, self.context))
        self.cancelled = self.closed = self.deaf = False
        self.old: list[bytes] = []
        self._seen = 0

    def send(self, message: bytes) -> None:
        """One message, unless this side is closed."""
        if not self.closed:
            self.old.append(message)
            self.context.inbox.put_nowait(message)

    def half_close(self) -> None:
        """Send no more."""
        if not self.closed:
            self.closed = True
            self.context.inbox.put_nowait(grpc.aio.EOF)

    def vanish(self, after_s: float = 0.0) -> None:
        """Be gone: writes fail, and grpc cancels the handler, at once or soon."""
        self.closed = self.cancelled = True
        self.context.broken = True
        self.context.reads.set()
        if after_s:
            asyncio.get_running_loop().call_later(after_s, self._cut_off)
        else:
            self._cut_off()

    def _cut_off(self) -> None:
        self.context.inbox.put_nowait(grpc.aio.EOF)
        self.task.cancel()

    def turns(self) -> list[pb.MatchUpdate]:
        """Every update with a turn that has come."""
        return [update for batch in self._batches() for update in batch.updates if update.HasField("turn")]

    def fresh_turns(self) -> list[pb.MatchUpdate]:
        """Those that have come since this was asked last."""
        turns = self.turns()
        seen, self._seen = self._seen, len(turns)
        return turns[seen:][-16:]

    def welcome(self) -> pb.Welcome | None:
        """What the stream began with."""
        for response in self.context.written[:1]:
            if response.WhichOneof("message") == "welcome":
                return response.welcome
        return None

    def told(self) -> int:
        """How many answers have been told of."""
        return sum(len(batch.receipts) + len(batch.errors) for batch in self._batches())

    def _batches(self) -> list[pb.Batch]:
        return [one.batch for one in self.context.written if one.WhichOneof("message") == "batch"]

    def check(self) -> None:
        """All that must be true of a stream that has ended."""
        assert self.task.done()
        if self.task.cancelled():
            assert self.cancelled, "the handler cancelled itself"
        else:
            error = self.task.exception()
            if error is not None:
                raise error
        kinds = [response.WhichOneof("message") for response in self.context.written]
        assert None not in kinds
        assert kinds[:1] in ([], ["welcome"], ["ending"])
        assert "welcome" not in kinds[1:]
        assert "ending" not in kinds[:-1]


# -- scripts ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """Something that a peer does, drawn from ``chance``."""

    peer: int
    do: str
    chance: int


Script = list[Step]

_ACTIONS: Final = (
    *("greet", "greet", "play", "play", "play_on", "play_on", "play_on", "play_on", "wait", "wait"),
    *("hello_again", "answer_wrongly", "replay", "foreign", "garbage", "mutate", "random", "flood", "pong"),
    *("goodbye", "drain", "half_close", "vanish", "deaf", "hear", "resume", "resume", "time", "long_time"),
)


def scripts() -> st.SearchStrategy[Script]:
    """Any sequence of actions of all peers."""
    step = st.builds(
        Step, st.integers(0, PEERS - 1), st.sampled_from(_ACTIONS), st.integers(0, (1 << 32) - 1)
    )
    return st.lists(step, min_size=1, max_size=20) | st.lists(step, min_size=20, max_size=80)


@dataclass
class _Play:
    """A script being played."""

    arena: Arena = field(init=False)
    service: ArenaService = field(init=False)
    peers: list[Peer] = field(default_factory=list)
    all_peers: list[Peer] = field(default_factory=list)

    def begin(self) -> None:
        """Open the arena and one stream for each peer."""
        loop = asyncio.get_running_loop()
        _JumpingTime(loop)

        def fill(*_: Any) -> None:
            loop.call_soon(matchmaker.fill)

        config = PlayConfig(move_ms=20_000, bank_ms=5_000)
        self.arena = Arena(KEY, config, clock=loop.time, on_finished=fill, on_session=fill, grace_s=30.0)
        matchmaker = Matchmaker(
            self.arena, [("one-deal", resolve("traversone-003-21-duplicate", players=2))], "fuzz"
        )
        limits = Limits(max_answers=16, max_sessions=4, max_streams=8, messages_per_s=50, burst=60)
        self.service = ArenaService(self.arena, limits=limits)
        self.peers = [self.new_peer() for _ in range(PEERS)]
        for number, peer in enumerate(self.peers[1:]):
            self._greet(peer, Random(number))

    def new_peer(self) -> Peer:
        """A new stream."""
        peer = Peer(self.service)
        self.all_peers.append(peer)
        return peer

    async def do(self, step: Step) -> None:
        """Play one step, and what comes of it at once."""
        chance = Random(step.chance)
        peer = self.peers[step.peer]
        if peer.task.done():
            peer = self.peers[step.peer] = self.new_peer()
        action: Callable[[Peer, Random], Coroutine[Any, Any, None] | None] = getattr(self, f"_{step.do}")
        waiting = action(peer, chance)
        if waiting is not None:
            await waiting
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)

    # What peers do. Each is named in _ACTIONS.

    def _greet(self, peer: Peer, chance: Random) -> None:
        if not peer.old:
            name = f"bot-{chance.randrange(NAMES)}"
            peer.send(hello(name, max_matches=chance.choice((0, 1, 3))).SerializeToString())

    def _play(self, peer: Peer, chance: Random) -> None:
        if turns := peer.turns()[-4:]:
            _answer(peer, *map(first_choice, turns))

    async def _play_on(self, peer: Peer, chance: Random) -> None:
        """Everybody who can hear plays for a while."""
        for _ in range(chance.randrange(1, 30)):
            for one in self.peers:
                if turns := one.fresh_turns():
                    _answer(one, *map(first_choice, turns))
            await asyncio.sleep(0.01)

    def _hello_again(self, peer: Peer, chance: Random) -> None:
        peer.send(hello("bot-0").SerializeToString())

    def _answer_wrongly(self, peer: Peer, chance: Random) -> None:
        for update in peer.turns()[-2:]:
            answer = first_choice(update)
            what = chance.randrange(5)
            if what == 0:
                answer.card = chance.randrange(-1, 60)  # type: ignore[assignment]  # no card
            elif what == 1:
                answer.turn_id += chance.choice((1, 7, 1 << 30))
            elif what == 2:
                answer.call_out = answer.monte = True
            elif what == 3:
                answer.declarations.add().bongioco = chance.randrange(12)  # type: ignore[assignment]
            else:
                answer.ClearField("card")
            _answer(peer, answer)

    def _replay(self, peer: Peer, chance: Random) -> None:
        if peer.old:
            peer.send(chance.choice(peer.old))

    def _foreign(self, peer: Peer, chance: Random) -> None:
        if turns := chance.choice(self.all_peers).turns():
            _answer(peer, first_choice(chance.choice(turns)))

    def _garbage(self, peer: Peer, chance: Random) -> None:
        peer.send(chance.randbytes(chance.randrange(30)))

    def _mutate(self, peer: Peer, chance: Random) -> None:
        peer.send(mutated(chance.choice(peer.old or [hello("bot-1").SerializeToString()]), chance))

    def _random(self, peer: Peer, chance: Random) -> None:
        peer.send(random_request(chance).SerializeToString())

    def _flood(self, peer: Peer, chance: Random) -> None:
        for _ in range(chance.randrange(100)):
            _answer(peer, *[pb.Answer(handle="none", turn_id=1)] * chance.randrange(17))

    def _pong(self, peer: Peer, chance: Random) -> None:
        nonces = [one.ping.nonce for one in peer.context.written if one.WhichOneof("message") == "ping"]
        nonce = nonces[-1] if nonces and chance.random() < 0.8 else chance.getrandbits(64)
        peer.send(pb.PlayRequest(pong=pb.Pong(nonce=nonce)).SerializeToString())

    def _goodbye(self, peer: Peer, chance: Random) -> None:
        peer.send(pb.PlayRequest(goodbye=pb.Goodbye()).SerializeToString())

    def _drain(self, peer: Peer, chance: Random) -> None:
        peer.send(pb.PlayRequest(drain=pb.Drain()).SerializeToString())

    def _half_close(self, peer: Peer, chance: Random) -> None:
        peer.half_close()

    def _vanish(self, peer: Peer, chance: Random) -> None:
        peer.vanish(chance.choice((0.0, 0.1)))

    def _deaf(self, peer: Peer, chance: Random) -> None:
        peer.deaf = True
        if not peer.context.broken:
            peer.context.reads.clear()

    def _hear(self, peer: Peer, chance: Random) -> None:
        peer.context.reads.set()

    def _resume(self, peer: Peer, chance: Random) -> None:
        known = [one for one in self.all_peers if one.welcome()]
        if not known:
            return
        other = chance.choice(known)
        welcome = other.welcome()
        assert welcome is not None
        if peer.old:  # a stream has one Hello, so this one needs another
            if chance.random() < 0.5:
                peer.vanish()
            spot = self.peers.index(peer)
            peer = self.peers[spot] = self.new_peer()
        positions = [
            pb.MatchPosition(handle=update.handle, last_event=chance.choice((0, 1, 40, 56, 57, _FAR % 2**32)))
            for update in other.turns()[-3:]
        ]
        token = welcome.resume_token if chance.random() < 0.9 else "nonsense"
        peer.send(hello(welcome.name, resume_token=token, positions=positions).SerializeToString())

    async def _wait(self, peer: Peer, chance: Random) -> None:
        await asyncio.sleep(0.01 * chance.random())

    async def _time(self, peer: Peer, chance: Random) -> None:
        await asyncio.sleep(10 * chance.random())

    async def _long_time(self, peer: Peer, chance: Random) -> None:
        await asyncio.sleep(100 * chance.random())

    # -- the end ------------------------------------------------------------------------------------------

    def check_answers(self) -> None:
        """Every answer that a living stream has sent is told of, once nothing moves any more."""
        for peer in self.all_peers:
            if not (peer.task.done() or peer.deaf or peer.closed) and peer.welcome():
                assert peer.context.inbox.empty()
                assert peer.told() == peer.context.answers_read

    async def end(self) -> None:
        """See that whoever does not read is cut off; have the others leave, each in one of the ways there
        are, and see that all is gone."""
        stuck = [peer.task for peer in self.all_peers if peer.context.writing and not peer.task.done()]
        if stuck:
            _, late = await asyncio.wait(stuck, timeout=_PATIENCE_S)
            assert not late, "a bot that does not read stays"
        for number, peer in enumerate(self.all_peers):
            if not peer.task.done():
                peer.context.reads.set()
                if number % 2:
                    peer.half_close()
                else:
                    peer.vanish()
        _, late = await asyncio.wait([peer.task for peer in self.all_peers], timeout=_PATIENCE_S)
        assert not late, "a handler does not end"
        for peer in self.all_peers:
            peer.check()
        await asyncio.sleep(60.0)  # grace periods
        assert self.arena.sessions == {}
        assert not self.arena.games
        assert not self.arena._due
        assert not self.service.streams
        assert not self.service._links
        assert not self.service._heirs
        assert asyncio.all_tasks() == {asyncio.current_task()}


def _answer(peer: Peer, *answers: pb.Answer) -> None:
    peer.send(pb.PlayRequest(answers=pb.Answers(answers=answers)).SerializeToString())


async def _run(script: Script) -> None:
    playing = _Play()
    playing.begin()
    for step in script:
        await playing.do(step)
    await asyncio.sleep(1.0)
    playing.check_answers()
    await playing.end()


def check(script: Script) -> None:
    """Play one script; raises what is wrong."""
    asyncio.run(_run(script))
