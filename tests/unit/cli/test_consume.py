"""`goqueue-cli consume`: messages where they lie, and messages taken as a member of a group."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goqueue.cli.messages import consume_group, consume_log
from goqueue.cli.messages.consume_log import Range, Span, ranges
from goqueue.cli.messages.view import MessageView
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.client import GoQueue, Outgoing
from goqueue.client.calls import queue as calls
from goqueue.client.log import Extent
from tests.doors.http.running_door import RunningDoor
from tests.unit.cli.command_line import CommandLine


@pytest.fixture
def filled(queue: GoQueue, topic: str) -> str:
    """A topic of two partitions: 0 to 11 in the first, a and b in the second."""
    queue.topics.add_partitions(topic, 2)
    messages = [Outgoing(str(number), key="k", partition=0) for number in range(12)]
    queue.publish_many(topic, [*messages, Outgoing("a", partition=1), Outgoing("b", partition=1)])
    return topic


def values(cli: CommandLine, *words: str) -> list[str | None]:
    return [message.value for message in cli.told(list[MessageView], "consume", *words)]


def test_messages_are_a_table_from_the_first_on(cli: CommandLine, filled: str) -> None:
    rows = cli.rows("consume", filled, "-n", "2")

    assert rows[0] == ["OFFSET", "TIMESTAMP", "KEY", "VALUE", "PRIORITY"]
    assert [(row[0], *row[2:]) for row in rows[1:]] == [("0", "k", "0", "normal"), ("1", "k", "1", "normal")]
    assert len(cli.rows("consume", filled)) == 1 + 10


def test_programs_hear_all_of_a_message(cli: CommandLine, queue: GoQueue, topic: str) -> None:
    queue.publish(topic, b"\xff", key=b"k", headers={"h": b"1"}, priority="low")

    [message] = cli.told_alike(list[MessageView], "consume", topic)

    assert (message.key, message.value, message.encoding) == ("aw==", "/w==", "base64")
    assert (message.headers, message.priority, message.topic) == ({"h": "1"}, "low", topic)


def test_reading_begins_where_it_is_asked_to(cli: CommandLine, filled: str) -> None:
    assert values(cli, filled, "--offset", "10") == ["10", "11"]
    assert values(cli, filled, "--from-offset=-3") == ["9", "10", "11"]
    assert values(cli, filled, "--from-beginning", "-n", "1") == ["0"]
    assert values(cli, filled, "-p", "1") == ["a", "b"]
    assert values(cli, filled, "-p", "-1", "-n", "20")[-3:] == ["11", "a", "b"]
    assert values(cli, filled, "--offset", "99") == []


def test_a_long_range_is_read_page_by_page(
    cli: CommandLine, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume_log, "PAGE_COUNT", 5)

    assert values(cli, filled, "-n", "11") == [str(number) for number in range(11)]


def test_rows_before_a_damaged_place_are_shown_with_the_error(
    cli: CommandLine, door: RunningDoor, queue: GoQueue, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume_log, "PAGE_COUNT", 2)
    for number in range(5):
        queue.publish(topic, f"value-{number}")
    damage(door.folder / "logs" / topic / "0" / f"{0:020}.log", b"value-3")

    result = cli.ends(ExitCode.FAILED, "consume", topic)

    assert [line.split()[-2] for line in result.stdout.splitlines()[1:]] == ["value-0", "value-1", "value-2"]
    assert "corrupt at offset 3" in result.stderr


def damage(path: Path, needle: bytes) -> None:
    """Flip the bytes of a value where it lies on the disk."""
    data = path.read_bytes()
    path.write_bytes(data.replace(needle, bytes(255 - byte for byte in needle)))


def test_times_bound_what_is_read(cli: CommandLine, filled: str) -> None:
    now = datetime.now(UTC)
    hour_ago, in_an_hour = now - timedelta(hours=1), now + timedelta(hours=1)

    assert len(values(cli, filled, "--from-time", "1h")) == 10
    assert (
        len(values(cli, filled, "--from-time", hour_ago.isoformat(), "--to-time", in_an_hour.isoformat()))
        == 10
    )
    assert values(cli, filled, "--to-time", hour_ago.isoformat()) == []
    assert values(cli, filled, "--from-time", in_an_hour.isoformat()) == []


def test_values_alone_come_byte_for_byte(cli: CommandLine, queue: GoQueue, topic: str) -> None:
    queue.publish(topic, b"\x00\xff")
    queue.publish(topic, "ü")

    assert cli.ends(ExitCode.OK, "consume", topic, "--raw").stdout_bytes == b"\x00\xff\n\xc3\xbc\n"


def test_a_value_is_one_short_line_and_moves_no_cursor(cli: CommandLine, queue: GoQueue, topic: str) -> None:
    queue.publish(topic, "two\nlines \x1b[2J")
    queue.publish(topic, "x" * 51)
    queue.publish(topic, None, key="gone")

    lines = cli.printed("consume", topic).splitlines()

    assert "two\\nlines \\x1b[2J" in lines[1]
    assert f"{'x' * 49}…" in lines[2]
    assert "(no value)" in lines[3]


def test_following_prints_a_line_a_message_until_ctrl_c(
    cli: CommandLine, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume_log, "WAIT_S", 0.01)
    interrupt_when_read_empty(monkeypatch)

    lines = cli.printed("consume", filled, "-f", "--offset", "10").splitlines()
    jsons = cli.printed("consume", filled, "-f", "-p", "-1", "-n", "13", "-o", "json").splitlines()
    documents = cli.printed("consume", filled, "-f", "--offset", "11", "-o", "yaml")

    assert lines == ["10 [k]: 10", "11 [k]: 11"]
    assert len(jsons) == 13 and '"partition":1,"offset":0' in jsons[12]
    assert documents.startswith("---\ntopic: ")


def interrupt_when_read_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C as soon as a look at the log finds nothing."""
    read_page = GoQueue.read_page

    def read_or_interrupt(queue: GoQueue, *words: object, **options: object) -> object:
        page = read_page(queue, *words, **options)  # type: ignore[arg-type]  # as it was called
        if not page.messages:
            raise KeyboardInterrupt
        return page

    monkeypatch.setattr(GoQueue, "read_page", read_or_interrupt)


