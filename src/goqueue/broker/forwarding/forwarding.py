"""Commands are carried to where they are at home, and those that come from other nodes are run here.

A command that another node sends is run here or refused, and never sent on: who sent it looks at its image
again. It is sent once more when it was not run, be it that nobody was reached, or that who was does not
lead the place; one that only looks also when its answer was lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.gathering import find_in_all, watch_all
from goqueue.broker.forwarding.route import MAYBE_RUN, NOT_RUN, route
from goqueue.broker.forwarding.settling import settle_in_shares
from goqueue.broker.forwarding.shares import publish_in_shares
from goqueue.broker.groups.assigned import (
    heartbeat_assigned,
    join_assigned,
    leave_assigned,
    revoke_partitions,
)
from goqueue.broker.groups.lag import group_lag
from goqueue.broker.groups.offsets import fetch_offsets
from goqueue.broker.moving.reassigning import describe_copies
from goqueue.broker.queue.auto_commit import commit_polled
from goqueue.broker.queue.poll import poll
from goqueue.broker.queue.settle import settle
from goqueue.broker.read.find_offset import find_offset
from goqueue.broker.read.frames import offsets_at, read_frames, split_points, watch_offsets
from goqueue.broker.read.read import read_messages
from goqueue.broker.schemas.verbs import (
    delete_schema_version,
    delete_subject,
    follow_registry,
    register_schema,
    set_compatibility,
    set_registry_mode,
    set_validation,
)
from goqueue.broker.write.publish import publish
from goqueue.core.cluster.values import Topic
from goqueue.model.cluster import NodeId
from goqueue.model.commands import (
    BatchesRead,
    FindOffset,
    FindOffsets,
    FoundOffset,
    MessagesRead,
    OffsetRange,
    Publish,
    Published,
    ReadFrames,
    ReadMessages,
    SplitRange,
    WatchOffsets,
)
from goqueue.model.delivery import CommitPolled, Poll, Polled, Settle, SettleOutcome
from goqueue.model.errors import NotSupported
from goqueue.model.group_commands import (
    DescribeLag,
    FetchOffsets,
    HeartbeatAssigned,
    JoinAssigned,
    LeaveAssigned,
    RevokePartitions,
)
from goqueue.model.groups import AssignedMember, GroupLag, Reconciliation, TopicCommit
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.moving import CopiesView, DescribeCopies
from goqueue.model.places import Command
from goqueue.model.ports import Peers
from goqueue.model.schema_commands import (
    DeleteSchemaVersion,
    DeleteSubject,
    FollowRegistry,
    RegisterSchema,
    RegistryNews,
    SetCompatibility,
    SetRegistryMode,
    SetValidation,
)
from goqueue.model.schemas import SchemaVersion

C = TypeVar("C", bound=Command)
T = TypeVar("T")
Verb = Callable[[Broker, Any], Awaitable[Any]]

PATIENCE_MS = 5_000
"""So long a place without a leader is waited for."""
ANSWER_MS = 30_000
"""So long an answer is waited for, beyond what the command itself says."""
_PAUSE_S = 0.1
"""Before another look: the node that was asked may have an older image than this one."""


class Passed(NamedTuple):
    """A verb that nodes run for each other."""

    verb: Verb
    reply: Any
    """The type of what it gives."""


PASSED_ON: Mapping[type, Passed] = {
    Publish: Passed(publish, Published),
    ReadMessages: Passed(read_messages, MessagesRead),
    ReadFrames: Passed(read_frames, BatchesRead),
    SplitRange: Passed(split_points, list[int]),
    FindOffset: Passed(find_offset, FoundOffset),
    FindOffsets: Passed(offsets_at, dict[TopicPartition, int]),
    WatchOffsets: Passed(watch_offsets, dict[TopicPartition, OffsetRange]),
    JoinAssigned: Passed(join_assigned, AssignedMember),
    HeartbeatAssigned: Passed(heartbeat_assigned, Reconciliation),
    RevokePartitions: Passed(revoke_partitions, Reconciliation),
    LeaveAssigned: Passed(leave_assigned, None),
    Poll: Passed(poll, Polled),
    CommitPolled: Passed(commit_polled, None),
    Settle: Passed(settle, SettleOutcome),
    DescribeLag: Passed(group_lag, GroupLag),
    FetchOffsets: Passed(fetch_offsets, list[TopicCommit]),
    RegisterSchema: Passed(register_schema, SchemaVersion),
    DeleteSchemaVersion: Passed(delete_schema_version, int),
    DeleteSubject: Passed(delete_subject, list[int]),
    SetCompatibility: Passed(set_compatibility, None),
    SetValidation: Passed(set_validation, None),
    SetRegistryMode: Passed(set_registry_mode, None),
    FollowRegistry: Passed(follow_registry, RegistryNews),
    DescribeCopies: Passed(describe_copies, CopiesView),
}
_ASKED_ONCE = frozenset(
    (JoinAssigned, RevokePartitions, LeaveAssigned, Poll, CommitPolled, DeleteSchemaVersion, DeleteSubject)
)
"""What may have been done when the answer is lost: whoever asked decides whether to ask again."""
_READ_BACK = frozenset(
    (RegisterSchema, DeleteSchemaVersion, DeleteSubject, SetCompatibility, SetValidation, SetRegistryMode)
)
"""What changes the registry: who asked for it here reads it here."""


class Forwarding:
    """How one of several nodes runs commands."""

    def __init__(self, broker: Broker, peers: Peers) -> None:
        self._broker = broker
        self._peers = peers
        self.me = NodeId(broker.config.node_id)
        self._leaders: dict[TopicName, tuple[int, Sequence[NodeId | None]]] = {}
        """Of topics that were published to, and the revision of the image that tells so."""
        self._changed = asyncio.Event()
        broker.agreement.listeners.append(self._changed.set)

    async def run(self, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> T:
        """What a verb gives for a command, wherever that is at home."""
        if isinstance(command, Publish):
            return cast(T, await publish_in_shares(self._broker, command, self))
        if isinstance(command, Settle):
            return cast(T, await settle_in_shares(self._broker, command, self))
        if type(command) not in PASSED_ON:
            return await verb(self._broker, command)
        patience = self.patience()
        while True:
            try:
                answer = cast(T, await self._run_once(command))
                break
            except (*NOT_RUN, *MAYBE_RUN) as error:
                is_done = isinstance(error, MAYBE_RUN) and type(command) in _ASKED_ONCE
                if is_done or not await patience.is_worth_another_try():
                    raise
        sharing = self._broker.schemas.sharing
        if type(command) in _READ_BACK and sharing is not None:
            await sharing.catch_up()
        return answer

    async def _run_once(self, command: Command) -> object:
        if isinstance(command, FindOffsets):
            return await find_in_all(self._broker, command, self)
        if isinstance(command, WatchOffsets):
            return await watch_all(self._broker, command, self)
        [node] = route(command.place, self._broker.metadata, self.me)
        return await self.run_at(node, command)

    async def run_at(self, node: NodeId, command: Command) -> object:
        """What a verb gives at one node, or the error that it raises there."""
        if node == self.me:
            return await PASSED_ON[type(command)].verb(self._broker, command)
        wait_ms = ANSWER_MS + getattr(command, "wait_ms", 0)
        return (await self._peers.call(node, command, wait_ms=wait_ms)).reply

    async def answer(self, command: Command) -> object:
        """What another node wants to know."""
        passed = PASSED_ON.get(type(command))
        if passed is None:
            raise NotSupported(f"{type(command).__name__} cannot be asked of another node")
        return await passed.verb(self._broker, command)

    def leaders(self, topic: Topic) -> Sequence[NodeId | None]:
        """Who leads each partition of a topic."""
        image = self._broker.metadata
        revision, leaders = self._leaders.get(topic.name, (-1, ()))
        if revision != image.revision:
            leaders = [image.record(topic, number).leader for number in range(topic.partitions)]
            self._leaders = {name: told for name, told in self._leaders.items() if told[0] == image.revision}
            self._leaders[topic.name] = image.revision, leaders
        return leaders

    def patience(self) -> "Patience":
        return Patience(self._broker, self._changed)


class Patience:
    """For one request: how long it waits for the image to tell of somebody who answers."""

    def __init__(self, broker: Broker, changed: asyncio.Event) -> None:
        self._clock = broker.clock
        self._changed = changed
        self._end_ns: int | None = None

    async def is_worth_another_try(self) -> bool:
        """Wait until something may be different; False: it has taken too long."""
        now_ns = self._clock.monotonic_ns()
        if self._end_ns is None:  # it is the first trouble: what was waited for before does not count
            self._end_ns = now_ns + PATIENCE_MS * 1_000_000
        if now_ns >= self._end_ns:
            return False
        self._changed.clear()
        try:
            async with asyncio.timeout(_PAUSE_S):
                await self._changed.wait()
        except TimeoutError:
            pass
        return True
