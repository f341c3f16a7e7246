"""What a node of several has counted of its part in the cluster; one node alone counts nothing here."""

from collections import Counter
from collections.abc import Callable
from enum import StrEnum


class ElectionType(StrEnum):
    FIRST = "first"
    """The partition is new."""
    PREFERRED = "preferred"
    """Who should lead it does."""
    FAILOVER = "failover"
    """Another than who should."""
    UNCLEAN = "unclean"
    """One that may lack something: a person wanted it."""


class ClusterCounts:
    """By topic, as the leader of its partitions has seen it."""

    def __init__(self) -> None:
        self.isr_shrinks: Counter[str] = Counter()
        self.isr_expands: Counter[str] = Counter()
        self.elections: Counter[tuple[str, str]] = Counter()
        """By topic and type."""
        self.replicated_bytes: Counter[str] = Counter()
        self.controller_elections = 0
        self.controller_since_ms: int | None = None
        """Since when this node decides for all, by its wall clock; None: it does not."""
        self.nodes_given_up = 0
        self.lags: Callable[[], dict[tuple[str, str], int]] = dict
        """How many messages followers of partitions that are led here lack, by topic and node."""
        self.is_store_away: Callable[[], bool] = lambda: False
        """Whether what is agreed has not been heard of for longer than a session lasts."""
        self.is_store_unsafe: Callable[[], bool] = lambda: False
        """Whether it is of a version that may lose what it has confirmed."""
