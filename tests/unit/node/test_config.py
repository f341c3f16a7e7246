"""Flags before environment before file, every problem at once."""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from goqueue.edge.http.config import HttpConfig
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.settings import BrokerConfig, MiB
from goqueue.node import config_table
from goqueue.node.config import ConfigProblems, NodeConfig, load_config
from goqueue.node.config_doors import ListenerConfig
from goqueue.node.config_table import NOT_THE_BROKERS, SETTINGS, UNSERVED, Setting, Unserved
from goqueue.node.config_values import Address


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def configured(
    *flags: str, environment: Mapping[str, str] | None = None, file: str | None = None
) -> NodeConfig:
    """What a node makes of these flags, variables and this settings file."""
    if file is not None:
        Path("goqueue.yaml").write_text(file)
        flags = ("--config", "goqueue.yaml", *flags)
    return load_config(flags, environment or {})


def problems_of(
    *flags: str, environment: Mapping[str, str] | None = None, file: str | None = None
) -> tuple[str, ...]:
    with pytest.raises(ConfigProblems) as refusal:
        configured(*flags, environment=environment, file=file)
    return refusal.value.problems


def test_without_settings_a_node_has_the_defaults_of_the_house() -> None:
    config = configured()

    assert config.broker == BrokerConfig()
    assert config.kafka == KafkaConfig()
    assert config.http == HttpConfig()
    assert config.data_folder == Path("data")
    assert config.kafka_listeners == (ListenerConfig(name="plaintext", address=Address("127.0.0.1", 9092)),)
    assert config.http_listeners == (ListenerConfig(name="plaintext", address=Address("127.0.0.1", 8080)),)
    assert config.tls is None
    assert config.logging_level == logging.INFO


def test_limits_of_health_that_contradict_each_other_are_told_where_they_are() -> None:
    problems = problems_of(
        "--health-disk-warn-percent=95", "--health-fsync-warn-ms=9000", "--health-loop-lag-warn-ms=9000"
    )

    places = [problem.split(":")[0] for problem in problems]
    assert places == ["--health-disk-warn-percent", "--health-fsync-warn-ms", "--health-loop-lag-warn-ms"]


def test_a_flag_wins_over_the_environment_and_that_over_the_file() -> None:
    file = "topics: {partitions: 5}\nlog: {flush_interval_ms: 50}\nbroker: {nodeid: node-5}"
    environment = {"GOQUEUE_TOPICS_PARTITIONS": "6", "GOQUEUE_LOG_FLUSH_INTERVAL_MS": "60"}

    config = configured("--topics-partitions", "7", environment=environment, file=file)

    assert config.broker.default_partitions == 7
    assert config.broker.flush_interval_ms == 60
    assert config.broker.node_id == "node-5"


def test_the_file_can_be_named_in_the_environment() -> None:
    Path("here.yaml").write_text("topics: {auto_create: false}")

    assert configured(environment={"GOQUEUE_CONFIG": "here.yaml"}).broker.auto_create_topics is False


def test_a_name_in_the_file_may_be_nested_further() -> None:
    config = configured(file="log: {retention: {ms: -1, bytes: 1GiB}}")

    assert config.broker.topic_defaults.retention_ms == -1
    assert config.broker.topic_defaults.retention_bytes == 1024 * MiB


def test_an_empty_file_sets_nothing() -> None:
    assert configured(file="").broker == BrokerConfig()


def test_a_message_limit_holds_for_new_topics_and_for_the_doors() -> None:
    config = configured("--limits-message-bytes=1MiB", "--limits-request-bytes=2MiB")

    assert config.broker.topic_defaults.max_message_bytes == MiB
    assert config.broker.limits.message_bytes == MiB
    assert config.broker.limits.request_bytes == 2 * MiB


def test_kafka_clients_can_be_told_another_address() -> None:
    config = configured("--kafka-advertised", "broker.example.org:19092")

    assert [listener.advertised for listener in config.kafka_listeners] == [
        Address("broker.example.org", 19_092)
    ]


