"""Pages of the documentation that are made from code: settings, errors, metrics, what Kafka clients find.

`python -m goqueue.node.reference_pages docs` writes them; a test compares them with what the code says.
This lives in the node because only the node knows every room: the table of settings and both doors.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from goqueue.broker.topics.settings import view_settings
from goqueue.core.groups.settings import KNOWN as GROUP_SETTINGS
from goqueue.edge.http.errors import status_of
from goqueue.edge.kafka.apis import APIS
from goqueue.edge.kafka.errors import KAFKA_CODE_BY_ERROR
from goqueue.model.errors import GoQueueError, every_error
from goqueue.model.settings import GroupConfig, TopicSettings
from goqueue.node.config_table import CONFIG_VARIABLE, NOT_THE_BROKERS, SETTINGS, UNSERVED, variable_of
from goqueue.node.metrics_reference import metrics_page

_MADE = "<!-- Made from code by `make docs`; edit the code instead. -->\n"


def settings_page() -> str:
    """Every setting with its three spellings, its default and what it is for."""
    lines = [
        _MADE,
        "# Settings",
        "",
        f"A setting is taken from a flag, else from an environment variable, else from the YAML file that "
        f"`--config FILE` or `{CONFIG_VARIABLE}` names, else it has its default. All problems of a "
        "configuration are told at once, and then nothing is started. Unknown names are problems too.",
        "",
        "Sizes are bytes, or a number with `KiB`, `MiB` or `GiB` (`KB`, `MB`, `GB` mean the same). Times are "
        "whole milliseconds. Switches are `true` or `false`. `goqueue --help` shows the same table.",
        "",
        "| variable | flag | in the file | default | what it is for |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| `{setting.variable}` | `{setting.flag}` | `{setting.file_key}` | {_default(setting.default)} "
        f"| {setting.help} |"
        for setting in SETTINGS
    ]
    lines += [
        "",
        "A file, for example:",
        "",
        "```yaml",
        "broker:",
        "  datadir: /var/lib/goqueue",
        "listeners:",
        "  kafka: :9092",
        "  http: 127.0.0.1:8080",
        "log:",
        "  segment_bytes: 128MiB",
        "  retention_ms: 86400000",
        "topics:",
        "  auto_create: false",
        "```",
        "",
        "## Known, but not in this version",
        "",
        "These names belong to GoQueue, but what they ask for is not there yet. Any value other than the "
        "ones that mean off is refused: nobody should believe a door locked that is not.",
        "",
        "| variable | asks for | accepted |",
        "| --- | --- | --- |",
    ]
    lines += [
        f"| `{variable_of(unserved.name)}` | {unserved.what} "
        f"| {', '.join(_default(value) for value in sorted(unserved.off_values))} |"
        for unserved in UNSERVED
    ]
    names = ", ".join(f"`{name}`" for name in sorted(NOT_THE_BROKERS))
    lines += ["", f"Variables of the command-line tools are left alone: {names}.", ""]
    return "\n".join(lines)


def errors_page() -> str:
    """Every error code, what the caller can do, and what each door calls it."""
    lines = [
        _MADE,
        "# Errors",
        "",
        "An error has a `code` for programs, which never changes its meaning, and a text for people. Over "
        'HTTP it is `{"error": text, "status": number, "code": code}`; a Kafka client sees the Kafka code. '
        "The families say what the caller can do next.",
        "",
        "| code | family | meaning | HTTP | Kafka |",
        "| --- | --- | --- | --- | --- |",
    ]
    for family in GoQueueError.__subclasses__():
        for error in (family, *every_error(family)):
            kafka = KAFKA_CODE_BY_ERROR[error]
            lines.append(
                f"| `{error.code}` | {family.code} | {_meaning(error)} | {status_of(error).value} "
                f"| {kafka.name} ({kafka.value}) |"
            )
    lines.append("")
    return "\n".join(lines)


_TRIED = (
    "By `make test-clients`, with Kafka 4.1.0's client and tools; last run on 2026-11-16.",
    "",
    "| what | |",
    "| --- | --- |",
    "| producer: idempotent, all five codecs | passes |",
    "| consumer: `group.protocol=classic` and `consumer` | passes |",
    "| transactions: commit, abort, offsets of a group, read committed | passes |",
    "| share consumer | passes |",
    "| admin client: topics, partitions, records, groups, settings, log dirs, quorum | passes |",
    "| `kafka-topics`, `kafka-configs`, `kafka-get-offsets`, `kafka-delete-records` | passes |",
    "| `kafka-log-dirs`, `kafka-metadata-quorum`, `kafka-broker-api-versions` | passes |",
    "| `kafka-console-producer`, `-consumer`, `-share-consumer`, `kafka-producer-perf-test` | passes |",
    "| `kafka-consumer-groups` with `--reset-offsets`, `kafka-groups` | passes |",
    "| `kafka-share-groups --state`, `kafka-transactions list`, `kafka-leader-election` | passes |",
    "| `kafka-share-groups --reset-offsets`, `--delete-offsets` | not served |",
    "| Streams groups (KIP-1071), client metrics (KIP-714) | not served |",
)


def kafka_page() -> str:
    """The requests and topic settings that Kafka clients find, and what is different from Kafka."""
    lines = [
        _MADE,
        "# For Kafka clients",
        "",
        "Point a client's `bootstrap.servers` at the Kafka door (`127.0.0.1:9092` by default). Tried with "
        "librdkafka (confluent-kafka, kcat), aiokafka, kafka-python and Java.",
        "",
        "| request | versions |",
        "| --- | --- |",
    ]
    lines += [
        f"| {api.key.name.title().replace('_', '')} | {api.first_version} to {api.last_version} |"
        for api in APIS.values()
    ]
    lines += [
        "",
        "Consumer groups follow the classic protocol (`group.protocol=classic`, every client's default): "
        "eager and cooperative assignors, static members, protocol types other than `consumer`. Or the newer "
        "one (`group.protocol=consumer`, tried with librdkafka): the broker assigns (`uniform` or `range`), "
        "a partition stays with its owner until the owner lets go, topics may be subscribed to by regular "
        "expression and may come later. A group is of one protocol as long as it has members. Committed "
        "offsets are on the disk before a commit is answered; they and a group's members survive a restart. "
        "Transactions are served by both versions of their protocol; see transactions.md.",
        "",
        "What is different from Kafka:",
        "",
        "- `acks=all` waits for the disk (one fsync for all that wait), `acks=1` for the operating system.",
        "- Batches are stored as the producer built them. Only those that hold the header `goqueue-priority` "
        "(critical, high, normal, low, background, or 0 to 4) are opened: their messages are split by lane, "
        "in order. Compressed batches are opened for that only if the topic says so.",
        "- Records are checked before they are stored, as far as it costs next to nothing: the first of each "
        "batch, and of batches of 768 KiB and more all that lie alike and have no headers. "
        "`goqueue.inspect.records` has every record checked, `goqueue.inspect.compressed` those of "
        "compressed batches. What is not sound is refused with INVALID_RECORD. A batch that slipped through, "
        "or was stored by an older version, is handed out as it is, and it is the client that stops: seek to "
        "the first offset behind the batch, or delete records up to there. A read over HTTP says where it is "
        "and how messages go on.",
        "- A request without batches has at most 8 MiB and 50,000 items in its arrays; a member says at most "
        "1 MiB of itself when it joins. What is asked for twice in one request is told once.",
        "- Record formats before v2 (Kafka 0.11) are refused with UNSUPPORTED_FOR_MESSAGE_FORMAT.",
        "- A new idempotent producer starts at sequence 0 in each partition; any other number is refused.",
        "- Timestamps more than 292 years from 1970 (microseconds taken for milliseconds) are refused.",
        "- There are no fetch sessions; every reply says so, and clients name their partitions each time.",
        "- Names that begin with `__` belong to the broker.",
        "- Topics and groups of a tenant have quotas, users and client ids too (tenants.md). Who goes too "
        "fast is told by `throttle_time_ms`, and not served for that time.",
        "- Committed offsets of a group without members expire after 7 days (settings.md). Those of a topic "
        "that was deleted do not count for a new one of the same name. A group with neither members nor "
        "offsets is forgotten at once.",
        "- Regular expressions in subscriptions match whole names and cannot take for ever: at most three "
        "parts repeat, none inside another; nothing refers back or looks around.",
        "- Groups of HTTP members are listed and described to Kafka's tools as groups of type `consumer`.",
        "- Share groups begin with what comes and give a message out five times, as Kafka's do; groups of "
        "HTTP begin with the first message there is, and the topic says how often. Unlike Kafka's, share "
        "groups read what is committed alone, wait between deliveries of a message whose lock ran out "
        "(`goqueue.retry.backoff.ms`), and what was given out too often goes to the dead letters. A "
        "lock lasts as long as the group's setting says, or else the topic's `goqueue.visibility.ms`.",
        "- A topic's `compression.type` is kept by everything that comes from outside, at one level for each "
        "codec; a batch that would only grow stays uncompressed. What the broker moves by itself (delayed "
        "messages, dead letters, quarantine) is stored uncompressed.",
        "- `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms` bound nothing unless they "
        "are set (Kafka: an hour ahead). Of a batch that comes again the append time is not told.",
        "- A client that disconnects while it waits to join a group is not waited for.",
        "- An AdminClient of librdkafka 2.16 that outlives a restart of the only broker was seen to have its "
        "requests about groups time out. A new one works, and so does `metadata.recovery.strategy=none`.",
        "",
        "## Settings of a topic",
        "",
        "| name | default | what it is for |",
        "| --- | --- | --- |",
    ]
    defaults = TopicSettings()
    lines += [
        f"| `{view.name}` | `{view.default}` | {view.documentation} |"
        for view in view_settings(defaults, defaults=defaults)
    ]
    lines += ["", "## Tried with Java", "", *_TRIED]
    lines += [
        "",
        "## Settings of a group",
        "",
        "Of Kafka's resource GROUP (`kafka-configs --entity-type groups`); a group need not be there yet. "
        "`consumer.*` is for `group.protocol=consumer`, `share.*` for share groups.",
        "",
        "| name | default | what it is for |",
        "| --- | --- | --- |",
    ]
    lines += [
        f"| `{name}` | `{known.default(GroupConfig())}` | {known.documentation} |"
        for name, known in GROUP_SETTINGS.items()
    ]
    return "\n".join([*lines, ""])


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "errors.md": errors_page,
    "kafka.md": kafka_page,
    "metrics.md": lambda: f"{_MADE}\n{metrics_page()}",
}


def write_pages(folder: Path) -> None:
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


def _meaning(error: type[GoQueueError]) -> str:
    assert error.__doc__, f"{error.__name__} must say what it means: its docstring is its documentation"
    return " ".join(error.__doc__.split())


def _default(text: str) -> str:
    return f"`{text}`" if text else "(empty)"


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
