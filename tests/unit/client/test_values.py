"""What the client makes of what it is given and told, before and behind the wire: plain values."""

import asyncio
import inspect
import os
import pickle
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from goqueue.client import (
    AsyncGoQueue,
    AsyncTransaction,
    Conflict,
    GoQueue,
    Message,
    Outgoing,
    Page,
    Placed,
    Refused,
    Transaction,
)
from goqueue.client import nouns as nouns_module
from goqueue.client.call import Call, Reply, body_of, path, query_of
from goqueue.client.calls import log as log_calls
from goqueue.client.connection import Client
from goqueue.client.errors import (
    NobodyAnswers,
    RefusedBusy,
    RefusedCorrupt,
    RefusedDenied,
    RefusedFenced,
    RefusedInvalid,
    RefusedNotFound,
    RefusedUnavailable,
    UnreadableReply,
    kind_of,
    refusal,
)
from goqueue.client.forks import fork_count
from goqueue.client.log import Which, extents, frames, offsets_at, splits
from goqueue.client.messages import content_bytes, given_headers, lane_of, priority_of, to_store
from goqueue.client.nouns import AsyncNoun, Noun
from goqueue.client.outbox import ProducerSettings
from goqueue.client.reading import FOLLOW_WAIT_S, Bookmark
from goqueue.client.steps import Steps, ask, take, take_async
from goqueue.client.times import duration_text, milliseconds, option_ms, time_text
from goqueue.client.wire import MessageOnWire, ResultOnWire, on_wire
from goqueue.model.errors import GoQueueError, Invalid
from goqueue.model.messages import Lane
from tests.unit.client.scripted_node import answering, by_path, said, scripted

AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RefusedInvalid),
        (401, RefusedDenied),
        (403, RefusedDenied),
        (404, RefusedNotFound),
        (405, RefusedInvalid),
        (409, RefusedFenced),
        (413, RefusedInvalid),
        (422, RefusedInvalid),
        (429, RefusedBusy),
        (503, RefusedUnavailable),
        (507, RefusedUnavailable),
        (418, Refused),
        (500, Refused),
    ],
)
def test_a_refusal_without_a_code_is_sorted_by_its_status(status: int, kind: type[Refused]) -> None:
    refused = refusal(status, b"", None)

    assert type(refused) is kind
    assert (refused.code, refused.status) == (str(status), status)


def codes(family: type[GoQueueError]) -> list[str]:
    return [family.code, *(code for below in family.__subclasses__() for code in codes(below))]


@pytest.mark.parametrize(
    ("family", "kind"),
    [(family, kind) for kind in Refused.__subclasses__() for family in kind.__mro__[2:3]],
)
def test_every_code_of_the_house_has_the_family_that_it_has_there(
    family: type[GoQueueError], kind: type[Refused]
) -> None:
    assert issubclass(family, GoQueueError)
    for code in codes(family):
        assert kind_of(code, 500) is kind


def test_only_what_is_in_the_way_is_a_conflict() -> None:
    assert kind_of("topic_exists", 409) is Conflict
    assert kind_of("topic_exists", 429) is RefusedBusy
    assert kind_of("lease_lost", 409) is RefusedFenced


@pytest.mark.parametrize(
    ("told", "header", "seconds"),
    [
        (b"{}", None, None),
        (b"{}", "", None),
        (b"{}", "7", 7.0),
        (b"{}", "7.5", None),
        (b'{"retry_after_ms": 0}', "7", 0.0),
        (b'{"retry_after_ms": 1500}', None, 1.5),
    ],
)
def test_when_to_come_again_is_told_in_seconds(
    told: bytes, header: str | None, seconds: float | None
) -> None:
    assert refusal(429, told, header).retry_after_s == seconds


@pytest.mark.parametrize("kind", [*Refused.__subclasses__(), Conflict, Refused])
def test_every_refusal_survives_a_process_border(kind: type[Refused]) -> None:
    refused = kind("no", code="c", status=409, retry_after_s=2.5)
    copy = pickle.loads(pickle.dumps(refused))

    assert type(copy) is kind
    assert (str(copy), copy.code, copy.status, copy.retry_after_s) == ("no", "c", 409, 2.5)


