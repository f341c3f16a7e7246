"""Who asks, in words."""

from goqueue.model.identity import ANONYMOUS, USER, Principal
from goqueue.model.tenants import TenantId


def test_a_principal_is_written_as_kafka_writes_it() -> None:
    assert str(Principal(USER, "alice")) == "User:alice"
    assert str(ANONYMOUS) == "User:ANONYMOUS"


def test_two_principals_of_one_name_differ_by_their_tenant() -> None:
    assert Principal(USER, "alice", TenantId("acme")) != Principal(USER, "alice")