def test_a_negative_number_can_be_given_to_a_flag() -> None:
    assert configured("--log-retention-ms", "-1").broker.topic_defaults.retention_ms == -1


def test_all_problems_are_told_at_once_each_with_its_place() -> None:
    problems = problems_of(
        "--topics-partitions",
        "none",
        "--listeners-kafka",
        environment={"GOQUEUE_LISTENERS_HTTP": "8080", "GOQUEUE_BROKER_NODEID": ""},
        file="log: {segment_bytes: tiny}",
    )

    assert len(problems) == 5
    text = "\n".join(problems)
    assert "--topics-partitions: 'none' is not a whole number" in text
    assert "--listeners-kafka: a value is missing" in text
    assert "GOQUEUE_LISTENERS_HTTP: '8080' has no port" in text
    assert "GOQUEUE_BROKER_NODEID: the node id must not be empty" in text
    assert "goqueue.yaml: log.segment_bytes: 'tiny' is not a size" in text


def test_an_unknown_name_is_a_problem_and_the_nearest_is_suggested_in_the_same_spelling() -> None:
    problems = problems_of(
        "--broker-datdir=x",
        environment={"GOQUEUE_LISTENER_HTTP": "x"},
        file="topics: {partition: 3}",
    )

    assert problems == (
        "--broker-datdir: there is no such flag; did you mean --broker-datadir?",
        "GOQUEUE_LISTENER_HTTP: there is no such setting; did you mean GOQUEUE_LISTENERS_HTTP?",
        "goqueue.yaml: topics.partition: there is no such setting; did you mean topics.partitions?",
    )


def test_a_name_like_no_other_points_to_the_help() -> None:
    assert problems_of(environment={"GOQUEUE_XYZZY": "1"}) == (
        "GOQUEUE_XYZZY: there is no such setting; see goqueue --help for all of them",
    )


def test_a_word_that_is_no_flag_is_a_problem() -> None:
    assert problems_of("start") == ("start: goqueue takes flags only; see goqueue --help",)


def test_variables_of_the_command_line_tools_are_none_of_the_brokers_business() -> None:
    environment = dict.fromkeys(NOT_THE_BROKERS, "anything")

    assert configured(environment={**environment, "PATH": "/bin"}).broker == BrokerConfig()


@pytest.mark.parametrize("unserved", UNSERVED, ids=lambda unserved: unserved.name)
def test_what_this_version_does_not_serve_is_refused_unless_it_is_off(unserved: Unserved) -> None:
    name = f"GOQUEUE_{unserved.name}"

    (problem,) = problems_of(environment={name: "secret"})

    assert problem.startswith(name)
    assert "not available in this version" in problem
    assert "secret" not in problem
    flag = f"--{unserved.name.lower().replace('_', '-')}"
    assert problems_of(flag, "secret") == (problem.replace(name, flag),)
    assert problems_of(flag) == (problem.replace(name, flag),)
    assert configured(environment={name: ""}).broker == BrokerConfig()


def test_every_setting_that_is_read_can_be_given() -> None:
    written = [found for found in vars(config_table).values() if isinstance(found, Setting)]

    assert [setting.name for setting in written if setting not in SETTINGS] == []


def test_contract_defaults_of_unserved_settings_are_accepted() -> None:
    settings = configured(
        environment={
            "GOQUEUE_LISTENERS_GRPC": "127.0.0.1:9000",
            "GOQUEUE_LISTENERS_INTERNAL": ":7000",
            "GOQUEUE_CLUSTER_ENABLED": "false",
            "GOQUEUE_CLUSTER_QUORUM": "2",
            "GOQUEUE_TLS_ENABLED": "FALSE",
            "GOQUEUE_AUTH_ALLOW_HEALTH": "true",
        }
    )

    assert settings.broker == BrokerConfig()


