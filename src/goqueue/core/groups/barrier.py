"""Until when a classic group waits: for its members to join again, then for the leader's assignment."""


class Barrier:
    """The first members of an empty group gather: others are waited for although all known have joined."""

    __slots__ = ("_end_ns", "_gathering_ns", "_has_newcomers", "deadline_ns", "is_gathering")

    def __init__(self, gathering_ns: int) -> None:
        self.deadline_ns = 0
        self.is_gathering = False
        self._gathering_ns = gathering_ns
        self._end_ns = 0
        self._has_newcomers = False

    def begin(self, now_ns: int, patience_ns: int, *, is_gathering: bool) -> None:
        """Everybody has to join again, within this time at most."""
        self.is_gathering = is_gathering
        self._has_newcomers = False
        self._end_ns = self.deadline_ns = now_ns + patience_ns
        if is_gathering:
            self.deadline_ns = min(now_ns + self._gathering_ns, self._end_ns)

    def wait(self, now_ns: int, patience_ns: int) -> None:
        """Wait from now on for so long, for whatever comes next."""
        self.deadline_ns = now_ns + patience_ns

    def note_newcomer(self) -> None:
        self._has_newcomers = True

    def is_over(self, now_ns: int) -> bool:
        """Whether nobody is waited for any longer. While members gather, each round of newcomers adds one."""
        if self.deadline_ns > now_ns:
            return False
        if self.is_gathering and self._has_newcomers and now_ns < self._end_ns:
            # More came while we waited for more: probably others follow.
            self._has_newcomers = False
            self.deadline_ns = min(now_ns + self._gathering_ns, self._end_ns)
            return self._gathering_ns == 0
        return True
