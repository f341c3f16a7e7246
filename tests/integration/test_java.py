"""Kafka's Java client, and Kafka's own command-line tools, on a real broker.

Where there is no Java or no Maven they are skipped; `make test-clients` runs them.
"""

import json
from pathlib import Path

import pytest

from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker
from tests.java.running import run_java, run_tool

pytestmark = pytest.mark.slow

TOOLS = "org.apache.kafka.tools."
GROUPS = f"{TOOLS}consumer.group.ConsumerGroupCommand"
CONFIGS = "kafka.admin.ConfigCommand"


def tool(broker: RunningBroker, name: str, *arguments: str, lines: str = "") -> str:
    """What one of Kafka's tools prints; it must end well."""
    full_name = name if "." in name else TOOLS + name
    ended = run_tool(full_name, "--bootstrap-server", broker.kafka, *arguments, lines=lines)
    told = ended.stdout + ended.stderr
    assert ended.returncode == 0, told
    assert "Exception" not in told, told
    return told


def test_the_java_client_does_all_that_it_can(broker: RunningBroker) -> None:
    walked = run_java("clients/Walk.java", broker.kafka)

    told = walked.stdout.splitlines()
    assert told == ["classic ok", "consumer ok", "transactions ok", "share ok", "admin ok"], walked.stderr


def test_topics_are_made_shown_changed_and_emptied(broker: RunningBroker, tmp_path: Path) -> None:
    tool(broker, "TopicCommand", "--create", "--topic", "made", "--partitions", "2", "--config", "flush.ms=9")
    shown = tool(broker, "TopicCommand", "--describe", "--topic", "made")
    about = ("--entity-type", "topics", "--entity-name", "made")
    tool(broker, CONFIGS, "--alter", *about, "--add-config", "retention.ms=3600000,segment.jitter.ms=5")
    settings = tool(broker, CONFIGS, "--describe", *about)
    tool(broker, "ConsoleProducer", "--topic", "made", lines="1\n2\n3\n")
    before = tool(broker, "GetOffsetShell", "--topic", "made")
    ends = {int(line.split(":")[1]): int(line.split(":")[2]) for line in before.split()}
    wanted = tmp_path / "delete.json"
    partitions = [{"topic": "made", "partition": p, "offset": end} for p, end in ends.items()]
    wanted.write_text(json.dumps({"partitions": partitions, "version": 1}))
    tool(broker, "DeleteRecordsCommand", "--offset-json-file", str(wanted))
    earliest = tool(broker, "GetOffsetShell", "--topic", "made", "--time", "-2")
    folders = tool(broker, "LogDirsCommand", "--describe", "--topic-list", "made")

    assert "PartitionCount: 2" in shown and "flush.ms=9" in shown
    assert "retention.ms=3600000" in settings and "segment.jitter.ms=5" in settings
    assert sum(ends.values()) == 3
    assert sorted(earliest.split()) == sorted(before.split())
    assert '"partition":"made-0"' in folders


def test_groups_read_and_are_shown_and_reset(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "read", partitions=1)
    tool(broker, "ConsoleProducer", "--topic", "read", lines="a\nb\nc\n")
    for protocol in ("classic", "consumer"):
        asked = ("--topic", "read", "--from-beginning", "--max-messages", "3", "--timeout-ms", "30000")
        about = ("--group", protocol, "--consumer-property", f"group.protocol={protocol}")
        printed = tool(broker, f"{TOOLS}consumer.ConsoleConsumer", *asked, *about)
        described = tool(broker, GROUPS, "--describe", "--group", protocol)
        reset = tool(
            *(broker, GROUPS, "--group", protocol, "--reset-offsets"),
            *("--to-earliest", "--topic", "read", "--execute"),
        )

        assert printed.split()[:3] == ["a", "b", "c"]
        rows = [line.split()[:6] for line in described.splitlines()]
        assert [protocol, "read", "0", "3", "3", "0"] in rows, described
        assert reset.split()[-4:] == [protocol, "read", "0", "0"], reset
    listed = tool(broker, "GroupsCommand", "--list")
    assert {"Classic", "Consumer"} <= set(listed.split())


def test_share_groups_are_set_read_and_shown(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "shared", partitions=1)
    tool(broker, "ConsoleProducer", "--topic", "shared", lines="a\nb\nc\n")
    about = ("--entity-type", "groups", "--entity-name", "sharers")
    tool(broker, CONFIGS, "--alter", *about, "--add-config", "share.auto.offset.reset=earliest")
    settings = tool(broker, CONFIGS, "--describe", *about)
    printed = tool(
        *(broker, f"{TOOLS}consumer.ConsoleShareConsumer", "--topic", "shared", "--group", "sharers"),
        *("--max-messages", "3", "--timeout-ms", "30000"),
    )
    state = tool(
        broker, f"{TOOLS}consumer.group.ShareGroupCommand", "--describe", "--group", "sharers", "--state"
    )

    offsets = tool(broker, f"{TOOLS}consumer.group.ShareGroupCommand", "--describe", "--group", "sharers")

    assert "share.auto.offset.reset=earliest" in settings
    assert ["sharers", "shared", "0", "3"] in [line.split()[:4] for line in offsets.splitlines()], offsets
    assert printed.split()[:3] == ["a", "b", "c"]
    assert "Empty" in state


def test_the_rest_of_the_tools_end_well(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "loaded", partitions=1)
    load = run_tool(
        *(f"{TOOLS}ProducerPerformance", "--topic", "loaded", "--num-records", "1000"),
        *("--record-size", "100", "--throughput", "-1", "--producer-props"),
        *(f"bootstrap.servers={broker.kafka}", "acks=all"),
    )

    assert "1000 records sent" in load.stdout, load.stderr
    assert "TransactionalId" in tool(broker, "TransactionsCommand", "list")
    assert "LeaderId:" in tool(broker, "MetadataQuorumCommand", "describe", "--status")
    assert "Produce(0): 0 to 13" in tool(broker, "BrokerApiVersionsCommand")
    tool(broker, "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
