"""One life of a node of a simulated cluster: a whole broker, joined to the others as a real node is.

Where a process has etcd and sockets there are a simulated store and network; what is wired between them is
what nodes run (`broker/member`). It has no doors: whoever drives the simulation calls verbs.
"""

from collections.abc import Coroutine
from random import Random

from goqueue.broker.broker import Broker
from goqueue.broker.cluster.membership import Membership
from goqueue.broker.cluster.node_store import NodeStore
from goqueue.broker.member.member import Member, join
from goqueue.broker.opening import close_broker, open_broker
from goqueue.model.cluster import NodeId, NodeRecord
from goqueue.model.ports import Clock
from goqueue.model.settings import BrokerConfig
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.lives import Life
from goqueue.testing.world.network import SimulatedNetwork
from goqueue.testing.world.peers import SimulatedPeers
from goqueue.testing.world.store import SimulatedStore
from goqueue.testing.world.threads import DELAY_MS_MAX, SimulatedThreads
from goqueue.testing.world.workshop import WorkshopAtHand

SESSION_MS = 2_000


class ClusterNode:
    def __init__(
        self,
        node: NodeId,
        config: BrokerConfig,
        *,
        disk: SimulatedDisk,
        clock: Clock,
        store: SimulatedStore,
        network: SimulatedNetwork,
        chance: Random,
        delay_ms_max: int = DELAY_MS_MAX,
        rack: str = "",
    ) -> None:
        """`delay_ms_max`: so long its disk may take for anything."""
        self.node = node
        self.life = Life()
        self.disk = disk
        self._config = config
        self._clock = clock
        self._store = store
        self._network = network
        self._chance = chance
        self._rack = rack
        self._threads = SimulatedThreads(Random(f"threads {chance.random()}"), delay_ms_max=delay_ms_max)
        self._peers = SimulatedPeers(network)
        self._member: Member | None = None
        self.broker: Broker
        self.is_ready = False
        self._failure: BaseException | None = None

    @property
    def membership(self) -> Membership | None:
        """None: it has not registered yet."""
        return None if self._member is None else self._member.membership

    @property
    def failure(self) -> BaseException | None:
        """Why it has ended by itself."""
        if self._failure is None and self._member is not None and self.broker.failure.done():
            return self.broker.failure.result()
        return self._failure

    def start(self) -> None:
        """Begin to live; see `is_ready`."""
        self.life.begin(self._seen_to(self._join()))

    async def _join(self) -> None:
        me = await join(
            self._store,
            self.disk,
            self._threads,
            self.node,
            rack=self._rack,
            session_ms=SESSION_MS,
            draw_id=lambda: f"{self._chance.getrandbits(64):x}",
        )
        self.broker = await open_broker(
            config=self._config,
            disk=self.disk,
            clock=self._clock,
            threads=self._threads,
            workshop=WorkshopAtHand(),
            chance=self._chance,
            shared=NodeStore(self._store, self.node),
        )
        self._member = Member(
            self.broker,
            me,
            store=self._store,
            peers=self._peers,
            knock=self._is_refused,
            session_ms=SESSION_MS,
        )
        await self._member.prepare()
        await self._member.enter(NodeRecord(folder_id=me.folder_id, peer=f"{self.node}:1", rack=self._rack))
        self.is_ready = True

    async def stop(self) -> None:
        """End in good order, as a process does that is told to."""
        assert self._member is not None
        await self._member.leave()
        await self._member.cut_off()
        self._peers.stop()
        await close_broker(self.broker)
        await self._member.close()

    async def _seen_to(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except Exception as error:
            self._failure = error

    async def _is_refused(self, host: str, port: int, wait_s: float) -> bool:
        """Whether the process is gone: whoever is cut off does not answer, and may be there."""
        return host not in self._network.nodes
