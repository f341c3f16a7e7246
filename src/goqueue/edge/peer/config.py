"""What the peer door needs to know."""

from dataclasses import dataclass
from ipaddress import ip_address

from goqueue.model.settings import MiB, require

SECRET_CHARACTERS_MIN = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerConfig:
    """Settings of the peer door, and its clockwork. Tests make that quicker."""

    cluster_id: str
    secret: str = ""
    """Known to all nodes of the cluster, and to nobody else. Empty: nodes of one machine."""
    catch_up_bytes_per_s: int = 64 * MiB
    """How fast a node that has far to go is sent what it misses. 0: as fast as it takes it."""
    idle_ms: int = 500
    """Who has nothing to say for so long says that."""
    silence_ms: int = 2_000
    """Who was not heard for so long is gone. A loop may stand still for some time before that is believed."""
    greeting_ms: int = 2_000
    """How long a connection may take to be made, and the greeting on it."""
    pause_ms: int = 50
    """Before a lost connection is tried again; doubled each time it fails."""
    pause_ms_max: int = 1_000

    def __post_init__(self) -> None:
        require(bool(self.cluster_id), "a cluster must have an id")
        require(
            not self.secret or len(self.secret) >= SECRET_CHARACTERS_MIN,
            f"the secret of a cluster must have at least {SECRET_CHARACTERS_MIN} characters",
        )
        require(self.catch_up_bytes_per_s >= 0, "the rate of followers that catch up must be 0 or more")
        require(0 < self.idle_ms < self.silence_ms, "a node must be able to say that it is alive in time")
        require(self.greeting_ms > 0, "a connection must have some time to be made")
        require(
            0 < self.pause_ms <= self.pause_ms_max, "the first pause must be above 0, and not the longest"
        )


def check_listener(config: PeerConfig, host: str) -> None:
    """Refuse to listen where strangers are, without a secret that keeps them out."""
    require(
        bool(config.secret) or _is_loopback(host),
        f"the peer door listens on {host or 'all addresses'}: without a secret it may only on loopback",
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
