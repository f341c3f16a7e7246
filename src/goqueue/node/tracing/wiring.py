"""The exporters that the settings ask for, set up and started."""

from goqueue.broker.broker import Broker
from goqueue.model.telemetry import ExportStatus
from goqueue.node.tracing.config import FILE, OTLP_HTTP, STDOUT, TraceExportConfig
from goqueue.node.tracing.courier import Courier, Target
from goqueue.node.tracing.export import TraceExport
from goqueue.node.tracing.files import JsonFiles
from goqueue.node.tracing.stdout import JsonOutput


def start_trace_export(broker: Broker, config: TraceExportConfig) -> TraceExport | None:
    """The export at work; None when nobody asked for one."""
    if not config.exporters:
        return None
    couriers = [
        Courier(ExportStatus(name), _target(name, broker, config), waiting_max=config.waiting_max)
        for name in config.exporters
    ]
    broker.telemetry.exports[:] = [courier.status for courier in couriers]
    return TraceExport(broker, couriers, config)


def _target(name: str, broker: Broker, config: TraceExportConfig) -> Target:
    if name == FILE:
        return JsonFiles(broker.disk, file_bytes=config.file_bytes, files_max=config.files_max)
    if name == STDOUT:
        return JsonOutput()
    # Not imported before: OpenTelemetry and gRPC cost a start and memory, which few need to pay.
    from goqueue.node.tracing.otlp import over_grpc, over_http

    connect = over_http if name == OTLP_HTTP else over_grpc
    return connect(config.endpoint, config.headers, node_id=broker.config.node_id)
