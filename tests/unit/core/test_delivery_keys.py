"""Keys of busy messages: who has one of a key out is the only one to have more of it."""

from collections.abc import Mapping

from goqueue.core.delivery.key_holds import NOBODY, KeyHolds
from goqueue.core.delivery.lease import Lease
from goqueue.core.delivery.runs import Run, Runs
from goqueue.model.messages import Lane, StoredMessage


def keys_of(keys: Mapping[int, bytes | None]) -> KeyHolds:
    known = KeyHolds()
    known.learn(StoredMessage(offset, 0, key, b"", (), Lane.NORMAL) for offset, key in keys.items())
    return known


def lease(consumer: str, *runs: Run) -> Lease:
    held = Lease(1, consumer, 1_000)
    for run in runs:
        held.offsets.add(*run)
    return held


def test_who_has_a_message_out_holds_its_key() -> None:
    keys = keys_of({0: b"a", 1: b"b", 2: b"a", 5: b"c"})

    holders = keys.holders([lease("ann", (0, 1), (2, 3)), lease("ben", (1, 2))], ())

    assert holders == {b"a": "ann", b"b": "ben"}


def test_a_message_that_waits_for_its_next_try_keeps_its_key_from_everybody() -> None:
    keys = keys_of({0: b"a", 1: b"a", 2: b"b"})

    assert keys.holders([lease("ann", (0, 1), (2, 3))], [1]) == {b"a": NOBODY, b"b": "ann"}


def test_a_message_without_a_key_holds_nothing() -> None:
    keys = keys_of({0: None, 1: None, 2: b""})

    assert keys.holders([lease("ann", (0, 1))], [1]) == {}
    assert keys.holders([lease("ann", (2, 3))], ()) == {b"": "ann"}, "an empty key is one"


def test_keys_of_busy_messages_that_are_not_known_are_to_be_read() -> None:
    keys = keys_of({1: b"a", 3: None, 9: b"c"})

    assert keys.unknown(Runs([(0, 5), (9, 11)])) == [(0, 1), (2, 3), (4, 5), (10, 11)]
    assert KeyHolds().unknown(Runs([(0, 5)])) == [(0, 5)]


def test_what_is_not_busy_any_more_is_forgotten() -> None:
    keys = keys_of({1: b"a", 3: b"b"})

    assert keys.unknown(Runs([(3, 4)])) == []

    assert keys.holders([lease("ann", (1, 2), (3, 4))], ()) == {b"b": "ann"}
    assert keys.unknown(Runs([(1, 2), (3, 4)])) == [(1, 2)]
