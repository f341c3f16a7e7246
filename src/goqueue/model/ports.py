"""Ports: what the log and the broker ask of the world. Real ones in node/, simulated ones in testing/."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from errno import EDQUOT, ENOSPC
from typing import NamedTuple, ParamSpec, Protocol, TypeVar

from goqueue.model.cluster import ABSENT, Change, Guard, Loaded, NodeId
from goqueue.model.peers import Answered, Loss, Neighbour, Pace, Peer
from goqueue.model.places import Command
from goqueue.model.replication import Follow, Message

P = ParamSpec("P")
T = TypeVar("T")

Buffer = bytes | bytearray | memoryview
Job = Callable[[bytes], bytes]
"""Work on bytes alone: a function at the top of a module, so that another process finds it by its name."""


class Clock(Protocol):
    """Wall time for timestamps and retention, monotonic time for deadlines. They never meet."""

    def wall_ms(self) -> int: ...

    def wall_us(self) -> int:
        """The same, fine enough to tell the stages of a message apart."""

    def monotonic_ns(self) -> int: ...

    def cpu_ns(self) -> int:
        """CPU time that the calling thread has used: what work takes, however busy the machine is."""


class File(Protocol):
    """One open file. Every method may raise OSError; the log turns that into an error of the house."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write all buffers at the end. On an error part of them may have been written."""

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end. May wait for the disk."""

    def read_cached(self, position: int, size: int) -> bytes | bytearray | None:
        """The same without waiting for the disk, or None when that cannot be had."""

    def sync(self) -> None:
        """Return when all that was appended before the call is on the disk. Called from threads."""

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def close(self) -> None: ...


class PlacedFile(Protocol):
    """An open file that is written at places, not at its end. Every method may raise OSError."""

    def allocate(self, size: int) -> None:
        """Make it so large, with zeros behind what it holds, and with the room for that on the disk."""

    def write(self, position: int, data: Buffer) -> None:
        """Write at a place. On an error part of it may have been written."""

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end."""

    def sync(self) -> None:
        """Return when all that was written before the call is on the disk."""

    def size(self) -> int: ...

    def close(self) -> None: ...


class DiskSpace(NamedTuple):
    """What a disk holds and what it still takes, as far as this process may use it."""

    total_bytes: int
    free_bytes: int

    @property
    def used_percent(self) -> int:
        return 100 - 100 * self.free_bytes // self.total_bytes if self.total_bytes else 100


def is_disk_full(error: OSError) -> bool:
    """Whether a disk says that it has no room: nothing is broken, and it may have some again."""
    return error.errno in (ENOSPC, EDQUOT)


class Disk(Protocol):
    """A folder tree. Paths are relative to its root, with `/` between parts."""

    def open(self, path: str) -> File:
        """Open for reading and appending; the file is created when absent, its folder must exist."""

    def open_existing(self, path: str) -> File:
        """The same for a file that must be there: FileNotFoundError when it is not."""

    def open_placed(self, path: str) -> PlacedFile:
        """Open for reading and for writing at places; created when absent, its folder must exist."""

    def list(self, folder: str) -> list[str]:
        """Names in a folder, sorted; empty when there is no such folder, or it is a file."""

    def make_folder(self, folder: str) -> None:
        """Create a folder and its parents, durably."""

    def sync_folder(self, folder: str) -> None:
        """Make creations, renames and removals in a folder durable."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a small file whole and durably: a crash meanwhile leaves the old bytes or the new."""

    def read_whole(self, path: str) -> bytes | None:
        """The bytes of a small file, or None when it is absent."""

    def fingerprint(self, path: str) -> str:
        """Another text when a file has other bytes, or is another one. Raises FileNotFoundError."""

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens when it is absent."""

    def remove_tree(self, folder: str) -> None:
        """Remove a folder and all below it; nothing happens when it is absent, or a file."""

    def keep_removed(self, folder: str) -> None:
        """From now on whatever is removed, renamed or replaced stays in this folder: see `removed`."""

    def removed(self) -> Mapping[str, str]:
        """By path, where the file stays that was the first to go from it since.

        Raises OSError when one has gone and could not be kept.
        """

    def forget_removed(self) -> None:
        """Nobody needs what is kept any more: it goes."""

    def space(self) -> DiskSpace:
        """How full the disk is that the root lies on."""


class Threads(Protocol):
    """Where work that waits for the disk is done, so that the loop never does."""

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Do something in a thread; whoever awaits it gets what came of it."""

    def sync(self, file: PlacedFile) -> Awaitable[None]:
        """Have a file synced: what was written to it before the call is on the disk then."""
        return self.run(file.sync)