@pytest.mark.parametrize("kind", [NobodyAnswers, UnreadableReply])
def test_so_does_what_the_client_says_itself(kind: type[Exception]) -> None:
    assert str(pickle.loads(pickle.dumps(kind("gone")))) == "gone"


def test_corrupt_bytes_at_the_node_are_told_with_its_words() -> None:
    refused = refusal(500, b'{"error": "segment 5 is damaged", "code": "corrupt"}', None)

    assert type(refused) is RefusedCorrupt
    assert (str(refused), refused.code, refused.status) == ("segment 5 is damaged", "corrupt", 500)


@pytest.mark.parametrize(
    ("duration", "ms"),
    [
        (0, 0),
        (1, 1_000),
        (0.0001, 1),
        (1.0001, 1_001),
        (-0.5, -500),
        (timedelta(microseconds=1), 1),
        (timedelta(days=1), 86_400_000),
        (timedelta(milliseconds=5), 5),
    ],
)
def test_a_started_millisecond_counts_as_a_whole_one(duration: float | timedelta, ms: int) -> None:
    assert milliseconds(duration) == ms
    assert duration_text(duration) == f"{ms}ms"


@pytest.mark.parametrize("least_ms", [0, 1])
def test_an_option_in_seconds_has_its_least(least_ms: int) -> None:
    assert option_ms("wait_s", 0.001, least_ms=least_ms) == 1
    if least_ms == 0:
        assert option_ms("wait_s", 0, least_ms=0) == 0
    else:
        with pytest.raises(ValueError, match="wait_s is above 0"):
            option_ms("wait_s", 0, least_ms=1)
    with pytest.raises(ValueError, match="wait_s is"):
        option_ms("wait_s", -1, least_ms=least_ms)


def test_a_time_is_told_with_its_zone() -> None:
    tokyo = timezone(timedelta(hours=9))

    assert time_text(AT.astimezone(tokyo)) == "2030-01-02T12:04:05+09:00"
    assert time_text(None) is None


