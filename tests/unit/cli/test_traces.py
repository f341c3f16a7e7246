"""`goqueue-cli trace`: the story of a message as a time line."""

from datetime import UTC, datetime, timedelta

from goqueue.cli.messages.trace_view import StageRow, stage_rows
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.client import GoQueue
from goqueue.client.calls import queue as calls
from goqueue.client.calls.traces import Span, Trace, TraceStats, TraceSummary
from goqueue.model.telemetry import Fact
from tests.unit.cli.command_line import CommandLine

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_the_story_of_a_message_is_told_from_publish_to_ack(
    cli: CommandLine, queue: GoQueue, topic: str
) -> None:
    queue.publish(topic, "hello", key="k")
    group = f"readers-{topic}"
    member_id = queue.carry(calls.join(group, client_id="worker", topics=[topic]))
    [polled] = queue.carry(calls.poll(group, member_id))
    queue.carry(calls.ack([polled.receipt]))
    queue.carry(calls.leave(group, member_id))

    lines = cli.printed("trace", f"{topic}/0/0").splitlines()
    told = cli.told_alike(Trace, "trace", f"{topic}/0/0")

    assert lines[0] == f"Trace ID: {told.trace_id}"
    assert lines[1:3] == [f"Message:  {topic}/0/0", "Status:   completed"]
    assert lines[6].split() == ["TIMESTAMP", "AFTER", "TYPE", "GROUP", "DETAILS"]
    types = [line.split()[3] for line in lines[7:]]
    assert types[0].startswith("publish.") and types[-1] == "consume.acked"
    assert {group} == {line.split()[4] for line in lines[7:] if " consume." in line}
    assert cli.printed("trace", "get", told.trace_id).splitlines() == lines


def test_stories_are_listed_found_and_counted(cli: CommandLine, queue: GoQueue, topic: str) -> None:
    queue.publish(topic, "hello")
    headings = "TRACE ID TOPIC PARTITION OFFSET STATUS DURATION"

    rows = cli.rows("trace", "search", "--topic", topic, "--start", "1h", "--partition", "0")
    [found] = cli.told_alike(list[TraceSummary], "trace", "search", "--topic", topic)

    assert " ".join(rows[0]) == headings and rows[1][:4] == [found.trace_id, topic, "0", "0"]
    assert found.trace_id in [row[0] for row in cli.rows("trace", "list")]
    assert len(cli.told(list[TraceSummary], "trace", "list", "-n", "1")) == 1
    assert (
        cli.told(list[TraceSummary], "trace", "search", "--topic", topic, "--end", "1h", "--start", "2h")
        == []
    )
    assert cli.told(TraceStats, "trace", "stats").by_topic[topic] == 1
    assert cli.printed("trace", "stats").startswith("Enabled:       yes\n")


def test_a_message_that_never_came_to_a_place_has_no_offset_and_a_short_story_its_length(
    cli: CommandLine, queue: GoQueue, topic: str
) -> None:
    later = queue.publish(topic, "later", delay=3600)
    queue.publish(topic, "now")
    queue.delayed.cancel(topic, later.partition, later.offset)

    _, *rows = cli.rows("trace", "search", "--topic", topic)

    assert [row[3] for row in rows] == ["-", "0"] and rows[0][4] == "completed"
    assert all(float(row[5]) > 0 for row in rows), "less than a millisecond is not nothing"


def test_the_stages_of_a_dead_letter_say_which_message_they_are_of(
    cli: CommandLine, queue: GoQueue, topic: str
) -> None:
    queue.publish(topic, "bad")
    with queue.consumer(topic, group=f"readers-{topic}") as consumer:
        [delivered] = consumer.poll(limit=1, wait=5)
        delivered.reject("broken")

    lines = cli.printed("trace", f"{topic}/0/0").splitlines()

    stored = [line for line in lines if "publish.partitioned" in line]
    assert [f"message={topic}.dlq/0/0" in line for line in stored] == [False, True]


def test_what_has_no_story_is_told(cli: CommandLine, topic: str) -> None:
    missing = cli.ends(ExitCode.NOT_FOUND, "trace", f"{topic}/0/7")
    cli.ends(ExitCode.NOT_FOUND, "trace", "nowhere/0/0")
    cli.ends(ExitCode.NOT_FOUND, "trace", "get", "0" * 32)
    misplaced = cli.ends(ExitCode.WRONG_COMMAND, "trace", "orders/first/7")
    misspelt = cli.ends(ExitCode.WRONG_COMMAND, "trace", "get", "7")

    assert missing.stderr.startswith("Error: ")
    assert "TOPIC/PARTITION/OFFSET" in misplaced.stderr
    assert "32 hexadecimal digits" in misspelt.stderr


def test_a_time_line_is_in_order_and_says_how_it_is_known() -> None:
    def span(kind: str, after_ms: int, **facts: Fact) -> Span:
        at = NOON + timedelta(milliseconds=after_ms)
        return Span("0" * 16, kind, at, "orders", 0, 7, attributes={"source": "ring", **facts})

    failed = Span(
        "1" * 16,
        "consume.nacked",
        NOON + timedelta(milliseconds=1_500),
        "orders",
        0,
        7,
        consumer_group="workers",
        consumer_id="w-1",
        duration_ns=2_500_000,
        error="no such customer",
    )
    spans = [
        failed,
        span("publish.received", 0, source="log"),
        span("due", 4, due_ms=1_769_860_800_000, run=3),
    ]
    trace = Trace("a" * 32, "orders", 0, 7, NOON, NOON, 0, 0, "pending", "retrying", 3, spans=spans)

    first, due, nacked = stage_rows(trace)

    assert first == StageRow(NOON, "0.00 ms", "publish.received", "", "(from the log)")
    assert (due.after, due.details) == ("4.00 ms", "due=2026-01-31T12:00:00.000Z, run=3")
    assert nacked.group == "workers"
    assert nacked.details == "consumer=w-1, took 2.50 ms, error: no such customer"
