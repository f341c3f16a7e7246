"""A broker that stopped between a transaction's decision and its end finishes it when it opens."""

from contextlib import suppress
from pathlib import Path

import pytest

from goqueue.broker.transactions import ends as transaction_ends
from goqueue.client import GoQueue
from goqueue.client.errors import Refused
from goqueue.model.errors import StorageFailed
from tests.doors.http.running_door import RunningDoor

TOPIC = GROUP = "acme.work"


async def _cut_off(*_: object) -> None:
    raise StorageFailed("the broker was killed here")


@pytest.mark.parametrize("is_suspended", [False, True])
@pytest.mark.parametrize(("is_committed", "left"), [(True, 0), (False, 1)])
def test_receipts_of_a_decided_transaction_are_settled_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_committed: bool, left: int, is_suspended: bool
) -> None:
    with RunningDoor(tmp_path) as door, GoQueue(door.url, retry_for_s=0) as queue:
        queue.tenants.create("Acme", tenant_id="acme")
        queue.topics.create(TOPIC, partitions=1)
        queue.publish(TOPIC, "a")
        consumer = queue.consumer(TOPIC, group=GROUP)
        [message] = consumer.poll(wait=10)
        with monkeypatch.context() as patch, suppress(Refused):
            patch.setattr(transaction_ends, "_settle_receipts", _cut_off)
            with queue.transaction("teller") as transaction:
                transaction.ack(message)
                if not is_committed:
                    transaction.abort()
        consumer.close()
        if is_suspended:
            queue.tenants.suspend("acme", reason="the bill")

    with RunningDoor(tmp_path) as door, GoQueue(door.url) as queue:
        assert [one.state for one in queue.transactions.list(finished=True)] != []
        if is_suspended:
            queue.tenants.activate("acme")
        assert queue.groups.lag(GROUP).total == left
