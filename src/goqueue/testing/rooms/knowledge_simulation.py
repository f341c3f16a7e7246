"""What a broker knows, on a simulated machine, through crashes: topics, offsets, schemas, tenants, backups.

A row of lives, as in the simulation of the whole broker. What was answered must be known in the next life, a
backup must hold it, and a tenant gets no more than its rate. In the end the last backup is restored on
another machine, whose power fails again and again until it is through; then that broker must know the same.
"""

from collections import Counter
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field

from goqueue.broker.backup.restore import restore_backup
from goqueue.broker.backup.taking import take_backup
from goqueue.broker.backup.verbs import backup_document, bring_backup, create_backup
from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.schemas.verbs import register_schema
from goqueue.broker.tenants.verbs import create_tenant
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.model.backups import Backup, BringBackup, CreateBackup, FetchBackup, RestoreBackup
from goqueue.model.commands import Publish
from goqueue.model.errors import BackupExists, GoQueueError, RateExceeded, TenantExists, TopicExists
from goqueue.model.group_commands import CommitOffsets
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import TopicName
from goqueue.model.messages import Message
from goqueue.model.schema_commands import RegisterSchema
from goqueue.model.schemas import SchemaKind, SchemaText
from goqueue.model.settings import BrokerConfig
from goqueue.model.tenant_commands import CreateTenant
from goqueue.model.tenants import Quotas
from goqueue.model.topics import CreateTopic
from goqueue.testing.rooms.answers import Answers, PowerLost
from goqueue.testing.rooms.room_simulation import Habits, RoomLife, RoomSimulation
from goqueue.testing.whole.partition_history import demand
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.machine import Machine, Tell

TENANT = "acme"
GREEDY = TopicName("acme.orders")
RATE = 10
_SUBJECT = "orders"
_RESTORES_MAX = 60
_WAITS_MS = (0, 1, 50, 700, 6_000)
_NS_PER_SECOND = 1_000_000_000
_ID = "2026-01-01-000000"


@dataclass(slots=True)
class _Known:
    """What was answered, and so must be known."""

    topics: dict[str, int] = field(default_factory=dict)
    """Partitions by name."""
    offsets: dict[str, int] = field(default_factory=dict)
    """Of partition 0 of the topic that the group is named after; absent while a commit is unanswered."""
    schemas: dict[str, int] = field(default_factory=dict)
    """Ids by text."""


@dataclass(slots=True)
class _State:
    """What outlives the broker's lives."""

    known: _Known = field(default_factory=_Known)
    document: bytes = b""
    """The last backup, and what was known when it was made."""
    kept: _Known = field(default_factory=_Known)
    stored: int = 0
    """Messages that the tenant got in."""
    lived_ns: int = 0
    lives: int = 0
    next_number: int = 0


class KnowledgeSimulation(RoomSimulation):
    what = "knowledge"
    habits = Habits(opening_changes=40, end_share=0.06, close_share=0.3, down_ms=(0, 50, 3_000))

    def __init__(self, seed: int, steps: int, *, tell: Tell | None = None) -> None:
        self._seed = seed
        self._state = _State()
        super().__init__(seed, steps, tell=tell)

    def choose_config(self) -> BrokerConfig:
        return BrokerConfig(upkeep_interval_ms=self.random.choice((300, 5_000)))

    def new_life(self, broker: Broker, answers: Answers) -> RoomLife:
        self._state.lives += 1
        return _Life(self, broker, answers, self._state)

    def run(self) -> Counter[str]:
        counts = super().run()
        if self._state.document:
            self._restore_elsewhere(self._state.document)
        return counts

    def _restore_elsewhere(self, document: bytes) -> None:
        """On another machine, whose power goes within a few changes of the disk, until it is through."""
        machine = Machine(self._seed + 1)
        for attempt in range(_RESTORES_MAX):
            done: list[Backup] = []

            async def live(loop: SimulatedLoop, attempt: int = attempt, done: list[Backup] = done) -> bool:
                answers = Answers(loop, machine.disk)
                answers.cut_power(after_changes=self.random.randrange(20 + 40 * attempt))
                broker = await answers.wait_for(machine.open(BrokerConfig()))
                with suppress(BackupExists):  # an earlier attempt came so far
                    await answers.wait_for(
                        bring_backup(broker, BringBackup(backup_id=_ID, document=document))
                    )
                command = RestoreBackup(backup_id=_ID, data_follows=True)
                await answers.wait_for(restore_backup(broker, command))
                done.append(take_backup(broker, CreateBackup()))
                return True

            with suppress(PowerLost):
                machine.live(live)
            self.note("restore done" if done else "restore cut off")
            if done:
                _check_known(done[0], self._state.kept, "after a restore")
                return
        demand(False, f"a restore did not come through in {_RESTORES_MAX} attempts")


