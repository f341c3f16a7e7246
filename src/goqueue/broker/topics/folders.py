"""Folders of replicas that this node had: they go once the store itself has said that it is none any more.

What a node follows of the store may be late, so it is asked anew before anything is removed: a folder that
somebody wants never goes. Nor does any while the store knows less than it did once: whoever has restored an
old snapshot of it would lose messages by that, so a file in the data folder keeps the newest revision at
which a replica came here.

A folder first gets a name that nobody opens, and is removed then. So a power cut in between leaves a replica
whole or none.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import msgspec

from goqueue.broker.broker import Broker
from goqueue.broker.storage.data_folder import LOGS_FOLDER
from goqueue.core.cluster.values import PARTS, decode_part, part_key
from goqueue.log.commit_rounds import NO_TOPIC
from goqueue.log.snapshot import load_snapshots, owner_of
from goqueue.model.cluster import Loaded, NodeId
from goqueue.model.ports import Disk, Store

log = logging.getLogger(__name__)

SEEN_FILE = "seen.json"
_GONE = ".gone"
_ASIDE = ".of-"


@dataclass(frozen=True, slots=True)
class Seen:
    """What this folder has seen of the store."""

    revision: int = 0
    is_doubted: bool = False
    """The store was found to be older once: nothing is removed until a person takes this file away."""


class LeftFolder(NamedTuple):
    path: str
    topic_id: UUID
    partition: int


_decode_seen = msgspec.json.Decoder(Seen).decode


class Folders:
    """The replicas' folders of one node."""

    def __init__(self, broker: Broker, store: Store) -> None:
        self._broker = broker
        self._store = store
        self._me = NodeId(broker.config.node_id)

    async def note(self, revision: int) -> None:
        """Replicas have come here by what the store said at a revision."""
        await self._broker.threads.run(_note, self._broker.disk, revision)

    async def sweep(self, held: Iterable[str]) -> bool:
        """Remove folders of replicas that are none any more. `held`: those that are open.

        Whether all is tidy now: a replica that the store wants here already, and nobody has opened yet, may
        be none again before anybody does.

        Nobody opens or makes folders meanwhile. Raises StoreUnreachable, OSError.
        """
        broker = self._broker
        left = await broker.threads.run(_left, broker.disk, frozenset(held))
        if not left:
            return True
        loaded = await self._store.load(PARTS)
        seen = await broker.threads.run(_seen, broker.disk)
        if seen.is_doubted or loaded.revision < seen.revision:
            log.error(
                "store_older_than_folder seen=%d revision=%d folders_kept=%d",
                seen.revision,
                loaded.revision,
                len(left),
            )
            if not seen.is_doubted:
                doubted = msgspec.json.encode(Seen(seen.revision, is_doubted=True))
                await broker.threads.run(broker.disk.replace, SEEN_FILE, doubted)
            return True
        unwanted = [folder for folder in left if not self._is_wanted(folder, loaded)]
        for folder in unwanted:
            # What the commit log has of it would be put into a folder that comes in its place.
            await broker.flusher.void_folder(folder.path, folder.topic_id)
            await broker.threads.run(_remove, broker.disk, folder.path)
            log.info("replica_removed folder=%s topic_id=%s", folder.path, folder.topic_id)
        return len(unwanted) == len(left)

    def _is_wanted(self, folder: LeftFolder, loaded: Loaded) -> bool:
        item = loaded.items.get(part_key(folder.topic_id, folder.partition))
        return item is not None and self._me in decode_part(item.value).replicas


def _left(disk: Disk, held: frozenset[str]) -> list[LeftFolder]:
    """Folders of topics that nobody has opened. What tells of no topic is let alone: it is not a replica."""
    found = []
    for topic in disk.list(LOGS_FOLDER):
        for name in disk.list(f"{LOGS_FOLDER}/{topic}"):
            path = f"{LOGS_FOLDER}/{topic}/{name}"
            if name.endswith(_GONE):
                _remove(disk, path)
                continue
            number = name.partition(_ASIDE)[0]
            if path in held or not number.isdecimal():
                continue
            owner = owner_of(load_snapshots(disk, path))
            if owner is not None and owner != NO_TOPIC:
                found.append(LeftFolder(path, owner, int(number)))
    return found


def _remove(disk: Disk, path: str) -> None:
    parent, _, name = path.rpartition("/")
    if not name.endswith(_GONE):
        gone = f"{path}{_GONE}"
        disk.remove_tree(gone)
        disk.rename(path, gone)
        disk.sync_folder(parent)
        path = gone
    disk.remove_tree(path)
    disk.sync_folder(parent)
    if not disk.list(parent):
        disk.remove_tree(parent)
        disk.sync_folder(LOGS_FOLDER)


def _seen(disk: Disk) -> Seen:
    data = disk.read_whole(SEEN_FILE)
    try:
        return Seen() if data is None else _decode_seen(data)
    except msgspec.DecodeError:
        return Seen(is_doubted=True)  # who cannot tell what was seen removes nothing


def _note(disk: Disk, revision: int) -> None:
    seen = _seen(disk)
    if revision > seen.revision:
        disk.replace(SEEN_FILE, msgspec.json.encode(Seen(revision, seen.is_doubted)))
