"""A real broker under schemas of an enemy: it answers, stops when told to, and leaves no process behind."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from tests.integration.running_broker import RunningBroker
from tests.unit.broker.schemas.test_stalls import doubling

pytestmark = pytest.mark.slow
SETTINGS = {"goqueue.schema.validation": "full"}
LONG = ("--workshop-job-limit-ms=600000", "--schemas-check-limit-ms=600000")
"""Nothing but what the test does ends a job."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    started = RunningBroker(tmp_path / "data", *LONG).start()
    yield started
    started.kill()


def helpers(broker: RunningBroker) -> list[psutil.Process]:
    return psutil.Process(broker.process.pid).children()


def attack(broker: RunningBroker, pool: ThreadPoolExecutor) -> "Future[httpx.Response]":
    """Send one message that takes a helper process as long as it is let; return when it is at work."""
    with httpx.Client(base_url=broker.http) as client:
        client.post("/topics", json={"name": "orders", "settings": SETTINGS}).raise_for_status()
        body = {"schema": doubling(), "schemaType": "JSON"}
        client.post("/schemas/subjects/orders-value/versions", json=body).raise_for_status()
    message = {"messages": [{"value": "1"}]}
    reply = pool.submit(httpx.post, f"{broker.http}/topics/orders/messages", json=message, timeout=60)
    until(lambda: any(helper.cpu_times().user > 1 for helper in helpers(broker)))
    return reply


def until(condition: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def test_a_broker_that_is_told_to_stop_does_not_wait_for_a_job(broker: RunningBroker) -> None:
    with ThreadPoolExecutor() as pool:
        reply = attack(broker, pool)
        [helper] = helpers(broker)

        assert broker.stop() == 0

        assert not helper.is_running()
        assert reply.result().json()["code"] == "shutting_down"


def test_a_broker_that_is_killed_leaves_no_helper_process(broker: RunningBroker) -> None:
    with ThreadPoolExecutor() as pool:
        reply = attack(broker, pool)
        [helper] = helpers(broker)

        broker.kill()

        until(lambda: not helper.is_running() or helper.status() == psutil.STATUS_ZOMBIE)
        assert isinstance(reply.exception(), httpx.HTTPError)


def test_a_helper_process_that_is_killed_costs_one_answer(broker: RunningBroker) -> None:
    with ThreadPoolExecutor() as pool:
        reply = attack(broker, pool)
        [helper] = helpers(broker)

        helper.kill()

        assert reply.result().status_code == 503
        assert reply.result().json()["code"] == "job_lost"
        body = {"schema": json.dumps({"type": "string"}), "schemaType": "JSON"}
        answer = httpx.post(f"{broker.http}/schemas/subjects/mine/versions", json=body, timeout=30)
        assert answer.status_code == 200
    assert broker.stop() == 0


def test_the_loop_goes_on_while_a_job_runs(broker: RunningBroker) -> None:
    with ThreadPoolExecutor() as pool:
        attack(broker, pool)
        begun_s = time.process_time()

        answers = [httpx.get(f"{broker.http}/livez", timeout=5).status_code for _ in range(20)]

        assert answers == [200] * 20
        assert time.process_time() - begun_s < 10
        broker.send(signal.SIGTERM)
        assert broker.exit_code() == 0