def test_what_comes_from_now_on_is_asked_for_with_follow(cli: CommandLine, filled: str) -> None:
    told = cli.ends(ExitCode.WRONG_COMMAND, "consume", filled, "--from-latest")

    assert "--follow" in told.stderr
    extents = {"0": Extent(3, 9), "1": Extent(0, 0)}
    followed = ranges(extents, Span(is_new_only=True, is_followed=True))
    assert followed == [Range(0, 9, None), Range(1, 0, None)]


def test_a_range_lies_within_the_log() -> None:
    extents = {"0": Extent(3, 9)}

    assert ranges(extents, Span()) == [Range(0, 3, 9)]
    assert ranges(extents, Span(offset=-100)) == [Range(0, 3, 9)]
    assert ranges(extents, Span(), starts={"0": 5}, ends={"0": 7}) == [Range(0, 5, 7)]


@pytest.fixture
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(consume_group, "WAIT_S", 0.05)
    yield


@pytest.mark.usefixtures("quick_polls")
def test_a_group_gets_each_message_once(cli: CommandLine, queue: GoQueue, filled: str) -> None:
    first = values(cli, filled, "--group", f"g-{filled}", "-n", "9")
    rest = cli.rows("consume", filled, "-g", f"g-{filled}", "-n", "50")
    then = cli.printed("consume", filled, "--group", f"g-{filled}")

    assert rest[0][0] == "PARTITION"
    assert len(first) == 9 and len(rest) == 1 + 5
    assert then == "no messages\n"
    assert queue.groups.lag(f"g-{filled}").total == 0
    assert queue.groups.describe(f"g-{filled}").members == []


@pytest.mark.usefixtures("quick_polls")
def test_what_could_not_be_printed_is_not_acknowledged(
    cli: CommandLine, queue: GoQueue, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(
            "goqueue.cli.messages.consume.show_rows", lambda *_, **__: (_ for _ in ()).throw(OSError("full"))
        )
        cli.ends(ExitCode.FAILED, "consume", filled, "--group", f"g-{filled}")

    assert queue.groups.lag(f"g-{filled}").total == 14


@pytest.mark.usefixtures("quick_polls")
def test_a_group_is_joined_the_way_its_members_share(cli: CommandLine, queue: GoQueue, filled: str) -> None:
    group = f"eager-{filled}"
    member_id = queue.carry(calls.join(group, client_id="worker", topics=[filled], mode="eager"))
    queue.carry(calls.leave(group, member_id))

    assert len(values(cli, filled, "--group", group, "-n", "50")) == 14


def test_a_group_is_moved_by_its_own_command(cli: CommandLine, filled: str) -> None:
    for words in (("--offset", "3"), ("--from-time", "1h"), ("-p", "1")):
        told = cli.ends(ExitCode.WRONG_COMMAND, "consume", filled, "--group", "g", *words)
        assert "reset-offsets" in told.stderr


def test_what_is_not_there_is_told(cli: CommandLine, filled: str) -> None:
    partition = cli.ends(ExitCode.NOT_FOUND, "consume", filled, "-p", "7")
    cli.ends(ExitCode.NOT_FOUND, "consume", "nowhere")
    twice = cli.ends(ExitCode.WRONG_COMMAND, "consume", filled, "--offset", "1", "--from-beginning")

    assert "has no partition 7" in partition.stderr
    assert "say once where to begin" in twice.stderr
