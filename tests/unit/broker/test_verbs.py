"""What doors call is a verb: one function that takes one command, to be passed on, logged and replayed.

The imports of `edge/` are walked, so that a new verb is seen here before anybody has to think of it.
"""

import ast
import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import is_dataclass
from types import UnionType
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.broker.forwarding.at_home import at_home
from goqueue.model.tenants import QUOTA_MAX, Quotas
from tests.unit.broker.verbs_of_doors import (
    COMMANDS,
    EDGE,
    FUNCTIONS,
    TAKING_A_BROKER,
    VERBS,
    WAYS,
    command_of,
)

ENCODER = msgspec.msgpack.Encoder()

LOOKED_AT = {
    "clock": "ports",
    "threads": "ports",
    "config": "what this node was told",
    "node_number": "what this node was told",
    "is_one_of_several": "what this node was told",
    "is_open": "what this node is doing",
    "started_ms": "what this node is doing",
    "health": "what this node is doing",
    "counters": "what happens at a door is counted and told there",
    "telemetry": "what happens at a door is counted and told there",
    "cluster_id": "the image of topics and tenants, which every node has",
    "metadata": "the image",
    "topic_counts": "the image",
    "partition_count": "the image",
    "tenants": "the image: are there any",
    "schemas": "the registry, which every node reads",
}
"""What doors look at without a verb, and what it is."""


def test_doors_are_seen_to_call_verbs() -> None:
    assert "goqueue.broker.groups.verbs.heartbeat" in VERBS, "reached through its module"
    assert "goqueue.broker.groups.lag.group_lag" in VERBS, "imported by name"


def test_whatever_takes_a_broker_takes_one_command() -> None:
    assert TAKING_A_BROKER.keys() - VERBS.keys() == {f"{at_home.__module__}.{at_home.__name__}"}


def test_a_helper_that_is_no_verb_waits_for_nothing() -> None:
    helpers = [function for name, function in FUNCTIONS.items() if name not in TAKING_A_BROKER]

    assert [helper.__name__ for helper in helpers if inspect.iscoroutinefunction(helper)] == []


def test_a_command_says_which_verb_is_meant() -> None:
    verbs: dict[type | None, set[str]] = {}
    for verb in VERBS.values():
        verbs.setdefault(command_of(verb), set()).add(WAYS.get(verb.__name__, verb.__name__))

    assert {command: names for command, names in verbs.items() if len(names) > 1} == {}


def test_doors_look_at_nothing_of_a_broker_that_another_node_may_have() -> None:
    """Partitions, coordinators, keepers: what is there is asked by a command, which finds its place."""
    looked_at = {
        node.attr
        for path in EDGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and is_broker(node.value)
    }

    assert looked_at == LOOKED_AT.keys()


def is_broker(node: ast.expr) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in ("broker", "_broker")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_a_command_is_a_frozen_word_of_the_model_and_has_a_place(command: type) -> None:
    assert command.__module__.startswith("goqueue.model.")
    assert isinstance(inspect.getattr_static(command, "place", None), property)
    assert issubclass(command, tuple) or command.__dataclass_params__.frozen  # type: ignore[attr-defined]


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Anything that a field may hold, in the plain shapes that doors give."""
    plain: dict[Any, st.SearchStrategy[Any]] = {
        Quotas: st.builds(Quotas, max_topics=st.integers(0, QUOTA_MAX)),
        int: st.integers(-(2**63), 2**63 - 1),
        memoryview: st.binary().map(lambda given: memoryview(given)),
    }
    origin, inner = get_origin(hint), [values(each) for each in get_args(hint) if each is not Ellipsis]
    if isinstance(hint, NewType):
        return values(hint.__supertype__)
    if origin in (Union, UnionType):
        return st.one_of(inner)
    if origin is tuple and Ellipsis not in get_args(hint):
        return st.tuples(*inner)
    if origin is tuple:
        return st.lists(inner[0], max_size=2).map(tuple)
    if origin in (Sequence, Collection):
        return st.lists(inner[0], max_size=2)
    if origin is frozenset:
        return st.frozensets(inner[0], max_size=1)  # several come in any order, which says nothing
    if origin is Mapping:
        return st.dictionaries(*inner, max_size=2)
    if hint not in plain and (is_dataclass(hint) or hasattr(hint, "_fields")):
        return st.builds(hint, **{name: values(each) for name, each in get_type_hints(hint).items()})
    return plain[hint] if hint in plain else st.from_type(hint)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_a_command_can_be_passed_on(command: Any, data: st.DataObject) -> None:
    given_command = data.draw(values(command))
    encoded = ENCODER.encode(given_command)

    received = msgspec.msgpack.decode(encoded, type=command)

    assert type(received) is command
    assert ENCODER.encode(received) == encoded
    assert ENCODER.encode(received.place) == ENCODER.encode(given_command.place)
