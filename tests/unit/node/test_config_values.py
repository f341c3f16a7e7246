"""How a setting's text becomes a value, and what is said when it cannot."""

import logging

import pytest

from goqueue.edge.listening import SecurityProtocol
from goqueue.model.settings import KiB, MiB
from goqueue.node.config_values import (
    Address,
    Listening,
    address,
    advertised,
    folder,
    listeners,
    logging_level,
    node_id,
    off_or_whole_number,
    share,
    size,
    switch,
    whole_number,
)

any_size = size(least=-1, most=2**40)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-1", -1),
        ("67108864", 64 * MiB),
        ("64MiB", 64 * MiB),
        ("64MB", 64 * MiB),
        ("64m", 64 * MiB),
        ("64 KiB", 64 * KiB),
        ("1GiB", 1024 * MiB),
        ("512B", 512),
    ],
)
def test_a_size_is_bytes_or_a_number_with_a_unit_of_1024(text: str, expected: int) -> None:
    assert any_size(text) == expected


@pytest.mark.parametrize("text", ["", "MiB", "1.5MiB", "64 bytes", "1TiBB", "lots"])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        any_size(text)


def test_a_size_out_of_range_is_refused_with_the_range() -> None:
    with pytest.raises(ValueError, match="2KiB is out of range; use 4096 to 8192"):
        size(least=4096, most=8192)("2KiB")


def test_zero_is_off_however_large_a_number_must_be() -> None:
    read = off_or_whole_number(least=15, most=20)

    assert [read(text) for text in ("0", " 0 ", "15", "20")] == [0, 0, 15, 20]
    for text in ("1", "14", "21", "-1", "none"):
        with pytest.raises(ValueError):
            read(text)


def test_a_whole_number_keeps_its_bounds() -> None:
    read = whole_number(least=1, most=10)

    assert [read("1"), read("10")] == [1, 10]
    for text in ("0", "11", "ten", "1.0", ""):
        with pytest.raises(ValueError):
            read(text)


def test_a_share_is_from_nothing_to_everything() -> None:
    assert [share("0"), share("0.01"), share("1")] == [0, 0.01, 1]
    for text in ("-0.1", "1.5", "half", "nan", "inf", ""):
        with pytest.raises(ValueError, match="0"):
            share(text)


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("YES", True), ("1", True), ("off", False)])
def test_a_switch_understands_the_usual_words(text: str, expected: bool) -> None:
    assert switch(text) is expected


def test_a_switch_refuses_other_words() -> None:
    with pytest.raises(ValueError, match="neither true nor false"):
        switch("maybe")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:9092", Address("127.0.0.1", 9092)),
        ("localhost:0", Address("localhost", 0)),
        (":8080", Address("0.0.0.0", 8080)),
        ("[::1]:8080", Address("::1", 8080)),
        ("broker-1.example.org:65535", Address("broker-1.example.org", 65_535)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, expected: Address) -> None:
    assert address(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("localhost", "has no port"),
        ("", "has no port"),
        ("localhost:", "is not a port"),
        ("localhost:http", "is not a port"),
        ("localhost:65536", "is not a port"),
        ("localhost:-1", "is not a port"),
        ("::1:8080", "stands in brackets"),
        ("[zz]:8080", "is not an IPv6 address"),
        ("two words:8080", "is not a host name"),
        ("http://localhost:8080", "stands in brackets|is not a host name"),
    ],
)
def test_what_is_not_an_address_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        address(text)


def test_an_address_reads_back_as_it_was_written() -> None:
    assert [str(address(text)) for text in ("[::1]:80", "localhost:1")] == ["[::1]:80", "localhost:1"]


def test_a_listener_can_be_off() -> None:
    assert listeners("off") == ()


def test_a_door_has_several_listeners_with_their_protocols_and_where_clients_come_back() -> None:
    text = "127.0.0.1:9092, ssl://:9093@broker.example:19093, inside=SSL://10.0.0.1:9094"

    assert listeners(text) == (
        Listening(Address("127.0.0.1", 9092)),
        Listening(
            Address("0.0.0.0", 9093), SecurityProtocol.SSL, advertised=Address("broker.example", 19_093)
        ),
        Listening(Address("10.0.0.1", 9094), SecurityProtocol.SSL, "inside"),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("TLS://:9092", "'TLS' is no protocol"),
        ("127.0.0.1:9092,:9092", "named twice"),
        ("SSL://:9092,SSL://:9093", "is called as 0.0.0.0:9092 is"),
        ("SSL://:9092@:9093", "a client can connect to"),
        ("=SSL://:9092", "no name before the ="),
        ("two words=SSL://:9092", "is not a name"),
        ("", "has no port"),
        (":9092,", "has no port"),
    ],
)
def test_what_are_no_listeners_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        listeners(text)


def test_an_advertised_address_must_be_one_a_client_can_use() -> None:
    assert advertised("") is None
    assert advertised("example.org:9092") == Address("example.org", 9092)
    for text in (":9092", "0.0.0.0:9092", "example.org:0"):
        with pytest.raises(ValueError, match="a client can connect to"):
            advertised(text)


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        (":80", "127.0.0.1:80", True),
        ("127.0.0.1:80", "127.0.0.1:80", True),
        ("127.0.0.1:80", "127.0.0.2:80", False),
        ("127.0.0.1:80", "127.0.0.1:81", False),
        ("127.0.0.1:0", "127.0.0.1:0", False),
    ],
)
def test_two_doors_clash_on_the_same_port_of_the_same_interface(one: str, other: str, clash: bool) -> None:
    assert address(one).clashes_with(address(other)) is clash


def test_a_node_id_is_one_word() -> None:
    assert node_id("node-7") == "node-7"
    for text in ("", "node 7", "node\t7"):
        with pytest.raises(ValueError, match="must not be empty or hold white space"):
            node_id(text)


def test_an_empty_folder_name_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        folder(" ")


def test_a_logging_level_goes_by_its_name() -> None:
    assert logging_level("Warning") == logging.WARNING
    with pytest.raises(ValueError, match="use debug, info, warning or error"):
        logging_level("loud")
