"""What a reader of whole logs asks a node, with the client that it has."""

from collections.abc import Mapping, Sequence

from goqueue.client.calls import log
from goqueue.client.calls.log import Extent as Extent
from goqueue.client.calls.log import Extents as Extents
from goqueue.client.calls.log import Which as Which
from goqueue.client.calls.log import Window as Window
from goqueue.client.connection import Client


def extents(
    client: Client,
    which: Which,
    *,
    past: Mapping[str, Mapping[str, int]] | None = None,
    wait_ms: int = 0,
) -> Extents:
    """The extents of topics; with `past` and a wait, as soon as a partition ends behind its offset there."""
    return client.carry(log.extents(which, past=past, wait_ms=wait_ms))


def offsets_at(client: Client, topics: Sequence[str], *, time_ms: int) -> dict[str, dict[str, int]]:
    """The first offset of that time or later in each partition; its end where there is none."""
    return client.carry(log.offsets_at(topics, time_ms=time_ms))


def splits(
    client: Client, topic: str, partition: int, *, first_offset: int, end_offset: int, split_bytes: int
) -> list[int]:
    """Rising offsets from the first to the end, about so many bytes apart, the inner ones between batches."""
    return client.carry(
        log.splits(
            topic, partition, first_offset=first_offset, end_offset=end_offset, split_bytes=split_bytes
        )
    )


def frames(
    client: Client, topic: str, partition: int, *, offset: int, max_bytes: int, rack: str = ""
) -> Window:
    """Frames from the one that holds an offset on, or a copy in a rack; none when nothing is there yet."""
    return client.carry(log.frames(topic, partition, offset=offset, max_bytes=max_bytes, rack=rack))
