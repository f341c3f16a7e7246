"""What a message asks for in its headers, through whichever door it comes: a lane, and when it comes."""

import re
from collections.abc import Sequence

from goqueue.model.delays import DELAY_HEADER, DELIVER_AT_HEADER
from goqueue.model.errors import InvalidRecord
from goqueue.model.messages import PRIORITY_HEADER, Headers, Lane, Message
from goqueue.records.layout import TIMESTAMP_MS_MAX

WISH_HEADERS = frozenset((PRIORITY_HEADER, DELAY_HEADER, DELIVER_AT_HEADER))
_LANE_BY_TEXT = {text: lane for lane in Lane for text in (lane.label.encode(), b"%d" % lane)}
_WHOLE_NUMBER = re.compile(rb"-?\d{1,18}")

Pairs = Sequence[tuple[str, bytes | None]]


def lane_asked(headers: Pairs, index: int, given: Lane = Lane.NORMAL) -> Lane:
    """The lane of a message. One that was given otherwise goes before what the headers say."""
    if given is not Lane.NORMAL:
        return given
    for name, value in headers:
        if name == PRIORITY_HEADER:
            lane = _LANE_BY_TEXT.get((value or b"").lower())
            if lane is None:
                raise InvalidRecord(
                    f"{PRIORITY_HEADER} {value!r} is none of critical, high, normal, low, background, 0 to 4",
                    record_index=index,
                )
            return lane
    return Lane.NORMAL


def due_asked(headers: Pairs, index: int, now_ms: int) -> int | None:
    """When a message is to be delivered; None: now."""
    asked = {name: value for name, value in headers if name in (DELAY_HEADER, DELIVER_AT_HEADER)}
    for name, value in asked.items():
        if not _WHOLE_NUMBER.fullmatch(value or b""):
            raise InvalidRecord(f"{name} {value!r} is no number of milliseconds", record_index=index)
    delay, deliver_at = asked.get(DELAY_HEADER), asked.get(DELIVER_AT_HEADER)
    due_ms = now_ms + int(delay) if delay is not None else int(deliver_at or 0)
    if due_ms > TIMESTAMP_MS_MAX:
        raise InvalidRecord(f"due time {due_ms} is too far from now", record_index=index)
    return due_ms if due_ms > now_ms else None


def delayed_headers(headers: Pairs, due_ms: int) -> Headers:
    """The headers of a message that waits. Whoever passes it on afterwards must not delay it again."""
    own = [pair for pair in headers if pair[0] not in (DELAY_HEADER, DELIVER_AT_HEADER)]
    return (*own, (DELIVER_AT_HEADER, b"%d" % due_ms))


def heed(message: Message, index: int, now_ms: int) -> Message:
    """A message with what its headers ask for. What it asks for otherwise goes first."""
    if not any(name in WISH_HEADERS for name, _ in message.headers):
        return message
    lane = lane_asked(message.headers, index, message.lane)
    due_ms = due_asked(message.headers, index, now_ms) if message.due_ms is None else None
    if due_ms is None:
        return message._replace(lane=lane)
    return message._replace(lane=lane, due_ms=due_ms, headers=delayed_headers(message.headers, due_ms))
