"""Which requests of web pages are taken, by the headers that browsers put on them."""

from dataclasses import replace

import pytest

from goqueue.edge.http.transport.page_rules import PageRules, Told
from goqueue.model.errors import GoQueueError, HostDenied, Invalid, OriginDenied, UnsupportedMediaType

OURS = ("127.0.0.1:8080",)
EVIL = "http://evil.example"
DASHBOARD = "https://dashboard.example"
PROGRAM = Told(method="POST", path="/topics", hosts=OURS, has_body=True)
PAGE = replace(PROGRAM, origins=(EVIL,), site="cross-site", mode="cors", content_type="application/json")


def rules(
    *origins: str, hosts: tuple[str, ...] = (), listener: str = "127.0.0.1", advertised: str | None = None
) -> PageRules:
    made = PageRules(hosts=hosts, origins=origins, advertised_host=advertised)
    made.listen_on(listener)
    return made


def refusal(made: PageRules, told: Told) -> type[GoQueueError]:
    with pytest.raises(GoQueueError) as refused:
        made.admit(told)
    return type(refused.value)


@pytest.mark.parametrize("content_type", [None, "application/x-www-form-urlencoded", "text/plain"])
def test_a_program_sends_whatever_type_it_likes(content_type: str | None) -> None:
    assert rules().admit(replace(PROGRAM, content_type=content_type)) is None


@pytest.mark.parametrize(
    "told",
    [
        PAGE,
        replace(PAGE, site=None),  # of a browser that does not say
        replace(PAGE, site="same-site"),  # another port of this machine
        replace(PAGE, origins=("null",)),  # a file, or a frame without rights
        replace(PAGE, origins=(EVIL, "http://127.0.0.1:8080")),
        replace(PAGE, content_type="text/plain", mode="no-cors"),
        replace(
            PAGE, content_type="application/x-www-form-urlencoded", mode="navigate", destination="document"
        ),
        replace(PAGE, method="DELETE", has_body=False),
        replace(PAGE, method="GET", mode="websocket", destination="websocket", has_body=False),
        replace(PAGE, method="OPTIONS", is_preflight=True, has_body=False),
        Told(
            method="GET", path="/topics", hosts=OURS, site="cross-site", mode="no-cors", destination="image"
        ),
        Told(
            method="GET",
            path="/topics",
            hosts=OURS,
            site="cross-site",
            mode="navigate",
            destination="document",
        ),
        Told(
            method="GET", path="/docs", hosts=OURS, site="cross-site", mode="navigate", destination="iframe"
        ),
        Told(
            method="POST",
            path="/docs",
            hosts=OURS,
            site="cross-site",
            mode="navigate",
            destination="document",
        ),
    ],
)
def test_nothing_is_taken_from_a_page_of_another_origin(told: Told) -> None:
    assert refusal(rules(), told) is OriginDenied
    assert refusal(rules(DASHBOARD), told) is OriginDenied


@pytest.mark.parametrize(
    "told",
    [
        Told(method="GET", path="/docs", hosts=OURS, site="none", mode="navigate", destination="document"),
        Told(
            method="GET", path="/docs", hosts=OURS, site="cross-site", mode="navigate", destination="document"
        ),
        Told(method="GET", path="/openapi.json", hosts=OURS, site="same-origin", mode="cors"),
        replace(PAGE, origins=("http://127.0.0.1:8080",), site="same-origin"),
        replace(PAGE, origins=("http://127.0.0.1:8080",), site=None),
        replace(PAGE, origins=("https://127.0.0.1:8080",), site=None),
    ],
)
def test_the_brokers_own_page_and_what_people_open_themselves_are_served(told: Told) -> None:
    assert rules().admit(told) is None


def test_a_listed_origin_may_read_and_no_other() -> None:
    assert rules(DASHBOARD).admit(replace(PAGE, origins=(DASHBOARD,))) == DASHBOARD
    assert rules(DASHBOARD).admit(replace(PAGE, origins=("HTTPS://Dashboard.example",))) is not None
    assert refusal(rules(DASHBOARD), replace(PAGE, origins=(DASHBOARD + ".evil.example",))) is OriginDenied
    assert refusal(rules(DASHBOARD), replace(PAGE, origins=(DASHBOARD + ":444",))) is OriginDenied
    assert rules("*").admit(PAGE) == "*"


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/vnd.schemaregistry.v1+json",
        "application/x-amz-json-1.0",
        "application/octet-stream",
    ],
)
def test_a_page_sends_json_or_bytes_and_says_so(content_type: str) -> None:
    assert rules(DASHBOARD).admit(replace(PAGE, origins=(DASHBOARD,), content_type=content_type)) == DASHBOARD


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "text/plain; a=application/json", "multipart/form-data", "application/jsonp"],
)
def test_what_a_form_could_send_is_not_taken_from_any_page(content_type: str | None) -> None:
    own = replace(PAGE, origins=("http://127.0.0.1:8080",), site="same-origin", content_type=content_type)

    assert refusal(rules(), own) is UnsupportedMediaType
    assert refusal(rules("*"), replace(PAGE, content_type=content_type)) is UnsupportedMediaType


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8080",
        "goqueue.localhost:1",
        "127.0.0.1",
        "127.9.9.9:80",
        "[::1]:8080",
        "[::1]",
    ],
)
def test_a_door_on_this_machine_alone_answers_to_its_names(host: str) -> None:
    assert rules().admit(replace(PROGRAM, hosts=(host,))) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "10.0.0.7",
        "",
        "a@127.0.0.1",
        "[",
    ],
)
def test_a_door_on_this_machine_alone_answers_to_no_other(host: str) -> None:
    rebound = replace(PAGE, hosts=(host,), origins=(f"http://{host}",), site="same-origin")

    assert refusal(rules(), rebound) is HostDenied
    assert refusal(rules(), replace(PROGRAM, hosts=(host,))) is HostDenied
    assert refusal(rules(listener="localhost"), rebound) is HostDenied
    assert refusal(rules(listener="::1"), rebound) is HostDenied


def test_names_can_be_listed_and_the_advertised_one_is() -> None:
    named = replace(PROGRAM, hosts=("Broker.example:8080",))

    assert rules(hosts=("broker.EXAMPLE",)).admit(named) is None
    assert rules(advertised="broker.example").admit(named) is None
    assert rules(hosts=("*",)).admit(named) is None
    assert refusal(rules(hosts=("other.example",)), named) is HostDenied


def test_a_door_for_others_looks_at_names_when_some_are_listed() -> None:
    named = replace(PROGRAM, hosts=("broker.example",))
    listed = rules(hosts=("queue.example",), listener="0.0.0.0")

    assert rules(listener="0.0.0.0").admit(named) is None
    assert refusal(listed, named) is HostDenied
    assert listed.admit(replace(PROGRAM, hosts=("queue.example:8080",))) is None
    assert listed.admit(replace(PROGRAM, hosts=("10.0.0.7:8080",))) is None  # as probes call it


def test_a_request_has_one_host_or_is_older_than_the_header() -> None:
    assert rules().admit(replace(PROGRAM, hosts=())) is None
    assert refusal(rules(), replace(PROGRAM, hosts=(*OURS, "evil.example"))) is Invalid
