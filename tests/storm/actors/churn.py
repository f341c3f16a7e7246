"""Topics, groups, producers and connections that come and go: what was made is there, and nothing else."""

from random import Random

from tests.storm.actor import Actor
from tests.storm.record import Kind
from tests.storm.site import Away, Door, Refused, Site

_NAMES = "passing"
_TOPICS_MAX = 8


class Churn(Actor):
    feature = "topics come and go"
    pause_s = 0.1

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._next = 0
        self._topics: set[str] = set()
        self._doubtful: set[str] = set()
        self._groups: list[str] = []

    def prepare(self) -> None:
        return

    def step(self) -> None:
        self.door.close()
        self.door = Door(self.site, self.feature)
        self._create()
        if len(self._topics) > _TOPICS_MAX:
            self._delete(self.chance.choice(sorted(self._topics)))
        if self.chance.random() < 0.2:
            self._look()

    def verify(self) -> None:
        self._look()

    def _create(self) -> None:
        self._next += 1
        topic = f"{_NAMES}-{self._next}"
        try:
            self.door.create_topic(topic, partitions=self.chance.randint(1, 3))
        except Away:
            self._doubtful.add(topic)
            raise
        self._topics.add(topic)
        self.door.publish(topic, [{"value": "x"}] * self.chance.randint(1, 5))
        self._work(topic)
        self.record.count(self.feature)

    def _work(self, topic: str) -> None:
        """A group that takes what there is and leaves, and a producer with an id of its own."""
        group = f"{_NAMES}-{self._next}"
        self._groups.append(group)
        body = {"client_id": "c", "topics": [topic], "mode": "shared"}
        member = self.door.post(f"/groups/{group}/join", body)["member_id"]
        messages = self.door.get(f"/groups/{group}/poll", member_id=member, timeout="0s")["messages"]
        if messages:
            self.door.post("/messages/ack", {"receipt_handles": [m["receipt_handle"] for m in messages]})
        self.door.post(f"/groups/{group}/leave", {"member_id": member})
        self.door.post("/producers/init", {"transactional_id": f"{_NAMES}-{self._next % 200}"})
        if len(self._groups) > _TOPICS_MAX:
            self._delete_group(self._groups.pop(0))

    def _delete(self, topic: str) -> None:
        self._topics.discard(topic)
        self._doubtful.add(topic)
        self.door.ask("DELETE", f"/topics/{topic}")
        self._doubtful.discard(topic)

    def _delete_group(self, group: str) -> None:
        try:
            self.door.ask("DELETE", f"/groups/{group}")
        except Refused as refused:
            assert refused.status == 404, (
                refused
            )  # it was deleted, or never made, and the answer did not come

    def _look(self) -> None:
        names = self.door.get("/topics")["topics"]
        found = {name for name in names if name.startswith(f"{_NAMES}-")}
        self.check(Kind.LOST, self._topics <= found, f"topics {self._topics - found} are gone")
        back = found - self._topics - self._doubtful
        self.check(Kind.RESURRECTED, not back, f"topics {back} were deleted, or never made")
