"""Look after a broker: python examples/client/admin.py [server]"""

import sys
from datetime import UTC, datetime

from goqueue.client import GoQueue, NotFound


def main(server: str) -> None:
    with GoQueue(server) as queue:
        print(f"version {queue.admin.version().version}, ready: {queue.admin.ready().is_ready}")
        queue.topics.create("audit", partitions=2, settings={"retention.ms": 86_400_000}, exist_ok=True)
        placed = queue.publish("audit", "somebody was here")
        print(f"topics: {', '.join(queue.topics.list())}")

        queue.groups.commit_offsets("readers", {"audit": {placed.partition: 0}})
        print(f"readers are {queue.groups.lag('readers').total} behind")
        queue.groups.reset_offsets("readers", to=datetime.now(UTC), topics=["audit"])
        print(f"and now {queue.groups.lag('readers').total}")

        for span in queue.traces.of("audit", placed.partition, placed.offset).spans:
            print(f"{span.event_type}")

        try:
            queue.topics.describe("nothing")
        except NotFound as error:
            print(f"{error.code}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:] or ["localhost:8080"])
