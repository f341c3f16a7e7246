"""Record batches for many partitions: each leader gets those of its own, side by side.

All of one leader's are checked before the first of them is stored, as on one node; what another leader has
stored by then stays. What a leader has not taken is tried again; what it may have taken is not.
"""

import asyncio
from dataclasses import replace
from typing import Any

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.carrying import Carrier
from goqueue.broker.forwarding.route import NOT_RUN, leader_of
from goqueue.model.cluster import NodeId
from goqueue.model.commands import AppendEntries
from goqueue.model.errors import GoQueueError, InvalidBatch, NoLeader
from goqueue.model.sinks import AppendStaged
from goqueue.records.entries import Entry, encode_entry, read_entries

Bulk = AppendEntries | AppendStaged


async def append_in_shares(broker: Broker, command: Bulk, carrier: Carrier) -> list[Any]:
    """One answer an entry, in order, whoever stored it. Raises what any leader refuses its share for."""
    entries = read_entries(command.entries)
    if not entries:
        raise InvalidBatch("a bulk write needs at least one entry")
    outcomes: list[Any] = [None] * len(entries)
    left = list(range(len(entries)))
    patience = carrier.patience()
    while True:
        shares: dict[NodeId, list[int]] = {}
        for index in left:
            try:
                node = leader_of(entries[index].target, broker.metadata, carrier.me)
            except NoLeader as error:
                outcomes[index] = error
                continue
            shares.setdefault(node, []).append(index)
        await asyncio.gather(
            *(_carry(carrier, node, command, entries, share, outcomes) for node, share in shares.items())
        )
        left = [index for index in left if isinstance(outcomes[index], NOT_RUN)]
        if not left or not await patience.is_worth_another_try():
            break
    for outcome in outcomes:
        if isinstance(outcome, GoQueueError):
            raise outcome
    return outcomes


async def _carry(
    carrier: Carrier,
    node: NodeId,
    command: Bulk,
    entries: list[Entry],
    share: list[int],
    outcomes: list[Any],
) -> None:
    """Have a leader store its share, and note what came of each entry."""
    given = command.entries
    if len(share) < len(entries):
        given = memoryview(bytearray(b"".join(encode_entry(*entries[index]) for index in share)))
    placed: Any
    try:
        placed = await carrier.run_at(node, replace(command, entries=given))
    except GoQueueError as error:
        placed = [error] * len(share)
    for index, outcome in zip(share, placed, strict=True):
        outcomes[index] = outcome
