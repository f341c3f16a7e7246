"""What groups know of partitions is held against the logs: put right in old folders, damage in all others."""

import logging

import pytest

from goqueue.broker import opening
from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.groups.state import EVENTS
from goqueue.broker.write.publish import publish
from goqueue.core.groups.events import OffsetsCommitted
from goqueue.model.commands import Publish
from goqueue.model.group_commands import CommitOffsets
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit, TopicOffsets
from goqueue.model.messages import Acks, Message
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import Consumer, ack, floor, join, orders, put, take, values
from tests.unit.broker.running import ORDERS, ORDERS_0
from tests.unit.broker.storage.early_readers import show_what_is_written

READER = Membership("readers", "", NO_GENERATION)
WORKERS = Membership("workers", "", NO_GENERATION)


async def nothing(broker: Broker) -> None:
    """What a broker that knew of no commit mark did about floors at its start."""


def old_life(lives: Lives, monkeypatch: pytest.MonkeyPatch, settled: set[int]) -> Consumer:
    """A broker as it once was publishes five, hands them out before the disk has them, and loses power."""

    async def work(broker: Broker) -> Consumer:
        await orders(broker)
        ann = await join(broker)
        await put(broker, "first")
        messages = [Message(text.encode()) for text in "abcde"]
        await publish(broker, Publish(topic=ORDERS, messages=messages, acks=Acks.LEADER))
        taken = await take(broker, ann)
        assert len(taken) == 6
        await ack(broker, [one for one in taken if one.offset in settled])
        await commit_offsets(broker, CommitOffsets(READER, [TopicCommit(ORDERS, [(0, 6, -1, "")])]))
        return ann

    with monkeypatch.context() as patch:
        show_what_is_written(patch)
        patch.setattr(opening, "compare_floors", nothing)
        return lives.live(work)


def loses_all(lives: Lives, monkeypatch: pytest.MonkeyPatch, settled: set[int]) -> bool:
    """Whether the power takes what was not waited for, and leaves what groups have of it."""
    old_life(lives, monkeypatch, settled)

    async def look(broker: Broker) -> bool:
        journal = broker.coordinator.journals.find("workers")
        assert journal is not None
        delivery = journal.deliveries.find("workers", ORDERS_0)
        known = 0 if delivery is None else max(delivery.touched_end, delivery.floor)
        return (broker.partition(ORDERS_0).log.end_offset, known, floor(broker, "readers")) == (1, 6, 6)

    with monkeypatch.context() as patch:
        patch.setattr(opening, "compare_floors", nothing)
        return lives.live(look)


@pytest.mark.parametrize("settled", [{0, 1, 2, 3, 4, 5}, {0, 1, 2}, {1, 2, 4}])
def test_groups_of_an_old_folder_go_back_to_where_the_log_ends(
    settled: set[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    seed = next(seed for seed in range(50) if loses_all(Lives(seed), monkeypatch, settled))
    lives = Lives(seed)
    ann = old_life(lives, monkeypatch, settled)
    caplog.clear()

    async def go_on(broker: Broker) -> list[str]:
        assert broker.partition(ORDERS_0).damage is None
        assert floor(broker, "readers") == 1
        assert broker.health.recovery.offsets_above_end == 2
        await put(broker, "x", "y", "z")
        return values(await take(broker, ann))

    assert lives.live(go_on) == ["x", "y", "z"]
    assert caplog.text.count("group_cut_back group=workers partitions=1") == 1
    assert caplog.text.count("group_cut_back") == 2

    async def look(broker: Broker) -> int:
        assert broker.metadata.is_commit_mark_kept
        return broker.health.recovery.offsets_above_end

    assert lives.live(look) == 0, "once is enough"


def test_in_a_folder_that_keeps_the_mark_the_same_is_damage() -> None:
    lives = Lives(1)

    async def work(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b")
        journal = await broker.coordinator.journals.ensure(READER.group)
        topic_id = broker.metadata.topic(ORDERS).topic_id
        had = TopicOffsets(ORDERS, topic_id, ((0, 5, -1, ""),))  # as if the messages had been there
        await journal.submit(OffsetsCommitted("readers", (had,)))

    lives.live(work)

    async def look(broker: Broker) -> str:
        return str(broker.partition(ORDERS_0).damage)

    told = "group readers has had messages that are not there; lost are the offsets 2 to 4"
    assert lives.live(look) == told


def test_an_offset_that_a_client_merely_names_is_kept_as_told_and_is_no_damage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The state is written anew at each start, and says the same.
    monkeypatch.setattr("goqueue.broker.storage.state_journal.EVENTS_MAX", 0)
    lives = Lives(1)

    async def work(broker: Broker) -> Consumer:
        await orders(broker, partitions=2)
        await commit_offsets(
            broker, CommitOffsets(WORKERS, [TopicCommit(ORDERS, [(0, 1_000, -1, ""), (1, 0, -1, "")])])
        )
        ann = await join(broker)
        await take(broker, ann)  # a delivery begins at the offset that was named
        await commit_offsets(broker, CommitOffsets(READER, [TopicCommit(ORDERS, [(0, 7, -1, "")])]))
        return ann

    lives.live(work)

    async def look(broker: Broker) -> None:
        assert (floor(broker), floor(broker, partition=1), floor(broker, "readers")) == (1_000, 0, 7)
        assert broker.partition(ORDERS_0).damage is None
        assert broker.health.recovery.offsets_above_end == 0
        assert all(journal.partition.log.start_offset > 0 for journal in broker.coordinator.journals)

    lives.live(look)
    lives.live(look)

    async def commit_lower(broker: Broker) -> bool:
        await commit_offsets(broker, CommitOffsets(READER, [TopicCommit(ORDERS, [(0, 0, -1, "")])]))
        record = broker.coordinator.journals.record("readers")
        assert record is not None
        return bool(record.offsets.ahead_of(ORDERS, broker.metadata.topic(ORDERS).topic_id))

    assert not lives.live(commit_lower)


def test_journals_of_before_are_read() -> None:
    old = b'["OffsetsCommitted",{"group":"g","topics":[["orders","%b",[[0,5,-1,""]]]],"committed_ms":1}]'
    event = EVENTS.decode(old % b"12345678-1234-5678-1234-567812345678")

    assert isinstance(event, OffsetsCommitted)
    assert event.topics[0].ahead == ()
