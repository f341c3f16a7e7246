"""The client against a node that is scripted: it goes on where that helps, and tells the node's words."""

import pickle
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from goqueue.client.addresses import Address, parse_addresses
from goqueue.client.connection import Client, Refused
from goqueue.model.errors import Invalid, Unavailable

OK = (200, b"{}")
BUSY = (503, b'{"error": "later", "status": 503, "code": "unavailable"}')
HANG_UP = (0, b"")


@contextmanager
def scripted(*replies: tuple[int, bytes]) -> Iterator[Address]:
    """A node that gives these replies in turn; HANG_UP closes the connection instead."""
    left = list(replies)

    class Node(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, body = left.pop(0)
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


def test_a_client_can_be_sent_to_another_process() -> None:
    with scripted(OK, OK) as node:
        client = Client([node])
        client.request("GET", "/")
        copy = pickle.loads(pickle.dumps(client))
        client.close()

        assert copy.request("GET", "/").status == 200
        copy.close()


def test_addresses_are_read_as_people_write_them() -> None:
    assert parse_addresses("a:1, http://b:2/,[::1]:3") == (
        Address("a", 1),
        Address("b", 2),
        Address("::1", 3),
    )
    assert str(Address("::1", 3)) == "[::1]:3"


@pytest.mark.parametrize("text", ["", "a", "a:", "a:x", "a:0", "a:99999", ":1", "https://a:1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_addresses(text)
