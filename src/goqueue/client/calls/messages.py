"""Messages in and out without a lease: publish, and read by offset or by time."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from goqueue.client.call import BYTES, Call, Reply, json_of, path, query_of
from goqueue.client.calls import log
from goqueue.client.calls.log import Extents
from goqueue.client.errors import Refused, refusal
from goqueue.client.messages import Acks, Content, GivenHeaders, Json, Outgoing, Page, Placed, Priority
from goqueue.client.times import Duration, milliseconds, time_text
from goqueue.client.wire import MessageOnWire, ResultOnWire, on_wire
from goqueue.wire.logs import BatchPlace as BatchPlace
from goqueue.wire.logs import BatchPlaces


class _Results(msgspec.Struct):
    results: list[ResultOnWire]


class _Read(msgspec.Struct):
    messages: list[MessageOnWire]
    next_offset: int


_BAD_REQUEST = 400
_decode_results = json_of(_Results)
_decode_read = json_of(_Read)


def publish_many(
    topic: str, messages: Iterable[Outgoing], *, acks: Acks = "all"
) -> Call[list[Placed | Refused]]:
    """Publish messages in one request. What is wrong with one of them stands in its place in the answer."""
    body = msgspec.json.encode({"messages": [on_wire(message) for message in messages], "acks": acks})
    return Call(
        method="POST",
        path=path("topics", topic, "messages"),
        decode=_outcomes,
        body=body,
        is_repeatable=False,
        accepts=(_BAD_REQUEST,),
    )


def _outcomes(reply: Reply) -> list[Placed | Refused]:
    """One for each message, also where the only one was refused, which is an error that has results."""
    if reply.status == _BAD_REQUEST and b'"results"' not in reply.body:
        raise refusal(reply.status, reply.body, None)
    return [result.outcome() for result in _decode_results(reply).results]


def publish(
    topic: str,
    value: Content | Json,
    *,
    key: Content = None,
    headers: GivenHeaders = (),
    partition: int | None = None,
    priority: Priority | None = None,
    delay: Duration | None = None,
    deliver_at: datetime | None = None,
    ttl: Duration | None = None,
    acks: Acks = "all",
) -> Call[Placed]:
    """Publish a message and tell where it is: by default when it is on the disk.

    A dict or a list is sent as JSON. Unavailable means that nobody knows whether the message is stored; a
    producer knows, and stores it once.
    """
    message = Outgoing(value, key, headers, partition, priority, delay, deliver_at, ttl)
    many = publish_many(topic, [message], acks=acks)

    def decode(reply: Reply) -> Placed:
        [outcome] = many.decode(reply)
        if isinstance(outcome, Refused):
            raise outcome
        return outcome

    return Call(method="POST", path=many.path, decode=decode, body=many.body, is_repeatable=False)


def append_batches(entries: bytes, *, acks: Acks = "all") -> Call[list[BatchPlace]]:
    """Store record batches of a producer that numbers them: sent again, they are stored once."""
    decode = json_of(BatchPlaces)
    return Call(
        method="POST",
        path="/batches",
        decode=lambda reply: decode(reply).placed,
        query={"acks": acks},
        body=entries,
        content_type=BYTES,
    )


def read_page(
    topic: str,
    partition: int = 0,
    *,
    offset: int = 0,
    at: datetime | None = None,
    limit: int | None = None,
    wait: Duration = 0,
) -> Call[Page]:
    """Messages of one partition from an offset, or from a time on; at most 1000 at once.

    With nothing to read, the node waits for up to `wait` (30 s at most) for something to come.
    """
    wait_ms = milliseconds(wait)

    def decode(reply: Reply) -> Page:
        found = _decode_read(reply)
        return Page([message.opened(topic, partition) for message in found.messages], found.next_offset)

    query = query_of(
        offset=None if at else offset,
        limit=limit,
        from_time=time_text(at),
        wait=f"{wait_ms}ms" if wait_ms else None,
    )
    return Call(
        method="GET",
        path=path("topics", topic, "partitions", partition, "messages"),
        decode=decode,
        query=query,
        wait_ms=wait_ms,
    )


def extents(topics: Sequence[str]) -> Call[Extents]:
    """Where the partitions of topics begin and end (behind the last message), and their bytes."""
    return log.extents(log.Which(topics=tuple(topics)))


def offsets_at(topics: Sequence[str], time: datetime) -> Call[dict[str, dict[str, int]]]:
    """The first offset of that time or later in each partition; its end where there is none."""
    time_text(time)  # one without a zone is refused
    return log.offsets_at(topics, time_ms=int(time.timestamp() * 1_000))
