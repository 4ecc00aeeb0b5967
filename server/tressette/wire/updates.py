"""Builds the one message that carries everything a session has waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tressette.play.session import Seat, Session, Status
from tressette.rules.events import MatchEnded
from tressette.rules.match import Match
from tressette.v1 import arena_service_pb2 as arena_pb
from tressette.wire import encode, errors
from tressette.wire.convert import ended_to_wire, event_to_wire, rules_to_wire

_STATUS: Final[dict[Status, Any]] = {
    Status.ACCEPTED: arena_pb.RECEIPT_STATUS_ACCEPTED,
    Status.REPEATED: arena_pb.RECEIPT_STATUS_REPEATED,
    Status.TURN_OVER: arena_pb.RECEIPT_STATUS_TURN_OVER,
}


def next_response(session: Session, now: float, unix_ms: int) -> bytes | None:
    """Everything that waits for this session as one serialized PlayResponse, or None if nothing does. The
    clocks of the turns in it start: send it at once."""
    news, receipts, refused = session.take(now)
    if not (news or receipts or refused):
        return None
    fields = [encode.receipt(handle, turn, _STATUS[status]) for handle, turn, status in receipts]
    fields += [
        encode.error(errors.to_wire(one.error, one.handle, one.turn, one.may_retry)) for one in refused
    ]
    sent = encode.sent(unix_ms)
    for seat in news:
        fields.append(_update(seat, now, sent))
        session.delivered(seat)
    return encode.response(fields)


def _update(seat: Seat, now: float, sent: bytes) -> bytes:
    first = seat.sent
    if seat.wire is None:
        seat.wire = encode.handle_field(seat.handle)
    return encode.update(
        seat.wire,
        None if first else _started(seat),
        first + 1,
        _events(seat, first),
        _turn(seat, now, sent) if seat.open else b"",
    )


def _events(seat: Seat, first: int) -> bytes:
    """The events that the seat has not been sent, encoded once for all seats where they hide nothing."""
    game = seat.game
    log = game.log
    shared: list[bytes | None] = game.wire
    if len(shared) < len(log):
        shared += map(encode.shared_event, log[len(shared) :])
        if isinstance(log[-1], MatchEnded):
            shared[-1] = encode.event(ended_to_wire(log[-1], game.spec.suits))
    fields = shared[first:]
    if None in fields:
        fields = [
            encode.event(event_to_wire(log[first + index], (seat.number,))) if field is None else field
            for index, field in enumerate(fields)
        ]
    return b"".join(fields)  # type: ignore[arg-type]  # there is no None among them


def _turn(seat: Seat, now: float, sent: bytes) -> bytes:
    game = seat.game
    match, config = game.match, game.config
    deal = match.deal
    clock = b""
    if config.timed:
        # An answer that may be corrected is asked again with what is left of its time.
        spent = 0
        if seat.sent_at is not None and seat.sent_at != now:
            spent = round((now - seat.sent_at) * 1000)
        left = max(0, config.move_ms - spent)
        bank = max(0, round(seat.bank * 1000) - max(0, spent - config.move_ms))
        # A turn that is open has some time left, if only what the network is allowed.
        clock = encode.clock(left if left or bank else 1, bank, config.increment_ms)
    legal = match.legal(seat.number)
    hand = deal.hands[seat.number]
    extra = b""
    if legal.call_out or len(match.active) < match.rules.players:
        extra = _extra(match, legal.call_out)
    return encode.turn(seat.turn, hand, deal.table, deal.leader, legal, clock, sent, extra)


def _extra(match: Match, may_call_out: bool) -> bytes:
    """The scores for a seat that may call out, the seats that play where not all do."""
    totals: Sequence[int] = ()
    thirds: Sequence[int] = ()
    if may_call_out:
        totals = match.standing.totals
        thirds = [0 if pile is None else pile.thirds for pile in match.piles()]
    active = match.active if len(match.active) < match.rules.players else ()
    return encode.extra(totals, thirds, active)


def _started(seat: Seat) -> arena_pb.MatchStarted:
    game = seat.game
    spec = game.spec
    started = arena_pb.MatchStarted(
        rules=rules_to_wire(spec.rules),
        preset=spec.preset,
        seat=seat.number,
        attempt=spec.attempt,
        bot_seed=game.bot_seed(seat),
        deck_commitment=bytes.fromhex(spec.commitment),
        illegal_retries=game.config.illegal_retries,
    )
    config = game.config
    if config.timed:
        started.clock.move_ms = config.move_ms
        started.clock.bank_ms = config.bank_ms
        started.clock.increment_ms = config.increment_ms
    if spec.rules.pairs:
        partner = game.seats[(seat.number + 2) % 4]
        started.partner_is_copy = spec.bots[partner.player] == spec.bots[seat.player]
    return started
