"""The recipes of docs/spark.md do what they say."""

import json
import time
from pathlib import Path
from types import ModuleType

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from examples.spark import backfill, dead_letter_triage, on_a_cluster, topic_to_iceberg, upsert
from tests.integration.clients import create_topic, read_all
from tests.integration.running_broker import RunningBroker
from tests.integration.spark.published import Publisher

DOCS = (Path(__file__).parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")
RECIPES = [topic_to_iceberg, dead_letter_triage, backfill, upsert, on_a_cluster]
_TIMEOUT_S = 120


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_the_docs_name_every_recipe(recipe: ModuleType) -> None:
    assert f"(../{recipe.__name__.replace('.', '/')}.py)" in DOCS


def test_a_topic_becomes_an_iceberg_table(
    spark: SparkSession, shared_broker: RunningBroker, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "recipe-orders", partitions=2)
    publisher = Publisher(shared_broker.kafka, "recipe-orders")
    for number in range(20):
        order = {"id": number, "customer": f"c{number % 3}", "total": number * 1.5}
        publisher.publish(json.dumps(order).encode(), partition=number % 2)
    publisher.flush()

    writer = topic_to_iceberg.topic_to_iceberg(
        spark,
        bootstrap=shared_broker.http,
        topic="recipe-orders",
        warehouse=tmp_path,
        table="lake.orders",
    )

    assert writer.trigger(availableNow=True).start().awaitTermination(_TIMEOUT_S)
    table = spark.read.format("goqueue-lake").options(path=str(tmp_path), table="lake.orders").load()
    rows = [(row.id, row.total) for row in table.orderBy("id").collect()]
    assert rows == [(number, number * 1.5) for number in range(20)]


def test_dead_letters_are_counted_by_cause_and_some_are_sent_back_once(
    spark: SparkSession, shared_broker: RunningBroker
) -> None:
    for topic in ("recipe-mail", "recipe-mail.dlq"):
        create_topic(shared_broker.kafka, topic, partitions=1)
    publisher = Publisher(shared_broker.kafka, "recipe-mail.dlq")
    for number in range(9):
        story = [
            ("goqueue-dlq-reason", b"rejected"),
            ("goqueue-dlq-error", b"timeout" if number % 3 else b"bad"),
        ]
        publisher.publish(str(number).encode(), headers=[("lang", b"en"), *story])
    publisher.flush()

    letters = dead_letter_triage.dead_letters(spark, bootstrap=shared_broker.http, topic="recipe-mail")
    found = [(row.error, row.letters) for row in dead_letter_triage.causes(letters).collect()]
    for _ in range(2):
        dead_letter_triage.redrive(
            letters,
            bootstrap=shared_broker.http,
            topic="recipe-mail",
            where="error = 'timeout'",
            write_id="recipe-mail-1",
        )

    assert found == [("timeout", 6), ("bad", 3)]
    back = spark.read.format("goqueue").options(bootstrap=shared_broker.http, topic="recipe-mail").load()
    rows = sorted((int(bytes(row.value)), [header.key for header in row.headers]) for row in back.collect())
    assert rows == [(number, ["lang"]) for number in (1, 2, 4, 5, 7, 8)]


def test_a_backfill_that_is_run_twice_is_there_once(
    spark: SparkSession, shared_broker: RunningBroker
) -> None:
    for topic in ("recipe-raw", "recipe-long"):
        create_topic(shared_broker.kafka, topic, partitions=1)
    publisher = Publisher(shared_broker.kafka, "recipe-raw")
    # An hour ago: what is older than a week is deleted.
    first_ms = time.time_ns() // 1_000_000 - 3_600_000
    for number in range(100):
        publisher.publish(str(number).encode(), timestamp_ms=first_ms + number * 1_000)
    publisher.flush()

    for _ in range(2):
        backfill.backfill(
            spark,
            bootstrap=shared_broker.http,
            source="recipe-raw",
            target="recipe-long",
            starting=str(first_ms + 5_000),
            ending=str(first_ms + 20_000),
            sql="SELECT key, value FROM source WHERE length(value) > 1",
        )

    found = read_all(shared_broker.kafka, "recipe-long", partitions=1)[0]
    assert sorted(map(int, found)) == list(range(10, 20))


def test_a_table_of_changes_holds_the_newest_value_of_each_key(
    spark: SparkSession, shared_broker: RunningBroker, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "recipe-changes", partitions=1)
    publisher = Publisher(shared_broker.kafka, "recipe-changes")
    table = tmp_path / "customers"

    def run(*changes: tuple[bytes, bytes | None]) -> dict[str, str]:
        for key, value in changes:
            publisher.publish(value, key=key)
        publisher.flush()
        writer = upsert.upsert(spark, bootstrap=shared_broker.http, topic="recipe-changes", table=table)
        assert writer.trigger(availableNow=True).start().awaitTermination(_TIMEOUT_S)
        rows = DeltaTable(table).to_pyarrow_table().to_pylist()
        return {row["key"]: row["value"] for row in rows}

    first = run((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", None))
    second = run((b"b", None), (b"a", b"3"), (b"d", b"1"))

    assert first == {"a": "2", "b": "1"}
    assert second == {"a": "3", "d": "1"}
