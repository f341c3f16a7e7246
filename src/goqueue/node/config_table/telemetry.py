"""Settings of what a node tells of itself: traces, metrics, log lines, health."""

from goqueue.node.config_table.setting import INT32_MAX, INT64_MAX, Setting
from goqueue.node.config_values import (
    logging_level,
    off_or_whole_number,
    one_of,
    share,
    size,
    switch,
    whole_number,
)
from goqueue.node.tracing import config as export_config

TRACING_ENABLED: Setting[bool] = Setting(
    name="TRACING_ENABLED",
    default="true",
    read=switch,
    help="Whether what happens to messages is recorded. What log and journals tell of a message can be asked "
    "for without it.",
)
TRACING_SAMPLING: Setting[float] = Setting(
    name="TRACING_SAMPLING",
    default="1",
    read=share,
    help="Which part of the messages is traced, 0 to 1: with 0.01 one of every hundred offsets. A topic may "
    "say otherwise with `goqueue.tracing.sampling`.",
)
TRACING_EVENTS_MAX: Setting[int] = Setting(
    name="TRACING_EVENTS_MAX",
    default="100000",
    read=whole_number(least=1, most=INT32_MAX),
    help="Events of traces that are kept in memory, about 250 bytes each; an event tells of a whole batch.",
)
TRACING_SEARCH_BYTES: Setting[int] = Setting(
    name="TRACING_SEARCH_BYTES",
    default="256MiB",
    read=size(least=0, most=INT64_MAX),
    help="So much of what was published last is looked through for a trace id that a producer made.",
)
TRACE_EXPORT: Setting[tuple[str, ...]] = Setting(
    name="TRACING_EXPORT",
    default="none",
    read=export_config.exporters,
    help="Where spans of sampled messages go besides the memory: any of `file`, `stdout`, `otlp-http`, "
    "`otlp-grpc`, separated by commas, or `none`.",
)
TRACE_EXPORT_ENDPOINT: Setting[str] = Setting(
    name="TRACING_EXPORT_ENDPOINT",
    default="",
    read=export_config.endpoint,
    help="The URL of the collector for OTLP. Empty: this machine, port 4318 for HTTP and 4317 for gRPC.",
)
TRACE_EXPORT_HEADERS: Setting[dict[str, str]] = Setting(
    name="TRACING_EXPORT_HEADERS",
    default="",
    read=export_config.headers,
    help="Headers for the collector, `name=value`, separated by commas: an API key or a tenant.",
)
TRACE_EXPORT_INTERVAL_MS: Setting[int] = Setting(
    name="TRACING_EXPORT_INTERVAL_MS",
    default="1000",
    read=whole_number(least=10, most=10_000),
    help="How often new spans are handed to the exporters.",
)
TRACE_EXPORT_SPANS_PER_SECOND: Setting[int] = Setting(
    name="TRACING_EXPORT_SPANS_PER_SECOND",
    default="1000",
    read=whole_number(least=1, most=20_000),
    help="The most spans that leave in a second. When there are more, fewer messages are told of, each with "
    "all its spans; the others are counted as dropped in /traces/stats.",
)
TRACE_EXPORT_FILES: Setting[int] = Setting(
    name="TRACING_EXPORT_FILES",
    default="10",
    read=whole_number(least=1, most=INT32_MAX),
    help="How many files of 10 MiB the exporter `file` keeps in `traces/` of the data folder.",
)
METRICS_TOPICS_MAX: Setting[int] = Setting(
    name="METRICS_TOPICS_MAX",
    default="1000",
    read=whole_number(least=0, most=INT32_MAX),
    help="So many topics have metrics of their own; those of the others are summed up under `_other`.",
)
METRICS_GROUPS_MAX: Setting[int] = Setting(
    name="METRICS_GROUPS_MAX",
    default="1000",
    read=whole_number(least=0, most=INT32_MAX),
    help="The same for consumer groups, and for pairs of a group and a topic.",
)
METRICS_BY_PARTITION: Setting[bool] = Setting(
    name="METRICS_BY_PARTITION",
    default="false",
    read=switch,
    help="Whether offsets, sizes and lag are told of each partition instead of summed over a topic.",
)
LOGGING_LEVEL: Setting[int] = Setting(
    name="LOGGING_LEVEL",
    default="info",
    read=logging_level,
    help="The least important log line that is written: debug, info, warning or error.",
)
LOGGING_FORMAT: Setting[str] = Setting(
    name="LOGGING_FORMAT",
    default="text",
    read=one_of("text", "json"),
    help="How log lines look: `text` for people, `json` for programs, one object a line.",
)
LOGGING_REQUESTS: Setting[bool] = Setting(
    name="LOGGING_REQUESTS",
    default="false",
    read=switch,
    help="Whether a line is logged for each HTTP request, with its status, its time and its request id.",
)
HEALTH_DISK_WARN_PERCENT: Setting[int] = Setting(
    name="HEALTH_DISK_WARN_PERCENT",
    default="85",
    read=whole_number(least=1, most=100),
    help="How full the data disk is when `/readyz` begins to warn.",
)
HEALTH_DISK_FAIL_PERCENT: Setting[int] = Setting(
    name="HEALTH_DISK_FAIL_PERCENT",
    default="90",
    read=whole_number(least=1, most=100),
    help="How full it is when the broker counts as not ready, unless enough bytes are free all the same.",
)
HEALTH_DISK_ENOUGH_BYTES: Setting[int] = Setting(
    name="HEALTH_DISK_ENOUGH_BYTES",
    default="5GiB",
    read=size(least=0, most=INT64_MAX),
    help="So many free bytes are enough, however full the disk is.",
)
HEALTH_FSYNC_WARN_MS: Setting[int] = Setting(
    name="HEALTH_FSYNC_WARN_MS",
    default="100",
    read=whole_number(least=1, most=INT32_MAX),
    help="How long flushes to the disk take (p99 of a minute) when `/readyz` begins to warn.",
)
HEALTH_FSYNC_FAIL_MS: Setting[int] = Setting(
    name="HEALTH_FSYNC_FAIL_MS",
    default="5000",
    read=whole_number(least=1, most=INT32_MAX),
    help="How long they take when the broker counts as not ready.",
)
HEALTH_LOOP_LAG_WARN_MS: Setting[int] = Setting(
    name="HEALTH_LOOP_LAG_WARN_MS",
    default="100",
    read=whole_number(least=1, most=INT32_MAX),
    help="How late the broker's loop runs (p99 of a minute) when `/readyz` begins to warn.",
)
HEALTH_LOOP_LAG_FAIL_MS: Setting[int] = Setting(
    name="HEALTH_LOOP_LAG_FAIL_MS",
    default="2000",
    read=whole_number(least=1, most=INT32_MAX),
    help="How late it runs when the broker counts as not ready.",
)
LOOP_STUCK_MS: Setting[int] = Setting(
    name="HEALTH_LOOP_STUCK_MS",
    default="60000",
    read=off_or_whole_number(least=15_000, most=INT32_MAX),
    help="A loop that has not turned for so long ends the process: the stacks of all threads go to "
    "standard error, the exit code is 14, and a supervisor can start the broker anew. 0 is off. Linux only.",
)
