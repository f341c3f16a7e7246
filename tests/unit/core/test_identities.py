"""Users and keys: what may be agreed on, and who is good."""

from dataclasses import replace

import pytest

from goqueue.core.access.identities import Identities, key_entry, user_entry
from goqueue.core.access.tenants import Tenants
from goqueue.model.errors import InvalidIdentity, KeyExists, KeyNotFound, UserExists, UserNotFound
from goqueue.model.identity import USER, ApiKey, PasswordForm, Principal, ScramForm, ScramMechanism
from goqueue.model.identity_commands import AlterScram, ChangePassword, CreateKey, CreateUser, RotateKey
from goqueue.model.tenant_commands import CreateTenant
from goqueue.model.tenants import TenantId

OLD, NEW = PasswordForm(salt=b"s", digest=b"old"), PasswordForm(salt=b"s", digest=b"new")
FORM = ScramForm(salt=b"s", iterations=4_096, stored_key=b"k", server_key=b"k")
KEY = ApiKey(key_id="key_1", name="one", prefix="gq_1", digest="d1", created_ms=1)


def with_alice() -> Identities:
    identities = Identities()
    command = CreateUser(name="alice", password=OLD, scram={ScramMechanism.SHA_256: FORM})
    identities.put(*user_entry(identities.create_user(command, now_ms=1)))
    return identities


def test_what_is_kept_comes_back_as_it_was() -> None:
    identities, again = with_alice(), Identities()
    identities.put(*key_entry(identities.create_key(CreateKey(key=KEY))))

    again.load(dict([user_entry(identities.users["alice"]), key_entry(KEY), ("topics/x", b"{}")]))

    assert (again.users, again.keys) == (identities.users, identities.keys)


@pytest.mark.parametrize("name", ["", "a\nb", "ANONYMOUS", "root", "key_1", "x" * 256])
def test_some_names_no_user_can_have(name: str) -> None:
    with pytest.raises(InvalidIdentity):
        Identities().create_user(CreateUser(name=name), now_ms=1)


def test_nobody_is_made_twice() -> None:
    identities = with_alice()
    identities.put(*key_entry(KEY))

    with pytest.raises(UserExists):
        identities.create_user(CreateUser(name="alice"), now_ms=2)
    with pytest.raises(KeyExists):
        identities.create_key(CreateKey(key=KEY))


def test_of_two_passwords_the_old_one_is_good_for_a_while_if_asked_for() -> None:
    identities = with_alice()

    kept = identities.change_password(
        ChangePassword(name="alice", password=NEW, scram={}, keep_old_ms=100), now_ms=10
    )
    alone = identities.change_password(ChangePassword(name="alice", password=NEW, scram={}), now_ms=10)

    assert [(form.digest, form.until_ms) for form in kept.passwords] == [(b"new", None), (b"old", 110)]
    assert alone.passwords == (NEW,)


def test_who_is_disabled_or_has_expired_is_not_good_nor_are_its_keys() -> None:
    identities = with_alice()
    key = ApiKey(key_id="key_2", name="two", prefix="gq_2", digest="d2", created_ms=1, user="alice")
    identities.put(*key_entry(key))
    assert identities.good_key("d2", now_ms=5) == key

    identities.put(*user_entry(identities.set_disabled("alice", is_disabled=True, now_ms=6)))

    assert not identities.is_good_user("alice", now_ms=7)
    assert identities.good_key("d2", now_ms=7) is None
    identities.put(*user_entry(identities.set_disabled("alice", is_disabled=False, now_ms=8)))
    assert identities.good_key("d2", now_ms=9) == key


def test_a_key_is_rotated_with_two_good_at_a_time_and_then_one() -> None:
    identities = Identities()
    identities.put(*key_entry(KEY))

    command = RotateKey(key_id="key_1", new_id="key_9", prefix="gq_9", digest="d9", keep_old_ms=100)
    for kept in identities.rotate_key(command, now_ms=10):
        identities.put(*key_entry(kept))

    assert identities.good_key("d1", now_ms=109) is not None
    assert identities.good_key("d9", now_ms=109) is not None
    assert identities.good_key("d1", now_ms=110) is None
    assert identities.good_key("d9", now_ms=10_000) is not None