class JobCounts:
    """How jobs of a workshop have ended."""

    __slots__ = ("done", "lost", "overran", "refused")

    def __init__(self) -> None:
        self.done = 0
        self.overran = 0
        self.lost = 0
        self.refused = 0


class Workshop(Protocol):
    """Where work is done that a stranger's data may make endless: beside the loop, and stopped at a limit."""

    counts: JobCounts

    @property
    def job_limit_ms(self) -> int:
        """The CPU time that a job may take."""

    @property
    def process_count(self) -> int:
        """Helper processes that are there now."""

    @property
    def waiting_count(self) -> int:
        """Jobs that wait for one of them."""

    async def run(self, job: Job, request: bytes, *, whose: str, limit_ms: int | None = None) -> bytes:
        """What a job makes of a request. `whose`: those who ask get their turns one after the other.

        Raises JobOverran when it takes more than it may, JobLost when it comes to no end for another
        reason, WorkshopBusy when too many wait.
        """


class Objects(Protocol):
    """Where copies go that outlive the node: named bytes, whole or not at all. Called in threads; OSError."""

    def put(self, name: str, data: Buffer) -> None:
        """Keep it durably. Names are words with `/` between."""

    def get(self, name: str) -> bytes | None:
        """None: there is no such object."""

    def names(self) -> list[str]:
        """All there are, in order."""

    def remove(self, name: str) -> None:
        """Nothing happens when it is absent."""


SEALED = b"GQE1"
"""How sealed bytes begin, whatever the key."""


class Sealer(Protocol):
    """Makes bytes unreadable, and unchangeable, for whoever has not the key. Costs CPU: called in threads."""

    def seal(self, data: Buffer, purpose: str) -> bytes:
        """`purpose`: what they are for. Sealed for one, they open for no other."""

    def open(self, sealed: Buffer, purpose: str) -> bytes:
        """Raises Corrupt when they are not what was sealed, or no key of ours opens them."""


class Session(Protocol):
    """A node's word that it is alive. What it holds goes when that is given up, or no longer believed."""

    @property
    def is_doubtful(self) -> bool:
        """Whether the store has not been heard of for so long that it may have ended the session."""

    @property
    def is_lost(self) -> bool:
        """Whether it has ended."""

    async def ended(self) -> None:
        """Return when it has ended."""

    async def hold(self, key: str, value: bytes, revision: int = ABSENT) -> int:
        """Put a key that is absent, or has this revision, for as long as the session lives.

        Returns its new revision, and raises like `change`. A plain change of such a key would take it out of
        the session.
        """

    async def close(self) -> None:
        """Give up what it holds, now."""


class Store(Protocol):
    """What all nodes agree on: keys and values, of which every change has a revision. Values are JSON."""

    async def load(self, prefix: str) -> Loaded:
        """All that stands under keys that begin so, at one revision."""

    def follow(self, prefix: str, after: int) -> AsyncIterator[Change]:
        """What changes there behind a revision, in order, none left out; it comes to no end.

        Raises Compacted when the store no longer knows what came next: then load anew.
        """

    async def change(self, guards: Sequence[Guard], puts: Mapping[str, bytes], drops: Sequence[str]) -> int:
        """Change keys together, or none of them; returns the revision of that.

        Raises Outdated when a guard does not hold, and Unknown when there was no answer: it may have
        happened. Load, and look.
        """

    async def open_session(self, ttl_ms: int) -> Session:
        """Say that one is alive, and go on saying so."""

    async def end_session(self, key: str, revision: int) -> None:
        """End the session that holds a key, whosever it is, if the key has this revision.

        For those who know that its owner is dead, or that is not believed any more. Raises like `change`.
        """


