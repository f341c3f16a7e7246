"""Protobuf: from a .proto text, or a descriptor in base64, to a real file descriptor.

Clients register either form. The text is parsed by a library; what it means (which name is which
type, whether numbers clash) is checked by protobuf's own pool of descriptors.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from importlib import import_module

from antlr4 import Lexer
from antlr4 import Parser as GrammarParser
from antlr4.error.ErrorListener import ErrorListener
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from proto_schema_parser import ast
from proto_schema_parser.parser import Parser

from goqueue.core.schemas.protobuf_data import ProtobufMessage, message_at
from goqueue.model.errors import InvalidSchema
from goqueue.model.schemas import SchemaKind

_FieldProto = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "double": _FieldProto.TYPE_DOUBLE,
    "float": _FieldProto.TYPE_FLOAT,
    "int64": _FieldProto.TYPE_INT64,
    "uint64": _FieldProto.TYPE_UINT64,
    "int32": _FieldProto.TYPE_INT32,
    "fixed64": _FieldProto.TYPE_FIXED64,
    "fixed32": _FieldProto.TYPE_FIXED32,
    "bool": _FieldProto.TYPE_BOOL,
    "string": _FieldProto.TYPE_STRING,
    "bytes": _FieldProto.TYPE_BYTES,
    "uint32": _FieldProto.TYPE_UINT32,
    "sfixed32": _FieldProto.TYPE_SFIXED32,
    "sfixed64": _FieldProto.TYPE_SFIXED64,
    "sint32": _FieldProto.TYPE_SINT32,
    "sint64": _FieldProto.TYPE_SINT64,
}
_LABELS = {
    ast.FieldCardinality.REQUIRED: _FieldProto.LABEL_REQUIRED,
    ast.FieldCardinality.OPTIONAL: _FieldProto.LABEL_OPTIONAL,
    ast.FieldCardinality.REPEATED: _FieldProto.LABEL_REPEATED,
}
_WELL_KNOWN = ("any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct",
               "timestamp", "type", "wrappers")  # fmt: skip


class ProtobufFile:
    """A file descriptor with those it imports, by the names it imports them under."""

    kind = SchemaKind.PROTOBUF

    def __init__(
        self, proto: descriptor_pb2.FileDescriptorProto, imports: Mapping[str, "ProtobufFile"]
    ) -> None:
        self.proto = proto
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
        """A text that is the same for two schemas exactly when they differ in spelling only."""
        nameless = descriptor_pb2.FileDescriptorProto()
        nameless.CopyFrom(self.proto)
        nameless.ClearField("name")
        return _in_base64(nameless)

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
    proto = _from_base64(text) or _from_text(text)
    if not proto.name:
        proto.name = "schema.proto"
    return ProtobufFile(proto, others or {})


def _in_base64(proto: descriptor_pb2.FileDescriptorProto) -> str:
    return base64.b64encode(proto.SerializeToString(deterministic=True)).decode()


def _from_base64(text: str) -> descriptor_pb2.FileDescriptorProto | None:
    try:
        proto = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    return proto if proto.message_type or proto.enum_type else None


class _Refusal(ErrorListener):  # type: ignore[misc]  # the runtime has no types
    """By itself the grammar's runtime prints what is wrong and guesses on."""

    def syntaxError(  # noqa: N802  # the runtime's name
        self, recognizer: object, symbol: object, line: int, column: int, text: str, error: object
    ) -> None:
        raise InvalidSchema(f"the .proto text is not valid in line {line}, column {column + 1}: {text}")


def _be_strict(recognizer: Lexer | GrammarParser) -> None:
    recognizer.removeErrorListeners()
    recognizer.addErrorListener(_Refusal())


def _from_text(text: str) -> descriptor_pb2.FileDescriptorProto:
    parsed = Parser(setup_lexer=_be_strict, setup_parser=_be_strict).parse(text)
    proto = descriptor_pb2.FileDescriptorProto(syntax=parsed.syntax or "proto2")
    for element in parsed.file_elements:
        match element:
            case ast.Package():
                proto.package = element.name
            case ast.Import():
                proto.dependency.append(element.name)
            case ast.Message():
                _fill_message(proto.message_type.add(), element, proto.syntax)
            case ast.Enum():
                _fill_enum(proto.enum_type.add(), element)
    if not proto.message_type and not proto.enum_type:
        raise InvalidSchema("the .proto text has no message")
    return proto


def _fill_message(target: descriptor_pb2.DescriptorProto, message: ast.Message, syntax: str) -> None:
    target.name = message.name
    for element in message.elements:
        match element:
            case ast.Field():
                field = target.field.add()
                _fill_field(field, element)
                if syntax == "proto3" and element.cardinality is ast.FieldCardinality.OPTIONAL:
                    field.proto3_optional = True
            case ast.MapField():
                _fill_map(target, element)
            case ast.OneOf():
                target.oneof_decl.add(name=element.name)
                for choice in element.elements:
                    if isinstance(choice, ast.Field):
                        field = target.field.add()
                        _fill_field(field, choice)
                        field.oneof_index = len(target.oneof_decl) - 1
            case ast.Message():
                _fill_message(target.nested_type.add(), element, syntax)
            case ast.Enum():
                _fill_enum(target.enum_type.add(), element)
    # An optional field of proto3 is the only choice of a hidden alternative, behind all others.
    for field in target.field:
        if field.proto3_optional:
            field.oneof_index = len(target.oneof_decl)
            target.oneof_decl.add(name=f"_{field.name}")


def _fill_field(target: descriptor_pb2.FieldDescriptorProto, field: ast.Field) -> None:
    target.name, target.number = field.name, field.number
    target.label = _LABELS[field.cardinality] if field.cardinality else _FieldProto.LABEL_OPTIONAL
    _set_type(target, field.type)


def _fill_map(target: descriptor_pb2.DescriptorProto, field: ast.MapField) -> None:
    """A map is a list of entries, of a message type made for it."""
    entry = target.nested_type.add(name=f"{_camel(field.name)}Entry")
    entry.options.map_entry = True
    for number, (name, kind) in enumerate((("key", field.key_type), ("value", field.value_type)), 1):
        part = entry.field.add(name=name, number=number, label=_FieldProto.LABEL_OPTIONAL)
        _set_type(part, kind)
    target.field.add(
        name=field.name,
        number=field.number,
        label=_FieldProto.LABEL_REPEATED,
        type=_FieldProto.TYPE_MESSAGE,
        type_name=entry.name,
    )


def _set_type(target: descriptor_pb2.FieldDescriptorProto, kind: str) -> None:
    scalar = _SCALARS.get(kind)
    if scalar is None:
        target.type_name = kind  # message or enum: the pool finds out
    else:
        target.type = scalar


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _fill_enum(target: descriptor_pb2.EnumDescriptorProto, enum: ast.Enum) -> None:
    target.name = enum.name
    for element in enum.elements:
        match element:
            case ast.EnumValue():
                target.value.add(name=element.name, number=element.number)
            case ast.Option(name="allow_alias", value=bool(is_allowed)):
                target.options.allow_alias = is_allowed


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
