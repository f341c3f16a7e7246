"""Settings of a node that is one of several."""

from pathlib import Path

from goqueue.node.config_table.setting import Setting
from goqueue.node.config_values import (
    Address,
    StoreEndpoints,
    address,
    addresses,
    advertised,
    file_path,
    short_name,
    store_endpoints,
    switch,
    whole_number,
)

CLUSTER_ENABLED: Setting[bool] = Setting(
    name="CLUSTER_ENABLED",
    default="false",
    read=switch,
    help="Whether this node is one of several. The other settings of a cluster mean nothing without it.",
)
CLUSTER_ADOPT: Setting[bool] = Setting(
    name="CLUSTER_ADOPT",
    default="false",
    read=switch,
    help="Whether the data folder of a node that was alone becomes that of the first node of a cluster, with "
    "all it holds. It does so once, and cannot be undone; without it such a folder is refused.",
)
CLUSTER_ETCD: Setting[StoreEndpoints] = Setting(
    name="CLUSTER_ETCD",
    default="127.0.0.1:2379",
    read=store_endpoints,
    help="The members of etcd through which nodes agree, host:port, separated by commas; with `https://` "
    "before each of them over TLS.",
)
CLUSTER_ETCD_CA_FILE: Setting[Path | None] = Setting(
    name="CLUSTER_ETCD_CA_FILE",
    default="",
    read=file_path,
    help="Who vouches for etcd: certificates in PEM form. Empty: well-known authorities.",
)
CLUSTER_ETCD_CERT_FILE: Setting[Path | None] = Setting(
    name="CLUSTER_ETCD_CERT_FILE",
    default="",
    read=file_path,
    help="The certificate that is shown to etcd, where it asks for one, in PEM form.",
)
CLUSTER_ETCD_KEY_FILE: Setting[Path | None] = Setting(
    name="CLUSTER_ETCD_KEY_FILE", default="", read=file_path, help="Its key, without a password."
)
CLUSTER_ETCD_USER: Setting[str] = Setting(
    name="CLUSTER_ETCD_USER",
    default="",
    read=str.strip,
    help="As whom nodes log in to etcd: it may read and write keys below `/goqueue/{name}/`. Empty: nobody.",
)
CLUSTER_ETCD_PASSWORD: Setting[str] = Setting(
    name="CLUSTER_ETCD_PASSWORD", default="", read=str, help="Its password."
)
CLUSTER_NAME: Setting[str] = Setting(
    name="CLUSTER_NAME",
    default="goqueue",
    read=short_name,
    help="Several clusters may share an etcd: each has its keys below `/goqueue/{name}/`.",
)
PEER_LISTENER: Setting[Address] = Setting(
    name="LISTENERS_INTERNAL",
    default="127.0.0.1:7000",
    read=address,
    help="Where other nodes of the cluster connect, host:port. Beyond this machine only with a secret.",
)
CLUSTER_ADVERTISE: Setting[Address | None] = Setting(
    name="CLUSTER_ADVERTISE",
    default="",
    read=advertised,
    help="The host:port by which other nodes reach this one, when it is not the one listened on.",
)
CLUSTER_CLIENT_ADVERTISE: Setting[Address | None] = Setting(
    name="CLUSTER_CLIENT_ADVERTISE",
    default="",
    read=advertised,
    help="The host:port of the HTTP door that others are told, when it is not the one listened on.",
)
CLUSTER_PEERS: Setting[tuple[Address, ...]] = Setting(
    name="CLUSTER_PEERS",
    default="",
    read=addresses,
    help="Other nodes, host:port, separated by commas. It may be left empty: nodes find each other through "
    "etcd.",
)
CLUSTER_QUORUM: Setting[int] = Setting(
    name="CLUSTER_QUORUM",
    default="2",
    read=whole_number(least=1, most=10_000),
    help="When so many nodes are ready, the topics are made that the cluster needs for itself; they get more "
    "copies as others come. Before, there are no groups. `goqueue up --nodes 1` says 1.",
)
CLUSTER_RACK: Setting[str] = Setting(
    name="CLUSTER_RACK",
    default="",
    read=str.strip,
    help="What this node shares with others that fail together: a machine, a rack, a zone. Copies of a "
    "partition lie in different ones.",
)
CLUSTER_SESSION_MS: Setting[int] = Setting(
    name="CLUSTER_SESSION_MS",
    default="2000",
    read=whole_number(least=1_000, most=60_000),
    help="A node that etcd has not heard of for so long is not alive; whole seconds, rounded up.",
)
CLUSTER_SECRET: Setting[str] = Setting(
    name="CLUSTER_SECRET",
    default="",
    read=str,
    help="Known to all nodes and to nobody else, at least 16 characters: who does not know it is no node.",
)
TOPICS_REPLICATION: Setting[int] = Setting(
    name="TOPICS_REPLICATION",
    default="0",
    read=whole_number(least=0, most=100),
    help="In a cluster: how many copies a topic gets when its creator does not say. 0: three, or as many as "
    "there are nodes.",
)

TOPICS_MIN_INSYNC: Setting[int] = Setting(
    name="TOPICS_MIN_INSYNC",
    default="0",
    read=whole_number(least=0, most=100),
    help="In a cluster: `min.insync.replicas` of topics whose creator does not say; no more than there are "
    "copies. 0: 2 where there are three copies or more, else 1.",
)
CLUSTER_REPLICA_LAG_MS: Setting[int] = Setting(
    name="CLUSTER_REPLICA_LAG_MS",
    default="10000",
    read=whole_number(least=1_000, most=3_600_000),
    help="A copy that has not caught up for so long is not waited for any more (Kafka's "
    "replica.lag.time.max.ms).",
)