@pytest.mark.parametrize(
    ("content", "stored"),
    [
        (None, None),
        (b"", b""),
        (b"\xff", b"\xff"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abc")[1:], b"bc"),
        ("grüße", "grüße".encode()),
        ({"a": [1, None]}, b'{"a":[1,null]}'),
        ([], b"[]"),
    ],
)
def test_what_is_given_is_stored_as_bytes(content: object, stored: bytes | None) -> None:
    found = content_bytes(content)  # type: ignore[arg-type]  # one of those above

    assert found == stored
    assert found is None or type(found) is bytes


@pytest.mark.parametrize("wrong", [5, 1.5, True, object(), (1,), {"set"}])
def test_what_has_more_than_one_form_as_bytes_is_refused(wrong: object) -> None:
    with pytest.raises(Invalid, match=f"not {type(wrong).__name__}"):
        content_bytes(wrong)  # type: ignore[arg-type]  # that is the point


def test_headers_are_pairs_in_order_whichever_way_they_are_given() -> None:
    assert given_headers({"b": "x", "a": None}) == (("b", b"x"), ("a", None))
    assert given_headers((name, value) for name, value in (("a", "1"), ("a", "2"))) == (
        ("a", b"1"),
        ("a", b"2"),
    )
    assert given_headers(()) == ()


def test_priorities_and_lanes_are_one_to_one() -> None:
    names = ["critical", "high", "normal", "low", "background"]
    assert [priority_of(lane) for lane in Lane] == names
    assert [lane_of(name) for name in names] == list(Lane)  # type: ignore[arg-type]  # all of them
    assert lane_of(None) is Lane.NORMAL
    with pytest.raises(Invalid, match="critical, high, normal, low, background, not 'urgent'"):
        lane_of("urgent")  # type: ignore[arg-type]  # that is the point


def test_an_empty_key_is_none() -> None:
    stored = to_store("v", key="", headers={"h": "x"}, partition=3, priority="low")

    assert (stored.key, stored.value, stored.headers) == (None, b"v", (("h", b"x"),))
    assert (stored.partition, stored.lane) == (3, Lane.LOW)


def message(value: bytes | None, **headers: bytes | None) -> Message:
    return Message("t", 0, 0, AT, None, value, tuple(headers.items()), "normal")


def test_a_message_is_read_as_text_and_as_json() -> None:
    assert (message("grüße".encode()).text, message(None).text) == ("grüße", "")
    assert (message(b'{"a": 1}').json(), message(None).json(), message(b"").json()) == ({"a": 1}, None, None)
    with pytest.raises(msgspec.DecodeError):
        message(b"{").json()


def test_the_last_header_of_a_name_counts() -> None:
    found = Message("t", 0, 0, AT, None, None, (("a", b"1"), ("b", b"2"), ("a", b"3"), ("c", None)), "normal")

    assert [found.header(name) for name in ("a", "b", "c", "d")] == [b"3", b"2", None, None]


@pytest.mark.parametrize(
    ("outgoing", "told"),
    [
        (Outgoing(None), {"value": None}),
        (Outgoing("a", ""), {"value": "a"}),
        (Outgoing("a", "k"), {"value": "a", "key": "k"}),
        # One that is no text makes base64 of both.
        (Outgoing("a", b"\xff"), {"value": "YQ==", "key": "/w==", "encoding": "base64"}),
        (Outgoing(b"\xff"), {"value": "/w==", "encoding": "base64"}),
        (Outgoing(None, b"\xff"), {"value": None, "key": "/w==", "encoding": "base64"}),
        (Outgoing("a", headers={"h": None}), {"value": "a", "headers": {"h": None}}),
        (
            Outgoing("a", headers=[("h", "1"), ("h", "2")]),
            {
                "value": "a",
                "header_list": [
                    {"name": "h", "value": "MQ==", "encoding": "base64"},
                    {"name": "h", "value": "Mg==", "encoding": "base64"},
                ],
            },
        ),
        (
            Outgoing("a", headers=[("h", b"\xff"), ("n", None)]),
            {
                "value": "a",
                "header_list": [
                    {"name": "h", "value": "/w==", "encoding": "base64"},
                    {"name": "n", "value": None, "encoding": "base64"},
                ],
            },
        ),
        (
            Outgoing("a", partition=0, priority="low", delay=0, deliver_at=AT, ttl=1),
            {
                "value": "a",
                "partition": 0,
                "priority": "low",
                "delay": "0ms",
                "deliverAt": AT.isoformat(),
                "ttl": "1000ms",
            },
        ),
    ],
)
def test_a_message_goes_as_text_where_all_of_it_is(outgoing: Outgoing, told: dict[str, object]) -> None:
    assert on_wire(outgoing) == told


def test_a_message_that_does_not_tell_its_topic_is_of_the_one_that_was_asked_for() -> None:
    told = MessageOnWire(5, AT, "YQ==", "low", key="aw==", encoding="base64")
    assert told.opened("t", 3) == Message("t", 3, 5, AT, b"k", b"a", (), "low")

    own = MessageOnWire(5, AT, "a", "low", topic="u", partition=0)
    assert (own.opened("t", 3).topic, own.opened("t", 3).partition) == ("u", 0)


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        ({"partition": 0, "offset": 5}, Placed(0, 5)),
        (
            {"partition": 0, "offset": 5, "priority": "high", "delayed": True, "deliverAt": AT},
            Placed(0, 5, "high", True, AT),
        ),
        (
            {"partition": 0, "offset": -1, "quarantined": "t.q", "reason": "no"},
            Placed(0, -1, quarantined="t.q", reason="no"),
        ),
    ],
)
def test_what_became_of_a_message_is_told_whole(told: dict[str, object], outcome: Placed) -> None:
    assert msgspec.convert(told, ResultOnWire).outcome() == outcome


def test_a_message_that_was_refused_by_itself_is_a_refusal() -> None:
    told = ResultOnWire(partition=-1, offset=-1, error="too large", code="message_too_large")
    outcome = told.outcome()

    assert isinstance(outcome, RefusedInvalid)
    assert (str(outcome), outcome.code, outcome.status) == ("too large", "message_too_large", 400)