class Stream(Protocol):
    """One end of a session: messages of one follower and one leader about one partition, over one connection.

    What arrives is a beginning of what was sent: in order, each message whole and once, none left out. It
    ends for both when either closes it or the connection is lost, and never comes back; another session
    does. That a message was sent says nothing about whether it arrived: only an `Ack` does. Between streams
    there is no order, and none between a stream and calls.
    """

    @property
    def peer(self) -> Peer:
        """Who is at the other end, as it is registered."""

    @property
    def session(self) -> int: ...

    @property
    def is_over(self) -> bool: ...

    @property
    def has_room(self) -> bool:
        """Whether frames may be sent.

        Less than SESSION_UNSENT_BYTES_MAX of this session and LINK_UNSENT_BYTES_MAX of its connection wait
        to go out.
        """

    def send(self, message: Message, frames: Sequence[Buffer] = ()) -> None:
        """Send, without waiting and without a copy: nobody may change `frames` any more.

        Frames are sent only while there is room; the last of them may go beyond it. On a stream that is
        over nothing happens.
        """

    def close(self) -> None:
        """End it, and drop what has not gone out. The other side is told; this one's user is not."""


class StreamUser(Protocol):
    """Who uses one end of a session. All is called from the loop, and never from within a call of the stream.

    Of one connection all streams wait while one is called: what comes is taken in at once, or kept aside.
    """

    def received(self, message: Message, frames: Buffer) -> None:
        """A message came. `frames` may be kept; nobody else writes to it."""

    def has_room_again(self) -> None:
        """There was no room to send, and now there is."""

    def ended(self) -> None:
        """The other side has closed it, or the connection is lost. Nothing is received behind this."""


class Link(Protocol):
    """One connection to a node that was made from here. Lost once, it stays lost: ask for another."""

    @property
    def peer(self) -> Peer: ...

    @property
    def pace(self) -> Pace: ...

    @property
    def is_lost(self) -> bool: ...

    def follow(self, message: Follow, user: StreamUser) -> Stream:
        """Open a session by its first message. Its number must be above all that this link has had.

        Raises NodeUnreachable when the link is lost.
        """


class PeerUser(Protocol):
    """What other nodes want of this one. Called from the loop."""

    def followed(self, stream: Stream, message: Follow) -> StreamUser | None:
        """Another node opens a session; who shall use this end of it. None: it is closed."""

    async def answer(self, caller: Peer, command: Command, tail: Buffer, *, wait_ms: int) -> Answered:
        """What comes of a command; errors of the one tree go back as they are.

        It is cancelled when the caller no longer waits, be it that it gave up or that the connection is
        lost. Then it may have been done, as with any caller that goes away.
        """

    def lost(self, node: NodeId, loss: Loss) -> None:
        """A connection to or from a node has ended, or none could be made. Told each time that happens."""


class Peers(Protocol):
    """Connections to other nodes: streams of replication, and calls. Whoever is not registered has none.

    A link that is lost is made anew, with growing pauses, as long as its node is registered. The two ends
    do not learn of a loss at the same time, and messages that were sent over an old connection may arrive
    after a new one is up: what is received counts only in its session and epoch.
    """

    def serve(self, me: Peer, user: PeerUser) -> None:
        """From now on be this incarnation of this node. Connections of an earlier one are cut."""

    def meet(self, neighbours: Mapping[NodeId, Neighbour]) -> None:
        """Who is registered now. Connections with any other incarnation are cut; the rest goes on."""

    async def link(self, node: NodeId, pace: Pace) -> Link:
        """The connection to a node; waits, for ever if need be, until there is one."""

    async def call(
        self, node: NodeId, command: Command, *, wait_ms: int, tail: Sequence[Buffer] = ()
    ) -> Answered:
        """Have a command run by another node, and wait for its answer. Raises what its verb raises, and:

        NodeUnreachable: there is no connection, and nothing was sent (a first attempt is waited for).
        NodeBusy: too much waits to go out to that node, or is under way there; nothing was done.
        AnswerLost: the connection was lost, or the time has passed: it may have been done, or be done yet.
        Calls are in no order, neither among each other nor with what streams carry.
        """
