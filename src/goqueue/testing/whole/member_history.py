"""What the simulation remembers of members of groups: what each believes to own."""

from dataclasses import dataclass
from itertools import combinations

from goqueue.model.groups import Sharing
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.testing.whole.group_history import GroupHistory
from goqueue.testing.whole.partition_history import demand

NONE: frozenset[TopicPartition] = frozenset()


@dataclass(slots=True, eq=False)
class SimulatedMember:
    """A process that reads. It owns what it was told, until it lets go or learns that it is no member."""

    name: str
    topics: list[TopicName]
    member_id: str = ""
    """Empty: it is to join, for the first time or anew."""
    generation: int = 0
    """0: not known; the next heartbeat tells."""
    owned: frozenset[TopicPartition] = NONE
    to_revoke: frozenset[TopicPartition] = NONE
    """What of it is to be let go of."""
    revocation_ms: int | None = None
    """When that is taken away: a member that minds its deadline reads none of it from then on."""
    paused_until_ns: int = 0
    """Until then the process stands still, and may wake up as a zombie."""
    is_busy: bool = False

    def believes(self, *, wall_ms: int) -> frozenset[TopicPartition]:
        """What it takes for its own."""
        is_over = self.revocation_ms is not None and wall_ms >= self.revocation_ms
        return self.owned - self.to_revoke if is_over else self.owned

    def lose_everything(self) -> None:
        """It has learnt that it does not know what it owns."""
        self.generation, self.owned, self.to_revoke, self.revocation_ms = 0, NONE, NONE, None

    def end_session(self) -> None:
        """It has learnt that it is no member."""
        self.lose_everything()
        self.member_id = ""


class MemberGroup(GroupHistory):
    """A group, its offsets and its members."""

    def __init__(self, name: str, sharing: Sharing) -> None:
        super().__init__(name)
        self.sharing = sharing
        self.members: list[SimulatedMember] = []
        self.member_count = 0

    def check_owners(self, known_ids: set[str], *, wall_ms: int) -> None:
        """No partition has two owners: at any moment in a cooperative group, in a generation in an eager one.

        A zombie whose session is over is no member, whatever it believes: its commits are refused.
        """
        present = [member for member in self.members if member.member_id in known_ids]
        for one, other in combinations(present, 2):
            if self.sharing is Sharing.EAGER and one.generation != other.generation:
                continue
            both = one.believes(wall_ms=wall_ms) & other.believes(wall_ms=wall_ms)
            demand(not both, f"group {self.name}: {one.name} and {other.name} both own {sorted(both)}")

    def forget(self, topic: TopicName) -> None:
        super().forget(topic)
        for member in self.members:
            member.owned = frozenset(at for at in member.owned if at.topic != topic)
            member.to_revoke = frozenset(at for at in member.to_revoke if at.topic != topic)
