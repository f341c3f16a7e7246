"""The outside of a frame: size, header, body."""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from goqueue.edge.kafka.wire import INT32, NO_TAGS, Reader
from goqueue.model.ports import Buffer

SIZE = INT32
_REQUEST_HEADER = Struct(">hhi")
_REPLY_HEADER = Struct(">ii")
_CORRELATION_ID_BYTES = 4
_SHORT_BYTES = 4_096


class RequestHeader(NamedTuple):
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None


def read_header(reader: Reader) -> RequestHeader:
    """The part all request headers share. Tagged fields follow where the version has them."""
    api_key, version, correlation_id = reader.unpack(_REQUEST_HEADER)
    # The client id keeps the old string layout in every version, so that ApiVersions can always be read.
    return RequestHeader(api_key, version, correlation_id, reader.string_or_null(flexible=False))


def frame_reply(correlation_id: int, body: Sequence[Buffer], *, has_tags: bool) -> list[Buffer]:
    """A reply as the buffers to write. Only a short one is joined: one small write is cheaper than two."""
    tags = NO_TAGS if has_tags else b""
    size = _CORRELATION_ID_BYTES + len(tags) + sum(map(len, body))
    header = _REPLY_HEADER.pack(size, correlation_id) + tags
    return [b"".join((header, *body))] if size <= _SHORT_BYTES else [header, *body]
