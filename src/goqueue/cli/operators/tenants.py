"""`goqueue-admin tenant`: who owns which topics and groups, and whether they may work."""

from enum import StrEnum
from typing import Annotated

import typer

from goqueue.cli.operators.call import connect
from goqueue.cli.operators.quotas import (
    ConsumeRate,
    MaxMessageSize,
    MaxStorage,
    MaxTopics,
    PublishRate,
    TenantId,
    limits_of,
)
from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.cli.parts.frame import Output, invocation, noun
from goqueue.cli.parts.output import Columns, Row, as_size, fields_of, show_done, show_fields, show_rows
from goqueue.cli.parts.values import pairs
from goqueue.client.calls.tenants import Tenant

app = noun("Give topics and groups to tenants, and say which tenants may work.")

Description = Annotated[str | None, typer.Option("--description", help="What the tenant is for.")]
Meta = Annotated[list[str] | None, typer.Option("--meta", help="NAME=VALUE to keep with it; repeatable.")]
_COLUMNS: Columns = {
    "ID": "id",
    "NAME": "name",
    "STATUS": "status",
    "TOPICS": "topic_count",
    "STORAGE": as_size("storage_bytes"),
}
_FIELDS: Columns = {
    "ID": "id",
    "Name": "name",
    "Status": "status",
    "Reason": "suspend_reason",
    "Description": "description",
    "Created": "created_at",
    "Updated": "updated_at",
}


class Status(StrEnum):
    """Whether a tenant may work."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    DISABLED = "disabled"


@app.command("create")
def create(
    context: typer.Context,
    tenant_id: TenantId,
    name: Annotated[str, typer.Option("--name", help="What people call it.")],
    description: Description = None,
    publish_rate: PublishRate = None,
    consume_rate: ConsumeRate = None,
    max_storage: MaxStorage = None,
    max_topics: MaxTopics = None,
    max_message_size: MaxMessageSize = None,
    meta: Meta = None,
) -> None:
    """Create a tenant. Topics and groups that are called ID.… are its own, also those of old."""
    quotas = limits_of(
        publish_rate_limit=publish_rate,
        consume_rate_limit=consume_rate,
        max_storage_bytes=max_storage,
        max_topics=max_topics,
        max_message_size_bytes=max_message_size,
    )
    with connect(context) as queue:
        created = queue.tenants.create(
            name,
            tenant_id=tenant_id,
            description=description,
            quotas=quotas or None,
            metadata=dict(pairs(meta or (), what="--meta")) or None,
        )
    _show(context, created, f"tenant {created.id} is created")


@app.command("list")
def list_tenants(
    context: typer.Context,
    status: Annotated[Status | None, typer.Option("--status", help="Only those of this status.")] = None,
) -> None:
    """List the tenants, the broker's own first."""
    rows: list[Row] = []
    with connect(context) as queue:
        for tenant in queue.tenants.list(status=status):
            usage = queue.tenants.usage(tenant.id)
            held = {"topic_count": usage.topic_count, "storage_bytes": usage.storage_bytes}
            rows.append({**fields_of(tenant), **held})
    show_rows(invocation(context).output, rows, _COLUMNS, empty="there is no such tenant")


@app.command("get")
def get(context: typer.Context, tenant_id: TenantId) -> None:
    """Show a tenant."""
    with connect(context) as queue:
        tenant = queue.tenants.get(tenant_id)
    output = invocation(context).output
    show_fields(output, tenant, _FIELDS)
    if output is Output.TABLE and tenant.metadata:
        print()
        rows = [{"name": name, "value": value} for name, value in tenant.metadata.items()]
        show_rows(output, rows, {"METADATA": "name", "VALUE": "value"})


@app.command("update")
def update(
    context: typer.Context,
    tenant_id: TenantId,
    name: Annotated[str | None, typer.Option("--name", help="What people call it.")] = None,
    description: Description = None,
    meta: Meta = None,
) -> None:
    """Change what a tenant is called. --meta takes the place of all metadata there was."""
    if name is None and description is None and not meta:
        raise WrongCommand("say what to change: --name, --description or --meta")
    metadata = dict(pairs(meta, what="--meta")) if meta else None
    with connect(context) as queue:
        changed = queue.tenants.update(tenant_id, name=name, description=description, metadata=metadata)
    _show(context, changed, f"tenant {tenant_id} is changed")


@app.command("delete")
def delete(
    context: typer.Context,
    tenant_id: TenantId,
    force: Annotated[bool, typer.Option("-f", "--force", help="Although it has topics.")] = False,
) -> None:
    """Forget a tenant and its quotas. Its topics stay, and belong to nobody."""
    with connect(context) as queue:
        queue.tenants.delete(tenant_id, force=force)
    told = {"tenant_id": tenant_id, "deleted": True}
    show_done(invocation(context).output, f"tenant {tenant_id} is deleted", told)


@app.command("suspend")
def suspend(
    context: typer.Context,
    tenant_id: TenantId,
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever asks.")],
) -> None:
    """Refuse all work on a tenant's topics and groups for a while. Its data stays."""
    with connect(context) as queue:
        suspended = queue.tenants.suspend(tenant_id, reason=reason)
    _show(context, suspended, f"tenant {tenant_id} is suspended")


@app.command("activate")
def activate(context: typer.Context, tenant_id: TenantId) -> None:
    """Let a tenant work again."""
    with connect(context) as queue:
        active = queue.tenants.activate(tenant_id)
    _show(context, active, f"tenant {tenant_id} is active")


@app.command("disable")
def disable(context: typer.Context, tenant_id: TenantId) -> None:
    """Refuse all work on a tenant's topics and groups for good. Its data stays."""
    with connect(context) as queue:
        disabled = queue.tenants.disable(tenant_id)
    _show(context, disabled, f"tenant {tenant_id} is disabled")


def _show(context: typer.Context, tenant: Tenant, text: str) -> None:
    show_done(invocation(context).output, text, tenant)
