"""`goqueue-cli delay` and `schedule`: messages that wait, and messages that come again and again."""

from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.client import GoQueue
from goqueue.client.calls.delayed import Delayed, DelayStats
from goqueue.client.calls.schedules import Schedule
from tests.unit.cli.command_line import CommandLine


def test_what_waits_is_listed_shown_moved_and_cancelled(cli: CommandLine, queue: GoQueue, topic: str) -> None:
    first = queue.publish(topic, "soon", delay=3_600).offset
    second = queue.publish(topic, "late", delay=7_200, priority="low").offset

    rows = cli.rows("delay", "list", topic)
    assert rows[0] == ["PARTITION", "NUMBER", "DELIVER", "AT", "IN", "PRIORITY"]
    assert [row[1] for row in rows[1:]] == [str(first), str(second)]
    assert [each.offset for each in cli.told(list[Delayed], "delay", "list", topic, "--skip", "1")] == [
        second
    ]

    shown = cli.printed("delay", "get", topic, str(second)).splitlines()
    assert shown[2] == f"Number:     {second}" and shown[5] == "Priority:   low"

    moved = cli.told(Delayed, "delay", "move", topic, str(first), "--deliver-at", "2100-01-01T00:00:00Z")
    assert moved.deliver_at.year == 2100
    assert "Number:" in cli.printed("delay", "move", topic, str(first), "-d", "2h")

    told = cli.printed("delay", "cancel", topic, str(first))
    assert told.startswith("✓ number ") and told.endswith("is cancelled\n")
    [cancelled] = cli.told(list[Delayed], "delay", "cancel", topic, str(second))
    assert (cancelled.offset, cancelled.state) == (second, "cancelled")
    assert cli.printed("delay", "list", topic) == f"nothing waits for {topic}\n"


def test_what_does_not_wait_is_told(cli: CommandLine, topic: str) -> None:
    gone = cli.ends(ExitCode.NOT_FOUND, "delay", "cancel", topic, "99999")
    cli.ends(ExitCode.NOT_FOUND, "delay", "list", "nowhere")
    cli.ends(ExitCode.WRONG_COMMAND, "delay", "move", topic, "1")

    assert "delay list" in gone.stderr


def test_delays_are_counted(cli: CommandLine, queue: GoQueue, topic: str) -> None:
    queue.publish(topic, "later", delay=3_600)

    assert cli.told(DelayStats, "delay", "stats").by_topic[topic] == 1
    assert cli.printed("delay", "stats").startswith("Pending:         ")


def test_a_schedule_is_made_paused_resumed_and_deleted(cli: CommandLine, topic: str) -> None:
    words = ("--cron", "0 9 * * MON-FRI", "--time-zone", "Europe/Vienna", "-m", "wake up", "-k", "k")

    told = cli.printed("schedule", "create", topic, "--name", "morning", *words, "-H", "a=b")
    made = cli.told(Schedule, "schedule", "create", topic, *words)

    assert told.startswith(f"✓ schedule morning of {topic} is there; its next time is 20")
    assert made.message.value == "wake up"
    rows = cli.rows("schedule", "list", topic)
    assert rows[0] == ["NAME", "CRON", "TIME", "ZONE", "STATE", "NEXT", "LAST", "FIRED"]
    assert "morning" in [row[0] for row in rows]

    assert cli.told(Schedule, "schedule", "pause", topic, "morning").state == "paused"
    assert cli.told_alike(Schedule, "schedule", "get", topic, "morning").state == "paused"
    assert cli.printed("schedule", "resume", topic, "morning").endswith("goes on\n")
    assert "State:     active" in cli.printed("schedule", "get", topic, "morning")

    cli.ends(ExitCode.WRONG_COMMAND, "schedule", "delete", topic, "morning")
    cli.printed("schedule", "delete", topic, "morning", "-f")
    missing = cli.ends(ExitCode.NOT_FOUND, "schedule", "get", topic, "morning")
    assert "schedule list" in missing.stderr


def test_a_cron_expression_that_means_nothing_is_refused(cli: CommandLine, topic: str) -> None:
    told = cli.ends(ExitCode.FAILED, "schedule", "create", topic, "--cron", "often", "-m", "x")

    assert told.stderr.startswith("Error: ")
    assert cli.printed("schedule", "list", topic) == f"{topic} has no schedule\n"
