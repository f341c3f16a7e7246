"""Errors about who is there, and what they may do."""

from goqueue.model.errors.families import Busy, Denied, InvalidName, NotFound


class NotAuthenticated(Denied):
    """Nobody knows who asks: show a key or a password that is good."""

    code = "not_authenticated"


class InvalidIdentity(InvalidName):
    """A user or a key that cannot be."""

    code = "invalid_identity"


class UserNotFound(NotFound):
    """There is no user of that name, or not with what was asked for."""

    code = "user_not_found"

    def __init__(self, user: str) -> None:
        super().__init__(f"user {user} does not exist")
        self.user = user


class UserExists(Busy):
    """A user of that name is there already."""

    code = "user_exists"

    def __init__(self, user: str) -> None:
        super().__init__(f"user {user} already exists")
        self.user = user


class KeyNotFound(NotFound):
    """There is no key of that id."""

    code = "key_not_found"

    def __init__(self, key_id: str) -> None:
        super().__init__(f"key {key_id} does not exist")
        self.key_id = key_id


class KeyExists(Busy):
    """A key of that id is there already."""

    code = "key_exists"

    def __init__(self, key_id: str) -> None:
        super().__init__(f"key {key_id} already exists")
        self.key_id = key_id


class InvalidRule(InvalidName):
    """A rule of who may do what that nobody could go by."""

    code = "invalid_rule"


class RuleNotFound(NotFound):
    """There is no such rule."""

    code = "rule_not_found"

    def __init__(self, rule: str) -> None:
        super().__init__(f"there is no rule {rule}")
        self.rule = rule


class NotAllowed(Denied):
    """Nobody has allowed whoever asks to do this: ask an administrator for the right."""

    code = "not_allowed"

    def __init__(self, principal: str, operation: str, kind: str, name: str) -> None:
        super().__init__(f"{principal} may not {operation} {kind} {name}: ask an administrator for the right")
        self.principal = principal
        self.operation = operation
        self.kind = kind
        self.name = name


class TopicNotAllowed(NotAllowed):
    """The same, with a topic."""

    code = "topic_not_allowed"


class GroupNotAllowed(NotAllowed):
    """The same, with a consumer group."""

    code = "group_not_allowed"


class ClusterNotAllowed(NotAllowed):
    """The same, with the cluster."""

    code = "cluster_not_allowed"


class TransactionalIdNotAllowed(NotAllowed):
    """The same, with a transactional id."""

    code = "transactional_id_not_allowed"


class InvalidClientQuota(InvalidName):
    """A quota of users and client ids that nobody could be held to."""

    code = "invalid_client_quota"
