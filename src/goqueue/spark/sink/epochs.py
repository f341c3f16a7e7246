"""The exactly-once sink: what a task stages, and how a driver commits or aborts it.

    task     stage, stage, …                  on the node's disk, seen by no reader
    driver   commit(sink, epoch, stages)      one step: all of it, once

An epoch is committed by its number: one that comes again is recognised and dropped as a whole. Rows
are never compared, because a task that runs again may have them in another order.

Of two drivers that live at the same time, one is shut out by its generation. Spark makes a writer
anew for every micro-batch and tells only its tasks which run they serve, so a generation is taken
when a run commits for the first time, and is remembered by the process that commits. That process
lives as long as the run, unless a minute passes without a commit; then the run asks again, and the node
knows it: it keeps its generation, or hears that another run has followed it.
Tasks stage under whichever generation is live: a stage that nobody commits does nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from goqueue.client.connection import Client, Refused
from goqueue.model.errors import Fenced, Unavailable
from goqueue.spark.sink import door as sink_door
from goqueue.spark.sink.door import SinkState

if TYPE_CHECKING:
    from goqueue.spark.sink.rows import Packet

_FENCED_MAX = 5
"""How often a task looks up the live generation again: it changes once for each driver that starts."""


@dataclass(frozen=True, slots=True)
class Writing:
    """What tasks and driver must agree on: the sink, the epoch, and the run that writes it."""

    sink: str
    epoch: int
    run: str
    writer: str = ""
    """Whose epochs these are: the query in all its runs. Empty for a batch, which any run may repeat."""


_states: dict[tuple[str, str], SinkState] = {}
"""The generation of each run, by sink and run, and the newest epoch that this run knows of."""


class Stages:
    """The stages of one task attempt. Their names are its own, so a second attempt never mixes with it."""

    def __init__(self, client: Client, writing: Writing, *, task: int) -> None:
        self.names: list[str] = []
        self.message_count = 0
        self.generation = 0
        self._client = client
        self._writing = writing
        self._attempt = f"{task}-{uuid4().hex}"

    def add(self, packet: "Packet") -> None:
        """Stage a packet; on return it is on the node's disk."""
        name = f"{self._attempt}-{len(self.names)}"
        self._stage(name, packet)
        self.names.append(name)
        self.message_count += packet.message_count

    def _stage(self, name: str, packet: "Packet") -> None:
        sink, epoch = self._writing.sink, self._writing.epoch
        for _ in range(_FENCED_MAX):
            self.generation = self.generation or self._live_generation()
            try:
                return sink_door.stage(
                    self._client, sink, packet.body, epoch=epoch, stage_id=name, generation=self.generation
                )
            except Refused as refused:
                if refused.code != sink_door.FENCED:
                    raise
                self.generation = 0
        raise Fenced(f"sink {sink} is taken by one driver after another: is more than one alive?")

    def _live_generation(self) -> int:
        state = sink_door.find_sink(self._client, self._writing.sink)
        if state is None:
            state = sink_door.take_generation(self._client, self._writing.sink)
        return state.generation


def commit_epoch(client: Client, writing: Writing, stages: Sequence[str]) -> None:
    """Make all that was staged visible, once, however often this is called."""
    held = (writing.sink, writing.run)
    if held not in _states:
        _states[held] = sink_door.take_generation(
            client, writing.sink, run=writing.run, writer=writing.writer
        )
    state = _states[held]
    if writing.epoch < state.last_epoch:
        # One epoch comes again after a restart, never an older one: dropping it would lose its rows.
        raise Fenced(
            f"sink {writing.sink} has committed epoch {state.last_epoch}, and now epoch {writing.epoch} "
            "is offered: another driver writes to it, or the checkpoint is new or older than the sink. "
            "A new checkpoint needs a new sinkId"
        )
    committed = sink_door.commit(
        client, writing.sink, stages, epoch=writing.epoch, generation=state.generation
    )
    _states[held] = SinkState(state.generation, committed.epoch)


def abort_epoch(client: Client, writing: Writing, stages: Sequence[str], *, generation: int) -> None:
    """Drop what was staged, unless it is committed: Spark aborts even an epoch whose commit took effect."""
    state = _states.get((writing.sink, writing.run))
    try:
        sink_door.abort(
            client,
            writing.sink,
            stages,
            epoch=writing.epoch,
            generation=generation if state is None else state.generation,
        )
    except (Refused, Unavailable):
        # The node drops stages by itself when they are old, so nothing is lost but room for a while.
        return
