"""Delayed messages as the batches that they become when they are due."""

from typing import TYPE_CHECKING

from goqueue.broker.delays.scan import KEEPER_ID
from goqueue.broker.delays.stock import Ready
from goqueue.broker.tracing.places import context_in, ids_of
from goqueue.core.delays.delivered import Step
from goqueue.core.telemetry.telemetry import DELAYED
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.messages import Message
from goqueue.model.telemetry import TRACEPARENT
from goqueue.records.batch import encode
from goqueue.records.layout import SEQUENCE_MASK, read_header, stamp_producer

if TYPE_CHECKING:  # the broker is made with the keeper, which makes these
    from goqueue.broker.broker import Broker


def batches_due(broker: "Broker", items: list[Ready], step: Step) -> list[CheckedBatch]:
    """Messages as they go into their partition: their time is when they were due."""
    messages = []
    ids, samples = ids_of(broker, DELAYED), broker.telemetry.delayed.samples
    for due_ms, _, _, waiting in items:
        value, key, headers, lane = waiting.message[:4]
        if samples(waiting.number) and not (headers and context_in(headers)):
            headers = (*headers, (TRACEPARENT, ids.traceparent(waiting.number)))
        messages.append(Message(value, key, headers, lane, None, due_ms))
    batches = []
    for body, lane in encode(messages, now_ms=step.due_ms):
        sequence = step.end_offset & SEQUENCE_MASK
        stamp_producer(body, producer_id=KEEPER_ID, producer_epoch=0, base_sequence=sequence)
        batches.append(CheckedBatch(read_header(body), body, lane))
    return batches
