"""Request bodies: read within a bound, decoded with an error that a client can act on."""

import re
from typing import TypeVar

import msgspec
from litestar.types import Receive, Scope

from goqueue.model.errors import Invalid, RequestTooLarge
from goqueue.model.settings import KiB, MiB

T = TypeVar("T")

PARTS_MAX = 100_000
"""So many opening braces a JSON body has at most, and so many commas if it is of more than 1 MiB.

Each may stand for an object, an element or a field that is made in one go while everybody waits: a MiB of
`{},{},…` takes 40 ms to read, and a MiB of text 1 ms.
"""
_HALF_PAIR = re.compile(
    rb"(?<!\\)(?:\\\\)*"  # escaped backslashes escape nothing behind them
    rb"(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F])"
)
_UNCOUNTED_BYTES = 256 * KiB
"""Below this nothing can take long."""


class ClientGone(Exception):
    """The client hung up before its request was whole; there is nobody to answer."""


def decode_if_any(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """The same where every field may be left out: then so may the body."""
    return decode(decoder, body or b"{}")


def decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """What a JSON body holds, strictly typed."""
    admit_parts(body)
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:  # its ValidationError says where: "at `$.messages[0].value`"
        if half := _half_pair(body):
            raise Invalid(f"the body is not JSON that can be read: {half}") from error
        raise Invalid(f"the body is not what this request needs: {error}") from error
    except (UnicodeError, RecursionError) as error:
        raise Invalid(f"the body is not JSON that can be read: {error}") from error


def _half_pair(body: bytes) -> str:
    """What is wrong with a character that takes two escapes and has one, which msgspec calls truncated."""
    match = _HALF_PAIR.search(body, 0, _UNCOUNTED_BYTES)
    if match is None:
        return ""
    return f"the escape that ends at byte {match.end()} is half of a surrogate pair: write both halves"


def admit_parts(body: bytes) -> None:
    """Refuse a body of so many parts that reading it would take too long, by a look at its bytes alone."""
    size = len(body)
    if size > _UNCOUNTED_BYTES and (
        body.count(b"{") > PARTS_MAX or (size > MiB and body.count(b",") > PARTS_MAX)
    ):
        raise RequestTooLarge(
            f"a JSON body has at most {PARTS_MAX} opening braces, and as many commas if it is of more than "
            "1 MiB, those in texts included: send less at once"
        )


async def read_body(scope: Scope, receive: Receive, bytes_max: int) -> bytes:
    """The whole body; refused before it is read when its length is told, else as soon as it is too long."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            if int(value) > bytes_max:
                raise _too_large(bytes_max)
            break
    event = await receive()
    if event["type"] == "http.disconnect":
        raise ClientGone
    assert event["type"] == "http.request"
    if not event["more_body"]:
        body = event["body"]
        if len(body) > bytes_max:
            raise _too_large(bytes_max)
        return body
    return await _read_on(event["body"], receive, bytes_max)


async def read_buffer(scope: Scope, receive: Receive, bytes_max: int) -> bytearray:
    """The whole body, within the same bound, in a buffer that can be written to."""
    for name, value in scope["headers"]:
        if name == b"content-length" and int(value) > bytes_max:
            raise _too_large(bytes_max)
    buffer = bytearray()
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise Invalid("the request ended before its body did")  # nobody is there to read it
        assert event["type"] == "http.request"
        buffer += event["body"]
        if len(buffer) > bytes_max:
            raise _too_large(bytes_max)
        if not event["more_body"]:
            return buffer


async def _read_on(start: bytes, receive: Receive, bytes_max: int) -> bytes:
    parts = [start]
    size = len(start)
    while size <= bytes_max:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ClientGone
        assert event["type"] == "http.request"
        parts.append(event["body"])
        size += len(event["body"])
        if not event["more_body"] and size <= bytes_max:
            return b"".join(parts)
    raise _too_large(bytes_max)


def _too_large(bytes_max: int) -> RequestTooLarge:
    return RequestTooLarge(f"a request body has at most {bytes_max} bytes")
