"""Messages on the wire and off it, and errors by their families: plain values in, plain values out."""

import inspect
import pickle
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goqueue.client
from goqueue.client import AsyncGoQueue, Conflict, GoQueue, Outgoing, Refused
from goqueue.client import nouns as nouns_module
from goqueue.client.call import Reply, path
from goqueue.client.calls import messages, queue
from goqueue.client.errors import kind_of, refusal
from goqueue.client.nouns import AsyncNoun, Noun
from goqueue.client.times import duration_text, milliseconds, time_text
from goqueue.client.wire import MessageOnWire, on_wire
from goqueue.edge.http.messages.publishing import message_of
from goqueue.edge.http.messages.reading import message_shown
from goqueue.edge.http.parts.bodies import MessageBody
from goqueue.model.errors import Busy, Fenced, Invalid, NotFound, TopicExists, UnknownMember
from goqueue.model.messages import Lane, StoredMessage

ANY_HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=4)


@settings(max_examples=60, deadline=None)
@given(value=st.none() | st.binary(max_size=20), key=st.none() | st.binary(min_size=1), headers=ANY_HEADERS)
def test_whatever_is_published_is_what_the_door_stores_and_what_is_read(
    value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    body = msgspec.json.encode(on_wire(Outgoing(value, key, headers)))
    stored = message_of(msgspec.json.decode(body, type=MessageBody), False, 0)
    assert (stored.value, stored.key, stored.headers) == (value, key, tuple(headers))

    found = StoredMessage(0, 0, stored.key, stored.value, stored.headers, Lane.HIGH)
    shown = msgspec.json.encode(message_shown(found, as_base64=False))
    read = msgspec.json.decode(shown, type=MessageOnWire).opened("t", 3)
    assert (read.value, read.key, read.headers) == (value, key, tuple(headers))
    assert (read.topic, read.partition, read.priority) == ("t", 3, "high")


def test_durations_and_times_are_told_as_the_door_reads_them() -> None:
    assert (milliseconds(0.0001), milliseconds(1.5), milliseconds(timedelta(minutes=1))) == (1, 1_500, 60_000)
    assert (duration_text(None), duration_text(2)) == (None, "2000ms")
    assert time_text(datetime(2030, 1, 2, 3, tzinfo=UTC)) == "2030-01-02T03:00:00+00:00"
    with pytest.raises(Invalid):
        time_text(datetime(2030, 1, 2))


def test_names_may_hold_anything() -> None:
    assert path("groups", "a/b c", "poll") == "/groups/a%2Fb%20c/poll"


@pytest.mark.parametrize("duration", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_duration_is_refused(duration: float) -> None:
    with pytest.raises(Invalid, match="no duration"):
        milliseconds(duration)


def test_an_empty_name_is_refused_because_it_would_be_another_path() -> None:
    with pytest.raises(Invalid, match="empty"):
        path("topics", "")


def test_a_node_is_given_time_for_what_it_is_asked_to_wait() -> None:
    poll = queue.poll("g", "m", wait=2, visibility=timedelta(seconds=30))
    assert poll.target == "/groups/g/poll?member_id=m&timeout=2000ms&visibility_timeout=30000ms"
    assert poll.wait_ms == 2_000
    assert messages.read_page("t", at=datetime(2030, 1, 1, tzinfo=UTC)).query == {
        "from_time": "2030-01-01T00:00:00+00:00"
    }


def test_the_only_message_that_does_not_fit_stands_in_its_place_as_one_among_many_does() -> None:
    call = messages.publish_many("orders", [Outgoing("x")])
    result = b'{"partition":-1,"offset":-1,"error":"value: no","code":"schema_mismatch"}'
    told = b'{"error":"value: no","status":400,"code":"schema_mismatch","results":[' + result + b"]}"

    [outcome] = call.read(Reply(400, {}, told))

    assert isinstance(outcome, Refused) and outcome.code == "schema_mismatch"
    with pytest.raises(Refused, match="acks is none"):
        call.read(Reply(400, {}, b'{"error":"acks is none, leader or all","status":400,"code":"invalid"}'))


def test_a_refusal_is_of_the_family_that_its_code_has_in_the_house() -> None:
    assert issubclass(kind_of(TopicExists.code, 409), Conflict)
    assert issubclass(kind_of(UnknownMember.code, 404), Fenced)
    assert issubclass(kind_of("of another", 404), NotFound)
    assert kind_of("of another", 500) is Refused


def test_a_refusal_tells_when_to_come_again_and_can_be_sent_to_another_process() -> None:
    refused = refusal(429, b'{"error": "later", "code": "busy"}', "3")
    copy = pickle.loads(pickle.dumps(refused))

    assert isinstance(refused, Busy)
    assert type(copy) is type(refused)
    assert (str(copy), copy.code, copy.status, copy.retry_after_s) == ("later", "busy", 429, 3.0)


def test_both_forms_have_the_same_names_and_take_the_same_arguments() -> None:
    nouns = [kind for kind in vars(nouns_module).values() if inspect.isclass(kind)]
    plain = {kind.__name__: kind for kind in nouns if issubclass(kind, Noun) and kind is not Noun}
    awaited = {kind.__name__: kind for kind in nouns if issubclass(kind, AsyncNoun) and kind is not AsyncNoun}
    assert {f"Async{name}" for name in plain} == set(awaited)
    pairs: list[tuple[type, type]] = [(kind, awaited[f"Async{name}"]) for name, kind in plain.items()]
    pairs += [
        (goqueue.client.Consumer, goqueue.client.AsyncConsumer),
        (goqueue.client.Producer, goqueue.client.AsyncProducer),
        (goqueue.client.Transaction, goqueue.client.AsyncTransaction),
        (goqueue.client.Delivered, goqueue.client.AsyncDelivered),
        (GoQueue, AsyncGoQueue),
    ]
    for one, other in pairs:
        assert _methods(one) == _methods(other)
    assert set(vars(GoQueue())) - {"_pool"} == set(vars(AsyncGoQueue())) - {"_client"}


def test_every_name_of_the_package_is_there_and_has_a_page_of_its_own_words() -> None:
    for name in dir(goqueue.client):
        assert getattr(goqueue.client, name).__doc__
    with pytest.raises(AttributeError):
        _ = goqueue.client.nothing


def _methods(kind: type) -> dict[str, list[str]]:
    """Public names and what they take."""
    found = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
    return {
        name: list(inspect.signature(member).parameters)
        for name, member in found.items()
        if inspect.isfunction(member)
    }
