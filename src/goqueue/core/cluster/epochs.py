"""Where two logs of a partition part: found by the ends of epochs, never by a commit mark.

An epoch has one leader, which never has two histories in it. So two logs that have an epoch are alike up to
the smaller of its two ends, and the last epoch they share tells how far that is.
"""

from typing import NamedTuple

from goqueue.model.replication import NO_EPOCH, Answer, Follow, ReplicaLog


class Compared(NamedTuple):
    """What a leader answers a follower: go on, cut to an epoch's end, or begin anew at the leader's start."""

    answer: Answer
    epoch: int = NO_EPOCH
    end_offset: int = 0


def compare(log: ReplicaLog, follow: Follow, *, by_epoch: bool = True) -> Compared:
    """How a follower's log stands to the leader's."""
    if follow.end_offset < log.start_offset:
        return Compared(Answer.BEGIN)
    if follow.last_epoch == NO_EPOCH:
        # It holds nothing that could differ, and begins where a leader once told it to.
        return Compared(Answer.GO if follow.end_offset <= log.end_offset else Answer.BEGIN)
    epoch, end_offset = epoch_end(log, follow.last_epoch)
    if not by_epoch:
        epoch, end_offset = follow.last_epoch, log.end_offset
    if epoch == NO_EPOCH:
        # All that both may have lies before the leader's start. Beginning there is one step; a cut to nothing
        # would leave a replica for a while that could be elected and use old offsets again.
        return Compared(Answer.BEGIN)
    if epoch == follow.last_epoch and follow.end_offset <= end_offset:
        return Compared(Answer.GO)
    return Compared(Answer.CUT, epoch, end_offset)


def epoch_end(log: ReplicaLog, epoch: int) -> tuple[int, int]:
    """The last epoch of a log not above one, and where it ended; NO_EPOCH ends where the log starts."""
    found, end_offset = log.epoch_end(epoch)
    return (NO_EPOCH, log.start_offset) if found == NO_EPOCH else (found, max(end_offset, log.start_offset))


def cut_point(log: ReplicaLog, epoch: int, end_offset: int) -> int:
    """Where a follower cuts that was told an epoch and its end: at the smaller of both ends of that epoch."""
    return max(log.start_offset, min(end_offset, epoch_end(log, epoch)[1]))
