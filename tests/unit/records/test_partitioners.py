"""Keys find the partitions that the clients of each kind would put them in."""

import random
from collections.abc import Callable

import mmh3
import pytest
from aiokafka.partitioner import DefaultPartitioner
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python

from goqueue.model.errors import Invalid
from goqueue.model.settings import Partitioner
from goqueue.records.partitioners import MURMUR2_KEY_BYTES_MAX, hash_by

PARTITIONS = list(range(11))
KEYS = [random.Random(size).randbytes(size) for size in range(1, 80)]


def by_aiokafka(key: bytes) -> int:
    return int(DefaultPartitioner()(key, PARTITIONS, PARTITIONS))


def by_kafka_python(key: bytes) -> int:
    return int(murmur2_of_kafka_python(key) & 0x7FFF_FFFF) % len(PARTITIONS)


@pytest.mark.parametrize("client", [by_aiokafka, by_kafka_python])
def test_murmur2_is_that_of_javas_and_pythons_clients(client: Callable[[bytes], int]) -> None:
    hash_key = hash_by(Partitioner.MURMUR2)
    assert [hash_key(key) % len(PARTITIONS) for key in KEYS] == [client(key) for key in KEYS]


def test_murmur3_is_unsigned_and_without_seed() -> None:
    assert [hash_by(Partitioner.MURMUR3)(key) for key in KEYS] == [mmh3.hash(key, 0, False) for key in KEYS]


def test_crc32_has_its_usual_check_value() -> None:
    assert hash_by(Partitioner.CRC32)(b"123456789") == 0xCBF4_3926


def test_a_key_that_would_take_long_is_refused_by_murmur2_alone() -> None:
    hash_by(Partitioner.MURMUR2)(bytes(MURMUR2_KEY_BYTES_MAX))
    with pytest.raises(Invalid, match="name the partition"):
        hash_by(Partitioner.MURMUR2)(bytes(MURMUR2_KEY_BYTES_MAX + 1))
    for partitioner in (Partitioner.MURMUR3, Partitioner.CRC32):
        hash_by(partitioner)(bytes(1 << 20))
