"""A recorded history of transactions and what is wrong with it: a small checker.

Writers note how each transaction ended, readers note each message in the order of their polls. From that
alone it can be told whether somebody read what was aborted (G1a), whether a committed write is lost,
whether a transaction was torn, whether a message was stored twice, and whether a poll went backwards.
"""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class History:
    parts_each: int
    """How many messages a transaction has."""
    committed: set[str] = field(default_factory=set)
    aborted: set[str] = field(default_factory=set)
    reads: list[tuple[int, int, str, int]] = field(default_factory=list)
    """(partition, offset, transaction, number of the message in it), in the order of the polls."""

    def note_writer(self, lines: list[str]) -> None:
        """What a writer has printed: `committed name` or `aborted name`; others tell nothing for sure."""
        for line in lines:
            outcome, _, name = line.partition(" ")
            if outcome == "committed":
                self.committed.add(name)
            elif outcome == "aborted":
                self.aborted.add(name)

    def anomalies(self) -> list[str]:
        seen = Counter((name, part) for _, _, name, part in self.reads)
        parts = Counter(name for name, _ in seen)
        return [
            *(f"aborted read: {name}" for name in parts if name in self.aborted),
            *(f"lost write: {name}" for name in self.committed if name not in parts),
            *(f"torn transaction: {name}" for name, count in parts.items() if count != self.parts_each),
            *(f"duplicate: {name}/{part}" for (name, part), count in seen.items() if count > 1),
            *self._backward_polls(),
        ]

    def _backward_polls(self) -> list[str]:
        last: dict[int, int] = {}
        found = []
        for partition, offset, _, _ in self.reads:
            if offset <= last.get(partition, -1):
                found.append(f"non-monotonic poll: {partition} @{offset}")
            last[partition] = offset
        return found
