"""Log lines: one line an event, for people or as JSON, and fields that cannot break out of it."""

import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from goqueue.model.ids import TopicName, TopicPartition
from goqueue.node.logging_lines import JsonLines, TextLines, start_logging


def record_of(event: str, *arguments: object, **fields: object) -> logging.LogRecord:
    record = logging.LogRecord("goqueue.test", logging.INFO, __file__, 1, event, arguments, None)
    record.created, record.msecs = 1_700_000_000.25, 250.0
    vars(record).update(fields)
    return record


def line_of(event: str, *arguments: object, **fields: object) -> str:
    return TextLines().format(record_of(event, *arguments, **fields))


def object_of(event: str, *arguments: object, **fields: object) -> dict[str, Any]:
    line = JsonLines().format(record_of(event, *arguments, **fields))
    assert "\n" not in line
    return dict(json.loads(line))


def failed_record() -> logging.LogRecord:
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        return logging.LogRecord("t", logging.ERROR, __file__, 1, "failed", None, sys.exc_info())


def test_a_line_is_time_level_event_and_fields() -> None:
    assert line_of("topic_created", topic="orders", partitions=3) == (
        "2023-11-14T22:13:20.250Z INFO topic_created topic=orders partitions=3"
    )


def test_an_event_reads_the_same_whichever_way_its_fields_are_given() -> None:
    assert line_of("topic_created topic=%s partitions=%d", "orders", 3) == line_of(
        "topic_created", topic="orders", partitions=3
    )


def test_a_value_with_spaces_or_quotes_is_quoted() -> None:
    assert line_of("refused", why='said "no"').endswith(r'refused why="said \"no\""')
    assert line_of("refused why=%s", "no room").endswith('refused why="no room"')


def test_no_value_can_start_a_line_of_its_own() -> None:
    line = line_of("closed\nforged", peer="a\nb", other="c\x1b[2J")

    assert "\n" not in line
    assert "\x1b" not in line
    assert line.endswith(r'"closed\nforged" peer="a\nb" other="c\u001b[2J"')


def test_no_value_can_pretend_to_be_another_field() -> None:
    assert line_of("closed peer=%s by=%s", "a by=root", "b").endswith('closed peer="a by=root" by=b')


def test_a_traceback_follows_on_indented_lines() -> None:
    first, *rest = TextLines().format(failed_record()).splitlines()

    assert first.endswith("ERROR failed")
    assert rest[-1] == "    RuntimeError: broken"
    assert all(line.startswith("    ") for line in rest)


def test_json_has_the_same_event_with_its_values_as_they_are() -> None:
    assert object_of("retention partition=%s segments=%d", "orders/0", 3, request_id="a b") == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "goqueue.test",
        "event": "retention",
        "partition": "orders/0",
        "segments": 3,
        "request_id": "a b",
    }


def test_json_turns_what_it_does_not_know_into_text() -> None:
    assert object_of("stopped reason=%s", OSError(28, "full"))["reason"] == "[Errno 28] full"
    assert object_of("stopped at=%s", TopicPartition(TopicName("orders"), 0))["at"] == "orders/0"


def test_json_keeps_a_traceback_within_its_line() -> None:
    line = JsonLines().format(failed_record())

    assert "\n" not in line
    assert json.loads(line)["traceback"].endswith("RuntimeError: broken")


def test_no_field_takes_the_place_of_time_level_or_logger() -> None:
    told = object_of("closed", time="never", logger="other", level="none")

    assert (told["logger"], told["level"], told["time"][:4]) == ("goqueue.test", "info", "2023")


@pytest.mark.parametrize(
    ("event", "arguments"),
    [("Exception in ASGI application\n", ()), ("took %d of %d", (1, 2)), ("a_word and=%s more", ("b",))],
)
def test_prose_of_a_library_stays_prose(event: str, arguments: tuple[object, ...]) -> None:
    told = object_of(event, *arguments)

    assert (told["event"], told["message"]) == ("message", event % arguments)


@pytest.fixture
def root_logging() -> Iterator[None]:
    """The root logger as it was, afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    chatty = {name: logging.getLogger(name).level for name in ("uvicorn.error", "uvicorn.access", "asyncio")}
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, own_level in chatty.items():
        logging.getLogger(name).setLevel(own_level)


@pytest.mark.usefixtures("root_logging")
def test_libraries_write_in_the_same_format_and_only_what_matters(
    capfd: pytest.CaptureFixture[str],
) -> None:
    start_logging(logging.INFO, as_json=True)

    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("asyncio").error("Task was destroyed but it is pending!")
    logging.getLogger("goqueue.x").info("stopping")

    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["logger"], line["event"]) for line in lines] == [
        ("asyncio", "message"),
        ("goqueue.x", "stopping"),
    ]
