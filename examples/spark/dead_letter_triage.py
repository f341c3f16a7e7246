"""Dead letters: what they died of, and some of them sent back.

    python -m examples.spark.dead_letter_triage --topic orders
    python -m examples.spark.dead_letter_triage --topic orders --redrive "error LIKE 'timeout%'"

Dead letters of a topic lie in `{topic}.dlq`, with their story in headers that begin with `goqueue-dlq-`.
"""

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr

import goqueue.spark

STORY = "goqueue-dlq-"
FACTS = ("reason", "error", "group", "attempts")


def dead_letters(spark: SparkSession, *, bootstrap: str, topic: str) -> DataFrame:
    """The dead letters of a topic, with the facts of their story as columns."""
    letters = spark.read.format("goqueue").options(bootstrap=bootstrap, topic=f"{topic}.dlq").load()
    facts = {
        fact: expr(f"CAST(try_element_at(filter(headers, h -> h.key = '{STORY}{fact}'), -1).value AS STRING)")
        for fact in FACTS
    }
    return letters.withColumns(facts)


def causes(letters: DataFrame) -> DataFrame:
    """How many died of what, and since when."""
    counts = letters.groupBy("reason", "error").agg(
        expr("count(*) AS letters"), expr("min(timestamp) AS first")
    )
    return counts.orderBy(col("letters").desc())


def redrive(letters: DataFrame, *, bootstrap: str, topic: str, where: str, write_id: str) -> None:
    """Send those that fit a condition back to their topic, without the story.

    All of them appear at once or not at all, and never twice: a write of that name is done once.
    """
    own_headers = expr(f"filter(headers, h -> NOT startswith(h.key, '{STORY}')) AS headers")
    rows = letters.where(where).select("key", "value", own_headers, "priority")
    rows.write.format("goqueue").mode("append").options(
        bootstrap=bootstrap, topic=topic, writeId=write_id
    ).save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:8080")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--redrive", metavar="CONDITION", help="send those back for which this SQL is true")
    parser.add_argument("--write-id", help="name of the redrive; the same name is not sent twice")
    given = parser.parse_args()
    spark = goqueue.spark.session("dead-letter-triage")
    letters = dead_letters(spark, bootstrap=given.bootstrap, topic=given.topic)
    causes(letters).show(truncate=False)
    if given.redrive:
        if not given.write_id:
            parser.error("name the redrive with --write-id, so that it can be repeated safely")
        redrive(
            letters,
            bootstrap=given.bootstrap,
            topic=given.topic,
            where=given.redrive,
            write_id=given.write_id,
        )


if __name__ == "__main__":
    main()
