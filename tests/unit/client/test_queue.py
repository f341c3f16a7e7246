"""The client with a broker: each story in both forms."""

from datetime import UTC, datetime, timedelta

import pytest

from goqueue.client import AsyncGoQueue, Conflict, Fenced, Invalid, NotFound, Outgoing, Placed, Refused
from tests.unit.client.conftest import Run

ANY_BYTES = bytes(range(256))


async def published(queue: AsyncGoQueue, topic: str, *values: str, partition: int = 0) -> None:
    await queue.publish_many(topic, [Outgoing(value, partition=partition) for value in values])


def test_topics_are_created_described_grown_and_deleted(run: Run) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        created = await queue.topics.create("shop", partitions=2, settings={"goqueue.retries.max": 7})
        assert (created.name, created.partitions, created.created) == ("shop", 2, True)
        assert not (await queue.topics.create("shop", exist_ok=True)).created
        with pytest.raises(Conflict) as refused:
            await queue.topics.create("shop")
        assert (refused.value.code, refused.value.status) == ("topic_exists", 409)
        assert (await queue.topics.add_partitions("shop", 3)).partitions_added == [2]
        topic = await queue.topics.describe("shop")
        assert (topic.partitions, topic.settings["goqueue.retries.max"]) == (3, "7")
        assert [place.partition for place in await queue.topics.partitions("shop")] == [0, 1, 2]
        assert "shop" in await queue.topics.list()
        await queue.topics.delete("shop")
        with pytest.raises(NotFound, match="shop does not exist"):
            await queue.topics.describe("shop")

    run(body)


@pytest.mark.parametrize("value", [ANY_BYTES, b"", "grüße", None], ids=["any", "empty", "text", "none"])
def test_any_bytes_come_back_as_they_went(run: Run, topic: str, value: bytes | str | None) -> None:
    headers = [("a", ANY_BYTES), ("a", None), ("b", b"plain")]
    stored = value.encode() if isinstance(value, str) else value

    async def body(queue: AsyncGoQueue) -> None:
        placed = await queue.publish(topic, value, key=ANY_BYTES, headers=headers, priority="low")
        async with queue.producer() as producer:
            sent = await (await producer.send(topic, value, key=ANY_BYTES, headers=headers, priority="low"))
        # Both route a key the same way.
        assert placed.partition == sent.partition
        page = await queue.read_page(topic, placed.partition, offset=placed.offset)
        assert [message.offset for message in page.messages] == [placed.offset, sent.offset]
        for message in page.messages:
            assert (message.key, message.value) == (ANY_BYTES, stored)
            assert message.headers == (("a", ANY_BYTES), ("a", None), ("b", b"plain"))
            assert (message.topic, message.priority) == (topic, "low")

    run(body)


