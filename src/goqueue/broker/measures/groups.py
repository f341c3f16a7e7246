"""Families about consumer groups: how far they are, what their members do, what is out with them."""

from collections.abc import Callable, Iterable
from operator import attrgetter

from goqueue.broker.measures.family import GROUP, PAIR, Family, Sample, counter, gauge, histogram
from goqueue.broker.measures.view import PairRow, View
from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.group import Group
from goqueue.core.telemetry.counters import GroupCounters, GroupTopicCounters
from goqueue.core.telemetry.histogram import Histogram
from goqueue.model.groups import GroupState

Read = Callable[[View], Iterable[Sample]]
NO_GROUP = ""
"""Stands for readers that name no group: consumers of Kafka clients, and readers by offset."""


def _of_pairs(field: str) -> Read:
    value: Callable[[GroupTopicCounters], float] = attrgetter(field)
    return lambda view: [(pair, found) for pair, counts in view.counted_pairs() if (found := value(counts))]


def _consumed(of_group: str, of_readers: str) -> Read:
    """What groups have got by poll, and what others have read."""

    def read(view: View) -> Iterable[Sample]:
        yield from _of_pairs(of_group)(view)
        for name, counts in view.topics_of_clients():
            if value := getattr(counts, of_readers):
                yield (name, NO_GROUP), value

    return read


def _of_groups(field: str) -> Read:
    value: Callable[[GroupCounters], float] = attrgetter(field)
    return lambda view: [((name,), value(counts)) for name, counts in view.counted_groups()]


def _by_reason(field: str) -> Read:
    def read(view: View) -> Iterable[Sample]:
        for name, counts in view.counted_groups():
            for reason, count in getattr(counts, field).items():
                yield (name, reason), count

    return read


def _times(field: str) -> Read:
    value: Callable[[GroupCounters], Histogram] = attrgetter(field)
    return lambda view: [
        ((name,), found) for name, counts in view.counted_groups() if (found := value(counts)).count
    ]


def _rows(field: str) -> Read:
    value: Callable[[PairRow], float] = attrgetter(field)
    return lambda view: [(key, value(row)) for key, row in view.pairs.items()]


def _queue_rows(field: str) -> Read:
    value: Callable[[PairRow], float] = attrgetter(field)
    return lambda view: [(key, value(row)) for key, row in view.pairs.items() if row.is_queue]


def _lag_seconds(view: View) -> Iterable[Sample]:
    return [(key, row.lag_ms / 1000) for key, row in view.pairs.items() if row.lag_ms is not None]


def _summed(value: Callable[[Group | AssignedGroup], float]) -> Read:
    """A number of groups as they are now."""
    return lambda view: [
        ((label,), sum(value(record.membership) for record in row.records))
        for label, row in view.groups.items()
    ]


def _states(view: View) -> Iterable[Sample]:
    for label, row in view.groups.items():
        for state in GroupState:
            yield (label, state.value), sum(record.membership.state is state for record in row.records)


def _rebalances(view: View) -> Iterable[Sample]:
    """Some groups count for themselves; the others are counted from outside."""
    for label, row in view.groups.items():
        own = [r.membership for r in row.records if isinstance(r.membership, AssignedGroup)]
        reasons = view.counters.groups.get(label, view.counters.other_groups).rebalances.copy()
        for group in own:
            reasons += group.rebalances.reasons
        for reason, count in reasons.items():
            yield (label, reason), count


def _of_assigned(field: str) -> Read:
    """What groups to which the broker assigns have counted themselves."""

    def value(group: Group | AssignedGroup) -> float:
        return float(getattr(group.rebalances, field)) if isinstance(group, AssignedGroup) else 0

    return _summed(value)


def _session_timeouts(view: View) -> Iterable[Sample]:
    return [((name,), counts.leaves["session_timeout"]) for name, counts in view.counted_groups()]


