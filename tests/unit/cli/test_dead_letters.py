"""`goqueue-cli dlq`: dead letters are seen, chosen, and sent back."""

import pytest

from goqueue.cli.messages import dead_letters
from goqueue.cli.messages.dead_letters import LetterRow, RedriveSummary
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.client import GoQueue, Outgoing
from goqueue.client.calls import queue as calls
from tests.unit.cli.command_line import CommandLine


@pytest.fixture
def letters(queue: GoQueue, topic: str) -> str:
    """A topic of two partitions with five dead letters: 0 to 2 in the first, 3 and 4 in the second."""
    queue.topics.add_partitions(topic, 2)
    queue.publish_many(topic, [Outgoing(str(n), key=f"k{n}", partition=n // 3) for n in range(5)])
    member_id = queue.carry(calls.join("undertakers", client_id="worker", topics=[topic], mode="shared"))
    polled = queue.carry(calls.poll("undertakers", member_id, limit=5))
    queue.carry(calls.reject([each.receipt for each in polled], reason="no such customer"))
    queue.carry(calls.leave("undertakers", member_id))
    return topic


def test_dead_letters_are_listed_with_their_story(cli: CommandLine, letters: str) -> None:
    lines = cli.printed("dlq", "list", letters).splitlines()
    told = cli.told_alike(list[LetterRow], "dlq", "list", letters)

    assert lines[0].split()[:2] == ["PARTITION", "OFFSET"]
    assert "no such customer" in lines[1] and "undertakers" in lines[1]
    assert [row.value for row in told] == ["0", "1", "2", "3", "4"]
    assert (told[3].reason, told[3].key, told[3].original_partition) == ("REJECTED", "k3", 1)


def test_a_list_is_narrowed_and_goes_on_behind_a_page(
    cli: CommandLine, letters: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "PAGE_COUNT", 2)

    def listed(*words: str) -> list[str | None]:
        return [row.value for row in cli.told(list[LetterRow], "dlq", "list", letters, *words)]

    assert listed() == ["0", "1", "2", "3", "4"]
    assert listed("-n", "3") == ["0", "1", "2"]
    assert listed("-p", "1") == ["3", "4"]
    assert listed("--reason", "TTL_EXPIRED") == listed("--group", "others") == listed("--until", "1h") == []
    assert len(listed("--reason", "REJECTED", "--group", "undertakers", "--since", "1h")) == 5


def test_a_dry_run_only_counts(cli: CommandLine, queue: GoQueue, letters: str) -> None:
    told = cli.printed("dlq", "redrive", letters, "--key", "k1", "--dry-run")
    counted = cli.told(RedriveSummary, "dlq", "redrive", letters, "--dry-run")

    assert told.startswith(f"would be sent back: 1 dead letter of {letters};")
    assert (counted.matched, counted.redriven, counted.dry_run) == (5, 0, True)
    assert len(queue.dead_letters.list(letters).letters) == 5


def test_dead_letters_are_sent_back_step_by_step(
    cli: CommandLine, queue: GoQueue, letters: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "STEP_COUNT", 1)

    assert cli.printed("dlq", "redrive", letters, "-k", "k4") == f"✓ sent back: 1 dead letter of {letters}\n"
    assert cli.told(RedriveSummary, "dlq", "redrive", letters, "--reason", "ttl_expired").redriven == 0
    assert cli.told(RedriveSummary, "dlq", "redrive", letters, "-n", "3").redriven == 3
    assert cli.told(RedriveSummary, "dlq", "redrive", letters, "--rate", "100").redriven == 1
    assert cli.printed("dlq", "list", letters) == "there are no dead letters\n"
    assert [message.text for message in queue.read_page(letters, 1).messages] == ["3", "4", "4", "3"]


def test_a_topic_that_is_not_there_has_no_dead_letters(cli: CommandLine) -> None:
    cli.ends(ExitCode.NOT_FOUND, "dlq", "list", "nowhere")
    cli.ends(ExitCode.NOT_FOUND, "dlq", "redrive", "nowhere")
    cli.ends(ExitCode.WRONG_COMMAND, "dlq", "redrive", "nowhere", "--rate", "0")
    cli.ends(ExitCode.WRONG_COMMAND, "dlq", "list", "nowhere", "--reason", "boredom")