def test_what_is_wrong_with_one_message_is_told_in_its_place(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        good, bad = await queue.publish_many(topic, [Outgoing({"a": 1}), Outgoing("b", partition=9)])
        assert isinstance(good, Placed)
        assert isinstance(bad, Refused)
        assert isinstance(bad, NotFound)
        with pytest.raises(NotFound):
            await queue.publish(topic, "b", partition=9)
        [message] = (await queue.read_page(topic, good.partition, offset=good.offset)).messages
        assert message.json() == {"a": 1}

    run(body)


def test_a_time_without_a_zone_is_refused_before_anything_is_sent(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(Invalid, match="no time zone"):
            await queue.publish(topic, "a", deliver_at=datetime(2030, 1, 1))

    run(body)


def test_a_delayed_message_is_listed_moved_and_cancelled(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        placed = await queue.publish(topic, "later", delay=timedelta(hours=1))
        assert placed.delayed
        due = datetime(2100, 1, 1, tzinfo=UTC)
        moved = await queue.delayed.move(topic, placed.partition, placed.offset, deliver_at=due)
        assert moved.deliver_at == due
        assert [one.offset for one in await queue.delayed.list(topic)] == [placed.offset]
        assert (await queue.delayed.get(topic, placed.offset)).partition == placed.partition
        assert (await queue.delayed.stats()).by_topic[topic] == 1
        await queue.delayed.cancel(topic, placed.partition, placed.offset)
        with pytest.raises(NotFound):
            await queue.delayed.get(topic, placed.offset)

    run(body)


def test_a_log_is_read_from_an_offset_or_a_time_to_its_end(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        end = (await queue.extents([topic]))[topic]["1"].end
        await published(queue, topic, *"abcde", partition=1)
        read = queue.read(topic, 1, offset=end + 1, limit=2)
        messages = [message async for message in read]
        assert [message.text for message in messages] == list("bcde")
        at = messages[0].timestamp
        assert (await queue.offsets_at([topic], at))[topic]["1"] <= messages[0].offset
        assert [one.text async for one in queue.read(topic, 1, at=at)][-4:] == list("bcde")
        assert [one async for one in queue.read(topic, 1, at=at + timedelta(days=1))] == []

    run(body)


def test_a_message_is_acknowledged_at_the_end_of_its_block(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await published(queue, topic, "a", "b", "c")
        group = f"{topic}-acks"
        async with queue.consumer(topic, group=group, idle_timeout=0.05) as consumer:
            seen = []
            async for message in consumer:
                async with message:
                    seen.append(message.text)
        assert seen == ["a", "b", "c"]
        described = await queue.groups.describe(group)
        assert (described.lag.total, described.members) == (0, [])
        await queue.groups.delete(group)

    run(body)


def test_an_exception_gives_the_message_back_with_its_text(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await published(queue, topic, "a")
        group = f"{topic}-fails"
        async with queue.consumer(
            topic, group=group, idle_timeout=0.05, retry_delay=0.0, limit=1
        ) as consumer:
            counts = []
            async for message in consumer:
                async with message:
                    counts.append(message.delivery_count)
                    raise ValueError("broken")
        assert counts == [1, 2, 3, 4]
        [letter] = (await queue.dead_letters.list(topic)).letters
        assert (letter.message.text, letter.reason) == ("a", "MAX_RETRIES_EXCEEDED")
        assert letter.last_error == "ValueError: broken"
        assert (letter.last_group, letter.delivery_attempts) == (group, 4)
        assert (await queue.dead_letters.redrive(topic, group=group)).redriven == 1
        await queue.groups.delete(group)

    run(body)


def test_errors_leave_the_block_where_that_was_asked_for(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await published(queue, topic, "a")
        async with queue.consumer(topic, group=f"{topic}-raises", raise_errors=True) as consumer:
            [message] = (await consumer.poll(limit=1))[:1]
            with pytest.raises(ZeroDivisionError):
                async with message:
                    _ = 1 / 0

    run(body)


def test_messages_are_settled_one_by_one(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await published(queue, topic, "ack", "nack", "reject", "extend", partition=2)
        group = f"{topic}-settles"
        async with queue.consumer(topic, group=group) as consumer:
            acked, nacked, rejected, extended = await consumer.poll(limit=4)
            await acked.ack(wait=True)
            await nacked.nack(delay=0.0, reason="again")
            await rejected.reject("no good")
            await extended.extend(60)
            with pytest.raises(Fenced):
                await rejected.extend(60)
            [again] = await consumer.poll()
            assert (again.text, again.delivery_count) == ("nack", 2)
            await again.ack()
            await extended.ack()
            await consumer.flush()
            assert (await queue.groups.lag(group)).total == 0
        letters = (await queue.dead_letters.list(topic)).letters
        assert [letter.last_error for letter in letters][-1:] == ["no good"]
        await queue.groups.delete(group)

    run(body)


def test_what_is_settled_inside_its_block_is_not_acknowledged_at_the_end(
    run: Run, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await published(queue, topic, "ack", "nack", "reject")
        group = f"{topic}-block"
        async with queue.consumer(topic, group=group, idle_timeout=0.3) as consumer:
            async for message in consumer:
                async with message:
                    if message.text == "ack":
                        await message.ack(wait=True)
                    elif message.text == "reject":
                        await message.reject("no good")
                    elif message.delivery_count == 1:
                        await message.nack(delay=0.0)
            await consumer.flush()
            assert consumer.lost_count == 0
        assert (await queue.groups.lag(group)).total == 0
        assert [record for record in caplog.records if record.name == "goqueue.client"] == []
        await queue.groups.delete(group)

    run(body)


def test_an_acknowledgement_after_the_end_of_its_consumer_is_sent_at_once(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await published(queue, topic, "late")
        group = f"{topic}-late"
        async with queue.consumer(topic, group=group) as consumer:
            [late] = await consumer.poll(wait=5)
        await late.ack()
        assert (await queue.groups.lag(group)).total == 0
        await queue.groups.delete(group)

    run(body)


def test_a_poll_gives_first_what_an_iteration_has_not_come_to(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await published(queue, topic, "a", "b", "c")
        group = f"{topic}-both"
        async with queue.consumer(topic, group=group, limit=3) as consumer:
            async for message in consumer:
                await message.ack()
                break
            rest = [await consumer.poll(limit=1), await consumer.poll(limit=1)]
            assert [(one.text, one.delivery_count) for [one] in rest] == [("b", 1), ("c", 1)]
            for [one] in rest:
                await one.ack()
        assert (await queue.groups.lag(group)).total == 0
        await queue.groups.delete(group)

    run(body)


def test_what_a_consumer_has_not_looked_at_is_given_back_at_once(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await published(queue, topic, "a", "b")
        group = f"{topic}-closes"
        async with queue.consumer(topic, group=group, limit=2) as consumer:
            async for message in consumer:
                assert message.text == "a"
                await message.ack()
                break
        async with queue.consumer(topic, group=group) as consumer:
            [left] = await consumer.poll(wait=5)
            assert left.text == "b"
            await left.ack()
        await queue.groups.delete(group)

    run(body)


def test_a_lease_is_extended_for_as_long_as_the_work_takes(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await published(queue, topic, "slow")
        group = f"{topic}-extends"
        async with (
            queue.consumer(topic, group=group, visibility=0.5, auto_extend=True) as slow,
            queue.consumer(topic, group=group) as other,
        ):
            [message] = await slow.poll()
            # The other waits for longer than the lease.
            assert await other.poll(wait=0.8) == []
            await message.ack(wait=True)
        await queue.groups.delete(group)

    run(body)


def test_a_member_that_was_sent_away_joins_again(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        group = f"{topic}-rejoins"
        async with queue.consumer(topic, group=group) as consumer:
            assert await consumer.poll() == []
            await queue.groups.delete(group)
            await published(queue, topic, "after")
            # A poll that finds it out gives nothing and the next one joins; a heartbeat may be quicker.
            [message] = await consumer.poll() or await consumer.poll(wait=5)
            assert message.text == "after"
            await message.ack()
        await queue.groups.delete(group)

    run(body)


def test_in_an_eager_group_each_partition_has_one_member(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        for partition in range(3):
            await published(queue, topic, "a", partition=partition)
        group = f"{topic}-eager"
        async with (
            queue.consumer(topic, group=group, mode="eager") as first,
            queue.consumer(topic, group=group, mode="eager") as second,
        ):
            # The first poll of each joins; then they share.
            taken = [*await first.poll(limit=1), *await second.poll()]
            taken += [*await first.poll(), *await second.poll()]
            assert {message.partition for message in taken} == {0, 1, 2}
            for message in taken:
                await message.ack(wait=True)
        await queue.groups.delete(group)

    run(body)


def test_a_number_is_refused_because_it_has_more_than_one_form(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(Invalid, match="not int"):
            await queue.publish(topic, 5)  # type: ignore[arg-type]  # that is the point

    run(body)


def test_a_transaction_publishes_and_acknowledges_together(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await published(queue, topic, "order", partition=0)
        group = f"{topic}-moves"
        end = (await queue.extents([topic]))[topic]["1"].end
        async with queue.consumer(topic, group=group, limit=1, retry_delay=0.0) as consumer:
            [message] = await consumer.poll()
            with pytest.raises(ZeroDivisionError):
                async with queue.transaction(f"{topic}-id") as transaction:
                    await transaction.publish(topic, "undone", partition=1)
                    _ = 1 / 0
            async with queue.transaction(f"{topic}-id") as transaction:
                await transaction.publish(topic, "done", partition=1, headers=[("h", b"\xff")])
                await transaction.ack(message)
                await transaction.offsets(f"{group}-offsets", {topic: {0: 1}})
        assert [one.text async for one in queue.read(topic, 1, offset=end)] == ["done"]
        assert (await queue.groups.offsets(group)).offsets[topic]["0"] == message.offset + 1
        assert (await queue.groups.offsets(f"{group}-offsets")).offsets == {topic: {"0": 1}}
        await queue.groups.delete(group)

    run(body)


def test_what_was_handed_to_a_transaction_comes_again_when_that_is_undone(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        work = group = f"{topic}-undone"
        await queue.topics.create(work, partitions=1, settings={"goqueue.retry.backoff.ms": "1"})
        await published(queue, work, "one", "two")
        async with queue.consumer(work, group=group, idle_timeout=0.3) as consumer:
            messages = await consumer.poll(limit=2, wait=5)
            with pytest.raises(RuntimeError):
                async with queue.transaction(f"{topic}-undone") as transaction:
                    for message in messages:
                        async with message:
                            await transaction.ack(message)
                            if message.text == "two":
                                raise RuntimeError("no room for two")
            seen = []
            async for message in consumer:
                async with message, queue.transaction(f"{topic}-undone") as transaction:
                    seen.append(message.text)
                    await transaction.ack(message)
            assert sorted(seen) == ["one", "two"]
            assert consumer.lost_count == 0
        assert (await queue.groups.lag(group)).total == 0
        await queue.topics.delete(work)

    run(body)


def test_a_transactional_id_belongs_to_whoever_came_last(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(Fenced):
            async with queue.transaction(f"{topic}-taken") as first:
                async with queue.transaction(f"{topic}-taken") as second:
                    await second.publish(topic, "second", partition=2)
                await first.publish(topic, "first", partition=2)
        with pytest.raises(Invalid, match="not open"):
            await first.publish(topic, "late")

    run(body)


def test_groups_are_looked_at_and_moved(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await published(queue, topic, "a", "b")
        group = f"{topic}-moved"
        committed = await queue.groups.commit_offsets(group, {topic: {0: 1, 9: 1}})
        assert (committed.offsets, committed.errors[0].code) == ({topic: {"0": 1}}, "partition_not_found")
        assert group in [one.id for one in await queue.groups.list()]
        dry = await queue.groups.reset_offsets(group, to="latest", topics=[topic], dry_run=True)
        assert dry.dry_run
        moved = await queue.groups.reset_offsets(group, to={topic: {0: 0}})
        assert [(one.old_offset, one.new_offset) for one in moved.partitions] == [(1, 0)]
        await queue.groups.reset_offsets(group, to=datetime.now(UTC), topics=[topic], partition=0)
        lag = await queue.groups.lag(group)
        assert [one.lag for one in lag.partitions if one.partition == 0] == [0]
        await queue.groups.delete(group)
        with pytest.raises(NotFound):
            await queue.groups.lag(group)

    run(body)


def test_schedules_schemas_and_traces_have_their_calls(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        schedule = await queue.schedules.create(topic, "0 9 * * *", "v", name="daily", time_zone="Asia/Tokyo")
        assert schedule.next_at is not None
        assert (await queue.schedules.pause(topic, "daily")).state == "paused"
        assert (await queue.schedules.resume(topic, "daily")).state == "active"
        assert [one.name for one in await queue.schedules.list(topic)] == ["daily"]
        await queue.schedules.delete(topic, "daily")

        text = '{"type": "object", "properties": {"a": {"type": "string"}}}'
        other = text.replace("string", "integer")
        registered = await queue.schemas.register(f"{topic}-value", text, schema_type="JSON")
        assert (await queue.schemas.by_id(registered.id)).schema == text
        assert (await queue.schemas.get(f"{topic}-value")).version == registered.version
        fit = await queue.schemas.check(f"{topic}-value", other, schema_type="JSON")
        assert not fit.is_compatible
        assert fit.messages
        assert await queue.schemas.delete(f"{topic}-value") == [registered.version]

        placed = await queue.publish(topic, "traced")
        trace = await queue.traces.of(topic, placed.partition, placed.offset)
        assert (trace.topic, trace.partition, trace.offset) == (topic, placed.partition, placed.offset)
        assert "publish.persisted" in [span.event_type for span in trace.spans]
        assert (await queue.traces.stats()).enabled
        assert len(await queue.traces.list(limit=1)) <= 1
        assert all(one.topic == topic for one in await queue.traces.search(topic=topic))

    run(body)


def test_the_node_tells_of_itself(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        assert (await queue.admin.health()).status == "ok"
        ready = await queue.admin.ready()
        assert ready.is_ready
        assert ready.checks["broker"].status == "pass"
        assert (await queue.admin.version()).version
        assert topic in (await queue.admin.stats()).topic_stats
        assert (await queue.admin.reliability_stats()).acks_total >= 0
        assert set((await queue.admin.priority_stats()).messages_by_priority) >= {"critical", "low"}
        assert "# TYPE" in await queue.admin.metrics()
        assert await queue.transactions.list() is not None
        assert (await queue.transactions.stats()).active_transactions == 0

    run(body)
