"""The journal of the delays is enough by itself: what lies beside it follows from it."""

from goqueue.broker.broker import Broker
from goqueue.broker.delays.verbs import delay_stats
from goqueue.broker.storage.data_folder import DELAYS_FOLDER
from goqueue.broker.topics.verbs import delete_records
from goqueue.model.delays import CountDelayed
from goqueue.model.ids import TopicPartition
from goqueue.model.topics import DeleteRecords
from tests.unit.broker.delays.delayed_world import ORDERS, World, publish_later, sleep_ms, values

SOURCE = TopicPartition(ORDERS, 0)


def test_what_was_delivered_and_deleted_since_does_not_come_again() -> None:
    world = World()

    async def deliver_and_delete(broker: Broker) -> None:
        await publish_later(broker, 1_000, 60_000)
        await sleep_ms(3_000)
        assert await values(broker) == [b"1000"]
        await broker.delays.store.checkpoint()  # which knows of it: the journal must be told all the same
        await delete_records(broker, DeleteRecords(target=SOURCE, before_offset=-1))

    async def look(broker: Broker) -> None:
        await sleep_ms(3_000)
        assert await values(broker) == []
        await sleep_ms(60_000)
        assert await values(broker) == [b"60000"]

    world.run(deliver_and_delete)
    world.disk.remove_tree(DELAYS_FOLDER)
    world.run(look)


def test_what_is_deleted_while_its_partition_comes_back_from_a_failure_does_not_come_again() -> None:
    """Nothing was noted before it was looked up what the partition has got, and its log is what tells."""
    world = World()

    async def deliver_and_delete(broker: Broker) -> None:
        await publish_later(broker, 1_000, 60_000)
        await sleep_ms(2_000)
        assert await values(broker) == [b"1000"]
        [target] = broker.delays.store.targets.all
        broker.delays.landings.block(target)
        await delete_records(broker, DeleteRecords(target=SOURCE, before_offset=-1))
        assert delay_stats(broker, CountDelayed()).pending == 1

    async def look(broker: Broker) -> None:
        await sleep_ms(2_000)
        assert await values(broker) == []
        await sleep_ms(60_000)
        assert await values(broker) == [b"60000"]

    world.run_until_killed(deliver_and_delete)
    world.run(look)
