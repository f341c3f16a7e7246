"""Which partition a key belongs to, by the hash that a topic's setting names.

Whoever routes keys for others uses this: the broker, our client, Spark's sink. Kafka clients route by
themselves, each kind by its own hash; the setting lets the rest do as they do (`docs/keys.md`).
"""

from collections.abc import Callable
from zlib import crc32

import mmh3
import numpy as np

from goqueue.model.errors import Invalid
from goqueue.model.settings import Partitioner

MURMUR2_KEY_BYTES_MAX = 512
"""It is a loop in Python, 110 ns a step of four bytes: a thousand larger keys would hold others up."""
_MASK = 0xFFFF_FFFF
_FACTOR = 0x5BD1_E995
_SEED = 0x9747_B28C
_SIGN_BIT = 0x8000_0000


def murmur2(key: bytes) -> int:
    """As Java's clients, aiokafka and kafka-python hash keys: murmur2 of 32 bits, without its sign bit."""
    length = len(key)
    if length > MURMUR2_KEY_BYTES_MAX:
        raise Invalid(f"a key of {length} bytes is too long to route by murmur2: name the partition")
    value = (_SEED ^ length) & _MASK
    words = np.frombuffer(key, "<u4", length // 4) * np.uint32(_FACTOR)
    words = (words ^ (words >> np.uint32(24))) * np.uint32(_FACTOR)
    for word in words.tolist():
        value = (value * _FACTOR & _MASK) ^ word
    if rest := key[length & ~3 :]:
        value = (value ^ int.from_bytes(rest, "little")) * _FACTOR & _MASK
    value = (value ^ value >> 13) * _FACTOR & _MASK
    return (value ^ value >> 15) & ~_SIGN_BIT


_HASHES: dict[Partitioner, Callable[[bytes], int]] = {
    Partitioner.MURMUR3: mmh3.mmh3_32_uintdigest,
    Partitioner.MURMUR2: murmur2,
    Partitioner.CRC32: crc32,
}


def hash_by(partitioner: Partitioner) -> Callable[[bytes], int]:
    """The hash of a key; its remainder by the number of partitions is the key's partition."""
    return _HASHES[partitioner]
