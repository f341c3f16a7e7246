"""commit_written: a reader at the end is a reason to commit now.

Whoever publishes and then reads sees his message, also when he did not wait for the disk: what is written by
the time somebody reads is waited for, one round of the flusher and no more.
"""

import asyncio
from collections.abc import Iterable
from itertools import islice

from goqueue.broker.storage.readable import Readable

_PATIENCE_S = 5
"""A disk that takes longer for one round hangs: a reader is then shown what is committed."""
_SHARE_COUNT = 500
"""So many partitions are looked at, and waited for, before others have their turn: about a millisecond."""


async def commit_written(partitions: Iterable[Readable]) -> None:
    """Return when readers see all that is written by now, or the disk has failed or hangs."""
    left = iter(partitions)
    while share := list(islice(left, _SHARE_COUNT)):
        waiters = [waiter for partition in share if (waiter := partition.commit_written()) is not None]
        if waiters and (await asyncio.wait(waiters, timeout=_PATIENCE_S))[1]:
            return
        if len(share) == _SHARE_COUNT:
            await asyncio.sleep(0)
