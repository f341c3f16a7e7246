"""Log lines: one line an event, fields that cannot break out of it."""

import logging
import sys

from goqueue.node.logging_lines import LogLines


def line_of(event: str, **fields: object) -> str:
    record = logging.LogRecord("goqueue.test", logging.INFO, __file__, 1, event, None, None)
    record.created, record.msecs = 1_700_000_000.25, 250.0
    vars(record).update(fields)
    return LogLines().format(record)


def test_a_line_is_time_level_event_and_fields() -> None:
    assert line_of("topic_created", topic="orders", partitions=3) == (
        "2023-11-14T22:13:20.250Z INFO topic_created topic=orders partitions=3"
    )


def test_a_value_with_spaces_or_quotes_is_quoted() -> None:
    assert line_of("refused", why='said "no"').endswith(r'refused why="said \"no\""')


def test_no_value_can_start_a_line_of_its_own() -> None:
    line = line_of("closed\nforged", peer="a\nb", other="c\x1b[2J")

    assert "\n" not in line
    assert "\x1b" not in line
    assert line.endswith(r'"closed\nforged" peer="a\nb" other="c\u001b[2J"')


def test_a_traceback_follows_on_indented_lines() -> None:
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        record = logging.LogRecord("t", logging.ERROR, __file__, 1, "failed", None, sys.exc_info())

    first, *rest = LogLines().format(record).splitlines()

    assert first.endswith("ERROR failed")
    assert rest[-1] == "    RuntimeError: broken"
    assert all(line.startswith("    ") for line in rest)
