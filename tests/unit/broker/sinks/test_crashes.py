"""A commit under power cuts at every change of the disk, and again during the restarts: each row once."""

from contextlib import suppress

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.sinks.verbs import describe_sink, take_generation
from goqueue.broker.topics.verbs import create_topic
from goqueue.model.sinks import DescribeSink, TakeGeneration
from goqueue.model.topics import CreateTopic
from tests.unit.broker.lives import NEVER, Lives, PowerLost
from tests.unit.broker.running import ORDERS
from tests.unit.broker.sinks.sink_steps import SINK, commit, put_stage, values

ROWS = [(number % 2, f"row {number}") for number in range(16)]
EPOCH = 5


async def prepare(broker: Broker) -> None:
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
    await take_generation(broker, TakeGeneration(sink=SINK))
    await put_stage(broker, EPOCH, "a", ROWS[:9])
    await put_stage(broker, EPOCH, "b", ROWS[9:])


async def commit_all(broker: Broker) -> bool:
    return (await commit(broker, EPOCH, "a", "b")).is_duplicate


async def look(broker: Broker) -> tuple[int, list[str]]:
    rows = await values(broker, 0) + await values(broker, 1)
    return (await describe_sink(broker, DescribeSink(sink=SINK))).last_epoch, rows


async def rest(broker: Broker) -> None:
    """Only open: that alone finishes a prepared epoch."""


ALL_ROWS = [value for partition in (0, 1) for at, value in ROWS if at == partition]


@pytest.mark.parametrize(
    ("seed", "stride"), [(0, 5), *(pytest.param(seed, 1, marks=pytest.mark.slow) for seed in (0, 1, 2))]
)
@pytest.mark.parametrize("is_killed", [False, True])
def test_each_row_is_there_once_wherever_the_power_fails(seed: int, stride: int, is_killed: bool) -> None:
    states = set()
    for cut_after in range(0, NEVER, stride):
        lives = Lives(seed * 1_000 + cut_after)
        lives.live(prepare)
        is_acknowledged = True
        try:
            lives.live(commit_all, cut_after=cut_after, is_killed=is_killed)
        except PowerLost:
            is_acknowledged = False
        # The restart may be cut short as well, in the midst of finishing what it found.
        for restart_cut in (cut_after % 7, cut_after % 23):
            with suppress(PowerLost):
                lives.live(rest, cut_after=restart_cut, is_killed=is_killed)

        last_epoch, rows = lives.live(look)

        assert (last_epoch, rows) in ((-1, []), (EPOCH, ALL_ROWS))
        assert rows or not is_acknowledged
        assert lives.live(commit_all) is bool(rows)
        assert lives.live(look) == (EPOCH, ALL_ROWS)
        states.add(last_epoch)
        if is_acknowledged:
            break
    assert states == {-1, EPOCH}
