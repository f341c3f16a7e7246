"""Settings of certificates: those of the doors for clients, and those between nodes."""

from pathlib import Path
from ssl import TLSVersion

from goqueue.edge.principal_rules import PrincipalRules
from goqueue.edge.tls import ClientAuth
from goqueue.node.config_table.setting import Setting
from goqueue.node.config_values import client_auth, file_path, switch, tls_version, whole_number


class TlsTable:
    """The settings of the certificate of some doors."""

    def __init__(self, prefix: str, whose: str, checks: str) -> None:
        self.enabled: Setting[bool] = Setting(
            name=f"{prefix}_ENABLED",
            default="false",
            read=switch,
            help=f"Whether TLS is spoken {whose}.",
        )
        self.cert_file: Setting[Path | None] = Setting(
            name=f"{prefix}_CERT_FILE",
            default="",
            read=file_path,
            help="The certificate that is shown there, in PEM form, with those between it and its root. It "
            "is read anew when it changes, and on SIGHUP.",
        )
        self.key_file: Setting[Path | None] = Setting(
            name=f"{prefix}_KEY_FILE", default="", read=file_path, help="Its key, without a password."
        )
        self.ca_file: Setting[Path | None] = Setting(
            name=f"{prefix}_CA_FILE",
            default="",
            read=file_path,
            help=f"Who vouches for {checks}: certificates in PEM form.",
        )
        self.self_signed: Setting[bool] = Setting(
            name=f"{prefix}_SELF_SIGNED",
            default="false",
            read=switch,
            help="Whether the broker makes a certificate for itself, in `tls/` of the data folder. Its "
            "fingerprint is printed at the start."
            if prefix == "TLS"
            else "Not served: nodes could not tell such certificates from those of others.",
        )
        self.client_auth: Setting[ClientAuth] = Setting(
            name=f"{prefix}_CLIENT_AUTH",
            default="none" if prefix == "TLS" else "require",
            read=client_auth,
            help=f"Whether {checks} show certificates: `none`, `request` or `verify` (who shows one is "
            "checked), `require` or `require-verify` (all must).",
        )
        self.min_version: Setting[TLSVersion] = Setting(
            name=f"{prefix}_MIN_VERSION",
            default="1.2",
            read=tls_version,
            help="The oldest TLS that is spoken there: 1.2 or 1.3.",
        )

    @property
    def all(self) -> tuple[Setting[object], ...]:
        return (
            self.enabled,
            self.cert_file,
            self.key_file,
            self.ca_file,
            self.self_signed,
            self.client_auth,
            self.min_version,
        )


TLS = TlsTable("TLS", "by listeners of Kafka and HTTP that name no protocol", "clients")
CLUSTER_TLS = TlsTable("CLUSTER_TLS", "between nodes", "other nodes")
TLS_HANDSHAKE_MS: Setting[int] = Setting(
    name="TLS_HANDSHAKE_MS",
    default="10000",
    read=whole_number(least=100, most=600_000),
    help="A handshake that is not done after this is given up.",
)
TLS_PRINCIPAL_RULES: Setting[PrincipalRules] = Setting(
    name="TLS_PRINCIPAL_RULES",
    default="DEFAULT",
    read=PrincipalRules,
    help="What the owner of a certificate is called, as Kafka's ssl.principal.mapping.rules say it: "
    "`RULE:pattern/replacement/` with `L` or `U` behind it, and `DEFAULT`, separated by commas.",
)
