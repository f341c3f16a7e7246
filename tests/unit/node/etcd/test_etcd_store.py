"""The store on a real etcd: the suite for all stores, and what is particular to this one."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from proto_schema_parser.ast import Enum, EnumValue, Field, Message, OneOf
from proto_schema_parser.parser import Parser

from goqueue.model.cluster import Guard
from goqueue.model.errors import Outdated
from goqueue.model.ports import Store
from goqueue.node.etcd.store import CHANGES_MAX
from goqueue.proto.etcd import rpc_pb2
from tests.etcd_member import EtcdMember, running_member
from tests.unit.broker.storage.store_conformance import StoreConformance, next_of
from tests.unit.node.etcd.running import opened


@pytest.fixture(scope="module")
def member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdMember]:
    with running_member(tmp_path_factory.mktemp("etcd")) as started:
        yield started


class TestEtcdStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def at(self, member: EtcdMember) -> None:
        self._endpoint = member.endpoint

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        async with opened(self._endpoint) as store:
            yield store


def test_many_keys_are_loaded_page_by_page_at_one_revision(
    member: EtcdMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goqueue.node.etcd.store._PAGE_KEYS", 7)

    async def walk() -> None:
        async with opened(member.endpoint) as store:
            for at in range(3):
                await store.change([], {f"k{at}/{n}": b"%d" % n for n in range(CHANGES_MAX)}, [])
            loaded = await store.load("k1/")
            assert len(loaded.items) == CHANGES_MAX
            assert len((await store.load("")).items) == 3 * CHANGES_MAX

            async def change_meanwhile() -> None:
                for at in range(50):
                    await store.change([], {"k0/0": b"%d" % at, "k2/127": b"%d" % at}, [])

            await store.change([], {"k0/0": b"-", "k2/127": b"-"}, [])
            changing = asyncio.ensure_future(change_meanwhile())
            while not changing.done():
                items = (await store.load("")).items
                assert items["k0/0"].value == items["k2/127"].value, "pages of two revisions"
            await changing

    asyncio.run(walk())


def test_the_key_that_has_changed_is_named(member: EtcdMember) -> None:
    async def walk() -> None:
        async with opened(member.endpoint) as store:
            first = await store.change([], {"a": b"1", "b": b"1"}, [])
            await store.change([], {"b": b"2"}, [])
            with pytest.raises(Outdated) as refused:
                await store.change([Guard("a", first), Guard("b", first)], {"a": b"3"}, [])
            assert refused.value.key == "b"

    asyncio.run(walk())


def test_clusters_that_share_an_etcd_do_not_see_each_other_and_do_not_wait_for_each_other(
    member: EtcdMember,
) -> None:
    async def walk() -> None:
        async with opened(member.endpoint) as store, opened(member.endpoint) as other:
            first = await store.change([], {"a": b"1"}, [])
            news = store.follow("", 0)
            assert (await next_of(news)).revision == first
            await other.change([], {"a": b"2"}, [])
            told = (await store.load("")).revision
            assert told > first
            change = await next_of(news)
            assert change.revision > told, "it is further than what was told"
            assert set(change.puts) == {"pulse"}

    asyncio.run(walk())


def test_the_stubs_are_those_of_the_proto_file() -> None:
    text = (Path(rpc_pb2.__file__).parent / "rpc.proto").read_text(encoding="utf-8")
    messages = [element for element in Parser().parse(text).file_elements if isinstance(element, Message)]
    assert {message.name for message in messages} == set(rpc_pb2.DESCRIPTOR.message_types_by_name)
    for message in messages:
        descriptor = rpc_pb2.DESCRIPTOR.message_types_by_name[message.name]
        fields = [
            field
            for element in message.elements
            for field in (element.elements if isinstance(element, OneOf) else [element])
            if isinstance(field, Field)
        ]
        assert {(field.name, field.number) for field in fields} == {
            (field.name, field.number) for field in descriptor.fields
        }
        for enum in (element for element in message.elements if isinstance(element, Enum)):
            numbers = {value.name: value.number for value in enum.elements if isinstance(value, EnumValue)}
            stubs = descriptor.enum_types_by_name[enum.name].values_by_name
            assert numbers == {name: value.number for name, value in stubs.items()}
