"""The client while its broker is killed with -9 and comes back; its examples and its page, as they are."""

import asyncio
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from goqueue.client import AsyncGoQueue, Fenced, GoQueue, Placed
from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MESSAGES = 4_000
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One broker for all of them: whoever kills it starts it again."""
    running = RunningBroker(tmp_path_factory.mktemp("client") / "data")
    yield running.start()
    running.kill()


def test_a_producer_has_each_message_stored_once_whatever_is_killed(broker: RunningBroker) -> None:
    with GoQueue(broker.http) as queue:
        queue.topics.create("load", partitions=2)
        with queue.producer(linger_ms=0, buffer_count=500) as producer:
            futures: list[Future[Placed]] = []
            for number in range(MESSAGES):
                futures.append(producer.send("load", f"{number}", key=f"{number % 5}"))
                if number in (1_000, 3_000):
                    broker.kill()
                    broker.start()
        assert [future.exception() for future in futures if future.exception()] == []

        found = [message for partition in (0, 1) for message in queue.read("load", partition, limit=1000)]
        by_place = {(message.partition, message.offset): message.text for message in found}
        assert Counter(message.text for message in found) == Counter(map(str, range(MESSAGES)))
        for number, future in enumerate(futures):
            placed = future.result()
            assert by_place[placed.partition, placed.offset] == f"{number}"
        for key in map(str, range(5)):
            numbers = [int(message.text) for message in found if message.key == key.encode()]
            assert numbers == sorted(numbers)


def test_an_asynchronous_producer_does_so_too(broker: RunningBroker) -> None:
    async def story() -> None:
        async with AsyncGoQueue(broker.http) as queue:
            await queue.topics.create("awaited-load", partitions=1)
            async with queue.producer(linger_ms=0) as producer:
                futures = [await producer.send("awaited-load", f"{number}") for number in range(500)]
                await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(broker.start)
                futures += [await producer.send("awaited-load", f"{number}") for number in range(500, 1_000)]
            offsets = [(await future).offset for future in futures]
            stored = [message.text async for message in queue.read("awaited-load", limit=1000)]

        assert stored == [f"{number}" for number in range(1_000)]
        assert offsets == list(range(1_000))

    asyncio.run(story())


def test_a_consumer_goes_on_and_what_it_acknowledged_does_not_come_again(broker: RunningBroker) -> None:
    with GoQueue(broker.http) as queue:
        queue.topics.create("work", partitions=2)
        with queue.producer() as producer:
            for number in range(100):
                producer.send("work", f"{number}")
        acked: list[str] = []
        seen: Counter[str] = Counter()
        with queue.consumer("work", group="workers", visibility=1, idle_timeout=1.2) as consumer:
            for message in consumer:
                assert message.text not in acked, "what was acknowledged came again"
                seen[message.text] += 1
                try:
                    message.ack(wait=True)
                except Fenced:
                    continue  # its lease ended while the broker was away, so it comes again
                acked.append(message.text)
                if len(acked) == 45:
                    broker.kill()
                    broker.start()

        assert set(seen) == set(map(str, range(100)))
        assert queue.groups.lag("workers").total == 0


def test_what_a_consumer_had_when_its_process_was_killed_is_delivered_again(broker: RunningBroker) -> None:
    with GoQueue(broker.http) as queue:
        queue.topics.create("precious", partitions=1)
        queue.publish("precious", "precious")
        victim = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys; from goqueue.client import GoQueue\n"
                f"consumer = GoQueue({broker.http!r}).consumer('precious', group='g', visibility=0.5)\n"
                "[message] = consumer.poll(wait=10); print(message.text, flush=True); sys.stdin.read()",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with victim:
            assert victim.stdout is not None
            assert victim.stdout.readline() == "precious\n"
            victim.kill()
        with queue.consumer("precious", group="g") as consumer:
            [message] = consumer.poll(wait=10)
            assert (message.text, message.delivery_count) == ("precious", 2)
            message.ack(wait=True)


def test_every_example_runs_and_says_what_it_should(broker: RunningBroker) -> None:
    said = {
        "publish.py": "1000 messages stored in batches",
        "work_queue.py": "parcel 3 is packed, at attempt 2",
        "transaction.py": 'received {"amount":42}',
        "async_consumer.py": "100 clicks counted",
        "admin.py": "topic_not_found: topic nothing does not exist",
    }
    folder = ROOT / "examples" / "client"
    assert {path.name for path in folder.glob("*.py")} == set(said)
    # Side by side, since each waits for a while to see that there is no more to come.
    started = {
        name: subprocess.Popen(
            [sys.executable, str(folder / name), broker.http],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in said
    }
    for name, process in started.items():
        printed, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert said[name] in printed


def test_every_snippet_of_the_page_runs(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    snippets = _BLOCK.findall((ROOT / "docs" / "client.md").read_text())
    assert len(snippets) > 5
    names: dict[str, object] = {"__name__": "page"}
    threads = threading.active_count()
    for snippet in snippets:
        exec(compile(snippet.replace("localhost:8080", broker.http), "docs/client.md", "exec"), names)

    assert threading.active_count() == threads
    assert "3 left over" in capsys.readouterr().out
