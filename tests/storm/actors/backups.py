"""Backups made while the broker is killed; one of them is restored into another broker, killed as well."""

import json
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tests.integration.running_broker import RunningBroker
from tests.storm.actor import Actor
from tests.storm.record import Kind
from tests.storm.site import Away, Door, Refused, Site

_TOPICS_MAX = 8
_RESTORE_KILLS = 3
_RESTORE_S = 0.3
"""While it restores, a kill comes within this time."""


class BackupKeeper(Actor):
    """Makes topics and offsets, and backups that must hold them."""

    feature = "backup and restore"
    pause_s = 0.3

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._topics: dict[str, int] = {}
        self._offsets: dict[str, tuple[str, int]] = {}
        """By group: its topic, and what was committed last."""
        self._ids: set[str] = set()

    def prepare(self) -> None:
        self._document = self._back_up()

    def step(self) -> None:
        what = self.chance.random()
        if what < 0.2 and len(self._topics) < _TOPICS_MAX:
            self._create()
        elif what < 0.7 and self._topics:
            self._commit(self.chance.choice(list(self._topics)))
        else:
            self._document = self._back_up()

    def verify(self) -> None:
        self._document = self._back_up()
        with TemporaryDirectory(prefix="goqueue-storm-restore-") as folder:
            other = RunningBroker(Path(folder) / "data").start()
            try:
                self._restore_into(other)
            finally:
                other.kill()

    def _create(self) -> None:
        name = f"kept-{len(self._topics)}"
        partitions = self.chance.randint(1, 4)
        with suppress(Refused):  # it was created, and the answer did not come
            self.door.create_topic(name, partitions=partitions, retention_ms=3_600_000 + partitions)
            self._topics[name] = partitions

    def _commit(self, topic: str) -> None:
        group = f"keepers-of-{topic}"
        offset = self.door.publish(topic, [{"value": "x", "partition": 0}])[0]["offset"]
        # Until the answer comes, either offset is right.
        self._offsets.pop(group, None)
        self.door.post(f"/groups/{group}/offsets", {"offsets": {topic: {"0": offset}}})
        self._offsets[group] = (topic, offset)

    def _back_up(self) -> dict[str, Any]:
        """A backup, which must hold all that was answered before."""
        backup_id = self.door.post("/admin/backup")["backup_id"]
        self.check(Kind.DOUBLED, backup_id not in self._ids, f"two backups are called {backup_id}")
        self._ids.add(backup_id)
        document: dict[str, Any] = self.door.get(f"/admin/backup/{backup_id}/metadata")
        found = {topic["name"]: topic["num_partitions"] for topic in document["topics"]}
        for name, partitions in self._topics.items():
            is_there = found.get(name) == partitions
            self.check(Kind.LOST, is_there, f"{name} with {partitions} partitions is not in {backup_id}")
        offsets = {group["group_id"]: group["offsets"] for group in document["consumer_groups"]}
        for name, (topic, offset) in self._offsets.items():
            told = offsets.get(name, {}).get(topic, {}).get("0")
            self.check(Kind.LOST, told == offset, f"{name} stood at {offset}; {backup_id} says {told}")
        self.record.count(self.feature)
        return document

    def _restore_into(self, other: RunningBroker) -> None:
        site = Site.of(other, self.record)
        path = "/admin/backup/2026-01-01-000000"
        Door(site, self.feature).ask("PUT", path, content=json.dumps(self._document))
        for _ in range(_RESTORE_KILLS):
            restoring = threading.Thread(target=self._restore, args=(Door(site, self.feature), path))
            restoring.start()
            time.sleep(self.chance.random() * _RESTORE_S)
            self.record.befall("kill -9 while restoring")
            other.kill()
            restoring.join()
            other.start()
        door = Door(site, self.feature)
        door.post(f"{path}/restore", {"data_follows": True})
        backup_id = door.post("/admin/backup")["backup_id"]
        self._compare(door.get(f"/admin/backup/{backup_id}/metadata"))

    @staticmethod
    def _restore(door: Door, path: str) -> None:
        with suppress(Away):
            door.post(f"{path}/restore", {"data_follows": True})

    def _compare(self, restored: dict[str, Any]) -> None:
        for part, name in (("topics", "name"), ("consumer_groups", "group_id"), ("tenants", "tenant_id")):
            expected, found = (_essence(document, part, name) for document in (self._document, restored))
            for key in expected.keys() | found.keys():
                facts = f"{part} {key}: {expected.get(key)} came back as {found.get(key)}"
                self.check(Kind.RESTORED_WRONG, expected.get(key) == found.get(key), facts)
        self.check(
            Kind.RESTORED_WRONG,
            self._document["schemas"] == restored["schemas"],
            f"schemas {self._document['schemas']} came back as {restored['schemas']}",
        )


_PASSING = {
    "topics": {"topic_id", "partitions"},  # a restored topic is another log, and its messages are gone
    "consumer_groups": {"state", "kind", "last_seen_at", "offset_metadata"},  # its members are gone
    "tenants": set(),
}


def _essence(document: dict[str, Any], part: str, name: str) -> dict[str, Any]:
    """What a restore must bring back, by name."""
    return {
        one[name]: {key: value for key, value in one.items() if key not in _PASSING[part]}
        for one in document[part]
        if one.get("offsets", True)  # of a group that has none there is nothing to bring back
    }
