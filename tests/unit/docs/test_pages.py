"""The pages of the house: each can be found from the README, and what they name is there."""

import re
from pathlib import Path

import pytest

from goqueue.node.config_table import (
    CONFIG_VARIABLE,
    NOT_THE_BROKERS,
    PREFIX,
    SETTINGS,
    UNSERVED,
    variable_of,
)

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
_ROOTS = (ROOT, ROOT / "src/goqueue")
"""What the names of modules in pages begin at."""
PAGES = sorted(ROOT.glob("docs/*.md"))
DECISIONS = sorted(ROOT.glob("docs/adr/0*.md"))
ALL = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *PAGES, *sorted(ROOT.glob("docs/adr/*.md"))]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_VARIABLE = re.compile(rf"\b{PREFIX}[A-Z0-9_]*[A-Z0-9]\b")
_MODULE = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)`")
_CONFLICT = re.compile(r"^(<{7}|>{7}|={7}$)", re.MULTILINE)
_DATE = re.compile(r"^Date: \d{4}-\d\d-\d\d\. Status: (accepted|superseded)", re.MULTILINE)


def links(page: Path) -> list[tuple[Path, str]]:
    """Where a page points to inside the tree: a file or folder, and a heading if it names one."""
    targets = [link.partition("#") for link in _LINK.findall(page.read_text()) if "://" not in link]
    return [((page.parent / path).resolve() if path else page, anchor) for path, _, anchor in targets]


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    headings = _HEADING.findall(_FENCED.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_linked_from_the_readme_or_from_a_page_that_is() -> None:
    first = {path for path, _ in links(README)}
    second = {path for page in first if page.suffix == ".md" for path, _ in links(page)}

    assert [page.name for page in PAGES if page not in first | second] == []


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert [
        f"{path}#{anchor}"
        for path, anchor in links(page)
        if not path.exists() or (anchor and anchor not in anchors(path))
    ] == []


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_every_variable_that_a_page_names_can_be_set(page: Path) -> None:
    known = {setting.variable for setting in SETTINGS} | {variable_of(unserved.name) for unserved in UNSERVED}
    known |= {CONFIG_VARIABLE, *NOT_THE_BROKERS}

    assert set(_VARIABLE.findall(page.read_text())) - known == set()


@pytest.mark.parametrize("page", [README, *PAGES, *DECISIONS], ids=lambda page: page.stem)
def test_a_page_says_one_thing_and_not_what_two_have_written_at_the_same_time(page: Path) -> None:
    assert _CONFLICT.search(page.read_text()) is None


def test_the_readme_names_the_page_of_all_routes() -> None:
    assert "http://127.0.0.1:8080/docs" in README.read_text()


def test_decisions_are_dated_listed_and_numbered_without_a_gap() -> None:
    listing = (ROOT / "docs/adr/README.md").read_text()
    unused = {int(number) for number in re.findall(r"Number (\d+) was not used", listing)}
    numbers = [int(page.name[:4]) for page in DECISIONS]

    assert [page.name for page in DECISIONS if f"]({page.name})" not in listing] == []
    assert [page.name for page in DECISIONS if not _DATE.search(page.read_text())] == []
    assert sorted({*numbers, *unused}) == list(range(1, max(numbers) + 1))
    assert len(numbers) == len(set(numbers))
    assert unused.isdisjoint(numbers)


@pytest.mark.parametrize(
    "page", [page for page in ALL if page.name != "CHANGELOG.md"], ids=lambda page: page.name
)
def test_a_module_that_a_page_names_is_there(page: Path) -> None:
    named = _MODULE.findall(page.read_text())
    assert [name for name in named if not any((root / name).is_file() for root in _ROOTS)] == []


def test_some_pages_name_modules() -> None:
    assert len(_MODULE.findall((ROOT / "docs/architecture.md").read_text())) > 10
