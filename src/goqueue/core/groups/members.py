"""A member of a group, and what members have in common."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from struct import Struct, error

from goqueue.core.groups.events import MemberKept
from goqueue.model.group_commands import JoinGroup
from goqueue.model.groups import Protocols

NS_PER_MS = 1_000_000
CONSUMER = "consumer"
"""The protocol type of groups whose members subscribe to topics; others are carried unread."""
_VERSION_AND_COUNT = Struct(">hi")
_LENGTH = Struct(">h")


@dataclass(slots=True)
class Member:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    deadline_ns: int = 0
    """When the session ends by itself. It does not while the member waits for an answer of ours."""
    is_joining: bool = False
    is_syncing: bool = False

    @property
    def is_waiting(self) -> bool:
        return self.is_joining or self.is_syncing

    def touch(self, now_ns: int) -> None:
        """A sign of life."""
        self.deadline_ns = now_ns + self.session_timeout_ms * NS_PER_MS

    def follow(self, command: JoinGroup) -> None:
        """Take over what a member says of itself when it joins again."""
        self.client_id = command.client_id
        self.client_host = command.client_host
        self.session_timeout_ms = command.session_timeout_ms
        self.rebalance_timeout_ms = command.rebalance_timeout_ms
        self.protocols = command.protocols

    def metadata(self, protocol: str) -> bytes:
        return dict(self.protocols).get(protocol, b"")

    def kept(self, assignment: bytes) -> MemberKept:
        return MemberKept(
            self.member_id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.session_timeout_ms,
            self.rebalance_timeout_ms,
            self.protocols,
            assignment,
        )


def new_member(member_id: str, command: JoinGroup) -> Member:
    return Member(
        member_id,
        command.instance_id,
        command.client_id,
        command.client_host,
        command.session_timeout_ms,
        command.rebalance_timeout_ms,
        command.protocols,
    )


def restored_member(kept: MemberKept) -> Member:
    return Member(
        kept.member_id,
        kept.instance_id,
        kept.client_id,
        kept.client_host,
        kept.session_timeout_ms,
        kept.rebalance_timeout_ms,
        kept.protocols,
        kept.assignment,
    )


def common_protocols(members: Iterable[Member]) -> set[str] | None:
    """The protocols that all of them know; None when there is nobody to ask."""
    known: set[str] | None = None
    for member in members:
        names = {name for name, _ in member.protocols}
        known = names if known is None else known & names
    return known


def choose_protocol(members: Collection[Member]) -> str:
    """The protocol that most members like best of those that all of them know."""
    candidates = common_protocols(members)
    assert candidates, "members without a common protocol are not let in"
    votes = Counter(next(name for name, _ in member.protocols if name in candidates) for member in members)
    # Of equals, the one that was voted for first: the choice must not depend on the order of a set.
    return votes.most_common(1)[0][0]


def subscribed_topics(metadata: bytes) -> set[str] | None:
    """The topics in a consumer's subscription (version, then names); None when it cannot be read."""
    try:
        _, count = _VERSION_AND_COUNT.unpack_from(metadata)
        position, topics = _VERSION_AND_COUNT.size, set()
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(metadata, position)
            position += _LENGTH.size
            name = metadata[position : position + length]
            if len(name) != length:
                return None
            topics.add(name.decode())
            position += length
    except (error, UnicodeDecodeError):
        return None
    return topics
