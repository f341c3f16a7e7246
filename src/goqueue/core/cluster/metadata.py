"""What is agreed, as one node sees it: topics and what is known of them, epochs of partitions, producer ids.

The image is built from what a store held and what changed in it since, and from nothing else. Each method
that decides something looks at the image and answers with a step: the change, guarded by the revisions of
what it was decided on. Nothing here changes until the store has taken the step and tells of it.

Every partition has an epoch of its own, which rises with each start of the node and whenever the partition
alone is opened anew. That all of them rise with a start is one number, `starts`: ten thousand partitions cost
one key. So an epoch is what the partition's record says, or 1 when its topic was made, and the starts since.
"""

from dataclasses import replace
from uuid import UUID

from goqueue.core.cluster import values
from goqueue.core.cluster.values import Topic, encode, name_key, part_key, topic_key
from goqueue.model.cluster import (
    ABSENT,
    NO_INCARNATION,
    Change,
    Guard,
    Incarnation,
    Loaded,
    Member,
    NodeId,
    NodeRecord,
    Order,
    PartitionRecord,
    Step,
)
from goqueue.model.errors import InvalidPartitionCount, TopicExists, TopicNotFound
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import TopicSettings

PRODUCER_IDS_RESERVED = 1_000
"""Ids are set aside in blocks: a crash wastes the rest of one, and no id is ever given twice."""


