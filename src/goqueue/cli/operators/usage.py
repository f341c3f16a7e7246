"""`goqueue-admin usage`: what tenants have moved, and what they hold."""

from typing import Annotated

import typer

from goqueue.cli.operators.call import connect
from goqueue.cli.operators.quotas import TenantId
from goqueue.cli.parts.frame import Output, invocation, noun
from goqueue.cli.parts.output import Columns, Row, as_size, show_done, show_fields, show_rows, show_value

app = noun("See what tenants have moved, and what they hold.")

_FIELDS: Columns = {
    "Tenant": "tenant_id",
    "Messages published": "total_messages_published",
    "Bytes published": as_size("total_bytes_published"),
    "Messages consumed": "total_messages_consumed",
    "Bytes consumed": as_size("total_bytes_consumed"),
    "Storage": as_size("storage_bytes"),
    "Topics": "topic_count",
    "Partitions": "partition_count",
    "Consumer groups": "consumer_group_count",
    "Connections": "connection_count",
    "Refused by quotas": lambda row: (
        ", ".join(f"{name} {count}" for name, count in _refusals(row)) or "nothing"
    ),
    "As of": "last_updated",
}
_HOURS: Columns = {
    "HOUR": "start",
    "PUBLISHED": "messages_published",
    "BYTES IN": as_size("bytes_published"),
    "CONSUMED": "messages_consumed",
    "BYTES OUT": as_size("bytes_consumed"),
    "STORAGE": as_size("storage_bytes"),
}
_LEVELS = ((90, "critical"), (75, "warning"), (50, "ok"))


@app.command("show")
def show(context: typer.Context, tenant_id: TenantId) -> None:
    """Show what a tenant has moved, and what it holds."""
    with connect(context) as queue:
        usage = queue.tenants.usage(tenant_id)
    show_fields(invocation(context).output, usage, _FIELDS)


@app.command("hours")
def hours(
    context: typer.Context,
    tenant_id: TenantId,
    back: Annotated[int, typer.Option("--hours", min=1, help="So many hours back.")] = 24,
) -> None:
    """Show what a tenant has used hour by hour."""
    with connect(context) as queue:
        told = queue.tenants.usage_hours(tenant_id, hours=back)
    show_rows(invocation(context).output, told, _HOURS, empty="the tenant has used nothing")


@app.command("stats")
def stats(context: typer.Context, tenant_id: TenantId) -> None:
    """Show how much of its quotas a tenant holds."""
    with connect(context) as queue:
        told = queue.tenants.stats(tenant_id)
    output = invocation(context).output
    if output is not Output.TABLE:
        show_value(output, told)
        return
    percents = {
        "storage": told.storage_usage_percent,
        "topics": told.topic_usage_percent,
        "partitions": told.partition_usage_percent,
        "consumer groups": told.consumer_group_usage_percent,
        "connections": told.connection_usage_percent,
    }
    rows = [
        {"resource": resource, "percent": f"{percent:.1f}", "status": level_of(percent)}
        for resource, percent in percents.items()
    ]
    show_rows(output, rows, {"RESOURCE": "resource", "USAGE %": "percent", "STATUS": "status"})


@app.command("topics")
def topics(context: typer.Context, tenant_id: TenantId) -> None:
    """List the topics of a tenant."""
    with connect(context) as queue:
        rows = [{"name": name} for name in queue.tenants.topics(tenant_id)]
    show_rows(invocation(context).output, rows, {"NAME": "name"}, empty="the tenant has no topic")


@app.command("groups")
def groups(context: typer.Context, tenant_id: TenantId) -> None:
    """List the consumer groups of a tenant."""
    with connect(context) as queue:
        rows = [{"group_id": name} for name in queue.tenants.groups(tenant_id)]
    show_rows(invocation(context).output, rows, {"GROUP ID": "group_id"}, empty="the tenant has no group")


@app.command("reset")
def reset(context: typer.Context, tenant_id: TenantId) -> None:
    """Begin to count from 0 what a tenant moves."""
    with connect(context) as queue:
        usage = queue.tenants.reset_usage(tenant_id)
    show_done(invocation(context).output, f"the usage of tenant {tenant_id} is counted from 0", usage)


def _refusals(row: Row) -> list[tuple[str, int]]:
    violations = row["quota_violations"]
    return sorted(violations.items()) if isinstance(violations, dict) else []


def level_of(percent: float) -> str:
    """How worried to be about a quota of which so much is used."""
    return next((level for least, level in _LEVELS if percent >= least), "low")
