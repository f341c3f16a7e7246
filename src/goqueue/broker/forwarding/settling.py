"""Receipts of leases that several nodes have given out: each is asked about its own, side by side.

Each lease is settled by itself, so what one node has done and another has not is told receipt by receipt.
What a node has not taken is asked for again; what it may have taken is not.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.carrying import Carrier
from goqueue.broker.forwarding.route import NOT_RUN, keeper_of_receipt
from goqueue.model.cluster import NodeId
from goqueue.model.delivery import Settle, SettleOutcome
from goqueue.model.errors import GoQueueError, LeadershipLost, NoLeader


async def settle_in_shares(broker: Broker, command: Settle, carrier: Carrier) -> SettleOutcome:
    """What became of each receipt, whoever gave it out."""
    outcome = SettleOutcome()
    left: Iterable[int] = range(len(command.receipts))
    patience = carrier.patience()
    while True:
        shares = _share_out(broker, command, carrier.me, left)
        told = await asyncio.gather(
            *(_carry(carrier, node, command, indexes, outcome) for node, indexes in shares.items())
        )
        left = [index for indexes in told for index in indexes]
        if not left or not await patience.is_worth_another_try():
            return outcome
        for index in left:
            del outcome.refusals[index]


def _share_out(
    broker: Broker, command: Settle, me: NodeId, left: Iterable[int]
) -> Mapping[NodeId, list[int]]:
    shares: dict[NodeId, list[int]] = {}
    for index in left:
        try:
            node = keeper_of_receipt(command.receipts[index], broker.metadata, me)
        except NoLeader:
            node = me  # which refuses it, and it is tried again
        shares.setdefault(node, []).append(index)
    return shares


async def _carry(
    carrier: Carrier, node: NodeId, command: Settle, indexes: list[int], outcome: SettleOutcome
) -> list[int]:
    """Have a node settle its share; those that it has not looked at."""
    share = replace(command, receipts=[command.receipts[index] for index in indexes])
    try:
        told = cast(SettleOutcome, await carrier.run_at(node, share))
    except GoQueueError as error:
        outcome.refusals |= dict.fromkeys(indexes, error)
        return indexes if isinstance(error, (*NOT_RUN, LeadershipLost)) else []
    outcome.refusals |= {indexes[at]: error for at, error in told.refusals.items()}
    outcome.parts |= {indexes[at]: part for at, part in told.parts.items()}
    outcome.times_ms |= {indexes[at]: time_ms for at, time_ms in told.times_ms.items()}
    outcome.dead_letter_topics |= {indexes[at]: topic for at, topic in told.dead_letter_topics.items()}
    return []