class Metadata:
    """The agreed state of a cluster; on one node, of that node."""

    def __init__(self, node_id: str = "") -> None:
        self._node_id = NodeId(node_id)
        self._reset()

    def _reset(self) -> None:
        self.revision = 0
        self.cluster_id = ""
        self.starts = 0
        self.topics: dict[TopicName, Topic] = {}
        self.names: dict[UUID, TopicName] = {}
        self.deleted: dict[TopicName, Topic] = {}
        self.journals: set[str] = set()
        self.producer_ids_end = 1
        self.is_commit_mark_kept = False
        self.nodes: dict[NodeId, NodeRecord] = {}
        self.members: dict[NodeId, Member] = {}
        self.controller: NodeId | None = None
        self.orders: dict[str, Order] = {}
        self.records: dict[tuple[UUID, int], PartitionRecord] = {}
        """Of partitions that have one of their own, by topic id and number."""
        self._revisions: dict[str, int] = {}
        self._gone: list[TopicName] = []

    def load(self, loaded: Loaded) -> None:
        """Begin with all that a store holds."""
        self._reset()
        for key, item in loaded.items.items():
            self._put(key, item.value, item.revision)
        self.revision = loaded.revision

    def follow(self, change: Change) -> list[TopicName]:
        """Take what has changed; returns the topics that are gone by it."""
        self._gone = []
        for key, value in change.puts.items():
            self._put(key, value, change.revision)
        for key in change.drops:
            self._drop(key)
        self.revision = change.revision
        return self._gone

    def topic(self, name: str) -> Topic:
        topic = self.topics.get(TopicName(name))
        if topic is None:
            raise TopicNotFound(name)
        return topic

    def guard(self, key: str) -> Guard:
        """A key as it is known here, for a step that rests on it."""
        return Guard(key, self._revisions.get(key, ABSENT))

    def record(self, topic: Topic, number: int) -> PartitionRecord:
        """Who leads a partition; without a record of its own it is the one node, since the topic was made."""
        found = self.records.get((topic.topic_id, number))
        return self._alone(1, topic.starts_before + 1) if found is None else found

    def incarnation(self, node: NodeId) -> Incarnation:
        """Which registration of a node there is; NO_INCARNATION: it is not alive."""
        record = self.nodes.get(node)
        if record is None:
            return NO_INCARNATION
        # Until the node has written it down, there has been one write, whose revision it is.
        return record.incarnation or Incarnation(self._revisions[values.node_key(node)])

    def epoch(self, topic: Topic, number: int) -> int:
        """The epoch that a partition is in; 1 when its topic has just been made."""
        record = self.record(topic, number)
        # A controller's records say it all; only the one node counts its starts.
        return record.epoch + self.starts - record.starts if record.starts else record.epoch

    def form_cluster(self, cluster_id: str) -> Step[None]:
        return self._put_step(values.CLUSTER, encode(values.Cluster(cluster_id)))

    def note_start(self) -> Step[None]:
        return self._put_step(values.STARTS, encode(values.Starts(self.starts + 1)))

    def begin_journal(self, name: str) -> Step[None]:
        return self._put_step(values.JOURNALS + name, encode(values.Begun()))

    def keep_commit_mark(self) -> Step[None]:
        return self._put_step(values.COMMIT_MARK, encode(values.Begun()))

    def reserve_producer_ids(self, taken_by: str) -> Step[range]:
        end = self.producer_ids_end + PRODUCER_IDS_RESERVED
        return Step(
            range(self.producer_ids_end, end),
            (self.guard(values.PRODUCER_IDS),),
            {values.PRODUCER_IDS: encode(values.ProducerIds(end, taken_by))},
        )

    def new_topic(
        self,
        name: TopicName,
        *,
        topic_id: UUID,
        partitions: int,
        settings: TopicSettings,
        partitions_max: int,
        now_ms: int,
    ) -> Topic:
        """A topic as it would be; see `create_topic`."""
        if name in self.topics or name in self.deleted:
            raise TopicExists(name)
        _check_partition_count(partitions, partitions_max)
        return Topic(name, topic_id, partitions, settings, now_ms, self.starts - 1)

    def create_topic(self, topic: Topic) -> Step[None]:
        if topic.name in self.topics or topic.name in self.deleted:
            raise TopicExists(topic.name)
        name, key = name_key(topic.name), topic_key(topic.topic_id)
        puts = {name: encode(topic.topic_id), key: encode(topic)}
        return Step(None, (self.guard(name), self.guard(key)), puts)

    def check_growth(self, name: str, total: int, *, partitions_max: int) -> None:
        topic = self.topic(name)
        if total <= topic.partitions:
            raise InvalidPartitionCount(
                f"topic {name} has {topic.partitions} partitions; they can only become more, not {total}"
            )
        _check_partition_count(total, partitions_max)

    def add_partitions(self, name: str, total: int) -> Step[None]:
        return self._topic_step(replace(self.topic(name), partitions=total))

    def change_settings(self, name: str, settings: TopicSettings) -> Step[None]:
        return self._topic_step(replace(self.topic(name), settings=settings))

    def delete_topic(self, name: str) -> Step[Topic]:
        """The topic is gone for everybody; its folder is still to be removed."""
        topic = self.topic(name)
        step = self._topic_step(replace(topic, is_deleted=True))
        return Step(topic, step.guards, step.puts)

    def remove_topic(self, topic: Topic) -> Step[None]:
        """The folder of a deleted topic is gone too: its name is free again."""
        keys = [part_key(*place) for place in self.records if place[0] == topic.topic_id]
        name, key = name_key(topic.name), topic_key(topic.topic_id)
        return Step(None, (self.guard(name), self.guard(key)), {}, (name, key, *keys))

    def raise_epoch(self, source: TopicPartition, *, above: int) -> Step[int]:
        """The next epoch of a partition, and one that is higher than another in which it was written to."""
        topic = self.topic(source.topic)
        epoch = max(self.epoch(topic, source.partition), above) + 1
        key = part_key(topic.topic_id, source.partition)
        # The topic is guarded too: a partition of one that is deleted meanwhile gets no record.
        guards = (self.guard(topic_key(topic.topic_id)), self.guard(key))
        return Step(epoch, guards, {key: encode(self._alone(epoch, self.starts))})

    def _alone(self, epoch: int, starts: int) -> PartitionRecord:
        """A partition of the one node there is."""
        alone = (self._node_id,)
        return PartitionRecord(leader=self._node_id, epoch=epoch, replicas=alone, isr=alone, starts=starts)

    def _topic_step(self, topic: Topic) -> Step[None]:
        return self._put_step(topic_key(topic.topic_id), encode(topic))

    def _put_step(self, key: str, value: bytes) -> Step[None]:
        return Step(None, (self.guard(key),), {key: value})

    def _put(self, key: str, value: bytes, revision: int) -> None:
        self._revisions[key] = revision
        if key.startswith(values.TOPICS):
            self._put_topic(values.decode_topic(value))
        elif key.startswith(values.PARTS):
            self.records[values.parsed_part_key(key)] = values.decode_part(value)
        elif key.startswith(values.NODES):
            self.nodes[NodeId(key.removeprefix(values.NODES))] = values.decode_node(value)
        elif key.startswith(values.MEMBERS):
            self.members[NodeId(key.removeprefix(values.MEMBERS))] = values.decode_member(value)
        elif key.startswith(values.ORDERS):
            self.orders[key.removeprefix(values.ORDERS)] = values.decode_order(value)
        elif key == values.CONTROLLER:
            self.controller = values.decode_controller(value).node
        elif key.startswith(values.JOURNALS):
            self.journals.add(key.removeprefix(values.JOURNALS))
        elif key == values.PRODUCER_IDS:
            self.producer_ids_end = values.decode_producer_ids(value).end
        elif key == values.STARTS:
            self.starts = values.decode_starts(value).count
        elif key == values.CLUSTER:
            self.cluster_id = values.decode_cluster(value).cluster_id
        elif key == values.COMMIT_MARK:
            self.is_commit_mark_kept = True

    def _put_topic(self, topic: Topic) -> None:
        if topic.is_deleted:
            if self.topics.pop(topic.name, None) is not None:
                self._gone.append(topic.name)
            self.names.pop(topic.topic_id, None)
            self.deleted[topic.name] = topic
        else:
            self.topics[topic.name] = topic
            self.names[topic.topic_id] = topic.name

    def _drop(self, key: str) -> None:
        self._revisions.pop(key, None)
        if key.startswith(values.NAMES):
            # A name is dropped with its topic, once the folder is gone.
            self.deleted.pop(TopicName(key.removeprefix(values.NAMES)), None)
        elif key.startswith(values.PARTS):
            self.records.pop(values.parsed_part_key(key), None)
        elif key.startswith(values.NODES):
            self.nodes.pop(NodeId(key.removeprefix(values.NODES)), None)
        elif key.startswith(values.MEMBERS):
            self.members.pop(NodeId(key.removeprefix(values.MEMBERS)), None)
        elif key.startswith(values.ORDERS):
            self.orders.pop(key.removeprefix(values.ORDERS), None)
        elif key == values.CONTROLLER:
            self.controller = None


def _check_partition_count(partitions: int, partitions_max: int) -> None:
    if not 1 <= partitions <= partitions_max:
        raise InvalidPartitionCount(f"a topic has 1 to {partitions_max} partitions, not {partitions}")
