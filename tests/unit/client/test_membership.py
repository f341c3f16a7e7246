"""A consumer's place in its group, against scripted replies: what is due when, and who comes again."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import pytest

from goqueue.client.call import Call
from goqueue.client.calls import queue
from goqueue.client.calls.queue import Polled
from goqueue.client.calls.transactions import ProducerId
from goqueue.client.consumer_settings import consumer_settings
from goqueue.client.errors import NobodyAnswers, Refused, refusal
from goqueue.client.leases import ACK_COUNT
from goqueue.client.membership import Idleness, Leased, Membership
from goqueue.client.messages import Message
from goqueue.client.steps import Steps, take
from goqueue.client.transaction import Transaction
from goqueue.edge.http.config import HttpConfig
from goqueue.model.errors import Fenced, NotFound

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
        self.bodies: list[dict[str, Any]] = []
        self.queries: list[dict[str, str | int]] = []

    def carry(self, call: Call[object]) -> object:
        verb = call.path.rpartition("/")[2]
        self.asked.append(verb)
        self.queries.append(dict(call.query))
        if call.body is not None:
            self.bodies.append(msgspec.json.decode(call.body))
            if "receipt_handles" in self.bodies[-1]:
                self.receipt_counts.append(len(self.bodies[-1]["receipt_handles"]))
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


def leased(membership: Membership, receipt: str = "a") -> Leased:
    return Leased(
        *msgspec.structs.astuple(MESSAGE), receipt=receipt, delivery_count=1, _membership=membership
    )


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, {"client_id": "goqueue-python", "mode": "shared", "session_timeout": "30000ms"}),
        (
            {"mode": "eager", "key_order": True, "session_timeout": 6, "client_id": "c"},
            {"client_id": "c", "mode": "eager", "key_order": True, "session_timeout": "6000ms"},
        ),
    ],
)
def test_a_member_joins_as_it_was_told(options: dict[str, object], asked: dict[str, object]) -> None:
    node = Node()
    node.take(member(**options).join())

    assert node.bodies == [{"topics": ["t"], **asked}]


@pytest.mark.parametrize(
    ("options", "limit", "query"),
    [
        ({}, None, {"limit": 10}),
        ({"limit": 4}, None, {"limit": 4}),
        ({"limit": 4}, 7, {"limit": 7}),
        ({"visibility": 1.5}, None, {"limit": 10, "visibility_timeout": "1500ms"}),
        # Who is to extend leases must know how long they are.
        ({"auto_extend": True}, None, {"limit": 10, "visibility_timeout": "30000ms"}),
    ],
)
def test_a_poll_asks_for_what_was_chosen(
    options: dict[str, object], limit: int | None, query: dict[str, object]
) -> None:
    node, membership = Node(), member(**options)
    node.take(membership.join())
    node.take(membership.poll(limit=limit, wait=2))

    assert node.queries[-1] == {"member_id": "member", "timeout": "2000ms", **query}


@pytest.mark.parametrize(
    ("code", "status", "joins_again"),
    [("unknown_member", 404, True), ("stale_generation", 409, True), ("group_not_found", 404, True)],
)
def test_whoever_the_group_does_not_know_joins_again(code: str, status: int, joins_again: bool) -> None:
    for verb in ("poll", "heartbeat"):
        node, membership = Node({verb: no(code, status)}), member()
        node.take(membership.join())
        node.take(membership.poll(limit=None, wait=0) if verb == "poll" else membership.upkeep(0))
        assert (node.take(membership.join()) == ["join"]) is joins_again


def test_a_poll_that_is_refused_for_another_reason_is_told_and_the_member_stays() -> None:
    node, membership = Node({"poll": no("denied", 403)}), member()
    node.take(membership.join())
    with pytest.raises(Refused):
        node.take(membership.poll(limit=None, wait=0))

    assert node.take(membership.join()) == []


def test_a_message_that_is_settled_is_open_no_more_also_when_that_came_too_late() -> None:
    node, membership = Node(), member()
    membership.took([Polled(MESSAGE, "a", 1), Polled(MESSAGE, "b", 1)], now_ns=0)
    node.take(membership.settle(queue.ack(["a"]), "a"))
    assert not membership.is_open("a")

    node.answers["reject"] = {"b": no("lease_lost", 409)}
    with pytest.raises(Fenced):
        node.take(membership.settle(queue.reject(["b"]), "b"))
    assert not membership.is_open("b")


def test_a_message_that_could_not_be_settled_is_still_open() -> None:
    node, membership = Node({"ack": NobodyAnswers("gone")}), member()
    membership.took([Polled(MESSAGE, "a", 1)], now_ns=0)
    with pytest.raises(NobodyAnswers):
        node.take(membership.settle(queue.ack(["a"]), "a"))

    assert membership.is_open("a")


def test_an_extension_by_hand_begins_the_half_time_anew() -> None:
    node, membership = Node(), member(visibility=10, auto_extend=True)
    membership.took([Polled(MESSAGE, "a", 1)], now_ns=0)
    node.take(membership.extend("a", 10, now_ns=4 * S))
    assert node.take(membership.upkeep(5 * S)) == []
    assert node.take(membership.upkeep(9 * S)) == ["visibility"]


def test_an_extension_that_is_refused_is_told_and_changes_nothing() -> None:
    node, membership = Node({"visibility": {"a": no("lease_lost", 409)}}), member()
    with pytest.raises(Fenced):
        node.take(membership.extend("a", 10, now_ns=0))

    assert not membership.is_open("a")


@pytest.mark.parametrize(
    ("options", "problem", "delay", "goes_no_further"),
    [
        ({}, ValueError("broken"), None, True),
        ({"retry_delay": 2.0}, ValueError("broken"), "2000ms", True),
        ({"raise_errors": True}, ValueError("broken"), None, False),
        # Somebody ends the program: the message is not to blame and comes again at once.
        ({"retry_delay": 2.0}, KeyboardInterrupt(), "0ms", False),
        ({}, asyncio.CancelledError(), "0ms", False),
    ],
)
def test_a_message_that_could_not_be_handled_is_given_back(
    options: dict[str, object], problem: BaseException, delay: str | None, goes_no_further: bool
) -> None:
    node, membership = Node(), member(**options)
    membership.took([Polled(MESSAGE, "a", 1)], now_ns=0)

    assert take(membership.fail(leased(membership), problem), node) is goes_no_further  # type: ignore[arg-type]  # scripted
    [body] = node.bodies
    assert body.get("delay") == delay
    assert body["receipt_handles"] == ["a"]
    assert body["reason"] == f"{type(problem).__name__}: {problem}"
    assert not membership.is_open("a")


@pytest.mark.parametrize(
    "words", ["a file \udcff that has no name", "x" * 5_000_000], ids=["no UTF-8", "too long"]
)
def test_a_message_is_given_back_whatever_the_words_of_its_problem(words: str) -> None:
    # What is raised again is not logged: pytest could not pass on what is no UTF-8.
    node, membership = Node(), member(raise_errors=True)
    node.take(membership.fail(leased(membership), ValueError(words)))

    [body] = node.bodies
    assert body["reason"].startswith(f"ValueError: {words[:6]}")
    assert len(body["reason"]) <= 2_000


@pytest.mark.parametrize("answer", [NobodyAnswers("gone"), {"a": no("lease_lost", 409)}, no("denied", 403)])
def test_a_message_that_cannot_be_given_back_comes_back_by_itself(
    answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    node, membership = Node({"nack": answer}), member()
    with caplog.at_level("INFO", "goqueue.client"):
        assert take(membership.fail(leased(membership), ValueError("broken")), node) is True  # type: ignore[arg-type]  # scripted

    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    assert "t/0@0 was not given back" in caplog.text
    assert "t/0@0 could not be handled: ValueError: broken" in caplog.text


def test_upkeep_that_failed_is_tried_again_a_second_later() -> None:
    node, membership = Node({"heartbeat": NobodyAnswers("gone")}), member(session_timeout=1)
    node.take(membership.join())
    with pytest.raises(NobodyAnswers):
        node.take(membership.upkeep(0))

    assert membership.upkeep_in_ns(0) == 1 * S
    assert membership.upkeep_in_ns(S // 2) == S // 2
    assert membership.upkeep_in_ns(1 * S) == 0


def test_who_is_no_member_gives_no_sign_of_life_and_looks_again_after_a_beat() -> None:
    node, membership = Node(), member(session_timeout=10)

    assert membership.upkeep_in_ns(5 * S) == 2 * S
    assert node.take(membership.upkeep(5 * S)) == []
    membership.ack("a", now_ns=5 * S)
    assert membership.upkeep_in_ns(5 * S) == 20 * MS


def test_what_upkeep_could_not_extend_is_not_extended_again() -> None:
    node, membership = Node({"visibility": {"a": no("lease_lost", 409)}}), member(auto_extend=True)
    membership.took([Polled(MESSAGE, "a", 1), Polled(MESSAGE, "b", 1)], now_ns=0)
    node.take(membership.upkeep(15 * S))
    node.take(membership.upkeep(30 * S))

    assert node.receipt_counts == [2, 1]
    assert membership.is_open("a")


def test_without_auto_extend_no_lease_is_extended() -> None:
    node, membership = Node(), member(visibility=1)
    membership.took([Polled(MESSAGE, "a", 1)], now_ns=0)

    assert node.take(membership.upkeep(60 * S)) == []


def test_a_flush_sends_all_however_many_there_are() -> None:
    node, membership = Node(), member(ack_linger_ms=60_000)
    for number in range(2 * ACK_COUNT + 1):
        membership.ack(str(number), now_ns=0)
    assert node.take(membership.flush(0)) == ["ack"] * 3

    assert node.receipt_counts == [ACK_COUNT, ACK_COUNT, 1]


def test_acknowledgements_that_came_too_late_are_counted_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    late = {"a": no("lease_lost", 409), "b": no("lease_lost", 409)}
    node, membership = Node({"ack": late}), member()
    for receipt in ("a", "b", "c"):
        membership.ack(receipt, now_ns=0)
    node.take(membership.flush(0))

    assert membership.lost_count == 2
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


@pytest.mark.parametrize("code", ["unknown_member", "group_not_found"])
def test_who_was_forgotten_has_left(code: str) -> None:
    node, membership = Node({"leave": no(code, 404)}), member()
    node.take(membership.join())

    assert node.take(membership.leave([], 0)) == ["leave"]


def test_leaving_says_why_the_unseen_come_back_at_once() -> None:
    node, membership = Node(), member()
    node.take(membership.join())
    node.take(membership.leave(["a", "b"], 0))

    nack, leave = node.bodies[1:]
    assert (nack["receipt_handles"], nack["delay"]) == (["a", "b"], "0ms")
    assert "closed" in nack["reason"]
    assert leave == {"member_id": "member"}


@pytest.mark.parametrize("verb", ["nack", "ack", "leave"])
def test_leaving_that_was_interrupted_goes_on_where_it_was(verb: str) -> None:
    node, membership = Node(), member(ack_linger_ms=60_000)
    node.take(membership.join())
    membership.ack("a", now_ns=0)
    node.answers[verb] = NobodyAnswers("gone")
    with pytest.raises(NobodyAnswers):
        node.take(membership.leave(["b"], 0))
    del node.answers[verb]

    rest = node.take(membership.leave(["b"], 0))
    assert isinstance(rest, list)
    assert rest[-1] == "leave"
    assert ("ack" in rest) is (verb != "leave")
    assert node.take(membership.leave([], 0)) == []


def test_what_is_handed_to_a_transaction_is_not_extended_and_not_acknowledged_by_its_block() -> None:
    node, membership = Node(), member(visibility=10, auto_extend=True)
    membership.took([Polled(MESSAGE, "a", 1)], now_ns=0)
    message, ending = leased(membership), Ending()
    assert not message._is_in_transaction
    message._hand_over(ending)

    assert message._is_in_transaction
    assert not membership.is_open("a")
    assert node.take(membership.upkeep(9 * S)) == []
    ending.is_open = False
    assert not message._is_in_transaction


class Ending:
    is_open = True


@pytest.mark.parametrize(
    ("idle_timeout", "wait_s", "over_at_ms"), [(None, 20.0, None), (0.5, 0.5, 500), (60, 20.0, 60_000)]
)
def test_an_iteration_is_idle_after_a_time_without_a_message(
    idle_timeout: float | None, wait_s: float, over_at_ms: int | None
) -> None:
    settings = consumer_settings("t", group="g", idle_timeout=idle_timeout)
    idleness = Idleness(settings, now_ns=0)
    assert settings.wait_s == wait_s
    idleness.ended(now_ns=5 * MS)
    if over_at_ms is None:
        assert not idleness.is_over(now_ns=10**18)
        return
    assert not idleness.is_over(now_ns=(5 + over_at_ms) * MS - 1)
    assert idleness.is_over(now_ns=(5 + over_at_ms) * MS)


def test_the_least_that_makes_sense_is_taken() -> None:
    a_millisecond = timedelta(milliseconds=1)
    settings = consumer_settings(
        "t",
        group="g",
        limit=1,
        visibility=a_millisecond,
        session_timeout=a_millisecond,
        idle_timeout=a_millisecond,
        ack_linger_ms=0,
    )

    assert (settings.visibility_ms, settings.idle_ms, settings.wait_s) == (1, 1, 0.001)
