"""Quotas of users and client ids: which of them counts for a client, and what it has used of it.

For each limit the most exact entity counts, in Kafka's order: both names, the user with any id, the user, any
user with the id, and so on down to any id. Clients for which the same user counts share what it has; so do
those for which the same id does. Buckets are those that tenants have, too.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from goqueue.core.access.rates import Bucket
from goqueue.model.client_quotas import DEFAULT, AlterClientQuota, ClientLimit, ClientQuota, QuotaEntity
from goqueue.model.errors import InvalidClientQuota
from goqueue.model.names import checked_name

CLIENT_QUOTAS = "access/client-quotas/"
QUOTAS_MAX = 10_000
"""So many entities may have quotas: all nodes keep all of them at hand."""
CLIENTS_MAX = 10_000
"""So many clients are remembered: ids that clients make up must not fill the memory."""
_LIMIT_MAX = 2**53
_NS_PER_PERCENT = 10_000_000
_DIGEST_BYTES = 12
_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(ClientQuota).decode


class Held(NamedTuple):
    """What one client is held to; None: not at all."""

    produced: Bucket | None
    consumed: Bucket | None
    requests: Bucket | None
    """In nanoseconds of the loop's time."""


class ClientQuotas:
    def __init__(self) -> None:
        self.entries: dict[QuotaEntity, ClientQuota] = {}
        """Empty on most brokers: whoever asks whether there is any is done."""
        self._keys: dict[str, QuotaEntity] = {}
        self._held: OrderedDict[tuple[str, str], Held] = OrderedDict()
        self._buckets: OrderedDict[tuple[ClientLimit, str | None, str | None], Bucket] = OrderedDict()

    def load(self, items: Mapping[str, bytes]) -> None:
        """Begin with all that the store holds."""
        self.entries.clear()
        self._keys.clear()
        self._forget()
        for key, value in items.items():
            self.put(key, value)

    def put(self, key: str, value: bytes) -> None:
        if key.startswith(CLIENT_QUOTAS):
            quota = _decode(value)
            self.entries[quota.entity] = quota
            self._keys[key] = quota.entity
            self._forget()

    def drop(self, key: str) -> None:
        entity = self._keys.pop(key, None)
        if entity is not None:
            del self.entries[entity]
            self._forget()

    def altered(self, command: AlterClientQuota) -> ClientQuota | None:
        """What an entity is held to from now on; None: to nothing. Raises InvalidClientQuota."""
        _check(command)
        known = self.entries.get(command.entity)
        limits = {**(known.limits if known is not None else {}), **command.limits}
        left = {limit: value for limit, value in limits.items() if value is not None}
        if left and known is None and len(self.entries) >= QUOTAS_MAX:
            raise InvalidClientQuota(f"there are {QUOTAS_MAX} quotas of clients, and no more can be kept")
        return ClientQuota(entity=command.entity, limits=left) if left else None

    def held(self, user: str, client_id: str) -> Held:
        """What a client is held to."""
        held = self._held.get((user, client_id))
        if held is None:
            held = self._held[user, client_id] = Held(
                *(self._bucket(limit, user, client_id) for limit in ClientLimit)
            )
            while len(self._held) > CLIENTS_MAX:
                self._held.popitem(last=False)
        return held

    def _bucket(self, limit: ClientLimit, user: str, client_id: str) -> Bucket | None:
        for entity, whose in _candidates(user, client_id):
            quota = self.entries.get(entity)
            if quota is not None and (value := quota.limits.get(limit)) is not None:
                return self._shared_bucket(limit, whose, value)
        return None

    def _shared_bucket(self, limit: ClientLimit, whose: QuotaEntity, value: float) -> Bucket:
        place = (limit, *whose)
        bucket = self._buckets.get(place)
        if bucket is None:
            scale = _NS_PER_PERCENT if limit is ClientLimit.REQUESTS else 1
            bucket = self._buckets[place] = Bucket(max(round(value * scale), 1))
            while len(self._buckets) > CLIENTS_MAX * len(ClientLimit):
                self._buckets.popitem(last=False)
        return bucket

    def _forget(self) -> None:
        """Other quotas begin without debt."""
        self._held.clear()
        self._buckets.clear()


def _candidates(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, QuotaEntity]]:
    """The entities that may count for a client, the most exact first, and who shares what it has then."""
    both, users, ids = QuotaEntity(user, client_id), QuotaEntity(user), QuotaEntity(None, client_id)
    yield both, both
    yield QuotaEntity(user, DEFAULT), both
    yield users, users
    yield QuotaEntity(DEFAULT, client_id), both
    yield QuotaEntity(DEFAULT, DEFAULT), both
    yield QuotaEntity(DEFAULT), users
    yield ids, ids
    yield QuotaEntity(None, DEFAULT), ids


def quota_key(entity: QuotaEntity) -> str:
    """Where an entity's quotas stand in the store."""
    return CLIENT_QUOTAS + blake2b(_encode(entity), digest_size=_DIGEST_BYTES).hexdigest()


def quota_value(quota: ClientQuota) -> bytes:
    return _encode(quota)


def _check(command: AlterClientQuota) -> None:
    if command.entity == QuotaEntity():
        raise InvalidClientQuota("a quota is for a user, a client id, or both")
    for name in command.entity:
        if name:
            checked_name(name, "whom a quota is for", error=InvalidClientQuota)
    for limit, value in command.limits.items():
        if value is not None and not (math.isfinite(value) and 0 < value <= _LIMIT_MAX):
            raise InvalidClientQuota(f"{limit} must be above 0, and at most 2^53, not {value}")
