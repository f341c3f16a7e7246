"""`goqueue-cli topic`: what it does at the broker, and how it tells it."""

from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.client import GoQueue
from goqueue.client.calls.topics import PartitionsAdded, Topic, TopicCreated
from tests.unit.cli.command_line import CommandLine


def test_a_topic_is_made_with_partitions_retention_and_settings(cli: CommandLine, queue: GoQueue) -> None:
    told = cli.printed("topic", "create", "t-made", "-p", "2", "-r", "24", "--set", "goqueue.retries.max=5")

    made = queue.topics.describe("t-made")
    assert told == "✓ topic t-made is there, with 2 partitions\n"
    assert (made.partitions, made.settings["retention.ms"]) == (2, "86400000")
    assert made.settings["goqueue.retries.max"] == "5"
    assert cli.told(TopicCreated, "topic", "create", "t-json").partitions == 3


def test_topics_are_listed_by_name(cli: CommandLine, queue: GoQueue) -> None:
    for name in ("t-listed-b", "t-listed-a"):
        queue.topics.create(name, partitions=1)

    rows = cli.rows("topic", "list")
    assert rows[0] == ["NAME"]
    assert [row for row in rows if row[0].startswith("t-listed")] == [["t-listed-a"], ["t-listed-b"]]
    assert {"name": "t-listed-a"} in cli.told_alike(list[dict[str, str]], "topic", "list")


def test_a_topic_is_described_with_its_offsets_and_sizes(cli: CommandLine, queue: GoQueue) -> None:
    queue.topics.create("t-described", partitions=2)
    for _ in range(3):
        queue.publish("t-described", b"x" * 1_000, partition=1)

    lines = cli.printed("topic", "describe", "t-described").splitlines()
    told = cli.told_alike(Topic, "topic", "describe", "t-described")

    assert lines[:3] == ["Name:           t-described", "Partitions:     2", "Total Messages: 3"]
    assert lines[3].startswith("Total Size:     3.") and lines[3].endswith(" KB")
    assert lines[6:9] == ["PARTITION  EARLIEST  LATEST", "0          0         -1", "1          0         2"]
    assert (told.name, told.total_messages, told.partition_offsets["1"].latest) == ("t-described", 3, 2)


def test_a_topic_is_deleted_only_with_a_yes(cli: CommandLine, queue: GoQueue) -> None:
    queue.topics.create("t-deleted", partitions=1)

    unsure = cli.ends(ExitCode.WRONG_COMMAND, "topic", "delete", "t-deleted")
    assert "say --force" in unsure.stderr
    assert "t-deleted" in queue.topics.list()

    assert cli.printed("topic", "delete", "t-deleted", "-f") == "✓ topic t-deleted is deleted\n"
    assert "t-deleted" not in queue.topics.list()


def test_what_was_done_is_told_to_programs_too(cli: CommandLine, queue: GoQueue, topic: str) -> None:
    told = cli.told(dict[str, object], "topic", "delete", topic, "--force")

    assert told == {"name": topic, "deleted": True}


def test_settings_of_a_topic_are_changed_and_brought_back(cli: CommandLine, queue: GoQueue) -> None:
    queue.topics.create("t-altered", partitions=1)

    told = cli.printed("topic", "alter", "t-altered", "--set", "retention.ms=60000", "--set", "flush.ms=5")
    changed = queue.topics.describe("t-altered").settings
    cli.printed("topic", "alter", "t-altered", "--reset", "retention.ms", "--reset", "flush.ms")

    assert told == "✓ topic t-altered has retention.ms=60000, flush.ms=5\n"
    assert (changed["retention.ms"], changed["flush.ms"]) == ("60000", "5")
    assert queue.topics.describe("t-altered").settings["retention.ms"] == "604800000"
    assert "--set" in cli.ends(ExitCode.WRONG_COMMAND, "topic", "alter", "t-altered").stderr


def test_a_topic_gets_more_partitions_and_never_fewer(cli: CommandLine, queue: GoQueue) -> None:
    queue.topics.create("t-grown", partitions=1)

    told = cli.printed("topic", "add-partitions", "t-grown", "-p", "3")
    refused = cli.ends(ExitCode.FAILED, "topic", "add-partitions", "t-grown", "-p", "2")
    more = cli.told(PartitionsAdded, "topic", "add-partitions", "t-grown", "-p", "4")

    assert told == "✓ topic t-grown has 3 partitions; it had 1\n"
    assert refused.stderr.startswith("Error: ")
    assert (more.old_partition_count, more.partitions_added) == (3, [3])


def test_what_is_wrong_with_a_topic_is_told_with_what_to_do(cli: CommandLine, queue: GoQueue) -> None:
    queue.topics.create("t-twice", partitions=1)

    missing = cli.ends(ExitCode.NOT_FOUND, "topic", "describe", "t-nowhere")
    twice = cli.ends(ExitCode.FAILED, "topic", "create", "t-twice")
    misnamed = cli.ends(ExitCode.FAILED, "topic", "create", "no/slash")
    unset = cli.ends(ExitCode.WRONG_COMMAND, "topic", "create", "t-unset", "--set", "retention.ms")

    assert "topic list" in missing.stderr
    assert twice.stderr.startswith("Error: ") and "t-twice" in twice.stderr
    assert misnamed.stderr.startswith("Error: ")
    assert "NAME=VALUE" in unset.stderr
