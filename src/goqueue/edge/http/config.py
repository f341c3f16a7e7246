"""What may be chosen about the HTTP door."""

from dataclasses import dataclass, field

from goqueue.edge.admission import ConnectionLimits
from goqueue.edge.http.transport.body_memory import BODIES_BYTES_MAX
from goqueue.model.settings import KiB, Limits, MiB, require


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """Bounds of the HTTP door. All that a client can fill or hold open has one here."""

    body_bytes: int = Limits().request_bytes
    """A larger request body is answered with 413 and never held in memory."""
    json_bytes: int = 4 * MiB
    """The same for a body that is JSON: to read it holds the loop, 1 to 4 ms a MiB."""
    bodies_bytes: int = BODIES_BYTES_MAX
    """Of all requests that are being read or answered. Beyond it, longer bodies are refused with 503."""
    head_bytes: int = 64 * KiB
    """A larger request line and headers are answered with 431."""
    messages_per_request: int = 100_000
    receipts_per_request: int = 5_000
    """They are settled in one step, so that each lease has one event; bad ones take 3 µs each."""
    read_limit: int = 100
    read_limit_max: int = 1_000
    read_bytes: int = 4 * MiB
    read_bytes_max: int = 64 * MiB
    """Of frames; of messages, which are opened and written as JSON, a read gives `read_bytes` at most."""
    wait_ms_max: int = 30_000
    """A long poll that asks for more is shortened to this."""
    poll_wait_ms_max: int = 60_000
    """The same for a poll of a group."""
    idle_timeout_s: float = 60.0
    """A connection with no request on it is closed after this."""
    head_timeout_s: float = 10.0
    """A request line and headers that are not whole after this are given up."""
    stall_timeout_s: float = 30.0
    """A body of which less than `stall_bytes` have come in this time is given up."""
    stall_bytes: int = 16 * KiB
    leave_timeout_s: float = 30.0
    """How long what a client goes on to send is read and dropped, so that it can read why it was refused."""
    leave_bytes: int = 128 * MiB
    """How much of it."""
    stop_timeout_s: float = 10.0
    """How long replies in flight may take once the door is closing."""
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    backlog: int = 1_024
    hosts: tuple[str, ...] = ()
    """Names by which the door may be called besides its own; `*` for any."""
    advertised_host: str | None = None
    """A name that is the node's own, wherever the door listens."""
    cors_origins: tuple[str, ...] = ()
    """Web pages of these origins may use the door; `*` for all."""
    are_probes_open: bool = True
    """Whether probes of health are answered to whoever asks, also where others must say who they are."""
    takes_query_keys: bool = False
    """Whether a key may stand in an address, which others may log."""
    is_logging_requests: bool = False
    """A line for each request. Off by default: it costs more than many a request."""

    def __post_init__(self) -> None:
        require(
            min(self.body_bytes, self.json_bytes) > 0, "a request body must have room for at least a byte"
        )
        require(
            self.bodies_bytes >= max(self.body_bytes, self.json_bytes),
            "the memory for the bodies of HTTP requests must have room for the largest of them",
        )
        require(self.head_bytes >= KiB, "a request's head must have room for 1 KiB")
        require(
            min(self.messages_per_request, self.receipts_per_request) > 0,
            "a request must have room for a message",
        )
        require(
            0 < self.read_limit <= self.read_limit_max, "the read limit must be between 1 and its maximum"
        )
        require(
            0 < self.read_bytes <= self.read_bytes_max, "the read bytes must be between 1 and their maximum"
        )
        require(min(self.wait_ms_max, self.poll_wait_ms_max) >= 0, "a long poll cannot wait less than 0 ms")
        require(
            min(
                self.idle_timeout_s,
                self.head_timeout_s,
                self.stall_timeout_s,
                self.leave_timeout_s,
                self.stop_timeout_s,
            )
            > 0,
            "the timeouts of the HTTP door must be above 0",
        )
