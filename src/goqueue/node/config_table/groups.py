"""Settings of consumer groups, producers and transactions."""

from goqueue.node.config_table.setting import INT32_MAX, INT64_MAX, Setting
from goqueue.node.config_values import size, whole_number

PRODUCER_EXPIRY_MS: Setting[int] = Setting(
    name="PRODUCERS_EXPIRY_MS",
    default="86400000",
    read=whole_number(least=1, most=INT64_MAX),
    help="How long an idempotent producer's sequence numbers are remembered after its last batch.",
)
GROUP_INITIAL_DELAY_MS: Setting[int] = Setting(
    name="GROUPS_INITIAL_DELAY_MS",
    default="1000",
    read=whole_number(least=0, most=INT32_MAX),
    help="How long the first member of an empty consumer group waits for others, so that a start is one "
    "rebalance.",
)
GROUP_SESSION_MS_MIN: Setting[int] = Setting(
    name="GROUPS_SESSION_MS_MIN",
    default="1000",
    read=whole_number(least=1, most=INT32_MAX),
    help="The shortest session time-out that a member of a group may ask for.",
)
GROUP_SESSION_MS_MAX: Setting[int] = Setting(
    name="GROUPS_SESSION_MS_MAX",
    default="1800000",
    read=whole_number(least=1, most=INT32_MAX),
    help="The longest session time-out that a member of a group may ask for.",
)
CONSUMER_SESSION_MS: Setting[int] = Setting(
    name="GROUPS_CONSUMER_SESSION_MS",
    default="45000",
    read=whole_number(least=1, most=INT32_MAX),
    help="After how long a silent Kafka client with `group.protocol=consumer` is no longer a member.",
)
CONSUMER_HEARTBEAT_MS: Setting[int] = Setting(
    name="GROUPS_CONSUMER_HEARTBEAT_MS",
    default="5000",
    read=whole_number(least=1, most=INT32_MAX),
    help="How often such a client is told to send a heartbeat.",
)
GROUP_MEMBERS_MAX: Setting[int] = Setting(
    name="GROUPS_MEMBERS",
    default="2000",
    read=whole_number(least=1, most=INT32_MAX),
    help="The most members a consumer group may have.",
)
GROUPS_MAX: Setting[int] = Setting(
    name="LIMITS_GROUPS",
    default="100000",
    read=whole_number(least=1, most=INT32_MAX),
    help="The most consumer groups that a node keeps.",
)
OFFSET_METADATA_BYTES: Setting[int] = Setting(
    name="GROUPS_OFFSET_METADATA_BYTES",
    default="4KiB",
    read=size(least=0, most=INT32_MAX),
    help="The longest text that is kept with a committed offset.",
)
GROUP_IN_FLIGHT_MAX: Setting[int] = Setting(
    name="GROUPS_IN_FLIGHT_MAX",
    default="1000",
    read=whole_number(least=1, most=INT32_MAX),
    help="Messages that one consumer may have out with leases; a poll for more waits.",
)
OFFSETS_RETENTION_MINUTES: Setting[int] = Setting(
    name="GROUPS_OFFSETS_RETENTION_MINUTES",
    default="10080",
    read=whole_number(least=1, most=INT32_MAX),
    help="How long the offsets of a group without members are kept after its last commit or member "
    "(7 days). A group with members keeps them.",
)
TRANSACTION_TIMEOUT_MS: Setting[int] = Setting(
    name="TRANSACTIONS_TIMEOUT_MS",
    default="60000",
    read=whole_number(least=1, most=INT32_MAX),
    help="How long a transaction may stay open when its producer does not say; then it is aborted.",
)
TRANSACTION_TIMEOUT_MS_MAX: Setting[int] = Setting(
    name="TRANSACTIONS_TIMEOUT_MS_MAX",
    default="900000",
    read=whole_number(least=1, most=INT32_MAX),
    help="The longest time that a producer may ask for.",
)
PRODUCER_SESSION_MS: Setting[int] = Setting(
    name="TRANSACTIONS_SESSION_MS",
    default="30000",
    read=whole_number(least=1, most=INT32_MAX),
    help="How long a producer over HTTP that sends heartbeats may be silent; then its open transaction is "
    "aborted. One that never sends any has its transaction's time-out alone.",
)
TRANSACTIONAL_ID_EXPIRY_MS: Setting[int] = Setting(
    name="TRANSACTIONS_ID_EXPIRY_MS",
    default="604800000",
    read=whole_number(least=1, most=INT64_MAX),
    help="How long a transactional id is remembered after its last transaction (7 days).",
)
