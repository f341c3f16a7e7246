"""Protobuf: from a .proto text, or a descriptor in base64, to a real file descriptor.

Clients register either form. The text is parsed by a library; what it means (which name is which
type, whether numbers clash) is checked by protobuf's own pool of descriptors.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from goqueue.core.schemas.protobuf_texts import read_text, says_something
from goqueue.model.errors import InvalidSchema
from goqueue.model.schemas import SCHEMA_PARTS_MAX, SchemaKind

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
        self.descriptor = _link(_needed(proto, self._all_imports))

    def files(self) -> list[bytes]:
        """The file and all it needs, each before those that import it."""
        needed = _needed(self.proto, self._all_imports)
        return [file.SerializeToString(deterministic=True) for file in needed]

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

    @cached_property
    def _all_imports(self) -> dict[str, descriptor_pb2.FileDescriptorProto]:
        """All files that must be known first, each before those that import it."""
        files: dict[str, descriptor_pb2.FileDescriptorProto] = {}
        for name, other in self._imports.items():
            files.update(other._all_imports)
            renamed = descriptor_pb2.FileDescriptorProto()
            renamed.CopyFrom(other.proto)
            renamed.name = name
            files[name] = renamed
        return files


def parse_protobuf(text: str, others: Mapping[str, ProtobufFile] | None = None) -> ProtobufFile:
    """A file that can be used: read, linked with what it imports, checked by protobuf itself."""
    proto, rest = _from_base64(text), ""
    if proto is None:
        if text.count(";") + text.count("{") > SCHEMA_PARTS_MAX:
            raise _too_large()  # before it is read, which takes long
        proto, rest = read_text(text)
    if _size(proto) > SCHEMA_PARTS_MAX:
        raise _too_large()
    if not proto.name:
        proto.name = "schema.proto"
    return ProtobufFile(proto, rest, others or {})


def _too_large() -> InvalidSchema:
    return InvalidSchema(f"a .proto file has at most {SCHEMA_PARTS_MAX} types, fields and values")


def _size(proto: descriptor_pb2.FileDescriptorProto) -> int:
    count = len(proto.extension) + len(proto.service)
    count += sum(1 + len(enum.value) for enum in proto.enum_type)
    messages = list(proto.message_type)
    while messages:
        message = messages.pop()
        count += 1 + len(message.field) + sum(1 + len(enum.value) for enum in message.enum_type)
        messages += message.nested_type
    return count


def _in_base64(proto: descriptor_pb2.FileDescriptorProto) -> str:
    return base64.b64encode(proto.SerializeToString(deterministic=True)).decode()


def _from_base64(text: str) -> descriptor_pb2.FileDescriptorProto | None:
    try:
        proto = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    return proto if says_something(proto) else None


def _needed(
    proto: descriptor_pb2.FileDescriptorProto, files: Mapping[str, descriptor_pb2.FileDescriptorProto]
) -> list[descriptor_pb2.FileDescriptorProto]:
    """A file behind all it imports: those that come with protobuf, and those it refers to."""
    imported = {*proto.dependency, *(d for file in files.values() for d in file.dependency)}
    needed = [*_well_known(imported), *files.values()]
    known = {file.name for file in needed}
    if missing := [name for name in proto.dependency if name not in known]:
        raise InvalidSchema(f"imported but not among the references: {', '.join(missing)}")
    return [*needed, proto]


def _link(files: Sequence[descriptor_pb2.FileDescriptorProto]) -> FileDescriptor:
    """What the names in the last of some files mean."""
    pool = DescriptorPool()
    try:
        for file in files:
            pool.Add(file)
        return pool.FindFileByName(files[-1].name)
    except (TypeError, KeyError) as error:
        raise InvalidSchema(f"the Protobuf schema is not valid: {error}") from error


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
