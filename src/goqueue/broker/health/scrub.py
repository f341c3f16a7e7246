"""The scrub: sealed segments are read back and checked, slowly, over and over.

Bytes go bad on a disk without a word, and the first to know should not be a reader. What is found is told in
the health checks, a metric and the log; it stays until the next pass finds the place well, or gone.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from goqueue.log.scrub import scrub
from goqueue.log.sealed_segment import SealedSegment
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import TopicPartition

if TYPE_CHECKING:
    from goqueue.broker.broker import Broker
    from goqueue.broker.storage.partition import Partition

log = logging.getLogger(__name__)

PASS_INTERVAL_S = 3_600
"""A pass begins no sooner than this after the last one began: a small folder is not read all day."""
FIRST_AFTER_S = 10
_PAUSE_FACTOR = 19
"""So much longer than a step took is the pause behind it at least: at most a twentieth of a core is used."""

Place = tuple[TopicPartition, int]
"""A partition, and the base offset of a segment."""


class Scrub:
    """What has been read back, and what was found."""

    def __init__(self) -> None:
        self.scrubbed_bytes = 0
        self.pass_count = 0
        self._bad: dict[Place, list[str]] = {}

    @property
    def bad(self) -> Mapping[Place, list[str]]:
        """Segments with frames that have gone bad, and what is wrong with each."""
        return self._bad

    @property
    def bad_frames(self) -> int:
        return sum(map(len, self._bad.values()))

    def note(self, place: Place, problems: list[str]) -> None:
        """A segment was read to its end."""
        for problem in problems:
            if problem not in self._bad.get(place, ()):
                log.error("frame_bad partition=%s segment=%d at=%s", *place, problem.replace(" ", "_"))
        if problems:
            self._bad[place] = problems
        else:
            self._bad.pop(place, None)

    def end_pass(self, seen: set[Place]) -> None:
        """All there was has been read: what was not there any more is no problem either."""
        self.pass_count += 1
        for place in self._bad.keys() - seen:
            del self._bad[place]


async def keep_scrubbing(broker: "Broker") -> None:
    """Until the broker is closed: pass after pass over all sealed segments."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(FIRST_AFTER_S)
    while broker.config.scrub_bytes_per_s:
        begun_s = loop.time()
        await scrub_all(broker)
        await asyncio.sleep(max(begun_s + PASS_INTERVAL_S - loop.time(), 0))


async def scrub_all(broker: "Broker") -> None:
    """One pass."""
    seen: set[Place] = set()
    for partition in broker.all_partitions():
        try:
            segments = partition.log.sealed_segments
        except GoQueueError:
            continue  # it has stopped, or is gone
        for segment in segments:
            seen.add((partition.source, segment.base_offset))
            await _scrub_segment(broker, partition, segment)
    broker.health.scrub.end_pass(seen)


async def _scrub_segment(broker: "Broker", partition: "Partition", segment: SealedSegment) -> None:
    problems: list[str] = []
    position = 0
    while position < segment.size:
        begun_ns = broker.clock.monotonic_ns()
        try:
            done = await broker.threads.run(scrub, segment, position)
        except OSError as error:
            if not _is_there(partition, segment):
                return  # retention or a deletion has taken it meanwhile
            problems.append(f"byte {position}: {error.strerror or error}")
            break
        if done.problem:
            problems.append(done.problem)
        position = done.position
        broker.health.scrub.scrubbed_bytes += done.size_bytes
        took_s = (broker.clock.monotonic_ns() - begun_ns) / 1e9
        pause_s = done.size_bytes / broker.config.scrub_bytes_per_s
        await asyncio.sleep(max(pause_s, _PAUSE_FACTOR * took_s))
    if _is_there(partition, segment):
        broker.health.scrub.note((partition.source, segment.base_offset), problems)
        if problems and partition.copies is not None:
            partition.copies.gone_bad(problems[0])


def _is_there(partition: "Partition", segment: SealedSegment) -> bool:
    try:
        return segment in partition.log.sealed_segments
    except GoQueueError:
        return False
