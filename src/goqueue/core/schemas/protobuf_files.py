"""Protobuf: from a .proto text, or a descriptor in base64, to a real file descriptor.

Clients register either form. The text is parsed by a library; what it means (which name is which
type, whether numbers clash) is checked by protobuf's own pool of descriptors.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from importlib import import_module

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from goqueue.core.schemas.protobuf_data import ProtobufMessage, message_at
from goqueue.core.schemas.protobuf_texts import read_text
from goqueue.model.errors import InvalidSchema
from goqueue.model.schemas import SchemaKind

_WELL_KNOWN = ("any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct",
               "timestamp", "type", "wrappers")  # fmt: skip


class ProtobufFile:
    """A file descriptor with those it imports, by the names it imports them under."""

    kind = SchemaKind.PROTOBUF

    def __init__(
        self, proto: descriptor_pb2.FileDescriptorProto, others: str, imports: Mapping[str, "ProtobufFile"]
    ) -> None:
        self.proto = proto
        self._others = others
        """What a text said beyond that: options of people's own."""
        self._imports = imports
        self.descriptor = _link(proto, self._closure())
        self._messages: dict[tuple[int, ...], ProtobufMessage] = {}

    def message(self, indexes: tuple[int, ...]) -> ProtobufMessage | None:
        """A message type by its place in the file, and from there inwards; None when there is none."""
        found = self._messages.get(indexes)
        if found is None:
            descriptor = message_at(self.descriptor, indexes)
            if descriptor is None:
                return None
            found = self._messages[indexes] = ProtobufMessage(descriptor)
        return found

    def canonical(self) -> str:
        """A text that is the same for two schemas exactly when they differ in spelling only.

        Of what the pool made of the file: a descriptor names types in full, where a text may be short.
        """
        nameless = descriptor_pb2.FileDescriptorProto()
        self.descriptor.CopyToProto(nameless)
        nameless.ClearField("name")
        return f"{_in_base64(nameless)}\n{self._others}"

    def serialized(self) -> str:
        """The descriptor, as some clients ask for it."""
        return _in_base64(self.proto)

    def _closure(self) -> dict[str, descriptor_pb2.FileDescriptorProto]:
        """All files that must be known first, each before those that import it."""
        files: dict[str, descriptor_pb2.FileDescriptorProto] = {}
        for name, other in self._imports.items():
            files.update(other._closure())
            renamed = descriptor_pb2.FileDescriptorProto()
            renamed.CopyFrom(other.proto)
            renamed.name = name
            files[name] = renamed
        return files


def parse_protobuf(text: str, others: Mapping[str, ProtobufFile] | None = None) -> ProtobufFile:
    """A file that can be used: read, linked with what it imports, checked by protobuf itself."""
    proto, rest = _from_base64(text), ""
    if proto is None:
        proto, rest = read_text(text)
    if not proto.name:
        proto.name = "schema.proto"
    return ProtobufFile(proto, rest, others or {})


def _in_base64(proto: descriptor_pb2.FileDescriptorProto) -> str:
    return base64.b64encode(proto.SerializeToString(deterministic=True)).decode()


def _from_base64(text: str) -> descriptor_pb2.FileDescriptorProto | None:
    try:
        proto = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    return proto if proto.message_type or proto.enum_type else None


def _link(
    proto: descriptor_pb2.FileDescriptorProto, files: Mapping[str, descriptor_pb2.FileDescriptorProto]
) -> FileDescriptor:
    """What the names in a file mean, among the files it imports and those that come with protobuf."""
    pool = DescriptorPool()
    try:
        for known in _well_known(
            {*proto.dependency, *(d for file in files.values() for d in file.dependency)}
        ):
            pool.Add(known)
        for file in files.values():
            pool.Add(file)
        if missing := [name for name in proto.dependency if not _has(pool, name)]:
            raise InvalidSchema(f"imported but not among the references: {', '.join(missing)}")
        pool.Add(proto)
        return pool.FindFileByName(proto.name)
    except (TypeError, KeyError) as error:
        raise InvalidSchema(f"the Protobuf schema is not valid: {error}") from error


def _has(pool: DescriptorPool, name: str) -> bool:
    try:
        pool.FindFileByName(name)
    except KeyError:
        return False
    return True


def _well_known(wanted: Iterable[str]) -> list[descriptor_pb2.FileDescriptorProto]:
    found: dict[str, descriptor_pb2.FileDescriptorProto] = {}

    def add(descriptor: FileDescriptor) -> None:
        for dependency in descriptor.dependencies:
            add(dependency)
        proto = descriptor_pb2.FileDescriptorProto()
        descriptor.CopyToProto(proto)
        found[proto.name] = proto

    for name in sorted(wanted):
        stem = name.removeprefix("google/protobuf/").removesuffix(".proto")
        if name == f"google/protobuf/{stem}.proto" and stem in _WELL_KNOWN:
            add(import_module(f"google.protobuf.{stem}_pb2").DESCRIPTOR)
    return list(found.values())
