"""`goqueue-cli group`: who is in a group, how far it is, where it goes on."""

import pytest

from goqueue.cli.broker import group_lag
from goqueue.cli.broker.group_lag import PartitionLag, TotalLag
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.client import GoQueue, Outgoing
from goqueue.client.calls import queue as calls
from goqueue.client.calls.groups import Group, GroupSummary, OffsetsReset
from goqueue.client.calls.groups import PartitionLag as ToldLag
from tests.unit.cli.command_line import CommandLine


@pytest.fixture
def group(queue: GoQueue, topic: str) -> str:
    """A group that has read 3 of 10 messages, and has no members."""
    queue.publish_many(topic, [Outgoing(str(number)) for number in range(10)])
    queue.groups.commit_offsets(f"group-{topic}", {topic: {0: 3}})
    return f"group-{topic}"


def test_groups_are_listed_with_their_state(cli: CommandLine, group: str) -> None:
    rows = cli.rows("group", "list")

    assert " ".join(rows[0]) == "GROUP ID STATE KIND MEMBERS TOPICS"
    assert [group, "empty"] in [row[:2] for row in rows]
    assert group in [each.id for each in cli.told_alike(list[GroupSummary], "group", "list")]


def test_a_group_is_described_with_its_members(cli: CommandLine, queue: GoQueue, topic: str) -> None:
    member_id = queue.carry(calls.join("described", client_id="worker", topics=[topic]))

    lines = cli.printed("group", "describe", "described").splitlines()
    told = cli.told_alike(Group, "group", "describe", "described")
    queue.carry(calls.leave("described", member_id))

    assert lines[:2] == ["Group ID:   described", "State:      stable"]
    assert lines[-2].split() == ["MEMBER", "ID", "CLIENT", "ID", "HOST", "PARTITIONS", "LAST", "HEARTBEAT"]
    assert lines[-1].split()[:4] == [member_id, "worker", "127.0.0.1", f"{topic}/0"]
    assert told.members[0].client_id == "worker"


def test_a_group_may_have_no_members(cli: CommandLine, topic: str, group: str) -> None:
    lines = cli.printed("group", "describe", group).splitlines()

    assert lines[4] == f"Topics:     {topic}"
    assert lines[5].startswith("Lag:        7 messages, ")
    assert lines[-1] == "it has no members"


def test_offsets_tell_how_far_a_group_is(cli: CommandLine, topic: str, group: str) -> None:
    assert cli.rows("group", "offsets", group) == [
        ["TOPIC", "PARTITION", "OFFSET", "LAG"],
        [topic, "0", "3", "7"],
    ]
    [told] = cli.told(list[ToldLag], "group", "offsets", group, "--topic", topic)
    assert (told.offset, told.end_offset) == (3, 10)
    assert cli.told(list[ToldLag], "group", "offsets", group, "--topic", "another") == []


def test_lag_is_told_of_one_group_and_of_all(cli: CommandLine, topic: str, group: str) -> None:
    rows = cli.rows("group", "lag", group)
    [told] = cli.told(list[PartitionLag], "group", "lag", group)
    totals = cli.told(list[TotalLag], "group", "lag")

    assert rows[0] == ["TOPIC", "PARTITION", "OFFSET", "END", "LAG", "BEHIND", "HELD", "BACK", "BY"]
    assert rows[1][:5] == [topic, "0", "3", "10", "7"]
    assert (told.group_id, told.lag) == (group, 7)
    assert (group, 7) in [(each.group_id, each.lag) for each in totals]
    assert totals == sorted(totals, key=lambda each: (-each.lag, each.group_id))


def test_lag_is_watched_until_ctrl_c(
    cli: CommandLine, queue: GoQueue, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = group_lag._partitions
    looks = 0

    def look(queue: GoQueue, group: str) -> list[PartitionLag]:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise KeyboardInterrupt
        queue.publish(topic, "one more")
        return partitions(queue, group)

    monkeypatch.setattr(group_lag, "_partitions", look)
    monkeypatch.setattr("goqueue.cli.parts.live.time.sleep", lambda _: None)
    words = ("group", "lag", group, "--watch", "-n", "0.1", "-o", "json")

    lines = cli.printed(*words).splitlines()

    assert [line.count('"lag":8') + line.count('"lag":9') for line in lines] == [1, 1]


def test_offsets_are_set_where_they_are_asked_to_be(
    cli: CommandLine, queue: GoQueue, topic: str, group: str
) -> None:
    words = ("group", "reset-offsets", group, "--topic", topic)

    tried = cli.printed(*words, "--to-earliest", "--dry-run").splitlines()
    assert tried[0].split() == ["TOPIC", "PARTITION", "FROM", "TO"]
    assert tried[1].split() == [topic, "0", "3", "0"]
    assert "nothing was changed" in tried[2]
    assert queue.groups.offsets(group).offsets == {topic: {"0": 3}}

    for goal, offset in ((("--to-earliest",), 0), (("--to-latest",), 10), (("--to-timestamp", "1h"), 0)):
        assert cli.told(OffsetsReset, *words, *goal).partitions[0].new_offset == offset
    assert f"✓ set: 1 offset of {group}" in cli.printed(*words, "--to-offset", "6", "-p", "0")
    assert queue.groups.offsets(group).offsets == {topic: {"0": 6}}


def test_a_reset_says_where_to_once(cli: CommandLine, topic: str, group: str) -> None:
    words = ("group", "reset-offsets", group, "--topic", topic)

    for goal in ((), ("--to-earliest", "--to-latest"), ("--to-offset", "1"), ("--to-timestamp", "then")):
        assert cli.ends(ExitCode.WRONG_COMMAND, *words, *goal).stderr.startswith("Error: ")
    cli.ends(ExitCode.WRONG_COMMAND, "group", "reset-offsets", group, "--to-earliest")


def test_a_group_with_members_is_moved_by_force_alone(cli: CommandLine, queue: GoQueue, topic: str) -> None:
    member_id = queue.carry(calls.join("lively", client_id="worker", topics=[topic]))
    words = ("group", "reset-offsets", "lively", "--topic", topic, "--to-earliest")

    refused = cli.ends(ExitCode.FAILED, *words)
    cli.printed(*words, "--force")
    queue.carry(calls.leave("lively", member_id))

    assert "--force" in refused.stderr


def test_a_group_is_deleted_only_with_a_yes(cli: CommandLine, queue: GoQueue, group: str) -> None:
    cli.ends(ExitCode.WRONG_COMMAND, "group", "delete", group)
    assert cli.printed("group", "delete", group, "--force") == f"✓ group {group} is deleted\n"
    gone = cli.ends(ExitCode.NOT_FOUND, "group", "delete", group, "--force")

    assert "group list" in gone.stderr
    assert group not in [each.id for each in queue.groups.list()]
