"""Transactions as people see them."""

from collections.abc import Sequence
from typing import Annotated, Generic

from msgspec import Meta, Struct

from goqueue.wire.times import Time


class TouchedPartition(Struct, frozen=True):
    topic: str
    partition: int


class TransactionView(Struct, Generic[Time], frozen=True):
    """One transactional id and its last transaction."""

    transaction_id: str
    transactional_id: str
    producer_id: int
    epoch: int
    state: Annotated[
        str,
        Meta(
            description="empty, ongoing, preparing_commit, preparing_abort, completed_commit, "
            "completed_abort or dead."
        ),
    ]
    started_at: Time
    timeout_ms: int
    open_ms: Annotated[int, Meta(description="For how long it has been open; 0 when it is not.")]
    partitions: list[TouchedPartition]
    groups: list[str]
    receipts: int


class TransactionStats(Struct, Generic[Time], frozen=True):
    active_transactions: int
    committed_total: int
    aborted_total: int
    avg_duration: Annotated[str, Meta(description="From the begin to the decision, like 39.5ms.")]
    longest_open: Sequence[TransactionView[Time]]
