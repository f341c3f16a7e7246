"""Messages that have grown too old to be delivered: by their own header, or by the topic's setting."""

from collections.abc import Sequence
from operator import itemgetter

from goqueue.broker.broker import Broker
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.queue.delivery import policy_of
from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.events import Event, Settled
from goqueue.core.delivery.lease import NO_LEASE
from goqueue.core.delivery.retries import Story, bury
from goqueue.core.delivery.runs import runs_of
from goqueue.model.delivery import DEAD_LETTER_SUFFIX, TTL_HEADER, Reason
from goqueue.model.messages import Headers, StoredMessage
from goqueue.model.numbers import whole_number
from goqueue.model.settings import UNLIMITED, TopicSettings

_headers_of = itemgetter(StoredMessage._fields.index("headers"))


def settle_too_old(
    broker: Broker,
    journal: GroupJournal,
    delivery: Delivery,
    messages: Sequence[StoredMessage],
    settings: TopicSettings,
) -> Sequence[StoredMessage]:
    """Those that may still be delivered; the others are settled, or go to the dead letters."""
    if settings.ttl_ms == UNLIMITED and not any(map(_headers_of, messages)):
        return messages
    now_ms = broker.clock.wall_ms()
    # What a dead letter says of itself was meant for the topic it comes from: it waits here for somebody.
    heeds_headers = not delivery.topic.endswith(DEAD_LETTER_SUFFIX)
    too_old = {m.offset for m in messages if _is_too_old(m, settings.ttl_ms, now_ms, heeds_headers)}
    if not too_old:
        return messages
    runs = runs_of(sorted(too_old))
    event: Event = Settled(delivery.number, NO_LEASE, tuple(runs))
    if settings.ttl_dead_letters:
        story = Story(Reason.TTL_EXPIRED, "", "the message grew older than it may", now_ms)
        event = bury(delivery, NO_LEASE, runs, policy_of(broker, delivery), story)
    journal.submit(event)
    broker.telemetry.of(delivery.source).outdated(
        delivery.group, runs, count=len(too_old), time_us=broker.clock.wall_us()
    )
    return [message for message in messages if message.offset not in too_old]


def _is_too_old(message: StoredMessage, topic_ttl_ms: int, now_ms: int, heeds_headers: bool) -> bool:
    ttl_ms = _own_ttl_ms(message.headers) if message.headers and heeds_headers else None
    if ttl_ms is None:
        ttl_ms = topic_ttl_ms
    return ttl_ms != UNLIMITED and message.timestamp_ms + ttl_ms <= now_ms


def _own_ttl_ms(headers: Headers) -> int | None:
    """What a message says itself; what is no number there was never meant for us."""
    for name, value in headers:
        if name == TTL_HEADER and (ttl_ms := whole_number(value)) is not None:
            return ttl_ms
    return None
