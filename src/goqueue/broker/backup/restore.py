"""restore_backup: bring back what a backup has kept.

Everything that stands in the way is told before anything is changed. Then come schemas, topics, offsets and
tenants, each step durable by itself and none repeated where it is done: whatever stops a restore, the next
one finishes it.
"""

from goqueue.broker.backup.restore_plan import plan_restore
from goqueue.broker.backup.verbs import admit_backups, on_disk
from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.schemas.verbs import restore_schemas
from goqueue.broker.tenants.verbs import restore_tenant
from goqueue.broker.topics.verbs import create_topic
from goqueue.model.backups import RestoreBackup, Restored
from goqueue.model.errors import GoQueueError, RestoreConflict
from goqueue.model.group_commands import CommitOffsets
from goqueue.model.groups import NO_GENERATION, Membership


async def restore_backup(broker: Broker, command: RestoreBackup) -> Restored:
    """Bring back what the broker lacks of a backup; returns when the disk has it."""
    admit_backups(broker)
    broker.admit_alone("backups that are restored")
    return await broker.carry_out(_restore_backup(broker, command), broker.backups.lock)


async def _restore_backup(broker: Broker, command: RestoreBackup) -> Restored:
    backup = (await on_disk(broker, broker.backups.get, command.backup_id)).backup
    plan = plan_restore(broker, backup, command)
    if plan.conflicts and not command.skip_existing:
        raise RestoreConflict(command.backup_id, plan.conflicts)
    skipped = plan.present + plan.conflicts
    await restore_schemas(broker, plan.schemas.events)
    topic_count = group_count = 0
    for creation in plan.topics:
        try:
            await create_topic(broker, creation)
            topic_count += 1
        except GoQueueError as error:
            _pass_over(skipped, f"topic {creation.name}", error, command)
    for group, commits in plan.groups.items():
        who = Membership(group, "", NO_GENERATION)
        try:
            refusals = await commit_offsets(broker, CommitOffsets(who, commits))
            group_count += 1
        except GoQueueError as error:
            _pass_over(skipped, f"group {group}", error, command)
            continue
        for target, refusal in refusals.items():
            _pass_over(skipped, f"group {group} in {target}", refusal, command)
    # Last, because one that is suspended would let nothing of its own come back.
    for tenant in plan.tenants:
        await restore_tenant(broker, tenant)
    return Restored(
        backup_id=command.backup_id,
        topics_restored=topic_count,
        groups_restored=group_count,
        schemas_restored=plan.schemas.version_count,
        tenants_restored=len(plan.tenants),
        skipped=tuple(skipped),
    )


def _pass_over(skipped: list[str], what: str, error: GoQueueError, command: RestoreBackup) -> None:
    """Something has come in the way since the plan was made."""
    if not command.skip_existing:
        raise error
    skipped.append(f"{what}: {error}")
