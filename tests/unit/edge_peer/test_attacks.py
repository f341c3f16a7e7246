"""The peer door under attack: strangers, impostors, nonsense, and peers that are slow or gone."""

import asyncio
import logging
import time
from dataclasses import replace
from random import Random
from uuid import UUID

import pytest

from goqueue.edge.limited_log import LINES_AT_ONCE
from goqueue.edge.peer import calling, link
from goqueue.edge.peer.config import PeerConfig
from goqueue.edge.peer.door import STRANGERS_MAX, PeerDoor
from goqueue.edge.peer.messages import encode
from goqueue.edge.peer.wire import HEAD, MESSAGE_BYTES_MAX, Kind, head_of
from goqueue.model.cluster import Incarnation, NodeId
from goqueue.model.errors import NodeBusy
from goqueue.model.peers import Answered, Loss, Neighbour, Peer
from goqueue.model.replication import Ack, Follow
from goqueue.model.settings import MiB
from tests.unit.edge_peer.peers_conformance import COMMAND, follow, frames, never, until
from tests.unit.edge_peer.raw_peer import CODEC, DOOR, QUICK, RAW, Attacked, attack

FRIEND = Peer(NodeId("friend"), Incarnation(5))
PATIENT = replace(QUICK, silence_ms=20_000, greeting_ms=20_000)


async def works_for_a_friend(here: Attacked) -> None:
    """Whatever happened, a node that means well is served."""
    friend = await here.greeted(FRIEND)
    friend.send(*CODEC.call(1, COMMAND, 1_000, [b"tail"]))
    assert await friend.next_of(Kind.REPLY) is not None
    friend.close()


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        bytes(64),
        b"\xff" * 64,
        HEAD.pack(MESSAGE_BYTES_MAX, Kind.FRAMES, 0, 0, 1),
        HEAD.pack(0xFFFFFFFF, Kind.HELLO, 0, 0, 0),
        HEAD.pack(40, Kind.HELLO, 0, 0, 0) + b"x" * 40,
        HEAD.pack(32, Kind.PROOF, 0, 0, 0) + b"x" * 32,
        head_of(Kind.IDLE, 0, 0),
    ],
)
def test_a_stranger_that_speaks_nonsense_is_hung_up_on(garbage: bytes) -> None:
    async def work(here: Attacked) -> None:
        raw = await here.connect()
        raw.send(garbage)
        assert await raw.is_hung_up_on()
        await works_for_a_friend(here)

    attack(work, PATIENT)


@pytest.mark.parametrize(
    "impostor",
    [
        {"secret": "what everybody says"},
        {"cluster_id": "another"},
        {"me": Peer(NodeId("nobody"), Incarnation(5))},
        {"me": Peer(RAW.node, Incarnation(4))},
        {"me": Peer(RAW.node, Incarnation(6))},
        {"me": DOOR},
    ],
)
def test_an_impostor_is_hung_up_on(impostor: dict[str, object], caplog: pytest.LogCaptureFixture) -> None:
    async def work(here: Attacked) -> None:
        raw = await here.connect()
        try:
            believed = await raw.greet(**impostor)  # type: ignore[arg-type]
        except Exception:
            raw.send(head_of(Kind.PROOF, 0, 32), bytes(32))  # it goes on without having been shown the secret
            believed = not await raw.is_hung_up_on()
        assert not believed
        assert here.user.losses == [] or {node for node, _ in here.user.losses} <= {"raw", "friend"}
        await works_for_a_friend(here)

    with caplog.at_level(logging.WARNING):
        attack(work, PATIENT)
    assert "peer_refused" in caplog.messages


def test_a_greeting_that_was_overheard_opens_nothing() -> None:
    async def work(here: Attacked) -> None:
        true = await here.greeted()
        await until(lambda: here.door.link_count == 1)
        hello, proof = true.sent
        true.close()
        overheard = await here.connect()
        overheard.send(hello, proof)
        assert await overheard.is_hung_up_on()

    attack(work, PATIENT)


def test_lines_about_strangers_are_few(caplog: pytest.LogCaptureFixture) -> None:
    async def work(here: Attacked) -> None:
        for _ in range(3 * LINES_AT_ONCE):
            raw = await here.connect()
            raw.send(b"\xff" * 64)
            assert await raw.is_hung_up_on()

    with caplog.at_level(logging.WARNING):
        attack(work, PATIENT)
    assert LINES_AT_ONCE <= caplog.messages.count("peer_message_refused") < 2 * LINES_AT_ONCE


def test_strangers_that_say_nothing_neither_keep_a_peer_out_nor_stay() -> None:
    async def work(here: Attacked) -> None:
        silent = [await here.connect() for _ in range(STRANGERS_MAX + 20)]
        await works_for_a_friend(here)
        assert await silent[0].is_hung_up_on()
        assert here.door.link_count <= STRANGERS_MAX + 1
        await until(lambda: here.door.link_count == 0)

    attack(work)


