"""One job, wherever Spark runs: even numbers of one topic to another, each once.

    python -m examples.spark.on_a_cluster --bootstrap broker:8080 --source numbers --target even \\
        --checkpoint /shared/checkpoints/even --master spark://master:7077

Without `--master` it runs here; `sc://server:15002` is a Spark Connect server. On a cluster the package
`goqueue[spark]` is installed on every machine, with the same version of Python, the checkpoint lies on
storage that all share, and executors reach the broker at `--bootstrap` by themselves.
"""

import argparse

from pyspark.sql import SparkSession

import goqueue.spark


def copy_even(spark: SparkSession, *, bootstrap: str, source: str, target: str, checkpoint: str) -> None:
    """Copy all that is there now; a later run goes on behind it."""
    numbers = spark.readStream.format("goqueue").options(
        bootstrap=bootstrap, topic=source, startingOffsets="earliest", maxRecordsPerBatch="10000"
    )
    even = numbers.load().where("CAST(CAST(value AS STRING) AS INT) % 2 = 0").select("key", "value")
    writer = even.writeStream.format("goqueue").options(
        bootstrap=bootstrap, topic=target, checkpointLocation=checkpoint
    )
    writer.trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for flag in ("--bootstrap", "--source", "--target", "--checkpoint"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--memory", default="1g", help="of the driver")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark"
    )
    given = vars(parser.parse_args())
    settings = dict(setting.split("=", 1) for setting in given.pop("conf"))
    spark = goqueue.spark.session(
        "on-a-cluster", master=given.pop("master"), memory=given.pop("memory"), settings=settings
    )
    copy_even(spark, **given)
    spark.stop()


if __name__ == "__main__":
    main()
