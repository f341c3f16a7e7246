"""What a handler may look at besides its request."""

from dataclasses import dataclass, field

from goqueue.broker.broker import Broker
from goqueue.edge.authentication import Known
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.kafka.sasl import Sasl
from goqueue.edge.kafka.share_sessions import ShareSessions
from goqueue.edge.kafka.throttle import Throttle
from goqueue.model.access import Asking, Role
from goqueue.model.identity import ANONYMOUS, Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The broker, the name by which a client should know it, and what is known of the client."""

    broker: Broker
    config: KafkaConfig
    host: str
    port: int
    listener: str = "plaintext"
    """The name of the listener that the client came through."""
    principal: Principal = ANONYMOUS
    """Who the client is, by its certificate or by what it has said."""
    roles: tuple[Role, ...] = ()
    """Those that came with the key that the client has shown."""
    sasl: Sasl | None = None
    """What it has said of who it is, where it is asked; None: it is not."""
    client_host: str = ""
    client_id: str = ""
    share_sessions: ShareSessions = field(default_factory=ShareSessions)
    """Those of all clients of the door: a share consumer may come back on another connection."""
    throttle: Throttle = field(default_factory=Throttle)
    """How long this client is to be held back."""
    asking: Asking | None = field(init=False)
    """Who the client is, where it matters for what it may do."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "asking", self.asking_now() if self.broker.config.access.is_asked else None)

    def asking_now(self) -> Asking:
        """Who the client is, as far as the store knows now."""
        return Known(self.principal, self.roles).asking(self.client_host, self.broker.identities)
