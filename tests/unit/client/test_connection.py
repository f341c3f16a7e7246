"""The client against a node that is scripted: it goes on where that helps, and tells the node's words."""

import asyncio
import pickle
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from select import select
from threading import Thread

import pytest

from goqueue.client import AsyncGoQueue, GoQueue, Placed
from goqueue.client.addresses import Address, parse_addresses
from goqueue.client.call import Attempts, Call, Reply
from goqueue.client.connection import Client, Refused
from goqueue.model.errors import Invalid, Unavailable

OK = (200, b"{}")
BUSY = (503, b'{"error": "later", "status": 503, "code": "unavailable"}')
HANG_UP = (0, b"")


Scripted = tuple[int, bytes] | tuple[int, bytes, bool]


@contextmanager
def scripted(*replies: Scripted, seen: list[str | None] | None = None) -> Iterator[Address]:
    """A node that gives these replies in turn; HANG_UP closes the connection instead, a third part after it.

    `seen` gets the keys that requests came with.
    """
    left = list(replies)

    class Node(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.do_GET()

        def do_GET(self) -> None:
            if seen is not None:
                seen.append(self.headers["x-api-key"])
            status, body, *closes = left.pop(0)
            if closes:
                self.close_connection = True
            if (status, body) == HANG_UP:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Tests are quiet."""

    with HTTPServer(("127.0.0.1", 0), Node) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Address("127.0.0.1", server.server_port)
        finally:
            server.shutdown()
            thread.join()


def nobody() -> Address:
    """An address where nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return Address("127.0.0.1", unused.getsockname()[1])


def ask(*addresses: Address, retry_for_ms: int = 10_000) -> bytes:
    client = Client(addresses, retry_for_ms=retry_for_ms)
    try:
        return client.request("GET", "/").body
    finally:
        client.close()


def test_a_node_that_is_busy_is_asked_again() -> None:
    with scripted(BUSY, BUSY, OK) as node:
        assert ask(node) == b"{}"


def test_a_connection_that_breaks_is_made_again() -> None:
    with scripted(HANG_UP, OK) as node:
        assert ask(node) == b"{}"


def test_a_node_that_is_gone_gives_way_to_the_next() -> None:
    with scripted(OK) as node:
        assert ask(nobody(), node) == b"{}"


def test_a_refusal_has_the_nodes_code_and_words_and_is_not_repeated() -> None:
    refusal = (404, b'{"error": "topic a does not exist", "status": 404, "code": "topic_not_found"}')
    with scripted(refusal) as node, pytest.raises(Refused, match="topic a does not exist") as refused:
        ask(node)

    assert (refused.value.code, refused.value.status) == ("topic_not_found", 404)


def test_a_refusal_by_something_else_than_a_node_is_told_too() -> None:
    with scripted((400, b"<html>")) as node, pytest.raises(Refused, match="status 400: b'<html>'"):
        ask(node)


def test_when_the_time_is_up_the_error_names_the_addresses() -> None:
    address = nobody()

    with pytest.raises(Unavailable, match=f"no node answers at {address}"):
        ask(address, retry_for_ms=1)


def publish_plainly(*addresses: Address, timeout_s: float = 30) -> Placed:
    with GoQueue(addresses, timeout_s=timeout_s) as queue:
        return queue.publish("t", "a")


def publish_awaited(*addresses: Address, timeout_s: float = 30) -> Placed:
    async def publish() -> Placed:
        async with AsyncGoQueue(addresses, timeout_s=timeout_s) as queue:
            return await queue.publish("t", "a")

    return asyncio.run(publish())


Publish = Callable[..., Placed]
in_both_forms = pytest.mark.parametrize("publish", [publish_plainly, publish_awaited])


@in_both_forms
def test_a_call_that_may_not_come_twice_is_not_sent_again_when_its_reply_is_lost(publish: Publish) -> None:
    with scripted(HANG_UP, OK) as node, pytest.raises(Unavailable, match="is not known"):
        publish(node)


@in_both_forms
def test_a_call_that_may_not_come_twice_is_sent_again_when_nothing_was_done(publish: Publish) -> None:
    later = (429, b'{"error": "later", "status": 429, "code": "busy"}')
    stored = (200, b'{"results": [{"partition": 0, "offset": 0}]}')
    with scripted(later, stored) as node:
        assert publish(nobody(), node).offset == 0


@in_both_forms
def test_it_is_sent_to_the_next_node_too_when_one_takes_no_connection(publish: Publish) -> None:
    stored = (200, b'{"results": [{"partition": 0, "offset": 0}]}')
    with socket.socket() as full, ExitStack() as waiting, scripted(stored) as node:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):  # nobody accepts them, and there is no room for more
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        assert publish(Address(*full.getsockname()), node, timeout_s=0.3).offset == 0


def test_a_connection_that_the_node_has_closed_is_not_used_for_what_may_not_come_twice() -> None:
    closing = (200, b'{"results": [{"partition": 0, "offset": 0}]}', True)
    with scripted(closing, closing) as node, GoQueue([node]) as queue:
        assert queue.publish("t", "a").offset == 0
        [client] = queue._pool._idle
        assert client._connection is not None
        assert select([client._connection.sock], [], [], 10)[0]  # the node has hung up by now
        assert queue.publish("t", "a").offset == 0


@in_both_forms
def test_a_node_that_could_not_finish_may_have_stored_the_message(publish: Publish) -> None:
    with scripted(BUSY) as node, pytest.raises(Unavailable) as refused:
        publish(node)

    assert isinstance(refused.value, Refused)
    assert refused.value.status == 503


