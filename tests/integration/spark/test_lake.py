"""`format("goqueue-lake")`: streams and batches into lake tables, each row once, and read back."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import window

from goqueue.spark.lake.options import LakeFormat

FORMATS = list(LakeFormat)


class Lake:
    """A table and a stream of numbers into it."""

    def __init__(self, spark: SparkSession, folder: Path, table_format: LakeFormat) -> None:
        self._spark = spark
        self._files = str(folder / "files")
        self.checkpoint = folder / "checkpoint"
        self.options = {
            "path": str(folder / "warehouse"),
            "table": "lake.numbers",
            "tableFormat": str(table_format),
        }

    def add_rows(self, numbers: range) -> None:
        rows = self._spark.range(numbers.start, numbers.stop)
        rows.coalesce(1).write.mode("append").parquet(self._files)

    def stream(self, *columns: str) -> None:
        """Run the stream until all rows are in the table."""
        rows = self._spark.readStream.schema("id bigint").parquet(self._files).selectExpr("id", *columns)
        (
            rows.writeStream.format("goqueue-lake")
            .options(**self.options, checkpointLocation=str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )

    def write(self, rows: DataFrame, **options: str) -> None:
        rows.write.format("goqueue-lake").mode("append").options(**self.options, **options).save()

    def rows(self) -> DataFrame:
        return self._spark.read.format("goqueue-lake").options(**self.options).load()

    def numbers(self) -> list[int]:
        return sorted(row.id for row in self.rows().collect())

    def files(self) -> list[Path]:
        return sorted(Path(self.options["path"]).rglob("*.parquet"))


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Lake:
    """A table of each format."""
    return Lake(spark, tmp_path, request.param)


def test_an_epoch_that_is_replayed_is_in_the_table_once(lake: Lake) -> None:
    lake.add_rows(range(500))
    lake.stream()
    lake.add_rows(range(500, 1_000))
    lake.stream()
    files = lake.files()
    # As if the driver had been killed between the table's commit and Spark's own note of it.
    newest = max((path for path in (lake.checkpoint / "commits").iterdir()), key=lambda path: path.name)
    newest.unlink()
    for checksum in (lake.checkpoint / "commits").glob(".*"):
        checksum.unlink()

    lake.add_rows(range(1_000, 1_200))
    lake.stream()

    assert lake.numbers() == list(range(1_200))
    assert set(files) < set(lake.files()), "the replayed epoch has left no files"
    assert len(lake.files()) == 3


def test_a_column_that_a_stream_gains_is_added_to_its_table(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, LakeFormat.ICEBERG)
    lake.add_rows(range(2))
    lake.stream()
    lake.add_rows(range(2, 4))

    lake.stream("CAST(id AS STRING) AS name")

    assert sorted(map(tuple, lake.rows().collect())) == [(0, None), (1, None), (2, "2"), (3, "3")]


def test_a_batch_write_with_a_name_is_done_once(spark: SparkSession, lake: Lake) -> None:
    rows = spark.range(100).repartition(2)

    for _ in range(2):
        lake.write(rows, writeId="numbers-of-monday")
    lake.write(spark.range(100, 110))

    assert lake.numbers() == list(range(110))


def test_every_type_survives(spark: SparkSession, lake: Lake) -> None:
    rows = spark.sql(
        "SELECT 1Y AS tiny, 2S AS small, 3 AS whole, 1.5D AS broken, 2.50BD AS exact, true AS flag,"
        " 'x' AS text, X'00FF' AS bytes, TIMESTAMP '2026-01-02 03:04:05.678901Z' AS time, "
        " DATE '2026-01-02' AS day,"
        " array(struct('k' AS key, X'01' AS value)) AS headers, map('a', 1) AS pairs,"
        " CAST(NULL AS STRING) AS gone"
    )

    lake.write(rows)

    [row] = lake.rows().collect()
    expected = rows.collect()[0].asDict(recursive=True)
    assert row.asDict(recursive=True) == expected
    assert row.time.astimezone(UTC) == datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def test_a_write_that_fails_leaves_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, LakeFormat.PARQUET)
    lake.write(spark.range(1))
    rows = spark.range(100).repartition(2)

    with pytest.raises(PySparkException, match="the last row is bad"):
        lake.write(rows.selectExpr("IF(id = 99, raise_error('the last row is bad'), id) AS id"))

    assert lake.numbers() == [0]


def test_overwriting_replaces_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, LakeFormat.DELTA)
    lake.write(spark.range(5))

    spark.range(7, 9).write.format("goqueue-lake").mode("overwrite").options(**lake.options).save()

    assert lake.numbers() == [7, 8]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ("CAST(id AS STRING) AS id", "column id is int64 in the table and string in the rows: cast it"),
        ("1 AS other", "column id of the table is missing in the rows"),
        ("id, INTERVAL 1 DAY AS pause", "column pause is of type duration"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    spark: SparkSession, tmp_path: Path, columns: str, problem: str
) -> None:
    lake = Lake(spark, tmp_path, LakeFormat.PARQUET)
    lake.write(spark.range(1))

    with pytest.raises(PySparkException, match=problem):
        lake.write(spark.range(1).selectExpr(*columns.split(", ")))

    assert lake.numbers() == [0]


def test_a_table_that_is_not_there_is_told_plainly(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match=r"there is no delta table lake\.numbers at"):
        Lake(spark, tmp_path, LakeFormat.DELTA).rows()


def test_a_stream_in_complete_mode_replaces_what_it_wrote(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, LakeFormat.ICEBERG)
    for numbers in (range(10), range(10, 25)):
        lake.add_rows(numbers)
        rows = spark.readStream.schema("id bigint").parquet(str(tmp_path / "files"))
        (
            rows.groupBy()
            .count()
            .selectExpr("count AS id")
            .writeStream.format("goqueue-lake")
            .outputMode("complete")
            .options(**lake.options, checkpointLocation=str(lake.checkpoint))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )

    assert lake.numbers() == [25]


def test_windows_of_a_stream_are_closed_into_the_table(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(600).selectExpr("timestamp_seconds(id) AS time", "id")
    rows.coalesce(1).write.parquet(str(tmp_path / "files"))
    lake = Lake(spark, tmp_path, LakeFormat.ICEBERG)
    stream = spark.readStream.schema("time timestamp, id bigint").parquet(str(tmp_path / "files"))
    windows = stream.withWatermark("time", "1 second").groupBy(window("time", "1 minute")).count()
    query = (
        windows.selectExpr("window.start AS start", "count")
        .writeStream.format("goqueue-lake")
        .options(**lake.options, checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    assert {row["count"] for row in lake.rows().collect()} == {60}
