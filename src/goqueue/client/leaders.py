"""Which of several nodes answers for a place, so that it is asked first the next time.

A node that passes a request on says who has answered it (`goqueue-leader`). Only nodes that the client was
told of are gone to by that: where a cluster knows itself by other names, nothing is lost but the hop. They
are gone to as the client was told, by TLS or in the clear, whatever a node says.
"""

import re
from collections.abc import Sequence

from goqueue.client.addresses import Address, parse_addresses
from goqueue.model.errors import Invalid

HEADER = "goqueue-leader"
_PLACES_MAX = 10_000
_PLACE = re.compile(r"/topics/[^/]+/partitions/[^/]+(?=/)|/topics/[^/]+/messages|/groups/[^/]+")
"""What one node answers for: a partition, a group, or a publish to a topic all of which it leads."""


class Leaders:
    """What one program has learnt. Threads share it: single steps of a dict are safe."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = {address.place: address for address in addresses}
        self._known: dict[str, Address] = {}

    def of(self, path: str) -> Address | None:
        """Who has answered for a path before; None: nobody is known to."""
        place = _PLACE.match(path) if self._known else None
        return None if place is None else self._known.get(place[0])

    def learn(self, path: str, told: str | None) -> None:
        """What a reply has said of who gave it; None: it was whoever was asked."""
        if told is None or len(self._addresses) < 2:
            return
        place, address = _PLACE.match(path), self._address(told)
        if place is not None and address is not None:
            if len(self._known) >= _PLACES_MAX:
                self._known.clear()
            self._known[place[0]] = address

    def forget(self, path: str) -> None:
        """Who was asked for it does not answer."""
        place = _PLACE.match(path) if self._known else None
        if place is not None:
            self._known.pop(place[0], None)

    def _address(self, told: str) -> Address | None:
        try:
            [address] = parse_addresses(told)
        except (Invalid, ValueError):
            return None
        return self._addresses.get(address.place)
