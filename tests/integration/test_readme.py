"""Every command of the README and of the page on HTTP is run against a live broker, and answers as they say.

A block of shell or Python is run; a block of text right behind it is what it must print. The blocks that
call make are left out: this suite is what `make test` runs, and the broker stands for `make run`.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
KAFKA, HTTP = "127.0.0.1:9092", "http://127.0.0.1:8080"
_BLOCK = re.compile(r"^```(?P<language>sh|python|text)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_A_TIME = "2026-01-31T12:00:00.000Z"


class Example(NamedTuple):
    language: str
    body: str
    expected: str


def examples(page: str = "README.md") -> list[Example]:
    """The blocks of a page that do something, each with what it is said to print."""
    blocks = [(match["language"], match["body"]) for match in _BLOCK.finditer((ROOT / page).read_text())]
    following = [*blocks[1:], ("", "")]
    return [
        Example(language, body, shown if kind == "text" else "")
        for (language, body), (kind, shown) in zip(blocks, following, strict=True)
        if language != "text" and not body.startswith("make ")
    ]


def test_the_readme_shows_kcat_then_python_then_curl_then_its_own_client() -> None:
    assert [example.language for example in examples()[:4]] == ["sh", "python", "sh", "python"]
    with_kcat, _, with_curl, _ = examples()[:4]
    assert "kcat" in with_kcat.body
    assert "curl" in with_curl.body


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_the_commands_with_kcat_print_what_the_readme_says(broker: RunningBroker) -> None:
    with_kcat = examples()[0]

    assert _printed(with_kcat, broker) == with_kcat.expected


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_with_python_and_curl_go_on_from_there(broker: RunningBroker) -> None:
    _publish_as_kcat_would(broker)
    _, with_python, with_curl = examples()[:3]

    assert _printed(with_python, broker) == with_python.expected
    answer = _printed(with_curl, broker)
    assert '"hello from Python"' in answer
    assert '"hello from curl"' in answer
    assert '"world"' not in answer


def test_the_client_of_the_house_prints_what_the_readme_says(broker: RunningBroker) -> None:
    with_client = examples()[3]

    assert "goqueue.client" in with_client.body
    assert _printed(with_client, broker) == with_client.expected


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_page_on_plain_http_shows_what_curl_prints(broker: RunningBroker) -> None:
    shown = examples("docs/http.md")

    assert len(shown) == 6
    for example in shown:
        assert _TIME.sub(_A_TIME, _printed(example, broker)) == example.expected


def test_the_readme_shows_what_the_broker_prints(broker: RunningBroker) -> None:
    printed = broker.printed.replace(broker.kafka, KAFKA).replace(
        broker.http.removeprefix("http://"), "127.0.0.1:8080"
    )

    assert f"```text\n{printed}```" in (ROOT / "README.md").read_text()


def test_every_page_the_readme_points_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())

    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def _publish_as_kcat_would(broker: RunningBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.kafka})
    for value in ("hello", "world"):
        producer.produce("greetings", value, partition=0)
    assert producer.flush(30) == 0


def _printed(example: Example, broker: RunningBroker) -> str:
    body = example.body.replace(KAFKA, broker.kafka).replace(HTTP, broker.http)
    command = [sys.executable, "-c", body] if example.language == "python" else ["sh", "-ec", body]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
