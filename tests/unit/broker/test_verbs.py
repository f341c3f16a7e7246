"""What doors call is a verb: one function that takes one command, to be passed on, logged and replayed.

The imports of `edge/` are walked, so that a new verb is seen here before anybody has to think of it.
"""

import ast
import inspect
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.broker.forwarding import at_home
from tests.unit.broker.drawn_values import values
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
    "shared_topics": "the image: how many copies a topic gets",
    "topic_counts": "the image",
    "partition_count": "the image",
    "tenants": "the image: are there any",
    "warden": "the image: who may do what",
    "audit": "what was asked of this node is written down here",
    "identities": "the image: users and keys, which every node has",
    "group_settings": "the image: what was set for groups",
    "client_quotas": "the image: what users and client ids are held to",
    "agreement": "doors hear when users and keys have changed",
    "schemas": "the registry, which every node reads",
}
"""What doors look at without a verb, and what it is."""


def test_doors_are_seen_to_call_verbs() -> None:
    assert "goqueue.broker.groups.verbs.heartbeat" in VERBS, "reached through its module"
    assert "goqueue.broker.groups.lag.group_lag" in VERBS, "imported by name"


def test_whatever_takes_a_broker_takes_one_command() -> None:
    standing_before = {f"{at_home.__name__}.{name}" for name in ("at_home", "here", "seen_at_home")}
    assert TAKING_A_BROKER.keys() - VERBS.keys() == standing_before


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
