"""Compaction against a plain dictionary: what a reader builds from the log stays the same."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.core.compaction.round import Basis, Batch, CompactionRound
from goqueue.model.messages import Message, StoredMessage
from goqueue.records.batch import encode, open_batch
from goqueue.records.compacted import is_filler
from goqueue.records.layout import Codec, patch, read_header

NOW_MS = 1_000_000
DAY_MS = 86_400_000
KEYS = st.sampled_from([b"", b"a", b"a\0", b"b", b"k" * 31, b"k" * 32, b"k" * 40, b"k" * 39 + b"x"])
VALUES = st.one_of(st.none(), st.binary(max_size=200))
MESSAGES = st.tuples(KEYS, VALUES)
LOGS = st.lists(st.lists(MESSAGES, min_size=1, max_size=6), min_size=1, max_size=12)


def batches_of(log: list[list[tuple[bytes, bytes | None]]]) -> list[Batch]:
    batches: list[Batch] = []
    offset = 0
    for number, pairs in enumerate(log):
        messages = [Message(value=value, key=key, timestamp_ms=1_000 * number) for key, value in pairs]
        for body, _ in encode(messages, now_ms=0):
            patch(body, base_offset=offset, leader_epoch=1)
            header = read_header(body)
            batches.append((header, body))
            offset = header.end_offset
    return batches


def compacted(
    batches: list[Batch], *, clean_end: int = 0, now_ms: int = NOW_MS, keys_max: int = 1_000, seed: int = 1
) -> tuple[list[Batch], CompactionRound]:
    random = Random(seed)
    round_ = CompactionRound(
        Basis(clean_end=clean_end, aborted=(), last_ends={}, now_ms=now_ms, delete_retention_ms=DAY_MS),
        keys_max=keys_max,
        records_max=1_000_000,
        factors=[random.getrandbits(64) for _ in range(4)],
        secret=b"secret",
    )
    for batch in batches:
        if batch[0].base_offset < clean_end:
            continue
        while not round_.make_room([batch]):
            pass
        if not round_.note([batch]):
            break
    verdicts = [body for batch in batches for body in round_.judge([batch])]
    return [(read_header(body), body) for body in verdicts if body is not None], round_


def messages_of(batches: list[Batch]) -> list[StoredMessage]:
    return [message for header, body in batches if header.record_count for message in open_batch(body, 2)]


def table_of(messages: list[StoredMessage]) -> dict[bytes | None, bytes]:
    """What a reader from the start would have in the end."""
    table: dict[bytes | None, bytes] = {}
    for message in messages:
        if message.value is None:
            table.pop(message.key, None)
        else:
            table[message.key] = message.value
    return table


@settings(max_examples=100, deadline=None)
@given(LOGS)
def test_the_newest_message_of_each_key_stays_at_its_offset_and_nothing_else(
    log: list[list[tuple[bytes, bytes | None]]],
) -> None:
    before = messages_of(batches_of(log))
    after = messages_of(compacted(batches_of(log))[0])

    newest = {message.key: message for message in before}
    assert after == sorted(newest.values(), key=lambda message: message.offset)


@settings(max_examples=100, deadline=None)
@given(LOGS, st.integers(0, 12), st.integers(1, 8), st.lists(st.integers(0, 3), max_size=4))
def test_rounds_over_a_log_that_grows_never_change_what_a_reader_has_in_the_end(
    log: list[list[tuple[bytes, bytes | None]]], first_count: int, keys_max: int, days: list[int]
) -> None:
    batches = batches_of(log)
    known, grown = batches[:first_count], batches[first_count:]
    clean_end, now_ms = 0, NOW_MS
    for passed in [0, *days, 0, 0]:
        now_ms += passed * DAY_MS
        known, round_ = compacted(known, clean_end=clean_end, now_ms=now_ms, keys_max=keys_max)
        clean_end = round_.end_offset
        known, grown = known + grown[:2], grown[2:]
    known += grown

    written = messages_of(batches)
    assert table_of(messages_of(known)) == table_of(written)
    assert [message for message in written if message in messages_of(known)] == messages_of(known)


@settings(max_examples=50, deadline=None)
@given(LOGS)
def test_what_deletes_a_key_goes_a_day_after_compaction_met_it_and_not_before(
    log: list[list[tuple[bytes, bytes | None]]],
) -> None:
    once, first = compacted(batches_of(log))
    deleted = [message for message in messages_of(once) if message.value is None]
    assert first.horizon_ms == (NOW_MS + DAY_MS if deleted else None)

    early, _ = compacted(once, clean_end=first.end_offset, now_ms=NOW_MS + DAY_MS - 1)
    assert messages_of(early) == messages_of(once)
    late, last = compacted(early, clean_end=first.end_offset, now_ms=NOW_MS + DAY_MS)
    assert messages_of(late) == [message for message in messages_of(once) if message.value is not None]
    assert last.horizon_ms is None


@settings(max_examples=50, deadline=None)
@given(LOGS, st.sampled_from([codec for codec in Codec if codec is not Codec.NONE]))
def test_compressed_batches_stay_compressed_and_open_as_before(
    log: list[list[tuple[bytes, bytes | None]]], codec: Codec
) -> None:
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    plain = batches_of(log)
    batches: list[Batch] = []
    for header, body in plain:
        builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 2**31 - 1)
        for index, message in enumerate(open_batch(body, 2)):
            builder.append(index, message.timestamp_ms, message.key, message.value, [])
        built = memoryview(builder.build())
        patch(built, base_offset=header.base_offset, leader_epoch=1)
        batches.append((read_header(built), built))
    assert messages_of(compacted(batches)[0]) == messages_of(compacted(plain)[0])
    assert not any(is_filler(header) for header, _ in batches)
