"""Replies in one write: which are, and that all others are written as uvicorn does."""

import asyncio
import logging
from typing import cast

import pytest
from uvicorn._types import ASGISendEvent, HTTPScope
from uvicorn.protocols.http.flow_control import FlowControl

from goqueue.edge.http.transport.cycle import Cycle
from goqueue.edge.http.transport.flow import Flow, LazyEvent

JSON = (b"content-type", b"application/json")


class Written(list[bytes]):
    """A transport that keeps what it is given."""

    def write(self, data: bytes) -> None:
        self.append(bytes(data))

    def close(self) -> None:
        self.append(b"(closed)")


def replied(
    headers: list[tuple[bytes, bytes]], body: bytes, *, method: str = "GET", keep_alive: bool = True
) -> Written:
    """What is written for a reply."""
    written = Written()
    transport = cast(asyncio.Transport, written)
    completed: list[bool] = []
    cycle = Cycle(
        scope=cast(HTTPScope, {"method": method}),
        transport=transport,
        flow=cast(FlowControl, Flow(transport)),
        logger=logging.getLogger(__name__),
        access_logger=logging.getLogger(__name__),
        access_log=False,
        default_headers=[(b"x-request-id", b"7")],
        message_event=cast(asyncio.Event, LazyEvent()),
        expect_100_continue=False,
        keep_alive=keep_alive,
        on_response=lambda: completed.append(True),
    )
    messages: list[ASGISendEvent] = [
        {"type": "http.response.start", "status": 200, "headers": headers},
        {"type": "http.response.body", "body": body, "more_body": False},
    ]

    async def send() -> None:
        for message in messages:
            await cycle.send(message)

    asyncio.run(send())
    assert completed == [True]
    assert cycle.response_complete
    return written


def test_a_usual_reply_leaves_in_one_write() -> None:
    written = replied([JSON, (b"content-length", b"3")], b"{}\n")

    assert written == [
        b"HTTP/1.1 200 OK\r\nx-request-id: 7\r\n"
        b"content-type: application/json\r\ncontent-length: 3\r\n\r\n{}\n"
    ]


@pytest.mark.parametrize(
    ("headers", "body", "method", "keep_alive"),
    [
        ([JSON, (b"content-length", b"3"), (b"retry-after", b"1")], b"{}\n", "GET", True),
        ([JSON], b"{}\n", "GET", True),
        ([JSON, (b"content-length", b"3")], b"{}\n", "HEAD", True),
        ([JSON, (b"content-length", b"3")], b"{}\n", "GET", False),
        ([JSON, (b"content-length", b"100000")], b"x" * 100_000, "GET", True),
    ],
    ids=["another header", "no length", "HEAD", "the last reply", "a large body"],
)
def test_any_other_reply_says_the_same_in_more_writes(
    headers: list[tuple[bytes, bytes]], body: bytes, method: str, keep_alive: bool
) -> None:
    written = replied(headers, body, method=method, keep_alive=keep_alive)

    assert written[0].startswith(b"HTTP/1.1 200 OK\r\nx-request-id: 7\r\ncontent-type: application/json\r\n")
    assert written[0].endswith(b"\r\n\r\n")
    assert (written[-1] == b"(closed)") is (not keep_alive)
    assert (body in written[1]) is (method != "HEAD") if len(written) > 1 else method == "HEAD"


@pytest.mark.parametrize("length", [b"2", b"4"])
def test_a_reply_whose_length_is_told_wrongly_is_an_error(length: bytes) -> None:
    with pytest.raises(RuntimeError, match="Content-Length"):
        replied([JSON, (b"content-length", length)], b"{}\n")


def test_a_header_that_would_break_the_head_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="header value"):
        replied([(b"location", b"a\r\nb: c"), (b"content-length", b"3")], b"{}\n")
