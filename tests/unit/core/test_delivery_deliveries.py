"""The deliveries of all groups that share one journal: found by group, by partition and by number."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.delivery.deliveries import Deliveries, FloorMoved
from goqueue.core.delivery.events import (
    DeliveryDropped,
    DeliveryKept,
    Event,
    Leased,
    LeaseKept,
    Returned,
    Settled,
)
from goqueue.core.delivery.lease import NO_LEASE
from goqueue.model.ids import TopicName, TopicPartition
from tests.unit.core.delivery_desk import ORDERS, ORDERS_ID, newborn

ORDERS_0, ORDERS_1 = TopicPartition(ORDERS, 0), TopicPartition(ORDERS, 1)


def deliveries_of(*events: Event) -> Deliveries:
    deliveries = Deliveries()
    for event in events:
        deliveries.apply(event)
    return deliveries


def test_a_delivery_is_found_by_its_group_and_partition_and_by_its_number() -> None:
    deliveries = deliveries_of(newborn(1), newborn(2, partition=1), newborn(3, group="readers"))

    second = deliveries.find("workers", ORDERS_1)

    assert second is not None
    assert second.number == 2
    assert deliveries.numbered(2) is second
    assert [one.number for one in deliveries.of_group("workers")] == [1, 2]
    assert [one.number for one in deliveries] == [1, 2, 3]


def test_what_is_not_there_is_not_found() -> None:
    deliveries = deliveries_of(newborn(1))

    assert deliveries.find("workers", ORDERS_1) is None
    assert deliveries.find("readers", ORDERS_0) is None
    assert deliveries.numbered(9) is None
    assert deliveries.of_group("readers") == []
    assert deliveries.in_flight("readers", "ann") == 0
    assert (deliveries.has_group("workers"), deliveries.has_group("readers")) == (True, False)


def test_a_consumer_has_out_what_it_took_from_all_partitions_of_its_group() -> None:
    deliveries = deliveries_of(
        newborn(1),
        newborn(2, partition=1),
        newborn(3, group="readers"),
        Leased(1, 1, "ann", 5, ((0, 3),)),
        Leased(2, 2, "ann", 5, ((0, 4),)),
        Leased(3, 3, "ann", 5, ((0, 9),)),
        Leased(2, 4, "ben", 5, ((4, 5),)),
    )

    assert [deliveries.in_flight("workers", name) for name in ("ann", "ben", "eve")] == [7, 1, 0]
    assert deliveries.in_flight("readers", "ann") == 9
    deliveries.apply(Settled(2, 2, ((0, 4),)))
    assert deliveries.in_flight("workers", "ann") == 3


def test_it_is_told_when_a_committed_offset_moves_and_only_then() -> None:
    deliveries = Deliveries()

    assert deliveries.apply(newborn(1)) == FloorMoved("workers", ORDERS, ORDERS_ID, 0, 0)
    assert deliveries.apply(Leased(1, 1, "ann", 5, ((0, 3),))) is None
    assert deliveries.apply(Settled(1, 1, ((1, 2),))) is None
    assert deliveries.apply(Settled(1, 1, ((0, 1),))) == FloorMoved("workers", ORDERS, ORDERS_ID, 0, 2)
    assert deliveries.apply(Returned(1, 1, ((2, 3),), 9)) is None


def test_events_of_a_delivery_that_is_gone_change_nothing() -> None:
    deliveries = deliveries_of(newborn(1), DeliveryDropped(1))

    assert deliveries.apply(Settled(1, 1, ((0, 1),))) is None
    assert deliveries.apply(DeliveryDropped(1)) is None
    assert list(deliveries) == []


def test_what_consumers_had_out_of_a_delivery_that_is_dropped_is_out_no_more() -> None:
    deliveries = deliveries_of(
        newborn(1),
        newborn(2, partition=1),
        Leased(1, 1, "ann", 5, ((0, 3),)),
        Leased(2, 2, "ann", 5, ((0, 4),)),
        DeliveryDropped(1),
    )

    assert deliveries.in_flight("workers", "ann") == 4
    assert deliveries.find("workers", ORDERS_0) is None
    assert deliveries.has_group("workers")
    deliveries.apply(DeliveryDropped(2))
    assert not deliveries.has_group("workers")


def test_a_topic_that_was_made_anew_begins_a_delivery_in_place_of_the_old_one() -> None:
    other_id = UUID(int=2)
    deliveries = deliveries_of(newborn(1), Leased(1, 1, "ann", 5, ((0, 3),)))

    moved = deliveries.apply(DeliveryKept(4, "workers", ORDERS, other_id, 0, 12))

    assert moved == FloorMoved("workers", ORDERS, other_id, 0, 12)
    assert deliveries.numbered(1) is None
    assert [one.number for one in deliveries.of_group("workers")] == [4]
    assert deliveries.in_flight("workers", "ann") == 0
    deliveries.apply(Leased(4, 2, "ann", 5, ((12, 14),)))
    assert deliveries.in_flight("workers", "ann") == 2


def test_the_whole_state_tells_every_delivery_in_wall_time() -> None:
    kept = DeliveryKept(
        1, "workers", ORDERS, ORDERS_ID, 0, 3, leases=(LeaseKept(5, "ann", 1_000, ((3, 4),)),)
    )
    deliveries = Deliveries()
    deliveries.apply(kept, ahead_ms=250)
    deliveries.apply(newborn(2, group="readers"), ahead_ms=250)

    assert list(deliveries.whole_state(ahead_ms=250)) == [kept, newborn(2, group="readers")]


def test_nothing_is_left_when_it_is_cleared() -> None:
    deliveries = deliveries_of(newborn(1), Leased(1, 1, "ann", 5, ((0, 3),)))

    deliveries.clear()

    assert list(deliveries) == []
    assert not deliveries.has_group("workers")
    assert deliveries.in_flight("workers", "ann") == 0


RUN = st.tuples(st.integers(0, 12), st.integers(1, 5)).map(lambda pair: (pair[0], pair[0] + pair[1]))
EVENT = st.one_of(
    st.builds(newborn, st.just(1)),
    st.builds(newborn, st.just(2), partition=st.just(1)),
    st.builds(DeliveryDropped, st.integers(1, 2)),
    st.builds(
        Settled, st.integers(1, 2), st.sampled_from((NO_LEASE, 1, 2)), st.lists(RUN, max_size=2).map(tuple)
    ),
)


@given(st.lists(EVENT, max_size=20))
def test_written_anew_the_journal_leads_to_the_same_deliveries(events: list[Event]) -> None:
    deliveries = deliveries_of(*events)

    again = deliveries_of(*deliveries.whole_state())

    assert list(again.whole_state()) == list(deliveries.whole_state())
    assert again.has_group("workers") == deliveries.has_group("workers") == bool(list(deliveries))


def test_deliveries_of_topics_with_one_name_in_several_groups_are_apart() -> None:
    late = TopicName("late")
    deliveries = deliveries_of(newborn(1), DeliveryKept(2, "workers", late, UUID(int=9), 0, 4))

    deliveries.apply(Settled(1, NO_LEASE, ((0, 2),)))

    assert [one.floor for one in deliveries] == [2, 4]
