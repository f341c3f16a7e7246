"""POST /messages/ack, nack, reject and visibility: what becomes of polled messages, by receipt.

Each takes one `receipt_handle`, and is refused with a status when that is no good; or many
`receipt_handles`, and then always answers 200 and tells of each what became of it.
"""

from collections.abc import Sequence
from typing import cast

import msgspec
from litestar import post
from litestar.di import NamedDependency
from litestar.params import RawBody

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.queue.settle import settle
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.errors import status_of
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.parts.times import ZERO_TIME, format_second, format_time, parse_duration_ns
from goqueue.edge.http.queue.bodies import (
    AckBody,
    AckReply,
    NackBody,
    NackReply,
    RejectBody,
    RejectReply,
    SettleResult,
    SettleResults,
    VisibilityBody,
    VisibilityReply,
)
from goqueue.model.delivery import Action, Receipt, Settle, SettledPart, SettleOutcome, parse_receipt
from goqueue.model.errors import Invalid

_encoder = msgspec.json.Encoder()
_ack_decoder = msgspec.json.Decoder(AckBody)
_nack_decoder = msgspec.json.Decoder(NackBody)
_reject_decoder = msgspec.json.Decoder(RejectBody)
_visibility_decoder = msgspec.json.Decoder(VisibilityBody)
_TAGS = ["queue"]
_ERRORS = errors(400, 403, 404, 409, 413, 503, 507)
_NO_REASON = "rejected by the consumer"
_NS_PER_MS = 1_000_000


@post(
    "/messages/ack",
    status_code=200,
    operation_id="ackMessages",
    summary="Messages are done: they never come back to this group",
    tags=_TAGS,
    operation_class=takes(AckBody),
    responses=_ERRORS,
)
async def ack_route(
    broker: NamedDependency[Broker], config: NamedDependency[HttpConfig], body: RawBody
) -> AckReply | SettleResults:
    return await ack_messages(broker, config, body)


async def ack_messages(broker: Broker, config: HttpConfig, body: bytes) -> AckReply | SettleResults:
    """Acknowledge what a request names."""
    request = decode(_ack_decoder, body)
    receipts = _receipts(request, config)
    outcome = await at_home(broker, settle, Settle(action=Action.ACK, receipts=receipts))
    if request.receipt_handles is not None:
        return _results(receipts, outcome)
    receipt, part = _single(receipts, outcome)
    return AckReply(*part.source, receipt.offset, part.floor - 1, part.has_floor_moved, part.in_flight)


