"""Every verb that a route of the HTTP door calls has a home: a new one without is seen here.

What is asked through `at_home` stands in the table of what nodes do for each other. What is called straight
is about the node asked, or told from the image that every node has.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator

import pytest

from goqueue.broker.forwarding.table import PASSED_ON
from goqueue.model.places import Seat
from tests.unit.broker.verbs_of_doors import EDGE, VERBS, command_of, imported

HTTP = EDGE / "http"
STRAIGHT = {
    ("health/routes.py", "list_topics"): "readiness: what this node has",
    ("queue/polling.py", "traceparents_of"): "told from ids in the image",
    ("transactions/routes.py", "add_receipts"): "refused by several nodes",
}
"""Calls of verbs that are right at whichever node is asked."""
AT_HOME = ("at_home", "seen_at_home")
HERE = (Seat.ANY_NODE, Seat.THIS_NODE)


def calls() -> Iterator[tuple[str, str, type, bool]]:
    """Module, verb, its command, and whether it is asked where it is at home."""
    for path in sorted(HTTP.rglob("*.py")):
        tree = ast.parse(path.read_text())
        verbs = {}
        for module, name in imported(tree):
            value = getattr(importlib.import_module(module), name, None)
            if inspect.isfunction(value) and f"{value.__module__}.{value.__name__}" in VERBS:
                verbs[name] = value
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = _name(node.func)
            is_at_home = called in AT_HOME
            name = _name(node.args[1]) if is_at_home else called
            if name in verbs:
                command = command_of(verbs[name])
                assert command is not None
                yield path.relative_to(HTTP).as_posix(), name, command, is_at_home


def seat_of(command: type) -> Seat | None:
    """Where a command is at home whatever its fields say."""
    try:
        place = inspect.getattr_static(command, "place").fget(None)
    except AttributeError:
        return None
    return place if isinstance(place, Seat) else None


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


CALLS = sorted(set(calls()), key=str)


def test_the_walk_sees_both_ways_to_call_a_verb() -> None:
    seen = {(module, verb): is_at_home for module, verb, _, is_at_home in CALLS}
    assert seen["messages/publishing.py", "publish"]
    assert not seen["topics/routes.py", "describe_settings"]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0]}:{call[1]}")
def test_a_verb_that_a_route_calls_has_a_home(call: tuple[str, str, type, bool]) -> None:
    module, verb, command, is_at_home = call
    if is_at_home:
        assert command in PASSED_ON, f"{command.__name__} is asked at home and has no line in the table"
    else:
        is_right = (module, verb) in STRAIGHT or seat_of(command) in HERE
        assert is_right, f"{module} calls {verb} straight: another node would answer differently"
