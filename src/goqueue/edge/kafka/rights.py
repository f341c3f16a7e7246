"""Kafka's numbers for what may be done with what, and which of it whoever asks may do."""

from goqueue.edge.kafka.context import Context
from goqueue.model.access import THE_CLUSTER, Need, Operation, PatternKind, ResourceKind

OPERATIONS_NOT_ASKED = -(2**31)
OPERATION_NUMBERS = {
    Operation.ALL: 2,
    Operation.READ: 3,
    Operation.WRITE: 4,
    Operation.CREATE: 5,
    Operation.DELETE: 6,
    Operation.ALTER: 7,
    Operation.DESCRIBE: 8,
    Operation.CLUSTER_ACTION: 9,
    Operation.DESCRIBE_CONFIGS: 10,
    Operation.ALTER_CONFIGS: 11,
    Operation.IDEMPOTENT_WRITE: 12,
}
KIND_NUMBERS = {
    ResourceKind.TOPIC: 2,
    ResourceKind.GROUP: 3,
    ResourceKind.CLUSTER: 4,
    ResourceKind.TRANSACTIONAL_ID: 5,
    ResourceKind.USER: 7,
}
"""Of what Kafka knows: rules about anything else are not shown to its clients."""
PATTERN_NUMBERS = {PatternKind.LITERAL: 3, PatternKind.PREFIXED: 4}

_OPERATIONS_OF = {
    ResourceKind.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceKind.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceKind.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}


def topic_operations(context: Context, topic: str, *, is_asked: bool) -> int:
    """The set of operations that whoever asks may do with a topic, if that is what they ask."""
    return _operations(context, ResourceKind.TOPIC, topic) if is_asked else OPERATIONS_NOT_ASKED


def group_operations(context: Context, group: str, *, is_asked: bool) -> int:
    return _operations(context, ResourceKind.GROUP, group) if is_asked else OPERATIONS_NOT_ASKED


def cluster_operations(context: Context, *, is_asked: bool) -> int:
    return _operations(context, ResourceKind.CLUSTER, THE_CLUSTER) if is_asked else OPERATIONS_NOT_ASKED


def _operations(context: Context, kind: ResourceKind, name: str) -> int:
    lets = context.broker.warden.lets
    allowed = (operation for operation in _OPERATIONS_OF[kind] if lets(Need(operation, kind, name)))
    return sum(1 << OPERATION_NUMBERS[operation] for operation in allowed)
