"""A stretch of time of one topic once more through SQL, into another topic.

    python -m examples.spark.backfill --source orders --target orders-clean \\
        --starting 2026-01-31T00:00:00Z --ending 2026-02-01T00:00:00Z \\
        --sql "SELECT key, value FROM source WHERE length(value) > 0"

The whole backfill appears at once, and only once: run it again when you do not know whether it was done.
"""

import argparse
import hashlib

from pyspark.sql import SparkSession

import goqueue.spark


def backfill(
    spark: SparkSession, *, bootstrap: str, source: str, target: str, starting: str, ending: str, sql: str
) -> str:
    """Read, transform, write; gives the name under which the broker remembers that it is done."""
    rows = spark.read.format("goqueue").options(
        bootstrap=bootstrap, topic=source, startingTimestamp=starting, endingTimestamp=ending
    )
    rows.load().createOrReplaceTempView("source")
    # The same stretch, source, target and SQL are the same backfill.
    facts = "\n".join((source, target, starting, ending, sql))
    write_id = f"backfill-{hashlib.sha256(facts.encode()).hexdigest()[:16]}"
    writer = spark.sql(sql).write.format("goqueue").mode("append")
    writer.options(bootstrap=bootstrap, topic=target, writeId=write_id).save()
    return write_id


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", default="127.0.0.1:8080")
    for flag in ("--source", "--target", "--starting", "--ending", "--sql"):
        parser.add_argument(flag, required=True)
    print(backfill(goqueue.spark.session("backfill"), **vars(parser.parse_args())))


if __name__ == "__main__":
    main()
