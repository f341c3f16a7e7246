"""Certificates of this node: had from files or made, and read anew while it serves.

Files are looked at now and then, and on SIGHUP. Files that are no good are told of in the log, and the doors
go on with what they have.
"""

import asyncio
import logging
import signal
from collections.abc import Sequence
from pathlib import Path

from goqueue.edge.tls import BadCertificate, ServerTls
from goqueue.node.config import NodeConfig
from goqueue.node.config_doors import TlsWish

logger = logging.getLogger(__name__)

LOOK_INTERVAL_S = 10.0
FOLDER = "tls"


class CertificateRefused(OSError):
    """A door has no certificate to show, in words for people."""


def server_tls(wish: TlsWish, config: NodeConfig) -> ServerTls:
    """What doors show; a certificate that is to be made is made now. Raises CertificateRefused."""

    def made() -> tuple[Path, Path]:
        from goqueue.node.self_signed import self_signed_files

        advertised = [listener.advertised for listener in (*config.kafka_listeners, *config.http_listeners)]
        hosts = [address.host for address in advertised if address is not None]
        return self_signed_files(config.data_folder / FOLDER, hosts)

    try:
        return ServerTls(wish.config(made))
    except BadCertificate as error:
        raise CertificateRefused(str(error)) from error


class CertificateWatch:
    """Has what doors show read anew when its files change, or somebody says so."""

    def __init__(self, shown: Sequence[ServerTls]) -> None:
        self._shown = shown
        self._seen = {tls: _state(tls) for tls in shown}
        self._look: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Nothing is watched where no door has a certificate: SIGHUP does what it does elsewhere, then."""
        if self._shown:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)
            self._look_later()

    def stop(self) -> None:
        if self._look is not None:
            self._look.cancel()

    def reload(self) -> None:
        """Read all of them anew."""
        for tls in self._shown:
            self._seen[tls] = _state(tls)
            try:
                tls.reload()
            except BadCertificate as error:
                logger.error("certificate_not_reloaded reason=%s", error)
            else:
                logger.info("certificate_reloaded file=%s", tls.config.cert_file)

    def _look_later(self) -> None:
        self._look = asyncio.get_running_loop().call_later(LOOK_INTERVAL_S, self._look_around)

    def _look_around(self) -> None:
        if any(_state(tls) != self._seen[tls] for tls in self._shown):
            self.reload()
        self._look_later()


def _state(tls: ServerTls) -> tuple[tuple[int, int, int], ...]:
    """By which it is seen that files have changed."""
    return tuple(map(_file_state, tls.config.files))


def _file_state(path: Path) -> tuple[int, int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_size, status.st_ino)
