"""What may be chosen about a consumer, in either form."""

from dataclasses import dataclass

from goqueue.client.calls.queue import GroupMode
from goqueue.client.times import Duration, milliseconds
from goqueue.model.settings import require

_WAIT_S = 20.0
"""A poll of an iteration waits for so long; then comes the next."""
_DEFAULT_VISIBILITY_MS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    topics: tuple[str, ...]
    group: str
    limit: int
    visibility: Duration | None
    auto_extend: bool
    mode: GroupMode
    key_order: bool
    idle_timeout: Duration | None
    retry_delay: Duration | None
    raise_errors: bool
    session_timeout: Duration
    ack_linger_ms: float
    client_id: str

    def __post_init__(self) -> None:
        require(bool(self.topics), "a consumer needs at least one topic")
        require(self.limit > 0, "a poll takes at least one message: limit is above 0")
        require(self.ack_linger_ms >= 0, "ack_linger_ms is 0 or more")
        require(milliseconds(self.session_timeout) > 0, "session_timeout is above 0")
        require(self.visibility is None or milliseconds(self.visibility) > 0, "visibility is above 0")
        require(self.idle_timeout is None or milliseconds(self.idle_timeout) > 0, "idle_timeout is above 0")

    @property
    def idle_ms(self) -> int | None:
        return None if self.idle_timeout is None else milliseconds(self.idle_timeout)

    @property
    def wait_s(self) -> float:
        """How long a poll of an iteration may wait."""
        return _WAIT_S if self.idle_ms is None else min(_WAIT_S, self.idle_ms / 1_000)

    @property
    def visibility_ms(self) -> int | None:
        """Who is to extend leases must know how long they are; else the topic may say."""
        if self.visibility is not None:
            return milliseconds(self.visibility)
        return _DEFAULT_VISIBILITY_MS if self.auto_extend else None


def consumer_settings(
    *topics: str,
    group: str,
    limit: int = 10,
    visibility: Duration | None = None,
    auto_extend: bool = False,
    mode: GroupMode = "shared",
    key_order: bool = False,
    idle_timeout: Duration | None = None,
    retry_delay: Duration | None = None,
    raise_errors: bool = False,
    session_timeout: Duration = 30.0,
    ack_linger_ms: float = 20.0,
    client_id: str = "goqueue-python",
) -> ConsumerSettings:
    """A member of a group that takes messages with leases: use it in a `with` block.

    An iteration takes up to `limit` messages at once, which are hidden from the rest of the group for
    `visibility`, or as long as the topic says; with `auto_extend` until they are settled. It ends when
    nothing has come for `idle_timeout`. In a group of mode `shared` every member takes from every partition,
    with `key_order` one member at a time for messages of a key; in an `eager` one each partition has one
    member. A message that fails is delivered again after `retry_delay`, or the topic's back-off.
    Acknowledgements go together, the first of them after `ack_linger_ms`.
    """
    return ConsumerSettings(
        topics=topics,
        group=group,
        limit=limit,
        visibility=visibility,
        auto_extend=auto_extend,
        mode=mode,
        key_order=key_order,
        idle_timeout=idle_timeout,
        retry_delay=retry_delay,
        raise_errors=raise_errors,
        session_timeout=session_timeout,
        ack_linger_ms=ack_linger_ms,
        client_id=client_id,
    )
