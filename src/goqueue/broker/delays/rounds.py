"""Rounds: what fell due is appended to its partitions together, and what came of it is noted.

On one node a round is over when it has begun: partitions are asked in turn, and the disk tells later. With
several nodes the leaders of the partitions append, and no more is sent before all of them have answered.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from goqueue.broker.appending import append_once
from goqueue.broker.delays.batches import batches_due
from goqueue.broker.delays.landings import Landings
from goqueue.broker.delays.reaching import deliver
from goqueue.broker.delays.stock import Ready
from goqueue.broker.delays.store import DelayStore
from goqueue.broker.delays.targets import Target
from goqueue.core.delays.delivered import Step
from goqueue.model.errors import GoQueueError, NotFound

if TYPE_CHECKING:  # the broker opens and keeps its delays through the keeper
    from goqueue.broker.broker import Broker


class Rounds:
    """Of one store, for as long as this node keeps it; `is_over` is called when one ends."""

    def __init__(
        self, broker: "Broker", store: DelayStore, landings: Landings, is_over: Callable[[], None]
    ) -> None:
        self._broker = broker
        self._store = store
        self._landings = landings
        self._is_over = is_over
        self._task: asyncio.Task[None] | None = None
        """Leaders of partitions have been asked to append, and not all have answered."""
        self._sent_out: frozenset[int] = frozenset()
        """The messages of that round."""

    @property
    def is_under_way(self) -> bool:
        return self._task is not None

    def has_out(self, offset: int) -> bool:
        """Whether a message is on its way just now."""
        return self._task is not None and offset in self._sent_out

    async def over(self) -> None:
        """Return when none is under way."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def begin(self, taken: Mapping[int, list[Ready]], parted_ms: int | None, commit_mark: int) -> None:
        """Append what was taken, by the indexes of targets; messages of one due time may have been parted."""
        if self._broker.is_one_of_several:
            self._send_out(taken, parted_ms, commit_mark)
            return
        for index, items in taken.items():
            target = self._store.targets.all[index]
            for part, step in _parts(items, parted_ms, commit_mark):
                if not target.is_blocked:
                    self._deliver(target, part, step)

    def _send_out(self, taken: Mapping[int, list[Ready]], parted_ms: int | None, commit_mark: int) -> None:
        """Have the leaders of partitions append; no more is sent before all of them have answered.

        What a leader refuses, or does not answer in time, is looked up before that partition gets more.
        """
        if not taken:
            return

        async def send(target: Target, items: list[Ready]) -> None:
            for part, step in _parts(items, parted_ms, commit_mark):
                end_offset = await deliver(self._broker, self._store, target, part, step)
                if end_offset is None:
                    self._landings.block(target)
                    return
                self._note_delivered(target, part, step)
                self._confirm(target, step, end_offset)

        async def send_all() -> None:
            sending = (send(self._store.targets.all[index], items) for index, items in taken.items())
            await asyncio.gather(*sending)

        self._sent_out = frozenset(item.offset for items in taken.values() for item in items)
        self._task = asyncio.get_running_loop().create_task(send_all())
        self._broker.keep(self._task)
        self._task.add_done_callback(self._end_round)

    def _end_round(self, task: "asyncio.Task[None]") -> None:
        if self._task is task:
            self._task = None
            self._is_over()

    def _deliver(self, target: Target, items: list[Ready], step: Step) -> None:
        partition = self._landings.partition_of(target)
        if partition is None:
            self._landings.forget(target)
            return
        try:
            base_offset, _ = append_once(partition, batches_due(self._broker, items, step))
            committed = partition.committed(partition.log.end_offset)
        except NotFound:
            self._landings.forget(target)
            return
        except GoQueueError:
            self._landings.block(target)
            return
        self._broker.telemetry.of(partition.source).due(
            base_offset, [item.waiting.number for item in items], self._broker.clock.wall_us()
        )
        self._note_delivered(target, items, step)
        end_offset = partition.log.end_offset
        if committed is None:
            self._confirm(target, step, end_offset)
        else:
            committed.add_done_callback(partial(self._confirm_or_block, target, step, end_offset))

    def _note_delivered(self, target: Target, items: list[Ready], step: Step) -> None:
        target.delivered.add(step)
        target.pending -= len(items)
        for item in items:
            if item.waiting.number != item.offset:
                self._store.moved.pop(item.waiting.number, None)

    def _confirm_or_block(
        self, target: Target, step: Step, end_offset: int, committed: "asyncio.Future[None]"
    ) -> None:
        if committed.cancelled() or committed.exception() is not None:
            self._landings.block(target)
        else:
            self._confirm(target, step, end_offset)

    def _confirm(self, target: Target, step: Step, end_offset: int) -> None:
        target.confirmed.add(step)
        target.scan_offset = max(target.scan_offset, end_offset)
        self._store.is_changed = True


def _parts(items: list[Ready], parted_ms: int | None, commit_mark: int) -> list[tuple[list[Ready], Step]]:
    """What goes to one partition. Messages of one due time that do not all go now make their own step."""
    parted = [item for item in items if item.due_ms == parted_ms]
    whole = items[: len(items) - len(parted)]
    parts = [(whole, Step(whole[-1].due_ms, commit_mark))] if whole else []
    return [*parts, (parted, Step(parted[-1].due_ms, parted[-1].offset + 1))] if parted else parts
