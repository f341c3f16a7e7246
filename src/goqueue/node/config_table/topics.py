"""Settings of topics and their messages: limits, defaults, sinks, backups, tenants."""

from pathlib import Path

from goqueue.model.settings import KiB
from goqueue.node.config_table.setting import INT32_MAX, INT64_MAX, Setting
from goqueue.node.config_values import file_path, size, switch, whole_number

MESSAGE_BYTES: Setting[int] = Setting(
    name="LIMITS_MESSAGE_BYTES",
    default="16MiB",
    read=size(least=1, most=INT32_MAX),
    help="The largest message that is taken in; a larger one is refused.",
)
REQUEST_BYTES: Setting[int] = Setting(
    name="LIMITS_REQUEST_BYTES",
    default="64MiB",
    read=size(least=1, most=INT32_MAX),
    help="The largest request that is taken in at any door.",
)
JSON_BYTES: Setting[int] = Setting(
    name="LIMITS_JSON_BYTES",
    default="4MiB",
    read=size(least=1, most=INT32_MAX),
    help="The largest JSON body that the HTTP door reads. It is read in one go while all others wait, "
    "1 to 4 ms a MiB: larger messages go through Kafka, a client's producer or `POST /batches`.",
)
TOPIC_PARTITIONS_MAX: Setting[int] = Setting(
    name="LIMITS_TOPIC_PARTITIONS",
    default="10000",
    read=whole_number(least=1, most=INT32_MAX),
    help="The most partitions a topic may have.",
)
PARTITIONS_MAX: Setting[int] = Setting(
    name="LIMITS_PARTITIONS",
    default="100000",
    read=whole_number(least=1, most=INT32_MAX),
    help="The most partitions that all topics may have together.",
)
TOPICS_MAX: Setting[int] = Setting(
    name="LIMITS_TOPICS",
    default="100000",
    read=whole_number(least=1, most=INT32_MAX),
    help="The most topics that there may be.",
)
AUTO_CREATE: Setting[bool] = Setting(
    name="TOPICS_AUTO_CREATE",
    default="true",
    read=switch,
    help="Whether a topic comes into being when a Kafka client first names it.",
)
DEFAULT_PARTITIONS: Setting[int] = Setting(
    name="TOPICS_PARTITIONS",
    default="3",
    read=whole_number(least=1, most=INT32_MAX),
    help="How many partitions a topic gets when its creator does not say.",
)
USAGE_DAYS: Setting[int] = Setting(
    name="TENANTS_USAGE_DAYS",
    default="35",
    read=whole_number(least=1, most=400),
    help="For how many days it is kept what tenants have used by hour.",
)
STAGE_EXPIRY_MS: Setting[int] = Setting(
    name="SINKS_STAGE_EXPIRY_MS",
    default="3600000",
    read=whole_number(least=1, most=INT64_MAX),
    help="How long a stage of an exactly-once sink is kept for a commit that may never come.",
)
SINK_EXPIRY_MS: Setting[int] = Setting(
    name="SINKS_EXPIRY_MS",
    default="7776000000",
    read=whole_number(least=1, most=INT64_MAX),
    help="How long the last epoch of an exactly-once sink is remembered after its last commit (90 days).",
)
BACKUP_COUNT_MAX: Setting[int] = Setting(
    name="BACKUP_COUNT_MAX",
    default="7",
    read=whole_number(least=1, most=100_000),
    help="How many backups of each kind are kept; a new one takes the place of the oldest.",
)
BACKUP_FOLDER: Setting[Path | None] = Setting(
    name="BACKUP_FOLDER",
    default="",
    read=file_path,
    help="Where whole backups go: a folder on another disk. Empty: into `backups/whole` of the data folder.",
)
BACKUP_BYTES_PER_S: Setting[int] = Setting(
    name="BACKUP_BYTES_PER_S",
    default="256MiB",
    read=size(least=64 * KiB, most=INT64_MAX),
    help="How much a whole backup reads a second at most.",
)
BACKUP_INTERVAL_MS: Setting[int] = Setting(
    name="BACKUP_INTERVAL_MS",
    default="0",
    read=whole_number(least=0, most=INT64_MAX),
    help="How often a whole backup is begun; 0: only when somebody asks for it.",
)
