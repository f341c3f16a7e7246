"""What each role may do. One table: bindings and keys name roles, and mean these."""

from collections.abc import Mapping

from goqueue.model.access import Operation, ResourceKind, Role

_SEEN = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
_MADE = (Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.ALTER_CONFIGS, *_SEEN)
_EVERYTHING = dict.fromkeys(ResourceKind, (Operation.ALL,))

GRANTS: Mapping[Role, Mapping[ResourceKind, tuple[Operation, ...]]] = {
    Role.ADMIN: _EVERYTHING,
    Role.OPERATOR: {
        ResourceKind.TOPIC: _MADE,
        ResourceKind.GROUP: (Operation.DESCRIBE, Operation.DELETE, Operation.ALTER),
        ResourceKind.CLUSTER: (Operation.CREATE, Operation.CLUSTER_ACTION, Operation.ALTER_CONFIGS, *_SEEN),
        ResourceKind.TRANSACTIONAL_ID: (Operation.DESCRIBE, Operation.ALTER),
        ResourceKind.SUBJECT: (Operation.READ, Operation.ALTER, *_SEEN),
    },
    Role.DEVELOPER: {
        ResourceKind.TOPIC: (Operation.ALL,),
        ResourceKind.GROUP: (Operation.ALL,),
        ResourceKind.CLUSTER: (Operation.DESCRIBE, Operation.IDEMPOTENT_WRITE),
        ResourceKind.TRANSACTIONAL_ID: (Operation.ALL,),
        ResourceKind.SUBJECT: (Operation.ALL,),
    },
    Role.PRODUCER: {
        ResourceKind.TOPIC: (Operation.WRITE, Operation.DESCRIBE),
        ResourceKind.CLUSTER: (Operation.IDEMPOTENT_WRITE,),
        ResourceKind.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
        ResourceKind.SUBJECT: (Operation.READ,),
    },
    Role.CONSUMER: {
        ResourceKind.TOPIC: (Operation.READ, Operation.DESCRIBE),
        ResourceKind.GROUP: (Operation.READ, Operation.DESCRIBE),
        ResourceKind.SUBJECT: (Operation.READ,),
    },
    Role.VIEWER: {
        ResourceKind.TOPIC: _SEEN,
        ResourceKind.GROUP: (Operation.DESCRIBE,),
        ResourceKind.CLUSTER: (Operation.DESCRIBE,),
        ResourceKind.TRANSACTIONAL_ID: (Operation.DESCRIBE,),
        ResourceKind.SUBJECT: (Operation.READ,),
    },
}
