"""Protobuf: a .proto text as a file descriptor.

The text is taken apart by a library. Everything in it goes into the descriptor, also what data does not show
(reserved numbers, options, services): two texts are the same schema only if they agree in that too. Options
that people define for themselves have no place there; they are kept as text.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from antlr4 import Lexer
from antlr4 import Parser as GrammarParser
from antlr4.error.ErrorListener import ErrorListener
from google.protobuf import descriptor_pb2
from google.protobuf.message import Message
from proto_schema_parser import ast
from proto_schema_parser.parser import Parser

from goqueue.model.errors import InvalidSchema

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
_NUMBER_MAX = 2**29 - 1
_ENUM_NUMBER_MAX = 2**31 - 1
_PROTOBUF_OWN = range(19_000, 20_000)
"""Field numbers that Protobuf keeps for itself; its own compiler refuses them, its pool does not."""


class _Fields(Protocol):
    """Whatever has a list of fields of its own and types beside them."""

    def add(self) -> descriptor_pb2.FieldDescriptorProto: ...


class _Types(Protocol):
    def add(self) -> descriptor_pb2.DescriptorProto: ...


def read_text(text: str) -> tuple[descriptor_pb2.FileDescriptorProto, str]:
    """A .proto text as a descriptor, and what of it has no place in one."""
    try:
        parsed = Parser(setup_lexer=_be_strict, setup_parser=_be_strict).parse(text)
    except ValueError as error:  # the library takes numbers in decimal only
        raise InvalidSchema(f"the .proto text cannot be read: {error}") from error
    if parsed.edition:
        raise InvalidSchema("editions of Protobuf are not supported: write syntax proto2 or proto3")
    reading = _Reading(parsed.syntax or "proto2")
    reading.read(parsed.file_elements)
    return reading.proto, "\n".join(reading.others)


def says_something(proto: descriptor_pb2.FileDescriptorProto) -> bool:
    """Whether there is anything for others to use: a file may be there for what it imports alone."""
    parts = (proto.message_type, proto.enum_type, proto.extension, proto.service, proto.dependency)
    return any(len(part) > 0 for part in parts)


class _Refusal(ErrorListener):  # type: ignore[misc]  # the runtime has no types
    """By itself the grammar's runtime prints what is wrong and guesses on."""

    def syntaxError(  # noqa: N802  # the runtime's name
        self, recognizer: object, symbol: object, line: int, column: int, text: str, error: object
    ) -> None:
        raise InvalidSchema(f"the .proto text is not valid in line {line}, column {column + 1}: {text}")


def _be_strict(recognizer: Lexer | GrammarParser) -> None:
    recognizer.removeErrorListeners()
    recognizer.addErrorListener(_Refusal())


