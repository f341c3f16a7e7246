"""What a sink asks a node: to append batches, or to stage them and to commit what was staged as one step.

Every call may reach the node twice, because the client sends again what got no reply. A stage that
comes again replaces itself, and a commit that comes again is told to be a duplicate.
"""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from goqueue.client.connection import BYTES, Client, Refused
from goqueue.model.settings import PARTITIONER_SETTING, Partitioner

FENCED = "sink_fenced"
NOT_FOUND = "sink_not_found"


class SinkState(msgspec.Struct, frozen=True):
    """Who may write to a sink, and how far it has come."""

    generation: int
    """The one that may write; each that is taken shuts out those before it."""
    last_epoch: int
    """The newest committed epoch, -1 before the first."""
    markers: bool = False
    """Whether each epoch takes an offset more in the partitions it goes to, as in a cluster."""


class Committed(msgspec.Struct, frozen=True):
    """What a commit came to."""

    epoch: int
    duplicate: bool
    """The epoch had been committed before, and nothing was appended now."""
    messages: int = 0


class _TopicBody(msgspec.Struct):
    num_partitions: int
    settings: dict[str, str] = {}


class TopicShape(NamedTuple):
    """How many partitions a topic has, and how keys find theirs."""

    partition_count: int
    partitioner: Partitioner = Partitioner.MURMUR3


_topic_decoder = msgspec.json.Decoder(_TopicBody)
_state_decoder = msgspec.json.Decoder(SinkState)
_committed_decoder = msgspec.json.Decoder(Committed)
"""Made while one thread runs: two that are the first to decode a type take the process down."""


def shape_of(client: Client, topic: str) -> TopicShape:
    """What must be known of a topic to route its messages."""
    reply = client.request("GET", f"/topics/{quote(topic, safe='')}")
    found = _topic_decoder.decode(reply.body)
    # A node that is older than the setting routes by murmur3.
    partitioner = Partitioner(found.settings.get(PARTITIONER_SETTING, Partitioner.MURMUR3))
    return TopicShape(found.num_partitions, partitioner)


def append(client: Client, body: bytes) -> None:
    """Append batches at once; on return they are on the disk."""
    client.request("POST", "/batches", query={"acks": "all"}, body=body, content_type=BYTES)


def take_generation(client: Client, sink: str, *, run: str = "", writer: str = "") -> SinkState:
    """Become the only one that may write to a sink; a run that is so already keeps its generation."""
    query = {name: value for name, value in (("run", run), ("writer", writer)) if value}
    reply = client.request("POST", f"{_path(sink)}/generations", query=query, body=b"")
    return _state_decoder.decode(reply.body)


def find_sink(client: Client, sink: str) -> SinkState | None:
    """A sink as it is now; None when nobody has written to it yet."""
    try:
        reply = client.request("GET", _path(sink))
    except Refused as refused:
        if refused.code == NOT_FOUND:
            return None
        raise
    return _state_decoder.decode(reply.body)


def stage(client: Client, sink: str, body: bytes, *, epoch: int, stage_id: str, generation: int) -> None:
    """Keep batches on the node's disk, where no reader sees them until the epoch is committed."""
    query: dict[str, str | int] = {"epoch": epoch, "stage": stage_id, "generation": generation}
    client.request("POST", f"{_path(sink)}/stages", query=query, body=body, content_type=BYTES)


def commit(client: Client, sink: str, stages: Sequence[str], *, epoch: int, generation: int) -> Committed:
    """Append all that these stages hold, as one step that either happens once or not at all."""
    body = msgspec.json.encode({"epoch": epoch, "generation": generation, "stages": stages})
    reply = client.request("POST", f"{_path(sink)}/commits", body=body)
    return _committed_decoder.decode(reply.body)


def abort(client: Client, sink: str, stages: Sequence[str], *, epoch: int, generation: int) -> None:
    """Drop those of these stages that are not committed."""
    body = msgspec.json.encode({"epoch": epoch, "generation": generation, "stages": stages})
    client.request("POST", f"{_path(sink)}/aborts", body=body)


def forget_sink(client: Client, sink: str) -> None:
    """Let a node forget a sink that nobody will write to again."""
    client.request("DELETE", _path(sink))


def _path(sink: str) -> str:
    return f"/sinks/{quote(sink, safe='')}"
