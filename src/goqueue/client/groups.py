"""What a reader that is no member tells and asks of a consumer group: how far it has read."""

from collections.abc import Mapping
from urllib.parse import quote

import msgspec

from goqueue.client.connection import Client

GroupOffsets = dict[str, dict[str, int]]
"""The next offset, by topic and by partition number in text, as JSON has it."""


class _OffsetsBody(msgspec.Struct):
    offsets: GroupOffsets


def commit_offsets(client: Client, group: str, offsets: Mapping[str, Mapping[str, int]]) -> None:
    """Keep these offsets with a group; Refused while others are members of it."""
    body = msgspec.json.encode({"offsets": offsets})
    client.request("POST", _path(group), body=body)


def committed_offsets(client: Client, group: str) -> GroupOffsets:
    """What a group has committed; nothing where there is no such group."""
    return msgspec.json.decode(client.request("GET", _path(group)).body, type=_OffsetsBody).offsets


def _path(group: str) -> str:
    return f"/groups/{quote(group, safe='')}/offsets"
