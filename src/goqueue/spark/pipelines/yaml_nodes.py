"""YAML with the places of its words, so that every problem can be told with its line and column."""

import difflib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from goqueue.model.errors import Invalid


class Position(NamedTuple):
    """Where something stands in a file, counted from 1."""

    line: int
    column: int


class Problem(NamedTuple):
    """Something to mend, and where it is."""

    position: Position
    text: str


START = Position(1, 1)


class InvalidPipeline(Invalid):
    """Everything that is wrong with one pipeline file."""

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """A line a problem, in the form that editors can jump to."""
        return [f"{self.path}:{at.line}:{at.column}: {text}" for at, text in self.problems]


class Section:
    """A mapping in the file. What is wrong with it joins the problems of the whole file."""

    def __init__(self, node: yaml.MappingNode, name: str, problems: list[Problem]) -> None:
        self.name = name
        self.position = _position(node)
        self._problems = problems
        self._keys: dict[str, yaml.Node] = {}
        self._values: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if key.value in self._values:
                problems.append(Problem(_position(key), f"{key.value} is given twice"))
            self._keys[key.value], self._values[key.value] = key, value

    def has(self, key: str) -> bool:
        return key in self._values

    def names(self) -> list[str]:
        """The keys, in the file's order."""
        return list(self._values)

    def position_of(self, key: str) -> Position:
        """Where a key stands; the whole section where there is no such key."""
        return _position(self._keys[key]) if key in self._keys else self.position

    def refuse(self, key: str, text: str) -> None:
        self._problems.append(Problem(self.position_of(key), text))

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Refuse every key that has no meaning here, with the nearest one that has."""
        names = list(known)
        by_lower = {name.lower(): name for name in names}
        for key in self._values:
            if key not in names:
                near = difflib.get_close_matches(key.lower(), by_lower, n=1)
                hint = f"; did you mean {by_lower[near[0]]}?" if near else ""
                self.refuse(key, f"{self.name} has no {key}{hint}")

    def text(self, key: str) -> str:
        """A text; empty, with a problem noted, where it is something else."""
        node = self._values.get(key)
        if node is None:
            return ""
        if not isinstance(node, yaml.ScalarNode):
            self.refuse(key, f"{key} must be a text")
            return ""
        if not node.value.strip() or node.tag.endswith(":null"):
            self.refuse(key, f"{key} has no value")
            return ""
        return str(node.value).strip()

    def required_text(self, key: str, advice: str) -> str:
        if not self.has(key):
            self.refuse(key, f"{self.name} needs {key}: {advice}")
        return self.text(key)

    def section(self, key: str) -> "Section | None":
        """A section inside this one."""
        node = self._values.get(key)
        if node is None:
            return None
        return self._as_section(node, key)

    def sections(self, key: str) -> list["Section"]:
        """The sections of a list inside this one."""
        node = self._values.get(key)
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.refuse(key, f"{key} must be a list, each entry behind a dash")
            return []
        if not node.value:
            self.refuse(key, f"{key} is empty")
        found = [self._as_section(each, f"{key}[{number}]") for number, each in enumerate(node.value, 1)]
        return [section for section in found if section is not None]

    def option(self, key: str) -> str:
        """A value as Spark's options have it: lists with commas, mappings as JSON."""
        node = self._values[key]
        if isinstance(node, yaml.ScalarNode):
            return self.text(key)
        value = yaml.SafeLoader("").construct_document(node)
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return ",".join(value)
        return json.dumps(value)

    def _as_section(self, node: yaml.Node, name: str) -> "Section | None":
        if isinstance(node, yaml.MappingNode):
            return Section(node, name, self._problems)
        self._problems.append(Problem(_position(node), f"{name} must hold keys and values"))
        return None


def read_root(text: str, problems: list[Problem]) -> Section | None:
    """The whole file as a section; None, with a problem noted, where it is no YAML or holds no keys."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        position = Position(mark.line + 1, mark.column + 1) if mark else START
        problems.append(Problem(position, f"this is not YAML: {error.problem}"))
        return None
    except yaml.YAMLError as error:
        problems.append(Problem(START, f"this is not YAML: {' '.join(str(error).split())}"))
        return None
    if isinstance(node, yaml.MappingNode):
        return Section(node, "a pipeline", problems)
    problems.append(Problem(START, "a pipeline has keys: name, source, sinks"))
    return None


def _position(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)
