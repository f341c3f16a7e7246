"""All families, in the order in which they are told; and those of GoQueue that one node has no use for."""

from goqueue.broker.measures.cluster import CLUSTER
from goqueue.broker.measures.family import Family
from goqueue.broker.measures.groups import CONSUMER_FAMILIES
from goqueue.broker.measures.node import NODE
from goqueue.broker.measures.topics import BROKER, STORAGE

FAMILIES: tuple[Family, ...] = (*BROKER, *CONSUMER_FAMILIES, *STORAGE, *NODE, *CLUSTER)

LEFT_OUT = {
    "goqueue_storage_index_lookup_latency_seconds": "a look-up takes microseconds, and timing it as long; "
    "`goqueue_broker_fetch_latency_seconds` holds it",
    "goqueue_storage_snapshot_size_bytes": "a recovery point is as large as its partition has producers",
    "goqueue_cluster_fetch_*, heartbeats_*": "followers are sent what is new, and etcd keeps sessions",
    "goqueue_cluster_inter_broker_*, leader_election_latency_seconds": "not measured yet; "
    "`goqueue_cluster_bytes_replicated_total` is most of what nodes send each other",
}
"""Names of GoQueue's other editions that are not served, with the reason."""
