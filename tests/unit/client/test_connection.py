"""The client against a node that is scripted: it goes on where that helps, and tells the node's words."""

import asyncio
import pickle
import signal
import socket
import threading
import time
from contextlib import ExitStack
from select import select
from urllib.parse import unquote

import pytest

from goqueue.client import Address, AsyncGoQueue, GoQueue, Refused, Unavailable
from goqueue.client.call import Call, Reply
from goqueue.client.calls import log
from goqueue.client.connection import Client, Pool
from goqueue.client.errors import NobodyAnswers, UnreadableReply
from goqueue.model.errors import Invalid
from tests.unit.client.conftest import RunAt
from tests.unit.client.scripted_node import (
    BUSY,
    HANG_UP,
    LAST,
    OK,
    Answer,
    Asked,
    answering,
    by_path,
    cut,
    held,
    nobody,
    refused,
    said,
    scripted,
)

STORED = said({"results": [{"partition": 0, "offset": 7}]})
LATER = refused(429, "busy", retry_after_ms=1)
TOPICS = said({"topics": ["a"]})
pytestmark = pytest.mark.usefixtures("at_once")


async def list_topics(queue: AsyncGoQueue) -> None:
    """A call that may come twice."""
    assert await queue.topics.list() == ["a"]


async def publish(queue: AsyncGoQueue) -> None:
    """A call that may not."""
    assert (await queue.publish("t", "v")).offset == 7


@pytest.mark.parametrize(
    "trouble",
    [
        BUSY,
        LATER,
        HANG_UP,
        cut(TOPICS, after_bytes=9),
        cut(TOPICS, after_bytes=23),
        cut(TOPICS, after_bytes=30),
        cut(TOPICS, after_bytes=60),
        Answer(cut_bytes=0, is_last=True),
        said(b"", status=503),
    ],
    ids=[
        "503",
        "429",
        "no reply",
        "in its first line",
        "behind its first line",
        "in its head",
        "in its body",
        "closed",
        "503 of a proxy",
    ],
)
def test_a_call_that_may_come_twice_is_sent_until_it_is_answered(run_at: RunAt, trouble: Answer) -> None:
    with answering(trouble, trouble, TOPICS) as node:
        run_at([node.address], list_topics)

    assert node.paths == ["GET /topics"] * 3


@pytest.mark.parametrize(
    "trouble",
    [HANG_UP, *(cut(STORED, after_bytes=count) for count in (9, 23, 30, 60))],
    ids=["no reply", "in its first line", "behind its first line", "in its head", "in its body"],
)
def test_a_call_that_may_not_come_twice_is_not_sent_again_when_its_reply_is_lost(
    run_at: RunAt, trouble: Answer
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(NobodyAnswers, match="whether it was carried out is not known"):
            await queue.publish("t", "v")

    with answering(trouble) as node:
        run_at([node.address], body)

    assert len(node.asked) == 1


def test_a_call_that_may_not_come_twice_is_sent_again_when_nothing_was_done(run_at: RunAt) -> None:
    with answering(LATER, LATER, STORED) as node:
        run_at([nobody(), node.address], publish)

    assert node.paths == ["POST /topics/t/messages"] * 3


def test_it_is_sent_to_the_next_node_too_when_one_takes_no_connection(run_at: RunAt) -> None:
    with socket.socket() as full, ExitStack() as waiting, answering(STORED) as node:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):  # nobody accepts them, and there is no room for more
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        run_at([Address(*full.getsockname()), node.address], publish, timeout_s=0.3)


