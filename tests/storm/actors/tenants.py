"""A tenant that wants more messages a second and more topics than it may: its quotas hold over restarts."""

import time
from random import Random

from tests.storm.actor import Actor
from tests.storm.record import Kind
from tests.storm.site import Refused, Site

TENANT = "acme"
TOPIC = f"{TENANT}.orders"
_RATE = 50
_TOPICS_MAX = 5


class GreedyTenant(Actor):
    feature = "tenants"

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._begun_s = 0.0
        self._stored = 0
        self._next_topic = 0
        self._next = 0

    def prepare(self) -> None:
        quotas = {"publish_rate_limit": _RATE, "max_topics": _TOPICS_MAX}
        self.door.post("/admin/tenants", {"id": TENANT, "name": "Acme", "quotas": quotas})
        self.door.create_topic(TOPIC, partitions=1)
        self._begun_s = time.monotonic()

    def step(self) -> None:
        try:
            if self.chance.random() < 0.05:
                self._next_topic += 1
                self.door.create_topic(f"{TENANT}.more-{self._next_topic}", partitions=1)
                self._check_topics()
            else:
                self._publish()
        except Refused as refused:
            is_quota = refused.status in (403, 429)
            self.check(Kind.UNEXPLAINED, is_quota, str(refused))

    def verify(self) -> None:
        [found] = self.door.read_all(TOPIC, 1)
        seconds = time.monotonic() - self._begun_s
        # A start begins with a full bucket, and so does the tenant.
        starts = 1 + sum(self.record.misfortunes.values())
        most = _RATE * (seconds + starts)
        self.check(
            Kind.OVERRUN, len(found) <= most, f"{len(found)} messages in {seconds:.0f} s, {starts} starts"
        )
        self.check(Kind.LOST, len(found) >= self._stored, f"{len(found)} there, {self._stored} acknowledged")
        quotas = self.door.get(f"/admin/tenants/{TENANT}/quotas")
        is_right = quotas["publish_rate_limit"] == _RATE and quotas["max_topics"] == _TOPICS_MAX
        self.check(Kind.LOST, is_right, f"the quotas are now {quotas}")
        self._check_topics()

    def _publish(self) -> None:
        messages = [{"value": str(self._next + number)} for number in range(self.chance.randint(1, 10))]
        self._next += len(messages)
        results = self.door.publish(TOPIC, messages)
        stored = sum("error" not in result for result in results)
        self._stored += stored
        self.record.count(self.feature, stored)

    def _check_topics(self) -> None:
        topics = self.door.get("/topics")["topics"]
        own = [name for name in topics if name.startswith(f"{TENANT}.")]
        self.check(Kind.OVERRUN, len(own) <= _TOPICS_MAX, f"{own} are {len(own)} topics")
