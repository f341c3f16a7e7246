"""A workshop without processes: jobs are done at once, where they are asked for."""

import asyncio

from goqueue.model.ports import Job, JobCounts, Workshop


class WorkshopAtHand(Workshop):
    """What a job does is the same as in a helper process; that it cannot be stopped is not."""

    process_count = 0
    waiting_count = 0
    job_limit_ms = 2_000

    def __init__(self) -> None:
        self.counts = JobCounts()

    async def run(self, job: Job, request: bytes, *, whose: str, limit_ms: int | None = None) -> bytes:
        await asyncio.sleep(0)  # others may do something meanwhile, as in truth
        reply = job(request)
        self.counts.done += 1
        return reply
