"""Shared groups in order of keys: messages of one key go to one consumer at a time, in order.

A key belongs to the consumer that has a message of it out, until all of them are settled; while one of
them waits for its next try, nobody gets more of that key. Messages without a key are free.
"""

from collections.abc import Sequence

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import terms_of
from goqueue.broker.queue.read import open_runs
from goqueue.core.delivery.delivery import Delivery
from goqueue.model.groups import Sharing
from goqueue.model.messages import StoredMessage
from goqueue.model.settings import MiB


def is_key_ordered(broker: Broker, group: str) -> bool:
    """Whether members of a group share partitions, in the order of keys."""
    terms = terms_of(broker, group)
    return terms is not None and terms.key_order and terms.sharing is Sharing.SHARED


async def learn_keys(broker: Broker, delivery: Delivery) -> None:
    """After a restart: what is busy has a key that must be read again."""
    while missing := delivery.keys.unknown(delivery.busy):
        opened = await open_runs(broker, delivery.source, missing, 16 * MiB)
        delivery.keys.learn(opened.messages)
        if not opened.left:
            return  # what is void has no key, and would be missing again


def by_key(
    delivery: Delivery, messages: Sequence[StoredMessage], consumer: str, passed: set[bytes]
) -> Sequence[StoredMessage]:
    """Those of the messages that a consumer may have now. The keys of the others are added to `passed`.

    What a poll has passed over it takes no more of, although its key may be free by now: the first of
    them would be overtaken.
    """
    holders = delivery.keys.holders(delivery.leases.values(), delivery.waiting)
    free = []
    for message in messages:
        key = message.key
        if key is None or (key not in passed and holders.get(key, consumer) == consumer):
            free.append(message)
        else:
            passed.add(key)
    # They are about to be leased: whoever asks next finds their keys taken.
    delivery.keys.learn(free)
    return free
