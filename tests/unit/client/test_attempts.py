"""When a call that failed is tried again, and what its caller hears: the time is handed in."""

from email.message import Message

import pytest

from goqueue.client import AsyncGoQueue, Busy, GoQueue, Refused, Unavailable
from goqueue.client.addresses import Address, parse_addresses
from goqueue.client.call import Attempts, Call, Reply
from goqueue.client.errors import NobodyAnswers
from goqueue.model.errors import Invalid

S = 1_000_000_000
PLAIN: Call[None] = Call(method="GET", path="/", decode=lambda reply: None)
ONCE: Call[None] = Call(method="POST", path="/", decode=lambda reply: None, is_repeatable=False)
WAITING: Call[None] = Call(method="GET", path="/", decode=lambda reply: None, wait_ms=20_000)
RESET = ConnectionResetError("reset")


def attempts_of(call: Call[None] = PLAIN, *, retry_for_ms: int = 10_000) -> Attempts:
    attempts = Attempts(call, where="a:1", retry_for_ms=retry_for_ms)
    attempts.begin(0)
    return attempts


def reply(status: int, body: bytes = b"{}", *, retry_after: str | None = None) -> Reply:
    headers = Message()
    if retry_after is not None:
        headers["Retry-After"] = retry_after
    return Reply(status, headers, body)


def test_pauses_grow_to_a_second_and_no_further() -> None:
    attempts = attempts_of(retry_for_ms=60_000)
    pauses = [attempts.broken(RESET, was_sent=True, now_ns=number) for number in range(8)]

    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]


def test_the_time_for_it_runs_from_the_first_attempt_that_failed() -> None:
    attempts = attempts_of()
    attempts.broken(RESET, was_sent=True, now_ns=1)
    attempts.begin(9 * S)
    attempts.refused(reply(503), now_ns=10 * S - 1)
    attempts.begin(10 * S - 1)
    with pytest.raises(NobodyAnswers):
        attempts.broken(RESET, was_sent=True, now_ns=10 * S)


def test_the_time_for_another_attempt_begins_when_a_node_that_held_the_call_is_gone() -> None:
    attempts = attempts_of(WAITING)
    attempts.broken(RESET, was_sent=True, now_ns=19 * S)
    attempts.begin(20 * S)
    attempts.broken(ConnectionRefusedError(), was_sent=False, now_ns=28 * S)
    attempts.begin(29 * S)
    with pytest.raises(Unavailable):
        attempts.broken(ConnectionRefusedError(), was_sent=False, now_ns=29 * S)


@pytest.mark.parametrize(
    ("call", "problem", "was_sent", "took_ns"),
    [
        (WAITING, TimeoutError(), True, 50 * S),
        (WAITING, TimeoutError(), False, 50 * S),
        (WAITING, RESET, False, 50 * S),
        (PLAIN, RESET, True, 50 * S),
    ],
    ids=["says nothing in time", "takes no connection", "is not reached", "has nothing to wait for"],
)
def test_who_has_not_held_the_call_gives_it_no_more_time(
    call: Call[None], problem: Exception, was_sent: bool, took_ns: int
) -> None:
    with pytest.raises(NobodyAnswers):
        attempts_of(call).broken(problem, was_sent=was_sent, now_ns=took_ns)


