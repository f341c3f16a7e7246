"""A disk that loses a file which a recovery point vouches for: the next start tells, whatever file it is."""

from itertools import pairwise
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.write.publish import publish
from goqueue.log.snapshot import load_snapshots
from goqueue.model.commands import Publish
from goqueue.model.errors import JournalDamaged
from goqueue.model.messages import Message
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import ack, join, orders, take
from tests.unit.broker.running import ORDERS


async def work(broker: Broker) -> None:
    await orders(broker, partitions=3)
    ann = await join(broker)
    for number in range(30):
        await publish(broker, Publish(topic=ORDERS, messages=[Message(b"%d" % number)]))
        if number % 10 == 9:
            await ack(broker, await take(broker, ann, 5))
            for partition in broker.all_partitions():
                partition.log.roll()
                await partition.save_recovery_point()


async def damaged(broker: Broker) -> list[str]:
    return [str(p.source) for p in broker.all_partitions() if p.damage is not None]


def vouched_files(disk: SimulatedDisk) -> list[str]:
    """Segments with messages in them that lie before the newest recovery point and behind the log's start."""
    found = []
    for topic in disk.list("logs"):
        for number in disk.list(f"logs/{topic}"):
            folder = f"logs/{topic}/{number}"
            bases = sorted(int(name[:20]) for name in disk.list(folder) if name.endswith(".log"))
            newest = load_snapshots(disk, folder)[0]
            for base, follower in pairwise([*bases, newest.end_offset]):
                if base < min(follower, newest.end_offset) and follower > newest.start_offset:
                    found.append(f"{folder}/{base:020d}.log")
    return found


@pytest.mark.parametrize("seed", range(20))
def test_no_file_that_is_vouched_for_is_lost_without_a_word(seed: int) -> None:
    lives = Lives(seed)
    lives.live(work)
    assert lives.live(damaged) == []
    path = Random(seed).choice(vouched_files(lives.disk))
    lives.disk.remove(path)
    source = path.removeprefix("logs/").rpartition("/")[0]

    if source.startswith("__"):
        with pytest.raises(JournalDamaged, match=source):
            lives.live(damaged)
    else:
        assert lives.live(damaged) == [source]
