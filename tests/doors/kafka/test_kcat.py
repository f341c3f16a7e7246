"""kcat: the client people type."""

import shutil
import subprocess

import pytest

from tests.doors.kafka import conftest
from tests.doors.kafka.door_thread import DoorThread

KCAT = shutil.which("kcat")
PATIENCE_S = 30
pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed")


def kcat(door: DoorThread, *arguments: str, given: bytes = b"") -> str:
    assert KCAT is not None
    finished = subprocess.run(
        [KCAT, "-b", door.address, *arguments],
        input=given,
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return finished.stdout.decode()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_go_in_and_come_out(door: DoorThread, new_topic: conftest.NewTopic, codec: str) -> None:
    topic = new_topic().name

    kcat(door, "-P", "-t", topic, "-z", codec, "-K", ":", "-H", "h=1", given=b"k1:one\nk2:two\n")

    assert kcat(door, "-C", "-t", topic, "-e", "-q", "-f", "%o %k %s %h\n") == "0 k1 one h=1\n1 k2 two h=1\n"


def test_topics_are_listed(door: DoorThread, new_topic: conftest.NewTopic) -> None:
    topic = new_topic(partitions=2).name

    assert f'topic "{topic}" with 2 partitions' in kcat(door, "-L")


def test_offsets_are_asked_for_by_time(door: DoorThread, new_topic: conftest.NewTopic) -> None:
    topic = new_topic().name
    kcat(door, "-P", "-t", topic, given=b"one\ntwo\n")

    assert f"{topic} [0] offset 0" in kcat(door, "-Q", "-t", f"{topic}:0:1000")
