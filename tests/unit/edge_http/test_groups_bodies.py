"""What requests about groups ask for, whichever of their spellings they use."""

import pytest

from goqueue.edge.http.groups.bodies import JoinBody, OffsetBody, ResetOffsetsBody
from goqueue.edge.http.groups.offsets import reset_of
from goqueue.edge.http.groups.routes import join_of, state_word
from goqueue.model.commands import Spot
from goqueue.model.errors import Invalid
from goqueue.model.groups import GroupState, Sharing
from goqueue.model.ids import TopicName, TopicPartition

ORDERS_0 = TopicPartition(TopicName("orders"), 0)


@pytest.mark.parametrize(
    ("given", "timeout_ms"), [(None, 30_000), ("45s", 45_000), ("1m30s", 90_000), (10_000, 10_000)]
)
def test_a_session_lasts_as_long_as_asked_in_words_or_in_milliseconds(
    given: str | int | None, timeout_ms: int
) -> None:
    command = join_of("readers", JoinBody("c", ["orders"], session_timeout=given), "10.0.0.1")

    assert command.session_timeout_ms == timeout_ms
    assert (command.client_host, command.sharing, command.assignor) == ("10.0.0.1", Sharing.EAGER, "sticky")


def test_the_path_goes_before_the_mode_in_the_body() -> None:
    body = JoinBody("c", ["orders"], mode="shared", key_order=True)

    assert join_of("readers", body, "").sharing is Sharing.SHARED
    assert join_of("readers", body, "", Sharing.COOPERATIVE).sharing is Sharing.COOPERATIVE


@pytest.mark.parametrize(
    ("body", "spot"),
    [
        (ResetOffsetsBody(to="earliest"), Spot.EARLIEST),
        (ResetOffsetsBody(strategy="latest"), Spot.LATEST),
        (ResetOffsetsBody(to="1970-01-01T00:00:01Z"), 1_000),
        (ResetOffsetsBody(to="1000"), 1_000),
        (ResetOffsetsBody(to=1_000), 1_000),
        (ResetOffsetsBody(strategy="timestamp", timestamp=1_000), 1_000),
    ],
)
def test_a_reset_goes_to_a_spot_or_a_time(body: ResetOffsetsBody, spot: Spot | int) -> None:
    command = reset_of("readers", body)

    assert (command.spot, command.offsets, command.topics) == (spot, {}, None)


def test_a_reset_goes_to_offsets_in_either_shape() -> None:
    by_map = reset_of("readers", ResetOffsetsBody(to={"orders": {"0": 7}}))
    one_by_one = reset_of("readers", ResetOffsetsBody(to=[OffsetBody("orders", 0, 7)]))

    assert by_map.offsets == one_by_one.offsets == {ORDERS_0: 7}


def test_one_topic_and_one_partition_can_be_named_as_the_command_line_does() -> None:
    one = reset_of("readers", ResetOffsetsBody(strategy="latest", topic="orders", partition=2))
    every = reset_of("readers", ResetOffsetsBody(strategy="latest", topic="orders", partition=-1))

    assert (one.topics, one.partition) == (["orders"], 2)
    assert (every.topics, every.partition) == (["orders"], None)


@pytest.mark.parametrize(
    "body",
    [
        ResetOffsetsBody(),
        ResetOffsetsBody(strategy="timestamp"),
        ResetOffsetsBody(to="sometime"),
        ResetOffsetsBody(to=[]),
        ResetOffsetsBody(to={"orders": {"-1": 0}}),
    ],
)
def test_a_reset_that_does_not_say_where_to_is_refused(body: ResetOffsetsBody) -> None:
    with pytest.raises(Invalid):
        reset_of("readers", body)


def test_every_state_has_a_word_that_clients_know() -> None:
    assert {state_word(state) for state in GroupState} == {"empty", "stable", "rebalancing", "dead"}
