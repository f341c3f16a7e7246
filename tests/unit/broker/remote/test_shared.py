"""Share groups of several nodes: leases from the coordinator, bytes from whoever leads the partition."""

import pytest

from goqueue.broker.queue.share_groups import (
    acquire,
    batches_of,
    know_member,
    release_all,
    settle_runs,
    share_heartbeat,
)
from goqueue.model.delivery import Acquire, Action, KnowMember, Poll, ReadBatches, ReleaseAll, SettleRuns
from goqueue.model.errors import RecordNotHeld, UnknownMember
from goqueue.model.group_commands import ShareHeartbeat
from goqueue.model.groups import Membership
from goqueue.model.ids import TopicPartition
from goqueue.records.batch import open_batch
from tests.unit.broker.remote.several import ORDERS, Several, several

SOURCE = TopicPartition(ORDERS, 0)


def taking(group: str, limit: int = 100) -> Acquire:
    return Acquire(Poll(group=group, member_id="ann", limit=limit, sources=[SOURCE]))


def test_the_leader_gets_leases_from_the_coordinator_and_reads_the_bytes_itself() -> None:
    async def story(world: Several) -> None:
        await world.create()
        group, leader = world.group_apart(), world.leader()
        assert leader is not None
        name = world.coordinator(group)
        joining = ShareHeartbeat(group=group, member_id="ann", epoch=0, topics=[ORDERS])
        await world.begin(name, share_heartbeat(world.nodes[name].broker, joining))
        who = Membership(group, "ann", -1)
        await world.run(leader, know_member, KnowMember(who))
        with pytest.raises(UnknownMember):
            await world.run(leader, know_member, KnowMember(Membership("nobody", "ann", -1)))

        await world.put("before")
        assert await world.run(leader, acquire, taking(group)) == []  # a share group begins with what comes
        await world.put("a", "b", "c")
        [part] = await world.run(leader, acquire, taking(group))

        assert (part.source, part.offsets, part.delivery_counts) == (SOURCE, [1, 2, 3], {})
        broker = world.nodes[leader].broker
        [body] = await world.begin(leader, batches_of(broker, ReadBatches(SOURCE, part.offsets)))
        assert [message.value for message in open_batch(body, 2)] == [b"a", b"b", b"c"]

        await world.run(leader, settle_runs, SettleRuns(who, SOURCE, [(1, 3)], Action.ACK))
        with pytest.raises(RecordNotHeld):
            await world.run(leader, settle_runs, SettleRuns(who, SOURCE, [(1, 3)], Action.ACK))
        await world.run(leader, release_all, ReleaseAll(who, [SOURCE]))
        [again] = await world.run(leader, acquire, taking(group))
        assert (again.offsets, again.delivery_counts) == ([3], {3: 2})

    several(story)
