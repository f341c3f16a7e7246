"""Families about topics: what was published and read, and how their logs lie on the disk.

What only some topics ever do (delays, schemas, dead letters) is told of those that have done it, so that a
thousand plain topics stay a short page. What alerts look at is told of all from the beginning: a series
that begins with its first event hides that event from `increase`.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter

from goqueue.broker.measures.family import TOPIC, Family, Sample, counter, gauge, histogram, one
from goqueue.broker.measures.view import LogRow, View
from goqueue.core.telemetry.counters import OTHER, TopicCounters
from goqueue.core.telemetry.histogram import Histogram
from goqueue.model.delivery import DEAD_LETTER_SUFFIX

Read = Callable[[View], Iterable[Sample]]


def _of_all(field: str) -> Read:
    """A number of every topic of clients."""
    value: Callable[[TopicCounters], float] = attrgetter(field)
    return lambda view: [((name,), value(counts)) for name, counts in view.topics_of_clients()]


def _of_some(field: str) -> Read:
    """The same of those only that have it."""
    value: Callable[[TopicCounters], float] = attrgetter(field)
    return lambda view: [
        ((name,), found) for name, counts in view.topics_of_clients() if (found := value(counts))
    ]


def _of_logs(field: str) -> Read:
    """A number of every topic, those of the broker's own journals too."""
    value: Callable[[TopicCounters], float] = attrgetter(field)
    return lambda view: [((name,), value(counts)) for name, counts in view.counted_topics()]


def _times(field: str) -> Read:
    value: Callable[[TopicCounters], Histogram] = attrgetter(field)
    return lambda view: [
        ((name,), found) for name, counts in view.topics_of_clients() if (found := value(counts)).count
    ]


def _log(field: str) -> Read:
    """A number of logs as they are now."""
    value: Callable[[LogRow], float] = attrgetter(field)
    return lambda view: [(key, value(row)) for key, row in view.logs.items()]


def _failed(view: View) -> Iterable[Sample]:
    for name, counts in view.topics_of_clients():
        for code, count in counts.failed.items():
            yield (name, code), count


def _validations(view: View) -> Iterable[Sample]:
    for name, counts in view.topics_of_clients():
        if counts.check_seconds.count:
            yield (name, "success"), counts.valid
            yield (name, "failure"), counts.misfits


def _ack_times(view: View) -> Iterable[Sample]:
    for name, counts in view.topics_of_clients():
        for action, times in counts.ack_seconds.items():
            yield (name, action), times


def _served(view: View) -> Iterable[Sample]:
    return [((name,), counts.served_bytes) for name, counts in view.counted_topics() if counts.served_bytes]


def _segments_begun(view: View) -> Iterable[Sample]:
    """Of logs that are open, and of those that were."""
    for name, counts in view.counted_topics():
        row = view.topics.get(name)
        yield (name,), counts.segments_begun + (row.segments_begun if row else 0)


def _segments_removed(view: View) -> Iterable[Sample]:
    for name, counts in view.counted_topics():
        row = view.topics.get(name)
        if removed := counts.segments_removed + (row.segments_removed if row else 0):
            yield (name,), removed


def _look_ups(view: View) -> Iterable[Sample]:
    """Of logs that are open, and of those that were."""
    for name, counts in view.counted_topics():
        row = view.topics.get(name)
        for index_type, field in (("offset", "offset_look_ups"), ("time", "time_look_ups")):
            if count := getattr(counts, field) + (getattr(row, field) if row else 0):
                yield (name, index_type), count


def _partitions(view: View) -> Iterable[Sample]:
    counts: dict[str, int] = {}
    for name, count in view.broker.topic_counts.items():
        label = view.topic_label(name)
        counts[label] = counts.get(label, 0) + count
    return [((label,), count) for label, count in counts.items()]


def _lanes(view: View) -> Iterable[Sample]:
    return list(view.lanes.items())


def _dead_letters(view: View) -> Iterable[Sample]:
    """What lies in the topics of dead letters, told of the topics that it came from."""
    counts: dict[str, int] = {}
    for name in view.broker.topic_counts:
        if name.endswith(DEAD_LETTER_SUFFIX) and (row := view.topics.get(name)) is not None:
            source = name.removesuffix(DEAD_LETTER_SUFFIX)
            label = source if source in view.counters.topics else OTHER
            counts[label] = counts.get(label, 0) + row.commit_mark - row.start_offset
    return [((label,), count) for label, count in counts.items()]