def test_what_is_none_is_left_out_and_what_is_nought_is_not() -> None:
    assert body_of(a=None, b=0, c=False, d="") == b'{"b":0,"c":false,"d":""}'
    assert query_of(a=None, b=0, c="") == {"b": 0, "c": ""}
    assert path("topics", 0, "ü/%") == "/topics/0/%C3%BC%2F%25"


def bookmark(*, offset: int = 0, at: datetime | None = None, follow: bool = False) -> Bookmark:
    return Bookmark(topic="t", partition=1, offset=offset, at=at, follow=follow, limit=2)


@pytest.mark.parametrize(
    ("mark", "page", "has_more"),
    [
        (bookmark(), Page([message(b"a")], 1), True),
        (bookmark(offset=5), Page([], 5), False),
        # What was there belonged to transactions that were undone.
        (bookmark(offset=5), Page([], 9), True),
        (bookmark(offset=5, at=AT), Page([], 5), True),
        (bookmark(offset=5, follow=True), Page([], 5), True),
    ],
)
def test_a_reader_goes_on_while_there_may_be_more(mark: Bookmark, page: Page, has_more: bool) -> None:
    assert mark.turn(page) is has_more
    assert (mark.offset, mark.at) == (page.next_offset, None)


def test_a_reader_asks_where_it_is_and_waits_if_it_follows() -> None:
    assert bookmark(offset=3).next_page().query == {"offset": 3, "limit": 2}
    assert bookmark(at=AT).next_page().query == {"limit": 2, "from_time": AT.isoformat()}
    following = bookmark(offset=3, follow=True).next_page()
    assert following.query["wait"] == f"{int(FOLLOW_WAIT_S * 1_000)}ms"


def two_steps(seen: list[object]) -> Steps[str]:
    try:
        yield from ask(Call(method="GET", path="/a", decode=lambda reply: None))
    except RefusedNotFound as refused:
        seen.append(refused)
    seen.append((yield from ask(Call(method="GET", path="/b", decode=lambda reply: reply.body))))
    return "done"


class Carries:
    """Gives each call its path, and refuses the first."""

    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    def carry(self, call: Call[object]) -> object:
        if call.path == "/a":
            raise self._problem
        return call.path


class AsyncCarries(Carries):
    async def carry(self, call: Call[object]) -> object:
        return Carries.carry(self, call)


def test_steps_have_an_answer_to_what_a_call_may_raise_in_both_forms() -> None:
    refused = refusal(404, b"", None)
    for form in ("plain", "awaited"):
        seen: list[object] = []
        if form == "plain":
            found = take(two_steps(seen), Carries(refused))  # type: ignore[arg-type]  # scripted
        else:
            found = asyncio.run(take_async(two_steps(seen), AsyncCarries(refused)))  # type: ignore[arg-type]  # so is this
        assert (found, seen) == ("done", [refused, "/b"])


@pytest.mark.parametrize("problem", [refusal(403, b"", None), KeyError("a bug")])
def test_what_steps_have_no_answer_to_goes_to_the_caller(problem: Exception) -> None:
    with pytest.raises(type(problem)):
        take(two_steps([]), Carries(problem))  # type: ignore[arg-type]  # scripted
    with pytest.raises(type(problem)):
        asyncio.run(take_async(two_steps([]), AsyncCarries(problem)))  # type: ignore[arg-type]  # scripted


def noun_methods() -> list[tuple[str, str, object, object]]:
    """Class, method, and what both forms are made from."""
    kinds = [kind for kind in vars(nouns_module).values() if inspect.isclass(kind)]
    plain = [kind for kind in kinds if issubclass(kind, Noun) and kind is not Noun]
    return [
        (kind.__name__, name, member.__wrapped__, getattr(other, name).__wrapped__)
        for kind in plain
        for other in [getattr(nouns_module, f"Async{kind.__name__}")]
        for name, member in vars(kind).items()
        if hasattr(member, "__wrapped__")
    ]


@pytest.mark.parametrize(("kind", "name", "make", "awaited"), noun_methods())
def test_a_method_carries_the_call_of_its_own_name_in_both_forms(
    kind: str, name: str, make: object, awaited: object
) -> None:
    assert inspect.isfunction(make)
    assert make is awaited
    assert make.__name__ == name or make.__name__.startswith(f"{name}_")
    assert make.__module__.rpartition(".")[2] in (kind.lower(), "dead_letters", "log")


