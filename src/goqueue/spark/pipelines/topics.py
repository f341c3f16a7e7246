"""What a pipeline asks a broker about its topics: are they there, and, for those it writes to, make them."""

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

import msgspec

from goqueue.client.connection import Client, Refused
from goqueue.client.log import Which, extents
from goqueue.model.errors import TopicExists, TopicNotFound
from goqueue.spark.pipelines.spec import Pipeline
from goqueue.spark.pipelines.yaml_nodes import Problem
from goqueue.spark.sink.options import sink_options
from goqueue.spark.source.options import source_options

_TIMEOUT_MS = 5_000


def missing_topics(pipeline: Pipeline) -> list[Problem]:
    """The topics of the source that do not exist; Unavailable when the broker cannot be asked."""
    options = replace(source_options(pipeline.source.options, is_streaming=True), retry_for_ms=0)
    client = options.connect()
    problems = []
    try:
        for topic in options.which.topics:
            try:
                extents(client, Which(topics=(topic,)))
            except Refused as refused:
                if refused.code != TopicNotFound.code:
                    raise
                problems.append(Problem(pipeline.source.position, f"topic {topic} does not exist"))
    finally:
        client.close()
    return problems


def ensure_topic(options: Mapping[str, str]) -> None:
    """Make the topic of a sink if there is none, with as many partitions as the broker sees fit."""
    given = sink_options(options, is_streaming=True)
    # The driver looks after all pipelines in turn: one broker that does not answer must not hold it up.
    sink = replace(given, timeout_ms=min(given.timeout_ms, _TIMEOUT_MS))
    assert sink.topic is not None, "a sink for a topic names none"
    client = sink.connect_briefly()
    try:
        if not _exists(client, sink.topic):
            client.request("POST", "/topics", body=msgspec.json.encode({"name": sink.topic}))
    except Refused as refused:
        # Somebody was quicker: then it is there.
        if refused.code != TopicExists.code:
            raise
    finally:
        client.close()


def _exists(client: Client, topic: str) -> bool:
    try:
        client.request("GET", f"/topics/{quote(topic, safe='')}")
    except Refused as refused:
        if refused.code != TopicNotFound.code:
            raise
        return False
    return True