class _Life(RoomLife):
    def __init__(self, simulation: RoomSimulation, broker: Broker, answers: Answers, state: _State) -> None:
        super().__init__(simulation, broker, answers)
        self._state = state
        self._begun_ns = broker.clock.monotonic_ns()
        self._lived_before_ns = state.lived_ns

    async def begin(self) -> None:
        quotas = Quotas(publish_rate_limit=RATE)
        with suppress(TenantExists):
            command = CreateTenant(name="Acme", tenant_id=TENANT, quotas=quotas)
            await self.answers.wait_for(create_tenant(self.broker, command))
        with suppress(TopicExists):
            await self.answers.wait_for(create_topic(self.broker, CreateTopic(name=GREEDY, partitions=1)))
        known = take_backup(self.broker, CreateBackup())
        _check_known(known, self._state.known, "after a restart")
        [tenant] = known.tenants
        demand(tenant.quotas == quotas, f"the tenant's quotas are {tenant.quotas}")

    async def step(self) -> None:
        actions = {
            self._create: 10,
            self._commit: 20,
            self._register: 10,
            self._back_up: 10,
            self._be_greedy: 15,
            self._wait: 15,
            self._misfortune: 4,
        }
        (action,) = self.random.choices(list(actions), list(actions.values()))
        try:
            await action()
        except GoQueueError as error:
            self.note(f"refused: {error.code}")
            self.answers.permit(error)
        self.answers.raise_problems()

    async def _create(self) -> None:
        self.note("create")
        partitions = self.random.randrange(1, 4)
        name = TopicName(f"topic-{self._number()}")
        await self.answers.wait_for(create_topic(self.broker, CreateTopic(name=name, partitions=partitions)))
        self._state.known.topics[name] = partitions

    async def _commit(self) -> None:
        if not self._state.known.topics:
            return
        self.note("commit")
        topic = self.random.choice(sorted(self._state.known.topics))
        offset = self._number()
        self._state.known.offsets.pop(topic, None)
        who = Membership(f"readers of {topic}", "", NO_GENERATION)
        commit = TopicCommit(TopicName(topic), [(0, offset, -1, "")])
        await self.answers.wait_for(commit_offsets(self.broker, CommitOffsets(who, [commit])))
        self._state.known.offsets[topic] = offset

    async def _register(self) -> None:
        self.note("register")
        text = f'{{"type": "object", "description": "number {self.random.randrange(12)}"}}'
        schema = SchemaText(SchemaKind.JSON, text)
        place = await self.answers.wait_for(
            register_schema(self.broker, RegisterSchema(subject=_SUBJECT, schema=schema))
        )
        known = self._state.known.schemas.setdefault(text, place.schema_id)
        demand(place.schema_id == known, f"schema {text} had the id {known}, and has {place.schema_id}")

    async def _back_up(self) -> None:
        self.note("back up")
        kept = await self.answers.wait_for(create_backup(self.broker, CreateBackup()))
        _check_known(kept.backup, self._state.known, f"in backup {kept.backup_id}")
        document = await self.answers.wait_for(
            backup_document(self.broker, FetchBackup(backup_id=kept.backup_id))
        )
        self._state.document, self._state.kept = document, deepcopy(self._state.known)

    async def _be_greedy(self) -> None:
        self.note("be greedy")
        messages = [Message(b"x")] * self.random.randrange(1, 2 * RATE)
        state = self._state
        with suppress(RateExceeded):
            placed = await self.answers.wait_for(
                publish(self.broker, Publish(topic=GREEDY, messages=messages))
            )
            state.stored += sum(not isinstance(reply, GoQueueError) for reply in placed)
        state.lived_ns = self._lived_before_ns + self.broker.clock.monotonic_ns() - self._begun_ns
        # A life begins with a full bucket, and what is more than a bucket is taken from a full one on credit.
        most = RATE * (state.lived_ns / _NS_PER_SECOND + 2 * state.lives)
        demand(state.stored <= most, f"{state.stored} messages were taken where {most:.0f} may be")

    async def _wait(self) -> None:
        await self.answers.sleep(self.random.choice(_WAITS_MS))

    async def _misfortune(self) -> None:
        match self.random.randrange(7):
            case 0 | 1:
                self.cut_power(within_changes=40)
            case 2:
                self.fill_disk(0, 300, 3_000)
            case 3:
                self.fail_reads("backups/")
            case 4:
                self.set_clock(-3_000, -50, 2_000)
            case 5:
                self.stand_still(100, 5_000, 40_000)
            case _:
                self.mend()

    def _number(self) -> int:
        self._state.next_number += 1
        return self._state.next_number


def _check_known(backup: Backup, known: _Known, where: str) -> None:
    """All that was answered is there, and stands as it was answered."""
    topics = {topic.name: topic.num_partitions for topic in backup.topics}
    for name, partitions in known.topics.items():
        demand(topics.get(name) == partitions, f"{name}/{partitions} is {topics.get(name)} {where}")
    offsets = {group.group_id: group.offsets for group in backup.consumer_groups}
    for topic, offset in known.offsets.items():
        found = offsets.get(f"readers of {topic}", {})
        demand(found.get(topic, {}).get(0) == offset, f"offset {offset} of {topic} is {found} {where}")
    schemas = {schema.schema: schema.id for schema in backup.schemas}
    for text, schema_id in known.schemas.items():
        demand(schemas.get(text) == schema_id, f"schema {schema_id} is {schemas.get(text)} {where}")


simulate_knowledge = KnowledgeSimulation.simulate
