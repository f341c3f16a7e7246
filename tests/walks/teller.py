"""Tells stories: each line of a walk is done to a broker on a simulated clock, and answered in words.

Times are milliseconds since the story began. `python -m tests.walks.teller` writes every walk anew with
the answers of today; the diff shows what has changed for the people who use it.
"""

import asyncio
import shlex
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import join_assigned
from goqueue.broker.opening import open_broker
from goqueue.broker.queue.poll import poll
from goqueue.broker.queue.redrive import browse, redrive
from goqueue.broker.queue.settle import settle
from goqueue.broker.queue.upkeep import keep_up_deliveries
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Placed, Publish
from goqueue.model.delivery import TTL_HEADER, Action, BrowseDeadLetters, Poll, Receipt, Redrive, Settle
from goqueue.model.group_commands import JoinAssigned
from goqueue.model.groups import Sharing
from goqueue.model.ids import TopicName
from goqueue.model.messages import Lane, Message
from goqueue.model.ports import P, T, Threads
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.workshop import WorkshopAtHand

FOLDER = Path(__file__).parent
_ARROW = "→"
_COLUMN = 46
_LANES = {lane.label: lane for lane in Lane}


class AtOnce(Threads):
    """Threads that take no time, so that a story's times are round."""

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return work(*args, **kwargs)


