"""The work queue: be a member of a group, take messages with a lease, say what became of them."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeVar

import msgspec

from goqueue.client.call import Call, Reply, body_of, json_of, path, query_of
from goqueue.client.errors import Refused, kind_of
from goqueue.client.messages import Message
from goqueue.client.times import Duration, duration_text, milliseconds
from goqueue.client.wire import MessageOnWire

T = TypeVar("T")

GroupMode = Literal["shared", "eager"]

RECEIPTS_MAX = 5_000
"""A node takes so many receipts in a request."""

Settling = Call[dict[str, Refused]]
"""What is to become of messages; gives what was refused, by receipt."""


class Polled(msgspec.Struct, frozen=True):
    """A message that is out with its consumer."""

    message: Message
    receipt: str
    delivery_count: int
    """1: it was never delivered to this group before."""


class _Joined(msgspec.Struct):
    member_id: str


class _PollReply(msgspec.Struct):
    messages: list[MessageOnWire]


class _Settled(msgspec.Struct, gc=False):
    receipt_handle: str
    success: bool
    error: str = ""
    code: str = ""
    status: int = 0


class _SettleReply(msgspec.Struct):
    results: list[_Settled]


_decode_poll = json_of(_PollReply)
_decode_settled = json_of(_SettleReply)


def join(
    group: str,
    *,
    client_id: str,
    topics: Sequence[str],
    mode: GroupMode | None = None,
    key_order: bool | None = None,
    session_timeout: Duration | None = None,
    member_id: str | None = None,
) -> Call[str]:
    """Become a member of a group; gives the member's id."""
    decode = json_of(_Joined)
    return Call(
        method="POST",
        path=path("groups", group, "join"),
        decode=lambda reply: decode(reply).member_id,
        body=body_of(
            client_id=client_id,
            topics=list(topics),
            mode=mode,
            key_order=key_order,
            session_timeout=duration_text(session_timeout),
            member_id=member_id,
        ),
    )


def heartbeat(group: str, member_id: str) -> Call[None]:
    """A sign of life."""
    return Call(
        method="POST",
        path=path("groups", group, "heartbeat"),
        decode=lambda reply: None,
        body=body_of(member_id=member_id),
    )


def leave(group: str, member_id: str) -> Call[None]:
    """Go for good."""
    return Call(
        method="POST",
        path=path("groups", group, "leave"),
        decode=lambda reply: None,
        body=body_of(member_id=member_id),
    )


def poll(
    group: str,
    member_id: str,
    *,
    limit: int | None = None,
    wait: Duration = 0,
    visibility: Duration | None = None,
) -> Call[list[Polled]]:
    """Take messages with a lease; with none to take, the node waits for up to `wait` (60 s at most)."""
    wait_ms = milliseconds(wait)
    return Call(
        method="GET",
        path=path("groups", group, "poll"),
        decode=_polled,
        query=query_of(
            member_id=member_id,
            limit=limit,
            timeout=f"{wait_ms}ms",
            visibility_timeout=duration_text(visibility),
        ),
        wait_ms=wait_ms,
    )


def in_requests(receipts: Sequence[T]) -> Iterator[Sequence[T]]:
    """Any number of receipts, or of messages that have one, in parts that a node takes."""
    for start in range(0, len(receipts), RECEIPTS_MAX):
        yield receipts[start : start + RECEIPTS_MAX]


def ack(receipts: Sequence[str]) -> Settling:
    """Messages are done."""
    return _settle("ack", receipts)


def nack(receipts: Sequence[str], *, delay: Duration | None = None, reason: str | None = None) -> Settling:
    """Messages are to be delivered again, after a while."""
    return _settle("nack", receipts, delay=duration_text(delay), reason=reason)


def reject(receipts: Sequence[str], *, reason: str | None = None) -> Settling:
    """Messages are put aside as dead letters."""
    return _settle("reject", receipts, reason=reason)


def extend(receipts: Sequence[str], visibility: Duration) -> Settling:
    """Messages take longer: they stay hidden from others for so long from now."""
    return _settle("visibility", receipts, timeout=duration_text(visibility))


def _settle(verb: str, receipts: Sequence[str], **fields: object) -> Settling:
    return Call(
        method="POST",
        path=f"/messages/{verb}",
        decode=_refused,
        body=body_of(receipt_handles=list(receipts), **fields),
    )


def _polled(reply: Reply) -> list[Polled]:
    return [
        Polled(message.opened(), message.receipt_handle, message.delivery_count)
        for message in _decode_poll(reply).messages
    ]


def _refused(reply: Reply) -> dict[str, Refused]:
    return {
        result.receipt_handle: kind_of(result.code, result.status)(
            result.error, code=result.code, status=result.status
        )
        for result in _decode_settled(reply).results
        if not result.success
    }
