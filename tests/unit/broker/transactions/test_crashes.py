"""Transactions under power cuts at every change of the disk, and again during the restarts.

Whatever was cut short: a transaction is seen whole or not at all, in its partitions and in its group's
offset; what was acknowledged as committed is there, what was aborted never is, and nothing stays open.
"""

from contextlib import suppress

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.topics.verbs import create_topic
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.ids import ProducerId
from goqueue.model.messages import Lane
from goqueue.model.topics import CreateTopic
from goqueue.model.transactions import Marker, ProducerEpoch
from goqueue.records.layout import read_header
from tests.unit.broker.lives import NEVER, Lives, PowerLost
from tests.unit.broker.running import ORDERS, ORDERS_0
from tests.unit.broker.transactions.transaction_steps import (
    committed_offset,
    new_writer,
    transactional_batch,
    values,
)


async def prepare(broker: Broker) -> None:
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))


class Work:
    """Three transactions, the middle one aborted; `ended` counts those whose end was acknowledged."""

    def __init__(self, *, may_join: bool) -> None:
        self.may_join = may_join
        self.ended = 0

    async def __call__(self, broker: Broker) -> None:
        writer = await new_writer(broker)
        for number in range(3):
            if not self.may_join:
                await writer.add(0, 1)
            await writer.put(0, f"{number} a", may_join=self.may_join)
            await writer.put(1, f"{number} b", may_join=self.may_join)
            await writer.put(0, f"{number} c", may_join=self.may_join)
            await writer.read_up_to(number + 1)
            marker = Marker.ABORT if number == 1 else Marker.COMMIT
            await writer.end(marker, until_complete=self.may_join)
            self.ended += 1


async def look(broker: Broker) -> tuple[list[str], list[str], int]:
    """What is seen once the next producer has taken over."""
    await new_writer(broker)
    for partition in broker.topic(ORDERS).partitions:
        assert partition.last_stable_offset == partition.commit_mark
    return await values(broker, 0), await values(broker, 1), await committed_offset(broker)


async def rest(broker: Broker) -> None:
    """Only open: that alone finishes what is decided."""


ALLOWED = {
    0: ([], [], -1),
    1: (["0 a", "0 c"], ["0 b"], 1),
    3: (["0 a", "0 c", "2 a", "2 c"], ["0 b", "2 b"], 3),
}
"""What may be seen, by how many transactions have ended: the second one leaves no trace."""


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")  # the power was cut
@pytest.mark.parametrize("is_killed", [False, True], ids=["power", "kill"])
@pytest.mark.parametrize("may_join", [False, True], ids=["added", "joined"])
@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_transaction_is_whole_or_absent_wherever_it_is_cut(
    may_join: bool, stride: int, is_killed: bool
) -> None:
    seen = set()
    for cut_after in range(0, NEVER, stride):
        lives = Lives(1_000 + cut_after)
        lives.live(prepare)
        work = Work(may_join=may_join)
        with suppress(PowerLost):
            lives.live(work, cut_after=cut_after, is_killed=is_killed)
        # The restart may be cut short as well, in the midst of finishing what it found.
        with suppress(PowerLost):
            lives.live(rest, cut_after=cut_after % 17, is_killed=is_killed)

        found = lives.live(look)

        ended = next((count for count, state in ALLOWED.items() if state == found), None)
        assert ended is not None, f"{cut_after}: {found}"
        # The one under way may have been decided without anybody hearing of it.
        assert ended in (work.ended, min(work.ended + 1, 3)) or (work.ended, ended) == (2, 1), cut_after
        assert lives.live(look) == found
        seen.add(ended)
        if work.ended == 3:
            break
    assert seen == {0, 1, 3}


def test_what_a_start_aborts_is_aborted_on_the_disk_before_anybody_can_write() -> None:
    """A failing disk could else take the marker back, and the next commit would take the batch along."""
    lives = Lives(5)
    lives.live(prepare)

    async def leave_hanging(broker: Broker) -> None:
        partition = broker.partition(ORDERS_0)
        body = transactional_batch(ProducerEpoch(ProducerId(77), 0), "nobody's", 0)
        partition.append([CheckedBatch(read_header(body), body, Lane.NORMAL)])
        committed = partition.committed(partition.log.end_offset)
        assert committed is not None
        await committed

    async def look(broker: Broker) -> tuple[int, int]:
        log = broker.partition(ORDERS_0).log
        return log.end_offset, log.flushed_offset

    lives.live(leave_hanging, is_killed=True)

    assert lives.live(look) == (2, 2)
