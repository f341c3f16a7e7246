"""A real etcd that speaks TLS, asks for certificates, and has users."""

import asyncio
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goqueue.model.errors import StoreUnreachable
from goqueue.node.config_etcd import EtcdAccess
from goqueue.node.etcd.server import find_etcd
from tests.doors.certificates import Certificates
from tests.etcd_member import EtcdMember, running_member
from tests.unit.node.etcd.running import answered, opened

pytestmark = pytest.mark.slow

ROOT = "/goqueue/locked/"
PASSWORD = "correct horse"


class Locked:
    """An etcd over TLS that asks for certificates, and what opens it."""

    def __init__(self, member: EtcdMember, certificates: Certificates) -> None:
        self.member = member
        cert_file, key_file = certificates.of("node")
        self.access = EtcdAccess(
            has_tls=True, ca_file=certificates.ca_file, cert_file=cert_file, key_file=key_file
        )

    def control(self, *words: str) -> None:
        """Run etcd's own tool."""
        program = find_etcd()
        assert program is not None
        shown = (self.access.ca_file, self.access.cert_file, self.access.key_file)
        names = ("--cacert", "--cert", "--key")
        flags = [f"{name}={file}" for name, file in zip(names, shown, strict=True)]
        command = [f"{program}ctl", f"--endpoints=https://{self.member.endpoint}", *flags, *words]
        subprocess.run(command, check=True, capture_output=True, timeout=20)

    def have_users(self) -> EtcdAccess:
        """Let in only who logs in; one may write below our root."""
        self.control("user", "add", f"root:{PASSWORD}")
        self.control("user", "grant-role", "root", "root")
        self.control("role", "add", "node")
        self.control("role", "grant-permission", "node", "readwrite", "--prefix", ROOT)
        self.control("user", "add", f"node-user:{PASSWORD}")
        self.control("user", "grant-role", "node-user", "node")
        self.control("auth", "enable")
        return replace(self.access, user="node-user", password=PASSWORD)


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Locked]:
    certificates = Certificates(tmp_path)
    locks = [
        f"--cert-file={tmp_path}/door.pem",
        f"--key-file={tmp_path}/door.key",
        f"--trusted-ca-file={certificates.ca_file}",
        "--client-cert-auth",
    ]
    with running_member(tmp_path, locks=locks) as member:
        yield Locked(member, certificates)


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def test_a_node_that_shows_its_certificate_writes_reads_and_follows(locked: Locked) -> None:
    async def work() -> None:
        async with opened(locked.member.endpoint, root=ROOT, access=locked.access) as store:
            revision = await store.change((), {"one": b"1"}, ())
            assert (await store.load("")).items["one"].value == b"1"
            async for change in store.follow("", revision - 1):
                assert change.revision == revision
                break
            session = await store.open_session(5_000)
            assert not session.is_lost
            await session.close()

    run(work)


def test_who_shows_nothing_or_trusts_nobody_is_not_answered(locked: Locked, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Certificates(tmp_path / "other")
    for access in (
        EtcdAccess(),
        replace(locked.access, cert_file=None, key_file=None),
        replace(locked.access, ca_file=other.ca_file),
        replace(locked.access, ca_file=tmp_path / "missing.pem"),
    ):

        async def work(access: EtcdAccess = access) -> None:
            async with opened(locked.member.endpoint, is_there=False, access=access) as store:
                with pytest.raises(StoreUnreachable):
                    await store.load("")

        run(work)


def test_a_node_logs_in_and_is_known_again_after_etcd_was_killed(locked: Locked) -> None:
    access = locked.have_users()

    async def work() -> None:
        async with opened(locked.member.endpoint, root=ROOT, access=access) as store:
            revision = await store.change((), {"one": b"1"}, ())
            following = store.follow("", revision)
            waiting = asyncio.ensure_future(anext(following))
            session = await store.open_session(5_000)
            await asyncio.to_thread(locked.member.kill)
            await asyncio.to_thread(locked.member.start)
            await answered(store)
            async with asyncio.timeout(20):
                while True:
                    try:
                        await store.change((), {"two": b"2"}, ())
                        break
                    except Exception:
                        await asyncio.sleep(0.1)
                assert (await waiting).revision > revision
            await following.aclose()  # type: ignore[attr-defined]
            await session.close()

    run(work)


def test_a_wrong_password_is_told_and_never_repeated(locked: Locked) -> None:
    access = replace(locked.have_users(), password="a wrong secret")

    async def work() -> None:
        async with opened(locked.member.endpoint, root=ROOT, is_there=False, access=access) as store:
            with pytest.raises(StoreUnreachable, match="no login as node-user") as refusal:
                await store.load("")
            assert "a wrong secret" not in str(refusal.value) + repr(access)

    run(work)


def test_who_does_not_log_in_gets_nothing_where_users_are_asked_for(locked: Locked) -> None:
    locked.have_users()

    async def work() -> None:
        async with opened(locked.member.endpoint, root=ROOT, is_there=False, access=locked.access) as store:
            with pytest.raises(StoreUnreachable):
                await store.load("")

    run(work)
