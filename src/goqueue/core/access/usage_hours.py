"""What tenants have used, hour by hour: for bills. The image of what is noted, and what to note next.

A day of a tenant is one value in the store, of at most 24 hours; so many days are kept. What was moved since
it was last noted counts for the hour in which it is noted, and is written in one step with the totals: none
of it is lost or counted twice.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from goqueue.model.settings import HOUR_MS
from goqueue.model.tenants import TenantId, UsageHour, UsageTotals

USAGE_HOURS = "usage-hours/"
HOURS_A_DAY = 24
_Hours = dict[int, UsageHour]
"""By the number of the hour since 1970."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Hours).decode


class Noted(NamedTuple):
    """What changes in the store."""

    puts: dict[str, bytes]
    drops: tuple[str, ...]


class UsageHours:
    def __init__(self, *, days: int) -> None:
        self._days_kept = days
        self._days: dict[str, _Hours] = {}
        """By their keys."""

    def load(self, items: Mapping[str, bytes]) -> None:
        """Begin with all that the store holds."""
        self._days.clear()
        for key, value in items.items():
            self.put(key, value)

    def put(self, key: str, value: bytes) -> None:
        if key.startswith(USAGE_HOURS):
            self._days[key] = _decode(value)

    def drop(self, key: str) -> None:
        self._days.pop(key, None)

    def note(
        self,
        moved: Mapping[TenantId, UsageTotals],
        stored_bytes: Mapping[TenantId, int],
        *,
        now_ms: int,
        there: Collection[TenantId],
    ) -> Noted:
        """What is to be written of what tenants have moved since the last time, and hold now."""
        hour = now_ms // HOUR_MS
        puts = {}
        for tenant_id in there:
            key = _key(tenant_id, hour)
            hours = self._days.get(key, {})
            known, size = hours.get(hour), stored_bytes.get(tenant_id, 0)
            if tenant_id not in moved and (known is not None or not size):
                continue  # what is only kept is noted once an hour
            now = (known or UsageHour()).with_more(moved.get(tenant_id, UsageTotals()), size)
            puts[key] = _encode({**hours, hour: now})
        return Noted(puts, self._outdated(hour, there))

    def hours(self, tenant_id: str, *, first_hour: int) -> dict[int, UsageHour]:
        """The hours of a tenant that are known, from one on."""
        prefix = f"{USAGE_HOURS}{tenant_id}/"
        found = {
            hour: used
            for key, hours in self._days.items()
            if key.startswith(prefix)
            for hour, used in hours.items()
            if hour >= first_hour
        }
        return dict(sorted(found.items()))

    def _outdated(self, hour: int, there: Collection[TenantId]) -> tuple[str, ...]:
        """Days that are too old, and those of tenants that are gone."""
        first_day = hour // HOURS_A_DAY - self._days_kept + 1
        return tuple(
            key
            for key in self._days
            if int(key.rpartition("/")[2]) < first_day or key.split("/")[1] not in there
        )


def _key(tenant_id: str, hour: int) -> str:
    return f"{USAGE_HOURS}{tenant_id}/{hour // HOURS_A_DAY:06d}"
