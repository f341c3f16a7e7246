"""What the simulation demands of a partition, shown on histories written by hand."""

import pytest

from goqueue.model.ids import TopicName
from goqueue.model.messages import Acks, Lane, Message, StoredMessage
from goqueue.testing.whole.partition_history import Given, PartitionHistory, Rot, Shown, Violation

WALL_MS = 1_000_000


def history_of(*values: bytes, acks: Acks = Acks.ALL) -> PartitionHistory:
    """A partition to which messages were given, stored from offset 0 on."""
    history = PartitionHistory(Given(TopicName("orders")), 0)
    messages = [Message(value) for value in values]
    history.given.add(messages, wall_ms=WALL_MS)
    history.put(0, messages, acks=acks, now_ns=0)
    return history


def stored(offset: int, value: bytes) -> StoredMessage:
    return StoredMessage(offset, WALL_MS, None, value, (), Lane.NORMAL)


def shown(*values: bytes, start_offset: int = 0) -> Shown:
    messages = [stored(offset, value) for offset, value in enumerate(values, start_offset)]
    return Shown(start_offset, start_offset + len(values), messages)


def recover(history: PartitionHistory, found: Shown, *, wall_ms_max: int = WALL_MS) -> None:
    history.check_recovered(found, wall_ms_max=wall_ms_max, now_ns=0)


def test_what_was_promised_must_be_found() -> None:
    history = history_of(b"1:", b"2:")
    history.promise(range(1, 2))

    with pytest.raises(Violation, match="ends at 1, but 1 was promised"):
        recover(history, shown(b"1:"))


def test_what_was_not_promised_may_be_gone() -> None:
    history = history_of(b"1:", b"2:")
    history.promise(range(1))

    recover(history, shown(b"1:"))

    assert list(history.entries) == [0]


def test_a_promise_covers_everything_before_it() -> None:
    history = history_of(b"1:", b"2:", acks=Acks.NONE)
    history.promise(range(1, 2))

    assert history.entries[0].is_promised


def test_acks_leader_is_a_promise_once_the_flush_interval_has_passed() -> None:
    history = history_of(b"1:", acks=Acks.LEADER)

    history.promise_flushed(written_before_ns=-1)
    recover(history, shown())
    assert history.promised_end == 0

    history = history_of(b"1:", acks=Acks.LEADER)
    history.promise_flushed(written_before_ns=0)
    with pytest.raises(Violation):
        recover(history, shown())


def test_acks_none_promises_nothing() -> None:
    history = history_of(b"1:", acks=Acks.NONE)
    history.promise_flushed(written_before_ns=10**18)

    recover(history, shown())


def test_another_message_in_the_place_of_a_promised_one_is_caught() -> None:
    history = history_of(b"1:", b"2:")
    history.given.add([Message(b"3:")], wall_ms=WALL_MS)
    history.promise(range(1, 2))

    with pytest.raises(Violation, match="message 2 became message 3"):
        recover(history, shown(b"1:", b"3:"))


def test_a_message_that_nobody_gave_is_caught() -> None:
    with pytest.raises(Violation, match="which nobody has written"):
        history_of(b"1:").check_read([stored(1, b"made up")], start_offset=0, acks=Acks.NONE, now_ns=0)


def test_a_message_that_differs_from_what_was_given_is_caught() -> None:
    changed = stored(0, b"1:")._replace(key=b"key")

    with pytest.raises(Violation, match="given was"):
        history_of(b"1:").check_read([changed], start_offset=0, acks=Acks.NONE, now_ns=0)


def test_a_message_at_an_offset_it_was_never_stored_at_is_caught() -> None:
    with pytest.raises(Violation, match="which was stored at"):
        history_of(b"1:").check_read([stored(7, b"1:")], start_offset=0, acks=Acks.NONE, now_ns=0)


def test_a_gap_in_a_read_is_caught() -> None:
    messages = [stored(0, b"1:"), stored(2, b"3:")]

    with pytest.raises(Violation, match="offset 2 follows 0"):
        history_of(b"1:", b"2:", b"3:").check_read(messages, start_offset=0, acks=Acks.NONE, now_ns=0)


def test_a_gap_is_no_gap_where_the_log_begins_by_now() -> None:
    messages = [stored(0, b"1:"), stored(2, b"3:")]

    history_of(b"1:", b"2:", b"3:").check_read(messages, start_offset=2, acks=Acks.NONE, now_ns=0)


def test_an_offset_given_twice_is_caught_unless_an_fsync_has_failed() -> None:
    history = history_of(b"1:", b"2:")
    other = [Message(b"3:")]
    history.given.add(other, wall_ms=WALL_MS)

    with pytest.raises(Violation, match="message 2 became message 3"):
        history.put(1, other, acks=Acks.ALL, now_ns=0)

    history.is_doubtful = True
    history.put(1, other, acks=Acks.ALL, now_ns=0)
    assert history.entries[1].value == b"3:"


def test_a_start_that_nothing_explains_is_caught() -> None:
    with pytest.raises(Violation, match="nothing allows offset 0 to be removed"):
        recover(history_of(b"1:", b"2:"), shown(b"2:", start_offset=1))


def test_a_start_may_move_by_deletion_and_by_age() -> None:
    deleted = history_of(b"1:", b"2:")
    deleted.deleted_before = 1
    recover(deleted, shown(b"2:", start_offset=1))

    aged = history_of(b"1:", b"2:")
    aged.given.retention_ms_min = 500
    recover(aged, shown(b"2:", start_offset=1), wall_ms_max=WALL_MS + 501)


def test_corrupt_may_be_said_only_of_what_was_spoilt() -> None:
    history = history_of(b"1:", b"2:")
    with pytest.raises(Violation, match="nothing has spoilt it"):
        history.check_corrupt(1)

    history.rotten.append(Rot(range(1, 2), may_be_cut=False))
    history.check_corrupt(1)


def test_a_log_may_be_cut_at_a_spoilt_frame_only_if_nothing_vouches_for_it() -> None:
    history = history_of(b"1:", b"2:", b"3:")
    history.promise(range(2, 3))
    history.rotten.append(Rot(range(1, 2), may_be_cut=False))
    with pytest.raises(Violation):
        recover(history, shown(b"1:"))

    history.rotten = [Rot(range(1, 2), may_be_cut=True)]
    recover(history, shown(b"1:"))
