"""Events as they stand in journals: a name and its fields, in JSON.

What msgspec must know of a type is made ready when a codec is built, which is while modules are imported and
only one thread runs. Two threads that are the first to decode a type find it half made, and the process dies.
"""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from goqueue.model.messages import Message, StoredMessage
from goqueue.records.batch import LaneBatch, encode

E = TypeVar("E")
_named = msgspec.json.Decoder(tuple[str, msgspec.Raw])
_encoder = msgspec.json.Encoder()


class EventCodec(Generic[E]):
    """The events of one machine. Any thread may use it."""

    def __init__(self, event_types: Mapping[str, type[E]]) -> None:
        self._decoders = {name: msgspec.json.Decoder(kind) for name, kind in event_types.items()}

    def decode(self, data: bytes) -> E:
        name, fields = _named.decode(data)
        return self._decoders[name].decode(fields)

    def encode(self, event: E) -> bytes:
        return _encoder.encode([type(event).__name__, event])

    def encode_all(self, events: Sequence[E], *, now_ms: int) -> list[LaneBatch]:
        """Events as a journal takes them."""
        return encode([Message(self.encode(event)) for event in events], now_ms=now_ms)

    def decode_record(self, stored: StoredMessage) -> E:
        """The event in a record of a journal."""
        return self.decode(stored.value or b"")
