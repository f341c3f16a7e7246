"""A backup of several nodes: coordinators tell of groups first, leaders of where their partitions end then.

So no group stands behind the end of a partition. A journal or a partition that nobody answers for is an
error: a backup is whole, or there is none.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from goqueue.broker.backup.store import age
from goqueue.broker.backup.taking import joined_shares
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.carrying import Carrier, ask
from goqueue.broker.forwarding.gathering import group_journals
from goqueue.broker.forwarding.route import route
from goqueue.model.backups import Backup, BackupListing, CreateBackup, TakeShare
from goqueue.model.places import Seat

_NOTHING = CreateBackup(
    include_topics=False, include_offsets=False, include_schemas=False, include_config=False
)


async def take_everywhere(broker: Broker, command: TakeShare, carrier: Carrier) -> Backup:
    """What all nodes know. What every node has is told by the one that asks."""
    wanted = command.wanted
    of_coordinators: Sequence[Backup] = []
    if wanted.include_offsets:
        offsets = replace(_NOTHING, include_offsets=True)
        journals = group_journals(broker, carrier.me)
        asked = {node: TakeShare(wanted=offsets, journals=numbers) for node, numbers in journals.items()}
        of_coordinators = cast(Sequence[Backup], list((await ask(carrier, asked)).values()))
    nodes = route(Seat.EVERY_NODE, broker.metadata, carrier.me) if wanted.include_topics else {}
    asked = dict.fromkeys(nodes, TakeShare(wanted=replace(_NOTHING, include_topics=True)))
    asked[carrier.me] = TakeShare(wanted=replace(wanted, include_offsets=False))
    told = await ask(carrier, asked)
    shares = cast(Sequence[Backup], list(told.values()))
    return joined_shares(cast(Backup, told[carrier.me]), shares, of_coordinators)


def joined_listings(told: Sequence[Sequence[BackupListing]]) -> list[BackupListing]:
    return sorted((listing for listings in told for listing in listings), key=age, reverse=True)
