"""restore_backup: bring back what a backup has kept.

Any node does it, and has others do what is at home with them. Everything that stands in the way is told
before anything is changed. Then come schemas, topics, offsets and
tenants, each step durable by itself and none repeated where it is done: whatever stops a restore, the next
one finishes it.
"""

from goqueue.broker.backup.restore_plan import plan_restore
from goqueue.broker.backup.taking import take_share
from goqueue.broker.backup.verbs import admit_backups, get_backup
from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.schemas.verbs import restore_schemas
from goqueue.broker.tenants.verbs import restore_tenant
from goqueue.broker.topics.verbs import create_topic
from goqueue.model.backups import CreateBackup, GetBackup, RestoreBackup, Restored, TakeShare
from goqueue.model.errors import GoQueueError, RestoreConflict
from goqueue.model.group_commands import CommitOffsets
from goqueue.model.groups import NO_GENERATION, Membership
from goqueue.model.tenant_commands import RestoreTenant


async def restore_backup(broker: Broker, command: RestoreBackup) -> Restored:
    """Bring back what the broker lacks of a backup; returns when the disk has it."""
    admit_backups(broker)
    if command.data_follows:
        broker.admit_alone("restores that messages follow")  # nobody can put them at their old offsets there
    return await broker.carry_out(_restore_backup(broker, command), broker.backups.lock)


async def _restore_backup(broker: Broker, command: RestoreBackup) -> Restored:
    backup = (await broker.at_home(get_backup, GetBackup(backup_id=command.backup_id))).backup
    standing = await broker.at_home(take_share, TakeShare(wanted=CreateBackup(include_config=False)))
    plan = plan_restore(broker, standing, backup, command)
    if plan.conflicts and not command.skip_existing:
        raise RestoreConflict(command.backup_id, plan.conflicts)
    skipped = plan.present + plan.conflicts
    version_count = await broker.at_home(restore_schemas, plan.schemas)
    topic_count = group_count = 0
    for creation in plan.topics:
        try:
            await broker.at_home(create_topic, creation)
            topic_count += 1
        except GoQueueError as error:
            _pass_over(skipped, f"topic {creation.name}", error, command)
    for group, commits in plan.groups.items():
        who = Membership(group, "", NO_GENERATION)
        try:
            refusals = await broker.at_home(commit_offsets, CommitOffsets(who, commits))
            group_count += 1
        except GoQueueError as error:
            _pass_over(skipped, f"group {group}", error, command)
            continue
        for target, refusal in refusals.items():
            _pass_over(skipped, f"group {group} in {target}", refusal, command)
    # Last, because one that is suspended would let nothing of its own come back.
    for tenant in plan.tenants:
        await broker.at_home(restore_tenant, RestoreTenant(tenant=tenant))
    return Restored(
        backup_id=command.backup_id,
        topics_restored=topic_count,
        groups_restored=group_count,
        schemas_restored=version_count,
        tenants_restored=len(plan.tenants),
        skipped=tuple(skipped),
    )


def _pass_over(skipped: list[str], what: str, error: GoQueueError, command: RestoreBackup) -> None:
    """Something has come in the way since the plan was made."""
    if not command.skip_existing:
        raise error
    skipped.append(f"{what}: {error}")