BROKER = (
    gauge(
        "goqueue_broker_topic_count",
        (),
        "Topics of clients.",
        one(lambda view: len(view.broker.topic_counts)),
    ),
    gauge("goqueue_broker_topic_partitions", TOPIC, "Partitions of a topic.", _partitions),
    counter(
        "goqueue_broker_messages_published_total",
        TOPIC,
        "Messages stored since the start, through any door: published, due, moved or redriven.",
        _of_all("published"),
    ),
    counter(
        "goqueue_broker_bytes_published_total",
        TOPIC,
        "Bytes of the batches they came in, as stored.",
        _of_all("published_bytes"),
    ),
    counter(
        "goqueue_broker_priority_messages_published_total",
        ("topic", "priority"),
        "Messages stored, by lane.",
        _lanes,
    ),
    counter(
        "goqueue_broker_messages_failed_total",
        ("topic", "error_type"),
        "Messages that were refused, by the code of the error (errors.md); a batch of a Kafka producer "
        "or of a bulk write counts once. Topics that do not exist are counted under `_other`.",
        _failed,
    ),
    counter(
        "goqueue_broker_messages_redriven_total",
        TOPIC,
        "Dead letters that were sent back to the topic.",
        _of_some("redriven"),
    ),
    counter(
        "goqueue_broker_schema_validations_total",
        ("topic", "result"),
        "Messages held against the topic's schemas: success or failure.",
        _validations,
    ),
    counter(
        "goqueue_broker_delayed_messages_scheduled_total",
        TOPIC,
        "Messages that were stored to be delivered later.",
        _of_some("delayed"),
    ),
    counter(
        "goqueue_broker_delayed_messages_fired_total",
        TOPIC,
        "Delayed messages that fell due and were delivered.",
        _of_some("delays_fired"),
    ),
    counter(
        "goqueue_broker_delayed_messages_cancelled_total",
        TOPIC,
        "Delayed messages that were cancelled.",
        _of_some("delays_cancelled"),
    ),
    gauge("goqueue_queue_dead_letters", TOPIC, "Dead letters of a topic that are kept now.", _dead_letters),
    counter(
        "goqueue_broker_schema_checks_apart_total",
        TOPIC,
        "Messages that a helper process held against a schema, because it might take long.",
        _of_some("checked_elsewhere"),
    ),
    counter(
        "goqueue_broker_schema_checks_too_slow_total",
        TOPIC,
        "Messages that were refused because their schema took too long on them, or on others beside them.",
        _of_some("checks_too_slow"),
    ),
    histogram(
        "goqueue_broker_publish_latency_seconds",
        TOPIC,
        "From the append of a batch until the disk had it, or what its topic asks for instead; of publishes "
        "with acks=all, which wait for that.",
        _times("publish_seconds"),
    ),
    histogram(
        "goqueue_broker_fetch_latency_seconds",
        TOPIC,
        "How long reading a partition's log took, without the wait for messages to come.",
        _times("read_seconds"),
    ),
    histogram(
        "goqueue_broker_ack_latency_seconds",
        ("topic", "ack_type"),
        "How long ack, nack, reject or extend took until the disk had it.",
        _ack_times,
    ),
    histogram(
        "goqueue_broker_schema_validation_latency_seconds",
        TOPIC,
        "How long holding a batch against its schemas took.",
        _times("check_seconds"),
    ),
)

STORAGE: tuple[Family, ...] = (
    counter(
        "goqueue_storage_bytes_written_total",
        TOPIC,
        "Bytes appended to logs, those of the broker's journals included.",
        _of_logs("written_bytes"),
    ),
    counter("goqueue_storage_bytes_read_total", TOPIC, "Bytes read from logs.", _served),
    counter(
        "goqueue_storage_fsync_total",
        TOPIC,
        "Flushes: each covers all that waited for it.",
        _of_logs("fsyncs"),
    ),
    counter(
        "goqueue_storage_fsync_errors_total",
        TOPIC,
        "Flushes that failed. Each stops its partition until that has been opened anew.",
        _of_logs("fsync_errors"),
    ),
    counter("goqueue_storage_segments_created_total", TOPIC, "Segments begun.", _segments_begun),
    counter("goqueue_storage_segments_deleted_total", TOPIC, "Segments given up.", _segments_removed),
    gauge(
        "goqueue_storage_segments_total", TOPIC, "Segments there are.", _log("segments"), by_partition=True
    ),
    gauge(
        "goqueue_storage_segments_active",
        TOPIC,
        "Segments that are written to: one for each partition at work.",
        _log("active_segments"),
        by_partition=True,
    ),
    counter(
        "goqueue_storage_index_lookups_total",
        ("topic", "index_type"),
        "Times that a sparse index was asked where to begin to look, by index: offset or time. Readers that "
        "go on where they were need none.",
        _look_ups,
    ),
    gauge("goqueue_storage_log_size_bytes", TOPIC, "Bytes on disk.", _log("size_bytes"), by_partition=True),
    gauge(
        "goqueue_storage_log_start_offset",
        TOPIC,
        "First offsets that can be read, summed over partitions.",
        _log("start_offset"),
        by_partition=True,
    ),
    gauge(
        "goqueue_storage_log_end_offset",
        TOPIC,
        "Offsets behind the last message, summed over partitions.",
        _log("end_offset"),
        by_partition=True,
    ),
    gauge(
        "goqueue_cluster_high_watermark",
        TOPIC,
        "Offsets before which readers see messages, summed over partitions. On one node what is on the disk.",
        _log("commit_mark"),
        by_partition=True,
    ),
)
