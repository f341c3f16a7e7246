"""Groups that the broker assigns to, in a broker: what survives, what follows what, what it costs."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import (
    assignment_of,
    heartbeat_assigned,
    join_assigned,
    leave_assigned,
    owned_partitions,
    rebalance_stats,
    revoke_partitions,
    sharing_of,
)
from goqueue.broker.groups.offsets import commit_offsets, fetch_offsets
from goqueue.broker.groups.verbs import delete_group, describe_group, heartbeat, join_group, list_groups
from goqueue.broker.storage import state_journal
from goqueue.broker.topics.verbs import add_partitions, create_topic, delete_topic
from goqueue.model.errors import (
    GroupNotEmpty,
    GroupNotFound,
    IllegalGeneration,
    InconsistentProtocol,
    Invalid,
    NotPartitionOwner,
    StorageFull,
    TopicNotFound,
    UnknownMember,
)
from goqueue.model.group_commands import (
    CommitOffsets,
    DeleteGroup,
    DescribeAssignment,
    DescribeGroup,
    DescribeRebalances,
    DescribeSharing,
    FetchOffsets,
    Heartbeat,
    HeartbeatAssigned,
    JoinAssigned,
    JoinGroup,
    LeaveAssigned,
    ListGroups,
    RevokePartitions,
)
from goqueue.model.groups import (
    AssignedMember,
    GroupKind,
    GroupState,
    Membership,
    ReconciliationState,
    Sharing,
    TopicCommit,
)
from goqueue.model.ids import TopicPartition
from goqueue.model.settings import BrokerConfig, GroupConfig
from goqueue.model.topics import AddPartitions, CreateTopic, DeleteTopic
from goqueue.node.disk import FolderDisk
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import ORDERS, running, until

CONFIG = BrokerConfig(groups=GroupConfig(initial_delay_ms=0, session_ms_min=1))


async def orders(broker: Broker, partitions: int = 4) -> None:
    await create_topic(broker, CreateTopic(name="orders", partitions=partitions))


async def join(
    broker: Broker,
    client_id: str = "client",
    *,
    group: str = "crew",
    sharing: Sharing = Sharing.EAGER,
    topics: Sequence[str] = ("orders",),
    member_id: str = "",
    session_timeout_ms: int = 30_000,
    key_order: bool = False,
) -> AssignedMember:
    return await join_assigned(
        broker,
        JoinAssigned(
            group=group,
            client_id=client_id,
            topics=topics,
            sharing=sharing,
            member_id=member_id,
            session_timeout_ms=session_timeout_ms,
            key_order=key_order,
        ),
    )


def who(member: AssignedMember, generation: int | None = None) -> Membership:
    return Membership("crew", member.member_id, member.generation if generation is None else generation)


def numbers(places: Sequence[TopicPartition]) -> list[int]:
    return [place.partition for place in places]


def test_members_share_partitions_and_learn_of_each_other(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            first = await join(broker, "one")
            second = await join(broker, "two")

            assert first.member_id.startswith("one-")
            assert (first.generation, numbers(first.partitions)) == (1, [0, 1, 2, 3])
            assert (second.generation, numbers(second.partitions)) == (2, [2, 3])
            assert (second.leader_id, second.members) == (
                first.member_id,
                (first.member_id, second.member_id),
            )
            with pytest.raises(IllegalGeneration):
                await heartbeat_assigned(broker, HeartbeatAssigned(who(first)))
            learned = await heartbeat_assigned(broker, HeartbeatAssigned(who(first, 0)))
            assert (learned.generation, numbers(learned.assigned)) == (2, [0, 1])
            assert learned.state is ReconciliationState.COMPLETE
            again = await heartbeat_assigned(broker, HeartbeatAssigned(who(second)))
            assert (again.state, again.is_rebalancing) == (ReconciliationState.COMPLETE, False)
            assert (
                await heartbeat_assigned(broker, HeartbeatAssigned(who(second)))
            ).state is ReconciliationState.NONE

            await leave_assigned(broker, LeaveAssigned(group="crew", member_id=second.member_id))
            assert numbers(owned_partitions(broker, who(first, 0))) == [0, 1, 2, 3]
            assert (
                assignment_of(broker, DescribeAssignment(group="crew", member_id=first.member_id)).generation
                == 3
            )

    asyncio.run(walk())


def test_a_cooperative_rebalance_runs_to_its_end(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            first = await join(broker, sharing=Sharing.COOPERATIVE)
            second = await join(broker, sharing=Sharing.COOPERATIVE)
            assert (second.partitions, second.is_rebalancing) == ((), True)

            asked = await heartbeat_assigned(broker, HeartbeatAssigned(who(first)))
            assert asked.state is ReconciliationState.PENDING_REVOKE
            assert (asked.generation, numbers(asked.to_revoke)) == (1, [2, 3])
            assert asked.revocation_deadline_ms is not None
            assert 0 < asked.revocation_deadline_ms - broker.clock.wall_ms() <= 60_000
            assert numbers(owned_partitions(broker, who(first))) == [0, 1, 2, 3]
            waiting = await heartbeat_assigned(broker, HeartbeatAssigned(who(second)))
            assert waiting.state is ReconciliationState.PENDING_ASSIGN

            let_go = await revoke_partitions(
                broker, RevokePartitions(who=who(first), revoked=asked.to_revoke)
            )
            assert (let_go.generation, let_go.state) == (2, ReconciliationState.COMPLETE)
            assert numbers(owned_partitions(broker, who(second))) == [2, 3]
            got = await heartbeat_assigned(broker, HeartbeatAssigned(who(second)))
            assert (got.state, got.is_rebalancing) == (ReconciliationState.COMPLETE, False)

            stats = rebalance_stats(broker, DescribeRebalances(group="crew"))
            assert (stats.total, stats.successful, stats.by_reason) == (2, 2, {"member_joined": 2})
            assert stats.last_ms is not None
            assert rebalance_stats(broker, DescribeRebalances()).partitions_revoked == 2
            with pytest.raises(GroupNotFound):
                rebalance_stats(broker, DescribeRebalances(group="nobody"))

    asyncio.run(walk())


def test_members_generation_and_assignment_survive_a_restart(tmp_path: Path) -> None:
    async def walk() -> None:
        members: dict[Sharing, AssignedMember] = {}
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            for sharing in Sharing:
                await join(broker, group=sharing.value, sharing=sharing)
                members[sharing] = await join(broker, group=sharing.value, sharing=sharing)
            before = {
                sharing: describe_group(broker, DescribeGroup(group=sharing.value)) for sharing in Sharing
            }
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            for sharing, member in members.items():
                view = describe_group(broker, DescribeGroup(group=sharing.value))
                assert (view.generation, view.sharing) == (2, sharing)
                assert [m.partitions for m in view.members] == [m.partitions for m in before[sharing].members]
                assert sharing_of(broker, DescribeSharing(group=sharing.value)) == (sharing, False)
                told = await heartbeat_assigned(
                    broker, HeartbeatAssigned(Membership(sharing.value, member.member_id, member.generation))
                )
                assert told.generation == 2
            third = await join(broker, group="eager")
            assert third.generation == 3

    asyncio.run(walk())


def test_what_a_member_was_told_survives_a_power_failure() -> None:
    async def walk() -> None:
        disk = SimulatedDisk(Random(1))
        async with running(disk, CONFIG) as broker:
            await orders(broker)
            first = await join(broker)
            second = await join(broker)
            after = disk.crash()
        async with running(after, CONFIG) as broker:
            await heartbeat_assigned(broker, HeartbeatAssigned(who(second)))
            assert numbers(owned_partitions(broker, who(first, 0))) == [0, 1]

    asyncio.run(walk())


def test_a_journal_that_is_written_anew_keeps_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_journal, "EVENTS_MAX", 5)

    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            first = await join(broker, sharing=Sharing.COOPERATIVE)
            for _ in range(4):
                passer_by = await join(broker, sharing=Sharing.COOPERATIVE)
                await leave_assigned(broker, LeaveAssigned(group="crew", member_id=passer_by.member_id))
            await broker.coordinator.keep_up()
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            told = await heartbeat_assigned(broker, HeartbeatAssigned(who(first, 0)))
            assert told.generation >= 9

    asyncio.run(walk())


def test_silent_members_are_missed_and_an_empty_group_is_forgotten(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            stays = await join(broker)
            goes = await join(broker, session_timeout_ms=20)
            await until(lambda: numbers(owned_partitions(broker, who(stays, 0))) == [0, 1, 2, 3])
            with pytest.raises(UnknownMember):
                await heartbeat_assigned(broker, HeartbeatAssigned(who(goes)))
            await leave_assigned(broker, LeaveAssigned(group="crew", member_id=stays.member_id))
            with pytest.raises(GroupNotFound):
                describe_group(broker, DescribeGroup(group="crew"))
            assert rebalance_stats(broker, DescribeRebalances()).total == 4

    asyncio.run(walk())


def test_assignments_follow_partitions_that_are_added(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker, 1)
            member = await join(broker)
            await add_partitions(broker, AddPartitions(name="orders", total=3))
            assert numbers(owned_partitions(broker, who(member, 0))) == [0, 1, 2]
            assert describe_group(broker, DescribeGroup(group="crew")).generation == 2
            await delete_topic(broker, DeleteTopic(name="orders"))
            assert owned_partitions(broker, who(member, 0)) == ()

    asyncio.run(walk())


def test_offsets_are_the_owners_and_outlive_the_members(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            first = await join(broker)
            await join(broker)
            commit = [TopicCommit(ORDERS, [(0, 5, -1, "")])]
            assert await commit_offsets(broker, CommitOffsets(who(first, 0), commit)) == {}
            with pytest.raises(NotPartitionOwner):
                await commit_offsets(
                    broker, CommitOffsets(who(first, 0), [TopicCommit(ORDERS, [(3, 5, -1, "")])])
                )
            with pytest.raises(UnknownMember):
                await commit_offsets(broker, CommitOffsets(Membership("crew", "stranger", 1), commit))
            with pytest.raises(GroupNotEmpty):
                await delete_group(broker, DeleteGroup(group="crew"))
            for member_id in describe_group(broker, DescribeGroup(group="crew")).members:
                await leave_assigned(broker, LeaveAssigned(group="crew", member_id=member_id.member_id))

            (found,) = await fetch_offsets(broker, FetchOffsets(group="crew", wanted=None))
            assert list(found.rows) == [(0, 5, -1, "")]
            view = describe_group(broker, DescribeGroup(group="crew"))
            assert (view.state, view.kind, view.members) == (GroupState.EMPTY, GroupKind.HTTP, ())
            await delete_group(broker, DeleteGroup(group="crew"))

    asyncio.run(walk())


def test_a_group_is_of_one_kind_while_it_has_members(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            member = await join(broker)
            classic = JoinGroup(
                group="crew",
                client_id="kafka",
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                protocol_type="consumer",
                protocols=(("range", b""),),
            )
            with pytest.raises(InconsistentProtocol):
                await join_group(broker, classic)
            with pytest.raises(InconsistentProtocol):
                await join(broker, sharing=Sharing.SHARED)
            with pytest.raises(UnknownMember):
                heartbeat(broker, Heartbeat(who(member)))
            assert [(g.name, g.kind) for g in list_groups(broker, ListGroups())] == [("crew", GroupKind.HTTP)]
            await commit_offsets(broker, CommitOffsets(who(member), [TopicCommit(ORDERS, [(0, 5, -1, "")])]))
            await leave_assigned(broker, LeaveAssigned(group="crew", member_id=member.member_id))

            joined = await join_group(broker, classic)

            assert (joined.generation, describe_group(broker, DescribeGroup(group="crew")).kind) == (
                2,
                GroupKind.CLASSIC,
            )
            assert sharing_of(broker, DescribeSharing(group="crew")) is None
            with pytest.raises(InconsistentProtocol):
                await join(broker)
            with pytest.raises(UnknownMember):
                owned_partitions(broker, who(member))

    asyncio.run(walk())


def test_a_join_that_is_refused_leaves_no_group_behind(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            with pytest.raises(TopicNotFound):
                await join(broker, topics=["nowhere"])
            with pytest.raises(Invalid):
                await join(broker, topics=[])
            with pytest.raises(Invalid):
                await join(broker, session_timeout_ms=0)
            assert list_groups(broker, ListGroups()) == []
            with pytest.raises(GroupNotFound):
                owned_partitions(broker, Membership("crew", "stranger", 0))

    asyncio.run(walk())


def test_a_member_comes_back_under_its_id_and_a_forgotten_one_under_a_new_one(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            member = await join(broker)
            back = await join(broker, member_id=member.member_id)
            assert (back.member_id, back.generation) == (member.member_id, 1)
            stranger = await join(broker, "other", member_id="forgotten")
            assert stranger.member_id.startswith("other-")

    asyncio.run(walk())


def test_a_full_disk_refuses_a_newcomer_and_leaves_the_group_as_it_was() -> None:
    async def walk() -> None:
        disk = SimulatedDisk(Random(1))
        async with running(disk, CONFIG) as broker:
            await orders(broker)
            member = await join(broker)
            disk.fill_up(after_bytes=0)
            with pytest.raises(StorageFull):
                await join(broker)
            view = describe_group(broker, DescribeGroup(group="crew"))
            assert (view.generation, len(view.members)) == (1, 1)
            disk.faults.heal()
            await heartbeat_assigned(broker, HeartbeatAssigned(who(member)))
            assert (await join(broker)).generation == 2

    asyncio.run(walk())


def test_a_silent_member_stays_until_the_journal_can_say_that_it_has_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def walk() -> None:
        disk = SimulatedDisk(Random(1))
        async with running(disk, CONFIG) as broker:
            await orders(broker)
            stays = await join(broker)
            await join(broker, session_timeout_ms=20)
            disk.fill_up(after_bytes=0)
            await until(lambda: "group_not_journalled" in caplog.text)
            assert len(describe_group(broker, DescribeGroup(group="crew")).members) == 2
            disk.faults.heal()
            await until(lambda: len(describe_group(broker, DescribeGroup(group="crew")).members) == 1)
            assert numbers(owned_partitions(broker, who(stays, 0))) == [0, 1, 2, 3]
            assert caplog.text.count("group_not_journalled") == 1, "it is not tried all the time"

    asyncio.run(walk())


def test_a_hundred_members_of_a_thousand_partitions_make_room_for_one_more(tmp_path: Path) -> None:
    """The work of the broker for one newcomer, with every heartbeat that it takes."""

    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker, 1)
            broker.topic_counts = {ORDERS: 1_000}
            crew = [await join(broker, sharing=Sharing.COOPERATIVE) for _ in range(100)]
            for _ in range(3):
                for member in crew:
                    told = await heartbeat_assigned(broker, HeartbeatAssigned(who(member, 0)))
                    if told.to_revoke:
                        await revoke_partitions(
                            broker, RevokePartitions(who=who(member, 0), revoked=told.to_revoke)
                        )
            assert describe_group(broker, DescribeGroup(group="crew")).state is GroupState.STABLE
            moved_before = rebalance_stats(broker, DescribeRebalances()).partitions_revoked
            begun_s = time.process_time()

            crew.append(await join(broker, sharing=Sharing.COOPERATIVE))
            for _ in range(2):
                for member in crew:
                    told = await heartbeat_assigned(broker, HeartbeatAssigned(who(member, 0)))
                    if told.to_revoke:
                        await revoke_partitions(
                            broker, RevokePartitions(who=who(member, 0), revoked=told.to_revoke)
                        )

            spent_s = time.process_time() - begun_s
            assert describe_group(broker, DescribeGroup(group="crew")).state is GroupState.STABLE
            assert rebalance_stats(broker, DescribeRebalances()).partitions_revoked - moved_before <= 10
            assert spent_s < 1

    asyncio.run(walk())
