"""`goqueue-cli top`: rates from two looks, and what is drawn of them."""

import pytest

from goqueue.cli.broker.top_rates import GroupLook, Look, TopicLook, TopRow, look_of, top_rows, total_of
from goqueue.client import GoQueue
from goqueue.client.calls.groups import GroupLag, PartitionLag
from goqueue.client.log import Extent
from tests.unit.cli.command_line import CommandLine


def look(time_ns: int, *, end: int, settled: int, lag: int = 0) -> Look:
    return Look(
        time_ns=time_ns,
        topics={"orders": TopicLook(1, end, end, end * 10)},
        groups={"workers": {"orders": GroupLook(settled, lag)}},
    )


def test_rates_are_what_happened_between_two_looks() -> None:
    before = look(0, end=100, settled=50)
    now = look(2_000_000_000, end=300, settled=60, lag=240)

    [first] = top_rows(before)
    [row] = top_rows(now, before)

    assert (first.in_per_second, first.out_per_second) == (None, None)
    assert (row.in_per_second, row.out_per_second, row.lag, row.groups) == (100.0, 5.0, 240, 1)


def test_what_goes_back_is_no_rate() -> None:
    [row] = top_rows(look(1_000_000_000, end=5, settled=0), look(0, end=100, settled=50))

    assert (row.in_per_second, row.out_per_second) == (0.0, 0.0)


def test_a_topic_or_group_that_is_new_has_done_nothing_yet() -> None:
    empty = Look(time_ns=0, topics={"orders": TopicLook(1, 0, 0, 0)})

    [known] = top_rows(look(1, end=9, settled=9), empty)
    [new] = top_rows(look(1, end=9, settled=9), Look(time_ns=0, topics={}))

    assert known.out_per_second == 0.0
    assert (new.in_per_second, new.out_per_second) == (None, None)


def test_the_busiest_topic_stands_first_and_dead_letters_stand_with_their_topic() -> None:
    extents = {
        "quiet": {"0": Extent(0, 5, 50)},
        "busy": {"0": Extent(10, 20, 100), "1": Extent(0, 0, 0)},
        "busy.dlq": {"0": Extent(0, 4, 40), "1": Extent(1, 3, 20)},
        "alone.dlq": {"0": Extent(0, 1, 10)},
    }
    lags = [
        GroupLag("workers", 12, 0.0, [lag_in("busy", offset=8, lag=12), lag_in("quiet", offset=-1, lag=-1)]),
        GroupLag("goqueue.redrive.busy", 1, 0.0, [lag_in("busy.dlq", offset=3, lag=1)]),
    ]
    before = look_of(time_ns=0, extents={name: {} for name in extents}, lags=[], delayed={})
    now = look_of(time_ns=1_000_000_000, extents=extents, lags=lags, delayed={"quiet": 7})

    rows = top_rows(now, before)

    assert [row.topic for row in rows] == ["busy", "quiet", "alone.dlq"]
    assert (rows[0].messages, rows[0].partitions, rows[0].lag, rows[0].dead_letters) == (10, 2, 12, 1 + 2)
    assert (rows[1].delayed, rows[1].lag, rows[1].dead_letters) == (7, 0, 0)
    assert total_of(rows).messages == 16


def lag_in(topic: str, *, offset: int, lag: int) -> PartitionLag:
    return PartitionLag(topic, 0, offset, 20, lag, 0.0)


def test_one_sample_is_printed_in_all_three_forms(
    cli: CommandLine, queue: GoQueue, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Somebody publishes while `top` waits for its second look.
    monkeypatch.setattr("goqueue.cli.broker.top.time.sleep", lambda _: queue.publish(topic, "one more"))

    rows = cli.rows("top", "--once")
    told = cli.told(list[TopRow], "top", "--once", "-n", "0.5")
    yaml = cli.printed("top", "--once", "-o", "yaml")

    assert " ".join(rows[0]) == "TOPIC PARTITIONS MESSAGES SIZE IN/S OUT/S GROUPS LAG DEAD DELAYED"
    assert rows[1][:3] == [topic, "1", "1"]
    [row] = [row for row in told if row.topic == topic]
    assert row.messages == 2 and (row.in_per_second or 0) > 0
    assert f"- topic: {topic}" in yaml


def test_without_a_terminal_samples_follow_each_other_until_ctrl_c(
    cli: CommandLine, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) % 2 == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr("goqueue.cli.parts.live.time.sleep", sleep)

    lines = cli.printed("top", "-o", "json").splitlines()
    tables = cli.printed("top", "-n", "5")

    assert len(lines) == 2 and all(f'"topic":"{topic}"' in line for line in lines)
    assert tables.count("TOPIC ") == 2
    assert waits == [2.0, 2.0, 5.0, 5.0]
