"""Simulated administrators: topics are made, changed, enlarged and deleted, and none of it is forgotten."""

from goqueue.broker.broker import Broker
from goqueue.broker.topics.verbs import add_partitions, alter_settings, create_topic, delete_topic
from goqueue.model.settings import UNLIMITED
from goqueue.model.topics import AddPartitions, AlterSettings, CreateTopic, DeleteTopic, SettingChange
from goqueue.testing.whole.history import Shape, TopicHistory
from goqueue.testing.whole.story import TOPIC_NAMES, Story

PARTITIONS_MAX = 4
SEGMENT_BYTES = (4_096, 4_096, 10_000, 100_000)
RETENTION_MS = (UNLIMITED, UNLIMITED, 20_000, 120_000)
RETENTION_BYTES = (UNLIMITED, UNLIMITED, UNLIMITED, 12_000, 50_000)


class TopicChanges:
    """What administrators do in one life of a broker."""

    def __init__(self, story: Story, broker: Broker) -> None:
        self._story = story
        self._random = story.random
        self._broker = broker

    async def change(self) -> None:
        """One change of one topic, whichever makes sense."""
        absent = [name for name in TOPIC_NAMES if name not in self._story.topics]
        topic = self._story.choose_topic()
        if topic is None or (absent and self._story.is_chosen(0.4)):
            if absent:
                await self._create(TopicHistory(self._random.choice(absent)))
        elif self._story.is_chosen(0.15):
            await self._delete(topic)
        elif self._story.is_chosen(0.5) and len(topic.partitions) < PARTITIONS_MAX:
            await self._enlarge(topic)
        else:
            await self._alter(topic)

    async def _create(self, topic: TopicHistory) -> None:
        shape = self._some_shape(partitions=self._random.randint(1, PARTITIONS_MAX))
        self._story.note("create topic", f"{topic.name} {shape}")
        self._story.topics[topic.name] = topic
        topic.may_become(shape)
        command = CreateTopic(name=topic.name, partitions=shape.partitions, settings=_as_settings(shape))
        topic.has_become(await create_topic(self._broker, command))

    async def _delete(self, topic: TopicHistory) -> None:
        self._story.note("delete topic", topic.name)
        topic.may_become(None)
        await delete_topic(self._broker, DeleteTopic(name=topic.name))
        self._story.forget(topic)

    async def _enlarge(self, topic: TopicHistory) -> None:
        shape = self._shape_now(topic)
        if shape is None:
            return
        total = self._random.randint(shape.partitions + 1, PARTITIONS_MAX)
        self._story.note("add partitions", f"{topic.name} {total}")
        topic.may_become(shape._replace(partitions=total))
        topic.has_become(await add_partitions(self._broker, AddPartitions(name=topic.name, total=total)))

    async def _alter(self, topic: TopicHistory) -> None:
        before = self._shape_now(topic)
        if before is None:
            return
        shape = self._some_shape(partitions=before.partitions)
        self._story.note("alter settings", f"{topic.name} {shape}")
        topic.may_become(shape)
        changes = [SettingChange(name, value) for name, value in _as_settings(shape).items()]
        topic.has_become(await alter_settings(self._broker, AlterSettings(name=topic.name, changes=changes)))

    def _shape_now(self, topic: TopicHistory) -> Shape | None:
        """What the topic looks like, if an earlier change that failed leaves no doubt."""
        return next(iter(topic.shapes)) if len(topic.shapes) == 1 else None

    def _some_shape(self, *, partitions: int) -> Shape:
        return Shape(
            partitions=partitions,
            retention_ms=self._random.choice(RETENTION_MS),
            retention_bytes=self._random.choice(RETENTION_BYTES),
            segment_bytes=self._random.choice(SEGMENT_BYTES),
        )


def _as_settings(shape: Shape) -> dict[str, str | None]:
    return {
        "retention.ms": str(shape.retention_ms),
        "retention.bytes": str(shape.retention_bytes),
        "segment.bytes": str(shape.segment_bytes),
    }
