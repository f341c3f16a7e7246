"""A mirror to a broker behind locks: what is named for it is for it alone."""

from pathlib import Path

import pytest

from goqueue.cli.jobs.topics import locks_of
from goqueue.model.errors import Invalid
from goqueue.spark.sink.options import sink_options
from tests.doors.certificates import Certificates


def test_files_that_are_named_for_the_other_broker_become_options_of_its_sink(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    cert_file, key_file = certificates.of("mirror")
    key = tmp_path / "api.key"
    key.write_text("gq_" + "0" * 64)
    key.chmod(0o600)

    locks = locks_of(certificates.ca_file, cert_file, key_file, key)
    options = {"bootstrap": "https://other:8443", "topic": "orders", **locks}
    taken = sink_options(options, is_streaming=False).locks

    assert taken.trust.ca_file == certificates.ca_file
    assert (taken.trust.cert_file, taken.trust.key_file) == (cert_file, key_file)
    assert taken.api_key_file == key


def test_nothing_is_shown_that_was_not_named_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOQUEUE_API_KEY_FILE", str(tmp_path / "own.key"))

    assert locks_of() == {}


def test_a_file_that_is_not_there_is_told_before_anything_is_copied(tmp_path: Path) -> None:
    missing = locks_of(tmp_path / "missing.pem")

    with pytest.raises(Invalid, match="missing"):
        sink_options({"bootstrap": "https://o:1", "topic": "orders", **missing}, is_streaming=False)
