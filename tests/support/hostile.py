"""Streams that no honest bot would open, made by chance from a seed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from grpc.aio import EOF, AioRpcError
from tressette.v1 import arena_service_pb2 as pb

from support.streams import PLAY, hello

_LIMIT_S: Final = 60.0
_ENUM_LIMIT: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Target:
    """What an enemy may have found out about a bot that has an open turn."""

    handle: str
    turn_id: int
    name: str
    resume_token: str

    def answer(self, **fields: Any) -> pb.Answer:
        """An answer to that turn."""
        return pb.Answer(handle=self.handle, turn_id=self.turn_id, **fields)


# -- messages ---------------------------------------------------------------------------------------------


def _text(chance: Random, most: int = 80) -> str:
    return "".join(
        chr(chance.choice((chance.randrange(128), 0x1F0C1))) for _ in range(chance.randrange(most))
    )


def _scalar(field: Any, chance: Random) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return chance.randbytes(chance.randrange(80)) if field.type == field.TYPE_BYTES else _text(chance)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return chance.random() < 0.5
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return chance.choice((-_ENUM_LIMIT, -1, 0, 1, 41, _ENUM_LIMIT - 1, chance.randrange(50)))
    bits = 64 if field.cpp_type in (FieldDescriptor.CPPTYPE_UINT64, FieldDescriptor.CPPTYPE_INT64) else 32
    return chance.choice((0, 1, 2, chance.getrandbits(bits - 1), (1 << bits - 1) - 1))


def random_fields(message: Message, chance: Random, depth: int = 0) -> None:
    """Fill every field of a message with something of its type, or leave it out."""
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.2:
            continue
        if field.is_repeated:
            values = getattr(message, field.name)
            for _ in range(chance.choice((0, 1, 3, 30 if depth < 3 else 3))):
                if field.message_type is not None:
                    random_fields(values.add(), chance, depth + 1)
                else:
                    values.append(_scalar(field, chance))
        elif field.message_type is not None:
            random_fields(getattr(message, field.name), chance, depth + 1)
            getattr(message, field.name).SetInParent()
        else:
            setattr(message, field.name, _scalar(field, chance))


def random_request(chance: Random) -> pb.PlayRequest:
    """A PlayRequest of some kind, random in all its fields."""
    request = pb.PlayRequest()
    kind = chance.choice([field.name for field in pb.PlayRequest.DESCRIPTOR.fields])
    part: Message = getattr(request, kind)
    part.SetInParent()
    random_fields(part, chance)
    return request


def mutated(data: bytes, chance: Random) -> bytes:
    """The same with some bits and bytes changed, lost or doubled."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 6)):
        spot = chance.randrange(len(changed) + 1)
        what = chance.randrange(4)
        if what == 0:
            changed[spot:spot] = chance.randbytes(chance.randrange(1, 9))
        elif what == 1:
            del changed[spot : spot + chance.randrange(1, 9)]
        elif what == 2:
            changed[spot:spot] = changed[spot : spot + 20]
        elif spot < len(changed):
            changed[spot] ^= 1 << chance.randrange(8)
    return bytes(changed)


def answers(*several: pb.Answer) -> bytes:
    """One message with these."""
    return pb.PlayRequest(answers=pb.Answers(answers=several)).SerializeToString()


# -- streams ----------------------------------------------------------------------------------------------

Messages = Iterator[bytes]


def _garbage(chance: Random, target: Target) -> Messages:
    if chance.random() < 0.5:
        yield _hello(chance)
    for _ in range(chance.randrange(1, 4)):
        yield chance.randbytes(chance.choice((0, 1, 10, 1000, 100_000)))


def _random_fields(chance: Random, target: Target) -> Messages:
    if chance.random() < 0.7:
        yield _hello(chance)
    for _ in range(chance.randrange(1, 8)):
        yield random_request(chance).SerializeToString()


def _mutations(chance: Random, target: Target) -> Messages:
    yield _hello(chance) if chance.random() < 0.8 else mutated(_hello(chance), chance)
    for _ in range(chance.randrange(1, 8)):
        yield mutated(random_request(chance).SerializeToString(), chance)


def _wrong_order(chance: Random, target: Target) -> Messages:
    kinds = ("answers", "pong", "drain", "goodbye", "hello")
    for _ in range(chance.randrange(1, 6)):
        request = pb.PlayRequest()
        getattr(request, chance.choice(kinds)).SetInParent()
        yield request.SerializeToString()


