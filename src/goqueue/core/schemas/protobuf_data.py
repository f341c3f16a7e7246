"""Whether bytes are a message of a Protobuf file."""

from collections.abc import Iterable, Sequence

import msgspec
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from goqueue.core.schemas.limits import TooMuch
from goqueue.core.schemas.wire_format import place_text

_files = msgspec.msgpack.Decoder(list[bytes])
_EXPLAINED_PART = 50


PROTOBUF_NS = 40
"""What a byte of data may take to check: the library is quick, but two bytes may be a message."""


def linked(form: bytes) -> FileDescriptor:
    """The last of some files, linked with those before it."""
    pool = DescriptorPool()
    files = [descriptor_pb2.FileDescriptorProto.FromString(each) for each in _files.decode(form)]
    for file in files:
        pool.Add(file)
    return pool.FindFileByName(files[-1].name)


class ProtobufJudge:
    """Of one message type, and of no more than `bytes_max` bytes at a time."""

    def __init__(self, file: FileDescriptor, indexes: Sequence[int], bytes_max: int) -> None:
        descriptor = message_at(file, indexes)
        assert descriptor is not None, "the schema has this message"
        self._name = descriptor.full_name
        self._parse = GetMessageClass(descriptor).FromString
        self._bytes_max = bytes_max

    def misfit(self, payload: bytes) -> str | None:
        """Why bytes are not such a message, and where; None when they are.

        A field that the type does not have would be kept by any parser. Here it is a misfit: whoever wrote
        it did not use this schema, or has put a field of another type under the number.
        """
        if len(payload) > self._bytes_max:
            raise TooMuch
        try:
            message = self._parse(payload)
        except DecodeError as error:
            return f"#/: it is no {self._name}: {error}"
        is_whole = message.IsInitialized()
        if is_whole:
            whole_bytes = message.ByteSize()
            message.DiscardUnknownFields()
            if message.ByteSize() == whole_bytes:
                return None
        # To say where takes many times as long as to see that something is wrong.
        if len(payload) > self._bytes_max // _EXPLAINED_PART:
            raise TooMuch
        if not is_whole:
            missing = message.FindInitializationErrors()  # type: ignore[attr-defined]  # the stubs leave it out
            return f"#/{missing[0]}: a required field is missing"
        return _unknown_in(self._parse(payload), "#")


def record_names(file: FileDescriptor) -> dict[str, str | None]:
    """The messages of a file by their places."""
    found: dict[str, str | None] = {}
    waiting: list[tuple[tuple[int, ...], Descriptor]] = [
        ((n,), each) for n, each in enumerate(file.message_types_by_name.values())
    ]
    while waiting:
        place, message = waiting.pop()
        found[place_text(place)] = message.full_name
        waiting += [((*place, n), each) for n, each in enumerate(message.nested_types)]
    return found


def message_at(file: FileDescriptor, indexes: Sequence[int]) -> Descriptor | None:
    """A message type by its place in the file, and from there inwards."""
    found: Descriptor | None = None
    for index in indexes:
        among = list(file.message_types_by_name.values()) if found is None else found.nested_types
        if index >= len(among):
            return None
        found = among[index]
    return found


def _unknown_in(message: Message, path: str) -> str | None:
    if unknown := UnknownFieldSet(message):
        return f"{path}/{unknown[0].field_number}: the schema has no field of this number and wire type"
    for field, value in message.ListFields():
        if field.type in (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP):
            for part in _parts(field, value):
                if found := _unknown_in(part, f"{path}/{field.name}"):
                    return found
    return None


def _parts(field: FieldDescriptor, value: object) -> Iterable[Message]:
    """The messages in a field, which may be one, a list of them or a map to them."""
    if isinstance(value, Message):
        return [value]
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        assert hasattr(value, "values"), "a field of entries is a map"
        return [part for part in value.values() if isinstance(part, Message)]
    assert isinstance(value, Iterable), "a field of messages is one or many"
    return value
