"""The verbs that doors call, found by walking what `edge/` imports."""

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import goqueue

EDGE = Path(goqueue.__file__).parent / "edge"
BROKER = "goqueue.broker"
Function = Callable[..., Any]

WAYS = {"begin_commit": "commit_offsets", "append_when_checked": "append"}
"""A verb that comes in two ways of waiting: the second function takes the same command."""

PARTS = ("Broker", "Partition]", "broker.storage", "broker.groups", "broker.queue", "broker.delays")


def called_by_doors() -> dict[str, Function]:
    """Functions of the broker that doors import, by their full names."""
    found: dict[str, Function] = {}
    for path in EDGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for module, name in imported(tree):
            value = getattr(importlib.import_module(module), name, None)
            if inspect.isfunction(value):
                found[f"{value.__module__}.{value.__name__}"] = value
    return found


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Module and name of all that comes from the broker, also what is reached through a module."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(BROKER):
            assert node.module is not None
            for alias in node.names:
                if is_module(f"{node.module}.{alias.name}"):
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                else:
                    yield node.module, alias.name
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith(BROKER) for alias in node.names), "say from … import"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield modules[node.value.id], node.attr


def is_module(name: str) -> bool:
    try:
        return isinstance(importlib.import_module(name), ModuleType)
    except ModuleNotFoundError:
        return False


def takes_broker(function: Function) -> bool:
    """Whether it is given a broker, or a part of one at work, under whatever name."""
    return any(
        parameter.name == "broker" or any(part in str(parameter.annotation) for part in PARTS)
        for parameter in inspect.signature(function).parameters.values()
    )


def command_of(verb: Function) -> type | None:
    """The class of its command; None: it takes something else."""
    parameters = list(inspect.signature(verb).parameters.values())
    if [parameter.name for parameter in parameters] != ["broker", "command"]:
        return None
    annotation = parameters[1].annotation
    return annotation if isinstance(annotation, type) else None


FUNCTIONS = called_by_doors()
TAKING_A_BROKER = {name: function for name, function in FUNCTIONS.items() if takes_broker(function)}
VERBS = {name: function for name, function in TAKING_A_BROKER.items() if command_of(function) is not None}
COMMANDS = sorted({command_of(verb) for verb in VERBS.values()}, key=lambda command: str(command))
VERB_OF: dict[Any, Function] = {
    command_of(verb): verb for verb in VERBS.values() if verb.__name__ not in WAYS
}
"""Which verb a command means."""
