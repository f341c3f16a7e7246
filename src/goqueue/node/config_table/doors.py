"""Settings of the doors: where they listen, what they are called, how many may come in."""

from goqueue.node.config_table.setting import INT32_MAX, INT64_MAX, Setting
from goqueue.node.config_values import (
    Address,
    Listening,
    advertised,
    host_names,
    listeners,
    origins,
    size,
    switch,
    whole_number,
)

KAFKA_LISTENERS: Setting[tuple[Listening, ...]] = Setting(
    name="LISTENERS_KAFKA",
    default="127.0.0.1:9092",
    read=listeners,
    help="Where Kafka clients connect, host:port. `:9092` is every interface, port 0 any free port, "
    "`off` no such door. Several are separated by commas, each with its protocol and, behind an @, where "
    "clients are told to come back: `PLAINTEXT://127.0.0.1:9092,SSL://:9093@broker.example:9093`.",
)
HTTP_LISTENERS: Setting[tuple[Listening, ...]] = Setting(
    name="LISTENERS_HTTP",
    default="127.0.0.1:8080",
    read=listeners,
    help="Where the HTTP API is served, host:port, or `off`; in the same form.",
)
INSECURE: Setting[bool] = Setting(
    name="INSECURE",
    default="false",
    read=switch,
    help="Whether doors may be open to other machines that use neither TLS nor authentication.",
    is_bare=True,
)
KAFKA_ADVERTISED: Setting[Address | None] = Setting(
    name="KAFKA_ADVERTISED",
    default="",
    read=advertised,
    help="The host:port that Kafka clients are told to connect to, when it is not the one listened on "
    "(containers, port forwarding).",
)
HTTP_HOSTS: Setting[tuple[str, ...]] = Setting(
    name="HTTP_HOSTS",
    default="",
    read=host_names,
    help="Host names by which the HTTP door may be called, separated by commas, `*` for any. Empty: on a "
    "loopback address the names of this machine, elsewhere any. Given, others are refused on any address.",
)
HTTP_CORS_ORIGINS: Setting[tuple[str, ...]] = Setting(
    name="HTTP_CORS_ORIGINS",
    default="",
    read=origins,
    help="Origins of web pages that may use the HTTP door, like `https://dashboard.example`, separated by "
    "commas, `*` for all. Empty: the broker's own page alone.",
)
KAFKA_CONNECTIONS: Setting[int] = Setting(
    name="KAFKA_CONNECTIONS",
    default="10000",
    read=whole_number(least=1, most=INT32_MAX),
    help="The most connections of Kafka clients at a time.",
)
KAFKA_MEMORY_BYTES: Setting[int] = Setting(
    name="KAFKA_MEMORY_BYTES",
    default="1GiB",
    read=size(least=1, most=INT64_MAX),
    help="The most that requests of all Kafka clients take while they are read and answered.",
)
KAFKA_IDLE_MS: Setting[int] = Setting(
    name="KAFKA_IDLE_MS",
    default="600000",
    read=whole_number(least=0, most=INT32_MAX),
    help="A Kafka connection without a request for so long is closed (`connections.max.idle.ms`); 0: never.",
)
HTTP_CONNECTIONS: Setting[int] = Setting(
    name="HTTP_CONNECTIONS",
    default="10000",
    read=whole_number(least=1, most=INT32_MAX),
    help="The most connections of HTTP clients at a time.",
)
ADDRESS_CONNECTIONS: Setting[int] = Setting(
    name="LIMITS_ADDRESS_CONNECTIONS",
    default="5000",
    read=whole_number(least=1, most=INT32_MAX),
    help="The most connections from one address to each door. One more is closed at once and counted.",
)
