"""What the simulation remembers of a consumer group: offsets acknowledged, and those in doubt."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from goqueue.model.ids import TopicName, TopicPartition
from goqueue.testing.whole.partition_history import demand


class GroupHistory:
    """The offsets of one group. It changes them by one request at a time, so their order is certain."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.certain: dict[TopicPartition, int] = {}
        """What was acknowledged last, or seen since."""
        self._doubtful: dict[TopicPartition, set[int]] = {}
        """What was asked for since and never answered: it may be there or not."""
        self.requests = 0
        """Those under way. Two that are begun in the same turn do not see each other."""

    @property
    def is_busy(self) -> bool:
        return self.requests > 0

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While a request is under way that reads or changes the offsets."""
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    def ask(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """A change gets under way; what of it was not in doubt before."""
        fresh = {at: o for at, o in offsets.items() if o not in self._doubtful.get(at, ())}
        for target, offset in fresh.items():
            self._doubtful.setdefault(target, set()).add(offset)
        return fresh

    def withdraw(self, fresh: Mapping[TopicPartition, int]) -> None:
        """The broker has refused a change: what only it has brought into doubt may never be seen."""
        for target, offset in fresh.items():
            self._doubtful[target].discard(offset)

    def acknowledge(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The broker has given its word for a change."""
        for target, offset in offsets.items():
            self.certain[target] = offset
            self._doubtful.pop(target, None)

    def check(self, found: Mapping[TopicPartition, int], *, in_doubt: set[TopicName], is_alone: bool) -> None:
        """Compare with what the broker shows, which is certain from now on; some topics may be gone.

        Unless it is alone: then a change that is under way may yet come, and stays in doubt.
        """
        for target in {*self.certain, *found}:
            if target.topic in in_doubt:
                continue
            shown, promised = found.get(target), self.certain.get(target)
            demand(
                shown == promised or shown in self._doubtful.get(target, ()),
                f"group {self.name} shows offset {shown} for {target}, though {promised} was acknowledged",
            )
            if shown is not None:
                self.certain[target] = shown
            if is_alone:
                self._doubtful.pop(target, None)

    def forget(self, topic: TopicName) -> None:
        """The topic is gone, and a new one of the same name begins without offsets."""
        self.certain = {at: offset for at, offset in self.certain.items() if at.topic != topic}
        self._doubtful = {at: asked for at, asked in self._doubtful.items() if at.topic != topic}
