"""SECURITY.md: each threat names the tests that keep what it says true."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| (?P<threat>[^|]+) \| (?P<answer>[^|]+) \| (?P<shown>[^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> list[re.Match[str]]:
    _head, _line, *threats = ROW.finditer((ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    return threats


def names_in(path: Path) -> set[str]:
    found = ast.parse(path.read_text(encoding="utf-8")).body
    return {each.name for each in found if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_threat_names_tests_that_are_there() -> None:
    threats = rows()
    assert len(threats) > 20
    for row in threats:
        named = TEST.findall(row["shown"])
        assert named, f"nothing shows that {row['threat']!r} is stood against"
        missing = [name for file, name in named if name not in names_in(ROOT / file)]
        assert missing == [], row["threat"]
        assert TEST.sub("", row["shown"]).strip(", ") == "", row["shown"]
