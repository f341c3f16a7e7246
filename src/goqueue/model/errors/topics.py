"""Errors about topics, their partitions and settings."""

from goqueue.model.errors.families import Busy, Denied, Invalid, InvalidName, NotFound


class InvalidTopicName(InvalidName):
    """A topic name that breaks the rules for names."""

    code = "invalid_topic_name"


class InvalidPartitionCount(Invalid):
    """A number of partitions that a topic cannot have."""

    code = "invalid_partition_count"


class InvalidReplication(Invalid):
    """A number of copies that this cluster cannot keep."""

    code = "invalid_replication"


class InvalidAssignment(InvalidReplication):
    """A partition cannot be placed so: a node is unknown, leaving or named twice, or there is none."""

    code = "invalid_replica_assignment"


class InvalidSetting(Invalid):
    """A topic setting that is unknown or has a value out of range."""

    code = "invalid_setting"


class TopicNotFound(NotFound):
    """There is no topic of that name or id."""

    code = "topic_not_found"

    def __init__(self, topic: object) -> None:
        super().__init__(f"topic {topic} does not exist")
        self.topic = topic


class PartitionNotFound(NotFound):
    """The topic has no partition of that number."""

    code = "partition_not_found"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"topic {topic} has no partition {partition}")
        self.topic = topic
        self.partition = partition


class TooManyTopics(Busy):
    """There are as many topics as there may be: delete some, or have the limit raised."""

    code = "too_many_topics"


class TopicExists(Busy):
    """A topic of that name is there already (or is just being deleted)."""

    code = "topic_exists"

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} already exists")
        self.topic = topic


class InternalTopic(Denied):
    """Topics of the broker's own cannot be written or changed by clients."""

    code = "internal_topic"

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} belongs to the broker")
        self.topic = topic
