"""The same names, awaited: python examples/client/async_consumer.py [server]"""

import asyncio
import sys

from goqueue.client import AsyncGoQueue


async def work(queue: AsyncGoQueue, name: str) -> int:
    count = 0
    async with queue.consumer("clicks", group="counters", limit=5, idle_timeout=1) as consumer:
        async for message in consumer:
            async with message:
                count += 1
    print(f"{name} is done")
    return count


async def main(server: str) -> None:
    async with AsyncGoQueue(server) as queue:
        await queue.topics.create("clicks", partitions=4, exist_ok=True)
        async with queue.producer() as producer:
            for number in range(100):
                await producer.send("clicks", {"page": number % 7}, key=f"user-{number % 10}")
        counts = await asyncio.gather(*(work(queue, f"worker {number}") for number in range(3)))
        print(f"{sum(counts)} clicks counted")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["localhost:8080"]))
