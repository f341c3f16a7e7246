"""Errors about exactly-once sinks and their epochs."""

from goqueue.model.errors.families import Fenced, NotFound, Unavailable


class SinkNotFound(NotFound):
    """No sink of that name has a generation: take one first."""

    code = "sink_not_found"

    def __init__(self, sink: str) -> None:
        super().__init__(f"sink {sink} is not known: take a generation first")
        self.sink = sink


class StageNotFound(NotFound):
    """A stage that was never written, was dropped, or has expired."""

    code = "stage_not_found"

    def __init__(self, sink: str, epoch: int, stage_id: str) -> None:
        super().__init__(f"sink {sink} has no stage {stage_id} for epoch {epoch}")
        self.sink = sink
        self.epoch = epoch
        self.stage_id = stage_id


class SinkFenced(Fenced):
    """Another writer has taken a newer generation of the same sink."""

    code = "sink_fenced"

    def __init__(self, sink: str, given: int, newest: int) -> None:
        super().__init__(f"sink {sink} is at generation {newest}; generation {given} may not write to it")
        self.sink = sink
        self.generation = newest


class SinkOfAnother(Fenced):
    """The epochs of the sink are counted by another job: write to a sink of your own."""

    code = "sink_of_another"

    def __init__(self, sink: str, writer: str) -> None:
        super().__init__(
            f"sink {sink} counts the epochs of {writer}: another job, or a new checkpoint, needs another sink"
        )
        self.sink = sink
        self.writer = writer


class EpochInterrupted(Unavailable):
    """An epoch of a sink could not be brought into the log now; nothing of it is seen."""

    code = "epoch_interrupted"

    def __init__(self, sink: str, epoch: int, reason: str) -> None:
        super().__init__(f"epoch {epoch} of sink {sink} is not in the log yet, commit it again: {reason}")
        self.sink = sink
        self.epoch = epoch