def test_the_key_goes_with_every_request() -> None:
    seen: list[str | None] = []
    with scripted(OK, seen=seen) as node:
        Client([node], api_key="gq_secret").request("GET", "/")

    assert seen == ["gq_secret"]


def test_what_is_no_brokers_answer_is_told_as_such() -> None:
    with (
        scripted((200, b"<html>")) as node,
        GoQueue([node]) as queue,
        pytest.raises(Unavailable, match="not a broker"),
    ):
        queue.topics.list()


def test_when_nobody_answers_the_futures_of_a_producer_say_so() -> None:
    with GoQueue([nobody()], retry_for_s=0.01) as queue:
        with queue.producer() as producer:
            future = producer.send("t", "a")
        assert isinstance(future.exception(), Unavailable)


def test_when_nobody_answers_what_has_waited_as_long_is_not_tried_for_as_long_again() -> None:
    with GoQueue([nobody()], retry_for_s=0.2) as queue:
        began_s = time.monotonic()
        with queue.producer(batch_count=1) as producer:
            futures = [producer.send("t", "a") for _ in range(100)]
        took_s = time.monotonic() - began_s

    assert all(isinstance(future.exception(), Unavailable) for future in futures)
    assert took_s < 10  # a hundred times 0.2 s would be 20


def test_an_asynchronous_producer_does_so_too() -> None:
    async def story() -> None:
        async with AsyncGoQueue([nobody()], retry_for_s=0.2) as queue:
            began_s = time.monotonic()
            async with queue.producer(batch_count=1) as producer:
                futures = [await producer.send("t", "a") for _ in range(100)]
            assert all(isinstance(future.exception(), Unavailable) for future in futures)
            assert time.monotonic() - began_s < 10

    asyncio.run(story())


WAITING = Call(method="GET", path="/", decode=lambda reply: None, wait_ms=20_000)
S = 1_000_000_000


def test_the_time_for_another_attempt_begins_when_a_node_that_held_the_call_is_gone() -> None:
    attempts = Attempts(WAITING, where="a:1", retry_for_ms=10_000)
    attempts.begin(0)
    attempts.broken(ConnectionResetError(), was_sent=True, now_ns=19 * S)
    attempts.begin(20 * S)
    attempts.broken(ConnectionRefusedError(), was_sent=False, now_ns=28 * S)
    attempts.begin(29 * S)
    with pytest.raises(Unavailable):
        attempts.broken(ConnectionRefusedError(), was_sent=False, now_ns=29 * S)


def test_a_node_that_says_nothing_in_time_or_hangs_up_at_once_has_not_held_the_call() -> None:
    silent = Attempts(WAITING, where="a:1", retry_for_ms=10_000)
    silent.begin(0)
    with pytest.raises(Unavailable):
        silent.broken(TimeoutError(), was_sent=True, now_ns=50 * S)

    another_door = Attempts(WAITING, where="a:1", retry_for_ms=1_000)
    another_door.begin(0)
    another_door.broken(ConnectionResetError(), was_sent=True, now_ns=S // 2)
    another_door.begin(S)
    with pytest.raises(Unavailable):
        another_door.broken(ConnectionResetError(), was_sent=True, now_ns=S + 1)


def busy(retry_after: str, body: bytes = b"{}") -> Reply:
    headers = Message()
    headers["Retry-After"] = retry_after
    return Reply(429, headers, body)


def test_a_node_that_tells_when_to_come_again_is_believed_to_the_millisecond() -> None:
    attempts = Attempts(WAITING, where="a:1", retry_for_ms=10_000)
    attempts.begin(0)
    assert attempts.refused(busy("3"), now_ns=0) == 3
    assert attempts.refused(busy("3", b'{"retry_after_ms": 2100}'), now_ns=0) == 2.1


def test_who_is_told_to_come_when_the_time_is_over_hears_so_at_once() -> None:
    attempts = Attempts(WAITING, where="a:1", retry_for_ms=10_000)
    attempts.begin(0)
    with pytest.raises(Refused) as refused:
        attempts.refused(busy("3600"), now_ns=0)
    assert refused.value.retry_after_s == 3_600


@pytest.mark.parametrize("wrong", [{"timeout_s": 0}, {"timeout_s": -1}, {"retry_for_s": -1}])
def test_times_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    for form in (GoQueue, AsyncGoQueue):
        with pytest.raises(ValueError, match=r"timeout_s|retry_for_s"):
            form("a:1", **wrong)  # type: ignore[arg-type]  # only the times are given


@pytest.mark.parametrize("key", ["a\nb", "schlüssel", "a\0"])
def test_a_key_that_no_header_can_hold_is_refused(key: str) -> None:
    with pytest.raises(Invalid, match="API key"):
        Client([Address("a", 1)], api_key=key)


def test_a_client_can_be_sent_to_another_process() -> None:
    with scripted(OK, OK) as node:
        client = Client([node])
        client.request("GET", "/")
        copy = pickle.loads(pickle.dumps(client))
        client.close()

        assert copy.request("GET", "/").status == 200
        copy.close()


def test_addresses_are_read_as_people_write_them() -> None:
    assert parse_addresses("a:1, HTTP://b:2/,[::1]:3") == (
        Address("a", 1),
        Address("b", 2),
        Address("::1", 3),
    )
    assert str(Address("::1", 3)) == "[::1]:3"


@pytest.mark.parametrize(
    "text", ["", "a", "a:", "a:x", "a:0", "a:99999", ":1", "https://a:1", "a b:1", "b@a:1", "http://a:1/b:2"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_addresses(text)
