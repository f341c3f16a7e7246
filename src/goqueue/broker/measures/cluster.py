"""Families about the cluster: who is there, who leads, how copies are. One node alone is a whole cluster.

What is told of records is what this node knows; every node tells the same, some moments apart. What was
counted is counted by the leader of a partition, so it is summed over nodes.
"""

from collections import Counter
from collections.abc import Iterable

from goqueue.broker.measures.family import TOPIC, Family, Sample, counter, gauge, one
from goqueue.broker.measures.view import View
from goqueue.model.cluster import NodeState

NODE_ID = ("node_id",)
_STATES = ("healthy", "suspect", "dead")


def _is_healthy(view: View) -> int:
    return int(view.broker.is_open and not view.broker.health.problems)


def _nodes_total(view: View) -> int:
    image = view.broker.metadata
    if not view.broker.is_one_of_several:
        return 1
    return sum(not member.is_retired for member in image.members.values())


def _nodes_healthy(view: View) -> int:
    if not view.broker.is_one_of_several:
        return _is_healthy(view)
    return sum(state == "healthy" for state in _states(view).values())


def _states(view: View) -> dict[str, str]:
    """Of each node that was not retired: ready, on its way in or out, or not heard of."""
    image = view.broker.metadata
    if not view.broker.is_one_of_several:
        return {view.broker.config.node_id: "healthy" if _is_healthy(view) else "suspect"}
    found: dict[str, str] = {}
    for node, member in image.members.items():
        record = image.nodes.get(node)
        if not member.is_retired:
            is_ready = record is not None and record.state is NodeState.READY
            found[node] = "dead" if record is None else "healthy" if is_ready else "suspect"
    return found


def _node_states(view: View) -> Iterable[Sample]:
    return [
        ((node, state), int(state == known)) for node, known in _states(view).items() for state in _STATES
    ]


def _is_controller(view: View) -> int:
    broker = view.broker
    return int(not broker.is_one_of_several or broker.metadata.controller == broker.config.node_id)


def _controller_age(view: View) -> float:
    since_ms = view.counters.cluster.controller_since_ms
    if not view.broker.is_one_of_several:
        since_ms = view.broker.started_ms
    return 0.0 if since_ms is None else max(0, view.now_ms - since_ms) / 1000


def _by_node(counts: Counter[str]) -> list[Sample]:
    return [((node,), count) for node, count in sorted(counts.items())]


def _imbalance(view: View) -> float:
    """Which part of the partitions is led by another node than the one that should."""
    row = view.cluster
    return round(row.led_by_others / row.partitions, 4) if row.partitions else 0.0


def _by_topic(view: View, counts: Counter[str]) -> list[Sample]:
    found: Counter[str] = Counter()
    for name, count in counts.items():
        found[view.topic_label(name)] += count
    return [((label,), count) for label, count in found.items()]


def _elections(view: View) -> Iterable[Sample]:
    found: Counter[tuple[str, str]] = Counter()
    for (name, kind), count in view.counters.cluster.elections.items():
        found[view.topic_label(name), kind] += count
    return list(found.items())


def _unclean(view: View) -> int:
    return sum(count for (_, kind), count in view.counters.cluster.elections.items() if kind == "unclean")


def _lags(view: View) -> Iterable[Sample]:
    found: Counter[tuple[str, str]] = Counter()
    for (name, node), lag in view.counters.cluster.lags().items():
        found[view.topic_label(name), node] += lag
    return list(found.items())


def _partition_count(view: View) -> int:
    return sum(view.broker.topic_counts.values())


def _offline(view: View) -> int:
    return view.cluster.unled + sum(row.stopped for row in view.topics.values())