_MANY_ANSWERS: Final = [
    answers(*[pb.Answer(handle="x", turn_id=1)] * count) for count in (1024, 1025, 50_000)
]
_MANY_POSITIONS: Final = pb.PlayRequest(
    hello=pb.Hello(positions=[pb.MatchPosition(handle=str(n), last_event=n) for n in range(30_000)])
).SerializeToString()


def _huge_lists(chance: Random, target: Target) -> Messages:
    kind = chance.randrange(5)
    if kind < 2:
        # Parts of one message may be sent apart, and are put together by the reader.
        yield _hello(chance) + _MANY_POSITIONS
    else:
        yield _hello(chance)
        if kind == 2:
            yield chance.choice(_MANY_ANSWERS)
        elif kind == 3:
            yield answers(target.answer(declarations=[{}] * 20_000))
        else:
            for _ in range(15):
                yield _MANY_ANSWERS[0]


def _wrong_values(chance: Random, target: Target) -> Messages:
    yield _hello(chance)
    for _ in range(10):
        answer = target.answer()
        for name in ("card", "signal", "discard"):
            if chance.random() < 0.5:
                setattr(answer, name, chance.choice((-1, 41, _ENUM_LIMIT - 1, -_ENUM_LIMIT)))
        yield answers(answer)


def _unknown_names(chance: Random, target: Target) -> Messages:
    yield _hello(chance)
    for _ in range(10):
        yield answers(
            pb.Answer(handle=_text(chance), turn_id=chance.getrandbits(32), call_out=True),
            pb.Answer(handle=target.handle[:-1], turn_id=target.turn_id, monte=True),
        )


def _for_another(chance: Random, target: Target) -> Messages:
    yield _hello(chance)
    for card in range(1, 41):
        yield answers(target.answer(card=card))


def _hello_again(chance: Random, target: Target) -> Messages:
    yield _hello(chance)
    yield _hello(chance)


def _resume_of_another(chance: Random, target: Target) -> Messages:
    token = chance.choice((target.resume_token, target.resume_token[:-1], _text(chance), "x" * 100_000))
    yield hello(_label(chance), resume_token=token).SerializeToString()
    yield answers(target.answer(card=1))


def _too_large(chance: Random, target: Target) -> Messages:
    yield _hello(chance)
    yield bytes(chance.choice((1 << 20, (1 << 20) + 1, 3 << 20)))


def _deep(chance: Random, target: Target) -> Messages:
    if chance.random() < 0.5:
        yield _hello(chance)
    yield b"\x7b" * 50_000  # groups of an unknown field in each other
    yield b"\x7b" * 50 + b"\x7c" * 50


def _chatter(chance: Random, target: Target) -> Messages:
    yield _hello(chance)
    for number in range(30):
        yield pb.PlayRequest(pong=pb.Pong(nonce=number)).SerializeToString()
        yield pb.PlayRequest(drain=pb.Drain(message="x" * 100)).SerializeToString()


def _label(chance: Random) -> str:
    return f"enemy-{chance.randrange(1 << 30)}"


def _hello(chance: Random) -> bytes:
    return hello(_label(chance), max_matches=chance.choice((0, 1, 8, (1 << 32) - 1))).SerializeToString()


KINDS: Final[Sequence[Callable[[Random, Target], Messages]]] = (
    _garbage,
    _random_fields,
    _mutations,
    _wrong_order,
    _huge_lists,
    _wrong_values,
    _unknown_names,
    _for_another,
    _hello_again,
    _resume_of_another,
    _too_large,
    _deep,
    _chatter,
)


async def malformed_stream(channel: grpc.aio.Channel, chance: Random, target: Target, kind: int) -> bool:
    """Open a stream of one kind, and see it end; returns whether it was heard out to the last message, which
    is the case where it did not break off by itself."""
    call: Any = channel.stream_stream(PLAY, _as_it_is, pb.PlayResponse.FromString)()
    broken = (AioRpcError, asyncio.InvalidStateError)
    try:
        async with asyncio.timeout(_LIMIT_S):
            with contextlib.suppress(*broken):
                for message in KINDS[kind](chance, target):
                    await call.write(message)
            if chance.random() < 0.3:
                return False
            with contextlib.suppress(*broken):
                await call.done_writing()
            with contextlib.suppress(*broken):
                while (response := await call.read()) is not EOF:
                    assert response.WhichOneof("message") is not None
            # Streams end by their Ending; only what gRPC itself refuses has another status.
            assert await call.code() in (grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED)
            return True
    finally:
        call.cancel()


def _as_it_is(message: bytes) -> bytes:
    return message
