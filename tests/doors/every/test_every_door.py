"""One behaviour through every door: the same story, the same outcome. docs/doors.md tells what differs."""

import json
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from goqueue.broker.tracing.verbs import trace_of
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane
from goqueue.model.telemetry import TraceMessage
from tests.doors.every.doors import DOORS, Door, Given, Refused
from tests.doors.every.house import House

PAGE = Path(__file__).parents[3] / "docs" / "doors.md"
SAME = "same"
SCHEMA = json.dumps({"type": "object", "properties": {"zip": {"type": "string"}}, "required": ["zip"]})
GOOD, BAD = b'{"zip": "8000"}', b'{"zip": 8000}'
RATE = 40
"""Messages a second that a tenant may publish."""
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


def differences() -> dict[tuple[str, str], str]:
    """The cells of the page's table, by what is tried and the door."""
    rows = [
        [cell.strip() for cell in line.strip("|\n ").split(" | ")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    header, _, *told = rows
    return {(row[0], door): cell for row in told for door, cell in zip(header[1:], row[1:], strict=True)}


TOLD = differences()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    opened = House(tmp_path_factory.mktemp("data"))
    yield opened
    opened.close()


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest, house: House) -> Door:
    made: Door = DOORS[request.param](house)
    made.name = request.param
    return made


def is_same(door: Door, what: str) -> bool:
    return TOLD[what, door.name] == SAME


def checked_topic(house: House, validation: str = "full", on_invalid: str = "refuse") -> str:
    topic = house.topic(goqueue_schema_validation=validation, goqueue_schema_on_invalid=on_invalid)
    body = {"schema": SCHEMA, "schemaType": "JSON"}
    house.client.post(f"/schemas/subjects/{topic}-value/versions", json=body).raise_for_status()
    return topic


def values(house: House, topic: str, partition: int = 0) -> list[bytes | None]:
    return [message.value for message in house.stored(topic, partition)]


def test_the_page_speaks_of_every_door_and_of_every_story() -> None:
    assert {door for _, door in TOLD} == set(DOORS)
    source = Path(__file__).read_text(encoding="utf-8")
    told = {what for what, _ in TOLD}
    tried = {what for what in told if f'"{what}"' in source}
    assert tried == told


def test_a_key_finds_its_partition(door: Door, house: House) -> None:
    keys = [b"customer-%d" % number for number in range(20)]
    if not is_same(door, "a key finds its partition"):
        assert door.name == "kafka", "librdkafka routes by CRC-32, whatever the topic says"
    topic = house.topic(partitions=5, goqueue_partitioner="crc32")
    door.publish(topic, *(Given(b"v", key, partition=None) for key in keys))
    found = {message.key: number for number in range(5) for message in house.stored(topic, number)}
    assert found == {key: zlib.crc32(key) % 5 for key in keys}


def test_a_message_without_a_value_is_stored_as_such(door: Door, house: House) -> None:
    assert is_same(door, "a message without a value")
    topic = house.topic()
    door.publish(topic, Given(None, b"gone"), Given(b"", b"empty"))
    assert [(message.key, message.value) for message in house.stored(topic)] == [
        (b"gone", None),
        (b"empty", b""),
    ]


def test_headers_are_stored_as_they_are(door: Door, house: House) -> None:
    assert is_same(door, "headers keep order, repeats and nulls")
    headers = (("b", b"\xff\x00"), ("a", b"1"), ("b", None), ("a", b""))
    topic = house.topic()
    door.publish(topic, Given(b"x", None, headers))
    [stored] = house.stored(topic)
    assert stored.headers == headers


@pytest.mark.parametrize("name", ["goqueue-delay-ms", "goqueue-deliver-at"])
def test_a_header_asks_for_a_delay(door: Door, house: House, name: str) -> None:
    topic = house.topic()
    now_ms = house.broker.clock.wall_ms()
    wait_ms = 400
    text = b"%d" % (wait_ms if name == "goqueue-delay-ms" else now_ms + wait_ms)
    door.publish(topic, Given(b"later", None, ((name, text),)), Given(b"now"))
    if not is_same(door, "a header asks for a delay"):
        assert values(house, topic) == [b"later", b"now"]
        return
    found = house.stored_until(topic, lambda messages: len(messages) == 2)
    assert [message.value for message in found] == [b"now", b"later"]
    assert house.broker.clock.wall_ms() >= now_ms + wait_ms
    [due] = [value for header, value in found[1].headers if header == "goqueue-deliver-at"]
    assert found[1].timestamp_ms == int(due or b"") >= now_ms + wait_ms


def test_a_header_asks_for_a_lane(door: Door, house: House) -> None:
    assert is_same(door, "a header asks for a lane")
    topic = house.topic()
    lanes = [b"high", b"LOW", b"0", None]
    headers = [() if lane is None else (("goqueue-priority", lane),) for lane in lanes]
    door.publish(topic, *(Given(b"x", None, given) for given in headers))
    found = [message.lane for message in house.stored(topic)]
    assert found == [Lane.HIGH, Lane.LOW, Lane.CRITICAL, Lane.NORMAL]


@pytest.mark.parametrize("name", ["goqueue-delay-ms", "goqueue-deliver-at", "goqueue-priority"])
def test_a_wish_that_nobody_understands(door: Door, house: House, name: str) -> None:
    assert is_same(door, "a wish that nobody understands is refused")
    topic = house.topic()
    with pytest.raises(Refused) as refused:
        door.publish(topic, Given(b"x", None, ((name, b"soon"),)))
    assert refused.value.kind == "invalid"
    assert house.stored(topic) == []


def test_a_message_that_has_outlived_its_time_is_not_handed_out(door: Door, house: House) -> None:
    assert is_same(door, "a time to live")
    topic = house.topic()
    door.publish(topic, Given(b"old", None, (("goqueue-ttl-ms", b"1"),)), Given(b"fresh"))
    written_ms = max(message.timestamp_ms for message in house.stored(topic))
    while house.broker.clock.wall_ms() <= written_ms + 1:
        pass  # a millisecond or two
    client, group = house.client, f"group-of-{topic}"
    joined = client.post(f"/groups/{group}/join", json={"client_id": "c", "topics": [topic]}).json()
    params = {"member_id": joined["member_id"], "timeout": "10s"}
    polled = client.get(f"/groups/{group}/poll", params=params).json()
    assert [message["value"] for message in polled["messages"]] == ["fresh"]


@pytest.mark.parametrize("validation", ["id", "full"])
def test_a_misfit_is_refused(door: Door, house: House, validation: str) -> None:
    assert is_same(door, "a misfit is refused")
    topic = checked_topic(house, validation)
    unknown = (("schema-id", b"999999"),)
    with pytest.raises(Refused) as refused:
        door.publish(topic, Given(BAD, None, unknown if validation == "id" else ()))
    assert refused.value.kind == "invalid"
    if validation == "full":
        door.publish(topic, Given(GOOD))
    assert values(house, topic) == ([GOOD] if validation == "full" else [])


def test_without_a_check_everything_fits(door: Door, house: House) -> None:
    topic = checked_topic(house, "none")
    door.publish(topic, Given(BAD))
    assert values(house, topic) == [BAD]


def test_one_misfit_among_others(door: Door, house: House) -> None:
    topic = checked_topic(house)
    with pytest.raises(Refused):
        door.publish(topic, Given(GOOD), Given(BAD), Given(GOOD))
    stored = [GOOD, GOOD] if is_same(door, "one misfit among others") else []
    assert values(house, topic) == stored


@pytest.mark.parametrize("headers", [(), (("goqueue-delay-ms", b"3600000"),)], ids=["now", "later"])
def test_a_misfit_goes_to_quarantine(
    door: Door, house: House, headers: tuple[tuple[str, bytes], ...]
) -> None:
    topic = checked_topic(house, on_invalid="quarantine")
    if not is_same(door, "a misfit goes to quarantine"):
        with pytest.raises(Refused) as refused:
            door.publish(topic, Given(BAD, None, headers))
        assert refused.value.kind == "invalid"
        return
    door.publish(topic, Given(BAD, None, headers), Given(GOOD))
    assert values(house, topic) == [GOOD]
    [kept] = house.stored(f"{topic}.quarantine")
    told = dict(kept.headers)
    assert (kept.value, told["goqueue-quarantine-original-topic"]) == (BAD, topic.encode())
    assert b"zip" in (told["goqueue-quarantine-reason"] or b"")


def test_a_message_that_is_too_large(door: Door, house: House) -> None:
    assert is_same(door, "a message that is too large is refused")
    topic = house.topic(max_message_bytes="2000")
    with pytest.raises(Refused) as refused:
        door.publish(topic, Given(bytes(3_000)))
    assert refused.value.kind == "too large"
    door.publish(topic, Given(bytes(1_000)))
    assert len(house.stored(topic)) == 1


def test_a_rate_that_is_exceeded(door: Door, house: House) -> None:
    tenant = f"tenant{list(DOORS).index(door.name)}"
    quotas = {"publish_rate_limit": RATE}
    body = {"id": tenant, "name": tenant, "quotas": quotas}
    house.client.post("/admin/tenants", json=body).raise_for_status()
    topic = house.topic(prefix=f"{tenant}.orders")
    count = 2 * RATE
    door.publish(topic, *[Given(b"x")] * count)  # in one go, so that from now on the tenant is in debt
    if is_same(door, "a rate that is exceeded"):
        with pytest.raises(Refused) as refused:
            door.publish(topic, Given(b"one more"))
        assert refused.value.kind == "quota"
    else:
        door.publish(topic, Given(b"one more"))
        count += 1
    assert len(house.stored(topic)) == count


def test_what_is_sent_twice_is_stored_once(door: Door, house: House) -> None:
    assert is_same(door, "what is sent twice is stored once")
    topic = house.topic()
    door.publish_twice(topic, b"once")
    assert values(house, topic) == [b"once"]


def test_a_transaction_counts_as_a_whole(door: Door, house: House) -> None:
    assert is_same(door, "a transaction counts as a whole")
    topic = house.topic()
    door.transact(topic, b"aborted", is_committed=False)
    door.transact(topic, b"committed", is_committed=True)
    found = house.stored_until(topic, lambda messages: len(messages) == 1)
    assert [message.value for message in found] == [b"committed"]


def test_an_answer_that_does_not_wait_for_the_disk(
    door: Door, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = house.topic(acks_all_waits_for="written")
    partition = house.broker.partition(TopicPartition(TopicName(topic), 0))
    waits = count()
    committed = partition.committed

    def counted(end_offset: int) -> object:
        next(waits)
        return committed(end_offset)

    monkeypatch.setattr(partition, "committed", counted)
    door.publish(topic, Given(b"v"))
    told = is_same(door, "an answer that does not wait for the disk (`acks.all.waits.for=written`)")
    assert (next(waits) == 0) is told
    assert [stored.value for stored in house.stored_until(topic, bool)] == [b"v"]


def test_a_trace_goes_on(door: Door, house: House) -> None:
    assert is_same(door, "a trace goes on")
    topic = house.topic()
    parent = f"00-{TRACE_ID}-b7ad6b7169203331-01".encode()
    door.publish(topic, Given(b"x", None, (("traceparent", parent),)))
    place = TopicPartition(TopicName(topic), 0)
    trace = house.run(
        trace_of(house.broker, TraceMessage(source=place, offset=house.stored(topic)[0].offset))
    )
    assert trace.trace_id == TRACE_ID
