"""What the broker knows of compaction: what was done since it started, and what cannot be compacted."""

import asyncio
from dataclasses import dataclass, field

from goqueue.log.partition_log import PartitionLog
from goqueue.model.ids import TopicPartition


@dataclass(slots=True)
class Compaction:
    rounds: int = 0
    read_bytes: int = 0
    freed_bytes: int = 0
    removed_records: int = 0
    keys_bytes: int = 0
    """What the round at work takes for its keys."""
    uncleanable: dict[TopicPartition, tuple[PartitionLog, str]] = field(default_factory=dict)
    """Partitions with something in them that cannot be read, and what: until they are opened anew."""
    at_work: dict[TopicPartition, asyncio.Event] = field(default_factory=dict)
    """Partitions that are compacted now, and what tells when that is over."""

    def why_not(self, source: TopicPartition, log: PartitionLog) -> str | None:
        """Why a partition is not compacted; None: it can be."""
        known = self.uncleanable.get(source)
        if known is not None and known[0] is not log:
            del self.uncleanable[source]  # it was opened anew: it may have been mended
            known = None
        return None if known is None else known[1]
