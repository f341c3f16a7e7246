"""Messages on their way to another topic: each has a sequence number, and keeps it."""

from goqueue.core.delivery.moves import Moves
from goqueue.model.delivery import Move, Reason
from goqueue.model.ids import NO_PRODUCER, ProducerId, TopicName

DEAD, LATE = TopicName("orders.dlq"), TopicName("late")


def move(offset: int, topic: TopicName = DEAD, partition: int = 0) -> Move:
    return Move(offset, topic, partition, Reason.REJECTED, 1, "ann", "no", 5)


def moves_of(*begun: Move) -> Moves:
    moves = Moves(NO_PRODUCER, (), ())
    for one in begun:
        moves.begin(one)
    return moves


def numbers(moves: Moves) -> list[tuple[int, int]]:
    return [(one.offset, sequence) for one, sequence in moves.pending()]


def test_messages_are_numbered_in_the_order_they_go_for_each_partition_they_go_to() -> None:
    moves = moves_of(move(5), move(3), move(4, LATE), move(9, DEAD, 1), move(7))

    assert numbers(moves) == [(5, 0), (3, 1), (4, 0), (9, 0), (7, 2)]
    assert set(moves.next_sequences()) == {(DEAD, 0, 3), (LATE, 0, 1), (DEAD, 1, 1)}


def test_a_message_that_is_begun_twice_keeps_its_number() -> None:
    moves = moves_of(move(5), move(6), move(5), move(7))

    assert numbers(moves) == [(5, 0), (6, 1), (7, 2)]
    assert len(moves) == 3


def test_a_message_that_has_arrived_leaves_no_number_free() -> None:
    moves = moves_of(move(5), move(6))

    moves.pop(5, None)
    moves.pop(5, None)
    moves.begin(move(8))

    assert numbers(moves) == [(6, 1), (8, 2)]
    assert list(moves) == [6, 8]


def test_nothing_is_under_way_when_all_have_arrived() -> None:
    moves = moves_of(move(5))
    assert moves

    moves.pop(5, None)

    assert not moves


def test_a_new_producer_numbers_what_is_still_to_go_from_0_on() -> None:
    moves = moves_of(move(5), move(6), move(4, LATE), move(7))
    moves.pop(5, None)
    assert not moves.has_producer

    moves.take_producer(ProducerId(33))

    assert moves.has_producer
    assert numbers(moves) == [(6, 0), (4, 0), (7, 1)]
    assert set(moves.next_sequences()) == {(DEAD, 0, 2), (LATE, 0, 1)}


def test_the_numbers_begin_again_behind_the_largest() -> None:
    moves = Moves(ProducerId(1), [(DEAD, 0, 0x7FFF_FFFF)], ())

    moves.begin(move(1))
    moves.begin(move(2))

    assert numbers(moves) == [(1, 0x7FFF_FFFF), (2, 0)]


def test_what_was_kept_is_gone_on_with() -> None:
    moves = moves_of(move(5), move(6), move(4, LATE))
    moves.pop(5, None)

    again = Moves(moves.producer_id, moves.next_sequences(), moves.pending())
    for known in (moves, again):
        known.begin(move(6))
        known.begin(move(8))

    assert numbers(again) == numbers(moves) == [(6, 1), (4, 0), (8, 2)]
