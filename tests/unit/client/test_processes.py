"""What becomes of a client in another process: one that was forked, or one that got it pickled."""

import pickle
import subprocess
import sys

from goqueue.client import GoQueue
from tests.doors.http.running_door import RunningDoor

SOON_S = 20

FORKED = """
import os, sys
from goqueue.client import GoQueue, Invalid

def tell(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

server, topic = sys.argv[1:]
queue = GoQueue(server)
queue.publish(topic, "work")
producer = queue.producer()
consumer = queue.consumer(topic, group="forked")
[message] = consumer.poll(wait=10)
child = os.fork()
if not child:
    for refused in (lambda: producer.send(topic, "a"), producer.flush, consumer.poll):
        try:
            refused()
        except Invalid as problem:
            tell("child:", problem)
    producer.close()
    consumer.close()
    message.ack()
found = {queue.topics.describe(topic).name if child else len(queue.topics.list()) for _ in range(50)}
tell("parent:" if child else "child:", *found)
if not child:
    os._exit(0)
os.waitpid(child, 0)
tell("parent:", producer.send(topic, "b").result(10).offset >= 0, consumer.poll(wait=10)[0].text)
tell("parent:", queue.groups.describe("forked").members[0].client_id)
"""


def test_after_a_fork_each_process_has_connections_of_its_own(door: RunningDoor, topic: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORKED, door.url, topic],
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=False,
    )

    assert ended.stderr == ""
    with GoQueue(door.url) as queue:
        topic_count = len(queue.topics.list())
        assert queue.groups.lag("forked").total == 1  # the message that the parent has not acknowledged
    assert sorted(ended.stdout.splitlines()) == [
        f"child: {topic_count}",
        "child: the consumer belongs to the process that made it: make one in this one",
        "child: the producer belongs to the process that made it: make one in this one",
        "child: the producer belongs to the process that made it: make one in this one",
        "parent: True b",
        "parent: goqueue-python",
        f"parent: {topic}",
    ]


def test_a_queue_can_be_sent_to_another_process(door: RunningDoor, topic: str) -> None:
    with GoQueue(door.url) as queue:
        queue.topics.list()
        with pickle.loads(pickle.dumps(queue)) as copy:
            assert topic in copy.topics.list()
            assert topic in queue.topics.list()
