"""What of a group's changes is counted: who came and went, when rebalances began and how long they took.

Looked at from outside after each step of a group, whatever its kind, so that the groups themselves know
nothing of metrics.
"""

from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.group import Group
from goqueue.core.telemetry.counters import GroupCounters
from goqueue.model.groups import GroupState

_UNDER_WAY = (GroupState.PREPARING, GroupState.COMPLETING)
_LEFT, _SILENT = "left", "session_timeout"


class GroupWatch:
    """A group as it was when last looked at."""

    __slots__ = ("_begun_ns", "_finished", "_generation", "_member_count")

    def __init__(self, group: Group | AssignedGroup) -> None:
        self._member_count = len(group.members)
        self._generation = group.generation
        self._finished = _finished(group)
        self._begun_ns: int | None = None

    def note(
        self, group: Group | AssignedGroup, counters: GroupCounters, *, now_ns: int, is_time_up: bool
    ) -> None:
        """Count what has changed; `is_time_up`: not because somebody asked, but because time passed."""
        came = len(group.members) - self._member_count
        if came > 0:
            counters.joins += came
        elif came < 0:
            counters.leaves[_SILENT if is_time_up else _LEFT] -= came
        self._member_count += came
        if isinstance(group, AssignedGroup):
            if (finished := _finished(group)) != self._finished:
                counters.rebalance_seconds.observe(group.rebalances.last_duration_ns / 1e9)
                self._finished = finished
        else:
            self._follow(group, came, counters, now_ns=now_ns, is_time_up=is_time_up)

    def _follow(
        self, group: Group, came: int, counters: GroupCounters, *, now_ns: int, is_time_up: bool
    ) -> None:
        """A group in which a member assigns counts no rebalances itself: they show in its states."""
        is_new = group.generation != self._generation
        is_under_way = group.state in _UNDER_WAY
        if self._begun_ns is None and (is_under_way or is_new):
            counters.rebalances[_trigger(came, is_time_up)] += 1
            self._begun_ns = now_ns
        if self._begun_ns is not None and not is_under_way:
            counters.rebalance_seconds.observe((now_ns - self._begun_ns) / 1e9)
            self._begun_ns = None
        self._generation = group.generation


def _trigger(came: int, is_time_up: bool) -> str:
    """In the words of the groups that count for themselves."""
    if came > 0:
        return "member_joined"
    if came < 0:
        return "member_expired" if is_time_up else "member_left"
    return "subscription_changed"


def _finished(group: Group | AssignedGroup) -> int:
    """How many rebalances of a group are over, where it counts them itself."""
    if not isinstance(group, AssignedGroup):
        return 0
    return group.rebalances.successful + group.rebalances.failed
