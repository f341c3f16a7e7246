"""Settings of groups, by the names that Kafka's tools use, and the commands about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from goqueue.model.places import Place, Seat
from goqueue.model.topics import SettingChange


class OffsetReset(StrEnum):
    """Where a share group begins in a partition that it has never read from."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """What was set for a group; None: as the node or the topic says."""

    given: Mapping[str, str] = field(default_factory=dict)
    """As it was given, by name."""
    consumer_session_ms: int | None = None
    consumer_heartbeat_ms: int | None = None
    share_session_ms: int | None = None
    share_heartbeat_ms: int | None = None
    share_lock_ms: int | None = None
    share_offset_reset: OffsetReset = OffsetReset.LATEST
    share_delivery_count_max: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterGroupSettings:
    """Change single settings of a group, be it there or not; None brings back the default."""

    group: str
    changes: Sequence[SettingChange]
    validate_only: bool = False

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupSettings:
    group: str

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupSettings:
    """The groups for which something was set."""

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE
