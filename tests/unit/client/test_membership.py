"""A consumer's place in its group, against scripted replies: what is due when, and who comes again."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import pytest

from goqueue.client.call import Call
from goqueue.client.calls.queue import Polled
from goqueue.client.calls.transactions import ProducerId
from goqueue.client.consumer_settings import consumer_settings
from goqueue.client.errors import NobodyAnswers, Refused, refusal
from goqueue.client.membership import Membership
from goqueue.client.messages import Message
from goqueue.client.steps import Steps, take
from goqueue.client.transaction import Transaction
from goqueue.edge.http.config import HttpConfig
from goqueue.model.errors import NotFound

MS = 1_000_000
S = 1_000 * MS
MESSAGE = Message("t", 0, 0, datetime(2026, 1, 31, tzinfo=UTC), None, b"", (), "normal")


class Receipt(NamedTuple):
    receipt: str


class Node:
    """Answers each route as it is told, and notes what was asked."""

    def __init__(self, answers: Mapping[str, object] | None = None) -> None:
        self.answers: dict[str, object] = {"join": "member", "poll": [], **(answers or {})}
        self.asked: list[str] = []
        self.receipt_counts: list[int] = []

    def carry(self, call: Call[object]) -> object:
        verb = call.path.rpartition("/")[2]
        self.asked.append(verb)
        if call.body is not None and b"receipt_handles" in call.body:
            self.receipt_counts.append(len(msgspec.json.decode(call.body)["receipt_handles"]))
        answer = self.answers.get(verb, {})
        if isinstance(answer, Exception):
            raise answer
        return answer

    def take(self, steps: Steps[object]) -> object:
        self.asked.clear()
        take(steps, self)  # type: ignore[arg-type]  # scripted
        return list(self.asked)


def no(code: str, status: int) -> Refused:
    return refusal(status, b'{"error": "no", "code": "%s"}' % code.encode(), None)


def member(**options: object) -> Membership:
    return Membership(consumer_settings("t", group="g", **options), now_ns=0)  # type: ignore[arg-type]  # a shorthand


def test_a_member_joins_once_and_again_when_the_group_has_forgotten_it() -> None:
    node, membership = Node(), member()
    assert node.take(membership.join()) == ["join"]
    assert node.take(membership.join()) == []

    node.answers["poll"] = no("unknown_member", 404)
    assert node.take(membership.poll(limit=None, wait=0)) == ["poll"]
    assert node.take(membership.join()) == ["join"]


def test_a_topic_that_is_gone_is_told_and_not_joined_again() -> None:
    node, membership = Node({"poll": no("topic_not_found", 404)}), member()
    node.take(membership.join())

    with pytest.raises(NotFound):
        node.take(membership.poll(limit=None, wait=0))


def test_signs_of_life_are_given_five_times_a_session() -> None:
    node, membership = Node(), member(session_timeout=10)
    node.take(membership.join())

    assert node.take(membership.upkeep(0)) == ["heartbeat"]
    assert membership.upkeep_in_ns(0) == 2 * S
    assert node.take(membership.upkeep(1 * S)) == []
    assert node.take(membership.upkeep(2 * S)) == ["heartbeat"]


def test_a_member_that_is_sent_away_between_polls_joins_with_the_next() -> None:
    node, membership = Node({"heartbeat": no("unknown_member", 404)}), member()
    node.take(membership.join())
    node.take(membership.upkeep(0))

    assert node.take(membership.poll(limit=None, wait=0)) == []
    assert node.take(membership.join()) == ["join"]


def test_acknowledgements_go_together_and_survive_a_node_that_is_gone() -> None:
    node, membership = Node({"ack": NobodyAnswers("gone")}), member(ack_linger_ms=20)
    membership.ack("a", now_ns=0)
    membership.ack("b", now_ns=10 * MS)
    assert membership.upkeep_in_ns(10 * MS) == 10 * MS
    with pytest.raises(NobodyAnswers):
        node.take(membership.upkeep(20 * MS))
    assert membership.upkeep_in_ns(20 * MS) == 1 * S

    node.answers["ack"] = {"b": no("lease_lost", 409)}
    assert node.take(membership.upkeep(2 * S)) == ["ack"]
    assert node.take(membership.upkeep(2 * S)) == []
    assert membership.lost_count == 1


def test_who_leaves_gives_back_what_nobody_saw_and_sends_what_waits() -> None:
    node, membership = Node(), member()
    node.take(membership.join())
    membership.ack("a", now_ns=0)

    assert node.take(membership.leave(["b"], 0)) == ["nack", "ack", "leave"]
    assert node.take(membership.leave([], 0)) == []


def test_no_request_has_more_receipts_than_a_node_takes() -> None:
    limit = HttpConfig().receipts_per_request
    receipts = [f"receipt-{number}" for number in range(2 * limit + 1)]
    node, membership = Node(), member(visibility=10, auto_extend=True)
    node.take(membership.join())
    membership.took([Polled(MESSAGE, receipt, 1) for receipt in receipts], now_ns=0)

    assert node.take(membership.upkeep(5 * S)) == ["visibility"] * 3 + ["heartbeat"]
    assert node.take(membership.leave(receipts, 5 * S)) == ["nack"] * 3 + ["leave"]

    assert node.receipt_counts == [limit, limit, 1] * 2


def test_a_transaction_takes_more_messages_than_go_in_one_request() -> None:
    limit = HttpConfig().receipts_per_request
    node = Node({"init": ProducerId(7, 0)})
    with Transaction(node, "teller", None) as transaction:  # type: ignore[arg-type]  # scripted
        transaction.ack(*(Receipt(f"receipt-{number}") for number in range(limit + 1)))

    assert node.asked == ["init", "begin", "add-offsets", "add-offsets", "commit"]
    assert node.receipt_counts == [limit, 1]


@pytest.mark.parametrize(
    "wrong",
    [{"limit": 0}, {"visibility": 0}, {"session_timeout": 0}, {"ack_linger_ms": -1}, {"idle_timeout": 0}],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        consumer_settings("t", group="g", **wrong)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ValueError):
        consumer_settings(group="g")
