"""Protobuf: whether bytes written with one descriptor mean the same to a reader with another.

Fields are known by number. A field that only one side has does no harm (the reader keeps it apart or
sees the default), unless it is required or leaves an alternative. What both have must be of kinds
that share a representation on the wire.
"""

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor, OneofDescriptor
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
_Pair = tuple[str, str]
_BYTES_LIKE = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE)


def protobuf_breaks(reader: FileDescriptor, writer: FileDescriptor) -> list[Break]:
    """Why messages written with the writer's file are not understood with the reader's."""
    breaks: list[Break] = []
    seen: set[_Pair] = set()
    if reader.package != writer.package:
        breaks.append(
            Break("package", "package_changed", f"was {writer.package!r}, is {reader.package!r} now")
        )
    for name, written in writer.message_types_by_name.items():
        known = reader.message_types_by_name.get(name)
        if known is None:
            breaks.append(Break(name, "message_removed", "messages of this type may still come"))
        else:
            _compare(name, known, written, breaks, seen)
    return breaks


def _compare(
    path: str, reader: Descriptor, writer: Descriptor, breaks: list[Break], seen: set[_Pair]
) -> None:
    # A type is compared where it is met first: types may be part of each other in many ways.
    pair = (reader.full_name, writer.full_name)
    if pair in seen:
        return
    seen.add(pair)
    for number, written in writer.fields_by_number.items():
        place = f"{path}.{written.name}"
        known = reader.fields_by_number.get(number)
        if known is not None:
            _compare_field(place, known, written, breaks, seen)
        elif written.is_required:
            breaks.append(Break(place, "required_field_removed", f"required field {number} is gone"))
        if _has_left_its_alternative(reader, known, written):
            breaks.append(Break(place, "oneof_field_removed", f"alternative {number} is gone"))
    for number, known in reader.fields_by_number.items():
        if number not in writer.fields_by_number and known.is_required:
            breaks.append(
                Break(f"{path}.{known.name}", "required_field_added", f"field {number} is required now")
            )
    for oneof in reader.oneofs:
        _compare_oneof(f"{path}.{oneof.name}", oneof, writer, breaks)
    for name, nested in writer.nested_types_by_name.items():
        if nested.GetOptions().map_entry:
            continue
        kept = reader.nested_types_by_name.get(name)
        if kept is None:
            breaks.append(Break(f"{path}.{name}", "message_removed", "messages of this type may still come"))
        else:
            _compare(f"{path}.{name}", kept, nested, breaks, seen)


def _has_left_its_alternative(
    reader: Descriptor, known: FieldDescriptor | None, written: FieldDescriptor
) -> bool:
    """Whether a field was one of several that exclude each other, and the others still are."""
    oneof = written.containing_oneof
    if oneof is None or _is_lone(written) or oneof.name not in reader.oneofs_by_name:
        return False
    return known is None or known.containing_oneof is None or known.containing_oneof.name != oneof.name


def _compare_oneof(path: str, oneof: OneofDescriptor, writer: Descriptor, breaks: list[Break]) -> None:
    """Fields that exclude each other now must have done so before, or one of them is lost."""
    before = [known for field in oneof.fields if (known := writer.fields_by_number.get(field.number))]
    moved = [field for field in before if field.containing_oneof is None or _is_lone(field)]
    names = ", ".join(field.name for field in moved)
    if len(moved) > 1:
        breaks.append(Break(path, "multiple_fields_moved_to_oneof", f"{names} could be there at once before"))
    elif moved and len(moved) < len(before):
        text = f"{names} could be there beside the others before"
        breaks.append(Break(path, "field_moved_to_existing_oneof", text))


def _compare_field(
    place: str, reader: FieldDescriptor, writer: FieldDescriptor, breaks: list[Break], seen: set[_Pair]
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
        _compare(place, reader.message_type, writer.message_type, breaks, seen)
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