class _Reading:
    def __init__(self, syntax: str) -> None:
        self.proto = descriptor_pb2.FileDescriptorProto(syntax=syntax)
        self.others: list[str] = []
        self._is_proto3 = syntax == "proto3"

    def read(self, elements: Iterable[ast.FileElement]) -> None:
        proto = self.proto
        for element in elements:
            match element:
                case ast.Package():
                    proto.package = element.name
                case ast.Import():
                    if element.public:
                        proto.public_dependency.append(len(proto.dependency))
                    proto.dependency.append(element.name)
                case ast.Option():
                    self._set_option(proto.options, element, proto.package)
                case ast.Message():
                    self._fill_message(proto.message_type.add(), element.name, element.elements)
                case ast.Enum():
                    self._fill_enum(proto.enum_type.add(), element)
                case ast.Extension():
                    self._fill_extension(proto.extension, proto.message_type, element)
                case ast.Service():
                    self._fill_service(proto.service.add(), element)
        if not says_something(proto):
            raise InvalidSchema("the .proto text has neither types, extensions, services nor imports")

    def _fill_message(
        self, target: descriptor_pb2.DescriptorProto, name: str, elements: Iterable[ast.MessageElement]
    ) -> None:
        target.name = name
        for element in elements:
            match element:
                case ast.Field():
                    field = self._add_field(target.field, element)
                    if self._is_proto3 and element.cardinality is ast.FieldCardinality.OPTIONAL:
                        field.proto3_optional = True
                case ast.MapField():
                    self._fill_map(target, element)
                case ast.Group():
                    self._add_group(target.field, target.nested_type, element)
                case ast.OneOf():
                    self._fill_oneof(target, element)
                case ast.Option():
                    self._set_option(target.options, element, name)
                case ast.Message():
                    self._fill_message(target.nested_type.add(), element.name, element.elements)
                case ast.Enum():
                    self._fill_enum(target.enum_type.add(), element)
                case ast.Extension():
                    self._fill_extension(target.extension, target.nested_type, element)
                case ast.ExtensionRange():
                    for first, last in _ranges(element.ranges, _NUMBER_MAX):
                        target.extension_range.add(start=first, end=last + 1)
                case ast.Reserved():
                    target.reserved_name.extend(element.names)
                    for first, last in _ranges(element.ranges, _NUMBER_MAX):
                        target.reserved_range.add(start=first, end=last + 1)
        _check_numbers(target)
        # An optional field of proto3 is the only choice of a hidden alternative, behind all others.
        for field in target.field:
            if field.proto3_optional:
                field.oneof_index = len(target.oneof_decl)
                target.oneof_decl.add(name=f"_{field.name}")

    def _fill_oneof(self, target: descriptor_pb2.DescriptorProto, oneof: ast.OneOf) -> None:
        index = len(target.oneof_decl)
        declared = target.oneof_decl.add(name=oneof.name)
        for choice in oneof.elements:
            match choice:
                case ast.Field():
                    self._add_field(target.field, choice).oneof_index = index
                case ast.Group():
                    self._add_group(target.field, target.nested_type, choice).oneof_index = index
                case ast.Option():
                    self._set_option(declared.options, choice, oneof.name)

    def _add_field(self, fields: _Fields, field: ast.Field) -> descriptor_pb2.FieldDescriptorProto:
        target = fields.add()
        target.name, target.number = field.name, field.number
        target.label = _LABELS[field.cardinality] if field.cardinality else _FieldProto.LABEL_OPTIONAL
        _set_type(target, field.type)
        for option in field.options:
            match option:
                case ast.Option(name="json_name", value=str(name)):
                    target.json_name = name
                case ast.Option(name="default", value=value):
                    target.default_value = _word(value)
                case _:
                    self._set_option(target.options, option, field.name)
        return target

    def _add_group(
        self, fields: _Fields, types: _Types, group: ast.Group
    ) -> descriptor_pb2.FieldDescriptorProto:
        """A group is a message type and a field of it in one, the field in lower case."""
        self._fill_message(types.add(), group.name, group.elements)
        target = fields.add()
        target.name, target.number = group.name.lower(), group.number
        target.label = _LABELS[group.cardinality] if group.cardinality else _FieldProto.LABEL_OPTIONAL
        target.type, target.type_name = _FieldProto.TYPE_GROUP, group.name
        return target

    def _fill_map(self, target: descriptor_pb2.DescriptorProto, field: ast.MapField) -> None:
        """A map is a list of entries, of a message type made for it."""
        entry = target.nested_type.add(name=f"{_camel(field.name)}Entry")
        entry.options.map_entry = True
        for number, (name, kind) in enumerate((("key", field.key_type), ("value", field.value_type)), 1):
            part = entry.field.add(name=name, number=number, label=_FieldProto.LABEL_OPTIONAL)
            _set_type(part, kind)
        made = target.field.add(
            name=field.name,
            number=field.number,
            label=_FieldProto.LABEL_REPEATED,
            type=_FieldProto.TYPE_MESSAGE,
            type_name=entry.name,
        )
        for option in field.options:
            self._set_option(made.options, option, field.name)

    def _fill_extension(self, fields: _Fields, types: _Types, extension: ast.Extension) -> None:
        for element in extension.elements:
            match element:
                case ast.Field():
                    self._add_field(fields, element).extendee = extension.typeName
                case ast.Group():
                    self._add_group(fields, types, element).extendee = extension.typeName

    def _fill_enum(self, target: descriptor_pb2.EnumDescriptorProto, enum: ast.Enum) -> None:
        target.name = enum.name
        for element in enum.elements:
            match element:
                case ast.EnumValue():
                    value = target.value.add(name=element.name, number=element.number)
                    for option in element.options:
                        self._set_option(value.options, option, element.name)
                case ast.EnumReserved():
                    target.reserved_name.extend(element.names)
                    for first, last in _ranges(element.ranges, _ENUM_NUMBER_MAX):
                        target.reserved_range.add(start=first, end=last)  # inclusive, unlike a message's
                case ast.Option():
                    self._set_option(target.options, element, enum.name)

    def _fill_service(self, target: descriptor_pb2.ServiceDescriptorProto, service: ast.Service) -> None:
        target.name = service.name
        for element in service.elements:
            match element:
                case ast.Method():
                    method = target.method.add(
                        name=element.name,
                        input_type=element.input_type.type,
                        output_type=element.output_type.type,
                        client_streaming=element.input_type.stream,
                        server_streaming=element.output_type.stream,
                    )
                    for option in element.elements:
                        if isinstance(option, ast.Option):
                            self._set_option(method.options, option, element.name)
                case ast.Option():
                    self._set_option(target.options, element, service.name)

    def _set_option(self, target: Message, option: ast.Option, place: str) -> None:
        """Set an option that Protobuf knows; keep any other as it is written."""
        known = target.DESCRIPTOR.fields_by_name.get(option.name)
        if known is None or known.is_repeated or known.message_type is not None:
            self.others.append(f"{place}: {option.name} = {option.value}")
            return
        try:
            value: object = option.value
            if known.enum_type is not None and isinstance(option.value, ast.Identifier):
                value = known.enum_type.values_by_name[option.value.name].number
            setattr(target, option.name, value)
        except (TypeError, ValueError, KeyError) as error:
            raise InvalidSchema(f"option {option.name} of {place}: {error}") from error


def _set_type(target: descriptor_pb2.FieldDescriptorProto, kind: str) -> None:
    scalar = _SCALARS.get(kind)
    if scalar is None:
        target.type_name = kind  # message or enum: the pool finds out
    else:
        target.type = scalar


def _check_numbers(message: descriptor_pb2.DescriptorProto) -> None:
    reserved = [range(each.start, each.end) for each in message.reserved_range]
    for field in message.field:
        if field.number in _PROTOBUF_OWN or any(field.number in numbers for numbers in reserved):
            raise InvalidSchema(f"{message.name}.{field.name}: field number {field.number} is reserved")
        if field.name in message.reserved_name:
            raise InvalidSchema(f"{message.name}.{field.name}: the name is reserved")


def _ranges(texts: Sequence[str], number_max: int) -> list[tuple[int, int]]:
    """First and last number of ranges such as `7`, `9 to 11` and `20 to max`."""
    found = []
    for text in texts:
        first, _, last = text.partition(" to ")
        found.append((int(first), number_max if last.strip() == "max" else int(last or first)))
    return found


def _word(value: object) -> str:
    match value:
        case ast.Identifier():
            return value.name
        case bool():
            return str(value).lower()
    return str(value)


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
