"""Where whole backups are, and the one under way."""

import asyncio
from dataclasses import dataclass, field

from goqueue.broker.backup.whole.catalogue import Catalogue
from goqueue.broker.backup.whole.copying import Copying
from goqueue.model.whole_backups import WholeListing


@dataclass(slots=True)
class WholeBackups:
    catalogue: Catalogue
    copying: Copying | None = None
    """None: none is being made."""
    last_failure: WholeListing | None = None
    """How the last one ended, if it failed."""
    last_taken_ms: int | None = None
    """The moment of the last one that was begun; None: nobody has looked yet."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while objects are removed."""
