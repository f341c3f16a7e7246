"""`goqueue-cli produce`: one message, or the lines of a file or a pipe."""

from pathlib import Path

import msgspec
import pytest

from goqueue.cli.messages import lines as message_lines
from goqueue.cli.messages import produce
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.client import GoQueue, Message
from tests.unit.cli.command_line import CommandLine


def stored(queue: GoQueue, topic: str) -> list[Message]:
    return queue.read_page(topic, 0, limit=1_000).messages


def test_one_message_is_one_line(cli: CommandLine, queue: GoQueue, topic: str) -> None:
    words = ("-k", "a", "-p", "0", "--priority", "HIGH", "-H", "source=shop", "-H", "empty=", "--ttl", "1h")

    told = cli.printed("produce", topic, "-m", "hello", *words)

    [message] = stored(queue, topic)
    assert told == f"✓ {topic}/0 @0\n"
    assert (message.key, message.value, message.priority) == (b"a", b"hello", "high")
    assert (message.header("source"), message.header("empty")) == (b"shop", b"")
    assert cli.told(produce.Result, "produce", topic, "-m", "x") == produce.Result(0, 1, "normal")


def test_a_delayed_message_is_told_with_the_number_that_cancels_it(
    cli: CommandLine, queue: GoQueue, topic: str
) -> None:
    told = cli.printed("produce", topic, "-m", "later", "--delay", "1h30m")
    at = cli.told(produce.Result, "produce", topic, "-m", "x", "--deliver-at", "2100-01-31T12:00:00Z")

    [first, second] = queue.delayed.list(topic)
    assert told.startswith(f"✓ {topic}/0 number {first.offset}, due 20")
    assert at.delayed and at.offset == second.offset and at.deliver_at == second.deliver_at
    assert stored(queue, topic) == []


def test_lines_are_messages_in_json_or_plain_values(
    cli: CommandLine, queue: GoQueue, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(
        b"# a note\n"
        b'{"key": "k", "value": "v", "headers": {"h": "1"}, "priority": "low"}\n'
        b"\n"
        b"plain\r\n"
        b'{"id": 7, "value": "not alone"}\n'
        b'{"value": {"id": 8}}\n'
        b'{"value": "/wA=", "encoding": "base64"}\n'
        b'{"key": "gone", "value": null}\n'
        b"\xff last"
    )

    told = cli.printed("produce", topic, "-k", "common", "-f", str(path)).splitlines()

    messages = stored(queue, topic)
    assert [(message.key, message.value) for message in messages] == [
        (b"k", b"v"),
        (b"common", b"plain"),
        (b"common", b'{"id": 7, "value": "not alone"}'),
        (b"common", b'{"id": 8}'),
        (b"common", b"\xff\x00"),
        (b"gone", None),
        (b"common", b"\xff last"),
    ]
    assert (messages[0].header("h"), messages[0].priority) == (b"1", "low")
    assert told[0].split() == ["PARTITION", "OFFSET", "PRIORITY", "DELAYED", "ERROR"]
    assert told[1].split() == ["0", "0", "low", "-", "-"]
    assert told[-1].startswith(f"✓ 7 messages to {topic} in ")


@pytest.mark.parametrize("words", [(), ("-",), ("-f", "-")])
def test_standard_input_is_read_when_it_is_piped(
    cli: CommandLine, queue: GoQueue, topic: str, words: tuple[str, ...]
) -> None:
    told = cli.told(produce.Summary, "produce", topic, *words, given="one\ntwo\n")

    assert (told.topic, told.published, told.refused) == (topic, 2, 0)
    assert [result.offset for result in told.results] == [0, 1]
    assert [message.text for message in stored(queue, topic)] == ["one", "two"]


def test_raw_lines_are_values_whatever_they_look_like(cli: CommandLine, queue: GoQueue, topic: str) -> None:
    cli.printed("produce", topic, "--raw", given='# one\n\n{"value": "two"}\n')

    assert [message.text for message in stored(queue, topic)] == ["# one", "", '{"value": "two"}']


def test_messages_that_are_refused_leave_the_others_alone(cli: CommandLine, topic: str) -> None:
    lines = '{"value": "good"}\n{"value": "nowhere", "partition": 9}\n'

    some = cli.ends(ExitCode.PARTIAL, "produce", topic, given=lines)
    every = cli.ends(ExitCode.FAILED, "produce", topic, given=lines.splitlines()[1])
    single = cli.ends(ExitCode.NOT_FOUND, "produce", topic, "-m", "x", "-p", "9")

    assert "Error: refused: 1 message" in some.stderr
    assert "no partition 9" in some.stdout and "✓ 1 message to" in some.stdout
    assert "✓ 0 messages" in every.stdout
    assert single.stderr.startswith("Error: ")


def test_a_line_that_is_no_message_is_told_by_its_number(
    cli: CommandLine, queue: GoQueue, topic: str
) -> None:
    wrong = '{"value": "x", "partition": "one"}'

    one_chunk = cli.ends(ExitCode.FAILED, "produce", topic, given=f"good\n{wrong}\n")
    two_chunks = cli.ends(ExitCode.FAILED, "produce", topic, given='good\n{"value": "x", "delay": "soon"}')

    assert one_chunk.stderr.startswith("Error: line 2 is no message: ")
    assert two_chunks.stderr.startswith("published before it stopped: 1 message\nError: line 2 ")
    assert len(stored(queue, topic)) == 1


def test_of_very_many_messages_only_the_refused_are_listed(
    cli: CommandLine, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce, "RESULTS_MAX", 3)
    lines = "a\nb\n" + '{"value": "x", "partition": 9}\n' * 5 + "c\n"

    result = cli.ends(ExitCode.PARTIAL, "produce", topic, "-o", "json", given=lines)

    told = msgspec.json.decode(result.stdout, type=produce.Summary)
    assert (told.published, told.refused) == (3, 5)
    assert [row.partition for row in told.results] == [-1, -1, -1]


def test_long_input_goes_in_many_requests(
    cli: CommandLine, queue: GoQueue, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_lines, "CHUNK_BYTES", 10)
    monkeypatch.setattr(message_lines, "BATCH_COUNT", 2)
    lines = [f"{number}" for number in range(20)] + ["longer than a chunk of the input", "end"]

    cli.printed("produce", topic, given="\n".join(lines))

    assert [message.text for message in stored(queue, topic)] == lines


def test_it_must_be_plain_what_is_to_be_published(cli: CommandLine, topic: str, tmp_path: Path) -> None:
    both = cli.ends(ExitCode.WRONG_COMMAND, "produce", topic, "-", "-m", "x")
    missing = cli.ends(ExitCode.FAILED, "produce", topic, "-f", str(tmp_path / "missing"))
    nowhere = cli.ends(ExitCode.NOT_FOUND, "produce", "nowhere", given="x\n")

    assert "give one of" in both.stderr
    assert "No such file" in missing.stderr
    assert "topic create" in nowhere.stderr
    for words in (("-d", "soon"), ("--deliver-at", "soon"), ("-H", "name"), ("--priority", "urgent")):
        cli.ends(ExitCode.WRONG_COMMAND, "produce", topic, "-m", "x", *words)