def test_nouns_are_complete() -> None:
    told = {kind for kind, *_ in noun_methods()}
    there = {name.removeprefix("Async") for name in vars(nouns_module) if name.startswith("Async")}

    assert there - {"Carrier", "Noun"} == told
    assert len(noun_methods()) > 60
    assert all(issubclass(getattr(nouns_module, f"Async{kind}"), AsyncNoun) for kind in told)


def test_help_shows_a_method_as_if_somebody_had_written_it() -> None:
    for queue in (GoQueue, AsyncGoQueue):
        shown = inspect.signature(queue.publish)
        assert list(shown.parameters)[:3] == ["noun", "topic", "value"]
        assert shown.return_annotation is Placed
        assert queue.publish.__name__ == "publish"
        assert "Publish a message" in (queue.publish.__doc__ or "")
        produced = inspect.signature(queue.producer)
        assert list(produced.parameters)[1:] == list(inspect.signature(ProducerSettings).parameters)
        assert "Producer" in str(produced.return_annotation)
        assert "Consumer" in str(inspect.signature(queue.consumer).return_annotation)


def test_a_transaction_gives_the_speaker_by_itself() -> None:
    for kind in (Transaction, AsyncTransaction):
        assert list(inspect.signature(kind.publish).parameters)[:3] == ["self", "topic", "value"]
        assert list(inspect.signature(kind.offsets).parameters) == ["self", "group", "offsets"]


def test_both_queues_try_for_half_a_minute_if_nobody_says_otherwise() -> None:
    for queue in (GoQueue, AsyncGoQueue):
        options = inspect.signature(queue).parameters
        assert {name: options[name].default for name in ("timeout_s", "retry_for_s", "api_key")} == {
            "timeout_s": 30.0,
            "retry_for_s": 30.0,
            "api_key": None,
        }


def test_a_child_knows_that_it_was_forked_and_its_parent_that_it_was_not() -> None:
    before = fork_count()
    child = os.fork()
    if not child:
        os._exit(0 if fork_count() == before + 1 else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert fork_count() == before


def test_a_reader_of_whole_logs_asks_with_the_client_that_it_has() -> None:
    window = {name: str(number) for number, name in enumerate(WINDOW)}
    script = by_path(
        offsets=said({"topics": {"t": {"0": {"start": 1, "end": 5, "size_bytes": 9}}}}),
        at=said({"topics": {"t": {"0": 3}}}),
        splits=said({"offsets": [0, 4, 9]}),
        frames=said(b"frames", headers=window),
    )
    with scripted(script) as node:
        client = Client([node.address])
        found = extents(client, Which(topics=("t",)), past={"t": {"0": 4}}, wait_ms=70)
        assert (found["t"]["0"].start, found["t"]["0"].end) == (1, 5)
        assert offsets_at(client, ["t"], time_ms=5) == {"t": {"0": 3}}
        assert splits(client, "t", 0, first_offset=0, end_offset=9, split_bytes=4) == [0, 4, 9]
        assert frames(client, "t", 0, offset=2, max_bytes=8) == (b"frames", 0, 1, 2)
        extents(client, Which(topics=("t",)), past={"t": {"0": 4}})
        client.close()

        asked = node.asked
        assert asked[4].json == {"topics": ["t"]}  # who does not wait need not say for what
        assert asked[0].json == {"topics": ["t"], "past": {"t": {"0": 4}}, "wait": "70ms"}
        assert asked[2].query == {"from": "0", "until": "9", "bytes": "4"}
        assert asked[3].query == {"offset": "2", "max_bytes": "8"}


WINDOW = (log_calls.NEXT_OFFSET, log_calls.START_OFFSET, log_calls.END_OFFSET)


def test_a_plain_request_gives_the_reply_as_it_came() -> None:
    with answering(said(b"\0\1", headers={"x-a": "b"})) as node:
        client = Client([node.address])
        reply = client.request("GET", "/")
        client.close()

    assert isinstance(reply, Reply)
    assert (reply.status, reply.body, reply.headers["X-A"]) == (200, b"\0\1", "b")
