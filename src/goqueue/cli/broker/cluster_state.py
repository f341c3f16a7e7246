"""`goqueue-cli cluster state` and `partition`: who is there, who leads what, and whether all is copied."""

from typing import Annotated

import msgspec
import typer

from goqueue.cli.parts.calling import connect
from goqueue.cli.parts.completing import topic_names
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.cli.parts.frame import Output, invocation
from goqueue.cli.parts.output import Columns, show_fields, show_rows, show_value
from goqueue.wire.cluster import PartitionInfo


class PartitionView(msgspec.Struct):
    """A partition as people read it."""

    topic: str
    partition: int
    leader: str
    leader_address: str
    replicas: str
    isr: str
    version: int
    copy: str


_MEMBERS: Columns = {
    "ID": "id",
    "STATUS": "status",
    "CONTROLLER": "is_controller",
    "LEADS": "leads",
    "HOLDS": "holds",
    "RACK": "rack",
    "VERSION": "version",
    "HTTP": "client_address",
    "KAFKA": "kafka_address",
}
_PARTITION: Columns = {
    "Topic": "topic",
    "Partition": "partition",
    "Leader": "leader",
    "Leader's Door": "leader_address",
    "Replicas": "replicas",
    "In Sync": "isr",
    "Epoch": "version",
    "Copy Here": "copy",
}


def state(context: typer.Context) -> None:
    """Show the nodes, who decides, and whether all partitions are led and copied. Exit code 1 if not."""
    with connect(context) as queue:
        told = queue.admin.cluster_state()
        status = queue.admin.cluster_health().status
    output = invocation(context).output
    if output is not Output.TABLE:
        show_value(output, told)
    else:
        show_rows(output, told.nodes, _MEMBERS)
        print(
            f"\n{status}: {told.topics} topics, {told.partitions} partitions, "
            f"{told.offline_partitions} without a leader, "
            f"{told.under_replicated_partitions} that lack copies; {told.controller_id or 'nobody'} decides"
        )
    if status != "healthy":
        raise typer.Exit(ExitCode.FAILED)


def partition(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(help="The topic.", autocompletion=topic_names)],
    number: Annotated[int, typer.Argument(metavar="PARTITION", min=0, help="The partition's number.")],
) -> None:
    """Show who leads a partition, where its copies are, and how far that of the node that answers is."""
    with connect(context) as queue:
        told = queue.cluster.partition(topic, number)
    output = invocation(context).output
    if output is not Output.TABLE:
        show_value(output, told)
        return
    copies, in_sync = ", ".join(told.replicas), ", ".join(told.isr)
    shown = PartitionView(
        told.topic,
        told.partition,
        told.leader or "nobody",
        told.leader_address,
        copies,
        in_sync,
        told.version,
        _copy(told),
    )
    show_fields(output, shown, _PARTITION)


def _copy(told: PartitionInfo) -> str:
    copy = told.local_replica
    if copy is None:
        return "none"
    ends = f"written up to {copy.log_end_offset}, safe up to {copy.high_watermark}"
    return f"{copy.role}, epoch {copy.epoch}, {ends}"
