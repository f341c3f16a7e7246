"""Which node a data folder is: `node.json` names the cluster, the node and the folder, and never changes.

The folder's own id is drawn once. It tells a node that comes back with its data from one of the same name
whose disk was replaced: that one holds nothing of what its name is believed to hold.
"""

from dataclasses import dataclass

import msgspec

from goqueue.model.cluster import NodeId
from goqueue.model.errors import CannotJoin
from goqueue.model.ports import Disk

NODE_FILE = "node.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    cluster_id: str
    node_id: NodeId
    folder_id: str


_decode = msgspec.json.Decoder(Identity).decode


def read_identity(disk: Disk) -> Identity | None:
    """What a folder says that it is; None: nothing yet. Waits for the disk."""
    data = disk.read_whole(NODE_FILE)
    if data is None:
        return None
    try:
        return _decode(data)
    except msgspec.DecodeError as error:
        raise CannotJoin(
            f"{NODE_FILE} in the data folder cannot be read ({error}); put the file back from a backup, "
            "or start with an empty folder: the others then copy to this node what it should hold"
        ) from error


def write_identity(disk: Disk, identity: Identity) -> None:
    """Say what a folder is, durably. Waits for the disk."""
    disk.replace(NODE_FILE, msgspec.json.format(msgspec.json.encode(identity)))
