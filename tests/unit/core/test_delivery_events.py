"""Events of deliveries: each has a name, and what is known of a log ends where the log does."""

from typing import get_args

import pytest

from goqueue.core.delivery.events import EVENT_TYPES, DeliveryKept, Event, LeaseKept, ReturnKept
from goqueue.model.delivery import Move, PassedRun, Reason
from goqueue.model.ids import ProducerId
from tests.unit.core.delivery_desk import DEAD, ORDERS, ORDERS_ID


def move(offset: int) -> Move:
    return Move(offset, DEAD, 0, Reason.REJECTED, 1, "ann", "no", 5)


KEPT = DeliveryKept(
    1,
    "workers",
    ORDERS,
    ORDERS_ID,
    0,
    floor=10,
    settled=((12, 14), (20, 25)),
    leases=(
        LeaseKept(1, "ann", 99, ((10, 12), (16, 18)), ((11, 200), (17, 300))),
        LeaseKept(2, "ben", 99, ((30, 31),)),
    ),
    returned=(ReturnKept(14, 2, 0), ReturnKept(19, 1, 50)),
    producer_id=ProducerId(4),
    next_sequences=((DEAD, 0, 3),),
    moves=((move(15), 1), (move(40), 2)),
    passed=(PassedRun(0, 50, "corrupt", 1),),
)


def test_every_event_has_a_name_for_the_journal() -> None:
    assert {kind.__name__: kind for kind in get_args(Event)} == EVENT_TYPES


def test_where_the_log_ends_behind_all_that_is_known_nothing_is_forgotten() -> None:
    assert KEPT.before(41) == KEPT


@pytest.mark.parametrize(
    ("end_offset", "settled", "leased", "later", "returned", "moves"),
    [
        (40, ((12, 14), (20, 25)), {1: ((10, 12), (16, 18)), 2: ((30, 31),)}, (11, 17), (14, 19), (15,)),
        (30, ((12, 14), (20, 25)), {1: ((10, 12), (16, 18))}, (11, 17), (14, 19), (15,)),
        (21, ((12, 14), (20, 21)), {1: ((10, 12), (16, 18))}, (11, 17), (14, 19), (15,)),
        (20, ((12, 14),), {1: ((10, 12), (16, 18))}, (11, 17), (14, 19), (15,)),
        (17, ((12, 14),), {1: ((10, 12), (16, 17))}, (11,), (14,), (15,)),
        (15, ((12, 14),), {1: ((10, 12),)}, (11,), (14,), ()),
        (14, ((12, 14),), {1: ((10, 12),)}, (11,), (), ()),
        (11, (), {1: ((10, 11),)}, (), (), ()),
        (10, (), {}, (), (), ()),
    ],
)
def test_what_was_known_of_messages_behind_the_end_of_the_log_is_forgotten(
    end_offset: int,
    settled: object,
    leased: object,
    later: tuple[int, ...],
    returned: tuple[int, ...],
    moves: tuple[int, ...],
) -> None:
    left = KEPT.before(end_offset)

    assert left.settled == settled
    assert {lease.lease: lease.runs for lease in left.leases} == leased
    assert tuple(offset for lease in left.leases for offset, _ in lease.later) == later
    assert tuple(one.offset for one in left.returned) == returned
    assert tuple(pair[0].offset for pair in left.moves) == moves
    assert left.floor == 10


def test_a_floor_behind_the_end_of_the_log_comes_down_to_it() -> None:
    left = KEPT.before(6)

    assert (left.floor, left.settled, left.leases) == (6, (), ())
    assert (left.producer_id, left.next_sequences) == (KEPT.producer_id, KEPT.next_sequences)
