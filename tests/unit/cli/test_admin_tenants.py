"""`goqueue-admin tenant`, `quota` and `usage`, typed to a broker as its operator would."""

from itertools import count

import pytest
from typer.testing import CliRunner

from goqueue.cli.admin import app
from goqueue.cli.messages.lines import BATCH_COUNT
from goqueue.cli.operators.usage import level_of
from goqueue.cli.parts.exit_codes import ExitCode, WrongCommand
from goqueue.cli.parts.values import parse_size
from goqueue.client import GoQueue
from goqueue.client.calls.tenants import Quotas, Tenant, TenantStats, TenantUsage
from tests.doors.http.running_door import RunningDoor
from tests.unit.cli.command_line import CommandLine

_numbers = count(1)


@pytest.fixture
def admin(door: RunningDoor) -> CommandLine:
    return CommandLine(door.url, app)


@pytest.fixture
def tenant(admin: CommandLine) -> str:
    """A tenant of this test alone."""
    name = f"tenant-{next(_numbers)}"
    assert admin.printed("tenant", "create", name, "--name", "Some Body").startswith("✓")
    return name


def test_a_tenant_is_created_with_what_was_said(admin: CommandLine) -> None:
    created = admin.told(
        Tenant,
        *("tenant", "create", "gold-one", "--name", "Gold", "--description", "the best"),
        *("--publish-rate", "0", "--consume-rate", "7", "--max-storage", "2gb", "--max-topics", "3"),
        *("--max-message-size", "64KB", "--meta", "plan=gold", "--meta", "since=2026"),
    )

    assert (created.id, created.name, created.description) == ("gold-one", "Gold", "the best")
    quotas = created.quotas
    assert (quotas.publish_rate_limit, quotas.consume_rate_limit, quotas.max_topics) == (0, 7, 3)
    assert (quotas.max_storage_bytes, quotas.max_message_size_bytes) == (2 * 1024**3, 64 * 1024)
    assert quotas.max_consumer_groups == 50
    assert created.metadata == {"plan": "gold", "since": "2026"}
    assert admin.told_alike(Tenant, "tenant", "get", "gold-one") == created
    assert "plan      gold" in admin.printed("tenant", "get", "gold-one")


def test_the_list_tells_what_tenants_hold_and_can_be_narrowed(
    admin: CommandLine, queue: GoQueue, tenant: str
) -> None:
    queue.topics.create(f"{tenant}.orders", partitions=1)
    headings, system, *_ = admin.rows("tenant", "list")
    assert headings == ["ID", "NAME", "STATUS", "TOPICS", "STORAGE"]
    assert system[:3] == ["__system", "System", "active"] and int(system[3]) > 0
    [row] = [row for row in admin.rows("tenant", "list") if row[0] == tenant]
    assert row == [tenant, "Some", "Body", "active", "1", "0", "B"]

    suspended = admin.told(Tenant, "tenant", "suspend", tenant, "--reason", "the bill")

    assert (suspended.status, suspended.suspend_reason) == ("suspended", "the bill")
    assert [row[0] for row in admin.rows("tenant", "list", "--status", "suspended")] == ["ID", tenant]
    assert "is active" in admin.printed("tenant", "activate", tenant)
    assert "is disabled" in admin.printed("tenant", "disable", tenant)
    assert tenant not in admin.printed("tenant", "list", "--status", "active")


def test_a_tenant_is_changed_and_deleted(admin: CommandLine, queue: GoQueue, tenant: str) -> None:
    changed = admin.told(Tenant, "tenant", "update", tenant, "--name", "New", "--meta", "a=b")
    assert (changed.name, changed.metadata) == ("New", {"a": "b"})
    queue.topics.create(f"{tenant}.orders", partitions=1)

    refused = admin.ends(ExitCode.FAILED, "tenant", "delete", tenant).stderr

    assert refused.count("has 1 topics") == 1, "errors are told once"
    told = admin.told(dict[str, object], "tenant", "delete", tenant, "--force")
    assert told == {"tenant_id": tenant, "deleted": True}
    assert "tenant list" in admin.ends(ExitCode.NOT_FOUND, "tenant", "get", tenant).stderr


def test_quotas_go_back_to_the_defaults(admin: CommandLine, tenant: str) -> None:
    defaults = admin.told(Quotas, "quota", "get", tenant)
    admin.printed("quota", "set", tenant, "--max-topics", "5", "--max-retention", "2d")

    assert admin.told(Quotas, "quota", "reset", tenant) == defaults
    assert admin.told(Quotas, "quota", "get", tenant) == defaults


