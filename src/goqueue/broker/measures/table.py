"""All families, in the order in which they are told; and those of GoQueue that one node has no use for."""

from goqueue.broker.measures.family import Family
from goqueue.broker.measures.groups import CONSUMER_FAMILIES
from goqueue.broker.measures.node import NODE
from goqueue.broker.measures.topics import BROKER, STORAGE

FAMILIES: tuple[Family, ...] = (*BROKER, *CONSUMER_FAMILIES, *STORAGE, *NODE)

LEFT_OUT = {
    "goqueue_storage_segments_active": "one a partition: `goqueue_broker_topic_partitions`",
    "goqueue_storage_index_lookups_total, index_lookup_latency_seconds": "a look-up takes microseconds; "
    "counting it would cost as much",
    "goqueue_storage_compaction_*": "compaction is a Spark job, which tells its own numbers",
    "goqueue_storage_snapshot*": "recovery points are part of a flush, which is counted",
    "goqueue_consumer_heartbeat_timeouts_total": "the same as `goqueue_consumer_session_timeouts_total`",
    "goqueue_consumer_heartbeat_latency_seconds": "a heartbeat is answered at once",
    "goqueue_cluster_isr_*, leader_election*, controller_*, replication_lag, fetch_*, inter_broker_*, "
    "heartbeats_*, failure_detections_total, node_state, leaders_per_node, followers_per_node, "
    "preferred_leader_imbalance, bytes_replicated_total": "one node replicates and elects nothing",
}
"""Names of GoQueue's other editions that are not served, with the reason."""
