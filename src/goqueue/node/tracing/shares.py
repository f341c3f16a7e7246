"""Who may tell how much when there is more to tell than may leave."""

from collections.abc import Mapping
from typing import TypeVar

K = TypeVar("K")


def fair_shares(wanted: Mapping[K, int], total: int) -> dict[K, int]:
    """Parts of a total, the same for all, except that nobody gets more than wanted; the others have that."""
    shares: dict[K, int] = {}
    waiting = len(wanted)
    for key, count in sorted(wanted.items(), key=lambda pair: pair[1]):
        shares[key] = min(count, total // waiting)
        total -= shares[key]
        waiting -= 1
    return shares
