"""`goqueue-admin quota`: what tenants may use."""

from collections.abc import Callable
from typing import Annotated

import msgspec
import typer

from goqueue.cli.operators.call import connect
from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.cli.parts.frame import Output, invocation, noun
from goqueue.cli.parts.output import Columns, Row, fields_of, show_done, show_fields, show_value, size_text
from goqueue.cli.parts.times import parse_duration
from goqueue.cli.parts.values import parse_size

app = noun("See and set what tenants may use.")

TenantId = Annotated[str, typer.Argument(metavar="ID", help="The tenant, by its id.")]
_UNSET = -1
_MS_PER_HOUR = 3_600_000


def _size(text: str) -> int:
    """A size on the command line, -1 where it is left as it is."""
    return _UNSET if text == str(_UNSET) else parse_size(text)


def _hours(text: str) -> float:
    """A duration on the command line, in hours; 0 is no limit."""
    if text in ("0", str(_UNSET)):
        return float(text)
    return parse_duration(text).total_seconds() * 1_000 / _MS_PER_HOUR


PublishRate = Annotated[
    int | None, typer.Option("--publish-rate", min=_UNSET, help="Messages a second in; 0: no limit.")
]
ConsumeRate = Annotated[
    int | None, typer.Option("--consume-rate", min=_UNSET, help="Messages a second out; 0: no limit.")
]
MaxStorage = Annotated[
    int | None, typer.Option("--max-storage", parser=_size, metavar="SIZE", help="On the disk, like 10GB.")
]
MaxTopics = Annotated[int | None, typer.Option("--max-topics", min=_UNSET, help="How many topics.")]
MaxMessageSize = Annotated[
    int | None, typer.Option("--max-message-size", parser=_size, metavar="SIZE", help="Of one message.")
]


def limits_of(**limits: float | None) -> dict[str, float]:
    """The quotas that were given, by the broker's names."""
    return {name: value for name, value in limits.items() if value is not None and value != _UNSET}


@app.command("get")
def get(context: typer.Context, tenant_id: TenantId) -> None:
    """Show what a tenant may use."""
    with connect(context) as queue:
        quotas = queue.tenants.quotas(tenant_id)
    output = invocation(context).output
    if output is not Output.TABLE:
        show_value(output, quotas)
        return
    row = fields_of(quotas)
    for number, (heading, fields) in enumerate(_GROUPS.items()):
        print(f"{chr(10) if number else ''}{heading}")
        show_fields(output, row, fields)


@app.command("set")
def set_quotas(
    context: typer.Context,
    tenant_id: TenantId,
    publish_rate: PublishRate = None,
    consume_rate: ConsumeRate = None,
    publish_bytes_rate: Annotated[
        int | None,
        typer.Option("--publish-bytes-rate", parser=_size, metavar="SIZE", help="Bytes a second in."),
    ] = None,
    consume_bytes_rate: Annotated[
        int | None,
        typer.Option("--consume-bytes-rate", parser=_size, metavar="SIZE", help="Bytes a second out."),
    ] = None,
    max_storage: MaxStorage = None,
    max_topics: MaxTopics = None,
    max_partitions: Annotated[
        int | None, typer.Option("--max-partitions", min=_UNSET, help="Partitions of all topics together.")
    ] = None,
    max_partitions_per_topic: Annotated[
        int | None, typer.Option("--max-partitions-per-topic", min=_UNSET, help="Partitions of one topic.")
    ] = None,
    max_message_size: MaxMessageSize = None,
    max_retention: Annotated[
        float | None,
        typer.Option(
            "--max-retention", parser=_hours, metavar="DURATION", help="How long topics keep, like 7d."
        ),
    ] = None,
    max_delay: Annotated[
        float | None,
        typer.Option("--max-delay", parser=_hours, metavar="DURATION", help="How long messages may wait."),
    ] = None,
    max_connections: Annotated[
        int | None, typer.Option("--max-connections", min=_UNSET, help="Where doors ask who comes.")
    ] = None,
    max_consumer_groups: Annotated[
        int | None, typer.Option("--max-consumer-groups", min=_UNSET, help="How many consumer groups.")
    ] = None,
    consumers_per_group: Annotated[
        int | None, typer.Option("--consumers-per-group", min=_UNSET, help="Members of one group.")
    ] = None,
) -> None:
    """Set what a tenant may use. What is not named stays as it is; 0 is no limit."""
    given = limits_of(
        publish_rate_limit=publish_rate,
        consume_rate_limit=consume_rate,
        publish_bytes_rate_limit=publish_bytes_rate,
        consume_bytes_rate_limit=consume_bytes_rate,
        max_storage_bytes=max_storage,
        max_topics=max_topics,
        max_total_partitions=max_partitions,
        max_partitions_per_topic=max_partitions_per_topic,
        max_message_size_bytes=max_message_size,
        max_retention_hours=max_retention,
        max_delay_hours=max_delay,
        max_connections=max_connections,
        max_consumer_groups=max_consumer_groups,
        max_consumers_per_group=consumers_per_group,
    )
    if not given:
        raise WrongCommand("say what to set; `goqueue-admin quota set --help` names the quotas")
    with connect(context) as queue:
        # The broker sets what is left out to the defaults, so that all of it is sent.
        present = msgspec.to_builtins(queue.tenants.quotas(tenant_id))
        quotas = queue.tenants.set_quotas(tenant_id, present | given)
    show_done(invocation(context).output, f"the quotas of tenant {tenant_id} are set", quotas)


@app.command("reset")
def reset(context: typer.Context, tenant_id: TenantId) -> None:
    """Set all that a tenant may use back to the defaults."""
    with connect(context) as queue:
        quotas = queue.tenants.set_quotas(tenant_id, {})
    show_done(invocation(context).output, f"the quotas of tenant {tenant_id} are the defaults", quotas)


def _count(field: str, unit: str = "") -> Callable[[Row], object]:
    """A limit as people read it."""
    return lambda row: f"{row[field]:g}{unit}" if row[field] else _NO_LIMIT


def _bytes(field: str, unit: str = "") -> Callable[[Row], object]:
    """The same for bytes."""

    def show(row: Row) -> object:
        value = row[field]
        return f"{size_text(value)}{unit}" if isinstance(value, int) and value else _NO_LIMIT

    return show


_NO_LIMIT = "no limit"
_GROUPS: dict[str, Columns] = {
    "Rate limits": {
        "Publish": _count("publish_rate_limit", " messages/s"),
        "Publish bytes": _bytes("publish_bytes_rate_limit", "/s"),
        "Consume": _count("consume_rate_limit", " messages/s"),
        "Consume bytes": _bytes("consume_bytes_rate_limit", "/s"),
    },
    "Storage limits": {
        "Storage": _bytes("max_storage_bytes"),
        "Topics": _count("max_topics"),
        "Partitions": _count("max_total_partitions"),
        "Partitions per topic": _count("max_partitions_per_topic"),
    },
    "Size limits": {
        "Message size": _bytes("max_message_size_bytes"),
        "Retention": _count("max_retention_hours", " h"),
        "Delay": _count("max_delay_hours", " h"),
    },
    "Connection limits": {
        "Connections": _count("max_connections"),
        "Consumer groups": _count("max_consumer_groups"),
        "Consumers per group": _count("max_consumers_per_group"),
    },
}
