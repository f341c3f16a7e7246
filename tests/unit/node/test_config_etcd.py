"""Settings by which etcd is reached: over TLS or not, as whom, and what does not go together."""

from pathlib import Path

import pytest

from goqueue.node.config import ConfigProblems, NodeConfig, load_config
from goqueue.node.config_etcd import EtcdAccess

CLUSTER = ("--cluster-enabled=true",)


def config(folder: Path, *flags: str) -> NodeConfig:
    return load_config([f"--data-dir={folder}/data", *CLUSTER, *flags], {})


def access(folder: Path, *flags: str) -> EtcdAccess:
    cluster = config(folder, *flags).cluster
    assert cluster is not None
    return cluster.etcd_access


def problems(folder: Path, *flags: str) -> str:
    with pytest.raises(ConfigProblems) as refused:
        config(folder, *flags)
    return " ".join(refused.value.problems)


def test_etcd_is_spoken_to_in_the_clear_unless_its_members_begin_with_https(tmp_path: Path) -> None:
    assert access(tmp_path) == EtcdAccess()
    assert access(tmp_path, "--cluster-etcd=http://127.0.0.1:2379") == EtcdAccess()
    assert access(tmp_path, "--cluster-etcd=https://a:2379,https://b:2379") == EtcdAccess(has_tls=True)
    assert "all members" in problems(tmp_path, "--cluster-etcd=https://a:2379,b:2379")


def test_files_are_named_where_they_are_of_use_and_there(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    ca_file = f"--cluster-etcd-ca-file={tmp_path}/ca.pem"

    assert "write https://" in problems(tmp_path, ca_file)
    over_tls = "--cluster-etcd=https://a:2379"
    assert access(tmp_path, over_tls, ca_file).ca_file == tmp_path / "ca.pem"
    assert "there is no file" in problems(tmp_path, over_tls, "--cluster-etcd-ca-file=missing.pem")
    alone = problems(tmp_path, over_tls, f"--cluster-etcd-cert-file={tmp_path}/ca.pem")
    assert "a certificate and its key are named together" in alone


def test_a_password_needs_a_user_and_is_not_sent_in_the_clear(tmp_path: Path) -> None:
    login = ("--cluster-etcd-user=node", "--cluster-etcd-password=the secret word")

    assert access(tmp_path, *login).user == "node"  # on this machine
    assert "the secret word" not in repr(access(tmp_path, *login))
    assert "named together" in problems(tmp_path, login[0])
    assert "named together" in problems(tmp_path, login[1])
    told = problems(tmp_path, "--cluster-etcd=a:2379", *login)
    assert "in the clear" in told and "the secret word" not in told
    assert access(tmp_path, "--cluster-etcd=https://a:2379", *login).has_tls
