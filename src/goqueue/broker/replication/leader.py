"""A leader's end of a session: frames go to one follower, as they are written or from the log.

What is appended while a follower is up to date goes out in the next turn of the loop, the very bytes that
were written, and no second copy of them. One that is further behind, or whose connection has no room, gets
whole steps read from the log, a piece at a time, until it has caught up. What is sent is in order and without
a gap: `sent_offset` is where the next piece begins.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from goqueue.broker.storage.partition import Partition
from goqueue.core.cluster.replica import Replica
from goqueue.log.partition_log import PartitionLog
from goqueue.log.reading import Chunk, NotCached, from_disk, from_memory
from goqueue.model.cluster import NodeId
from goqueue.model.errors import GoQueueError
from goqueue.model.ports import Buffer, Clock, Stream, Threads
from goqueue.model.replication import Ack, Following, Message
from goqueue.model.settings import KiB, MiB

_PIECE_BYTES = 256 * KiB
"""What is read from the log at once."""
_TURN_BYTES = 1 * MiB
"""So much is read and sent in one turn of the loop."""


class Leading(Protocol):
    """Who answers for the partition."""

    partition: Partition
    machine: Replica

    def acknowledged(self, sender: "Sender", ack: Ack) -> None: ...

    def lost_follower(self, sender: "Sender") -> None: ...

    def sent(self, size: int) -> None:
        """So many bytes of frames go to a follower."""

    def cannot_read(self, error: GoQueueError) -> None:
        """The log cannot be read where a follower wants it."""


class Throttle:
    """How fast a node sends to those that a reassignment brings, whoever they are and to all together."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._paid_until_ns = 0

    def pause_s(self) -> float:
        """How long to wait before the next piece; 0: it may go."""
        return max(0, self._paid_until_ns - self._clock.monotonic_ns()) / 1e9

    def pay(self, size: int, bytes_per_s: int) -> None:
        now_ns = self._clock.monotonic_ns()
        self._paid_until_ns = max(now_ns, self._paid_until_ns) + size * 1_000_000_000 // bytes_per_s


class Sender:
    """Sends to one follower. It ends with its stream."""

    def __init__(self, leading: Leading, stream: Stream, threads: Threads, throttle: Throttle) -> None:
        self.stream = stream
        self.node: NodeId = stream.peer.node
        self._leading = leading
        self._threads = threads
        self._throttle = throttle
        self.sent_bytes = 0
        self._sent_offset: int | None = None
        """None: it was not told to go yet."""
        self._is_reading = False
        """A thread reads for it, or the next turn will."""
        self._reading: asyncio.Future[None] | None = None
        self._told = (-1, -1)
        """The commit mark and the start, as it knows them."""

    def answer(self, message: Following) -> None:
        """What the machine says to its question."""
        self.stream.send(message)

    def end(self, message: Following) -> None:
        """The session is over, and the follower is told how it goes on; it closes the stream."""
        self._sent_offset = None
        self.stream.send(message)

    def go(self, offset: int) -> None:
        """It goes on from an offset."""
        self._sent_offset = offset
        self._pump()

    def push(self, base_offset: int, end_offset: int, buffers: Sequence[Buffer], size: int) -> None:
        """Something was written."""
        if self._sent_offset == base_offset and self.stream.has_room and not self._is_reading:
            self._send(end_offset, buffers, size)
        elif self._sent_offset is not None:
            self._pump()

    def tell(self) -> None:
        """Send the news, if there are any that it has not heard."""
        log = self._leading.partition.log
        if self._sent_offset is not None and self._told != (
            self._leading.machine.commit_mark,
            log.start_offset,
        ):
            self._send(self._sent_offset, (), 0)

    def close(self) -> None:
        """Send nothing any more."""
        self._sent_offset = None
        self.stream.close()

    # Called by the stream.

    def received(self, message: Message, frames: Buffer) -> None:
        if isinstance(message, Ack):
            self._leading.acknowledged(self, message)

    def has_room_again(self) -> None:
        self._pump()

    def ended(self) -> None:
        self._sent_offset = None
        self._leading.lost_follower(self)

    def _send(self, end_offset: int, buffers: Sequence[Buffer], size: int) -> None:
        message = self._leading.machine.frames_to(self.node, end_offset)
        start_offset = self._leading.partition.log.start_offset
        if message.start_offset != start_offset:
            # The machine goes by where batches begin; what was given up may end within one.
            message = replace(message, start_offset=start_offset)
        self._sent_offset = end_offset
        if size:
            self.sent_bytes += size
            self._leading.sent(size)
        self._told = (message.commit_mark, start_offset)
        self.stream.send(message, buffers)

    def _pump(self) -> None:
        """Send what is written and not sent, as far as there is room and the bytes are at hand."""
        if self._is_reading:
            return
        try:
            self._send_from(self._leading.partition.log)
        except GoQueueError as error:
            self._leading.cannot_read(error)

    def _send_from(self, log: PartitionLog) -> None:
        budget = _TURN_BYTES
        while self._sent_offset is not None and self._sent_offset < log.end_offset and self.stream.has_room:
            if budget <= 0:
                self._is_reading = True
                asyncio.get_running_loop().call_soon(self._go_on)
                return
            rate = self._rate()
            if rate and (pause_s := self._throttle.pause_s()):
                self._is_reading = True
                asyncio.get_running_loop().call_later(pause_s, self._go_on)
                return
            try:
                chunk = log.read_steps(self._sent_offset, _PIECE_BYTES, read_bytes=from_memory)
            except NotCached:
                self._is_reading = True
                self._reading = asyncio.ensure_future(self._read_cold(log, self._sent_offset))
                return
            self._send(chunk.end_offset, chunk.batches, chunk.size)
            budget -= chunk.size
            if rate:
                self._throttle.pay(chunk.size, rate)

    def _rate(self) -> int:
        """Bytes a second, if this one is only being brought and the order says how fast; else 0."""
        record = self._leading.machine.record
        is_coming = record is not None and self.node in record.adding and self.node not in record.isr
        return record.throttle_bytes_per_s if is_coming and record is not None else 0

    def _go_on(self) -> None:
        self._is_reading = False
        self._pump()

    async def _read_cold(self, log: PartitionLog, offset: int) -> None:
        """Read a piece in a thread, and go on behind it."""
        try:
            chunk: Chunk | None = await self._threads.run(
                log.read_steps, offset, _PIECE_BYTES, read_bytes=from_disk
            )
        except GoQueueError as error:
            self._is_reading = False
            if self._sent_offset == offset:
                self._leading.cannot_read(error)
            return
        self._is_reading = False
        if self._sent_offset == offset and chunk is not None:
            self._send(chunk.end_offset, chunk.batches, chunk.size)
            if rate := self._rate():
                self._throttle.pay(chunk.size, rate)
            self._pump()
