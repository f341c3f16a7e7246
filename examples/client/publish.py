"""Publish messages one by one, later, and by the thousand: python examples/client/publish.py [server]"""

import sys
from datetime import timedelta

from goqueue.client import GoQueue


def main(server: str) -> None:
    with GoQueue(server) as queue:
        queue.topics.create("orders", partitions=3, exist_ok=True)

        placed = queue.publish("orders", {"id": 1, "item": "tea"}, key="customer-7", priority="high")
        print(f"stored in partition {placed.partition} at offset {placed.offset}")

        reminder = queue.publish("orders", b"remind me", delay=timedelta(hours=1))
        print(f"due at {reminder.deliver_at:%H:%M}")
        queue.delayed.cancel("orders", reminder.partition, reminder.offset)

        with queue.producer() as producer:
            futures = [producer.send("orders", f"order {number}") for number in range(1_000)]
        print(f"{sum(future.exception() is None for future in futures)} messages stored in batches")


if __name__ == "__main__":
    main(*sys.argv[1:] or ["localhost:8080"])
