"""A simulation that cannot fail proves nothing: broken on purpose, the broker is caught."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import crc32c
import pytest

from goqueue.broker import opening
from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import join_assigned
from goqueue.broker.storage.journal import Submitted
from goqueue.core.transactions.producers import Producers
from goqueue.model.group_commands import JoinAssigned
from goqueue.model.groups import AssignedMember, Sharing
from goqueue.records import frame
from goqueue.testing import simulate as command_line
from goqueue.testing.rooms.queue_simulation import simulate_queue
from goqueue.testing.whole import member_clients
from goqueue.testing.whole.partition_history import Violation
from goqueue.testing.whole.simulation import Simulation, simulate
from goqueue.testing.world.disk import OpenFile, SimulatedDisk
from tests.unit.broker.storage.early_readers import show_what_is_written

STEPS = 150
SEEDS = range(1_000, 1_060)


def is_caught(saying: str, seeds: Sequence[int] = SEEDS) -> bool:
    """Whether one of the seeds finds a violation of whose report this is a part."""
    return any(saying in violation_of(simulate, seed, STEPS) for seed in seeds)


def is_caught_by_the_queue(saying: str, seeds: Sequence[int]) -> bool:
    return any(saying in violation_of(simulate_queue, seed, 200) for seed in seeds)


def violation_of(simulate_one: Callable[[int, int], object], seed: int, steps: int) -> str:
    try:
        simulate_one(seed, steps)
    except Violation as violation:
        return str(violation)
    return ""


def test_a_disk_that_does_not_sync_is_caught_losing_what_was_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(OpenFile, "sync", lambda self: None)

    assert is_caught("was promised")


def test_a_disk_that_does_not_sync_names_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedDisk, "sync_folder", lambda self, folder: None)

    assert is_caught("was promised")


@pytest.mark.slow
def test_a_log_that_does_not_check_what_it_reads_is_caught_serving_corrupt_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class AnyChecksum(int):
        """Equal to whatever it is compared with."""

        def __ne__(self, other: object) -> bool:
            return False

        __hash__ = int.__hash__

    monkeypatch.setattr(frame, "crc32c", lambda data, value=0: AnyChecksum(crc32c.crc32c(data, value)))

    assert is_caught("which nobody has written")


def test_a_broker_that_does_not_know_duplicates_is_caught_storing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Producers, "duplicate", lambda *_, **__: None)

    assert is_caught("shows messages twice")


def test_a_broker_that_does_not_wait_for_the_disk_is_caught_losing_committed_offsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Submitted, "committed", lambda _: None)

    assert is_caught("was acknowledged", SEEDS[:20])


def test_readers_that_see_what_is_not_on_the_disk_are_caught_by_what_they_have_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    show_what_is_written(monkeypatch)

    assert is_caught("was promised", SEEDS[14:44])


@pytest.mark.slow
def test_a_queue_that_hands_out_what_is_not_on_the_disk_is_caught_hiding_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(broker: Broker) -> None:
        """Floors behind the end are not looked for."""

    show_what_is_written(monkeypatch)
    monkeypatch.setattr(opening, "compare_floors", nothing)

    assert is_caught_by_the_queue("were published, and nobody has settled them", range(30, 80))


def test_a_start_calls_it_damage_when_a_queue_has_handed_out_what_is_not_on_the_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    show_what_is_written(monkeypatch)

    assert is_caught_by_the_queue("group workers has had messages that are not there", range(25, 55))


def test_a_group_that_takes_partitions_away_unasked_is_caught_giving_them_to_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def join_eagerly(broker: Broker, command: JoinAssigned) -> AssignedMember:
        return await join_assigned(broker, replace(command, sharing=Sharing.EAGER))

    monkeypatch.setattr(member_clients, "join_assigned", join_eagerly)

    assert is_caught("both own", SEEDS[:30])


def test_a_failure_tells_how_to_repeat_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(OpenFile, "sync", lambda self: None)

    status = command_line.main(["--seed", "1000", "--seeds", "60", "--steps", str(STEPS)])

    assert status == 1
    told = capsys.readouterr().err
    assert "replay: make sim SEED=10" in told
    assert f"STEPS={STEPS}" in told


def test_a_good_run_ends_with_a_count_of_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    status = command_line.main(["--seed", "3", "--steps", "15", "-v"])

    assert status == 0
    told = capsys.readouterr().out
    assert "the broker kept its word: seeds 3 to 3, 15 steps each" in told
    assert "closed" in told


@pytest.mark.parametrize("seed", [1, 2, 12, 83, 89])
def test_the_same_seed_tells_the_same_story_and_leaves_the_same_bytes(seed: int) -> None:
    def run() -> tuple[list[str], dict[str, bytes]]:
        story: list[str] = []
        simulation = Simulation(seed, STEPS, tell=story.append)
        with suppress(Violation):
            simulation.run()
        return story, {path: bytes(stored.content) for path, stored in simulation.disk.root.files()}

    first = run()
    ballast = [object() for _ in range(10_000)]  # so that nothing lies where it lay before
    assert run() == first
    del ballast
