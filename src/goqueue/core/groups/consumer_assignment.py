"""What a leader among Kafka's consumers has given a member: bytes for clients, which people want to see."""

from struct import Struct, error

from goqueue.model.ids import TopicName, TopicPartition

_VERSION_AND_COUNT = Struct(">hi")
_LENGTH = Struct(">h")
_COUNT = Struct(">i")


def assigned_partitions(assignment: bytes) -> tuple[TopicPartition, ...]:
    """Partitions in an assignment (version, then topics with partitions); none if it cannot be read."""
    places: list[TopicPartition] = []
    try:
        _, topic_count = _VERSION_AND_COUNT.unpack_from(assignment)
        position = _VERSION_AND_COUNT.size
        for _ in range(topic_count):
            (length,) = _LENGTH.unpack_from(assignment, position)
            position += _LENGTH.size
            if length < 0:
                return ()  # it would lead back, to the same bytes again and again
            topic = TopicName(assignment[position : position + length].decode())
            position += length
            (count,) = _COUNT.unpack_from(assignment, position)
            position += _COUNT.size
            numbers = Struct(f">{count}i").unpack_from(assignment, position)
            position += _COUNT.size * count
            places += [TopicPartition(topic, number) for number in numbers]
    except (error, UnicodeDecodeError):
        return ()
    return tuple(sorted(places))
