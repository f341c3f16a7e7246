"""How far a group has read: committed offsets by topic and partition."""

from collections.abc import Collection, Iterator
from uuid import UUID

from goqueue.model.groups import OffsetRow, TopicOffsets
from goqueue.model.ids import TopicName


class CommittedOffsets:
    """The offsets of one group. A topic that was deleted and made anew begins without any."""

    def __init__(self) -> None:
        self._topics: dict[TopicName, tuple[UUID, dict[int, OffsetRow]]] = {}

    def __bool__(self) -> bool:
        return bool(self._topics)

    def of(self, topic: TopicName, topic_id: UUID) -> dict[int, OffsetRow]:
        """What was committed for a topic, by partition."""
        known = self._topics.get(topic)
        return known[1] if known is not None and known[0] == topic_id else {}

    def topics(self) -> Iterator[TopicOffsets]:
        for topic, (topic_id, rows) in self._topics.items():
            yield TopicOffsets(topic, topic_id, tuple(rows.values()))

    def commit(self, topics: Collection[TopicOffsets]) -> None:
        for topic, topic_id, rows in topics:
            known = self._topics.get(topic)
            if known is None or known[0] != topic_id:
                known = self._topics[topic] = (topic_id, {})
            known[1].update({row[0]: row for row in rows})

    def delete(self, topic: TopicName, partitions: Collection[int]) -> None:
        known = self._topics.get(topic)
        if known is not None:
            for partition in partitions:
                known[1].pop(partition, None)
            if not known[1]:
                del self._topics[topic]
