"""`goqueue-cli` as its users have it: real processes, pipes, a terminal, signals."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.client import GoQueue, Outgoing
from tests.integration.running_broker import RunningBroker
from tests.integration.signals import heed_signals

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "goqueue.cli.main"]
_PATIENCE_S = 30


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    broker = RunningBroker(tmp_path_factory.mktemp("cli") / "data").start()
    with GoQueue(broker.http) as queue:
        queue.topics.create("orders", partitions=1)
        queue.publish_many("orders", [Outgoing(f"order {number}") for number in range(50)])
    yield broker
    broker.kill()


@pytest.fixture(autouse=True)
def interrupts_ignored() -> Iterator[None]:
    """As in a job that a supervisor has started: what the tests start must heed signals all the same."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def environment(broker: RunningBroker, tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(tmp_path), "GOQUEUE_SERVER": broker.http, "TERM": "xterm"}


def test_a_reader_that_has_enough_ends_it_without_a_word(environment: dict[str, str]) -> None:
    process = subprocess.Popen(
        [*COMMAND, "consume", "orders", "--follow", "--raw"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    first = process.stdout.readline()
    process.stdout.close()
    with GoQueue(environment["GOQUEUE_SERVER"]) as queue:
        queue.publish("orders", "one more")

    assert first == b"order 0\n"
    assert process.wait(_PATIENCE_S) == ExitCode.PIPE_CLOSED
    assert process.stderr.read() == b""
    process.stderr.close()


def test_messages_come_through_a_pipe_as_they_are_written_and_over_a_restart(
    broker: RunningBroker, environment: dict[str, str]
) -> None:
    follow = subprocess.Popen(
        [*COMMAND, "consume", "orders", "--follow"],
        preexec_fn=heed_signals,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    produce = subprocess.Popen(
        [*COMMAND, "produce", "orders", "-"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert produce.stdin is not None and follow.stdout is not None
    produce.stdin.write("typed by hand\n")
    produce.stdin.flush()

    # The producer is still open: what was written does not wait for more.
    with GoQueue(environment["GOQUEUE_SERVER"]) as queue:
        wait_for_value(queue, "typed by hand")
    produce.stdin.write("and again\n")
    told, _ = produce.communicate(timeout=_PATIENCE_S)
    assert "✓ 2 messages to orders" in told
    read_until(follow.stdout, "and again")
    broker.kill()
    broker.start()
    with GoQueue(broker.http) as queue:
        queue.publish("orders", "after the restart")
    read_until(follow.stdout, "after the restart")
    follow.send_signal(signal.SIGINT)
    _, complaints = follow.communicate(timeout=_PATIENCE_S)
    assert (follow.returncode, complaints) == (ExitCode.OK, "")


def read_until(lines: IO[str], text: str) -> None:
    assert any(text in line for line in lines), f"{text!r} never came"


def wait_for_value(queue: GoQueue, value: str) -> None:
    offset = 0
    while True:
        page = queue.read_page("orders", 0, offset=offset, wait=_PATIENCE_S)
        if value in [message.text for message in page.messages]:
            return
        offset = page.next_offset


def in_terminal(environment: dict[str, str], *words: str, until: bytes, typed: bytes) -> tuple[int, bytes]:
    """Run a command in a terminal and type something when it shows this; its code, and all it has shown."""
    process_id, descriptor = pty.fork()
    if process_id == 0:
        heed_signals()
        os.execve(COMMAND[0], [*COMMAND, *words], environment)
    shown = b""
    is_typed = False
    while True:
        try:
            shown += os.read(descriptor, 65_536)
        except OSError:
            # So a terminal tells that nobody is left in it.
            break
        if not is_typed and until in shown:
            os.write(descriptor, typed)
            is_typed = True
    os.close(descriptor)
    _, status = os.waitpid(process_id, 0)
    return os.waitstatus_to_exitcode(status), shown


@pytest.mark.parametrize("key", [b"q", b"\x03"])
def test_a_live_table_ends_with_a_key(environment: dict[str, str], key: bytes) -> None:
    code, shown = in_terminal(environment, "top", "-n", "60", until=b"orders", typed=key)

    assert code == ExitCode.OK
    assert b"IN/S" in shown and b"Traceback" not in shown


def test_a_delete_asks_at_the_terminal(environment: dict[str, str]) -> None:
    with GoQueue(environment["GOQUEUE_SERVER"]) as queue:
        queue.topics.create("doomed", partitions=1)
        words = ("topic", "delete", "doomed")

        unsure, _ = in_terminal(environment, *words, until=b"Type yes", typed=b"no\n")
        assert "doomed" in queue.topics.list()
        sure, shown = in_terminal(environment, *words, until=b"Type yes", typed=b"yes\n")

        assert (unsure, sure) == (ExitCode.FAILED, ExitCode.OK)
        assert "✓ topic doomed is deleted" in shown.decode()
        assert "doomed" not in queue.topics.list()
