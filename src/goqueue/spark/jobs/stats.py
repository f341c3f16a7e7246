"""stats: what is in topics, by topic and hour: sizes, rates, how even the keys are, how late they came."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_S_PER_HOUR = 3_600
_PERCENTILES = "array(0.5, 0.95, 0.99)"


class HourStats(msgspec.Struct, frozen=True, kw_only=True):
    """One hour of one topic."""

    topic: str
    hour: str
    messages: int
    per_second: float
    """Over the whole hour."""
    size_bytes: int
    """Keys and values, uncompressed."""
    value_p50_bytes: int
    value_p99_bytes: int
    keys: int
    """About how many different ones."""
    top_key: str
    top_key_share: float
    """The share of the messages that have the most frequent key."""
    latency_p50_ms: int | None = None
    latency_p95_ms: int | None = None
    latency_p99_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsJob:
    """Which messages to look at."""

    source: dict[str, str]
    """Options of the source."""
    latency_header: str = ""
    """A header with a time in unix ms, of the event itself; latency is the message's time minus that."""

    def run(self, spark: "SparkSession") -> list[HourStats]:
        """All hours of all topics, in order."""
        columns = "topic,timestamp,key,value" + (",headers" if self.latency_header else "")
        rows = spark.read.format("goqueue").options(**self.source, columns=columns).load()
        rows = rows.selectExpr(
            "topic",
            "date_trunc('HOUR', timestamp) AS hour",
            "key",
            "coalesce(length(value), 0) AS value_bytes",
            "coalesce(length(key), 0) AS key_bytes",
            f"{self._latency()} AS latency_ms",
        )
        hours = _hours(rows).join(_top_keys(rows), ["topic", "hour"]).orderBy("topic", "hour")
        return [
            HourStats(
                topic=row.topic,
                hour=row.hour.strftime("%Y-%m-%dT%H:00Z"),
                messages=row.messages,
                per_second=round(row.messages / _S_PER_HOUR, 3),
                size_bytes=row.size_bytes,
                value_p50_bytes=row.value_sizes[0],
                value_p99_bytes=row.value_sizes[2],
                keys=row.different_keys,
                top_key="" if row.top_key is None else bytes(row.top_key).decode(errors="replace"),
                top_key_share=round(row.top_count / row.messages, 4),
                latency_p50_ms=None if row.latencies is None else row.latencies[0],
                latency_p95_ms=None if row.latencies is None else row.latencies[1],
                latency_p99_ms=None if row.latencies is None else row.latencies[2],
            )
            for row in hours.collect()
        ]

    def _latency(self) -> str:
        if not self.latency_header:
            return "CAST(NULL AS BIGINT)"
        name = self.latency_header.replace("\\", "\\\\").replace("'", "\\'")
        found = f"try_element_at(filter(headers, h -> h.key = '{name}'), -1).value"
        return f"unix_millis(timestamp) - try_cast(CAST({found} AS STRING) AS BIGINT)"


def _hours(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql.functions import expr

    return rows.groupBy("topic", "hour").agg(
        expr("count(*) AS messages"),
        expr("sum(value_bytes + key_bytes) AS size_bytes"),
        expr(f"approx_percentile(value_bytes, {_PERCENTILES}) AS value_sizes"),
        expr("approx_count_distinct(key) AS different_keys"),
        expr(f"approx_percentile(latency_ms, {_PERCENTILES}) AS latencies"),
    )


def _top_keys(rows: "DataFrame") -> "DataFrame":
    """The most frequent key of each hour; messages without a key are no key's."""
    from pyspark.sql.functions import expr

    counts = rows.groupBy("topic", "hour", "key").agg(expr("count(key) AS key_count"))
    return counts.groupBy("topic", "hour").agg(
        expr("max_by(key, key_count) AS top_key"), expr("max(key_count) AS top_count")
    )
