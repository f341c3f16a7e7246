"""Where etcd is and how it is spoken to, read from settings and checked before anything is opened.

Without what speaks to it: one node alone knows neither etcd nor gRPC.
"""

from dataclasses import dataclass, field
from pathlib import Path

from goqueue.node import config_table as table
from goqueue.node.config_doors import Reader
from goqueue.node.config_values import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdAccess:
    """How etcd is spoken to: over TLS or not, and as whom."""

    has_tls: bool = False
    ca_file: Path | None = None
    """Who vouches for etcd; None: well-known authorities."""
    cert_file: Path | None = None
    key_file: Path | None = None
    """What is shown to etcd, where it asks for certificates."""
    user: str = ""
    """Empty: nobody logs in."""
    password: str = field(default="", repr=False)


OPEN_ACCESS = EtcdAccess()


def read_etcd(reader: Reader) -> tuple[tuple[Address, ...], EtcdAccess]:
    """Its members, and how they are spoken to. Problems are noted where a cluster is wanted."""
    where = reader(table.CLUSTER_ETCD)
    config = EtcdAccess(
        has_tls=where.has_tls,
        ca_file=reader(table.CLUSTER_ETCD_CA_FILE),
        cert_file=reader(table.CLUSTER_ETCD_CERT_FILE),
        key_file=reader(table.CLUSTER_ETCD_KEY_FILE),
        user=reader(table.CLUSTER_ETCD_USER),
        password=reader(table.CLUSTER_ETCD_PASSWORD),
    )
    if not reader(table.CLUSTER_ENABLED):
        return where.members, config
    for setting in (table.CLUSTER_ETCD_CA_FILE, table.CLUSTER_ETCD_CERT_FILE, table.CLUSTER_ETCD_KEY_FILE):
        path = reader(setting)
        if path is not None and not config.has_tls:
            reader.note(
                setting, f"etcd is not asked over TLS: write https:// in {table.CLUSTER_ETCD.variable}"
            )
        elif path is not None and not path.is_file():
            reader.note(setting, f"there is no file {path}")
    if (config.cert_file is None) != (config.key_file is None):
        missing = table.CLUSTER_ETCD_KEY_FILE if config.key_file is None else table.CLUSTER_ETCD_CERT_FILE
        reader.note(missing, "a certificate and its key are named together")
    if bool(config.user) != bool(config.password):
        missing_word = table.CLUSTER_ETCD_PASSWORD if config.user else table.CLUSTER_ETCD_USER
        reader.note(missing_word, "a user and its password are named together")
    if config.password and not config.has_tls and not all(one.is_loopback for one in where.members):
        reader.note(
            table.CLUSTER_ETCD_PASSWORD,
            f"it would be sent in the clear: write https:// in {table.CLUSTER_ETCD.variable}",
        )
    return where.members, config
