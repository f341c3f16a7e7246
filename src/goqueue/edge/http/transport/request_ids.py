"""A name for each request, that brings together its reply, its log lines and what its client tells of it.

A client may choose it (`X-Request-ID`); else it is made: a word of this process and a number. It goes back
with every reply, whoever wrote that.
"""

import itertools
import re
import secrets
from collections.abc import Iterable
from typing import cast

from litestar.types import Scope

HEADER = b"x-request-id"
REQUEST_ID = "goqueue.request_id"
"""Where a connection puts it, as bytes, into the scope of each of its requests."""
LENGTH_MAX = 128
_GIVEN = re.compile(rb"[\x20-\x7e]{1,%d}" % LENGTH_MAX)
_process = secrets.token_hex(4).encode()
_numbers = itertools.count(1)


def request_id_for(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """What the client calls its request, if that is printable and not too long; else a new name."""
    for name, value in headers:
        if name == HEADER and _GIVEN.fullmatch(value):
            return value
    return b"%b-%x" % (_process, next(_numbers))


def request_id_of(scope: Scope) -> str:
    """For a log line. An app that is called without a connection has none."""
    return cast("dict[str, bytes]", scope).get(REQUEST_ID, b"-").decode("ascii")
