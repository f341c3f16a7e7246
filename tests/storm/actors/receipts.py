"""Consume, process, produce and acknowledge in one transaction over HTTP: each job has one result."""

import time
from collections import Counter, defaultdict
from random import Random
from typing import Any

from tests.storm.actor import Actor
from tests.storm.record import Kind
from tests.storm.site import Away, Refused, Site

JOBS, RESULTS = "jobs", "results"
GROUP = "clerks"
_VISIBILITY_S = 3
_TIMEOUT_MS = 6_000
_DRAIN_S = 60


class ReceiptClerk(Actor):
    feature = "HTTP transactions"
    pause_s = 0.05

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._next = 0
        self._attempt = 0
        self._published: set[str] = set()
        self._committed: dict[str, str] = {}
        """Results whose commit was answered, and the job of each."""
        self._aborted: set[str] = set()
        self._done: set[str] = set()
        self._doubtful: set[str] = set()
        self._cut_off: set[str] = set()
        """Jobs whose receipts were being added to a transaction when the broker went."""
        self._who: dict[str, Any] = {}

    def prepare(self) -> None:
        self.door.create_topic(JOBS, partitions=2, goqueue_retries_max=1_000, goqueue_retry_backoff_ms=200)
        self.door.create_topic(RESULTS, partitions=2)
        body = {"client_id": "c", "topics": [JOBS], "mode": "shared", "session_timeout": "30m"}
        self._member = self.door.post(f"/groups/{GROUP}/join", body)["member_id"]

    def step(self) -> None:
        if self.chance.random() < 0.4 and len(self._left()) < 100:
            self._publish()
        else:
            self._work(self.chance.random() < 0.8)

    def verify(self) -> None:
        give_up_s = time.monotonic() + _DRAIN_S
        while self._left() and time.monotonic() < give_up_s:
            self._work(True)
        for job in self._left():
            how = ", its receipt was being added to a transaction that a kill cut off" * (
                job in self._cut_off
            )
            self.violate(Kind.HIDDEN, f"job {job} never came in {_DRAIN_S} s{how}")
        found = self.door.read_all(RESULTS, 2)
        results = [message["value"] for part in found for message in part]
        by_job: dict[str, list[str]] = defaultdict(list)
        for result in results:
            by_job[result.split("/")[0]].append(result)
            self.check(Kind.RESURRECTED, result not in self._aborted, f"{result} was aborted, and is read")
        for job, own in by_job.items():
            self.check(Kind.DOUBLED, len(own) == 1, f"results {own} of job {job}")
        counts = Counter(results)
        for result in self._committed:
            self.check(
                Kind.LOST, counts[result] == 1, f"{result} was committed: {counts[result]} times there"
            )

    def _publish(self) -> None:
        jobs = [str(self._next + number) for number in range(self.chance.randint(1, 5))]
        self._next += len(jobs)
        results = self.door.publish(JOBS, [{"value": job} for job in jobs])
        self._published |= {job for job, result in zip(jobs, results, strict=True) if "error" not in result}

    def _work(self, is_committed: bool) -> None:
        query: dict[str, str | int] = {"member_id": self._member, "timeout": "0s"}
        query |= {"limit": self.chance.randint(1, 5), "visibility_timeout": f"{_VISIBILITY_S}s"}
        messages = self.door.get(f"/groups/{GROUP}/poll", **query)["messages"]
        for message in messages:
            job = message["value"]
            self.check(Kind.RESURRECTED, job not in self._done, f"job {job} was committed, and comes again")
        if messages:
            self._transact(messages, is_committed)

    def _transact(self, messages: list[Any], is_committed: bool) -> None:
        self._attempt += 1
        results = {f"{message['value']}/{self._attempt}": message["value"] for message in messages}
        try:
            self._begin()
            for result in results:
                self._ask("publish", topic=RESULTS, value=result, partition=self.chance.randrange(2))
            self._add([message["receipt_handle"] for message in messages], set(results.values()))
        except Refused:
            is_committed = False
        except Away:
            # Nobody has asked for a commit, and whoever begins next ends it.
            self._aborted |= set(results)
            self._who = {}
            raise
        if is_committed:
            self._commit(results)
        else:
            self._aborted |= set(results)
            self._end("abort")

    def _begin(self) -> None:
        if not self._who:
            body = {"transactional_id": "storm-clerk", "transaction_timeout_ms": _TIMEOUT_MS}
            told = self.door.post("/producers/init", body)
            self._who = {"producer_id": told["producer_id"], "epoch": told["epoch"]}
        self._ask("begin")

    def _add(self, receipts: list[str], jobs: set[str]) -> None:
        try:
            self._ask("add-offsets", receipt_handles=receipts)
        except Away:
            self._cut_off |= jobs
            raise
        self._cut_off -= jobs

    def _commit(self, results: dict[str, str]) -> None:
        self._doubtful |= set(results.values())
        if self._end("commit"):
            self._committed |= results
            self._done |= set(results.values())
            self.record.count(self.feature, len(results))
        else:
            self._aborted |= set(results)
        self._doubtful -= set(results.values())

    def _end(self, how: str) -> bool:
        """Whether it was done. A commit that nobody answered is asked for again: the same is no error."""
        for _ in range(5):
            try:
                self._ask(how)
            except Away:
                self.site.wait_until_back()
            except Refused:
                self._who = {}
                return False
            else:
                return True
        raise Away(f"no answer to {how}")

    def _ask(self, what: str, **fields: Any) -> Any:
        return self.door.post(
            f"/transactions/{what}", {"transactional_id": "storm-clerk", **self._who, **fields}
        )

    def _left(self) -> set[str]:
        return self._published - self._done - self._doubtful
