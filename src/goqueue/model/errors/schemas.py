"""Errors about schemas, their registry, and messages that do not fit."""

from collections.abc import Mapping

from goqueue.model.errors.families import Busy, Denied, Invalid, InvalidName, NotFound, Unavailable
from goqueue.model.errors.messages import InvalidRecord

_SOFT_DELETED = "soft deleted.Set permanent=true to delete permanently"


class InvalidSchema(Invalid):
    """A schema that cannot be read, or refers to what is not there."""

    code = "invalid_schema"


class InvalidSubject(InvalidName):
    """A subject of the schema registry without a name, or with one that breaks the rule for names."""

    code = "invalid_subject"


class SchemaTooComplex(InvalidSchema):
    """A schema that takes more time or memory to understand, or to compare, than one request may."""

    code = "schema_too_complex"


class InvalidSchemaVersion(Invalid):
    """A version is a number from 1 on, or `latest`."""

    code = "invalid_schema_version"

    def __init__(self, version: int | str) -> None:
        super().__init__(
            f"The specified version '{version}' is not a valid version id. "
            'Allowed values are between [1, 2^31-1] and the string "latest"'
        )


class InvalidCompatibility(Invalid):
    """Not the name of a compatibility level."""

    code = "invalid_compatibility"


class InvalidRegistryMode(Invalid):
    """Not the name of a mode, or one that cannot be taken now."""

    code = "invalid_registry_mode"


class IncompatibleSchema(Invalid):
    """The schema breaks what the subject promises to its readers or writers."""

    code = "incompatible_schema"

    def __init__(self, subject: str, problems: list[str]) -> None:
        super().__init__(
            f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
            f"details: [{'; '.join(problems)}]"
        )
        self.problems = problems


class SchemaMismatch(InvalidRecord):
    """A message that is not as its topic's schemas ask: the text names the place."""

    code = "schema_mismatch"

    def __init__(self, problems: Mapping[int, str]) -> None:
        """`problems`: what is wrong, by the index of the message."""
        first, text = next(iter(problems.items()))
        others = f" (and {len(problems) - 1} more messages)" if len(problems) > 1 else ""
        super().__init__(text + others, record_index=first)
        self.problems = dict(problems)


class SchemaCheckTooSlow(SchemaMismatch):
    """Its topic's schema takes too long on this message, or on one that was sent with it."""

    code = "schema_check_too_slow"


class QuarantineNotReady(Unavailable):
    """The topic for messages that do not fit is being created: send again in a moment."""

    code = "quarantine_not_ready"

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} is being created for messages that do not fit")
        self.topic = topic


class RegistryReadOnly(Denied):
    """The subject's mode lets nobody change it."""

    code = "registry_read_only"


class SchemaReferenced(Busy):
    """Other schemas are built on this one: delete them first."""

    code = "schema_referenced"


class SubjectNotFound(NotFound):
    """The schema registry has no such subject, or all its versions are deleted."""

    code = "subject_not_found"

    def __init__(self, subject: str, text: str = "not found.") -> None:
        super().__init__(f"Subject '{subject}' {text}")
        self.subject = subject


class SchemaVersionNotFound(NotFound):
    """The subject has no such version, or it is deleted."""

    code = "schema_version_not_found"

    def __init__(self, subject: str, version: int | str, text: str = "") -> None:
        super().__init__(text or f"Version {version} not found.")
        self.subject = subject


class SubjectSoftDeleted(SubjectNotFound):
    """The subject is deleted already: what is left is to delete it for good."""

    code = "subject_soft_deleted"

    def __init__(self, subject: str) -> None:
        super().__init__(subject, f"was {_SOFT_DELETED}")


class SchemaVersionSoftDeleted(SchemaVersionNotFound):
    """The version is deleted already: what is left is to delete it for good."""

    code = "schema_version_soft_deleted"

    def __init__(self, subject: str, version: int | str) -> None:
        super().__init__(subject, version, f"Subject '{subject}' Version {version} was {_SOFT_DELETED}")


class SchemaNotFound(NotFound):
    """No such id, or the schema is not registered under the subject."""

    code = "schema_not_found"


class NotSoftDeleted(Busy):
    """What is to go for good is deleted the reversible way first."""

    code = "not_soft_deleted"


class VersionNotSoftDeleted(NotSoftDeleted):
    """The same of a version."""

    code = "version_not_soft_deleted"


class RegistrySettingNotFound(NotFound):
    """The subject has no setting of its own."""

    code = "registry_setting_not_found"


class RegistryModeNotFound(RegistrySettingNotFound):
    """The subject has no mode of its own."""

    code = "registry_mode_not_found"