def test_a_key_that_was_revoked_or_dropped_opens_nothing() -> None:
    identities = Identities()
    identities.put(*key_entry(KEY))
    identities.put(*key_entry(identities.revoke_key("key_1")))
    assert identities.good_key("d1", now_ms=5) is None

    identities.drop("identities/keys/key_1")

    with pytest.raises(KeyNotFound):
        identities.revoke_key("key_1")


def test_a_scram_form_makes_a_user_or_joins_one_and_can_be_dropped() -> None:
    identities = with_alice()

    made = identities.alter_scram(AlterScram(name="bob", forms={ScramMechanism.SHA_512: FORM}), now_ms=1)
    less = identities.alter_scram(AlterScram(name="alice", dropped=(ScramMechanism.SHA_256,)), now_ms=1)

    assert (list(made.scram), made.passwords) == ([ScramMechanism.SHA_512], ())
    assert less.scram == {}
    with pytest.raises(UserNotFound):
        identities.alter_scram(AlterScram(name="alice", dropped=(ScramMechanism.SHA_512,)), now_ms=1)


@pytest.mark.parametrize("iterations", [0, 4_095, 16_385])
def test_scram_with_too_few_or_too_many_iterations_is_refused(iterations: int) -> None:
    form = ScramForm(salt=b"s", iterations=iterations, stored_key=b"k", server_key=b"k")

    with pytest.raises(InvalidIdentity):
        Identities().alter_scram(AlterScram(name="bob", forms={ScramMechanism.SHA_256: form}), now_ms=1)


def test_what_stands_for_a_user_is_of_the_users_tenant() -> None:
    identities = with_alice()
    command = CreateUser(name="bob", tenant=TenantId("acme"))
    identities.put(*user_entry(identities.create_user(command, now_ms=1)))
    own, of_bob = replace(KEY, tenant=TenantId("globex")), replace(KEY, user="bob")

    assert identities.tenant_of(own.principal) == "globex"
    assert identities.tenant_of(of_bob.principal) == "acme"
    assert identities.tenant_of(Principal(USER, "bob")) == "acme", "by a certificate"
    assert identities.tenant_of(Principal(USER, "alice", TenantId("globex"))) is None, "the store knows best"
    with pytest.raises(InvalidIdentity):
        identities.create_key(CreateKey(key=replace(of_bob, tenant=TenantId("globex"))))


def test_who_is_of_a_tenant_is_good_while_it_is_there_and_not_for_another_of_its_name() -> None:
    tenants, acme = Tenants(), TenantId("acme")
    identities = Identities(tenants)

    def appears(at_ms: int) -> None:
        tenants.apply(tenants.create(CreateTenant(name="acme", tenant_id="acme"), now_ms=at_ms))

    appears(at_ms=10)
    # Made by a clock that is behind that of who has made the tenant.
    identities.put(*user_entry(identities.create_user(CreateUser(name="ann", tenant=acme), now_ms=7)))
    key = identities.create_key(CreateKey(key=replace(KEY, tenant=acme, created_ms=7)))
    identities.put(*key_entry(key))
    assert identities.is_good_user("ann", now_ms=11)
    assert identities.good_key(KEY.digest, now_ms=11) == key

    seen = identities.changes
    tenants.apply(tenants.delete("acme", topic_count=0, is_forced=False))
    identities.drop("tenants/acme")
    assert identities.changes > seen
    for now_ms in (12, 30):
        assert not identities.is_good_user("ann", now_ms=now_ms)
        assert identities.is_shut_out("ann", now_ms=now_ms)
        assert identities.good_key(KEY.digest, now_ms=now_ms) is None
        if not tenants.accounts:
            appears(at_ms=20)
