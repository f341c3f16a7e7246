"""What one simulation knows from its seed to its end, across all the lives of its broker."""

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from uuid import UUID

from goqueue.model.groups import Sharing
from goqueue.model.ids import ProducerId, TopicName
from goqueue.model.messages import Acks
from goqueue.testing.whole.group_history import GroupHistory
from goqueue.testing.whole.history import TopicHistory
from goqueue.testing.whole.member_history import MemberGroup
from goqueue.testing.whole.partition_history import PartitionHistory
from goqueue.testing.whole.workload import Messages, SimulatedProducer

GROUP_NAMES = ("audit", "billing")
MEMBER_GROUPS = (("movers", Sharing.COOPERATIVE), ("workers", Sharing.EAGER))
TOPIC_NAMES = tuple(TopicName(name) for name in ("orders", "clicks", "mail"))


class Story:
    """The chances, the topics, the producers, and a count of all that happened."""

    def __init__(
        self,
        seed: int,
        steps: int,
        *,
        has_groups: bool = True,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.random = Random(seed)
        # Chances of their own: what readers do changes nothing in what the others do.
        self.group_random = Random(f"groups {seed}")
        self.groups = [GroupHistory(name) for name in GROUP_NAMES] if has_groups else []
        self.member_groups = [MemberGroup(*group) for group in MEMBER_GROUPS] if has_groups else []
        self.steps_left = steps
        self.messages = Messages(self.random)
        self.topics: dict[TopicName, TopicHistory] = {}
        self.producers: list[SimulatedProducer] = []
        self.producer_ids: set[ProducerId] = set()
        self.leader_epochs: dict[tuple[UUID, int], int] = {}
        self.cluster_id = ""
        self.wall_ms_max = 0
        self.counts: Counter[str] = Counter()
        self._tell = tell

    def partitions(self) -> Iterator[PartitionHistory]:
        for topic in self.topics.values():
            yield from topic.partitions

    def choose_topic(self, random: Random | None = None) -> TopicHistory | None:
        """A topic that clients know of."""
        topics = [topic for topic in self.topics.values() if topic.partitions]
        return (random or self.random).choice(topics) if topics else None

    def choose_partition(self) -> PartitionHistory | None:
        topic = self.choose_topic()
        return self.random.choice(topic.partitions) if topic else None

    def forget(self, topic: TopicHistory) -> None:
        """The topic is gone, and so are its producers, and the offsets of its readers."""
        del self.topics[topic.name]
        for group in (*self.groups, *self.member_groups):
            group.forget(topic.name)
        self.producers = [p for p in self.producers if p.partition not in topic.partitions]

    def note_time(self, wall_ms: int) -> None:
        self.wall_ms_max = max(self.wall_ms_max, wall_ms)

    def note_restart(self, *, has_lost_power: bool) -> None:
        """What was under way is not any more; its producers will send it again."""
        for group in (*self.groups, *self.member_groups):
            group.requests = 0
        for member in (member for group in self.member_groups for member in group.members):
            member.is_busy = False
        for producer in self.producers:
            producer.failed()
            if (has_lost_power and producer.acks is not Acks.ALL) or producer.partition.rotten:
                producer.may_miss_some = True

    def note(self, what: str, detail: object = "") -> None:
        """Count a step, and tell it to whoever listens."""
        self.counts[what] += 1
        if self._tell is not None:
            self._tell(f"{what} {detail}".rstrip())

    def is_chosen(self, share: float) -> bool:
        """True in that share of all cases."""
        return self.random.random() < share
