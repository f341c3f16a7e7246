"""Log lines: one line an event, for people (`time level event key=value …`) or as JSON for programs.

A room logs an event name and fields: `log.info("topic_created topic=%s", name)`, or with the fields in
`extra`. Both lines are made from the same event: the words before the `=` are the fields' names, and their
values are taken as they were handed over, not out of a finished text. No value can break out of its line.
"""

import json
import logging
import re
import sys
import time
from functools import lru_cache
from typing import NamedTuple

_PLAIN = re.compile(r"[^\s\"=]+")
_TEMPLATE = re.compile(r"[a-z][a-z0-9_]*(?: [a-z][a-z0-9_]*=%[srd])*")
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_CHATTY = ("uvicorn.error", "uvicorn.access", "asyncio")
_PROSE = "message"


class Event(NamedTuple):
    """What a record tells: a name and fields. Prose, as libraries write it, is an event named `message`."""

    name: str
    fields: dict[str, object]


class TextLines(logging.Formatter):
    """One line for people; a traceback follows on lines of its own, indented."""

    def format(self, record: logging.LogRecord) -> str:
        name, fields = event_of(record)
        if name == _PROSE:
            name = _one_line(str(fields.pop(_PROSE)))
        words = [_time_of(record), record.levelname, name]
        words += [f"{key}={rendered(value)}" for key, value in fields.items()]
        line = " ".join(words)
        if record.exc_info:
            line += "\n    " + self.formatException(record.exc_info).replace("\n", "\n    ")
        return line


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger and event first, then the event's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        name, fields = event_of(record)
        line: dict[str, object] = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": name,
        }
        for key, value in fields.items():
            # What JSON has no word for is told as in a text line: orders/0 is no list.
            line.setdefault(key, value if isinstance(value, str | int | float | None) else str(value))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def event_of(record: logging.LogRecord) -> Event:
    """The name and the fields in a record, whichever way its writer gave them."""
    template = str(record.msg)
    names = _names_in(template)
    arguments = record.args if isinstance(record.args, tuple) else ()
    if names is not None and len(names) == len(arguments):
        name = template.partition(" ")[0]
        fields = dict(zip(names, arguments, strict=True))
    else:
        name, fields = _PROSE, {_PROSE: record.getMessage()}
    fields |= {key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS}
    return Event(name, fields)


def rendered(value: object) -> str:
    """A field's value: as it is when it is a plain word, otherwise quoted and escaped."""
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.isprintable() else json.dumps(text, ensure_ascii=False)


def start_logging(level: int, *, as_json: bool) -> None:
    """Send every room's log lines to standard error, and what libraries log or warn of."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(JsonLines() if as_json else TextLines())
    logging.basicConfig(level=level, handlers=[lines], force=True)
    logging.captureWarnings(True)
    for name in _CHATTY:
        # Libraries tell of each start and each request; the broker tells what matters of that itself.
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


@lru_cache(maxsize=512)
def _names_in(template: str) -> tuple[str, ...] | None:
    """The names of a template's fields; None when it is no event but prose."""
    if _TEMPLATE.fullmatch(template) is None:
        return None
    return tuple(word.partition("=")[0] for word in template.split(" ")[1:])


def _time_of(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def _one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)
