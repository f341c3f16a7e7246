"""The steps of a pipeline from its file: SQL, Python functions, watermarks."""

import ast
import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from goqueue.model.errors import Invalid
from goqueue.spark.pipelines.spec import SOURCE, PythonStep, SqlStep, Step, WatermarkStep
from goqueue.spark.pipelines.yaml_nodes import Section

_KINDS = ("sql", "python", "watermark")
_KEYS = (*_KINDS, "name")
_TAKEN = (SOURCE, "prev")
_VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def read_steps(sections: Sequence[Section], *, folder: Path) -> tuple[Step, ...]:
    """The steps, in order; what is wrong with them is noted at their lines."""
    found = []
    names: set[str] = set()
    for section in sections:
        section.refuse_unknown(_KEYS)
        kinds = [kind for kind in _KINDS if section.has(kind)]
        if len(kinds) != 1:
            section.refuse("", f"{section.name} needs one of {', '.join(_KINDS)}")
            continue
        name = section.text("name")
        if name and (not _VIEW.fullmatch(name) or name in _TAKEN or name in names):
            section.refuse("name", f"{name!r} cannot name a step: letters, digits and '_', each name once")
        names.add(name)
        found.append(_step(section, kinds[0], name, folder))
    return tuple(found)


def _step(section: Section, kind: str, name: str, folder: Path) -> Step:
    position = section.position_of(kind)
    match kind:
        case "sql":
            return SqlStep(sql=section.text("sql"), name=name, position=position)
        case "python":
            function = section.text("python")
            try:
                if function:
                    check_function(function, folder)
            except Invalid as problem:
                section.refuse("python", str(problem))
            return PythonStep(function=function, name=name, position=position)
        case _:
            inner = section.section("watermark")
            if inner is None:
                return WatermarkStep(column="", delay="", name=name, position=position)
            inner.refuse_unknown(("column", "delay"))
            column = inner.required_text("column", "a column of times")
            delay = inner.required_text("delay", "how late a row may come, like 10 minutes")
            return WatermarkStep(column=column, delay=delay, name=name, position=position)


def check_function(function: str, folder: Path) -> None:
    """See that `module:function` is there, without running any of it."""
    if not _FUNCTION.fullmatch(function):
        raise Invalid(f"{function!r} does not name a function: write module:function")
    module, _, wanted = function.partition(":")
    found = find_module(module, folder)
    if found is None or found.origin is None:
        raise Invalid(f"there is no module {module} beside the file or among the installed packages")
    if found.origin.endswith(".py"):
        tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
        if wanted not in _names_of(tree):
            raise Invalid(f"module {module} has no function {wanted}")


def find_module(module: str, folder: Path) -> importlib.machinery.ModuleSpec | None:
    """Where a module lies: beside the pipeline's file first, then where Python looks."""
    try:
        beside = importlib.machinery.PathFinder.find_spec(module, [str(folder)])
        return beside or importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return sys.modules[module].__spec__ if module in sys.modules else None


def _names_of(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names
