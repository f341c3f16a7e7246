"""An image of a cluster and the keys it follows, for tests of what the controller decides."""

from collections.abc import Mapping
from uuid import UUID

from goqueue.core.cluster import values
from goqueue.core.cluster.controller import bundle, decide
from goqueue.core.cluster.metadata import Metadata
from goqueue.core.cluster.values import (
    Topic,
    encode,
    member_key,
    name_key,
    node_key,
    order_key,
    part_key,
    topic_key,
)
from goqueue.model.cluster import (
    ABSENT,
    Change,
    Guard,
    Member,
    Move,
    NodeId,
    NodeRecord,
    NodeState,
    Order,
    OrderKind,
    PartitionRecord,
    Step,
)
from goqueue.model.ids import TopicName
from goqueue.model.settings import TopicSettings

A, B, C, D = (NodeId(name) for name in "abcd")


class ClusterWorld:
    def __init__(self) -> None:
        self.image = Metadata()
        self._revisions: dict[str, int] = {}
        self.put(values.CONTROLLER, values.ControllerSeat(A))

    def put(self, key: str, value: object) -> None:
        self._make({key: encode(value)}, ())

    def drop(self, key: str) -> None:
        self._make({}, (key,))

    def register(self, node: NodeId, *, rack: str = "") -> None:
        """The node is there from now on, anew if it was, and ready."""
        if node in self.image.nodes:
            self.leave(node)
        if node not in self.image.members:
            self.put(member_key(node), Member(folder_id=f"folder of {node}"))
        self.put(node_key(node), NodeRecord(folder_id=f"folder of {node}", rack=rack))
        self.change_state(node, NodeState.READY)

    def change_state(self, node: NodeId, state: NodeState) -> None:
        record = self.image.nodes[node]
        now = NodeRecord(
            folder_id=record.folder_id,
            rack=record.rack,
            state=state,
            incarnation=self.image.incarnation(node),
        )
        self.put(node_key(node), now)

    def leave(self, node: NodeId) -> None:
        self.drop(node_key(node))

    def add_topic(self, name: str, *records: PartitionRecord) -> Topic:
        topic_id = UUID(int=1000 + len(self.image.topics))
        topic = Topic(TopicName(name), topic_id, len(records), TopicSettings(), 0)
        for number, record in enumerate(records):
            self.put(part_key(topic_id, number), record)
        self._make({name_key(name): encode(topic_id), topic_key(topic_id): encode(topic)}, ())
        return topic

    def order(self, order_id: str, order: Order) -> None:
        self.put(order_key(order_id), order)

    def reassign(
        self, order_id: str, topic: Topic, moves: Mapping[int, tuple[NodeId, ...]], **more: int
    ) -> None:
        """Order partitions to be moved."""
        wanted = [
            Move(
                topic_id=topic.topic_id,
                partition=number,
                replicas=replicas,
                before=self.record(topic, number).replicas,
            )
            for number, replicas in moves.items()
        ]
        self.order(order_id, Order(kind=OrderKind.REASSIGN, moves=tuple(wanted), **more))  # type: ignore[arg-type]

    def led_by(self, leader: NodeId, *replicas: NodeId, epoch: int = 4) -> PartitionRecord:
        """A partition of which all replicas are in sync."""
        return PartitionRecord(
            leader=leader,
            epoch=epoch,
            replicas=replicas,
            isr=replicas,
            incarnation=self.image.incarnation(leader),
        )

    def record(self, topic: Topic, number: int = 0) -> PartitionRecord:
        return self.image.records[topic.topic_id, number]

    def set_record(self, topic: Topic, record: PartitionRecord, number: int = 0) -> None:
        self.put(part_key(topic.topic_id, number), record)

    def decide(self, *, balances: bool = False, now_ms: int = 0) -> int:
        """Do what the controller decides; returns how many steps it were."""
        steps = decide(self.image, balances=balances, now_ms=now_ms)
        for step in bundle(steps):
            self.make(step)
        return len(steps)

    def make(self, step: Step[None]) -> None:
        for guard in step.guards:
            assert guard == Guard(guard.key, self._revisions.get(guard.key, ABSENT)), (
                "decided on the newest image"
            )
        assert Guard(values.CONTROLLER, self._revisions[values.CONTROLLER]) in step.guards
        self._make(step.puts, step.drops)

    def _make(self, puts: Mapping[str, bytes], drops: tuple[str, ...]) -> None:
        revision = self.image.revision + 1
        self._revisions |= dict.fromkeys(puts, revision)
        for key in drops:
            del self._revisions[key]
        self.image.follow(Change(revision, puts, drops))
