"""Exactly-once sinks of a lone node go on in the cluster that adopts its folder."""

import asyncio
from random import Random

from goqueue.broker.opening import close_broker
from goqueue.broker.sinks.verbs import (
    commit_epoch,
    describe_sink,
    forget_sink,
    list_sinks,
    stage,
    take_generation,
)
from goqueue.broker.topics.verbs import create_topic
from goqueue.model.sinks import (
    CommitEpoch,
    DescribeSink,
    EpochEnded,
    ForgetSink,
    ListSinks,
    StageBatches,
    TakeGeneration,
)
from goqueue.model.topics import CreateTopic
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.store import SimulatedStore, StoreFaults
from tests.unit.broker.cluster.test_adopting import ME, Alone, ended, joined, run, values
from tests.unit.broker.remote.several import ORDERS
from tests.unit.broker.sinks.sink_steps import SINK, entries

GONE = "gone"


def staged(epoch: int, value: str, generation: int = 1) -> StageBatches:
    return StageBatches(
        sink=SINK, generation=generation, epoch=epoch, stage_id="a", entries=entries([(0, value)])
    )


def committed(epoch: int, generation: int = 1) -> CommitEpoch:
    return CommitEpoch(sink=SINK, generation=generation, epoch=epoch, stage_ids=["a"])


async def worked(alone: Alone) -> None:
    """A sink has an epoch, and the next one is staged; another sink is forgotten."""
    broker = await alone.open()
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
    await take_generation(broker, TakeGeneration(sink=SINK, run="monday"))
    await stage(broker, staged(0, "before"))
    await commit_epoch(broker, committed(0))
    await stage(broker, staged(1, "between"))
    for _ in range(3):
        await take_generation(broker, TakeGeneration(sink=GONE))
    await forget_sink(broker, ForgetSink(sink=GONE))
    await close_broker(broker)


def test_epochs_generations_and_stages_are_known_to_the_cluster() -> None:
    async def story(clock: SimulatedClock) -> None:
        alone, store = Alone(clock), SimulatedStore(Random(4), StoreFaults())
        await worked(alone)
        assert await alone.adopt(store)
        nodes = await joined(alone, store, 3)

        view = await nodes.run(ME, take_generation, TakeGeneration(sink=SINK, run="monday"))
        assert (view.generation, view.last_epoch) == (1, 0)
        assert await nodes.run(ME, commit_epoch, committed(0)) == EpochEnded(is_duplicate=True, messages=0)
        assert await nodes.run(ME, commit_epoch, committed(1)) == EpochEnded(is_duplicate=False, messages=1)

        assert await values(nodes) == [b"before", b"between"]
        assert (await nodes.run(ME, describe_sink, DescribeSink(sink=SINK))).last_epoch == 1
        assert (await nodes.run(ME, take_generation, TakeGeneration(sink=GONE))).generation == 4
        await nodes.run(ME, forget_sink, ForgetSink(sink=SINK))
        told = {name for node in nodes.nodes.values() for name in list_sinks(node.broker, ListSinks())}
        assert told == {GONE}, "what the first journal knows yet is of no account"
        await ended(nodes)

    run(story)


def test_what_an_earlier_try_has_copied_is_copied_anew() -> None:
    async def story(clock: SimulatedClock) -> None:
        alone = Alone(clock)
        await worked(alone)
        broker = await alone.open()
        await take_generation(broker, TakeGeneration(sink="short"))
        await close_broker(broker)
        await alone.adopt(SimulatedStore(Random(4), StoreFaults()))
        # Before the folder says whose it is nothing has happened: the lone node goes on.
        alone.disk.remove("node.json")
        broker = await alone.open()
        assert (await describe_sink(broker, DescribeSink(sink=SINK))).last_epoch == 0
        await commit_epoch(broker, committed(1))
        await forget_sink(broker, ForgetSink(sink="short"))
        await close_broker(broker)

        store = SimulatedStore(Random(4), StoreFaults())
        assert await alone.adopt(store)
        nodes = await joined(alone, store, 1)
        await asyncio.sleep(1)
        assert (await nodes.run(ME, describe_sink, DescribeSink(sink=SINK))).last_epoch == 1
        assert list_sinks(nodes.nodes[ME].broker, ListSinks()) == [SINK]
        await ended(nodes)

    run(story)