@pytest.mark.parametrize(
    "wrong",
    [
        HEAD.pack(MESSAGE_BYTES_MAX + 1, Kind.CALL, 0, 0, 1),
        HEAD.pack(0, 99, 0, 0, 1),
        HEAD.pack(0, Kind.IDLE, 1, 0, 0),
        head_of(Kind.HELLO, 0, 1) + b"x",
        head_of(Kind.IDLE, 0, 1) + b"x",
        head_of(Kind.FRAMES, 1, 32) + bytes(32),
        head_of(Kind.REPLY, 1, 4) + bytes(4),
        head_of(Kind.CALL, 1, 3) + bytes(3),
        head_of(Kind.CALL, 1, 10) + b"\xff" * 10,
        head_of(Kind.FOLLOW, 1, 3) + bytes(3),
        head_of(Kind.END, 7, 0),
        encode(Ack(session=7, written_offset=1, durable_offset=0)),
        encode(follow(3)) + encode(follow(3)),
        encode(follow(3)) + encode(follow(2)),
    ],
)
def test_a_peer_that_speaks_nonsense_is_cut_and_the_rest_goes_on(
    wrong: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(here: Attacked) -> None:
        raw = await here.greeted()
        raw.send(wrong)
        assert await raw.is_hung_up_on()
        await until(lambda: (RAW.node, Loss.CUT) in here.user.losses)
        assert all(end.ended_count == 1 for end in here.user.followers)
        await works_for_a_friend(here)

    with caplog.at_level(logging.WARNING):
        attack(work, PATIENT)
    assert "peer_message_refused" in caplog.messages


def test_a_call_that_cannot_be_understood_is_answered() -> None:
    async def work(here: Attacked) -> None:
        raw = await here.greeted()
        call = bytearray(b"".join(CODEC.call(1, COMMAND, 1_000, ())))
        call[-1] = 0xC1
        raw.send(call)
        message = await raw.next_of(Kind.ERROR)
        assert message is not None
        assert CODEC.raised(memoryview(message[2])).code == "invalid"
        raw.send(*CODEC.call(2, COMMAND, 1_000, ()))
        assert await raw.next_of(Kind.REPLY) is not None

    attack(work, PATIENT)


def test_more_calls_than_a_link_may_have_under_way_are_told_to_come_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calling, "ANSWERS_MAX", 3)

    async def work(here: Attacked) -> None:
        here.user.answers = never
        raw = await here.greeted()
        for number in range(1, 5):
            raw.send(*CODEC.call(number, COMMAND, 60_000, ()))
        message = await raw.next_of(Kind.ERROR)
        assert message is not None
        assert message[1] == 4
        assert isinstance(CODEC.raised(memoryview(message[2])), NodeBusy)
        raw.send(head_of(Kind.CANCEL, 1, 0))
        await until(lambda: here.user.given_up == 1)
        raw.send(*CODEC.call(5, COMMAND, 60_000, ()))
        await until(lambda: len(here.user.asked) == 4)
        raw.close()
        await until(lambda: here.user.given_up == 4)

    attack(work, PATIENT)


def test_a_peer_that_takes_no_answers_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CLOGGED_BYTES", 4 * MiB)

    async def work(here: Attacked) -> None:
        async def answers() -> Answered:
            return Answered("much", [bytes(MiB)])

        here.user.answers = answers
        raw = await here.greeted()
        raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
        for number in range(1, 41):
            raw.send(*CODEC.call(number, COMMAND, 60_000, ()))
        await until(lambda: (RAW.node, Loss.CUT) in here.user.losses)

    attack(work, PATIENT)


def test_a_peer_that_falls_silent_is_lost_and_one_that_says_so_is_not() -> None:
    async def work(here: Attacked) -> None:
        silent, alive = await here.greeted(), await here.greeted(FRIEND)
        silent.send(encode(follow(1)))
        await until(lambda: here.user.followers)
        while (RAW.node, Loss.SILENT) not in here.user.losses:
            alive.send(head_of(Kind.IDLE, 0, 0))
            message = await alive.receive()
            assert message is not None
            assert message[0] == Kind.IDLE
        assert here.user.followers[0].ended_count == 1
        assert (FRIEND.node, Loss.SILENT) not in here.user.losses

    attack(work)


def stand_still() -> None:
    """The loop and all in it, as when the process is stopped."""
    end_s = time.monotonic() + 2 * QUICK.silence_ms / 1_000
    while time.monotonic() < end_s:
        pass


def test_a_node_that_stood_still_does_not_take_others_for_silent() -> None:
    async def work(here: Attacked) -> None:
        raw = await here.greeted()
        await raw.next_of(Kind.IDLE)
        raw.send(head_of(Kind.IDLE, 0, 0))
        stand_still()
        for _ in range(10):
            message = await raw.receive()
            assert message is not None
            raw.send(head_of(Kind.IDLE, 0, 0))
        assert (RAW.node, Loss.SILENT) not in here.user.losses

    attack(work)