CLUSTER: tuple[Family, ...] = (
    gauge("goqueue_cluster_nodes_total", (), "Nodes that belong to the cluster.", one(_nodes_total)),
    gauge("goqueue_cluster_nodes_healthy", (), "Nodes that are ready (docs/health.md).", one(_nodes_healthy)),
    gauge(
        "goqueue_cluster_node_state",
        (*NODE_ID, "state"),
        "1 for the state of each node: healthy; suspect: it starts, stops or is not ready; dead.",
        _node_states,
    ),
    gauge("goqueue_cluster_is_controller", (), "1: this node decides for all.", one(_is_controller)),
    gauge(
        "goqueue_cluster_controller_age_seconds",
        (),
        "For how long this node has decided; 0: it does not.",
        one(_controller_age),
    ),
    counter(
        "goqueue_cluster_controller_elections_total",
        (),
        "How often this node became the one that decides.",
        one(lambda view: view.counters.cluster.controller_elections),
    ),
    gauge("goqueue_cluster_partition_count", (), "Partitions of topics of clients.", one(_partition_count)),
    gauge(
        "goqueue_cluster_leaders_per_node",
        NODE_ID,
        "Partitions that each node leads.",
        lambda view: _by_node(view.cluster.leads),
    ),
    gauge(
        "goqueue_cluster_followers_per_node",
        NODE_ID,
        "Partitions that each node copies.",
        lambda view: _by_node(view.cluster.follows),
    ),
    gauge(
        "goqueue_cluster_isr_size",
        TOPIC,
        "Copies in sync of the partition of a topic that has the fewest.",
        lambda view: [((label,), size) for label, size in view.cluster.isr_sizes.items()],
    ),
    gauge(
        "goqueue_cluster_under_replicated_partitions",
        (),
        "Partitions some of whose copies are not in sync.",
        one(lambda view: view.cluster.under_replicated),
    ),
    gauge(
        "goqueue_cluster_under_min_isr_partitions",
        (),
        "Partitions with fewer copies in sync than acks=all asks for: such writes are refused.",
        one(lambda view: view.cluster.under_min_isr),
    ),
    gauge(
        "goqueue_cluster_offline_partitions",
        (),
        "Partitions that nobody leads, or that the disk has stopped here and that are being opened anew.",
        one(_offline),
    ),
    gauge(
        "goqueue_cluster_preferred_leader_imbalance",
        (),
        "Which part of the partitions is led by another node than should, 0 to 1.",
        one(_imbalance),
    ),
    gauge(
        "goqueue_cluster_reassigning_partitions",
        (),
        "Partitions that are being moved to other nodes.",
        one(lambda view: view.cluster.moving),
    ),
    gauge(
        "goqueue_cluster_replication_lag",
        (*TOPIC, "node_id"),
        "Messages that a follower of partitions led here lacks.",
        _lags,
    ),
    counter(
        "goqueue_cluster_bytes_replicated_total",
        TOPIC,
        "Bytes sent to followers of partitions led here.",
        lambda view: _by_topic(view, view.counters.cluster.replicated_bytes),
    ),
    counter(
        "goqueue_cluster_isr_shrinks_total",
        TOPIC,
        "How often a copy of a partition led here has left those in sync.",
        lambda view: _by_topic(view, view.counters.cluster.isr_shrinks),
    ),
    counter(
        "goqueue_cluster_isr_expands_total",
        TOPIC,
        "How often one has come back to them.",
        lambda view: _by_topic(view, view.counters.cluster.isr_expands),
    ),
    counter(
        "goqueue_cluster_leader_elections_total",
        (*TOPIC, "election_type"),
        "Elections by which this node came to lead: first, preferred, failover, unclean.",
        _elections,
    ),
    counter(
        "goqueue_cluster_unclean_leader_elections_total",
        (),
        "Of these, the unclean ones: what the new leader lacked is lost.",
        one(_unclean),
    ),
    counter(
        "goqueue_cluster_failure_detections_total",
        (),
        "Nodes that this one has found dead before their session ended.",
        one(lambda view: view.counters.cluster.nodes_given_up),
    ),
    gauge(
        "goqueue_cluster_store_away",
        (),
        "1: etcd has not been heard of for longer than a session lasts.",
        one(lambda view: int(view.counters.cluster.is_store_away())),
    ),
    gauge(
        "goqueue_cluster_store_unsafe",
        (),
        "1: etcd is older than 3.5.6, and may lose what it has confirmed when it is killed.",
        one(lambda view: int(view.counters.cluster.is_store_unsafe())),
    ),
)