CONSUMER_FAMILIES: tuple[Family, ...] = (
    counter(
        "goqueue_broker_messages_consumed_total",
        PAIR,
        "Messages given out. Kafka consumers and readers by offset name no group: theirs is empty, and "
        "counts every offset of the batches they took, those of transaction markers too.",
        _consumed("consumed", "read"),
    ),
    counter(
        "goqueue_broker_bytes_consumed_total",
        PAIR,
        "Bytes given out, of values to groups and of whole batches to others.",
        _consumed("consumed_bytes", "read_bytes"),
    ),
    counter("goqueue_broker_messages_acked_total", PAIR, "Messages acknowledged.", _of_pairs("acked")),
    counter("goqueue_broker_messages_nacked_total", PAIR, "Messages given back.", _of_pairs("nacked")),
    counter("goqueue_broker_messages_rejected_total", PAIR, "Messages rejected.", _of_pairs("rejected")),
    counter(
        "goqueue_broker_messages_expired_total",
        PAIR,
        "Messages whose visibility timeout ran out before they were settled.",
        _of_pairs("expired"),
    ),
    counter(
        "goqueue_broker_messages_extended_total",
        PAIR,
        "Messages that were kept longer by their consumer.",
        _of_pairs("extended"),
    ),
    counter(
        "goqueue_broker_messages_outdated_total",
        PAIR,
        "Messages that were too old to be delivered (TTL).",
        _of_pairs("outdated"),
    ),
    counter(
        "goqueue_broker_messages_passed_over_total",
        PAIR,
        "Messages that a group had to leave out, because nobody can read them: "
        "spoilt on the disk, or built wrongly by their producer.",
        _of_pairs("passed_over"),
    ),
    counter(
        "goqueue_broker_messages_dead_lettered_total",
        PAIR,
        "Messages that went to the dead letters.",
        _of_pairs("dead_letters"),
    ),
    gauge(
        "goqueue_queue_in_flight_messages",
        PAIR,
        "Messages out with consumers now.",
        _queue_rows("in_flight"),
        by_partition=True,
    ),
    gauge(
        "goqueue_queue_ready_messages",
        PAIR,
        "Messages that were looked at and can be handed out now; those further behind are in the lag.",
        _queue_rows("ready"),
        by_partition=True,
    ),
    gauge(
        "goqueue_queue_retry_messages",
        PAIR,
        "Messages that came back and wait for their next try.",
        _queue_rows("waiting"),
        by_partition=True,
    ),
    gauge(
        "goqueue_consumer_lag_messages",
        PAIR,
        "Messages that a group has not committed yet.",
        _rows("lag"),
        by_partition=True,
    ),
    gauge(
        "goqueue_consumer_lag_seconds",
        PAIR,
        "How long ago the first of them was stored, in the partition where that is longest.",
        _lag_seconds,
        by_partition=True,
    ),
    gauge(
        "goqueue_consumer_committed_offset",
        PAIR,
        "Committed offsets, summed over partitions.",
        _rows("committed_offset"),
        by_partition=True,
    ),
    counter(
        "goqueue_consumer_offset_commits_total", PAIR, "Commits that name the topic.", _of_pairs("commits")
    ),
    counter(
        "goqueue_consumer_offset_commit_errors_total",
        ("consumer_group", "error_type"),
        "Commits, or partitions of them, that were refused.",
        _by_reason("commit_errors"),
    ),
    histogram(
        "goqueue_consumer_offset_commit_latency_seconds",
        GROUP,
        "How long a commit took until the disk had it.",
        _times("commit_seconds"),
    ),
    gauge(
        "goqueue_broker_active_consumers",
        PAIR,
        "Members of a group that have partitions of the topic.",
        lambda view: list(view.consumers.items()),
    ),
    gauge(
        "goqueue_consumer_group_members",
        GROUP,
        "Members now.",
        _summed(lambda group: len(group.members)),
    ),
    gauge(
        "goqueue_consumer_group_generation",
        GROUP,
        "The generation of the group.",
        _summed(lambda group: group.generation),
    ),
    gauge(
        "goqueue_consumer_group_state",
        ("consumer_group", "state"),
        "1 for the state that the group is in, else 0.",
        _states,
    ),
    gauge(
        "goqueue_consumer_assigned_partitions",
        GROUP,
        "Partitions that members have; one that several share counts for each.",
        lambda view: [((label,), row.partitions) for label, row in view.groups.items()],
    ),
    counter(
        "goqueue_consumer_rebalances_total",
        ("consumer_group", "trigger"),
        "Rebalances begun, by what began them: member_joined, member_left, member_expired, "
        "subscription_changed, topics_changed.",
        _rebalances,
    ),
    histogram(
        "goqueue_consumer_rebalance_latency_seconds",
        GROUP,
        "From the begin of a rebalance until everybody had its partitions.",
        _times("rebalance_seconds"),
    ),
    counter(
        "goqueue_consumer_partitions_assigned_total",
        GROUP,
        "Partitions given to members, where the broker assigns.",
        _of_assigned("partitions_assigned"),
    ),
    counter(
        "goqueue_consumer_partitions_revoked_total",
        GROUP,
        "Partitions taken from members, where the broker assigns.",
        _of_assigned("partitions_revoked"),
    ),
    counter("goqueue_consumer_group_joins_total", GROUP, "Members that came.", _of_groups("joins")),
    counter(
        "goqueue_consumer_group_leaves_total",
        ("consumer_group", "reason"),
        "Members that went: left or session_timeout.",
        _by_reason("leaves"),
    ),
    counter(
        "goqueue_consumer_session_timeouts_total",
        GROUP,
        "Members that fell silent for longer than their session.",
        _session_timeouts,
    ),
    counter(
        "goqueue_consumer_heartbeats_sent_total",
        GROUP,
        "Heartbeats that members have sent.",
        _of_groups("heartbeats"),
    ),
    counter(
        "goqueue_consumer_heartbeat_timeouts_total",
        GROUP,
        "The same as session timeouts, by the name that other editions of GoQueue use.",
        _session_timeouts,
    ),
    histogram(
        "goqueue_consumer_heartbeat_latency_seconds",
        GROUP,
        "How long a heartbeat took to be answered; where the broker assigns, with the wait for its journal.",
        _times("heartbeat_seconds"),
    ),
    counter("goqueue_consumer_polls_total", GROUP, "Polls of work queues answered.", _of_groups("polls")),
    counter(
        "goqueue_consumer_polls_empty_total",
        GROUP,
        "Polls that were answered with nothing.",
        _of_groups("polls_empty"),
    ),
    histogram(
        "goqueue_consumer_poll_latency_seconds",
        GROUP,
        "How long a poll took to find messages, without the wait for them.",
        _times("poll_seconds"),
    ),
    histogram(
        "goqueue_consumer_poll_batch_size",
        GROUP,
        "How many messages a poll was answered with.",
        _times("poll_messages"),
    ),
)