class Teller:
    """One story: a disk, a clock, and brokers that live on them one after the other."""

    def __init__(self) -> None:
        self._clock = SimulatedClock()
        self._began_ms = self._clock.wall_ms()
        self._disk = SimulatedDisk(Random(0))
        self._loop = SimulatedLoop(self._clock)
        self._members: dict[tuple[str, str], str] = {}
        self._receipts: dict[tuple[str, str, int], str] = {}
        self._broker = self._open()
        self._verbs: dict[str, Callable[..., Coroutine[object, object, str]]] = {
            "topic": self._topic,
            "publish": self._publish,
            "join": self._join,
            "poll": self._poll,
            "settle": self._settle,
            "wait": self._wait,
            "dead": self._dead,
            "redrive": self._redrive,
        }

    def tell(self, line: str) -> str:
        """Do what a line says; the answer."""
        verb, *words = shlex.split(line)
        if verb == "restart":
            return self._restart()
        return self._loop.run(self._verbs[verb](*words))

    def end(self) -> None:
        self._disk.kill()
        self._loop.abandon()

    def _open(self) -> Broker:
        return self._loop.run(
            open_broker(
                config=BrokerConfig(),
                disk=self._disk,
                clock=self._clock,
                threads=AtOnce(),
                workshop=WorkshopAtHand(),
                chance=Random(0),
            )
        )

    def _restart(self) -> str:
        """The process is killed without warning and started again."""
        self._disk = self._disk.kill()
        self._loop.abandon()
        self._loop = SimulatedLoop(self._clock)
        self._broker = self._open()
        return "ready"

    def _time(self, time_ms: int) -> int:
        return time_ms - self._began_ms

    async def _topic(self, name: str, *settings: str) -> str:
        texts = dict(setting.split("=") for setting in settings)
        await create_topic(self._broker, CreateTopic(name=name, partitions=1, settings={**texts}))
        return "created"

    async def _publish(self, topic: str, value: str, *options: str) -> str:
        given = dict(option.split("=") for option in options)
        message = Message(
            value.encode(),
            given["key"].encode() if "key" in given else None,
            ((TTL_HEADER, given["ttl"].encode()),) if "ttl" in given else (),
            _LANES[given.get("lane", "normal")],
        )
        [placed] = await publish(self._broker, Publish(topic=TopicName(topic), messages=[message]))
        assert isinstance(placed, Placed)
        return f"stored {topic}/{placed.partition} @{placed.offset}"

    async def _join(self, group: str, consumer: str, topic: str, *terms: str) -> str:
        joined = await join_assigned(
            self._broker,
            JoinAssigned(
                group=group,
                client_id=consumer,
                topics=[topic],
                sharing=Sharing.SHARED if "shared" in terms else Sharing.EAGER,
                key_order="key-order" in terms,
                session_timeout_ms=1_800_000,
            ),
        )
        self._members[group, consumer] = joined.member_id
        return "joined"

    async def _poll(self, group: str, consumer: str, limit: str = "100") -> str:
        member_id = self._members[group, consumer]
        polled = await poll(
            self._broker, Poll(group=group, member_id=member_id, generation=0, limit=int(limit))
        )
        told = []
        for source, nonce, messages, counts in polled.parts:
            for message in messages:
                count = counts.get(message.offset, 1)
                receipt = Receipt(source.topic, source.partition, message.offset, count, nonce)
                self._receipts[group, consumer, message.offset] = str(receipt)
                again = f", delivery {count}" if count > 1 else ""
                told.append(f"@{message.offset} {(message.value or b'').decode()}{again}")
        visibility_ms = self._broker.metadata.topics[TopicName("orders")].settings.visibility_ms
        until = f" until {self._time(self._clock.wall_ms()) + visibility_ms}"
        return "leased " + "; ".join(told) + until if told else "nothing"

    async def _settle(self, group: str, consumer: str, place: str, action: str, time: str = "0") -> str:
        outcome = await settle(
            self._broker,
            Settle(
                action=Action(action),
                receipts=[self._receipts[group, consumer, int(place.removeprefix("@"))]],
                reason="told so",
                visibility_ms=int(time),
            ),
        )
        if refusal := outcome.refusals.get(0):
            return f"refused: {refusal.code}"
        if topic := outcome.dead_letter_topics.get(0):
            return f"moved to {topic}, floor {self._floor(group)}"
        if time_ms := outcome.times_ms.get(0):
            word = "until" if action == "extend" else "again from"
            return f"{word} {self._time(time_ms)}"
        return f"floor {outcome.parts[0].floor}"

    async def _wait(self, duration_ms: str) -> str:
        """Let time pass, and tell what happens by itself."""
        before = self._places()
        await asyncio.sleep(int(duration_ms) / 1_000)
        await keep_up_deliveries(self._broker)
        await asyncio.sleep(0.000_001)
        told = []
        for (group, offset), (place, _) in before.items():
            now, attempts = self._places().get((group, offset), ("dead", 0))
            if now != place:
                again = f", delivery {attempts + 1}" if now == "ready" else ""
                told.append(f"{group} @{offset} {now}{again}")
        return "; ".join(told) or "nothing happens"

    async def _dead(self, topic: str) -> str:
        letters = (await browse(self._broker, BrowseDeadLetters(topic=topic))).letters
        told = []
        for _, message in letters:
            facts = {name: (value or b"").decode() for name, value in message.headers}
            reason, attempts = facts["goqueue-dlq-reason"], facts["goqueue-dlq-attempts"]
            told.append(f"{(message.value or b'').decode()}: {reason} after {attempts}")
        return "; ".join(told) or "none"

    async def _redrive(self, topic: str) -> str:
        return f"{(await redrive(self._broker, Redrive(topic=TopicName(topic)))).moved} sent back"

    def _floor(self, group: str) -> int:
        journal = self._broker.coordinator.journals.find(group)
        assert journal is not None
        return journal.deliveries.of_group(group)[0].floor

    def _places(self) -> dict[tuple[str, int], tuple[str, int]]:
        """Where each message is that came back or is out, and how often it came back."""
        places: dict[tuple[str, int], tuple[str, int]] = {}
        for journal in self._broker.coordinator.journals:
            for delivery in journal.deliveries:
                for offset in delivery.attempts:
                    place = "waits" if offset in delivery.waiting else "ready"
                    places[delivery.group, offset] = (place, delivery.attempts[offset])
                for lease in delivery.leases.values():
                    for first, end in lease.offsets:
                        for offset in range(first, end):
                            places[delivery.group, offset] = ("out", delivery.attempts.get(offset, 0))
        return places


def told_anew(text: str) -> str:
    """A walk with the answers that its lines get today."""
    teller = Teller()
    try:
        return "".join(_told(teller, line) for line in text.splitlines())
    finally:
        teller.end()


def _told(teller: Teller, line: str) -> str:
    command = line.split(_ARROW)[0].rstrip()
    if not command or command.startswith("#"):
        return f"{line}\n"
    return f"{command:<{_COLUMN}}{_ARROW} {teller.tell(command)}\n"


def walks() -> list[Path]:
    return sorted(FOLDER.glob("*.walk"))


if __name__ == "__main__":
    for walk in walks():
        walk.write_text(told_anew(walk.read_text(encoding="utf-8")), encoding="utf-8")
