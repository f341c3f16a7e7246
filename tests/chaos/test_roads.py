"""The ways between nodes of a chaos: what they carry, and that a cut stops one direction alone."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.chaos.roads import Roads

HELLO = b"....node-2...."
"""Whoever dials says who it is."""
WAIT_S = 5.0
SHORT_S = 0.3


@pytest.fixture
def roads() -> Iterator[Roads]:
    roads = Roads(["node-1", "node-2"])
    roads.open()
    yield roads
    roads.close()


@pytest.fixture
def listener(roads: Roads) -> Iterator[socket.socket]:
    """The door of node-1, which answers everything with the same."""
    with socket.create_server(("127.0.0.1", roads.first_door)) as listening:
        threading.Thread(target=_echo, args=(listening,), daemon=True).start()
        yield listening


def _echo(listening: socket.socket) -> None:
    def answer(caller: socket.socket) -> None:
        while piece := caller.recv(1_000):
            caller.sendall(piece)

    while True:
        try:
            caller, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(caller,), daemon=True).start()


def _dialled(roads: Roads) -> socket.socket:
    give_up_s = time.monotonic() + WAIT_S
    while True:
        try:
            caller = socket.create_connection(("127.0.0.1", roads.first_port), WAIT_S)
            caller.sendall(HELLO)
            assert caller.recv(1_000) == HELLO
            return caller
        except (OSError, AssertionError):
            assert time.monotonic() < give_up_s, "nobody listens before a node that is there"


def _hears(caller: socket.socket, wait_s: float) -> bytes:
    caller.settimeout(wait_s)
    try:
        return caller.recv(1_000)
    except TimeoutError:
        return b""


@pytest.mark.slow
@pytest.mark.parametrize("way", [("node-1", "node-2"), ("node-2", "node-1")])
def test_a_way_that_is_cut_carries_nothing_until_it_is_healed(
    roads: Roads, listener: socket.socket, way: tuple[str, str]
) -> None:
    caller = _dialled(roads)
    roads.cut(way)
    caller.sendall(b"late")

    assert _hears(caller, SHORT_S) == b""
    roads.heal()
    assert _hears(caller, WAIT_S) == b"late"


@pytest.mark.slow
def test_a_cut_between_others_is_not_felt(roads: Roads, listener: socket.socket) -> None:
    caller = _dialled(roads)
    roads.cut(("node-1", "node-3"), ("node-3", "node-2"))
    caller.sendall(b"soon")

    assert _hears(caller, WAIT_S) == b"soon"


@pytest.mark.slow
def test_nobody_listens_before_a_node_that_is_dead(roads: Roads) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", roads.first_port), WAIT_S)
