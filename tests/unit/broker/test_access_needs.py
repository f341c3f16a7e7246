"""Each command that a door can ask for says what it needs; those between nodes are named, too."""

import importlib
import inspect
import pkgutil

import pytest

from goqueue import model
from goqueue.broker.access.needs import NEEDS, SHOWN, needs_of
from goqueue.broker.access.warden import ASKING, Warden
from goqueue.core.access.rules import RuleBook
from goqueue.model.access import (
    Asking,
    Binding,
    BindRole,
    Need,
    Operation,
    PatternKind,
    ResourceKind,
    Role,
    Rule,
)
from goqueue.model.cluster import NodeId
from goqueue.model.commands import Publish, ReadMessages
from goqueue.model.delivery import Action, Settle
from goqueue.model.errors import ClusterNotAllowed, TopicNotAllowed
from goqueue.model.group_commands import ConsumerHeartbeat
from goqueue.model.identity_commands import CreateUser
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.moving import CancelDecommission, ListReassignments
from goqueue.model.topics import CreateTopic

BETWEEN_NODES = {
    "AnswersFor", "AppendMoved", "AppendStaged", "AskedByLeader", "CatchUp", "ConfirmEpoch",
    "DecideOffsets", "DeliverDue", "DescribeCopies", "DropStages", "FetchStage", "FindDelivered",
    "FindMarks", "FindProducers", "FollowRegistry", "HearOfTraces", "JoinTransaction", "KeepAside",
    "KeepBatches", "KeepDelayed", "KeepStage", "MarkTransaction", "NoteDeliveries", "ReadCommitted",
    "RestoreSchemas", "RestoreTenant", "SealTransaction", "TakeShare",
    "TellHoldings", "TellMarks",
}  # fmt: skip
"""No door asks for these."""
SHAPES = {"Command", "GroupCommand", "Later", "ScheduleCommand", "TransactionCommand"}
"""What commands are made from, and one that has a place and is none."""
ANN = Asking("User:ann", "10.0.0.1")


def all_commands() -> set[type]:
    modules = [
        importlib.import_module(f"{model.__name__}.{m.name}") for m in pkgutil.iter_modules(model.__path__)
    ]
    return {
        each
        for module in modules
        for each in vars(module).values()
        if inspect.isclass(each) and each.__module__ == module.__name__ and hasattr(each, "place")
    }


def test_every_command_says_what_it_needs_or_is_said_between_nodes() -> None:
    named = {command.__name__ for command in NEEDS}
    assert named | BETWEEN_NODES | SHAPES == {command.__name__ for command in all_commands()}
    assert not named & BETWEEN_NODES
    assert set(SHOWN) <= set(NEEDS)


def test_a_command_needs_what_it_does() -> None:
    orders = TopicName("orders")
    assert list(needs_of(Publish(topic=orders, messages=[]))) == [
        Need(Operation.WRITE, ResourceKind.TOPIC, "orders")
    ]
    receipts = [f"orders:0:{offset}:1:0000000000000001" for offset in range(3)]
    assert list(needs_of(Settle(action=Action.ACK, receipts=receipts))) == [
        Need(Operation.READ, ResourceKind.TOPIC, "orders")
    ]


def test_what_is_no_receipt_needs_nothing_and_is_told_of_by_who_settles() -> None:
    receipts = ["nonsense", "", "orders:0:1:1:0000000000000001", "a:b"]
    assert list(needs_of(Settle(action=Action.ACK, receipts=receipts))) == [
        Need(Operation.READ, ResourceKind.TOPIC, "orders")
    ]


def test_nobody_is_asked_for_what_the_broker_does_for_itself() -> None:
    warden = Warden(RuleBook())
    command = ReadMessages(source=TopicPartition(TopicName("orders"), 0))
    warden.admit(command)
    assert warden.denied(Operation.READ, ["orders"]) == {}
    token = ASKING.set(ANN)
    try:
        with pytest.raises(TopicNotAllowed):
            warden.admit(command)
        assert list(warden.denied(Operation.READ, ["orders", None, "orders"])) == ["orders"]
    finally:
        ASKING.reset(token)


def test_whoever_runs_the_cluster_gives_nobody_rights() -> None:
    warden = Warden(RuleBook())
    warden.book.put("1", Binding(principal="User:ann", role=Role.OPERATOR))
    mine = BindRole(binding=Binding(principal="User:ann", role=Role.ADMIN))
    token = ASKING.set(ANN)
    try:
        warden.admit(ListReassignments())
        warden.admit(CancelDecommission(node=NodeId("node-1")))
        with pytest.raises(ClusterNotAllowed):
            warden.admit(mine)
        with pytest.raises(ClusterNotAllowed):
            warden.admit(CreateUser(name="eve"))
        rule = Rule(
            principal="User:ann", kind=ResourceKind.CLUSTER, name="kafka-cluster", operation=Operation.ALTER
        )
        warden.book.load({"1": rule}, {})
        warden.admit(mine)
        warden.admit(CancelDecommission(node=NodeId("node-1")))
    finally:
        ASKING.reset(token)


def test_whoever_may_create_in_the_cluster_may_create_any_topic() -> None:
    warden = Warden(RuleBook())
    rule = Rule(
        principal="User:ann", kind=ResourceKind.CLUSTER, name="kafka-cluster", operation=Operation.CREATE
    )
    token = ASKING.set(ANN)
    try:
        with pytest.raises(TopicNotAllowed):
            warden.admit(CreateTopic(name="orders"))
        warden.book.put("1", rule)
        warden.admit(CreateTopic(name="orders"))
        with pytest.raises(TopicNotAllowed):
            warden.admit(Publish(topic=TopicName("orders"), messages=[]))
    finally:
        ASKING.reset(token)


@pytest.mark.parametrize(
    ("kind", "name", "pattern", "is_allowed"),
    [
        (PatternKind.LITERAL, "orders", "orders", True),
        (PatternKind.LITERAL, "orders", "orders.*", False),
        (PatternKind.LITERAL, "orders", "orders-?secret", False),
        (PatternKind.LITERAL, "*", ".*", True),
        (PatternKind.PREFIXED, "orders", "^orders.*$", True),
        (PatternKind.PREFIXED, "orders-", "orders.*", False),
        (PatternKind.GLOB, "orders*", "orders-.*", True),
        (PatternKind.PREFIXED, "orders", "orders|secret", False),
        (PatternKind.PREFIXED, "orders", "(?i)orders", False),
    ],
)
def test_who_sees_one_topic_does_not_find_by_a_pattern_what_begins_like_it(
    kind: PatternKind, name: str, pattern: str, is_allowed: bool
) -> None:
    book = RuleBook()
    seen = Rule(
        principal="User:ann", kind=ResourceKind.TOPIC, name=name, operation=Operation.DESCRIBE, pattern=kind
    )
    book.put("1", seen)
    heartbeat = ConsumerHeartbeat(group="g", member_id="m", epoch=0, pattern=pattern)
    [need] = [need for need in needs_of(heartbeat) if need.kind is ResourceKind.TOPIC]
    assert book.allows(ANN, need) is is_allowed
