"""Two hours of an imaginary shop: orders and clicks, the same ones for the same seed."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

OPENED = datetime(2026, 3, 14, 10, 0, tzinfo=UTC)
_SPAN_S = 2 * 60 * 60
_COUNTRIES = {"DE": ("EUR", 5), "FR": ("EUR", 3), "GB": ("GBP", 2), "US": ("USD", 4)}
_GOODS = {"mug": 9.5, "shirt": 24.0, "poster": 14.9, "lamp": 79.0}
_PAGES = ("/", "/sale", "/mugs", "/lamps", "/basket")


class Event(NamedTuple):
    """A message for one of the shop's topics."""

    topic: str
    key: str
    value: str


def shop_events(*, orders: int, clicks: int, seed: int) -> Iterator[Event]:
    """Orders and clicks in the order of their times. One order in fifty cannot be used."""
    chance = random.Random(seed)
    # Business grows towards the end, as it does on a good day.
    moments = sorted(
        (chance.triangular(0, _SPAN_S, _SPAN_S * 0.8), topic)
        for topic, count in (("orders", orders), ("clicks", clicks))
        for _ in range(count)
    )
    countries = list(_COUNTRIES)
    weights = [weight for _, weight in _COUNTRIES.values()]
    for number, (second, topic) in enumerate(moments):
        at = (OPENED + timedelta(seconds=round(second))).isoformat().replace("+00:00", "Z")
        country = chance.choices(countries, weights)[0]
        customer = f"c-{chance.randrange(500):03}"
        if topic == "clicks":
            click = {"at": at, "country": country, "customer": customer, "page": chance.choice(_PAGES)}
            yield Event(topic, customer, json.dumps(click))
        else:
            yield Event(topic, customer, _order(chance, number, at, country, customer))


def _order(chance: random.Random, number: int, at: str, country: str, customer: str) -> str:
    order = {
        "order_id": f"o-{number:06}",
        "at": at,
        "customer": {"id": customer, "country": country},
        "currency": _COUNTRIES[country][0],
        "items": [
            {"sku": sku, "quantity": chance.randint(1, 3), "price": _GOODS[sku]}
            for sku in chance.sample(list(_GOODS), chance.randint(1, 3))
        ],
    }
    match chance.randrange(100):
        case 0:
            return json.dumps(order)[:-20]  # A till that lost its connection in the middle of a sentence.
        case 1:
            del order["order_id"]
    return json.dumps(order)