def test_a_node_that_could_not_finish_may_have_stored_the_message(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(Unavailable) as problem:
            await queue.publish("t", "v")
        assert isinstance(problem.value, Refused)
        assert (problem.value.status, problem.value.code) == (503, "unavailable")

    with answering(BUSY) as node:
        run_at([node.address], body)


def test_deleting_is_not_sent_again_over_a_connection_that_was_kept(run_at: RunAt) -> None:
    """For the second time would find nothing, and the caller would hear that there never was anything."""

    async def body(queue: AsyncGoQueue) -> None:
        await list_topics(queue)
        with pytest.raises(NobodyAnswers, match="is not known"):
            await queue.topics.delete("a")

    with answering(TOPICS, HANG_UP) as node:
        run_at([node.address], body)

    assert node.paths == ["GET /topics", "DELETE /topics/a"]


def test_a_node_that_works_is_kept_and_so_is_its_connection(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        for _ in range(3):
            await list_topics(queue)

    with answering(TOPICS, TOPICS, TOPICS) as node:
        run_at([nobody(), node.address], body)

        assert [asked.line for asked in node.asked] == [1, 1, 1]


def test_a_node_that_is_busy_gives_way_to_the_next(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await list_topics(queue)
        await list_topics(queue)

    with answering(BUSY) as busy, answering(TOPICS, TOPICS) as other:
        run_at([busy.address, other.address], body)

        assert (len(busy.asked), len(other.asked)) == (1, 2)


def test_every_node_is_tried_once_however_short_the_time(run_at: RunAt) -> None:
    with answering(TOPICS) as node:
        run_at([nobody(), nobody(), node.address], list_topics, retry_for_s=0)

    assert node.paths == ["GET /topics"]


GROUP = {"group_id": "g", "offsets": {}}


async def offsets(queue: AsyncGoQueue) -> None:
    await queue.groups.offsets("g")


def test_the_node_that_has_answered_for_a_place_is_asked_first_the_next_time(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        for _ in range(3):
            await offsets(queue)
            await list_topics(queue)

    with answering(said(GROUP), said(GROUP)) as leader:
        hint = said(GROUP, headers={"goqueue-leader": str(leader.address)})
        with answering(hint, TOPICS, TOPICS, TOPICS) as asked:
            run_at([asked.address, leader.address], body)

            assert asked.paths == ["GET /groups/g/offsets", *["GET /topics"] * 3]
            assert leader.paths == ["GET /groups/g/offsets"] * 2
            assert [one.line for one in asked.asked] == [1, 1, 1, 1], "both connections are kept"


def test_a_leader_that_is_gone_is_not_asked_again(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        for _ in range(3):
            await offsets(queue)

    gone = nobody()
    hint = said(GROUP, headers={"goqueue-leader": str(gone)})
    with answering(hint, said(GROUP), said(GROUP)) as node:
        run_at([node.address, gone], body)

        assert node.paths == ["GET /groups/g/offsets"] * 3


@pytest.mark.parametrize("told", ["elsewhere.example:1", "nonsense", "a,b", "", "[::1"])
def test_a_hint_to_somebody_the_client_was_not_told_of_is_not_followed(run_at: RunAt, told: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await offsets(queue)
        await offsets(queue)

    hint = said(GROUP, headers={"goqueue-leader": told})
    with answering(hint, hint) as node, answering() as other:
        run_at([node.address, other.address], body)

        assert (len(node.asked), len(other.asked)) == (2, 0)


@pytest.mark.parametrize("code", ["no_leader", "not_leader", "not_coordinator", "node_unreachable"])
def test_what_no_node_has_passed_on_is_asked_again_also_when_it_may_not_come_twice(
    run_at: RunAt, code: str
) -> None:
    with answering(refused(503, code)) as first, answering(STORED) as other:
        run_at([first.address, other.address], publish)

        assert (len(first.asked), len(other.asked)) == (1, 1)


def test_after_the_last_node_comes_the_first_again(run_at: RunAt) -> None:
    with answering(BUSY, TOPICS) as first, answering(BUSY) as last:
        run_at([first.address, last.address], list_topics)

        assert (len(first.asked), len(last.asked)) == (2, 1)


def test_a_refusal_is_told_in_the_nodes_words_and_nobody_else_is_asked(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        for _ in range(2):
            with pytest.raises(Refused, match="topic a does not exist") as problem:
                await queue.topics.describe("a")
            assert (problem.value.code, problem.value.status) == ("topic_not_found", 404)

    no = refused(404, "topic_not_found", "topic a does not exist")
    with answering(no, no) as node, answering() as other:
        run_at([node.address, other.address], body)

        assert [asked.line for asked in node.asked] == [1, 1]


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (b"<html>", "status 400: b'<html>'"),
        (b"", "status 400: b''"),
        (b'["error"]', "status 400"),
        (b'{"error": 5}', "status 400"),
        (b"\xff" * 5_000, r"^status 400: b'(\\xff){200}'$"),
    ],
)
def test_a_refusal_by_something_else_than_a_node_is_told_in_short(
    run_at: RunAt, told: bytes, shown: str
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(Invalid, match=shown):
            await queue.topics.list()

    with answering(said(told, status=400)) as node:
        run_at([node.address], body)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("deletes", [False, True], ids=["reading", "deleting"])
def test_another_door_that_points_elsewhere_is_not_followed_and_not_taken_for_a_yes(
    run_at: RunAt, status: int, deletes: bool
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(Refused, match=f"status {status}"):
            await (queue.topics.delete("a") if deletes else queue.topics.list())

    with answering() as elsewhere:
        moved = said(b"", status=status, headers={"location": f"http://{elsewhere.address}/topics"})
        with answering(moved) as node:
            run_at([node.address], body)


async def read_window(queue: AsyncGoQueue) -> None:
    await queue.carry(log.frames("t", 0, offset=0, max_bytes=9))


async def read_metrics(queue: AsyncGoQueue) -> None:
    await queue.admin.metrics()


async def read_page(queue: AsyncGoQueue) -> None:
    await queue.read_page("t")


MESSAGE = {"offset": 0, "timestamp": "2030-01-01T00:00:00Z", "value": "", "priority": "normal"}


@pytest.mark.parametrize(
    ("told", "ask"),
    [
        (b"<html>", list_topics),
        (b"", list_topics),
        (b"[]", list_topics),
        (b'{"topics": [1]}', list_topics),
        (b"\xff\xfe", list_topics),
        (b'{"results": []}', publish),
        (b'{"results": [{"partition": 0, "offset": 1}, {"partition": 0, "offset": 2}]}', publish),
        (b"frames, but not from where to where", read_window),
        (b"\xff\xfe", read_metrics),
        ({"messages": [{**MESSAGE, "value": "a", "encoding": "base64"}], "next_offset": 1}, read_page),
        ({"messages": [{**MESSAGE, "priority": "urgent"}], "next_offset": 1}, read_page),
    ],
)
def test_what_is_no_brokers_answer_is_told_as_such(run_at: RunAt, told: object, ask: object) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(UnreadableReply, match="is not a broker's"):
            await ask(queue)  # type: ignore[operator]  # one of those above

    with answering(said(told)) as node:
        run_at([node.address], body)


def test_what_is_no_http_at_all_is_told_with_the_address(run_at: RunAt) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def speak() -> None:
            with listener.accept()[0] as line:
                line.recv(1_000)
                line.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=speak)
        thread.start()
        address = Address(*listener.getsockname())

        async def body(queue: AsyncGoQueue) -> None:
            with pytest.raises(
                NobodyAnswers, match=rf"(?s)no node answers at {address} \(.+\): is the HTTP door"
            ):
                await queue.topics.list()

        run_at([address], body, retry_for_s=0)
        thread.join()


def test_when_the_time_is_up_the_error_names_all_addresses(run_at: RunAt) -> None:
    one, other = nobody(), nobody()

    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(NobodyAnswers, match=f"no node answers at {one}, {other}"):
            await queue.topics.list()

    run_at([one, other], body, retry_for_s=0.001)


def test_who_has_no_time_to_try_again_asks_once(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(Unavailable):
            await queue.topics.list()

    with answering(BUSY) as node:
        run_at([node.address], body, retry_for_s=0)


@pytest.mark.parametrize("was_kept", [False, True], ids=["new line", "kept line"])
def test_a_node_that_says_nothing_in_time_is_not_there(run_at: RunAt, was_kept: bool) -> None:
    never = threading.Event()

    async def body(queue: AsyncGoQueue) -> None:
        if was_kept:
            await list_topics(queue)
        with pytest.raises(NobodyAnswers):
            await queue.topics.list()

    with answering(*[TOPICS] * was_kept, held(never, TOPICS)) as node:
        run_at([node.address], body, timeout_s=0.1, retry_for_s=0)

        assert len(node.asked) == 1 + was_kept


def test_a_node_that_is_asked_to_wait_is_given_the_time_for_it(run_at: RunAt) -> None:
    late = threading.Event()
    timer = threading.Timer(0.3, late.set)

    async def body(queue: AsyncGoQueue) -> None:
        timer.start()
        page = await queue.read_page("t", wait=15)
        assert page.next_offset == 3

    with answering(held(late, said({"messages": [], "next_offset": 3}))) as node:
        run_at([node.address], body, timeout_s=0.1, retry_for_s=0)
        timer.join()

        assert node.asked[0].query["wait"] == "15000ms"


def test_what_comes_late_is_not_taken_for_the_answer_to_the_next_call(run_at: RunAt) -> None:
    late = threading.Event()

    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(NobodyAnswers):
            await queue.topics.list()
        late.set()
        assert (await queue.admin.health()).status == "ok"

    health = said({"status": "ok", "timestamp": "2030-01-01T00:00:00Z"})
    with answering(held(late, TOPICS), health) as node:
        run_at([node.address], body, timeout_s=0.1, retry_for_s=0)

        assert [asked.line for asked in node.asked] == [1, 2]


def test_a_connection_that_the_node_has_closed_is_no_sign_of_trouble(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await list_topics(queue)
        node.hang_up()
        await list_topics(queue)

    with answering(TOPICS, TOPICS) as node:
        run_at([node.address], body, retry_for_s=0)

        assert [asked.line for asked in node.asked] == [1, 2]


def test_a_connection_that_the_node_has_closed_is_not_used_for_what_may_not_come_twice() -> None:
    closing = Answer(body=STORED.body, is_last=True)
    with answering(closing, closing) as node, GoQueue([node.address]) as queue:
        assert queue.publish("t", "a").offset == 7
        [client] = queue._pool._idle
        assert client._connection is not None
        assert select([client._connection.sock], [], [], 10)[0]  # the node has hung up by now
        assert queue.publish("t", "a").offset == 7


def test_a_connection_that_the_node_says_it_closes_is_not_used_again(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await publish(queue)
        await publish(queue)

    closing = Answer(body=STORED.body, headers={"connection": "close"}, is_last=True)
    with answering(closing, STORED) as node:
        run_at([node.address], body)

        assert [asked.line for asked in node.asked] == [1, 2]


def test_a_reply_without_a_length_ends_with_its_connection(run_at: RunAt) -> None:
    unmeasured = Answer(body=TOPICS.body, headers={"content-length": ""}, is_last=True)
    with answering(unmeasured) as node:
        run_at([node.address], list_topics)


def test_every_request_has_the_key_and_says_what_its_body_is(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await queue.topics.list()
        await queue.publish("t", "v")
        with pytest.raises(UnreadableReply):
            await queue.backups.upload("b", b"\0")

    with scripted(by_path(topics=TOPICS, messages=STORED)) as node:
        run_at([node.address], body, api_key="gq_secret")

        assert [asked.headers["x-api-key"] for asked in node.asked] == ["gq_secret"] * 3
        assert [asked.headers["content-type"] for asked in node.asked] == [
            None,
            "application/json",
            "application/octet-stream",
        ]


@pytest.mark.parametrize("name", ["a/b c", "ü?x=1", "100%", "a+b", "..", "#"])
def test_names_come_to_the_node_as_they_are(run_at: RunAt, name: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await queue.topics.delete(name)
        await queue.groups.offsets("g", topic=name)

    with answering(OK, said({"group_id": "g", "offsets": {}})) as node:
        run_at([node.address], body)

    deleted, looked_at = node.asked
    assert deleted.path.count("/") == 2
    assert unquote(deleted.path.removeprefix("/topics/")) == name
    assert looked_at.query == {"topic": name}


@pytest.mark.parametrize("key", ["a\nb", "schlüssel", "a\0"])
def test_a_key_that_no_header_can_hold_is_refused(key: str) -> None:
    for form in (GoQueue, AsyncGoQueue):
        with pytest.raises(Invalid, match="API key"):
            form("a:1", api_key=key).close()


@pytest.mark.parametrize("wrong", [{"timeout_s": 0}, {"timeout_s": -1}, {"retry_for_s": -1}])
def test_times_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    for form in (GoQueue, AsyncGoQueue):
        with pytest.raises(ValueError, match=r"timeout_s|retry_for_s"):
            form("a:1", **wrong)  # type: ignore[arg-type]  # only the times are given


def test_a_client_can_be_sent_to_another_process() -> None:
    with answering(OK, OK) as node:
        client = Client([node.address], api_key="gq_secret")
        client.request("GET", "/")
        copy = pickle.loads(pickle.dumps(client))
        client.close()

        assert copy.request("GET", "/").status == 200
        copy.close()
        assert [asked.headers["x-api-key"] for asked in node.asked] == ["gq_secret"] * 2


def test_a_plain_request_has_its_query_and_its_body() -> None:
    with answering(OK) as node:
        client = Client([node.address])
        client.request("PUT", "/a", query={"b": "c d", "e": 1}, body=b"{}", content_type="text/plain")
        client.close()

        [asked] = node.asked
        assert (asked.query, asked.body) == ({"b": "c d", "e": "1"}, b"{}")
        assert asked.headers["content-type"] == "text/plain"


def test_a_closed_queue_connects_again_when_it_is_asked(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await list_topics(queue)
        await queue.close()
        await queue.close()
        await list_topics(queue)

    with answering(TOPICS, TOPICS) as node:
        run_at([node.address], body)

        assert [asked.line for asked in node.asked] == [1, 2]


class Interrupt(Exception):
    """What a signal handler raises."""


def test_a_call_that_a_signal_interrupts_leaves_no_half_reply_to_the_next() -> None:
    late = threading.Event()

    def interrupt(*_: object) -> None:
        raise Interrupt

    def send_signal() -> None:
        node.wait_for("/topics")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR2)

    before = signal.signal(signal.SIGUSR2, interrupt)
    thread = threading.Thread(target=send_signal)
    try:
        with answering(held(late, TOPICS), STORED) as node, GoQueue([node.address]) as queue:
            thread.start()
            with pytest.raises(Interrupt):
                queue.topics.list()
            late.set()
            # Not even over the same connection, where the list of topics is on its way.
            assert queue.publish("t", "v").offset == 7
            assert [asked.line for asked in node.asked] == [1, 2]
    finally:
        thread.join()
        signal.signal(signal.SIGUSR2, before)


ANY = Call(method="GET", path="/topics", decode=lambda reply: reply.status)


def test_an_aborted_client_ends_the_call_that_another_thread_waits_for_and_all_that_follow() -> None:
    never = threading.Event()
    problems: list[BaseException] = []

    def ask() -> None:
        try:
            client.carry(ANY)
        except NobodyAnswers as problem:
            problems.append(problem)

    with answering(held(never, TOPICS)) as node:
        client = Client([node.address])
        thread = threading.Thread(target=ask)
        thread.start()
        node.wait_for("/topics")
        client.abort()
        thread.join(10)

        assert [str(problem) for problem in problems] == ["the client was closed while it waited for a reply"]
        with pytest.raises(NobodyAnswers, match="the client is closed"):
            client.carry(ANY)


def test_an_aborted_client_does_not_wait_until_a_busy_node_wants_to_be_asked_again() -> None:
    ended = threading.Event()

    def ask() -> None:
        with pytest.raises(NobodyAnswers, match="closed"):
            client.carry(ANY)
        ended.set()

    with scripted(lambda asked: refused(429, "busy", retry_after_ms=25_000)) as node:
        client = Client([node.address])
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        node.wait_for("/topics")
        while client._turn == 0:  # until it has read the answer, and rests
            pass
        client.abort()

        assert ended.wait(10)
        thread.join()


def test_a_client_that_was_never_used_can_be_aborted_and_closed() -> None:
    client = Client([nobody()])
    client.close()
    client.abort()
    with pytest.raises(NobodyAnswers, match="closed"):
        client.carry(ANY)


def pool_at(*addresses: Address) -> Pool:
    return Pool(addresses, timeout_ms=10_000, retry_for_ms=0, api_key=None)


def test_calls_at_the_same_time_have_connections_of_their_own_which_are_used_again() -> None:
    together = threading.Barrier(3)

    def script(asked: Asked) -> Answer:
        if asked.path == "/topics":
            together.wait(10)
        return OK

    with scripted(script) as node:
        pool = pool_at(node.address)
        threads = [threading.Thread(target=pool.carry, args=(ANY,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {asked.line for asked in node.asked} == {1, 2, 3}

        for _ in range(4):
            pool.carry(Call(method="GET", path="/", decode=lambda reply: None))
        assert node.line_count == 3
        pool.close()


def test_a_pool_that_is_closed_while_a_call_is_under_way_hangs_up_after_it() -> None:
    late = threading.Event()
    found: list[int] = []
    with answering(held(late, OK), OK) as node:
        pool = pool_at(node.address)
        thread = threading.Thread(target=lambda: found.append(pool.carry(ANY)))
        thread.start()
        node.wait_for("/topics")
        pool.close()
        late.set()
        thread.join()
        assert found == [200]

        assert pool.carry(ANY) == 200
        assert [asked.line for asked in node.asked] == [1, 2]


def test_a_call_that_fails_gives_its_client_back_to_the_pool() -> None:
    with answering(refused(404, "topic_not_found"), OK) as node:
        pool = pool_at(node.address)
        with pytest.raises(Refused):
            pool.carry(ANY)
        assert pool.carry(ANY) == 200
        assert node.line_count == 1
        pool.close()


def test_a_cancelled_call_leaves_nothing_to_the_next_one() -> None:
    late = threading.Event()

    async def story() -> None:
        async with AsyncGoQueue([node.address]) as queue:
            call = asyncio.ensure_future(queue.topics.list())
            await asyncio.to_thread(node.wait_for, "/topics")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            late.set()
            assert (await queue.publish("t", "v")).offset == 7

    with answering(held(late, TOPICS), STORED) as node:
        asyncio.run(story())

        assert [asked.line for asked in node.asked] == [1, 2]


def test_a_call_is_cancelled_while_it_waits_to_be_sent_again() -> None:
    async def story() -> None:
        async with AsyncGoQueue([node.address]) as queue:
            call = asyncio.ensure_future(queue.topics.list())
            await asyncio.to_thread(node.wait_for, "/topics")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    began_s = time.monotonic()
    with answering(refused(429, "busy", retry_after_ms=25_000)) as node:
        asyncio.run(story())
    assert time.monotonic() - began_s < 10


def test_of_many_calls_that_find_a_node_gone_one_moves_all_of_them_on() -> None:
    together = threading.Barrier(4)

    def leave(asked: Asked) -> Answer:
        together.wait(10)
        return HANG_UP

    async def story() -> None:
        async with AsyncGoQueue([gone.address, here.address, wrong.address]) as queue:
            await asyncio.gather(*(list_topics(queue) for _ in range(4)))

    with scripted(leave) as gone, scripted(lambda asked: TOPICS) as here, answering() as wrong:
        asyncio.run(story())

        assert len(here.asked) == 4


def test_many_calls_wait_at_the_same_time_however_many_they_are() -> None:
    count = 101  # aiohttp would hold back all beyond 100
    together = threading.Barrier(count)

    def script(asked: Asked) -> Answer:
        together.wait(20)
        return TOPICS

    async def story() -> None:
        async with AsyncGoQueue([node.address]) as queue:
            await asyncio.gather(*(list_topics(queue) for _ in range(count)))

    with scripted(script) as node:
        asyncio.run(story())

        assert node.line_count == count


def test_a_reply_knows_its_headers_in_any_letter_case() -> None:
    seen: list[str | None] = []

    def decode(reply: Reply) -> None:
        seen.append(reply.headers.get("x-goqueue-next-offset"))

    call = Call(method="GET", path="/", decode=decode)

    async def story() -> None:
        async with AsyncGoQueue([node.address]) as queue:
            await queue.carry(call)

    answer = said(headers={"X-GoQueue-Next-Offset": "5"})
    with answering(answer, answer) as node:
        with GoQueue([node.address]) as queue:
            queue.carry(call)
        asyncio.run(story())

    assert seen == ["5", "5"]


def test_a_closing_answer_is_the_last_of_its_line() -> None:
    """The script's own promise, for others rely on it."""
    with answering(LAST, OK) as node:
        client = Client([node.address])
        assert [client.request("GET", "/").status for _ in range(2)] == [200, 200]
        client.close()
        assert [asked.line for asked in node.asked] == [1, 2]
