"""Progress as a consumer group: told when it changes; a refusal stops a query only when it begins."""

from email.message import Message
from typing import TypeVar

import msgspec
import pytest

from goqueue.client.addresses import Address
from goqueue.client.call import Call
from goqueue.client.connection import Client, Refused, Reply
from goqueue.spark.source.progress import GroupProgress

T = TypeVar("T")
FIRST = {"orders": {"0": 3}}
SECOND = {"orders": {"0": 7}}


class Node(Client):
    """A node that keeps what it is told, unless it is to refuse it."""

    def __init__(self) -> None:
        super().__init__([Address("127.0.0.1", 1)])
        self.told: list[dict[str, object]] = []
        self.refuses = False

    def carry(self, call: Call[T]) -> T:
        if self.refuses:
            raise Refused("members are there", code="unknown_member", status=403)
        assert call.path == "/groups/spark%2Forders/offsets"
        if call.method == "POST":
            self.told.append(msgspec.json.decode(call.body or b""))
        reply = {"group_id": "spark/orders", **self.told[-1]}
        return call.decode(Reply(200, Message(), msgspec.json.encode(reply)))


def test_offsets_are_told_when_they_have_changed() -> None:
    node = Node()
    progress = GroupProgress(node, "spark/orders")

    for offsets in (FIRST, FIRST, SECOND, SECOND):
        progress.publish(offsets)

    assert node.told == [{"offsets": FIRST}, {"offsets": SECOND}]
    assert progress.published() == SECOND


def test_a_group_that_refuses_the_first_offsets_stops_the_query() -> None:
    node = Node()
    node.refuses = True

    with pytest.raises(Refused):
        GroupProgress(node, "spark/orders").publish(FIRST)


def test_a_group_that_refuses_later_offsets_does_not(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    progress = GroupProgress(node, "spark/orders")
    progress.publish(FIRST)

    node.refuses = True
    progress.publish(SECOND)
    node.refuses = False
    progress.publish({"orders": {"0": 9}})

    assert node.told == [{"offsets": FIRST}, {"offsets": {"orders": {"0": 9}}}]
    assert "group_not_told group=spark/orders problem=members are there" in caplog.text
