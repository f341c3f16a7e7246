"""The pages made from code are up to date, and the version is told the same everywhere."""

import tomllib
from pathlib import Path

import pytest

import goqueue
from goqueue.model.errors import every_error
from goqueue.node.reference_pages import PAGES

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_made_from_code_says_what_the_code_says(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"


def test_no_two_errors_share_a_code() -> None:
    codes = [error.code for error in every_error()]

    assert len(codes) == len(set(codes))


def test_the_package_and_its_metadata_agree_on_the_version() -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    assert metadata["project"]["version"] == goqueue.__version__


def test_no_file_for_installation_names_a_registry() -> None:
    for name in ("constraints.txt", "pyproject.toml", "Makefile", ".ci/run"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "://" not in text, name
        assert "index-url" not in text, name


def test_every_pinned_version_is_exact() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()

    assert all("==" in line for line in lines if not line.startswith("#"))
