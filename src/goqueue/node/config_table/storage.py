"""Settings of the data folder and of what is written to it."""

from pathlib import Path

from goqueue.model.settings import KiB
from goqueue.node.config_table.setting import INT32_MAX, INT64_MAX, Setting
from goqueue.node.config_values import folder, node_id, size, whole_number

DATA_FOLDER: Setting[Path] = Setting(
    name="BROKER_DATADIR",
    default="./data",
    read=folder,
    help="The folder that holds everything stored. Its parent must exist. Also `--data-dir`.",
    flag_alias="--data-dir",
)
NODE_ID: Setting[str] = Setting(
    name="BROKER_NODEID",
    default="node-1",
    read=node_id,
    help="The name of this node. The number in it is the node id that Kafka clients see.",
)
SEGMENT_BYTES: Setting[int] = Setting(
    name="LOG_SEGMENT_BYTES",
    default="64MiB",
    read=size(least=4 * KiB, most=INT32_MAX),
    help="A segment file of the log is closed and the next begun at this size. Default of new topics.",
)
FLUSH_INTERVAL_MS: Setting[int] = Setting(
    name="LOG_FLUSH_INTERVAL_MS",
    default="1000",
    read=whole_number(least=1, most=INT32_MAX),
    help="A message published with acks=leader is on the disk at the latest after this time. acks=all "
    "never waits for it.",
)
COMMIT_FILE_BYTES: Setting[int] = Setting(
    name="LOG_COMMIT_FILE_BYTES",
    default="16MiB",
    read=size(least=64 * 1024, most=INT32_MAX),
    help="How large a file of the commit log becomes. A start after a crash reads all of them.",
)
COMMIT_FILES: Setting[int] = Setting(
    name="LOG_COMMIT_FILES",
    default="8",
    read=whole_number(least=0, most=1_000),
    help="How many files the commit log may have. When all are in use, and always with 0, each partition's "
    "own file is synced instead.",
)
RETENTION_MS: Setting[int] = Setting(
    name="LOG_RETENTION_MS",
    default="604800000",
    read=whole_number(least=-1, most=INT64_MAX),
    help="How long messages are kept, -1 for ever. Default of new topics (7 days).",
)
RETENTION_BYTES: Setting[int] = Setting(
    name="LOG_RETENTION_BYTES",
    default="-1",
    read=size(least=-1, most=INT64_MAX),
    help="How much of a partition is kept, -1 all. Default of new topics.",
)
UPKEEP_INTERVAL_MS: Setting[int] = Setting(
    name="LOG_UPKEEP_INTERVAL_MS",
    default="5000",
    read=whole_number(least=1, most=INT32_MAX),
    help="How often retention is applied and recovery points are noted.",
)
SCRUB_BYTES_PER_S: Setting[int] = Setting(
    name="LOG_SCRUB_BYTES_PER_S",
    default="8MiB",
    read=size(least=0, most=INT32_MAX),
    help="How fast sealed segments are read back and checked for bytes that have gone bad; 0: never.",
)
COMPACTION_INTERVAL_MS: Setting[int] = Setting(
    name="LOG_COMPACTION_INTERVAL_MS",
    default="15000",
    read=whole_number(least=1, most=INT32_MAX),
    help="How often partitions of compacted topics are looked at.",
)
COMPACTION_BYTES_PER_S: Setting[int] = Setting(
    name="LOG_COMPACTION_BYTES_PER_S",
    default="32MiB",
    read=size(least=0, most=INT32_MAX),
    help="How fast compaction reads and writes; 0: nothing is compacted.",
)
COMPACTION_MEMORY_BYTES: Setting[int] = Setting(
    name="LOG_COMPACTION_MEMORY_BYTES",
    default="128MiB",
    read=size(least=64 * 1024, most=INT32_MAX),
    help="Memory for the keys of one round of compaction, about 52 bytes each; more keys take more rounds.",
)
RESERVE_BYTES: Setting[int] = Setting(
    name="LOG_RESERVE_BYTES",
    default="4MiB",
    read=size(least=0, most=INT32_MAX),
    help="Space that is kept on the data disk so that a broker whose disk is full can start, and can delete.",
)
