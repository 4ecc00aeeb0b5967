"""Builds the one message that carries everything a session has waiting."""

from __future__ import annotations

from typing import Any, Final

from tressette.play.session import Refused, Seat, Session, Status, UnknownHandle, UnknownTurn
from tressette.rules.errors import ActionError
from tressette.v1 import arena_service_pb2 as arena_pb
from tressette.v1 import event_pb2 as event_pb
from tressette.wire.convert import REASONS, event_to_wire, fill_legal, public_event, rules_to_wire, wire_cards

_STATUS: Final[dict[Status, Any]] = {
    Status.ACCEPTED: arena_pb.RECEIPT_STATUS_ACCEPTED,
    Status.REPEATED: arena_pb.RECEIPT_STATUS_REPEATED,
    Status.TURN_OVER: arena_pb.RECEIPT_STATUS_TURN_OVER,
}


def next_response(session: Session, now: float, unix_ms: int) -> arena_pb.PlayResponse | None:
    """Everything that waits for this session as one message, or None if nothing does. The clocks of the
    turns in it start: send it at once."""
    news, receipts, refused = session.take(now)
    if not (news or receipts or refused):
        return None
    response = arena_pb.PlayResponse()
    batch = response.batch
    for handle, turn, status in receipts:
        batch.receipts.add(handle=handle, turn_id=turn, status=_STATUS[status])
    for one in refused:
        batch.errors.append(_error(one))
    updates = batch.updates
    for seat in news:
        _fill_update(updates.add(), seat, now, unix_ms)
        session.delivered(seat)
    return response


def _error(one: Refused) -> arena_pb.Error:
    error = one.error
    if isinstance(error, ActionError):
        reason: Any = REASONS[error.code]
        text = error.reason
    else:
        reason = {
            UnknownHandle: arena_pb.ERROR_REASON_UNKNOWN_HANDLE,
            UnknownTurn: arena_pb.ERROR_REASON_UNKNOWN_TURN,
        }[type(error)]
        text = "no match of this session" if isinstance(error, UnknownHandle) else str(error)
    return arena_pb.Error(
        reason=reason, message=text, handle=one.handle, turn_id=one.turn, may_retry=one.may_retry
    )


def _fill_update(update: arena_pb.MatchUpdate, seat: Seat, now: float, unix_ms: int) -> None:
    game = seat.game
    update.handle = seat.handle
    if not seat.sent:
        _fill_started(update.started, seat)
    first, log = seat.sent, game.log
    if first < len(log):
        shared: list[event_pb.Event | None] = game.wire
        if len(shared) < len(log):
            shared += map(public_event, log[len(shared) :])
        events = shared[first:]
        if None in events:
            update.events.extend(
                event or event_to_wire(log[first + index], (seat.number,))
                for index, event in enumerate(events)
            )
        else:
            update.events.extend(events)  # type: ignore[arg-type]  # there is no None among them
        update.first_event = first + 1
    if seat.open:
        _fill_turn(update, seat, now, unix_ms)


def _fill_turn(update: arena_pb.MatchUpdate, seat: Seat, now: float, unix_ms: int) -> None:
    game = seat.game
    turn = update.turn
    turn.turn_id = seat.turn
    turn.sent_unix_ms = unix_ms
    if game.config.move_ms:
        # An answer that may be corrected is asked again with what is left of its time.
        spent = now - seat.sent_at if seat.sent_at is not None else 0.0
        turn.clock.move_ms = max(1, game.config.move_ms - round(spent * 1000))
    view, deal = turn.view, game.match.deal
    view.hand.extend(wire_cards(deal.hands[seat.number]))
    if deal.table:
        view.table.extend([card + 1 for card in deal.table])  # type: ignore[misc]  # enum values
    view.leader = deal.leader
    fill_legal(view.legal, game.match.legal(seat.number))


def _fill_started(started: arena_pb.MatchStarted, seat: Seat) -> None:
    game = seat.game
    spec = game.spec
    started.rules.CopyFrom(rules_to_wire(spec.rules))
    started.preset = spec.preset
    started.seat = seat.number
    if spec.rules.pairs:
        partner = game.seats[(seat.number + 2) % 4]
        started.partner_is_copy = spec.bots[partner.player] == spec.bots[seat.player]
    started.attempt = spec.attempt
    started.bot_seed = game.bot_seed(seat)
    started.deck_commitment = bytes.fromhex(spec.commitment)
    started.clock.move_ms = game.config.move_ms
    started.illegal_retries = game.config.illegal_retries
