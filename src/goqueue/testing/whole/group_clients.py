"""Simulated readers: they commit offsets, look at them and are sent elsewhere, and nothing of it is lost."""

from random import Random

from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import commit_offsets, fetch_offsets
from goqueue.broker.groups.reset_offsets import reset_offsets
from goqueue.model.commands import Spot
from goqueue.model.errors import GoQueueError, GroupNotFound, NotFound, OffsetOutOfRange
from goqueue.model.group_commands import CommitOffsets, FetchOffsets, ResetOffsets
from goqueue.model.groups import NO_GENERATION, Membership, OffsetRow, TopicCommit
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.testing.rooms.answers import Answers
from goqueue.testing.whole.group_history import GroupHistory
from goqueue.testing.whole.partition_history import demand
from goqueue.testing.whole.story import Story

STEP_SHARE = 0.4
"""How many steps of the others are followed by one of a reader."""


class GroupClients:
    """What readers without members do in one life of a broker."""

    def __init__(self, story: Story, broker: Broker, answers: Answers) -> None:
        self._story = story
        self._random = story.group_random
        self._broker = broker
        self._answers = answers

    async def act(self) -> None:
        """One step of one group, if it is not waiting for an answer."""
        if not self._story.groups or self._random.random() >= STEP_SHARE:
            return
        group = self._random.choice(self._story.groups)
        if group.is_busy:
            return
        (step,) = self._random.choices((self._commit, self._fetch, self._reset), (6, 2, 1))
        self._answers.start(step(group))

    async def _commit(self, group: GroupHistory) -> None:
        offsets = some_offsets(self._random, self._story, group)
        if not offsets:
            return
        self._story.note("commit offsets", f"{group.name} {len(offsets)} partitions")
        with group.busy():
            group.ask(offsets)
            who = Membership(group.name, "", NO_GENERATION)
            refusals = await commit_offsets(self._broker, CommitOffsets(who, commits_of(offsets)))
            if self._answers.has_power:
                for target, refusal in refusals.items():
                    permit_absence(self._story, self._answers, target.topic, refusal)
                group.acknowledge({at: o for at, o in offsets.items() if at not in refusals})

    async def _fetch(self, group: GroupHistory) -> None:
        self._story.note("fetch offsets", group.name)
        with group.busy():
            await check_offsets(self._broker, self._story, group)

    async def _reset(self, group: GroupHistory) -> None:
        """Look where the ends of a topic are, and send the group to one of them."""
        topic = self._story.choose_topic(self._random)
        if topic is None:
            return
        spot = self._random.choice((Spot.EARLIEST, Spot.LATEST))
        self._story.note("reset offsets", f"{group.name} {topic.name} {spot.value}")
        look = ResetOffsets(group=group.name, topics=[topic.name], spot=spot, is_dry_run=True)
        with group.busy():
            try:
                told = await reset_offsets(self._broker, look)
                offsets = {TopicPartition(r.topic, r.partition): r.new_offset for r in told}
                group.ask(offsets)
                await reset_offsets(self._broker, ResetOffsets(group=group.name, offsets=offsets))
            except GroupNotFound:
                demand(not group.certain, f"group {group.name} is not there, though {group.certain} stand")
                return
            except NotFound as error:
                permit_absence(self._story, self._answers, topic.name, error)
                return
            except OffsetOutOfRange:
                return  # retention has moved the start meanwhile, or a failed fsync the end
            if self._answers.has_power:
                group.acknowledge(offsets)


def some_offsets(random: Random, story: Story, group: GroupHistory) -> dict[TopicPartition, int]:
    """Offsets a little further than those that are certain, for a few partitions."""
    targets = [partition.source for partition in story.partitions()]
    chosen = random.sample(targets, random.randint(1, len(targets))) if targets else []
    return {target: group.certain.get(target, 0) + random.randint(0, 5) for target in chosen}


def commits_of(offsets: dict[TopicPartition, int]) -> list[TopicCommit]:
    rows: dict[TopicName, list[OffsetRow]] = {}
    for (topic, partition), offset in offsets.items():
        rows.setdefault(topic, []).append((partition, offset, -1, ""))
    return [TopicCommit(topic, of_topic) for topic, of_topic in rows.items()]


async def check_groups(broker: Broker, story: Story) -> None:
    """Everything about groups that must hold whenever a broker has opened."""
    for group in (*story.groups, *story.member_groups):
        await check_offsets(broker, story, group)


async def check_offsets(broker: Broker, story: Story, group: GroupHistory) -> None:
    """What the broker shows of a group is what it has promised."""
    found = await fetch_offsets(broker, FetchOffsets(group=group.name, wanted=None))
    offsets = {TopicPartition(commit.topic, row[0]): row[1] for commit in found for row in commit.rows}
    in_doubt = {topic.name for topic in story.topics.values() if None in topic.shapes}
    group.check(offsets, in_doubt=in_doubt, is_alone=group.requests <= 1)


def permit_absence(story: Story, answers: Answers, topic: str, error: GoQueueError) -> None:
    """A topic, or a partition of it, may be missing after a change of the topic that failed."""
    known = story.topics.get(TopicName(topic))
    if known is None or len(known.shapes) == 1 or not isinstance(error, NotFound):
        answers.permit(error)
