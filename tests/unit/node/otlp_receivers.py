"""Collectors for tests: they take OTLP as real ones do, with OpenTelemetry's own stubs, and keep it."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import SimpleQueue

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)


class Receiver:
    """What a collector was sent: requests, each with the headers it came with."""

    def __init__(self) -> None:
        self.endpoint = ""
        self.requests: SimpleQueue[tuple[ExportTraceServiceRequest, dict[str, str]]] = SimpleQueue()

    def received(self) -> tuple[ExportTraceServiceRequest, dict[str, str]]:
        return self.requests.get(timeout=10)


@contextmanager
def http_receiver() -> Iterator[Receiver]:
    """OTLP over HTTP, at /v1/traces and nowhere else."""
    receiver = Receiver()

    class Post(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path != "/v1/traces":
                self.send_error(404)
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.requests.put((ExportTraceServiceRequest.FromString(body), headers))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Tests need no access log."""

    server = HTTPServer(("127.0.0.1", 0), Post)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    receiver.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def grpc_receiver(port: int = 0) -> Iterator[Receiver]:
    """OTLP over gRPC."""
    receiver = Receiver()

    class Service(TraceServiceServicer):
        def Export(  # noqa: N802 -- the name in the protocol
            self, request: ExportTraceServiceRequest, context: grpc.ServicerContext
        ) -> ExportTraceServiceResponse:
            headers = {name: str(value) for name, value in context.invocation_metadata()}
            receiver.requests.put((request, headers))
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(max_workers=1))
    add_TraceServiceServicer_to_server(Service(), server)  # type: ignore[no-untyped-call]  # generated code
    receiver.endpoint = f"http://127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
    server.start()
    try:
        yield receiver
    finally:
        server.stop(0).wait()
