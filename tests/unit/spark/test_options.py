"""Options of the source: what is taken, what is refused, and that the docs name every one."""

from pathlib import Path

import pytest

from goqueue.client.addresses import Address
from goqueue.model.errors import Invalid
from goqueue.spark.options.kafka import KAFKA_OPTIONS, KafkaOption
from goqueue.spark.source.options import OPTIONS, SourceOptions, column_names, source_options

DOCS = (Path(__file__).parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")
HONOURED = [option for option in KAFKA_OPTIONS if option.is_honoured]
REFUSED = [option for option in KAFKA_OPTIONS if not option.is_honoured]
VALUES = {
    "assign": '{"orders": [0]}',
    "startingOffsets": '{"orders": {"0": 5}}',
    "endingOffsets": '{"orders": {"0": 9}}',
    "startingTimestamp": "1700000000000",
    "endingTimestamp": "1700000000000",
    "startingOffsetsByTimestamp": '{"orders": {"0": 1700000000000}}',
    "endingOffsetsByTimestamp": '{"orders": {"0": 1700000000000}}',
    "startingOffsetsByTimestampStrategy": "latest",
    "failOnDataLoss": "false",
    "minPartitions": "4",
    "maxOffsetsPerTrigger": "100",
    "includeHeaders": "false",
}


def batch(**options: str) -> SourceOptions:
    return source_options({"bootstrap": "127.0.0.1:8080", "topic": "orders", **options}, is_streaming=False)


def stream(**options: str) -> SourceOptions:
    return source_options({"bootstrap": "127.0.0.1:8080", "topic": "orders", **options}, is_streaming=True)


def test_a_batch_reads_everything_and_a_stream_what_is_new() -> None:
    assert (batch().starting.word, batch().ending.word) == ("earliest", "latest")
    assert stream().starting.word == "latest"


def test_names_of_options_do_not_mind_case() -> None:
    taken = source_options({"BOOTSTRAP": "a:1", "TOPICS": "b, a,b", "splitbytes": "1k"}, is_streaming=False)

    assert taken.addresses == (Address("a", 1),)
    assert taken.which.topics == ("a", "b")
    assert taken.split_bytes == 1024


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(Invalid) as refused:
        source_options(
            {"topics": "a", "topic": "b", "minPartitions": "x", "spliBytes": "1"}, is_streaming=False
        )

    told = str(refused.value)
    assert "bootstrap is missing" in told
    assert "not by topic and topics" in told
    assert "minPartitions: 'x' is not a whole number above 0" in told
    assert "there is no option splibytes; did you mean splitBytes?" in told


@pytest.mark.parametrize("option", HONOURED, ids=lambda option: option.name)
def test_an_option_of_the_kafka_connector_that_is_honoured_means_the_same(option: KafkaOption) -> None:
    given = {"bootstrap": "127.0.0.1:8080", option.name: VALUES.get(option.name, "orders")}
    if option.ours not in ("topic", "topics", "topicPattern", "assign"):
        given["topic"] = "orders"
    as_ours = {option.ours if name == option.name else name: value for name, value in given.items()}
    is_streaming = option.ours == "maxRecordsPerBatch"

    taken = source_options(given, is_streaming=is_streaming)

    assert taken == source_options(as_ours, is_streaming=is_streaming)
    plain = {"bootstrap": "127.0.0.1:8080", "topic": "orders"}
    without_effect = ("topic", "topics", "includeHeaders", "startingOffsetsByTimestampStrategy")
    assert option.ours in without_effect or taken != source_options(plain, is_streaming=is_streaming)


@pytest.mark.parametrize("option", REFUSED, ids=lambda option: option.name)
def test_an_option_of_the_kafka_connector_that_is_refused_names_ours(option: KafkaOption) -> None:
    with pytest.raises(Invalid) as refused:
        stream(**{option.name: "1"})

    assert option.name in str(refused.value)
    assert option.ours in str(refused.value)
    assert not option.ours or option.ours in OPTIONS


def test_settings_of_a_kafka_client_are_refused() -> None:
    with pytest.raises(Invalid, match=r"kafka\.security\.protocol is a setting of Kafka's client"):
        stream(**{"kafka.security.protocol": "SSL"})


def test_two_names_for_one_option_must_agree() -> None:
    with pytest.raises(Invalid, match="maxRecordsPerBatch is given twice"):
        stream(maxRecordsPerBatch="1", maxOffsetsPerTrigger="2")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("group", "workers", "group is for streams only"),
        ("transport", "files", "transport=files and dataPath, the node's data folder, go together"),
        ("dataPath", "/data", "transport=files and dataPath, the node's data folder, go together"),
        ("isolation", "uncommitted", "not one of committed"),
        ("startingOffsetsByTimestampStrategy", "error", "not one of latest"),
        ("endingOffsets", "earliest", "not one of latest"),
        ("startingOffsets", '{"orders": 5}', "is not JSON like"),
        ("startingTimestamp", "yesterday", "neither unix milliseconds nor a time"),
        ("maxRecordsPerBatch", "5", "is for streams only"),
        ("bootstrap", "https://a", "is not an address like"),
        ("splitBytes", "0", "is not a size"),
        ("pushdown", "yes", "neither true nor false"),
    ],
)
def test_a_value_that_cannot_be_served_is_refused_with_a_reason(name: str, value: str, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        batch(**{name: value})


def test_a_stream_has_no_end() -> None:
    with pytest.raises(Invalid, match="endingOffsets is for batch reads only"):
        stream(endingOffsets="latest")


def test_a_position_is_given_in_one_way() -> None:
    with pytest.raises(Invalid, match="only one of startingTimestamp, startingOffsetsByTimestamp"):
        batch(startingOffsets="earliest", startingTimestamp="0")


def test_times_may_be_written_for_people() -> None:
    edge = batch(startingTimestamp="2023-11-14T22:13:20Z").starting

    assert edge.time_ms == 1_700_000_000_000


def test_columns_are_chosen_by_name_and_headers_may_be_left_out() -> None:
    assert column_names({"columns": "key, value"}) == ("key", "value")
    assert "headers" not in column_names({"includeHeaders": "false"})
    assert "traceparent" not in column_names({})


@pytest.mark.parametrize("name", OPTIONS)
def test_the_docs_say_what_an_option_is_for(name: str) -> None:
    assert f"| `{name}` | {OPTIONS[name]} |" in DOCS


@pytest.mark.parametrize("option", KAFKA_OPTIONS, ids=lambda option: option.name)
def test_the_docs_say_what_becomes_of_an_option_of_the_kafka_connector(option: KafkaOption) -> None:
    verdict = "honoured" if option.is_honoured else "refused"
    ours = f"`{option.ours}`" if option.ours else "none"

    assert f"| `{option.name}` | {verdict} | {ours} | {option.note} |" in DOCS