def test_setting_some_quotas_leaves_the_others_as_they_are(admin: CommandLine, tenant: str) -> None:
    admin.printed("quota", "set", tenant, "--max-topics", "5", "--max-retention", "2d")
    told = admin.told(
        Quotas,
        *("quota", "set", tenant, "--publish-rate", "9", "--publish-bytes-rate", "1MB"),
        *("--consume-rate", "-1", "--consume-bytes-rate", "0", "--max-storage", "1TB"),
        *("--max-partitions", "8", "--max-partitions-per-topic", "4", "--max-message-size", "1000"),
        *("--max-delay", "90m", "--max-connections", "1", "--max-consumer-groups", "2"),
        *("--consumers-per-group", "3"),
    )

    assert told == Quotas(
        publish_rate_limit=9,
        consume_rate_limit=5_000,
        publish_bytes_rate_limit=1024**2,
        consume_bytes_rate_limit=0,
        max_storage_bytes=1024**4,
        max_topics=5,
        max_partitions_per_topic=4,
        max_total_partitions=8,
        max_message_size_bytes=1_000,
        max_retention_hours=48,
        max_delay_hours=1.5,
        max_connections=1,
        max_consumer_groups=2,
        max_consumers_per_group=3,
    )
    assert admin.told_alike(Quotas, "quota", "get", tenant) == told
    table = admin.printed("quota", "get", tenant)
    for line in (
        "Rate limits",
        "Consume bytes: no limit",
        "Retention:    48 h",
        "Storage:              1.0 TB",
    ):
        assert line in table
    assert admin.told(Quotas, "quota", "set", tenant, "--max-retention", "0").max_retention_hours == 0


def test_usage_is_shown_in_numbers_and_percents_and_can_be_reset(
    admin: CommandLine, queue: GoQueue, tenant: str
) -> None:
    admin.printed("quota", "set", tenant, "--max-topics", "2", "--max-partitions", "20")
    queue.topics.create(f"{tenant}.orders", partitions=1)
    queue.publish(f"{tenant}.orders", b"hello")

    usage = admin.told(TenantUsage, "usage", "show", tenant)
    assert (usage.total_messages_published, usage.topic_count) == (1, 1)
    assert "Messages published: 1" in admin.printed("usage", "show", tenant)
    stats = admin.told_alike(TenantStats, "usage", "stats", tenant)
    assert (stats.topic_usage_percent, stats.partition_usage_percent) == (50.0, 5.0)
    assert ["topics", "50.0", "ok"] in admin.rows("usage", "stats", tenant)
    assert admin.rows("usage", "topics", tenant) == [["NAME"], [f"{tenant}.orders"]]
    assert "has no group" in admin.printed("usage", "groups", tenant)
    reset = admin.told(TenantUsage, "usage", "reset", tenant)
    assert (reset.total_messages_published, reset.topic_count) == (0, 1)
    assert "counted from 0" in admin.printed("usage", "reset", tenant)


@pytest.mark.parametrize(
    "words",
    [
        ("tenant", "create", "x"),
        ("tenant", "create", "acme", "--name", "x", "--meta", "novalue"),
        ("tenant", "create", "acme", "--name", "x", "--max-storage", "much"),
        ("tenant", "suspend", "acme"),
        ("tenant", "update", "acme"),
        ("tenant", "list", "--status", "gone"),
        ("quota", "set", "acme"),
        ("quota", "set", "acme", "--publish-rate", "-2"),
        ("quota", "set", "acme", "--max-retention", "soon"),
    ],
)
def test_a_wrong_command_line_ends_with_2(admin: CommandLine, words: tuple[str, ...]) -> None:
    admin.ends(ExitCode.WRONG_COMMAND, *words)


def test_a_topic_of_a_tenant_is_kept_no_longer_than_its_quota_unless_that_was_asked_for(
    admin: CommandLine, queue: GoQueue, tenant: str
) -> None:
    admin.printed("quota", "set", tenant, "--max-retention", "2h")
    cli = CommandLine(admin.url)

    cli.printed("topic", "create", f"{tenant}.short")
    cli.ends(ExitCode.FAILED, "topic", "create", f"{tenant}.long", "-r", "3")

    assert queue.topics.describe(f"{tenant}.short").settings["retention.ms"] == "7200000"


def test_a_file_goes_as_fast_as_its_tenant_may(admin: CommandLine, queue: GoQueue, tenant: str) -> None:
    queue.topics.create(f"{tenant}.slow", partitions=1)
    admin.printed("quota", "set", tenant, "--publish-rate", "9000")
    lines = "x\n" * (BATCH_COUNT + 200)

    # The first request takes more than a second's worth, so the second has to wait.
    told = CommandLine(admin.url).printed("produce", f"{tenant}.slow", given=lines)

    assert told.startswith("✓ 10,200 messages to ")


def test_the_systems_tenant_cannot_be_changed(admin: CommandLine) -> None:
    for words in (("tenant", "disable"), ("usage", "reset"), ("tenant", "delete", "--force")):
        assert "broker's own" in admin.ends(ExitCode.FAILED, *words, "__system").stderr
    admin.ends(ExitCode.FAILED, "tenant", "create", "Not An Id", "--name", "x")


def test_no_broker_no_answer() -> None:
    result = CliRunner().invoke(app, ["-s", "http://127.0.0.1:1", "tenant", "list"])

    assert result.exit_code == ExitCode.UNREACHABLE
    assert result.stderr.count("Error") == 1


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("512", 512),
        ("3B", 3),
        ("64kb", 65_536),
        ("2 GB", 2 << 30),
        ("1TB", 1 << 40),
        ("3MiB", 3 << 20),
    ],
)
def test_sizes_are_in_steps_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "KB", "1.5GB", "-1", "10PB", "1 000"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(WrongCommand):
        parse_size(text)


def test_percents_have_levels() -> None:
    assert [level_of(percent) for percent in (0, 50, 75, 89.9, 90, 130)] == [
        "low",
        "ok",
        "warning",
        "warning",
        "critical",
        "critical",
    ]
