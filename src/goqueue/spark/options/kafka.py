"""Every option of Spark's Kafka connector: honoured under its own name, or refused with the name of ours."""

from collections.abc import Mapping
from typing import NamedTuple


class KafkaOption(NamedTuple):
    """What becomes of one option."""

    name: str
    ours: str
    """The option of ours that does the same; empty where there is none."""
    is_honoured: bool
    note: str = ""


KAFKA_OPTIONS = (
    KafkaOption("kafka.bootstrap.servers", "bootstrap", False, "addresses of the HTTP door, not of Kafka's"),
    KafkaOption("subscribe", "topics", True),
    KafkaOption("subscribePattern", "topicPattern", True),
    KafkaOption("assign", "assign", True),
    KafkaOption("topic", "topic", True),
    KafkaOption("startingOffsets", "startingOffsets", True),
    KafkaOption("endingOffsets", "endingOffsets", True),
    KafkaOption("startingTimestamp", "startingTimestamp", True),
    KafkaOption("endingTimestamp", "endingTimestamp", True),
    KafkaOption("startingOffsetsByTimestamp", "startingOffsetsByTimestamp", True),
    KafkaOption("endingOffsetsByTimestamp", "endingOffsetsByTimestamp", True),
    KafkaOption(
        "startingOffsetsByTimestampStrategy",
        "startingOffsetsByTimestampStrategy",
        True,
        "only `latest`: a partition with nothing that new is read from its end",
    ),
    KafkaOption("failOnDataLoss", "failOnDataLoss", True),
    KafkaOption("minPartitions", "minPartitions", True),
    KafkaOption("maxRecordsPerPartition", "splitBytes", False, "tasks are cut by size"),
    KafkaOption("maxOffsetsPerTrigger", "maxRecordsPerBatch", True),
    KafkaOption("minOffsetsPerTrigger", "", False, "choose a trigger with a longer processingTime"),
    KafkaOption("maxTriggerDelay", "", False, "choose a trigger with a longer processingTime"),
    KafkaOption("includeHeaders", "includeHeaders", True, "here the default is true"),
    KafkaOption("kafkaConsumer.pollTimeoutMs", "timeoutMs", False),
    KafkaOption("fetchOffset.numRetries", "retryForMs", False),
    KafkaOption("fetchOffset.retryIntervalMs", "retryForMs", False),
    KafkaOption("groupIdPrefix", "group", False),
    KafkaOption("kafka.group.id", "group", False),
    KafkaOption("kafka.client.rack", "rack", True),
    KafkaOption("kafka.isolation.level", "isolation", False, "only what is committed is read"),
)
_BY_NAME = {option.name.lower(): option for option in KAFKA_OPTIONS}


def take_kafka_options(given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The options under our names, in lower case, and what is wrong with those that are refused."""
    taken: dict[str, str] = {}
    problems = []
    for name, value in given.items():
        option = _BY_NAME.get(name.lower())
        if option is not None and option.is_honoured:
            if taken.setdefault(option.ours.lower(), value) != value:
                problems.append(f"{option.ours} is given twice, with different values")
        elif option is not None:
            problems.append(_refusal(option))
        elif name.lower().startswith("kafka."):
            problems.append(
                f"{name} is a setting of Kafka's client, which is not used here: "
                "the source talks to the HTTP door at `bootstrap`"
            )
        else:
            taken[name.lower()] = value
    return taken, problems


def _refusal(option: KafkaOption) -> str:
    instead = f"use {option.ours}" if option.ours else "it has no counterpart"
    return f"{option.name} is an option of Spark's Kafka connector; here {instead}" + (
        f" ({option.note})" if option.note else ""
    )