def test_a_peer_whose_message_never_ends_is_lost() -> None:
    async def work(here: Attacked) -> None:
        raw = await here.greeted()
        raw.send(head_of(Kind.CALL, 1, 100 * MiB), bytes(1_000))
        await until(lambda: (RAW.node, Loss.SILENT) in here.user.losses)

    attack(work)


def test_a_second_connection_of_a_peer_takes_the_place_of_the_first() -> None:
    async def work(here: Attacked) -> None:
        first = await here.greeted()
        first.send(encode(follow(1)))
        await until(lambda: here.user.followers)
        second = await here.greeted()
        assert await first.is_hung_up_on()
        second.send(encode(follow(1)))
        await until(lambda: len(here.user.followers) == 2)
        assert [end.ended_count for end in here.user.followers] == [1, 0]

    attack(work, PATIENT)


def test_a_bug_in_whoever_is_called_costs_the_link_and_not_the_node(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(here: Attacked) -> None:
        def followed(stream: object, message: Follow) -> None:
            raise ZeroDivisionError

        here.user.followed = followed  # type: ignore[method-assign]
        raw = await here.greeted()
        raw.send(encode(follow(1)))
        assert await raw.is_hung_up_on()
        await works_for_a_friend(here)

    with caplog.at_level(logging.WARNING):
        attack(work, PATIENT)
    assert "peer_message_failed" in caplog.messages


@pytest.mark.parametrize("seed", range(6))
def test_mutated_messages_in_any_pieces_never_break_the_door(seed: int) -> None:
    chance = Random(seed)

    def message() -> bytes:
        sound = chance.choice(
            (
                encode(follow(chance.randrange(1, 50))),
                encode(Ack(session=chance.randrange(1, 50), written_offset=5, durable_offset=4)),
                head_of(Kind.END, chance.randrange(1, 50), 0),
                head_of(Kind.IDLE, 0, 0),
                head_of(Kind.CANCEL, chance.randrange(1, 50), 0),
                b"".join(
                    CODEC.call(chance.randrange(1, 50), COMMAND, 1_000, [bytes(chance.randrange(90_000))])
                ),
            )
        )
        made = bytearray(sound)
        if chance.random() < 0.2:
            for _ in range(chance.choice((1, 1, 4))):
                made[chance.randrange(min(len(made), 60))] = chance.choice(
                    (0, 1, 0x7F, 0xFF, chance.randrange(256))
                )
        return bytes(made)

    async def work(here: Attacked) -> None:
        for _ in range(25):
            raw = await here.greeted()
            sent = b"".join(message() for _ in range(chance.randrange(1, 15)))
            while sent:
                size = chance.choice((1, 15, 16, 17, 1_000, 300_000))
                raw.send(sent[:size])
                sent = sent[size:]
                await asyncio.sleep(0)
            raw.close()
        await works_for_a_friend(here)
        await until(lambda: here.door.link_count == 0)
        assert all(end.ended_count <= 1 for end in here.user.followers)

    attack(work, PATIENT)


def test_a_door_that_stops_while_it_dials_leaves_nothing_behind() -> None:
    async def work(here: Attacked) -> None:
        for _ in range(30):
            other = PeerDoor(PATIENT, CODEC)
            port = await other.start("127.0.0.1", 0)
            other.meet({DOOR.node: Neighbour(DOOR.incarnation, "127.0.0.1", here.port)})
            other.serve(FRIEND, here.user)
            for _ in range(chance.randrange(6)):
                await asyncio.sleep(0)
            await other.stop()
            assert other.link_count == 0
            assert port
        await until(lambda: here.door.link_count == 0)

    chance = Random(1)
    attack(work, PATIENT)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "10.0.0.1", "example.org"])
def test_without_a_secret_a_door_listens_to_its_own_machine_only(host: str) -> None:
    async def walk() -> None:
        with pytest.raises(ValueError, match="without a secret"):
            await PeerDoor(PeerConfig(cluster_id="c"), CODEC).start(host, 0)

    asyncio.run(walk())


def test_a_secret_that_is_easily_guessed_is_refused() -> None:
    with pytest.raises(ValueError, match="16 characters"):
        PeerConfig(cluster_id="c", secret="short")


def test_frames_sent_to_a_raw_follower_are_as_they_were_given() -> None:
    async def work(here: Attacked) -> None:
        raw = await here.greeted()
        raw.send(encode(follow(4)))
        await until(lambda: here.user.followers)
        stream = here.user.followers[0].stream
        assert stream is not None
        stream.send(frames(4, 9), [b"one", memoryview(b"two")])
        message = await raw.next_of(Kind.FRAMES)
        assert message is not None
        assert (message[1], message[2][32:]) == (4, b"onetwo")
        assert UUID(int=7) == here.user.follows[0].topic_id

    attack(work, PATIENT)
