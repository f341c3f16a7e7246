"""Progress as a consumer group: told when it changes; a refusal stops a query only when it begins."""

from collections.abc import Mapping
from email.message import Message

import msgspec
import pytest

from goqueue.client.addresses import Address
from goqueue.client.connection import JSON, Client, Refused, Reply
from goqueue.spark.progress import GroupProgress

FIRST = {"orders": {"0": 3}}
SECOND = {"orders": {"0": 7}}


class Node(Client):
    """A node that keeps what it is told, unless it is to refuse it."""

    def __init__(self) -> None:
        super().__init__([Address("127.0.0.1", 1)])
        self.told: list[object] = []
        self.refuses = False

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
    ) -> Reply:
        if self.refuses:
            raise Refused("members are there", code="unknown_member", status=403)
        if method == "POST":
            assert path == "/groups/spark%2Forders/offsets"
            self.told.append(msgspec.json.decode(body or b""))
        return Reply(200, Message(), msgspec.json.encode(self.told[-1]))


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