def test_a_node_is_alone_unless_a_cluster_is_asked_for() -> None:
    assert configured("--cluster-etcd", "10.0.0.1:2379").cluster is None
    cluster = configured(
        "--cluster-enabled", "true",
        "--cluster-etcd", "http://10.0.0.1:2379, etcd-2:2379",
        "--cluster-rack", "north",
        "--cluster-advertise", "node-1.example:7000",
    ).cluster  # fmt: skip
    assert cluster is not None
    assert list(map(str, cluster.etcd)) == ["10.0.0.1:2379", "etcd-2:2379"]
    assert (cluster.rack, str(cluster.peer_advertised)) == ("north", "node-1.example:7000")
    assert (cluster.name, cluster.session_ms, cluster.quorum) == ("goqueue", 2_000, 2)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--listeners-internal", ":7000"], "nodes need a secret"),
        (["--listeners-internal", ":7000", "--cluster-secret", "short"], "fewer than 16 characters"),
        (["--listeners-internal", "127.0.0.1:9092"], "taken by another door"),
        (["--cluster-etcd", "https://etcd:2379,etcd:2380"], "all members of etcd speak TLS or none"),
        (["--cluster-etcd", ","], "no address of etcd"),
        (["--cluster-etcd", "etcd:0"], "not an address to connect to"),
        (["--cluster-name", "a/b"], "not a name"),
        (["--cluster-peers", "a:1,b"], "has no port"),
        (["--cluster-session-ms", "10"], "out of range"),
    ],
)
def test_what_a_cluster_cannot_be_made_with_is_a_problem(flags: list[str], problem: str) -> None:
    (told,) = problems_of("--cluster-enabled", "true", *flags)

    assert problem in told


def test_two_doors_cannot_share_a_port() -> None:
    (problem,) = problems_of("--listeners-http", ":9092", "--insecure")

    assert "taken by GOQUEUE_LISTENERS_KAFKA=127.0.0.1:9092" in problem


def test_a_door_can_be_left_out_but_not_every_door() -> None:
    assert configured("--listeners-http", "off").http_listeners == ()
    (problem,) = problems_of("--listeners-http", "off", "--listeners-kafka", "off")
    assert "a broker needs a door" in problem


def test_settings_that_do_not_go_together_are_told_at_one_of_them() -> None:
    problems = problems_of(
        "--limits-message-bytes", "65MiB", "--topics-partitions", "11", "--limits-topic-partitions", "10"
    )

    assert problems[0].startswith("--limits-message-bytes: a request must have room for a whole message")


def test_the_data_folder_must_be_a_folder() -> None:
    Path("data").write_text("a file")

    (problem,) = problems_of()

    assert problem.startswith("GOQUEUE_BROKER_DATADIR: data is not a directory")


def test_the_parent_of_the_data_folder_must_exist() -> None:
    (problem,) = problems_of("--broker-datadir", "nowhere/data")

    assert "the parent of nowhere/data does not exist" in problem


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("log: [", "is not YAML"),
        ("- a list", "holds sections"),
        ("log: {segment_bytes: 1MiB, segment: {bytes: 2MiB}}", "set twice"),
        ("log: {segment_bytes: [1, 2]}", "'1,2' is not a size"),
    ],
)
def test_a_file_that_cannot_be_understood_is_a_problem(file: str, problem: str) -> None:
    (told,) = problems_of(file=file)

    assert told.startswith("goqueue.yaml: ")
    assert problem in told


def test_a_file_that_is_not_there_is_a_problem() -> None:
    (problem,) = problems_of("--config", "absent.yaml")

    assert problem.startswith("absent.yaml: the settings file cannot be read")


def test_help_tells_every_flag_with_its_variable_and_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        configured("--help")

    shown = " ".join(capsys.readouterr().out.split())
    assert end.value.code == 0
    for setting in SETTINGS:
        assert setting.flag in shown
        assert f"[{setting.variable}, default: {setting.default or 'none'}]" in shown
