"""The JSON of the work queue: polls, receipts, dead letters and their statistics.

Existing clients and the first server disagreed on names; replies hold both where their types allow.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from goqueue.edge.http.parts.bodies import HeaderBody, PriorityWord
from goqueue.wire.dead_letters import Redriven

_Handle = Annotated[str, Meta(description="One receipt handle of a poll; the answer is about it alone.")]
_Handles = Annotated[
    list[str], Meta(description="Many of them; `results` tells of each, in the order given.", min_length=1)
]
_Reason = Annotated[str, Meta(description="Goes with the message to the dead letters.")]


class PolledMessage(Struct, omit_defaults=True, gc=False):
    """A message that is out with the consumer until it settles it, or its time is up."""

    topic: str
    partition: int
    offset: int
    value: Annotated[str, Meta(description="null: the message has no value.")] | None
    timestamp: str
    receipt_handle: str
    priority: PriorityWord
    delivery_count: Annotated[int, Meta(description="1: it was never delivered to this group before.")]
    key: str | None = None
    encoding: Annotated[Literal["base64"], Meta(description="Present: value and key are base64.")] | None = (
        None
    )
    headers: dict[str, str | None] | None = None
    header_list: list[HeaderBody] | None = None


class PollReply(Struct, gc=False):
    messages: list[PolledMessage]
    next_offset: Annotated[
        dict[str, int],
        Meta(description="By orders-0, and by the partition alone when all are of one topic."),
    ]


class AckBody(Struct, gc=False):
    """Messages that are done."""

    receipt_handle: _Handle | None = None
    receipt_handles: _Handles | None = None
    consumer_id: str | None = None


class NackBody(Struct, gc=False):
    """Messages to deliver again."""

    receipt_handle: _Handle | None = None
    receipt_handles: _Handles | None = None
    delay: Annotated[str, Meta(description="Like 5s; without it the topic's back-off counts.")] | None = None
    reason: _Reason | None = None
    consumer_id: str | None = None


class RejectBody(Struct, gc=False):
    """Messages to put aside as dead letters."""

    receipt_handle: _Handle | None = None
    receipt_handles: _Handles | None = None
    reason: _Reason | None = None
    consumer_id: str | None = None


class VisibilityBody(Struct, gc=False):
    """Messages that take longer: hidden from others for so long from now."""

    receipt_handle: _Handle | None = None
    receipt_handles: _Handles | None = None
    timeout: Annotated[str, Meta(description="Like 60s.")] | None = None
    extension_seconds: Annotated[int, Meta(gt=0, le=2**31 - 1)] | None = None
    consumer_id: str | None = None


class AckReply(Struct, gc=False):
    topic: str
    partition: int
    offset: int
    committed_offset: Annotated[
        int, Meta(description="The last offset before which all is settled; -1: none.")
    ]
    offset_advanced: bool
    in_flight_count: Annotated[int, Meta(description="What the consumer still has out.")]
    success: Literal[True] = True
    acknowledged: Literal[True] = True


class NackReply(Struct, omit_defaults=True):
    action: Literal["requeued", "dlq", "settled"]
    topic: str
    partition: int
    offset: int
    delivery_count: int
    requeued: bool
    success: bool
    next_visible_at: str
    dlq_topic: str | None = None


class RejectReply(Struct, omit_defaults=True):
    topic: str
    partition: int
    offset: int
    reason: str
    action: str
    rejected: bool
    success: bool
    dlq_topic: str | None = None


class VisibilityReply(Struct):
    new_deadline: str
    extended_by: Annotated[int, Meta(description="Seconds from now.")]
    success: Literal[True] = True
    extended: Literal[True] = True


class SettleResult(Struct, omit_defaults=True, gc=False):
    """What became of one receipt; with `error`, `code` and `status` when it was refused."""

    receipt_handle: str
    success: bool
    error: str | None = None
    code: str | None = None
    status: int | None = None
    next_visible_at: str | None = None
    new_deadline: str | None = None
    dlq_topic: str | None = None


class SettleResults(Struct, gc=False):
    results: list[SettleResult]
    success: Annotated[bool, Meta(description="Whether none was refused.")]
    settled: Annotated[int, Meta(description="How many were not refused.")]
    failed: int


class DeadLetterBody(Struct, omit_defaults=True, gc=False):
    """A dead letter. `headers` are all it carries; the story is told once more by name."""

    partition: int
    offset: int
    value: str | None
    timestamp: str
    priority: PriorityWord
    original_topic: str
    original_partition: int
    original_offset: int
    reason: str
    delivery_attempts: int
    last_group: str
    last_consumer: str
    last_error: str
    dlq_time: str
    key: str | None = None
    encoding: Literal["base64"] | None = None
    headers: dict[str, str | None] | None = None
    header_list: list[HeaderBody] | None = None


class DeadLetterList(Struct):
    topic: str
    dlq_topic: str
    messages: list[DeadLetterBody]
    count: int
    next: Annotated[
        dict[str, int], Meta(description="Partitions that have more, and the offset to look on from.")
    ]


class RedriveFilter(Struct):
    """Which dead letters; all that is given must fit."""

    reason: str | list[str] | None = None
    group: str | None = None
    key: str | None = None
    since: Annotated[str, Meta(description="RFC 3339: dead since then.")] | None = None
    until: Annotated[str, Meta(description="RFC 3339: dead before then.")] | None = None


REDRIVE_RATE_MIN, REDRIVE_RATE_MAX = 0.01, 1_000_000


class RedriveBody(Struct):
    """Dead letters to send back."""

    filter: RedriveFilter | None = None
    rate: (
        Annotated[
            float,
            Meta(
                ge=REDRIVE_RATE_MIN,
                le=REDRIVE_RATE_MAX,
                description="Messages a second; without it as fast as it goes.",
            ),
        ]
        | None
    ) = None
    limit: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    dry_run: bool | None = False


RedriveReply = Redriven
