"""Messages taken as a member of a group: printed first, acknowledged then."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

from goqueue.cli.messages.view import Found
from goqueue.client import GoQueue
from goqueue.client.calls import queue as calls
from goqueue.model.errors import GoQueueError, Invalid, NotFound

CLIENT_ID = "goqueue-cli"
TAKE_COUNT = 100
WAIT_S = 2.0
"""For so long a message may take to come: a new member waits for its partitions."""


@contextmanager
def member(queue: GoQueue, group: str, topic: str) -> Iterator[str]:
    """A membership for as long as it is needed; gives the member's id."""
    mode = _mode_of(queue, group)
    member_id = queue.carry(calls.join(group, client_id=CLIENT_ID, topics=[topic], mode=mode))
    try:
        yield member_id
    finally:
        # Who cannot say goodbye is missed after a while all the same.
        with suppress(GoQueueError):
            queue.carry(calls.leave(group, member_id))


def taken(
    queue: GoQueue, group: str, member_id: str, count: int | None, *, is_followed: bool
) -> Iterator[Found]:
    """Messages that the group has not settled: so many, or all there are, or whatever comes."""
    left = count
    wait_s = WAIT_S
    while left is None or left > 0:
        limit = TAKE_COUNT if left is None else min(left, TAKE_COUNT)
        polled = queue.carry(calls.poll(group, member_id, limit=limit, wait=wait_s))
        # Once something has come, what is there comes at once; only who follows waits for more.
        wait_s = WAIT_S if is_followed else 0.0
        if not polled and not is_followed:
            return
        if polled:
            yield Found([each.message for each in polled], partial(_ack, queue, polled))
        left = None if left is None else left - len(polled)


def _ack(queue: GoQueue, polled: list[calls.Polled]) -> None:
    refused = queue.carry(calls.ack([each.receipt for each in polled]))
    for problem in refused.values():
        raise problem


def _mode_of(queue: GoQueue, group: str) -> calls.GroupMode:
    """How the members of a group share: as those who are there do. A new group shares every partition."""
    try:
        found = queue.groups.describe(group)
    except NotFound:
        return "shared"
    if found.kind != "http":
        raise Invalid(f"group {group} is one of Kafka clients: read with kcat, or as another group")
    if found.mode == "cooperative":
        raise Invalid(f"group {group} hands partitions over one by one, which this tool does not do")
    return "eager" if found.mode == "eager" else "shared"
