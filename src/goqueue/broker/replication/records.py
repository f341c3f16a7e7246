"""What the store says of partitions, and what a leader proposes to it.

A proposal rests on a revision. Either it is made, or something newer is there, or nobody can tell and it is
proposed again: the machine hears of the record that came of it in each case.
"""

import asyncio
import logging

from goqueue.core.cluster.values import decode_node, decode_part, encode, node_key
from goqueue.model.cluster import Guard, Incarnation, NodeId, PartitionRecord
from goqueue.model.errors import Outdated, Unavailable
from goqueue.model.ports import Store
from goqueue.model.replication import ProposeRecord

log = logging.getLogger(__name__)
_PAUSE_S = 0.2
"""The store gave no answer: so long until it is asked again."""


async def propose(store: Store, key: str, proposal: ProposeRecord) -> tuple[PartitionRecord, int] | None:
    """Have a record put in the place of another; what stands there then, and at which revision.

    None: the record is as it was, and the proposal will never be made. Waits while the store is away.
    """
    while True:
        try:
            guards = [Guard(key, proposal.revision)]
            if proposal.joining is not None:
                revision = await _registered(store, *proposal.joining)
                if revision is None:
                    return None
                guards.append(Guard(node_key(proposal.joining[0]), revision))
            return proposal.record, await store.change(guards, {key: encode(proposal.record)}, ())
        except Outdated:
            found = await look_up(store, key)
            return found if found is not None and found[1] > proposal.revision else None
        except Unavailable as error:
            log.warning("proposal_unanswered key=%s reason=%s", key, error)
            await asyncio.sleep(_PAUSE_S)


async def look_up(store: Store, key: str) -> tuple[PartitionRecord, int] | None:
    """The record that stands under a key. Waits for as long as the store is away."""
    while True:
        try:
            item = (await store.load(key)).items.get(key)
            return None if item is None else (decode_part(item.value), item.revision)
        except Unavailable:
            await asyncio.sleep(_PAUSE_S)


async def _registered(store: Store, node: NodeId, incarnation: Incarnation) -> int | None:
    """The revision of a node's registration, if it is still that one."""
    key = node_key(node)
    item = (await store.load(key)).items.get(key)
    if item is None:
        return None
    # The first word of a node cannot name its own revision.
    known = decode_node(item.value).incarnation or item.revision
    return item.revision if known == incarnation else None
