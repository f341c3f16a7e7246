"""The port `Store` on etcd: keys below a root of the cluster's own, revisions as etcd counts them.

etcd may be shared: revisions then also grow by what others change, of which those who follow hear nothing.
Whoever waits until the image has reached a revision would wait for ever. So when a follower of everything has
not come as far as a revision that somebody was told, the store writes a small key of its own, `pulse`; a
revision behind that one then comes along the same way as all others, and nothing can have been overtaken.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import groupby
from random import Random

import grpc

from goqueue.model.cluster import Change, Guard, Item, Loaded
from goqueue.model.errors import Compacted, Outdated, StoreUnreachable, Unknown
from goqueue.node.config_etcd import OPEN_ACCESS, EtcdAccess
from goqueue.node.etcd.calls import LEASE_REVOKE, RANGE, STATUS, TXN, WATCH, Lost, Refused, Stream
from goqueue.node.etcd.connection import DEADLINE_S, BackOff, Connection
from goqueue.node.etcd.session import EtcdSession
from goqueue.proto.etcd import rpc_pb2 as rpc

logger = logging.getLogger(__name__)

CHANGES_MAX = 128
"""As many keys as etcd changes, or guards, in one transaction unless told otherwise."""
PULSE = "pulse"
_PULSE_AFTER_S = 0.2
_PAGE_KEYS = 1_000
_SAFE_VERSION = (3, 5, 6)
"""Before this one etcd could lose a transaction that it had confirmed, when it was killed under load."""


class EtcdStore:
    def __init__(
        self, endpoints: Sequence[str], *, root: str, chance: Random, access: EtcdAccess = OPEN_ACCESS
    ) -> None:
        self._connection = Connection(endpoints, chance, access)
        self._root = root.encode()
        self._told = 0
        """The newest revision that somebody was told, and may wait for."""
        self._positions: dict[object, int] = {}
        """How far those are who follow everything."""
        self.is_unsafe = False
        self._pulse: asyncio.TimerHandle | None = None
        self._pulsing: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._pulse is not None:
            self._pulse.cancel()
        if self._pulsing is not None:
            self._pulsing.cancel()
        await self._connection.close()

    async def load(self, prefix: str) -> Loaded:
        """Raises StoreUnreachable besides."""
        while True:
            try:
                return await self._load(prefix)
            except Refused as refused:
                # A later page can be asked for too late: its revision was compacted meanwhile.
                if refused.code is not grpc.StatusCode.OUT_OF_RANGE:
                    raise StoreUnreachable((), str(refused)) from refused

    async def _load(self, prefix: str) -> Loaded:
        items: dict[str, Item] = {}
        begin, end = self._range(prefix)
        revision = 0
        while True:
            request = rpc.RangeRequest(key=begin, range_end=end, limit=_PAGE_KEYS, revision=revision)
            page = await self._connection.ask_again(RANGE, request)
            revision = revision or page.header.revision
            items |= {self._name(kv.key): Item(kv.value, kv.mod_revision) for kv in page.kvs}
            if not page.more:
                self._tell(revision)
                return Loaded(items, revision)
            begin = page.kvs[-1].key + b"\0"

    async def follow(self, prefix: str, after: int) -> AsyncIterator[Change]:
        back_off, follower = BackOff(), object()
        begin, end = self._range(prefix)
        try:
            while True:
                try:
                    async with await self._connection.begin(WATCH) as stream:
                        wish = rpc.WatchCreateRequest(key=begin, range_end=end, start_revision=after + 1)
                        response = await self._begun(stream, rpc.WatchRequest(create_request=wish))
                        while True:
                            back_off.reset()
                            if response.compact_revision:
                                raise Compacted(after)
                            if response.canceled:
                                # An etcd that was started anew does not know us, and says no more than no.
                                await self._connection.leave(stream.channel)
                                raise Lost(response.cancel_reason)
                            for change in self._changes(response):
                                after = change.revision
                                if not prefix:
                                    self._positions[follower] = after
                                yield change
                            response = await stream.read()
                except (Lost, Refused, StoreUnreachable) as error:
                    logger.info("etcd_watch_resumed", extra={"after": after, "reason": str(error)})
                    await back_off.wait()
        finally:
            self._positions.pop(follower, None)

    async def _begun(
        self, stream: Stream[rpc.WatchRequest, rpc.WatchResponse], request: rpc.WatchRequest
    ) -> rpc.WatchResponse:
        """Have a watch begun, of which etcd tells at once.

        When the connection is given up just then, gRPC may leave it neither begun nor ended, and nobody could
        tell that from a quiet day.
        """
        try:
            async with asyncio.timeout(DEADLINE_S):
                await stream.write(request)
                return await stream.read()
        except TimeoutError:
            await self._connection.leave(stream.channel)
            raise Lost("a watch was not begun in time") from None

    async def change(self, guards: Sequence[Guard], puts: Mapping[str, bytes], drops: Sequence[str]) -> int:
        changes = [self._put(key, value) for key, value in puts.items()]
        changes += [
            rpc.RequestOp(request_delete_range=rpc.DeleteRangeRequest(key=self._key(key))) for key in drops
        ]
        return await self._transact(guards, changes)

    async def open_session(self, ttl_ms: int) -> EtcdSession:
        """Raises StoreUnreachable, or Unknown when a session may have been opened that nobody uses."""
        await self._check_version()
        return await EtcdSession.opened(self._connection, ttl_ms, hold=self._hold)

    async def end_session(self, key: str, revision: int) -> None:
        """Raises StoreUnreachable, Outdated, Unknown."""
        answer = await self._connection.ask_again(RANGE, rpc.RangeRequest(key=self._key(key)))
        self._tell(answer.header.revision)
        if not answer.kvs or answer.kvs[0].mod_revision != revision:
            raise Outdated(key, answer.header.revision)
        try:
            await self._connection.ask(LEASE_REVOKE, rpc.LeaseRevokeRequest(id=answer.kvs[0].lease))
        except Lost as lost:
            raise Unknown(str(lost)) from lost
        except Refused as refused:
            # It ended by itself meanwhile.
            if refused.code is not grpc.StatusCode.NOT_FOUND:
                raise Unknown(str(refused)) from refused

    async def _hold(self, lease: int, key: str, value: bytes, revision: int) -> int:
        try:
            return await self._transact([Guard(key, revision)], [self._put(key, value, lease)])
        except Unknown as unknown:
            # Whose it is can be told by the session that holds it.
            try:
                answer = await self._connection.ask_again(RANGE, rpc.RangeRequest(key=self._key(key)))
            except (Refused, StoreUnreachable):
                raise unknown from unknown.__cause__
            for kv in answer.kvs:
                if (kv.lease, kv.value) == (lease, value):
                    return kv.mod_revision
            raise

    async def _transact(self, guards: Sequence[Guard], changes: Sequence[rpc.RequestOp]) -> int:
        assert len(changes) <= CHANGES_MAX and len(guards) <= CHANGES_MAX, "etcd would refuse it"
        request = rpc.TxnRequest(
            compare=[
                rpc.Compare(target=rpc.Compare.MOD, key=self._key(key), mod_revision=revision)
                for key, revision in guards
            ],
            success=changes,
            failure=[
                rpc.RequestOp(request_range=rpc.RangeRequest(key=self._key(key), keys_only=True))
                for key, _ in guards
            ],
        )
        try:
            answer = await self._connection.ask(TXN, request)
        except (Lost, Refused, StoreUnreachable) as error:
            raise Unknown(str(error)) from error
        self._tell(answer.header.revision)
        if not answer.succeeded:
            raise Outdated(_outdated(guards, answer), answer.header.revision)
        return answer.header.revision

    async def _check_version(self) -> None:
        try:
            version = (await self._connection.ask_again(STATUS, rpc.StatusRequest())).version
        except Refused as refused:
            raise StoreUnreachable((), str(refused)) from refused
        numbers = tuple(int(number) for number in version.split("-")[0].split(".") if number.isdigit())
        if numbers < _SAFE_VERSION and not self.is_unsafe:
            self.is_unsafe = True
            logger.warning(
                "etcd_version_unsafe",
                extra={"version": version, "wanted": ".".join(map(str, _SAFE_VERSION))},
            )

    def _tell(self, revision: int) -> None:
        """Note a revision that somebody is told; a follower that does not come so far by itself is helped."""
        if revision > self._told:
            self._told = revision
            if self._pulse is None and any(at < revision for at in self._positions.values()):
                self._pulse = asyncio.get_running_loop().call_later(_PULSE_AFTER_S, self._help)

    def _help(self) -> None:
        self._pulse = None
        if any(at < self._told for at in self._positions.values()):
            self._pulsing = asyncio.get_running_loop().create_task(self._write_pulse())

    async def _write_pulse(self) -> None:
        try:
            await self.change((), {PULSE: b"{}"}, ())
        except Unknown:
            self._pulse = asyncio.get_running_loop().call_later(_PULSE_AFTER_S, self._help)

    def _changes(self, response: rpc.WatchResponse) -> Iterator[Change]:
        """Events of a response by revision; etcd never tells of half a revision."""
        for revision, events in groupby(response.events, key=lambda event: event.kv.mod_revision):
            puts: dict[str, bytes] = {}
            drops: list[str] = []
            for event in events:
                if event.type == rpc.Event.PUT:
                    puts[self._name(event.kv.key)] = event.kv.value
                else:
                    drops.append(self._name(event.kv.key))
            yield Change(revision, puts, tuple(drops))

    def _put(self, key: str, value: bytes, lease: int = 0) -> rpc.RequestOp:
        return rpc.RequestOp(request_put=rpc.PutRequest(key=self._key(key), value=value, lease=lease))

    def _range(self, prefix: str) -> tuple[bytes, bytes]:
        """The first key that begins so, and the first behind all that do."""
        begin = self._key(prefix)
        return begin, begin[:-1] + bytes([begin[-1] + 1])

    def _key(self, key: str) -> bytes:
        return self._root + key.encode()

    def _name(self, key: bytes) -> str:
        return key[len(self._root) :].decode()


def _outdated(guards: Sequence[Guard], answer: rpc.TxnResponse) -> str:
    """The first key that is not as a guard says."""
    for guard, response in zip(guards, answer.responses, strict=True):
        kvs = response.response_range.kvs
        if guard.revision != (kvs[0].mod_revision if kvs else 0):
            return guard.key
    raise AssertionError("etcd refused guards that all hold")
