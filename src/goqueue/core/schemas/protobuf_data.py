"""Whether bytes are a message of a Protobuf file."""

from collections.abc import Iterable, Sequence

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet


class ProtobufMessage:
    """One message type."""

    def __init__(self, descriptor: Descriptor) -> None:
        self.record_name: str | None = descriptor.full_name
        self._parse = GetMessageClass(descriptor).FromString

    def misfit(self, payload: bytes) -> str | None:
        """Why bytes are not such a message, and where; None when they are.

        A field that the type does not have would be kept by any parser. Here it is a misfit: whoever wrote
        it did not use this schema, or has put a field of another type under the number.
        """
        try:
            message = self._parse(payload)
        except DecodeError as error:
            return f"#/: it is no {self.record_name}: {error}"
        if not message.IsInitialized():
            missing = message.FindInitializationErrors()  # type: ignore[attr-defined]  # the stubs leave it out
            return f"#/{missing[0]}: a required field is missing"
        whole_bytes = message.ByteSize()
        message.DiscardUnknownFields()
        # Looking for them takes several times as long: that is done when it is known that there are some.
        return _unknown_in(self._parse(payload), "#") if message.ByteSize() != whole_bytes else None


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
