"""The numbers by which Kafka's clients know nodes: the digits at the end of an id, or a hash of it."""

import re

import mmh3

from goqueue.model.cluster import NodeId

NOBODY = -1
_DIGITS = re.compile(r"\d{1,9}$")
_POSITIVE = 0x7FFF_FFFF


def node_number(node: NodeId) -> int:
    digits = _DIGITS.search(node)
    return int(digits.group()) if digits else mmh3.hash(node, 0, signed=False) & _POSITIVE
