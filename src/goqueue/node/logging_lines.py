"""Log lines: `time level event key=value …`, one line an event, easy for people and for programs.

A room logs an event name and fields: `logger.info("topic_created", extra={"topic": name})`. Whatever a
caller puts into `extra` becomes a field. No value can break out of its line.
"""

import json
import logging
import re
import sys
import time

_PLAIN = re.compile(r"[^\s\"=]+")
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_CHATTY = ("uvicorn.error", "uvicorn.access", "asyncio")


class LogLines(logging.Formatter):
    """Renders a record as one line; a traceback follows on lines of its own, indented."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        words = [f"{seconds}.{int(record.msecs):03d}Z", record.levelname, _one_line(record.getMessage())]
        words += [
            f"{key}={rendered(value)}" for key, value in vars(record).items() if key not in _STANDARD_FIELDS
        ]
        line = " ".join(words)
        if record.exc_info:
            line += "\n    " + self.formatException(record.exc_info).replace("\n", "\n    ")
        return line


def rendered(value: object) -> str:
    """A field's value: as it is when it is a plain word, otherwise quoted and escaped."""
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.isprintable() else json.dumps(text, ensure_ascii=False)


def start_logging(level: int) -> None:
    """Send every room's log lines to standard error."""
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(LogLines())
    logging.basicConfig(level=level, handlers=[lines], force=True)
    for name in _CHATTY:
        # Libraries tell of each start and each request; the broker tells what matters of that itself.
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def _one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)
