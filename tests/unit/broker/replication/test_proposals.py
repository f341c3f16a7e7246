"""What leaders propose to the store: many at once go together, and none is lost or made twice for that."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from random import Random
from uuid import UUID

from goqueue.broker.replication.records import AT_ONCE, TOGETHER_MAX, Found, Proposals
from goqueue.core.cluster.values import decode_part, encode, node_key, part_key
from goqueue.model.cluster import Guard, Incarnation, NodeId, NodeRecord, PartitionRecord
from goqueue.model.errors import Unknown
from goqueue.model.replication import ProposeRecord
from goqueue.testing.world.store import SimulatedStore
from tests.unit.broker.replication.nodes import until

A, B = NodeId("a"), NodeId("b")
TOPIC = UUID(int=7)
BEFORE = PartitionRecord(leader=A, epoch=1, replicas=(A, B), isr=(A,), incarnation=Incarnation(1))
AFTER = PartitionRecord(leader=A, epoch=1, replicas=(A, B), isr=(A, B), incarnation=Incarnation(1))


class _CountingStore(SimulatedStore):
    """Notes how often it is asked, and by how many at once; and does not answer while it is told so."""

    def __init__(self) -> None:
        super().__init__(Random(1))
        self.changes = 0
        self.under_way = 0
        self.under_way_most = 0
        self.unanswered = 0

    async def change(  # type: ignore[override]  # nobody here has a session
        self, guards: Sequence[Guard], puts: Mapping[str, bytes], drops: Sequence[str]
    ) -> int:
        self.changes += 1
        self.under_way += 1
        self.under_way_most = max(self.under_way, self.under_way_most)
        try:
            revision = await super().change(guards, puts, drops)
            if self.unanswered:
                self.unanswered -= 1
                raise Unknown("no answer came")
            return revision
        finally:
            self.under_way -= 1


def key_of(number: int) -> str:
    return part_key(TOPIC, number)


async def _store_of(count: int) -> tuple[_CountingStore, int]:
    """A store with the records of some partitions, all of one revision."""
    store = _CountingStore()
    revision = await store.change((), {key_of(number): encode(BEFORE) for number in range(count)}, ())
    store.changes = 0
    return store, revision


def _proposed(proposals: Proposals, number: int, proposal: ProposeRecord) -> "asyncio.Task[Found | None]":
    work: Coroutine[None, None, Found | None] = proposals.make(key_of(number), proposal)
    return asyncio.get_running_loop().create_task(work)


def _isr_of(store: SimulatedStore, number: int) -> tuple[NodeId, ...]:
    return decode_part(store.peek(key_of(number))[key_of(number)].value).isr


def test_what_thousands_of_leaders_propose_at_once_goes_to_the_store_in_few_calls() -> None:
    async def story() -> None:
        store, revision = await _store_of(3_000)
        proposals = Proposals(store)

        asked = [_proposed(proposals, n, ProposeRecord(AFTER, revision)) for n in range(3_000)]
        made = await asyncio.gather(*asked)

        assert {found[0] for found in made if found is not None} == {AFTER}
        assert all(_isr_of(store, number) == (A, B) for number in range(3_000))
        assert store.under_way_most <= AT_ONCE
        assert store.changes == 3_000 // TOGETHER_MAX

    asyncio.run(story())


def test_a_proposal_that_comes_too_late_takes_no_other_with_it() -> None:
    async def story() -> None:
        store, revision = await _store_of(50)
        newer = await store.change((), {key_of(31): encode(BEFORE)}, ())
        proposals = Proposals(store)

        made = await asyncio.gather(
            *(_proposed(proposals, n, ProposeRecord(AFTER, revision)) for n in range(50))
        )

        assert made[31] == (BEFORE, newer)
        assert all(found is not None and found[0] == AFTER for n, found in enumerate(made) if n != 31)

    asyncio.run(story())


def test_who_is_not_registered_any_more_is_let_into_no_isr() -> None:
    async def story() -> None:
        store, revision = await _store_of(3)
        registered = await store.change((), {node_key(B): encode(NodeRecord(folder_id="f"))}, ())
        here, gone = (B, Incarnation(registered)), (B, Incarnation(registered - 1))
        proposals = Proposals(store)

        made = await asyncio.gather(
            _proposed(proposals, 0, ProposeRecord(AFTER, revision, here)),
            _proposed(proposals, 1, ProposeRecord(AFTER, revision, gone)),
            _proposed(proposals, 2, ProposeRecord(AFTER, revision)),
        )

        assert [found is not None for found in made] == [True, False, True]
        assert [_isr_of(store, number) for number in range(3)] == [(A, B), (A,), (A, B)]

    asyncio.run(story())


def test_without_an_answer_all_are_proposed_again_and_hear_what_came_of_it() -> None:
    async def story() -> None:
        store, revision = await _store_of(20)
        store.unanswered = 1
        proposals = Proposals(store)

        made = await asyncio.gather(
            *(_proposed(proposals, n, ProposeRecord(AFTER, revision)) for n in range(20))
        )

        assert set(made) == {(AFTER, revision + 1)}

    asyncio.run(story())


def test_of_one_partition_one_proposal_goes_at_a_time() -> None:
    async def story() -> None:
        store, revision = await _store_of(1)
        proposals = Proposals(store)

        first, second = await asyncio.gather(
            *(_proposed(proposals, 0, ProposeRecord(AFTER, revision)) for _ in range(2))
        )

        assert first == second == (AFTER, revision + 1)

    asyncio.run(story())


def test_what_nobody_waits_for_any_more_is_not_proposed() -> None:
    async def story() -> None:
        store, revision = await _store_of(2)
        store.go_away()
        proposals = Proposals(store)
        left = _proposed(proposals, 0, ProposeRecord(AFTER, revision))
        staying = _proposed(proposals, 1, ProposeRecord(AFTER, revision))
        left.cancel()
        await asyncio.sleep(0)
        store.come_back()

        await staying
        assert _isr_of(store, 0) == (A,)

        another = _proposed(proposals, 0, ProposeRecord(AFTER, revision))
        proposals.close()
        await until(lambda: not proposals._tasks)
        assert not another.done()
        another.cancel()

    asyncio.run(story())
