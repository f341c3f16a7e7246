"""Work that goes to its end, also when whoever asked for it goes away meanwhile.

Then nobody is left to hear how it ended. What a client would have been told is nobody's business any more; a
bug of ours is still told to the log, and asyncio has nothing to complain about.
"""

import asyncio
import logging
from typing import Any, TypeVar

from goqueue.model.errors import GoQueueError

log = logging.getLogger(__name__)
T = TypeVar("T")


async def to_the_end(work: "asyncio.Future[T]") -> T:
    """What a task or a future gives. To cancel the wait is not to cancel the work."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        work.add_done_callback(_hear)
        raise


def _hear(work: "asyncio.Future[Any]") -> None:
    error = None if work.cancelled() else work.exception()
    if error is not None and not isinstance(error, GoQueueError):
        log.error("work_failed reason=%s", error, exc_info=error)
