"""Quotas of users and client ids: DescribeClientQuotas, AlterClientQuotas."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.access.client_quotas import alter_client_quota, list_client_quotas
from goqueue.broker.access.needs import cluster_need
from goqueue.broker.forwarding.at_home import at_home, here
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code, kafka_text
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import Operation
from goqueue.model.client_quotas import (
    DEFAULT,
    AlterClientQuota,
    ClientLimit,
    ClientQuota,
    ListClientQuotas,
    QuotaEntity,
)
from goqueue.model.errors import GoQueueError, InvalidClientQuota

if TYPE_CHECKING:
    from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, EntryData
    from kio.schema.alter_client_quotas.v1.request import EntityData as NamedEntity
    from kio.schema.describe_client_quotas.v1.request import ComponentData, DescribeClientQuotasRequest

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"
_EXACTLY, _THE_DEFAULT, _ANY = 0, 1, 2
_NO_IP = "connections of an address are bounded by GOQUEUE_LIMITS_ADDRESS_CONNECTIONS, not by quotas"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityShown:
    entity_type: str
    entity_name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueShown:
    key: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaShown:
    entity: tuple[EntityShown, ...]
    values: tuple[ValueShown, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeReply(Reply):
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    entries: tuple[QuotaShown, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaAltered:
    entity: tuple[EntityShown, ...]
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterReply(Reply):
    entries: tuple[QuotaAltered, ...]


async def describe_client_quotas(context: Context, request: "DescribeClientQuotasRequest") -> DescribeReply:
    """The quotas of the entities that a filter means."""
    try:
        found = here(context.broker, list_client_quotas, ListClientQuotas())
        wanted = _components(request.components)
    except GoQueueError as error:
        return DescribeReply(error_code=kafka_code(error), error_message=kafka_text(error))
    meant = (quota for quota in found if _is_meant(quota.entity, wanted, strict=request.strict))
    return DescribeReply(entries=tuple(map(_shown, meant)))


async def alter_client_quotas(context: Context, request: "AlterClientQuotasRequest") -> AlterReply:
    """Set and take away, an entity at a time."""
    return AlterReply(
        entries=tuple(
            [await _alter(context, entry, is_dry_run=request.validate_only) for entry in request.entries]
        )
    )


async def _alter(context: Context, entry: "EntryData", *, is_dry_run: bool) -> QuotaAltered:
    entity = tuple(EntityShown(entity_type=e.entity_type, entity_name=e.entity_name) for e in entry.entity)
    try:
        # Before it is looked at: who may not change quotas is told nothing of how they are written.
        context.broker.warden.demand([cluster_need(Operation.ALTER_CONFIGS)])
        limits = {_limit(op.key): None if op.remove else float(op.value) for op in entry.ops}
        command = AlterClientQuota(entity=_entity(entry.entity), limits=limits, is_dry_run=is_dry_run)
        await at_home(context.broker, alter_client_quota, command)
    except GoQueueError as error:
        return QuotaAltered(entity=entity, error_code=kafka_code(error), error_message=kafka_text(error))
    return QuotaAltered(entity=entity)


def _entity(parts: "Iterable[NamedEntity]") -> QuotaEntity:
    names: dict[str, str] = {}
    for part in parts:
        _check_type(part.entity_type)
        if part.entity_type in names:
            raise InvalidClientQuota(f"a quota names {part.entity_type} once")
        if part.entity_name == "":
            raise InvalidClientQuota("a name cannot be empty")
        names[part.entity_type] = DEFAULT if part.entity_name is None else part.entity_name
    return QuotaEntity(names.get(_USER), names.get(_CLIENT_ID))


def _limit(key: str) -> ClientLimit:
    if key not in set(ClientLimit):
        raise InvalidClientQuota(f"{key[:60]!r} is none of {', '.join(ClientLimit)}")
    return ClientLimit(key)


def _check_type(entity_type: str) -> None:
    if entity_type == _IP:
        raise InvalidClientQuota(_NO_IP)
    if entity_type not in (_USER, _CLIENT_ID):
        raise InvalidClientQuota(f"{entity_type[:60]!r} is none of user, client-id")


def _components(components: "Iterable[ComponentData]") -> "dict[str, ComponentData]":
    wanted: dict[str, ComponentData] = {}
    for component in components:
        _check_type(component.entity_type)
        if component.entity_type in wanted:
            raise InvalidClientQuota(f"a filter names {component.entity_type} once")
        if component.match_type not in (_EXACTLY, _THE_DEFAULT, _ANY):
            raise InvalidClientQuota(f"{component.match_type} is no way to match")
        wanted[component.entity_type] = component
    return wanted


def _is_meant(entity: QuotaEntity, wanted: "dict[str, ComponentData]", *, strict: bool) -> bool:
    for entity_type, name in ((_USER, entity.user), (_CLIENT_ID, entity.client_id)):
        component = wanted.get(entity_type)
        if component is None:
            if strict and name is not None:
                return False
        elif name is None or not _fits(name, component):
            return False
    return True


def _fits(name: str, component: "ComponentData") -> bool:
    if component.match_type == _EXACTLY:
        return name == component.match and name != DEFAULT
    return component.match_type == _ANY or name == DEFAULT


def _shown(quota: ClientQuota) -> QuotaShown:
    parts = ((_USER, quota.entity.user), (_CLIENT_ID, quota.entity.client_id))
    named = [(kind, name or None) for kind, name in parts if name is not None]
    return QuotaShown(
        entity=tuple(EntityShown(entity_type=kind, entity_name=name) for kind, name in named),
        values=tuple(ValueShown(key=limit, value=value) for limit, value in quota.limits.items()),
    )
