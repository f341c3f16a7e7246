"""Settings of who is there, what they may do, what of it is written down, and which keys seal what."""

from pathlib import Path

from goqueue.edge.token_claims import SKEW_MS_MAX
from goqueue.model.access import Role
from goqueue.node.config_table.setting import INT32_MAX, INT64_MAX, Setting
from goqueue.node.config_values import (
    file_path,
    key_set,
    principals,
    role_values,
    root_key,
    share,
    size,
    switch,
    whole_number,
    words,
)
from goqueue.node.sealing import read_keys

ACL_ENABLED: Setting[bool] = Setting(
    name="ACL_ENABLED",
    default="false",
    read=switch,
    help="Whether it is asked what somebody may do: what no rule and no role allows is refused then.",
)
ACL_SUPER_USERS: Setting[tuple[str, ...]] = Setting(
    name="ACL_SUPER_USERS",
    default="",
    read=principals,
    help="Who may do everything, whatever rules say: a comma list such as User:root,User:ops.",
)
AUDIT_ENABLED: Setting[bool] = Setting(
    name="AUDIT_ENABLED",
    default="false",
    read=switch,
    help="Whether it is written down who was refused and who changed what: in `audit` in the data folder.",
)
AUDIT_FILE_BYTES: Setting[int] = Setting(
    name="AUDIT_FILE_BYTES",
    default="16MiB",
    read=size(least=1024, most=INT32_MAX),
    help="A file of the audit log that has so much is followed by another.",
)
AUDIT_FILES: Setting[int] = Setting(
    name="AUDIT_FILES",
    default="20",
    read=whole_number(least=1, most=100_000),
    help="So many files of the audit log are kept.",
)
AUDIT_TOPIC: Setting[bool] = Setting(
    name="AUDIT_TOPIC",
    default="true",
    read=switch,
    help="Whether lines of the audit log are published in the topic `__audit`, too.",
)
AUDIT_TOPIC_RETENTION_MS: Setting[int] = Setting(
    name="AUDIT_TOPIC_RETENTION_MS",
    default="2592000000",
    read=whole_number(least=1, most=INT64_MAX),
    help="How long the topic `__audit` keeps them (30 days); counts when the topic is made.",
)
AUDIT_DATA_SAMPLING: Setting[float] = Setting(
    name="AUDIT_DATA_SAMPLING",
    default="0",
    read=share,
    help="Which share of reads and writes of messages the audit log tells of, from 0 to 1.",
)
ENCRYPTION_KEYS: Setting[tuple[bytes, ...]] = Setting(
    name="ENCRYPTION_KEYS",
    default="",
    read=read_keys,
    help="Keys for backups, between commas: each 32 bytes in base64 or hex. The first encrypts, all decrypt. "
    "Empty: backups are written as they are.",
)
ENCRYPTION_KEY_FILE: Setting[Path | None] = Setting(
    name="ENCRYPTION_KEY_FILE",
    default="",
    read=file_path,
    help="A file with such keys, one a line, in place of the former.",
)


AUTH_ENABLED: Setting[bool] = Setting(
    name="AUTH_ENABLED",
    default="false",
    read=switch,
    help="Whether listeners of Kafka and HTTP that name no protocol ask who comes: for a key, or a user's "
    "password.",
)
API_ROOT_KEY: Setting[str] = Setting(
    name="API_ROOT_KEY",
    default="",
    read=root_key,
    help="A key with all rights, at least 16 characters, known as `root`. Empty: where somebody is asked and "
    "nobody is known yet, a first key is made and printed once.",
)
AUTH_ALLOW_HEALTH: Setting[bool] = Setting(
    name="AUTH_ALLOW_HEALTH",
    default="true",
    read=switch,
    help="Whether /health, /healthz, /livez, /readyz and /version answer to whoever asks.",
)
AUTH_QUERY_KEYS: Setting[bool] = Setting(
    name="AUTH_QUERY_KEYS",
    default="false",
    read=switch,
    help="Whether a key may stand in an address, `?api_key=`, which proxies and browsers keep.",
)
AUTH_SESSION_MS: Setting[int] = Setting(
    name="AUTH_SESSION_MS",
    default="0",
    read=whole_number(least=0, most=INT32_MAX),
    help="A Kafka client that has logged in does so again within this time (KIP-368); 0: never.",
)
AUTH_JWT_JWKS: Setting[str] = Setting(
    name="AUTH_JWT_JWKS",
    default="",
    read=key_set,
    help="Where the keys are by which an issuer signs tokens (JWT): an address with `https://`, or "
    "a file. Empty: no tokens are taken. Kafka clients show them by OAUTHBEARER, others as they show keys.",
)
AUTH_JWT_CA_FILE: Setting[Path | None] = Setting(
    name="AUTH_JWT_CA_FILE",
    default="",
    read=file_path,
    help="Who vouches for that address: certificates in PEM form. Empty: whom the system trusts.",
)
AUTH_JWT_ISSUER: Setting[str] = Setting(
    name="AUTH_JWT_ISSUER",
    default="",
    read=str.strip,
    help="The issuer, as tokens name it (`iss`).",
)
AUTH_JWT_AUDIENCE: Setting[tuple[str, ...]] = Setting(
    name="AUTH_JWT_AUDIENCE",
    default="",
    read=words,
    help="For whom tokens must be made (`aud`): one of these, separated by commas.",
)
AUTH_JWT_SKEW_MS: Setting[int] = Setting(
    name="AUTH_JWT_SKEW_MS",
    default="30000",
    read=whole_number(least=0, most=SKEW_MS_MAX),
    help="By so much the clock of the issuer may differ.",
)
AUTH_JWT_NAME_CLAIM: Setting[str] = Setting(
    name="AUTH_JWT_NAME_CLAIM",
    default="sub",
    read=str.strip,
    help="The claim that says what the holder of a token is called here; `a.b` is b inside a.",
)
AUTH_JWT_TENANT_CLAIM: Setting[str] = Setting(
    name="AUTH_JWT_TENANT_CLAIM",
    default="",
    read=str.strip,
    help="The claim that names the tenant of the holder; tokens without it are refused then. Empty: none.",
)
AUTH_JWT_ROLES_CLAIM: Setting[str] = Setting(
    name="AUTH_JWT_ROLES_CLAIM",
    default="",
    read=str.strip,
    help="The claim, of roles or groups, that gives the holder roles. Empty: none does.",
)
AUTH_JWT_ROLES: Setting[dict[str, Role]] = Setting(
    name="AUTH_JWT_ROLES",
    default="",
    read=role_values,
    help="Which role each value of that claim stands for: `kafka-ops=operator,devs=developer`. Others stand "
    "for none. Empty: the values are our roles' names.",
)
