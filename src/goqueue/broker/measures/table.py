"""All families, in the order in which they are told; and those of GoQueue that one node has no use for."""

from goqueue.broker.measures.family import Family
from goqueue.broker.measures.groups import CONSUMER_FAMILIES
from goqueue.broker.measures.node import NODE
from goqueue.broker.measures.topics import BROKER, STORAGE

FAMILIES: tuple[Family, ...] = (*BROKER, *CONSUMER_FAMILIES, *STORAGE, *NODE)

LEFT_OUT = {
    "goqueue_storage_index_lookup_latency_seconds": "a look-up takes microseconds, and timing it as long; "
    "`goqueue_broker_fetch_latency_seconds` holds it",
    "goqueue_storage_compaction_*": "there is no log compaction yet",
    "goqueue_storage_snapshot_size_bytes": "a recovery point is as large as its partition has producers",
    "goqueue_cluster_isr_*, leader_election*, controller_*, replication_lag, fetch_*, inter_broker_*, "
    "heartbeats_*, failure_detections_total, node_state, leaders_per_node, followers_per_node, "
    "preferred_leader_imbalance, bytes_replicated_total": "one node replicates and elects nothing",
}
"""Names of GoQueue's other editions that are not served, with the reason."""