@pytest.mark.parametrize("held_ns", [S - 1, S])
def test_whoever_hangs_up_within_a_second_may_be_another_door(held_ns: int) -> None:
    attempts = attempts_of(WAITING, retry_for_ms=1_100)
    attempts.broken(RESET, was_sent=True, now_ns=held_ns)
    attempts.begin(held_ns)
    if held_ns == S:
        attempts.broken(RESET, was_sent=True, now_ns=S + S)
    else:
        with pytest.raises(NobodyAnswers):
            attempts.broken(RESET, was_sent=True, now_ns=held_ns + S // 2)


@pytest.mark.parametrize(
    ("call", "status", "is_later"),
    [
        (PLAIN, 429, True),
        (PLAIN, 503, True),
        (ONCE, 429, True),
        (ONCE, 503, False),
        (PLAIN, 500, False),
        (PLAIN, 404, False),
        (PLAIN, 507, False),
        (PLAIN, 302, False),
    ],
)
def test_a_node_is_asked_again_where_it_has_done_nothing_or_may_do_it_twice(
    call: Call[None], status: int, is_later: bool
) -> None:
    if is_later:
        assert attempts_of(call).refused(reply(status), now_ns=1) == 0.05
        return
    with pytest.raises(Refused) as refused:
        attempts_of(call).refused(reply(status), now_ns=1)
    assert refused.value.status == status


@pytest.mark.parametrize(
    ("call", "was_sent", "advice"),
    [
        (ONCE, True, r"\(reset\): whether it was carried out is not known"),
        (PLAIN, True, r"\(reset\): is the HTTP door"),
        (PLAIN, False, r"\(reset\): is the HTTP door"),
    ],
)
def test_who_gives_up_says_what_is_known(call: Call[None], was_sent: bool, advice: str) -> None:
    with pytest.raises(NobodyAnswers, match=advice) as gone:
        attempts_of(call, retry_for_ms=0).broken(RESET, was_sent=was_sent, now_ns=0)
    assert gone.value.__cause__ is RESET


def test_what_was_never_sent_is_sent_again_also_when_it_may_not_come_twice() -> None:
    assert attempts_of(ONCE).broken(ConnectionRefusedError(), was_sent=False, now_ns=1) == 0.05


def test_a_problem_without_words_is_told_by_its_name() -> None:
    with pytest.raises(NobodyAnswers, match=r"\(ConnectionAbortedError\)"):
        attempts_of(retry_for_ms=0).broken(ConnectionAbortedError(), was_sent=True, now_ns=0)


@pytest.mark.parametrize(
    ("told", "header", "pause_s"),
    [
        (b"{}", "3", 3.0),
        (b'{"retry_after_ms": 2100}', "3", 2.1),
        (b'{"retry_after_ms": 0}', "3", 0.05),
        (b'{"retry_after_ms": 1}', None, 0.05),
        (b"{}", "Wed, 21 Oct 2026 07:28:00 GMT", 0.05),
        (b"{}", "-1", 0.05),
        (b"{}", "soon", 0.05),
        (b"<html>", "2", 2.0),
    ],
)
def test_a_node_that_tells_when_to_come_again_is_believed_to_the_millisecond(
    told: bytes, header: str | None, pause_s: float
) -> None:
    assert attempts_of().refused(reply(429, told, retry_after=header), now_ns=0) == pause_s


@pytest.mark.parametrize(("later_s", "is_over"), [(9, False), (10, True), (3_600, True)])
def test_who_is_told_to_come_when_the_time_is_over_hears_so_at_once(later_s: int, is_over: bool) -> None:
    busy = reply(429, retry_after=str(later_s))
    if not is_over:
        assert attempts_of().refused(busy, now_ns=0) == later_s
        return
    with pytest.raises(Busy) as refused:
        attempts_of().refused(busy, now_ns=0)
    assert isinstance(refused.value, Refused)
    assert refused.value.retry_after_s == later_s


def test_addresses_are_read_as_people_write_them() -> None:
    assert parse_addresses(" a:1, HTTP://b:2/,,[::1]:3 ,") == (
        Address("a", 1),
        Address("b", 2),
        Address("::1", 3),
    )
    assert [str(one) for one in parse_addresses("[::1]:3,a:65535")] == ["[::1]:3", "a:65535"]


@pytest.mark.parametrize(
    "text",
    [
        *["", " , ", "a", "a:", "a:x", "a:0", "a:65536", "a:²", "a:-1"],
        *[":1", "a b:1", "b@a:1", "http://a:1/b:2"],
        *["a..b:1", "x" * 64 + ":1"],  # names that nobody can look up
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="address"):
        parse_addresses(text)


@pytest.mark.parametrize("text", ["https://a:1", "HTTPS://a:1", "https://a:1/"])
def test_who_asks_for_tls_by_its_scheme_gets_it(text: str) -> None:
    [address] = parse_addresses(text)

    assert address == Address("a", 1, is_tls=True)
    assert str(address) == "https://a:1"
    assert parse_addresses(str(address)) == (address,)


@pytest.mark.parametrize("form", [GoQueue, AsyncGoQueue])
def test_addresses_may_also_come_one_by_one(form: type[GoQueue] | type[AsyncGoQueue]) -> None:
    queue = form(["a:1", Address("b", 2), ("c", 3)])  # type: ignore[list-item]  # a plain pair

    carrier = queue._pool if isinstance(queue, GoQueue) else queue._client
    assert carrier.addresses == (Address("a", 1), Address("b", 2), Address("c", 3))
    assert ", ".join(map(str, carrier.addresses)) == "a:1, b:2, c:3"


@pytest.mark.parametrize("form", [GoQueue, AsyncGoQueue])
@pytest.mark.parametrize("server", ["", [], [""], ["a"]])
def test_without_an_address_there_is_no_queue(
    form: type[GoQueue] | type[AsyncGoQueue], server: str | list[Address]
) -> None:
    with pytest.raises(Invalid, match="address"):
        form(server)
