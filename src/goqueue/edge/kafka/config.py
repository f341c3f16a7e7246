"""What the Kafka door needs to know: how much it takes in."""

from dataclasses import dataclass, field

from goqueue.edge.admission import ConnectionLimits
from goqueue.edge.kafka.frame_memory import HELD_BYTES_MAX
from goqueue.model.settings import Limits, MiB, require


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConfig:
    """Settings of the Kafka door. Whatever a client can fill has its bound here or in `limits`."""

    limits: Limits = field(default_factory=Limits)
    plain_request_bytes_max: int = 8 * MiB
    """A request without batches: all but Produce. Nothing that is said of topics and groups needs more."""
    held_bytes_max: int = HELD_BYTES_MAX
    """Frames of all clients that are being read or answered. Whoever needs more is hung up on."""
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    unanswered_requests_max: int = 64
    """A connection with so many requests under way is not read from until some are answered."""
    fetch_bytes_max: int = 55 * MiB
    """One fetch brings at most this much, whatever the client asks for."""
    fetch_wait_ms_max: int = 300_000
    idle_ms: int | None = 600_000
    """A connection without a request for so long is closed. None: never."""
    stop_ms: int = 5_000
    """How long a stopping door waits for replies that are under way."""

    def __post_init__(self) -> None:
        require(self.unanswered_requests_max > 0, "a Kafka connection must have room for a request")
        require(
            self.held_bytes_max >= self.limits.request_bytes,
            "the memory for Kafka's requests must have room for the largest of them",
        )
        require(self.plain_request_bytes_max > 0, "a Kafka request must have room for at least a byte")
        require(self.fetch_bytes_max > 0, "a fetch must have room for at least a byte")
        require(self.fetch_wait_ms_max >= 0, "the longest wait of a fetch must be 0 or more")
        require(
            self.idle_ms is None or self.idle_ms > 0, "the idle time of a Kafka connection must be above 0"
        )
        require(self.stop_ms >= 0, "the time to stop the Kafka door must be 0 or more")

    @property
    def unanswered_bytes_max(self) -> int:
        """How many bytes of requests and of replies one connection may have under way."""
        return 2 * self.limits.request_bytes
