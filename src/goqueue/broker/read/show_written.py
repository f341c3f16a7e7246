"""show_written: whoever is going to look at the ends of many partitions has them committed in one round.

Each look would else ask for a round of its own.
"""

from collections.abc import Iterable, Iterator

from goqueue.broker.broker import Broker
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.storage.readable import Readable
from goqueue.model.commands import ShowWritten
from goqueue.model.ids import TopicPartition


async def show_written(broker: Broker, command: ShowWritten) -> None:
    """Return when readers see all that is written by now, or the disk has failed or hangs."""
    if command.sources is None:
        await commit_written(broker.all_partitions())
    else:
        await commit_written(_known(broker, command.sources))


def _known(broker: Broker, sources: Iterable[TopicPartition]) -> Iterator[Readable]:
    """The partitions that are there, of those asked for."""
    for name, number in sources:
        topic = broker.topics.get(name)
        if topic is not None and 0 <= number < len(topic.readables):
            yield topic.readables[number]
