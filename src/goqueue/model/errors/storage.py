"""Errors about the disk, and about the store of what is agreed."""

from collections.abc import Sequence

from goqueue.model.errors.families import Corrupt, Fenced, Unavailable


class StorageFailed(Unavailable):
    """The disk refused a write or an fsync; nothing after the last acknowledged message is certain."""

    code = "storage_failed"


class Outdated(Fenced):
    """What is agreed has changed since this was decided on: look at it again."""

    code = "metadata_outdated"

    def __init__(self, key: str, revision: int) -> None:
        super().__init__(f"{key} has changed meanwhile; the store is at revision {revision}")
        self.key = key
        self.revision = revision


class Compacted(Fenced):
    """The store no longer knows what changed behind a revision: load it anew."""

    code = "metadata_compacted"

    def __init__(self, after: int) -> None:
        super().__init__(f"what changed behind revision {after} is no longer known")


class Unknown(Unavailable):
    """The store gave no answer: the change may have been made, or not."""

    code = "metadata_unknown"

    def __init__(self, reason: str) -> None:
        super().__init__(f"nobody knows whether the change was made: {reason}")


class StoreUnreachable(Unavailable):
    """What is agreed cannot be asked for or changed now: none of the store's members answers."""

    code = "store_unreachable"

    def __init__(self, endpoints: Sequence[str], reason: str) -> None:
        where = f" ({', '.join(endpoints)})" if endpoints else ""
        super().__init__(f"the store of what is agreed{where} does not answer: {reason}")


class PartitionDamaged(Unavailable):
    """Stored messages are lost; it is not written to until an operator accepts that, or repairs it."""

    code = "partition_damaged"

    def __init__(self, topic: str, partition: int, damage: str) -> None:
        super().__init__(
            f"{topic}/{partition} is damaged and takes nothing: {damage}; "
            f"to go on without what is lost: goqueue-admin partition accept {topic}/{partition}"
        )
        self.topic = topic
        self.partition = partition


class CompactionRefused(Unavailable):
    """A partition cannot be compacted now."""

    code = "compaction_refused"

    def __init__(self, topic: str, partition: int, reason: str) -> None:
        super().__init__(f"{topic}/{partition} is not compacted: {reason}")
        self.topic = topic
        self.partition = partition


class JournalDamaged(Corrupt):
    """A journal of the broker has lost something: without it the broker would break its word."""

    code = "journal_damaged"

    def __init__(self, topic: str, partition: int, damage: str) -> None:
        super().__init__(
            f"the journal {topic}/{partition} is damaged: {damage}",
            topic=topic,
            partition=partition,
        )


class CommitLogDamaged(Corrupt):
    """The commit log has lost a round: what was acknowledged may be missing in any partition."""

    code = "commit_log_damaged"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"the commit log is damaged: {problem} in {path}; "
            "`goqueue-admin repair` tells what is left and goes on with that"
        )
        self.path = path


class NotDamaged(Fenced):
    """There is no loss to accept."""

    code = "not_damaged"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"{topic}/{partition} is not damaged: there is no loss to accept")
        self.topic = topic
        self.partition = partition


class StorageFull(Unavailable):
    """No space is left on the disk: free some, or shorten retention."""

    code = "storage_full"
