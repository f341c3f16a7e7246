"""The table of what is written down when it was done, and under which name."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from goqueue.model import access as rights
from goqueue.model import backups, client_quotas, group_settings, moving, topics, whole_backups
from goqueue.model import group_commands as groups
from goqueue.model import identity_commands as identity
from goqueue.model import schema_commands as schemas
from goqueue.model import tenant_commands as tenants
from goqueue.model import transaction_commands as transactions


class Audited(NamedTuple):
    event: str
    of: Callable[[Any], str]
    """What a command was about, in words."""


def _named(event: str, kind: str, field: str) -> Audited:
    return Audited(event, lambda command: f"{kind} {getattr(command, field)}")


def _rules(event: str) -> Audited:
    return Audited(event, lambda command: "; ".join(map(_rule, command.rules)))


def _rule(rule: rights.Rule) -> str:
    verb = "may" if rule.is_allowed else "may not"
    return f"{rule.principal} {verb} {rule.operation} {rule.kind} {rule.pattern} {rule.name} from {rule.host}"


def _client_quota(command: client_quotas.AlterClientQuota) -> str:
    names = zip(("user", "client id"), command.entity, strict=True)
    return " ".join(f"{kind} {name or 'by default'}" for kind, name in names if name is not None)


def _binding(event: str) -> Audited:
    def told(command: rights.BindRole | rights.UnbindRole) -> str:
        binding = command.binding
        return f"{binding.principal} {binding.role}" + (f" of {binding.tenant}" if binding.tenant else "")

    return Audited(event, told)


AUDITED: Mapping[type, Audited] = {
    topics.CreateTopic: _named("topic_created", "topic", "name"),
    topics.DeleteTopic: _named("topic_deleted", "topic", "name"),
    topics.AddPartitions: _named("config_changed", "topic", "name"),
    topics.AlterSettings: _named("config_changed", "topic", "name"),
    topics.DeleteRecords: _named("records_deleted", "partition", "target"),
    topics.AcceptLoss: _named("loss_accepted", "partition", "target"),
    groups.DeleteGroup: _named("group_deleted", "group", "group"),
    groups.DisbandGroup: _named("group_deleted", "group", "group"),
    groups.ResetOffsets: _named("offsets_reset", "group", "group"),
    groups.DeleteOffsets: _named("offsets_deleted", "group", "group"),
    schemas.RegisterSchema: _named("schema_registered", "subject", "subject"),
    schemas.DeleteSchemaVersion: _named("schema_deleted", "subject", "subject"),
    schemas.DeleteSubject: _named("schema_deleted", "subject", "subject"),
    schemas.SetCompatibility: _named("config_changed", "subject", "subject"),
    schemas.SetValidation: _named("config_changed", "subject", "subject"),
    schemas.SetRegistryMode: _named("config_changed", "subject", "subject"),
    tenants.CreateTenant: _named("tenant_created", "tenant", "name"),
    tenants.ChangeTenant: _named("tenant_changed", "tenant", "tenant_id"),
    tenants.SetStatus: _named("tenant_suspended", "tenant", "tenant_id"),
    tenants.SetQuotas: _named("tenant_changed", "tenant", "tenant_id"),
    tenants.DeleteTenant: _named("tenant_deleted", "tenant", "tenant_id"),
    tenants.ResetUsage: _named("tenant_changed", "tenant", "tenant_id"),
    transactions.AbortTransaction: _named("transaction_aborted", "transaction", "name"),
    transactions.AbortOpenIn: _named("transaction_aborted", "partition", "target"),
    moving.Reassign: Audited("partitions_moved", lambda command: f"{len(command.moves)} partitions"),
    moving.Decommission: _named("node_decommissioned", "node", "node"),
    moving.CancelDecommission: _named("node_kept", "node", "node"),
    moving.ElectLeaders: Audited("leaders_elected", lambda command: "cluster"),
    backups.CreateBackup: Audited("backup_created", lambda command: "cluster"),
    backups.RestoreBackup: _named("backup_restored", "backup", "backup_id"),
    backups.FetchBackup: _named("backup_read", "backup", "backup_id"),
    backups.DeleteBackup: _named("backup_deleted", "backup", "backup_id"),
    whole_backups.BeginWholeBackup: Audited("backup_created", lambda command: "node"),
    whole_backups.DeleteWholeBackup: _named("backup_deleted", "backup", "backup_id"),
    identity.CreateUser: _named("user_created", "user", "name"),
    identity.ChangePassword: _named("password_changed", "user", "name"),
    identity.AlterScram: _named("password_changed", "user", "name"),
    identity.SetUserDisabled: Audited(
        "user_changed",
        lambda command: f"user {command.name} is {'disabled' if command.is_disabled else 'let in again'}",
    ),
    identity.DeleteUser: _named("user_deleted", "user", "name"),
    identity.CreateKey: Audited("key_created", lambda command: f"key {command.key.key_id}"),
    identity.RotateKey: _named("key_rotated", "key", "key_id"),
    identity.RevokeKey: _named("key_revoked", "key", "key_id"),
    client_quotas.AlterClientQuota: Audited("client_quota_changed", _client_quota),
    group_settings.AlterGroupSettings: _named("group_config_changed", "group", "group"),
    rights.AddRules: _rules("acl_added"),
    rights.RemoveRules: _rules("acl_removed"),
    rights.BindRole: _binding("role_bound"),
    rights.UnbindRole: _binding("role_unbound"),
}
