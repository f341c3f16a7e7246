"""What a .proto text says goes into its descriptor: two texts are one schema only if they agree in it."""

import base64

import pytest
from google.protobuf import descriptor_pb2

from goqueue.core.schemas.protobuf_data import ProtobufJudge
from goqueue.core.schemas.protobuf_files import ProtobufFile, parse_protobuf
from goqueue.model.errors import InvalidSchema

WHOLE = r"""
syntax = "proto2";
package shop;
import public "google/protobuf/timestamp.proto";
option java_package = "org.shop";
option optimize_for = SPEED;
message Order {
  option deprecated = true;
  reserved 5, 7 to 9, 1000 to max;
  reserved "old", "older";
  extensions 200 to 300;
  optional int32 count = 1 [default = -5, deprecated = true];
  optional string note = 2 [json_name = "Note"];
  optional Kind kind = 6 [default = LARGE];
  repeated group Line = 10 { optional int32 amount = 1; }
  repeated int32 sizes = 11 [packed = true];
  oneof way { int32 ship = 12; group Plane = 13 { optional int32 seat = 1; } }
  map<string, Order> parts = 14;
}
enum Kind { option allow_alias = true; SMALL = 0; LARGE = 1; BIG = 1 [deprecated = true]; reserved 4 to 6; }
extend Order { optional string remark = 200; }
service Orders { rpc Place (Order) returns (stream Order) { option idempotency_level = NO_SIDE_EFFECTS; } }
"""


def proto3(body: str) -> str:
    return f'syntax = "proto3";\n{body}'


def described(file: ProtobufFile) -> descriptor_pb2.FileDescriptorProto:
    return descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(file.serialized()))


def test_a_text_is_taken_in_whole() -> None:
    proto = described(parse_protobuf(WHOLE))

    [order] = proto.message_type
    assert (proto.options.java_package, list(proto.public_dependency)) == ("org.shop", [0])
    assert [(r.start, r.end) for r in order.reserved_range] == [(5, 6), (7, 10), (1000, 2**29)]
    assert list(order.reserved_name) == ["old", "older"]
    fields = {field.name: field for field in order.field}
    assert (fields["count"].default_value, fields["note"].json_name) == ("-5", "Note")
    assert fields["line"].type == descriptor_pb2.FieldDescriptorProto.TYPE_GROUP
    assert fields["sizes"].options.packed and fields["plane"].HasField("oneof_index")
    assert [(each.start, each.end) for each in proto.enum_type[0].reserved_range] == [(4, 6)]
    assert [each.name for each in proto.extension] == ["remark"]
    assert proto.service[0].method[0].server_streaming


def test_data_of_a_group_fits() -> None:
    judge = ProtobufJudge(parse_protobuf(WHOLE).descriptor, (0,), bytes_max=1_000)

    # Field 10 as a group begins with wire type 3 and ends with 4; within it field 1 is 7.
    assert judge.misfit(b"\x53\x08\x07\x54") is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("message A { string a = 1; }", "message A { string a = 1; reserved 2; }"),
        ("message A { string a = 1; }", 'message A { string a = 1; reserved "b"; }'),
        ("message A { string a = 1; }", 'message A { string a = 1 [json_name = "b"]; }'),
        ("message A { string a = 1; }", "message A { string a = 1 [(shop.secret) = true]; }"),
        ("message A { string a = 1; }", 'option java_package = "a"; message A { string a = 1; }'),
        ("message A {}", "message A {} service S { rpc R (A) returns (A); }"),
    ],
)
def test_texts_that_differ_in_more_than_spelling_are_two_schemas(one: str, other: str) -> None:
    assert parse_protobuf(proto3(one)).canonical() != parse_protobuf(proto3(other)).canonical()


def test_a_text_and_its_descriptor_are_one_schema_however_short_its_names_are() -> None:
    text = parse_protobuf(
        proto3("package a; message A { B b = 1; message B { .a.A up = 1; } E e = 2; } enum E { X = 0; }")
    )
    linked = descriptor_pb2.FileDescriptorProto()
    text.descriptor.CopyToProto(linked)

    descriptor = parse_protobuf(base64.b64encode(linked.SerializeToString()).decode())

    assert descriptor.canonical() == text.canonical()


@pytest.mark.parametrize(
    "body",
    [
        "message A { reserved 1; int32 a = 1; }",
        "message A { reserved 2 to max; int32 a = 5; }",
        'message A { reserved "a"; int32 a = 1; }',
        "message A { int32 a = 19500; }",
        "message A { int32 a = 0x10; }",
        "message A { option deprecated = 5.5; }",
        "option optimize_for = NOTHING; message A {}",
    ],
)
def test_what_protobufs_compiler_would_refuse_is_refused(body: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_protobuf(proto3(body))


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto3"; import "google/protobuf/any.proto";',
        'syntax = "proto3"; import "google/protobuf/empty.proto"; '
        "service S { rpc Go (google.protobuf.Empty) returns (google.protobuf.Empty); }",
        'syntax = "proto2"; import "google/protobuf/descriptor.proto"; '
        "extend google.protobuf.FieldOptions { optional string mark = 50000; }",
    ],
)
def test_a_file_without_messages_is_a_schema_as_text_and_as_descriptor(text: str) -> None:
    read = parse_protobuf(text)

    again = parse_protobuf(read.serialized())

    assert again.canonical() == read.canonical()


def test_a_file_that_says_nothing_is_none() -> None:
    with pytest.raises(InvalidSchema, match="neither"):
        parse_protobuf('syntax = "proto3"; package a;')


def test_editions_are_refused_by_name() -> None:
    with pytest.raises(InvalidSchema, match="editions"):
        parse_protobuf('edition = "2023"; message A { int32 a = 1; }')
