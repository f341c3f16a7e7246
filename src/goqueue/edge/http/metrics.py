"""GET /metrics: the numbers that are really kept, in Prometheus' text format.

Written by hand, because every value is read from the broker at the moment of asking: there is no
registry of counters that could disagree with it. Offsets are summed over the partitions of a topic,
so that end offset minus committed offset, both summed, is still the lag.
"""

import resource
import time
from collections.abc import Iterable, Iterator

from goqueue.broker.broker import Broker
from goqueue.broker.topics import list_topics
from goqueue.edge.http.topics import size_of
from goqueue.model.commands import TopicView

CONTENT_TYPE = "text/plain; version=0.0.4"

Sample = tuple[str, float]


def metrics_text(broker: Broker) -> str:
    """All metrics, one family after the other."""
    topics = list_topics(broker)
    return "".join(
        (
            _family(
                "process_cpu_seconds_total",
                "counter",
                "CPU time of the process.",
                _plain(time.process_time()),
            ),
            _family("process_resident_memory_bytes", "gauge", "Memory in use.", _plain(_resident_bytes())),
            _family("goqueue_broker_topic_count", "gauge", "Topics of clients.", _plain(len(topics))),
            _family(
                "goqueue_broker_topic_partitions",
                "gauge",
                "Partitions of a topic.",
                ((_label(topic), len(topic.partitions)) for topic in topics),
            ),
            _family(
                "goqueue_broker_messages_published_total",
                "counter",
                "Messages ever stored in a topic, through any door.",
                ((_label(topic), _end_offset(topic)) for topic in topics),
            ),
            _family(
                "goqueue_storage_log_start_offset",
                "gauge",
                "First offsets that can be read, summed over partitions.",
                ((_label(topic), _start_offset(topic)) for topic in topics),
            ),
            _family(
                "goqueue_storage_log_end_offset",
                "gauge",
                "Offsets behind the last message, summed over partitions.",
                ((_label(topic), _end_offset(topic)) for topic in topics),
            ),
            _family(
                "goqueue_storage_log_size_bytes",
                "gauge",
                "Bytes on disk.",
                ((_label(topic), size_of(topic)) for topic in topics),
            ),
        )
    )


def _family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {text}\n# TYPE {name} {kind}\n"]
    lines += [f"{name}{labels} {value}\n" for labels, value in samples]
    return "".join(lines)


def _plain(value: float) -> Iterator[Sample]:
    yield "", value


def _label(topic: TopicView) -> str:
    # Topic names hold only letters, digits and ._- so there is nothing to escape.
    return f'{{topic="{topic.name}"}}'


def _start_offset(topic: TopicView) -> int:
    return sum(partition.start_offset for partition in topic.partitions)


def _end_offset(topic: TopicView) -> int:
    return sum(partition.end_offset for partition in topic.partitions)


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as pages:
            return int(pages.read().split()[1]) * resource.getpagesize()
    except OSError:  # not Linux: the peak is the nearest that can be had, in KiB
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
