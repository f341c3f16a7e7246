"""Keys and values of what is agreed: where each thing stands in the store, and how it is written there.

cluster                 the id of the cluster, and the form of all this
starts                  how often the one node has started; several nodes have none
names/{topic}           the id of the topic that has the name, also while its folder is being removed
topics/{id}             a topic, with its settings
parts/{id}/{number}     a partition's record; without one it is as its topic was made, on the one node
producer_ids            up to where ids were set aside
folder/journals/{name}  one node: a journal that has begun, so that its absence is noticed
folder/commit_mark      one node: the folder was written by a broker that keeps to the commit mark
tenants/{id}, usage/{id}   what the access room knows of tenants
groups/settings/{hash of a name}   what was set for a group
identities/users/{name}, identities/keys/{id}   who may come in, with hashes of passwords and keys

Several nodes have these as well, and what is about one node's folder below `local/{node}/`:

members/{node}          a node that belongs to the cluster, alive or not
nodes/{node}            a node that is alive; goes with its session
controller              the node that decides; goes with its session
orders/{id}             what somebody has ordered and is not done yet
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from goqueue.model.cluster import Member, NodeId, NodeRecord, Order, PartitionRecord
from goqueue.model.ids import TopicName
from goqueue.model.settings import TopicSettings

CLUSTER = "cluster"
STARTS = "starts"
NAMES = "names/"
TOPICS = "topics/"
PARTS = "parts/"
PRODUCER_IDS = "producer_ids"
MEMBERS = "members/"
NODES = "nodes/"
CONTROLLER = "controller"
ORDERS = "orders/"
FOLDER = "folder/"
JOURNALS = f"{FOLDER}journals/"
COMMIT_MARK = f"{FOLDER}commit_mark"


@dataclass(frozen=True, slots=True)
class Cluster:
    cluster_id: str
    format: int = 1


@dataclass(frozen=True, slots=True)
class Starts:
    count: int


@dataclass(frozen=True, slots=True)
class Topic:
    name: TopicName
    topic_id: UUID
    partitions: int
    settings: TopicSettings
    created_ms: int
    starts_before: int = 0
    """How often the node had started before the life in which the topic was made."""
    is_deleted: bool = False
    """Gone for everybody; its folder is still to be removed, and its name is not free before."""
    replication: int = 1
    """How many copies of each partition were asked for."""
    first_offsets: tuple[int, ...] = ()
    """Where the partitions begin of a topic that several nodes have restored; 0 where it does not say."""


@dataclass(frozen=True, slots=True)
class ProducerIds:
    end: int
    taken_by: str = ""
    """Another one each time, so that whoever asked knows his own block when an answer was lost."""


@dataclass(frozen=True, slots=True)
class ControllerSeat:
    """Who decides for all."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class Begun:
    """Says only that it is there."""


_encoder = msgspec.json.Encoder()
decode_cluster = msgspec.json.Decoder(Cluster).decode
decode_starts = msgspec.json.Decoder(Starts).decode
decode_topic = msgspec.json.Decoder(Topic).decode
decode_part = msgspec.json.Decoder(PartitionRecord).decode
decode_member = msgspec.json.Decoder(Member).decode
decode_node = msgspec.json.Decoder(NodeRecord).decode
decode_controller = msgspec.json.Decoder(ControllerSeat).decode
decode_order = msgspec.json.Decoder(Order).decode
decode_producer_ids = msgspec.json.Decoder(ProducerIds).decode


def encode(value: Any) -> bytes:
    return _encoder.encode(value)


def name_key(name: str) -> str:
    return NAMES + name


def topic_key(topic_id: UUID) -> str:
    return f"{TOPICS}{topic_id}"


def part_key(topic_id: UUID, number: int) -> str:
    return f"{PARTS}{topic_id}/{number}"


def parsed_part_key(key: str) -> tuple[UUID, int]:
    topic_id, _, number = key.removeprefix(PARTS).partition("/")
    return UUID(topic_id), int(number)


def member_key(node: NodeId) -> str:
    return MEMBERS + node


def node_key(node: NodeId) -> str:
    return NODES + node


def order_key(order_id: str) -> str:
    return ORDERS + order_id
