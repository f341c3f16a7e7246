"""Errors about batches, messages and where they lie."""

from collections.abc import Mapping

from goqueue.model.errors.families import Invalid, NotFound, Unavailable


class InvalidBatch(Invalid):
    """A record batch whose length or shape is wrong."""

    code = "invalid_batch"


class WrongChecksum(InvalidBatch):
    """A record batch whose bytes do not match its CRC-32C."""

    code = "wrong_checksum"


class UnsupportedFormat(InvalidBatch):
    """A record batch of a format other than v2."""

    code = "unsupported_format"


class InvalidTimestamp(InvalidBatch):
    """A time that is no time in milliseconds (over 292 years from 1970), or beyond the topic's bounds."""

    code = "invalid_timestamp"

    def __init__(self, text: str, problems: Mapping[int, str] | None = None) -> None:
        super().__init__(text)
        self.problems = problems or {}
        """What is wrong with messages, by their places among those that were given."""


class InvalidRecord(InvalidBatch):
    """A record inside a batch that asks for something impossible."""

    code = "invalid_record"

    def __init__(self, text: str, *, record_index: int = 0) -> None:
        super().__init__(text)
        self.record_index = record_index


class KeyRequired(InvalidRecord):
    """A message without a key for a topic that is compacted by keys."""

    code = "key_required"

    def __init__(self, topic: str = "", *, record_index: int = 0) -> None:
        name = f"topic {topic}" if topic else "the topic"
        super().__init__(f"{name} is compacted: each of its messages needs a key", record_index=record_index)


class MessageTooLarge(Invalid):
    """A message, or a batch of them, above the topic's limit."""

    code = "message_too_large"


class OffsetOutOfRange(Invalid):
    """The offset lies before the log's start or after its end."""

    code = "offset_out_of_range"

    def __init__(self, offset: int, *, start_offset: int, end_offset: int) -> None:
        super().__init__(f"offset {offset} is outside {start_offset}..{end_offset}")
        self.offset = offset
        self.start_offset = start_offset
        self.end_offset = end_offset


class MessageNotFound(NotFound):
    """There is no message at that offset: not any more, not yet, or it was never one."""

    code = "message_not_found"

    def __init__(self, topic: str, partition: int, offset: int, why: str) -> None:
        super().__init__(f"{topic}/{partition} has no message at offset {offset}: {why}")
        self.topic = topic
        self.partition = partition
        self.offset = offset


class TraceNotFound(NotFound):
    """No message that can be found has that trace id."""

    code = "trace_not_found"

    def __init__(self, trace_id: str) -> None:
        super().__init__(
            f"no trace {trace_id} was found: its messages are gone, or a producer made the id "
            "and they were published too long ago to be looked for"
        )
        self.trace_id = trace_id


class OffsetNotAvailable(Unavailable):
    """A new leader does not know yet how far messages count: try again in a moment."""

    code = "offset_not_available"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"the leader of {topic}/{partition} is new and does not know its commit mark yet")
        self.topic = topic
        self.partition = partition
