"""`goqueue-cli schema`: register, look, and know beforehand."""

import json
from pathlib import Path

import pytest

from goqueue.cli.broker.schemas import SubjectRow
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.client.calls.schemas import Fit, Registered, Schema
from tests.unit.cli.command_line import CommandLine

FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
BROKEN = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A schema, and one that may not follow it."""
    first, broken = tmp_path / "first.avsc", tmp_path / "broken.avsc"
    first.write_text(json.dumps(FIRST))
    broken.write_text(json.dumps(BROKEN))
    return str(first), str(broken)


def test_a_schema_is_registered_once_and_shown(cli: CommandLine, files: tuple[str, str]) -> None:
    told = cli.printed("schema", "register", "shown-value", "-f", files[0])
    again = cli.told(Registered, "schema", "register", "shown-value", "-f", files[0])
    shown = cli.printed("schema", "get", "shown-value").splitlines()
    schema = cli.told_alike(Schema, "schema", "get", "shown-value", "--version", "1")

    assert told == f"✓ shown-value version 1, id {again.id}\n"
    assert shown[:2] == ["Subject: shown-value", "Version: 1"]
    assert "Type:    AVRO" in shown and json.loads(shown[-1]) == FIRST
    assert schema.id == again.id


def test_subjects_are_listed_with_their_versions(cli: CommandLine) -> None:
    cli.printed(
        "schema", "register", "listed-value", "--file", "-", "--type", "json", given='{"type": "object"}'
    )

    assert cli.rows("schema", "list")[0] == ["SUBJECT", "VERSIONS", "LATEST", "ID", "TYPE", "COMPATIBILITY"]
    rows = cli.told_alike(list[SubjectRow], "schema", "list")
    [row] = [row for row in rows if row.subject == "listed-value"]
    assert (row.versions, row.type, row.compatibility) == ([1], "JSON", "BACKWARD")


def test_a_check_says_which_rule_would_be_broken(cli: CommandLine, files: tuple[str, str]) -> None:
    cli.printed("schema", "register", "checked-value", "-f", files[0])

    assert "may follow" in cli.printed("schema", "check", "checked-value", "-f", files[0])
    refused = cli.ends(ExitCode.FAILED, "schema", "check", "checked-value", "-f", files[1])
    against = cli.ends(
        ExitCode.FAILED, "schema", "check", "checked-value", "-f", files[1], "--version", "latest"
    )
    fit = cli.told(Fit, "schema", "check", "checked-value", "-f", files[0], "--version", "1")

    assert "type_mismatch" in refused.stdout and refused.stderr.startswith("Error: ")
    assert against.stdout == refused.stdout
    assert fit.is_compatible
    assert cli.ends(ExitCode.FAILED, "schema", "register", "checked-value", "-f", files[1]).stderr


def test_a_subject_is_deleted_only_with_a_yes(cli: CommandLine, files: tuple[str, str]) -> None:
    cli.printed("schema", "register", "deleted-value", "-f", files[0])

    cli.ends(ExitCode.WRONG_COMMAND, "schema", "delete", "deleted-value")
    assert (
        cli.printed("schema", "delete", "deleted-value", "-f")
        == "✓ deleted: 1 version of deleted-value (1)\n"
    )
    cli.printed("schema", "delete", "deleted-value", "-f", "--permanent")

    assert "schema list" in cli.ends(ExitCode.NOT_FOUND, "schema", "get", "deleted-value").stderr


def test_what_is_no_version_and_no_schema_is_told(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff")

    assert "latest" in cli.ends(ExitCode.WRONG_COMMAND, "schema", "get", "x", "--version", "first").stderr
    assert (
        "no text" in cli.ends(ExitCode.FAILED, "schema", "check", "x", "-f", str(tmp_path / "bytes")).stderr
    )
