"""How far a group has read: committed offsets by topic and partition."""

from collections.abc import Collection, Iterator
from uuid import UUID

from goqueue.model.groups import OffsetRow, TopicOffsets
from goqueue.model.ids import TopicName


class CommittedOffsets:
    """The offsets of one group. A topic that was deleted and made anew begins without any."""

    def __init__(self) -> None:
        self._topics: dict[TopicName, tuple[UUID, dict[int, OffsetRow], set[int]]] = {}
        """With the partitions whose offset was merely named."""

    def __bool__(self) -> bool:
        return bool(self._topics)

    def of(self, topic: TopicName, topic_id: UUID) -> dict[int, OffsetRow]:
        """What was committed for a topic, by partition."""
        known = self._topics.get(topic)
        return known[1] if known is not None and known[0] == topic_id else {}

    def ahead_of(self, topic: TopicName, topic_id: UUID) -> Collection[int]:
        """Partitions of a topic whose offset was merely named, before anybody had been shown so much."""
        known = self._topics.get(topic)
        return known[2] if known is not None and known[0] == topic_id else ()

    def topics(self) -> Iterator[TopicOffsets]:
        for topic, (topic_id, rows, ahead) in self._topics.items():
            yield TopicOffsets(topic, topic_id, tuple(rows.values()), tuple(sorted(ahead)))

    def commit(self, topics: Collection[TopicOffsets]) -> None:
        for topic, topic_id, rows, ahead in topics:
            known = self._topics.get(topic)
            if known is None or known[0] != topic_id:
                known = self._topics[topic] = (topic_id, {}, set())
            known[1].update({row[0]: row for row in rows})
            if known[2]:
                known[2].difference_update([row[0] for row in rows])
            known[2].update(ahead)

    def delete(self, topic: TopicName, partitions: Collection[int]) -> None:
        known = self._topics.get(topic)
        if known is not None:
            for partition in partitions:
                known[1].pop(partition, None)
            known[2].difference_update(partitions)
            if not known[1]:
                del self._topics[topic]
