"""Protobuf: whether bytes written with one descriptor mean the same to a reader with another.

Fields are known by number. A field that only one side has does no harm (the reader keeps it apart or
sees the default), unless it is required or leaves an alternative. What both have must be of kinds
that share a representation on the wire.
"""

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from goqueue.model.schemas import Break

_SAME_ON_THE_WIRE = (
    frozenset(
        {
            FieldDescriptor.TYPE_INT32,
            FieldDescriptor.TYPE_INT64,
            FieldDescriptor.TYPE_UINT32,
            FieldDescriptor.TYPE_UINT64,
            FieldDescriptor.TYPE_BOOL,
            FieldDescriptor.TYPE_ENUM,
        }
    ),
    frozenset({FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64}),
    frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES}),
    frozenset({FieldDescriptor.TYPE_FIXED32, FieldDescriptor.TYPE_SFIXED32}),
    frozenset({FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED64}),
)
_BYTES_LIKE = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE)


def protobuf_breaks(reader: FileDescriptor, writer: FileDescriptor) -> list[Break]:
    """Why messages written with the writer's file are not understood with the reader's."""
    breaks: list[Break] = []
    if reader.package != writer.package:
        breaks.append(
            Break("package", "package_changed", f"was {writer.package!r}, is {reader.package!r} now")
        )
    for name, written in writer.message_types_by_name.items():
        known = reader.message_types_by_name.get(name)
        if known is None:
            breaks.append(Break(name, "message_removed", "messages of this type may still come"))
        else:
            _compare(name, known, written, breaks, set())
    return breaks


def _compare(
    path: str, reader: Descriptor, writer: Descriptor, breaks: list[Break], under_way: set[str]
) -> None:
    if writer.full_name in under_way:
        return
    under_way = under_way | {writer.full_name}
    for number, written in writer.fields_by_number.items():
        place = f"{path}.{written.name}"
        known = reader.fields_by_number.get(number)
        if known is not None:
            _compare_field(place, known, written, breaks, under_way)
        elif written.is_required:
            breaks.append(Break(place, "required_field_removed", f"required field {number} is gone"))
        elif written.containing_oneof is not None and not _is_lone(written):
            breaks.append(Break(place, "oneof_field_removed", f"alternative {number} is gone"))
    for number, known in reader.fields_by_number.items():
        if number not in writer.fields_by_number and known.is_required:
            breaks.append(
                Break(f"{path}.{known.name}", "required_field_added", f"field {number} is required now")
            )
    for oneof in reader.oneofs:
        moved = [
            field.name
            for field in oneof.fields
            if (before := writer.fields_by_number.get(field.number)) is not None
            and before.containing_oneof is None
        ]
        if len(moved) > 1:
            breaks.append(
                Break(
                    f"{path}.{oneof.name}",
                    "multiple_fields_moved_to_oneof",
                    f"{', '.join(moved)} could be there at once before",
                )
            )
    for name, nested in writer.nested_types_by_name.items():
        if nested.GetOptions().map_entry:
            continue
        kept = reader.nested_types_by_name.get(name)
        if kept is None:
            breaks.append(Break(f"{path}.{name}", "message_removed", "messages of this type may still come"))
        else:
            _compare(f"{path}.{name}", kept, nested, breaks, under_way)


def _compare_field(
    place: str, reader: FieldDescriptor, writer: FieldDescriptor, breaks: list[Break], under_way: set[str]
) -> None:
    if not _share_the_wire(reader.type, writer.type):
        breaks.append(Break(place, "field_kind_changed", f"was {_kind(writer)}, is {_kind(reader)} now"))
        return
    if reader.is_repeated != writer.is_repeated and writer.type not in _BYTES_LIKE:
        breaks.append(
            Break(place, "field_numeric_label_changed", "one number and many are written differently")
        )
    if writer.is_required and not reader.is_required:
        breaks.append(Break(place, "required_field_changed", "the field was required"))
    if reader.is_required and not writer.is_required:
        breaks.append(Break(place, "required_field_changed", "the field is required now"))
    if writer.message_type is None or reader.message_type is None:
        return
    if (
        writer.message_type.GetOptions().map_entry
        or reader.message_type.full_name == writer.message_type.full_name
    ):
        _compare(place, reader.message_type, writer.message_type, breaks, under_way)
    else:
        breaks.append(
            Break(
                place,
                "field_named_type_changed",
                f"was {writer.message_type.full_name}, is {reader.message_type.full_name} now",
            )
        )


def _share_the_wire(one: int, other: int) -> bool:
    return one == other or any(one in kinds and other in kinds for kinds in _SAME_ON_THE_WIRE)


def _is_lone(field: FieldDescriptor) -> bool:
    """Whether the alternative it is in is the hidden one of an optional field."""
    oneof = field.containing_oneof
    return oneof is not None and len(oneof.fields) == 1 and oneof.name == f"_{field.name}"


def _kind(field: FieldDescriptor) -> str:
    return FieldDescriptorProto.Type.keys()[field.type - 1].removeprefix("TYPE_").lower()
