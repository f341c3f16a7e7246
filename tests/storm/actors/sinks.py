"""The writer of an exactly-once sink: epochs of staged batches, each in the log once or not at all."""

import time
from collections import Counter
from random import Random
from typing import Any

from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane, Message
from goqueue.records.batch import encode
from goqueue.records.entries import encode_entry
from tests.storm.actor import Actor
from tests.storm.record import Kind
from tests.storm.site import Refused, Site

PARTITIONS = 3
TOPIC = "lake"
SINK = "storm"
_STAGES_MAX = 3
_ROWS_MAX = 20


class SinkWriter(Actor):
    """Commits every epoch until it hears that it is done. Now and then another run takes its place."""

    feature = "sink epochs"
    pause_s = 0.05
    is_asked_once = True
    """Whether a commit reaches the sink as often as it is sent: a node that passes it on asks again when
    who has it dies, and then tells what the second answer says."""

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._run = 0
        self._generation = 0
        self._epoch = 0
        self._rows: dict[str, set[str]] = {}
        """What is staged for the epoch under way, by stage."""
        self._committed: set[str] = set()
        self._dropped: set[str] = set()
        self._fresh = 0
        self._is_doubtful = False
        """Whether a commit of the epoch under way was sent and not answered."""

    def prepare(self) -> None:
        self.door.create_topic(TOPIC, partitions=PARTITIONS, segment_bytes=65_536)

    def step(self) -> None:
        if not self._generation or self.chance.random() < 0.05:
            self._take_over()
        elif not self._rows:
            self._stage(self.chance.randint(1, _STAGES_MAX))
        elif not self._is_doubtful and self.chance.random() < 0.1:
            self._abort()
        else:
            self._commit()

    def verify(self) -> None:
        if self._rows:
            self._commit()
        found = self.door.read_all(TOPIC, PARTITIONS)
        counts = Counter(message["value"] for part in found for message in part)
        for row in self._committed:
            self.check(Kind.LOST, counts[row] > 0, f"{row} was committed")
        for row, count in counts.items():
            self.check(Kind.DOUBLED, count == 1, f"{row} is there {count} times")
            self.check(Kind.RESURRECTED, row not in self._dropped, f"{row} was aborted, or replaced")

    def _take_over(self) -> None:
        self._run += 1
        self._generation = 0  # until the answer comes there may be another one
        body = self.door.ask(
            "POST", f"/sinks/{SINK}/generations", params={"run": f"run-{self._run}", "writer": "storm"}
        )
        self._generation = body["generation"]
        last = body["last_epoch"]
        self.check(
            Kind.LOST, last >= self._epoch - 1, f"epoch {self._epoch - 1} was committed, and not {last}"
        )
        # A commit whose answer was lost may have happened, and now it shows; what nobody asked for has not.
        if not self._is_doubtful:
            self._dropped |= set().union(*self._rows.values())
        elif last == self._epoch:
            self._committed |= set().union(*self._rows.values())
        self._epoch = max(self._epoch, last + 1)
        self._is_doubtful = False
        self._rows = {}

    def _stage(self, count: int) -> None:
        rows: dict[str, set[str]] = {}
        for number in range(count):
            stage_id = f"task-{number}"
            for _ in range(self.chance.choice((1, 1, 2))):
                # Staged again under the same name: only the last of it counts.
                self._dropped |= rows.get(stage_id, set())
                self._fresh += 1
                rows[stage_id] = {f"{self._epoch}/{self._fresh}/{n}" for n in range(_ROWS_MAX)}
                self._send_stage(stage_id, sorted(rows[stage_id]))
        self._rows = rows

    def _send_stage(self, stage_id: str, values: list[str]) -> None:
        entries = b""
        for partition in range(PARTITIONS):
            messages = [Message(value.encode()) for value in values[partition::PARTITIONS]]
            [(batch, _)] = encode(messages, now_ms=int(time.time() * 1_000))
            place = TopicPartition(TopicName(TOPIC), partition)
            entries += encode_entry(place, self.chance.choice((Lane.NORMAL, Lane.LOW)), batch)
        query: dict[str, Any] = {"epoch": self._epoch, "stage": stage_id, "generation": self._generation}
        self.door.ask("POST", f"/sinks/{SINK}/stages", params=query, content=entries)

    def _commit(self) -> None:
        body = {"epoch": self._epoch, "generation": self._generation, "stages": list(self._rows)}
        was_doubtful, self._is_doubtful = self._is_doubtful, True
        try:
            told = self.door.post(f"/sinks/{SINK}/commits", body)
        except Refused as refused:
            # Stages are on the disk when they are answered.
            self.violate(Kind.LOST, f"epoch {self._epoch} cannot be committed: {refused}")
            self._rows = {}
            return
        is_right = was_doubtful or not told["duplicate"] or not self.is_asked_once
        self.check(Kind.DOUBLED, is_right, f"epoch {self._epoch} is told as a duplicate")
        rows = set().union(*self._rows.values())
        self._committed |= rows
        self.record.count(self.feature, len(rows))
        self._epoch += 1
        self._is_doubtful = False
        self._rows = {}

    def _abort(self) -> None:
        body = {"epoch": self._epoch, "generation": self._generation, "stages": list(self._rows)}
        rows, self._rows = self._rows, {}
        # No commit was asked for: with or without an answer, none of it is ever seen.
        self._dropped |= set().union(*rows.values())
        self.door.post(f"/sinks/{SINK}/aborts", body)
