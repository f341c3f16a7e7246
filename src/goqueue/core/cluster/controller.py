"""What the controller decides: from the image to changes, and from nothing else.

Each change is guarded by the controller's own seat, so that one who was replaced decides nothing any more; by
the records it rests on; and by the registration of whoever it elects. What turns out to be outdated is
decided anew with the next image, so nothing here is remembered.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import NAMESPACE_OID, UUID, uuid5

from goqueue.core.cluster import values
from goqueue.core.cluster.elections import candidates, elect, elect_unclean, fit_record, is_quiet
from goqueue.core.cluster.isr import min_isr_of
from goqueue.core.cluster.members import alive_nodes, placeable
from goqueue.core.cluster.metadata import Metadata
from goqueue.core.cluster.moves import begin_move, cancel_move, finish_move, is_moving, is_moving_to
from goqueue.core.cluster.placement import Placement
from goqueue.core.cluster.reassignments import is_called_off, noted, outdated_orders
from goqueue.core.cluster.values import (
    Topic,
    encode,
    member_key,
    name_key,
    node_key,
    order_key,
    part_key,
    topic_key,
)
from goqueue.model.cluster import (
    Guard,
    Move,
    MoveState,
    NodeId,
    Order,
    OrderKind,
    PartitionRecord,
    Step,
)
from goqueue.model.ids import INTERNAL_PREFIX, TopicName
from goqueue.model.settings import TopicSettings

MOVES_MAX = 20
"""So many partitions move at a time: each copies its whole log."""
INTERNAL_REPLICAS = 3
IMBALANCE_MAX = 0.1
"""Which share of the partitions that a node should lead may be led by others."""
STEPS_MAX = 500
"""So many partitions get a leader in one decision, which holds the loop; then comes the next one."""
PUTS_MAX = 60
"""So many keys are changed together; a store refuses more than 128 operations, guards among them."""

Place = tuple[UUID, int]


class WantedTopic(NamedTuple):
    """A topic that brokers need for themselves."""

    name: TopicName
    partitions: int
    settings: TopicSettings


def decide(
    image: Metadata, *, balances: bool = False, wanted: Sequence[WantedTopic] = (), now_ms: int = 0
) -> list[Step[None]]:
    """What is to be changed now. `balances`: also give partitions back to who should lead them.

    `wanted`: topics that are to be there as soon as their nodes are; made at `now_ms`.
    """
    deciding = _Deciding(image, now_ms)
    deciding.make(wanted, is_late=balances)
    deciding.fit()
    deciding.carry_out_orders()
    deciding.grow_internal_topics()
    if balances:
        deciding.balance()
    return deciding.steps()


def orphans_of(image: Metadata) -> frozenset[UUID]:
    """Ids of topics that have records of partitions and are not there: they are being made, or never were."""
    known = {*image.names, *(topic.topic_id for topic in image.deleted.values())}
    return frozenset(topic_id for topic_id, _ in image.records if topic_id not in known)


def forget_orphans(image: Metadata, topics: Iterable[UUID]) -> Iterator[Step[None]]:
    """The steps that drop records of topics that nobody has made for a long time.

    The first partition goes first: whoever makes the topic after all says that it must be there.
    """
    for topic_id, number in sorted(place for place in image.records if place[0] in set(topics)):
        keys = (values.CONTROLLER, topic_key(topic_id), part_key(topic_id, number))
        yield Step(None, tuple(map(image.guard, keys)), {}, (part_key(topic_id, number),))


def bundle(steps: Iterable[Step[None]]) -> Iterator[Step[None]]:
    """Steps put together, as many as fit into one change."""
    guards: dict[str, Guard] = {}
    puts: dict[str, bytes] = {}
    drops: list[str] = []
    for step in steps:
        if (puts or drops) and len(puts) + len(drops) + len(step.puts) + len(step.drops) > PUTS_MAX:
            yield Step(None, tuple(guards.values()), dict(puts), tuple(drops))
            guards, puts, drops = {}, {}, []
        guards |= {guard.key: guard for guard in step.guards}
        puts |= step.puts
        drops += step.drops
    if puts or drops:
        yield Step(None, tuple(guards.values()), puts, tuple(drops))


def new_records(
    image: Metadata, topic: Topic, numbers: Iterable[int], placed: Sequence[Sequence[NodeId]] = ()
) -> Iterator[tuple[int, PartitionRecord]]:
    """Records of partitions that are to be: all replicas are in sync, as there is nothing to have yet.

    `placed` says where they are, one after the other, if somebody has chosen.
    """
    nodes = alive_nodes(image)
    placement = Placement(placeable(image), image.records)
    for at, number in enumerate(numbers):
        chosen = tuple(placed[at]) if placed else ()
        replicas = chosen or placement.place(topic.topic_id, number, topic.replication)
        record = PartitionRecord(leader=None, epoch=0, replicas=replicas, isr=replicas)
        yield number, elect(record, replicas[0], nodes)


class _Deciding:
    """One decision: the image, and what shall become of its records."""

    def __init__(self, image: Metadata, now_ms: int) -> None:
        self._image = image
        self._now_ms = now_ms
        self._nodes = alive_nodes(image)
        self._records = {place: record for place, record in image.records.items() if place[0] in image.names}
        self._changed: dict[Place, PartitionRecord] = {}
        self._with_order: dict[Place, list[str]] = {}
        """Orders that are done with the record of a partition."""
        self._by_order: dict[Place, str] = {}
        """The order that a change of a record comes of, which stays."""
        self._ordered: set[Place] = set()
        """Partitions that somebody has ordered to be moved and that are not there yet."""
        self._more: list[Step[None]] = []
        # Who is away copies nothing, and must not keep others from moving.
        self._moving = sum(
            1
            for record in self._records.values()
            if (record.adding or record.removing) and self._nodes.keys() >= set(record.adding)
        )
        self._placement: Placement | None = None

    def make(self, wanted: Sequence[WantedTopic], *, is_late: bool) -> None:
        """Topics that are not there yet; their copies become more as nodes come.

        Nodes that are known and not ready are waited for, until it is late: with a single copy, a node that
        dies before it has made a folder for it could never say again that it holds everything.
        """
        image = self._image
        count = min(INTERNAL_REPLICAS, len(placeable(image)))
        coming = sum(not member.is_retired for member in image.members.values())
        if count < min(INTERNAL_REPLICAS, coming) and not is_late:
            return
        for name, partitions, settings in wanted if count else ():
            if name in image.topics or name in image.deleted:
                continue
            # The same id whoever decides: what two controllers begin is one topic.
            topic_id = uuid5(NAMESPACE_OID, f"{image.cluster_id}/{name}")
            topic = Topic(name, topic_id, partitions, settings, self._now_ms, replication=count)
            keys = (name_key(name), topic_key(topic_id))
            puts = dict(zip(keys, (encode(topic_id), encode(topic)), strict=True))
            leaders: set[NodeId] = set()
            for number, record in new_records(image, topic, range(partitions)):
                puts[part_key(topic_id, number)] = encode(record)
                leaders |= {record.leader} if record.leader else set()
            guarded = (values.CONTROLLER, *keys, *map(node_key, sorted(leaders)))
            self._more.append(Step(None, tuple(map(image.guard, guarded)), puts))

    def fit(self) -> None:
        """Leaders and ISRs for the nodes that are there; moves that have come to their end."""
        nodes = self._nodes
        for place, record in self._records.items():
            # Mostly there is nothing to do, and there may be ten thousand of them.
            if not record.adding and not record.removing and is_quiet(record, nodes):
                continue
            if len(self._changed) >= STEPS_MAX:
                break
            asked = self._image.topics[self._image.names[place[0]]].settings.min_insync_replicas
            fitted = fit_record(record, self._nodes, min_isr=min_isr_of(record, asked))
            finished = finish_move(fitted, self._nodes, min_isr_asked=asked)
            self._moving -= is_moving(fitted) and not is_moving(finished)
            self._change(place, finished)

    def carry_out_orders(self) -> None:
        for order_id, order in sorted(self._image.orders.items()):
            if order.kind is OrderKind.DECOMMISSION:
                self._decommission(order_id, order)
            elif order.kind is OrderKind.REASSIGN:
                self._reassign(order_id, order)
            else:
                self._carry_out(order_id, order)
        for order_id in outdated_orders(self._image.orders):
            self._drop_order(order_id)

    def grow_internal_topics(self) -> None:
        """Internal topics get their copies by themselves as nodes come: nobody has to know a setting."""
        wanted = min(INTERNAL_REPLICAS, len(placeable(self._image)))
        names = self._image.names
        internal = {topic_id for topic_id, name in names.items() if name.startswith(INTERNAL_PREFIX)}
        for place, record in self._records.items():
            lacking = wanted - len(record.replicas)
            if lacking <= 0 or place[0] not in internal or place in self._ordered:
                continue
            if not is_moving(self._now(place)) and self._moving < MOVES_MAX:
                held = self._now(place).replicas
                chosen = self._placing().choose(*place, lacking, held)
                # The first nodes that came would lead all of them for ever.
                self._move(place, self._placing().led_first(*place, (*held, *chosen), held[0]))

    def balance(self) -> None:
        """Let who should lead do so, where too much is led by others."""
        elsewhere: dict[NodeId, list[Place]] = {}
        wanted: Counter[NodeId] = Counter()
        for place in self._records:
            record = self._now(place)
            preferred = record.replicas[0]
            wanted[preferred] += 1
            if record.leader != preferred and not is_moving(record):
                elsewhere.setdefault(preferred, []).append(place)
        for preferred, places in elsewhere.items():
            if len(places) <= IMBALANCE_MAX * wanted[preferred]:
                continue
            for place in places:
                if preferred in candidates(self._now(place), self._nodes):
                    self._change(place, elect(self._now(place), preferred, self._nodes))

    def steps(self) -> list[Step[None]]:
        """All that was decided; a step for each partition, as each can be outdated by itself."""
        return [*map(self._step, self._changed), *self._more]

    def _step(self, place: Place) -> Step[None]:
        key, record, image = part_key(*place), self._changed[place], self._image
        guards = [image.guard(values.CONTROLLER), image.guard(key)]
        if record.leader is not None and record.epoch != self._records[place].epoch:
            guards.append(image.guard(node_key(record.leader)))
        drops = [order_key(order_id) for order_id in self._with_order.get(place, ())]
        guards += map(image.guard, drops)
        if place in self._by_order:
            guards.append(image.guard(order_key(self._by_order[place])))
        return Step(None, tuple(guards), {key: encode(record)}, tuple(drops))

    def _carry_out(self, order_id: str, order: Order) -> None:
        assert order.topic_id is not None, "such an order names a partition"
        place = (order.topic_id, order.partition)
        if place not in self._records:
            self._drop_order(order_id)
            return
        record = self._now(place)
        match order.kind:
            case OrderKind.UNCLEAN:
                if record.leader is None:
                    self._change(place, elect_unclean(record, self._nodes))
                    if self._now(place).leader is None:
                        return  # None of its replicas is there: the order stands.
            case OrderKind.PREFERRED:
                preferred = record.replicas[0]
                if record.leader != preferred and preferred in candidates(record, self._nodes):
                    self._change(place, elect(record, preferred, self._nodes))
            case OrderKind.CANCEL:
                self._change(place, cancel_move(record, self._nodes))
        if self._now(place) == self._records[place]:
            self._drop_order(order_id)
        else:
            self._with_order.setdefault(place, []).append(order_id)

    def _reassign(self, order_id: str, order: Order) -> None:
        """Begin with as many partitions as may move at a time, call off what is to be; note what is seen."""
        if order.ended_ms:
            return
        image, key = self._image, order_key(order_id)
        self._ordered |= {(move.topic_id, move.partition) for move in order.moves if not move.state.is_over}
        now = noted(order, self._records, now_ms=self._now_ms)
        if now != order:
            guards = (image.guard(values.CONTROLLER), image.guard(key))
            self._more.append(Step(None, guards, {key: encode(now)}))
            return  # the records are next, by the order as it stands then
        for move in order.moves:
            if not move.state.is_over and (move.topic_id, move.partition) in self._records:
                self._go_on(order_id, order, move)

    def _go_on(self, order_id: str, order: Order, move: Move) -> None:
        place = (move.topic_id, move.partition)
        record = self._now(place)
        if is_called_off(order, move):
            self._change(place, cancel_move(record, self._nodes, before=move.before))
        elif move.state is MoveState.PENDING and not is_moving_to(record, move.replicas):
            if not is_moving(record) and self._moving >= MOVES_MAX:
                return
            self._move(place, move.replicas, order.throttle_bytes_per_s)
        elif not is_moving(record) and record.replicas != move.replicas:
            self._move(place, move.replicas)  # the nodes are the same ones, in another order
        self._by_order[place] = order_id

    def _decommission(self, order_id: str, order: Order) -> None:
        """Move what a node holds, as much as may move at a time; when nothing is left, it is retired."""
        assert order.node is not None, "such an order names a node"
        held = [place for place in self._records if order.node in self._now(place).replicas]
        for place in held:
            replicas = self._now(place).replicas
            if is_moving(self._now(place)) or self._moving >= MOVES_MAX:
                continue
            (*chosen,) = self._placing().choose(*place, 1, replicas)
            if chosen or len(replicas) > 1:
                stay = tuple(node for node in (*replicas, *chosen) if node != order.node)
                self._move(place, stay, order.throttle_bytes_per_s)
        member = self._image.members.get(order.node)
        if not held and member is not None:
            image, key, drop = self._image, member_key(order.node), order_key(order_id)
            guards = (image.guard(values.CONTROLLER), image.guard(key), image.guard(drop))
            self._more.append(Step(None, guards, {key: encode(replace(member, is_retired=True))}, (drop,)))
        elif not held:
            self._drop_order(order_id)

    def _move(self, place: Place, replicas: tuple[NodeId, ...], throttle_bytes_per_s: int = 0) -> None:
        record = self._now(place)
        begun = begin_move(record, replicas, throttle_bytes_per_s=throttle_bytes_per_s)
        self._moving += is_moving(begun) and not is_moving(record)
        self._change(place, begun)

    def _drop_order(self, order_id: str) -> None:
        key = order_key(order_id)
        guards = (self._image.guard(values.CONTROLLER), self._image.guard(key))
        self._more.append(Step(None, guards, {}, (key,)))

    def _now(self, place: Place) -> PartitionRecord:
        return self._changed.get(place) or self._records[place]

    def _change(self, place: Place, record: PartitionRecord) -> None:
        if record != self._records[place]:
            self._changed[place] = record
        else:
            self._changed.pop(place, None)

    def _placing(self) -> Placement:
        if self._placement is None:
            self._placement = Placement(placeable(self._image), self._image.records)
        return self._placement
