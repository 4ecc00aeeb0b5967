"""The messages of every turn as bytes, written by hand because they are what the server spends its time on.

Building these few messages field by field through protobuf's Python API costs several times what the rules
cost. Here the parts that repeat (a card played, a hand, a clock) are encoded once and joined. Everything
rare is still a protobuf message, serialized and spliced in. Field numbers are read from the generated
descriptors, and tests parse what is written here and compare it with the same content built through protobuf.

Wire format: https://protobuf.dev/programming-guides/encoding/. Fields that hold their default are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from google.protobuf.message import Message

from tressette.rules.actions import Legal
from tressette.rules.cards import CARDS
from tressette.rules.events import PRIVATE, CardPlayed, Event, TrickWon
from tressette.v1 import arena_service_pb2 as arena_pb
from tressette.v1 import view_pb2 as view_pb
from tressette.wire.convert import WIRE_LISTS, event_to_wire, legal_to_wire

_VARINT, _LENGTH = 0, 2


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL: Final = tuple(_encode_varint(value) for value in range(1 << 12))


def varint(value: int) -> bytes:
    """An unsigned varint."""
    return _SMALL[value] if value < 4096 else _encode_varint(value)


def _tag(message: Any, field: str, kind: int) -> bytes:
    return _encode_varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | kind)


_BATCH: Final = _tag(arena_pb.PlayResponse, "batch", _LENGTH)
_RECEIPTS: Final = _tag(arena_pb.Batch, "receipts", _LENGTH)
_ERRORS: Final = _tag(arena_pb.Batch, "errors", _LENGTH)
_UPDATES: Final = _tag(arena_pb.Batch, "updates", _LENGTH)
_RECEIPT_HANDLE: Final = _tag(arena_pb.Receipt, "handle", _LENGTH)
_RECEIPT_TURN: Final = _tag(arena_pb.Receipt, "turn_id", _VARINT)
_RECEIPT_STATUS: Final = _tag(arena_pb.Receipt, "status", _VARINT)
_HANDLE: Final = _tag(arena_pb.MatchUpdate, "handle", _LENGTH)
_STARTED: Final = _tag(arena_pb.MatchUpdate, "started", _LENGTH)
_FIRST_EVENT: Final = _tag(arena_pb.MatchUpdate, "first_event", _VARINT)
_EVENTS: Final = _tag(arena_pb.MatchUpdate, "events", _LENGTH)
_TURN: Final = _tag(arena_pb.MatchUpdate, "turn", _LENGTH)
_TURN_ID: Final = _tag(view_pb.Turn, "turn_id", _VARINT)
_VIEW: Final = _tag(view_pb.Turn, "view", _LENGTH)
_CLOCK: Final = _tag(view_pb.Turn, "clock", _LENGTH)
_SENT: Final = _tag(view_pb.Turn, "sent_unix_ms", _VARINT)
_HAND: Final = _tag(view_pb.SeatView, "hand", _LENGTH)
_TABLE: Final = _tag(view_pb.SeatView, "table", _LENGTH)
_LEADER: Final = _tag(view_pb.SeatView, "leader", _VARINT)
_LEGAL: Final = _tag(view_pb.SeatView, "legal", _LENGTH)
_LEGAL_CARDS: Final = _tag(view_pb.LegalActions, "cards", _LENGTH)

_CARD_BYTES: Final = tuple(tuple(bytes(cards) for cards in suit) for suit in WIRE_LISTS)
_LEADERS: Final = (b"", *(_LEADER + varint(seat) for seat in range(1, 5)))


def _field(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content


def _cards(mask: int) -> bytes:
    """The cards of a mask as the content of a packed field: every card is one byte."""
    denari, coppe, spade, bastoni = _CARD_BYTES
    return (
        denari[mask & 1023] + coppe[mask >> 10 & 1023] + spade[mask >> 20 & 1023] + bastoni[mask >> 30 & 1023]
    )


def handle_field(handle: str) -> bytes:
    """The handle as the first field of a MatchUpdate."""
    return _field(_HANDLE, handle.encode())


@lru_cache(maxsize=8192)
def _receipt_handle(handle: str) -> bytes:
    return _field(_RECEIPT_HANDLE, handle.encode()) + _RECEIPT_TURN


def receipt(handle: str, turn: int, status: int) -> bytes:
    """A receipt as a field of a Batch; ``status`` is the wire value."""
    content = _receipt_handle(handle) + varint(turn) + _RECEIPT_STATUS + _SMALL[status]
    return _RECEIPTS + varint(len(content)) + content


def error(message: arena_pb.Error) -> bytes:
    """An error as a field of a Batch."""
    return _field(_ERRORS, message.SerializeToString())


def event(message: Message) -> bytes:
    """An event as a field of a MatchUpdate."""
    return _field(_EVENTS, message.SerializeToString())


def shared_event(one: Event) -> bytes | None:
    """An event that looks the same to every viewer as a field of a MatchUpdate; None for others."""
    kind = type(one)
    if kind is CardPlayed:
        assert isinstance(one, CardPlayed)
        if one.signal is None:
            return _CARD_PLAYED[one.seat][one.card]
    elif kind is TrickWon:
        assert isinstance(one, TrickWon)
        return _trick_won(one.seat, one.thirds)
    elif kind in PRIVATE:
        return None
    return event(event_to_wire(one, ()))


_CARD_PLAYED: Final = tuple(
    tuple(event(event_to_wire(CardPlayed(seat, card), ())) for card in CARDS) for seat in range(5)
)


@lru_cache(maxsize=1024)
def _trick_won(seat: int, thirds: int) -> bytes:
    return event(event_to_wire(TrickWon(seat, thirds), ()))


@lru_cache(maxsize=256)
def clock(move_ms: int, bank_ms: int, increment_ms: int) -> bytes:
    """A clock as a field of a Turn."""
    message = view_pb.Clock(move_ms=move_ms, bank_ms=bank_ms, increment_ms=increment_ms)
    return _field(_CLOCK, message.SerializeToString())


def sent(unix_ms: int) -> bytes:
    """The time of sending as a field of a Turn."""
    return _SENT + varint(unix_ms)


def turn(
    turn_id: int,
    hand: int,
    table: Sequence[int],
    leader: int,
    legal: Legal,
    clock_field: bytes,
    sent_field: bytes,
    extra_fields: bytes = b"",
) -> bytes:
    """A turn as a field of a MatchUpdate. ``hand`` is a mask, ``table`` cards, ``leader`` a seat;
    ``extra_fields`` come from ``extra``."""
    # Nothing in here but the turn id comes near the 4096 that _SMALL ends at.
    held = _cards(hand)
    if legal == (legal.cards, *_PLAIN):
        cards = held if legal.cards == hand else _cards(legal.cards)
        allowed = _LEGAL_CARDS + _SMALL[len(cards)] + cards
    else:
        allowed = legal_to_wire(legal).SerializeToString()
    on_table = _TABLE + _SMALL[len(table)] + bytes([card + 1 for card in table]) if table else b""
    legal_field = _LEGAL + _SMALL[len(allowed)] + allowed
    view = b"".join((_HAND, _SMALL[len(held)], held, on_table, _LEADERS[leader], legal_field, extra_fields))
    content = b"".join((_TURN_ID, varint(turn_id), _VIEW, _SMALL[len(view)], view, clock_field, sent_field))
    return _TURN + _SMALL[len(content)] + content


def extra(totals: Sequence[int], taken_thirds: Sequence[int], active: Sequence[int]) -> bytes:
    """What only some views have, as fields of a SeatView: scores by side, and the seats that play."""
    return view_pb.SeatView(totals=totals, taken_thirds=taken_thirds, active=active).SerializeToString()


_PLAIN: Final = tuple(Legal()[1:])


def update(
    handle: bytes, started: arena_pb.MatchStarted | None, first: int, events: bytes, turn_field: bytes
) -> bytes:
    """A MatchUpdate as a field of a Batch, from fields encoded above. ``first`` is the number of the first
    event."""
    content = handle
    if started is not None:
        content += _field(_STARTED, started.SerializeToString())
    if events:
        content += _FIRST_EVENT + varint(first) + events
    content += turn_field
    return _UPDATES + varint(len(content)) + content


def response(fields: list[bytes]) -> bytes:
    """A PlayResponse of a Batch of these fields."""
    content = b"".join(fields)
    return _BATCH + varint(len(content)) + content
