"""What `goqueue up` tells its nodes."""

from pathlib import Path

from goqueue.node import up


def test_others_are_told_of_what_stands_before_a_peer_door() -> None:
    options = up._parser().parse_args(["--peer-port=7000", "--peer-advertised-port=9000"])

    child = up._node(options, Path("data"), {}, "127.0.0.1:2379", 2)

    assert child._environment["GOQUEUE_LISTENERS_INTERNAL"] == "127.0.0.1:7001"
    assert child._environment["GOQUEUE_CLUSTER_ADVERTISE"] == "127.0.0.1:9001"


def test_nodes_are_spread_over_the_racks_in_turn() -> None:
    options = up._parser().parse_args(["--racks=north,south"])

    nodes = [up._node(options, Path("data"), {}, "127.0.0.1:2379", number) for number in (1, 2, 3)]

    assert [node._environment["GOQUEUE_CLUSTER_RACK"] for node in nodes] == ["north", "south", "north"]
