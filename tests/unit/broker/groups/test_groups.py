"""Consumer groups in a broker: what survives, who is waited for, and what an idle group costs."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.lag import group_lag
from goqueue.broker.groups.offsets import commit_offsets, delete_offsets, fetch_offsets
from goqueue.broker.groups.verbs import (
    delete_group,
    describe_group,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    sync_group,
)
from goqueue.broker.opening import close_broker
from goqueue.broker.storage import state_journal
from goqueue.broker.topics.verbs import create_topic, delete_topic
from goqueue.model.errors import (
    GroupNotFound,
    MemberIdRequired,
    RebalanceInProgress,
    ShuttingDown,
    StorageFull,
    UnknownMember,
)
from goqueue.model.group_commands import (
    CommitOffsets,
    DeleteGroup,
    DeleteOffsets,
    DescribeGroup,
    DescribeLag,
    FetchOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    SyncGroup,
)
from goqueue.model.groups import GroupState, Joined, Leaver, Membership, OffsetRow, TopicCommit
from goqueue.model.ids import TopicPartition
from goqueue.model.settings import BrokerConfig, GroupConfig
from goqueue.model.topics import CreateTopic, DeleteTopic
from goqueue.node.disk import FolderDisk
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import ORDERS, running, until

CONFIG = BrokerConfig(groups=GroupConfig(initial_delay_ms=0, session_ms_min=1))
READER = Membership("readers", "", -1)


async def commit(broker: Broker, *rows: OffsetRow, who: Membership = READER) -> None:
    assert await commit_offsets(broker, CommitOffsets(who, [TopicCommit(ORDERS, rows)])) == {}


async def committed(broker: Broker, group: str = "readers") -> dict[int, int]:
    found = await fetch_offsets(broker, FetchOffsets(group=group, wanted=None))
    return {row[0]: row[1] for topic in found for row in topic.rows}


async def join(broker: Broker, member_id: str = "", *, session_timeout_ms: int = 60_000) -> Joined:
    return await join_group(
        broker,
        JoinGroup(
            group="readers",
            member_id=member_id,
            client_id="test",
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(("range", b"\x00\x00\x00\x00\x00\x01\x00\x06orders"),),
        ),
    )


async def stable(broker: Broker, *, session_timeout_ms: int = 60_000) -> Membership:
    joined = await join(broker, session_timeout_ms=session_timeout_ms)
    assignments = [(member.member_id, b"mine") for member in joined.members]
    synced = await sync_group(
        broker,
        SyncGroup(
            group="readers",
            member_id=joined.member_id,
            generation=joined.generation,
            assignments=assignments,
        ),
    )
    assert synced.assignment == b"mine"
    return Membership("readers", joined.member_id, joined.generation)


async def orders(broker: Broker) -> None:
    await create_topic(broker, CreateTopic(name="orders", partitions=3))


def test_a_broker_without_groups_keeps_nothing_for_them(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            assert await committed(broker) == {}
            with pytest.raises(GroupNotFound):
                describe_group(broker, DescribeGroup(group="readers"))
            assert list_groups(broker, ListGroups()) == []
        assert not (tmp_path / "logs" / "__consumer_offsets").exists()

    asyncio.run(walk())


def test_offsets_and_members_survive_a_restart(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            member = await stable(broker)
            await commit(broker, (0, 5, 1, "note"), (2, 7, -1, ""), who=member)
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            found = await fetch_offsets(broker, FetchOffsets(group="readers", wanted=[(ORDERS, [0, 1, 2])]))
            assert found == [TopicCommit(ORDERS, [(0, 5, 1, "note"), (1, -1, -1, ""), (2, 7, -1, "")])]
            heartbeat(broker, Heartbeat(member))
            view = describe_group(broker, DescribeGroup(group="readers"))
            assert (view.state, view.members[0].assignment) == (GroupState.STABLE, b"mine")
            await commit(broker, (0, 6, 1, ""), who=member)
            assert await committed(broker) == {0: 6, 2: 7}

    asyncio.run(walk())


def test_an_answered_commit_survives_a_power_failure() -> None:
    async def walk() -> None:
        disk = SimulatedDisk(Random(1))
        async with running(disk, CONFIG) as broker:
            await orders(broker)
            for offset in range(20):
                await commit(broker, (0, offset, -1, ""), (1, offset * 2, -1, ""))
            after = disk.crash()
        async with running(after, CONFIG) as broker:
            assert await committed(broker) == {0: 19, 1: 38}

    asyncio.run(walk())


def test_groups_of_many_names_are_kept_apart_and_found_again(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await orders(broker)
            for number in range(20):
                await commit(broker, (0, number, -1, ""), who=Membership(f"group-{number}", "", -1))
        async with running(FolderDisk(tmp_path)) as broker:
            assert len(list_groups(broker, ListGroups())) == 20
            for number in range(20):
                assert await committed(broker, f"group-{number}") == {0: number}
        folders = {path.name for path in (tmp_path / "logs" / "__consumer_offsets").iterdir()}
        assert 1 < len(folders) <= 20

    asyncio.run(walk())


def test_a_long_journal_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_journal, "EVENTS_MAX", 50)

    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            member = await stable(broker)
            await asyncio.gather(*(commit(broker, (0, offset, -1, ""), who=member) for offset in range(200)))
            kept = broker.coordinator.journals.find("readers")
            assert kept is not None
            await broker.coordinator.keep_up()
            assert not kept.is_long
            assert kept.partition.log.start_offset > 200
            await commit(broker, (1, 1, -1, ""), who=member)
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            assert await committed(broker) == {0: 199, 1: 1}
            heartbeat(broker, Heartbeat(member))

    asyncio.run(walk())


def test_a_member_that_falls_silent_is_removed_by_the_clock(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            member = await stable(broker, session_timeout_ms=30)
            await commit(broker, (0, 1, -1, ""), who=member)
            await until(
                lambda: describe_group(broker, DescribeGroup(group="readers")).state is GroupState.EMPTY
            )
            with pytest.raises(UnknownMember):
                heartbeat(broker, Heartbeat(member))
            assert await committed(broker) == {0: 1}

    asyncio.run(walk())


def test_a_group_in_which_nothing_is_left_is_forgotten_for_good(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            member = await stable(broker)
            assert await leave_group(
                broker, LeaveGroup(group="readers", leavers=[Leaver(member.member_id)])
            ) == [None]
            assert list_groups(broker, ListGroups()) == []
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            assert list_groups(broker, ListGroups()) == []

    asyncio.run(walk())


def test_a_refused_request_leaves_no_group_behind(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await orders(broker)
            with pytest.raises(UnknownMember):
                await join(broker, "stranger")
            with pytest.raises(UnknownMember):
                await commit(broker, (0, 1, -1, ""), who=Membership("readers", "stranger", 3))
            refusals = await commit_offsets(
                broker, CommitOffsets(READER, [TopicCommit(ORDERS, [(9, 1, -1, "")])])
            )
            assert list(refusals) == [TopicPartition(ORDERS, 9)]
            assert list_groups(broker, ListGroups()) == []

    asyncio.run(walk())


def test_a_member_that_never_comes_back_with_its_id_leaves_no_group_behind(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            command = JoinGroup(
                group="readers",
                session_timeout_ms=20,
                rebalance_timeout_ms=20,
                protocol_type="consumer",
                protocols=(("range", b""),),
                is_id_required=True,
            )
            with pytest.raises(MemberIdRequired):
                await join_group(broker, command)
            assert len(list_groups(broker, ListGroups())) == 1
            await until(lambda: not list_groups(broker, ListGroups()))

    asyncio.run(walk())


def test_a_client_that_goes_away_while_it_waits_is_not_waited_for(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            member = await stable(broker)
            newcomer = asyncio.create_task(join(broker))
            await until(lambda: len(describe_group(broker, DescribeGroup(group="readers")).members) == 2)
            with pytest.raises(RebalanceInProgress):
                heartbeat(broker, Heartbeat(member))
            newcomer.cancel()
            await asyncio.gather(newcomer, return_exceptions=True)
            again = await join(broker, member.member_id)
            assert (again.generation, len(again.members)) == (2, 1)

    asyncio.run(walk())


def test_whoever_waits_is_told_when_the_broker_stops(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await stable(broker)
            newcomer = asyncio.create_task(join(broker))
            await until(lambda: len(describe_group(broker, DescribeGroup(group="readers")).members) == 2)
            await close_broker(broker)
            with pytest.raises(ShuttingDown):
                await newcomer
            with pytest.raises(ShuttingDown):
                await commit(broker, (0, 1, -1, ""))

    asyncio.run(walk())


def test_a_topic_made_anew_begins_without_the_offsets_of_the_old_one(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await orders(broker)
            await commit(broker, (0, 5, -1, ""))
            await delete_topic(broker, DeleteTopic(name="orders"))
            assert await committed(broker) == {}
            await orders(broker)
            assert await committed(broker) == {}
            assert (await group_lag(broker, DescribeLag(group="readers"))).partitions == ()
            await commit(broker, (1, 1, -1, ""))
            assert await committed(broker) == {1: 1}

    asyncio.run(walk())


def test_deleted_offsets_and_groups_stay_deleted(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await orders(broker)
            await commit(broker, (0, 5, -1, ""), (1, 6, -1, ""))
            assert (
                await delete_offsets(broker, DeleteOffsets(group="readers", unwanted=[(ORDERS, [0])])) == {}
            )
            await commit(broker, (0, 1, -1, ""), who=Membership("others", "", -1))
            await delete_group(broker, DeleteGroup(group="others"))
            with pytest.raises(GroupNotFound):
                await delete_group(broker, DeleteGroup(group="others"))
        async with running(FolderDisk(tmp_path)) as broker:
            assert await committed(broker) == {1: 6}
            assert await committed(broker, "others") == {}

    asyncio.run(walk())


def test_a_full_disk_refuses_commits_and_keeps_what_was_committed() -> None:
    async def walk() -> None:
        disk = SimulatedDisk(Random(1))
        async with running(disk, CONFIG) as broker:
            await orders(broker)
            await commit(broker, (0, 5, -1, ""))
            disk.fill_up(after_bytes=0)
            with pytest.raises(StorageFull):
                await commit(broker, (0, 6, -1, ""))
            assert await committed(broker) == {0: 5}
            disk.fill_up(after_bytes=1 << 30)
            await commit(broker, (0, 7, -1, ""))
            assert await committed(broker) == {0: 7}

    asyncio.run(walk())
