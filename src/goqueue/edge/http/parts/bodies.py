"""The JSON of the HTTP door: what requests may hold and what replies look like.

These structs are what is decoded and encoded, and the OpenAPI document is drawn from them, so that
it cannot say anything else. In requests unknown fields are ignored and null stands for an absent
field. A field with a default is left out of a reply while it has it.
"""

from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, field

_INT32 = Meta(ge=-(2**31), le=2**31 - 1)

AcksWord = Literal["none", "leader", "all"]
EncodingWord = Literal["text", "base64"]
PriorityWord = Literal["critical", "high", "normal", "low", "background"]

PRIORITY_OF_LANE: tuple[PriorityWord, ...] = get_args(PriorityWord)
"""The word for each lane, by its number."""


class MessageBody(Struct, gc=False):
    """A message to publish."""

    value: Annotated[
        str | UnsetType | None,
        Meta(description="null: no value, which in a compacted topic ends its key. It must be told."),
    ] = UNSET
    key: Annotated[str, Meta(description="Empty: no key.")] | None = None
    partition: Annotated[int, _INT32] | None = None
    priority: Annotated[str, Meta(description="A lane, in any letter case; normal by default.")] | None = None
    headers: dict[str, str | None] | None = None
    encoding: Annotated[str, Meta(description="base64: value and key are. text: they are not.")] | None = None
    delay: Annotated[str, Meta(description="A duration like 1h30m; 0 or less is now.")] | None = None
    deliver_at: Annotated[str, Meta(description="An RFC 3339 time; a past one is now.")] | None = field(
        default=None, name="deliverAt"
    )
    ttl: Annotated[str, Meta(description="Older than this it is not delivered to groups: 1h30m.")] | None = (
        None
    )
    header_list: (
        Annotated[
            list["HeaderBody"],
            Meta(description="Instead of headers, where names repeat or values are no text."),
        ]
        | None
    ) = None


class PublishBody(Struct, gc=False):
    """Messages to publish to one topic, in order."""

    messages: Annotated[list[MessageBody], Meta(min_length=1)]
    acks: AcksWord | None = None
    encoding: Annotated[EncodingWord, Meta(description="For messages that do not say.")] | None = None


class PublishResult(Struct, omit_defaults=True, gc=False):
    """Where one message was stored; or, with `error` and `code`, why it was not, and then both are -1.

    With `delayed`, the offset is the number by which the message can be looked at, cancelled and moved.
    """

    partition: int
    offset: int
    priority: PriorityWord | None = None
    delayed: bool = False
    deliver_at: Annotated[str, Meta(description="Only with `delayed`.")] | None = field(
        default=None, name="deliverAt"
    )
    error: str | None = None
    code: str | None = None
    quarantined: (
        Annotated[
            str,
            Meta(
                description="The message does not fit its schemas and is in this topic; `reason` tells why."
            ),
        ]
        | None
    ) = None
    reason: str | None = None


class PublishReply(Struct, gc=False):
    """One result a message, in the order given."""

    results: list[PublishResult]


class HeaderBody(Struct, omit_defaults=True, gc=False):
    """One header of a message, exactly as stored."""

    name: str
    value: str | None
    encoding: Annotated[Literal["base64"], Meta(description="Present: value is base64.")] | None = None


class ReadMessage(Struct, omit_defaults=True, gc=False):
    """A stored message. `header_list` is there when `headers` cannot say all: repeated or binary ones."""

    offset: int
    timestamp: str
    value: Annotated[str, Meta(description="null: the message has no value.")] | None
    priority: PriorityWord
    key: str | None = None
    encoding: Annotated[Literal["base64"], Meta(description="Present: value and key are base64.")] | None = (
        None
    )
    headers: dict[str, str | None] | None = None
    header_list: list[HeaderBody] | None = None


class ReadReply(Struct, gc=False):
    messages: list[ReadMessage]
    next_offset: Annotated[int, Meta(description="Where to read on.")]
