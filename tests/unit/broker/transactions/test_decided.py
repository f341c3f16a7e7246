"""What is decided stays so, also where a damaged partition keeps the decision from being carried out."""

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.delays.verbs import delay_stats
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.transactions.ends import close_hanging_in, finish, recover_transactions
from goqueue.broker.transactions.verbs import abort_open_in
from goqueue.broker.write.publish_once import publish_once
from goqueue.core.transactions.transactions import Transaction
from goqueue.log.damage import Damage
from goqueue.model.delays import CountDelayed
from goqueue.model.errors import InvalidTransactionState, PartitionDamaged
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Message
from goqueue.model.topics import CreateTopic
from goqueue.model.transaction_commands import AbortOpenIn, PublishOnce
from goqueue.model.transactions import Marker
from tests.unit.broker.lives import Lives
from tests.unit.broker.running import ORDERS
from tests.unit.broker.transactions.transaction_steps import journal_of, new_writer, values

FIRST, SECOND = TopicPartition(ORDERS, 0), TopicPartition(ORDERS, 1)


async def decided(broker: Broker) -> Transaction:
    """A commit over two partitions that the disk has, while no marker is written yet and one is damaged."""
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
    writer = await new_writer(broker)
    await writer.add(0, 1)
    for number in (0, 1):
        await writer.put(number, f"value {number}")
    later = Message(b"later", partition=1, due_ms=broker.clock.wall_ms() + 1_000)
    await publish_once(broker, PublishOnce(topic=ORDERS, message=later, producer=writer.producer))
    journal = await journal_of(writer)
    prepared = journal.transactions.prepare(
        writer.name, writer.producer, Marker.COMMIT, now_ms=broker.clock.wall_ms()
    )
    await journal.submit(prepared)
    broker.partition(FIRST).log.damage = Damage("as if a segment were gone")
    return prepared


def test_a_start_does_not_abort_what_is_committed_beside_a_damaged_partition() -> None:
    async def story(broker: Broker) -> None:
        await decided(broker)

        await recover_transactions(broker)

        assert await values(broker, 1) == ["value 1"]
        assert (
            delay_stats(broker, CountDelayed()).held == 1
        )  # what is delayed waits for its end, and is not cancelled

    Lives(41).live(story)


def test_a_damaged_partition_holds_the_decision_back_in_no_other() -> None:
    async def story(broker: Broker) -> None:
        prepared = await decided(broker)

        with pytest.raises(PartitionDamaged):
            await finish(broker, prepared.transactional_id)

        assert await values(broker, 1) == ["value 1"]

    Lives(42).live(story)


def test_what_is_committed_is_so_when_the_loss_beside_it_is_accepted() -> None:
    async def story(broker: Broker) -> None:
        await decided(broker)
        partition = broker.partition(FIRST)
        partition.log.damage = None

        await close_hanging_in(broker, partition)

        assert (await values(broker, 0), await values(broker, 1)) == (["value 0"], ["value 1"])

    Lives(43).live(story)


def test_an_operator_cannot_abort_in_one_partition_what_is_committed() -> None:
    async def story(broker: Broker) -> None:
        prepared = await decided(broker)
        broker.partition(FIRST).log.damage = None

        with pytest.raises(InvalidTransactionState):
            await abort_open_in(broker, AbortOpenIn(target=SECOND, producer=prepared.producer))

        assert (await values(broker, 0), await values(broker, 1)) == (["value 0"], ["value 1"])

    Lives(44).live(story)