@post(
    "/messages/nack",
    status_code=200,
    operation_id="nackMessages",
    summary="Messages are delivered again, after a while; after the last retry they are dead letters",
    tags=_TAGS,
    operation_class=takes(NackBody),
    responses=_ERRORS,
)
async def nack_route(
    broker: NamedDependency[Broker], config: NamedDependency[HttpConfig], body: RawBody
) -> NackReply | SettleResults:
    request = decode(_nack_decoder, body)
    receipts = _receipts(request, config)
    delay_ms = None if not request.delay else max(parse_duration_ns(request.delay) // _NS_PER_MS, 0)
    outcome = await at_home(
        broker,
        settle,
        Settle(action=Action.NACK, receipts=receipts, reason=request.reason or "", delay_ms=delay_ms),
    )
    if request.receipt_handles is not None:
        return _results(receipts, outcome)
    receipt, part = _single(receipts, outcome)
    dead_letter_topic = outcome.dead_letter_topics.get(0)
    due_ms = outcome.times_ms.get(0)
    return NackReply(
        "dlq" if dead_letter_topic else "settled" if due_ms is None else "requeued",
        *part.source,
        receipt.offset,
        receipt.delivery_count,
        due_ms is not None,
        True,
        ZERO_TIME if due_ms is None else format_time(due_ms),
        dead_letter_topic,
    )


@post(
    "/messages/reject",
    status_code=200,
    operation_id="rejectMessages",
    summary="Messages are put aside as dead letters",
    tags=_TAGS,
    operation_class=takes(RejectBody),
    responses=_ERRORS,
)
async def reject_route(
    broker: NamedDependency[Broker], config: NamedDependency[HttpConfig], body: RawBody
) -> RejectReply | SettleResults:
    request = decode(_reject_decoder, body)
    receipts = _receipts(request, config)
    reason = request.reason or _NO_REASON
    outcome = await at_home(broker, settle, Settle(action=Action.REJECT, receipts=receipts, reason=reason))
    if request.receipt_handles is not None:
        return _results(receipts, outcome)
    receipt, part = _single(receipts, outcome)
    dead_letter_topic = outcome.dead_letter_topics.get(0)
    return RejectReply(*part.source, receipt.offset, reason, "rejected", True, True, dead_letter_topic)


@post(
    "/messages/visibility",
    status_code=200,
    operation_id="extendVisibility",
    summary="Messages take longer: they stay hidden from others for so long from now",
    tags=_TAGS,
    operation_class=takes(VisibilityBody),
    responses=_ERRORS,
)
async def visibility_route(
    broker: NamedDependency[Broker], config: NamedDependency[HttpConfig], body: RawBody
) -> VisibilityReply | SettleResults:
    request = decode(_visibility_decoder, body)
    receipts = _receipts(request, config)
    if request.extension_seconds is not None:
        visibility_ms = request.extension_seconds * 1_000
    elif request.timeout is not None:
        visibility_ms = parse_duration_ns(request.timeout) // _NS_PER_MS
    else:
        raise Invalid("timeout or extension_seconds must say for how long")
    if visibility_ms <= 0:
        raise Invalid("a message can only be kept for longer than 0 ms")
    outcome = await at_home(
        broker, settle, Settle(action=Action.EXTEND, receipts=receipts, visibility_ms=visibility_ms)
    )
    if request.receipt_handles is not None:
        return _results(receipts, outcome, is_extended=True)
    _single(receipts, outcome)
    return VisibilityReply(format_second(outcome.times_ms[0]), visibility_ms // 1_000)


def _receipts(request: AckBody | NackBody | RejectBody | VisibilityBody, config: HttpConfig) -> Sequence[str]:
    """What the request is about."""
    if request.receipt_handles is not None:
        if request.receipt_handle is not None:
            raise Invalid("give receipt_handle or receipt_handles, not both")
        if len(request.receipt_handles) > config.receipts_per_request:
            raise Invalid(f"a request settles at most {config.receipts_per_request} messages")
        return request.receipt_handles
    if not request.receipt_handle:
        raise Invalid("receipt_handle is missing")
    return (request.receipt_handle,)


def _single(receipts: Sequence[str], outcome: SettleOutcome) -> tuple[Receipt, SettledPart]:
    """The one receipt of a request and what became of it; raises what was wrong with it."""
    if refusal := outcome.refusals.get(0):
        raise refusal
    return parse_receipt(receipts[0]), outcome.parts[0]


def _results(receipts: Sequence[str], outcome: SettleOutcome, *, is_extended: bool = False) -> SettleResults:
    if not (outcome.refusals or outcome.times_ms or outcome.dead_letter_topics):
        return SettleResults(_all_done(receipts), True, len(receipts), 0)
    results = [SettleResult(receipt, True) for receipt in receipts]
    for place, time_ms in outcome.times_ms.items():
        if is_extended:
            results[place].new_deadline = format_second(time_ms)
        else:
            results[place].next_visible_at = format_time(time_ms)
    for place, topic in outcome.dead_letter_topics.items():
        results[place].dlq_topic = topic
    for place, error in outcome.refusals.items():
        results[place] = SettleResult(
            receipts[place], False, str(error), error.code, int(status_of(type(error)))
        )
    failed = len(outcome.refusals)
    return SettleResults(results, failed == 0, len(results) - failed, failed)


def _all_done(receipts: Sequence[str]) -> list[SettleResult]:
    """Results without anything to tell, which is what hundreds of acknowledgements mostly have.

    They are JSON already: to encode the receipts, a line each, and to put the rest in between takes a
    quarter of the time that a struct for each of them takes.
    """
    lines = _encoder.encode_lines(receipts).removesuffix(b"\n")
    rows = lines.replace(b"\n", b',"success":true},{"receipt_handle":')
    return cast(list[SettleResult], msgspec.Raw(b'[{"receipt_handle":%b,"success":true}]' % rows))


ROUTES = [ack_route, nack_route, reject_route, visibility_route]
