"""A poll by its path and query: what the fast routes take, and what they leave to the framework."""

import pytest

from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.queue.bodies import PolledMessage
from goqueue.edge.http.queue.polling import poll_in_request, reply_of
from goqueue.model.delivery import Poll, Polled, PolledPart
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane, StoredMessage

CONFIG = HttpConfig()


def test_a_plain_poll_is_taken() -> None:
    wanted = poll_in_request(
        "/v1/groups/workers/poll",
        b"member_id=ann&max_messages=7&generation=3&timeout=90s&visibility_timeout=5s&encoding=base64",
        CONFIG,
    )

    assert wanted is not None
    assert wanted.as_base64
    assert wanted.command == Poll(
        group="workers",
        member_id="ann",
        generation=3,
        limit=7,
        max_bytes=CONFIG.read_bytes,
        wait_ms=60_000,
        visibility_ms=5_000,
    )


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/groups/workers/poll", b""),
        ("/groups//poll", b"member_id=ann"),
        ("/topics/workers/poll", b"member_id=ann"),
        ("/groups/workers/poll", b"member_id=ann&limit=0"),
        ("/groups/workers/poll", b"member_id=ann&limit=-1"),
        ("/groups/workers/poll", b"member_id=ann&max_bytes=1e3"),
        ("/groups/workers/poll", b"member_id=ann&timeout=soon"),
        ("/groups/workers/poll", b"member_id=ann&visibility_timeout=0s"),
        ("/groups/workers/poll", b"member_id=ann&generation=x"),
        ("/groups/workers/poll", b"member_id=ann&encoding=rot13"),
        ("/groups/workers/poll", b"member_id=ann&more=" + b"x" * 2_000),
    ],
)
def test_what_needs_a_closer_look_is_left_to_the_framework(path: str, query: bytes) -> None:
    assert poll_in_request(path, query, CONFIG) is None


@pytest.mark.parametrize("as_base64", [False, True])
def test_a_message_is_shown_alike_alone_and_among_others(as_base64: bool) -> None:
    source = TopicPartition(TopicName("orders"), 0)
    messages = [
        StoredMessage(0, 5, None, b"plain", (), Lane.NORMAL),
        StoredMessage(1, 6, None, 'sch\u00f6n "\\\n'.encode(), (), Lane.HIGH),
        StoredMessage(2, 5, b"", b"an empty key", (), Lane.NORMAL),
        StoredMessage(3, 5, b"k", None, (), Lane.NORMAL),
        StoredMessage(4, 5, None, b"\xff", (), Lane.NORMAL),
        StoredMessage(5, 5, b"\xff", b"text", (), Lane.NORMAL),
        StoredMessage(6, 5, None, b"told", (("a", b"1"), ("a", b"\xff")), Lane.NORMAL),
    ]

    def shown(some: list[StoredMessage]) -> list[PolledMessage]:
        return reply_of(
            Polled([PolledPart(source, 0xAB, some, {2: 7})], {}, {}), as_base64=as_base64
        ).messages

    together = shown(messages)
    assert together == [alone for message in messages for alone in shown([message])]
    if not as_base64:
        assert [message.value for message in together] == [
            "plain",
            'sch\u00f6n "\\\n',
            "an empty key",
            None,
            "/w==",
            "dGV4dA==",
            "told",
        ]
        assert [message.key for message in together] == [None, None, "", "k", None, "/w==", None]
        assert [message.encoding for message in together] == [None] * 4 + ["base64"] * 2 + [None]


def test_a_reply_goes_on_behind_the_largest_offset_whatever_the_order_of_lanes() -> None:
    source = TopicPartition(TopicName("orders"), 2)
    messages = [
        StoredMessage(9, 0, None, b"urgent", (), Lane.CRITICAL),
        StoredMessage(4, 0, b"\xff", b"plain", (("n", None),), Lane.NORMAL),
    ]
    polled = Polled([PolledPart(source, 0xAB, messages, {4: 3})], {source: 4}, {source: 10})

    reply = reply_of(polled, as_base64=False)

    assert reply.next_offset == {"orders-2": 10, "2": 10}
    urgent, plain = reply.messages
    assert urgent.receipt_handle == "orders:2:9:1:00000000000000ab"
    assert (plain.receipt_handle, plain.delivery_count) == ("orders:2:4:3:00000000000000ab", 3)
    assert (plain.encoding, plain.key, plain.headers) == ("base64", "/w==", {"n": None})


def test_a_made_trace_joins_a_messages_own_headers_unless_they_name_one() -> None:
    source = TopicPartition(TopicName("orders"), 0)
    own, made = f"00-{1:032x}-{1:016x}-01", f"00-{2:032x}-{2:016x}-01"
    messages = [
        StoredMessage(0, 0, None, b"plain", (), Lane.NORMAL),
        StoredMessage(1, 0, None, b"not sampled", (), Lane.NORMAL),
        StoredMessage(2, 0, None, b"told", (("a", b"1"),), Lane.NORMAL),
        StoredMessage(3, 0, None, b"traced", (("Traceparent", own.encode()),), Lane.NORMAL),
        StoredMessage(4, 0, None, b"garbage", (("traceparent", b"x"),), Lane.NORMAL),
        StoredMessage(5, 0, None, b"twice", (("a", b"1"), ("a", b"2")), Lane.NORMAL),
    ]
    polled = Polled([PolledPart(source, 0xAB, messages, {})], {}, {})

    shown = reply_of(polled, as_base64=False, made=[[made, None, made, made, made, made]]).messages

    assert [message.headers for message in shown] == [
        {"traceparent": made},
        None,
        {"a": "1", "traceparent": made},
        {"Traceparent": own},
        {"traceparent": made},
        {"a": "2", "traceparent": made},
    ]
    assert [header.name for header in shown[5].header_list or ()] == ["a", "a", "traceparent"]
