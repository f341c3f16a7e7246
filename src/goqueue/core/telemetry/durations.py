"""How long a stage took, where an earlier span of the same message tells when it began.

An fsync began with the write, and what ends a lease began with the lease.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from goqueue.model.telemetry import Span, Stage

_ENDS_A_LEASE = frozenset({Stage.ACKED, Stage.NACKED, Stage.REJECTED, Stage.EXPIRED})


@dataclass(slots=True)
class Beginnings:
    """What spans so far have told of one message at one place."""

    stored_us: int | None = None
    leased_us: dict[str, int] = field(default_factory=dict)

    def timed(self, span: Span) -> Span:
        """The next span of the message, with its duration where that is known."""
        began_us: int | None = None
        if span.stage is Stage.PARTITIONED:
            self.stored_us = span.time_us
        elif span.stage is Stage.PERSISTED:
            began_us = self.stored_us
        elif span.stage is Stage.FETCHED and span.group:
            self.leased_us[span.group] = span.time_us
        elif span.stage in _ENDS_A_LEASE:
            began_us = self.leased_us.pop(span.group, None)
        if began_us is None or began_us > span.time_us:
            return span
        return replace(span, duration_us=span.time_us - began_us)


def with_durations(spans: Iterable[Span]) -> list[Span]:
    """Spans of a story in order of time, with the durations that they tell together."""
    places: dict[tuple[str, int, int], Beginnings] = defaultdict(Beginnings)
    return [places[span.topic, span.partition, span.offset].timed(span) for span in spans]
